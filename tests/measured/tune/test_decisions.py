"""The schedule of each size range, for each library, and the written files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from tutti.measured.errors import TuningError
from tutti.measured.tune import Question, by_model, decide, fastest, mpich, openmpi, write_all
from tutti.measured.tune.decisions import extended
from tutti.measured.tune.files import Writer
from tutti.measured.tune.targets import TARGETS, counterpart, counterparts
from tutti.measured.tune.times import OWN, TIMES
from tutti.mpi.plan import CollectivePlan
from tutti.platforms.machine import PipeliningPostal, Platform
from tutti.schedules.bits import bits_differ
from tutti.schedules.ir import schedule

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.measured.tune import TuningDecision

MACHINE = Platform(
    name="machine", model=PipeliningPostal(alpha_p="4 us", alpha_r="1 us", beta="1 ns/B")
)


LIBRARIES = ("openmpi 4.1", "openmpi 5.0", "openmpi 6.0", "mpich 5.0")


def times(
    *rows: tuple[int, int, str, int], default_us: dict[int, int] | None = None
) -> pl.DataFrame:
    """Times of all_reduces: ranks, size, schedule, time in us; and of the libraries' defaults.

    Args:
        rows: Of schedules.
        default_us: By size; None for slow ones.
    """
    slow = {size: 10**6 for _, size, _, _ in rows}
    defaults = [
        dict.fromkeys(TIMES)
        | {"collective": "all_reduce", "ranks": ranks, "size_bytes": size, "datatype": "float32",
           "schedule": OWN, "time_ps": time * 10**6, "method": "default", "conditions": "machine",
           "mpi": library, "moves_chunks": False, "same_on_all": True}
        for ranks in {ranks for ranks, *_ in rows}
        for size, time in (slow if default_us is None else default_us).items()
        for library in LIBRARIES
    ]  # fmt: skip
    cells = defaults + [
        dict.fromkeys(TIMES)
        | {"collective": "all_reduce", "ranks": ranks, "size_bytes": size, "datatype": "float32",
           "schedule": name, "time_ps": time * 10**6, "method": "model", "conditions": "machine",
           "moves_chunks": name != OWN and schedule(name, ranks=ranks).moves_chunks,
           "same_on_all": name == OWN or not bits_differ(schedule(name, ranks=ranks))}
        for ranks, size, name, time in rows
    ]  # fmt: skip
    return pl.DataFrame(cells, schema=TIMES, orient="row")


def measured(rows: pl.DataFrame, mpi: str) -> pl.DataFrame:
    """The same as measured on an MPI library."""
    rows = rows.filter(pl.col("method") != "default")
    return rows.with_columns(pl.lit("measurement").alias("method"), pl.lit(mpi).alias("mpi"))


TWO = times(
    (4, 8, "recursive_multiplying:a4", 1),
    (4, 8, "recursive_doubling", 2),
    (4, 1024, "recursive_multiplying:a4", 3),
    (4, 1024, "recursive_doubling", 3),
    (4, 4096, "ring", 5),
    (4, 4096, "recursive_doubling", 9),
    (6, 8, "recursive_multiplying:a3,a2", 2),
    (6, 8, "recursive_doubling", 4),
)


def spans(decisions: list[TuningDecision]) -> list[tuple[Any, ...]]:
    return [(one.ranks, one.first, one.last, one.schedule) for one in decisions]


def test_fastest_schedule_is_used_up_to_the_next_size() -> None:
    assert spans(decide(TWO, "plan")) == [
        (4, 8, 4095, "recursive_multiplying:a4"),
        (4, 4096, 4096, "ring"),
        (6, 8, 8, "recursive_multiplying:a3,a2"),
    ]
    assert spans(extended(decide(TWO, "plan"))) == [
        (4, 0, 4095, "recursive_multiplying:a4"),
        (4, 4096, None, "ring"),
        (6, 0, None, "recursive_multiplying:a3,a2"),
    ]


def test_decisions_fit_what_a_library_can_express() -> None:
    found = decide(TWO, "openmpi", least_gain=None)
    assert spans(found) == [
        (4, 8, 4095, "recursive_doubling"),
        (4, 4096, 4096, "ring"),
        (6, 8, 8, "recursive_doubling"),
    ]
    assert found[0].best == "recursive_multiplying:a4"
    assert (found[0].loss, found[0].loss_size) == (1.0, 8)
    here = decide(TWO, "mpich", least_gain=None)
    assert spans(here)[0] == (4, 8, 4095, "recursive_multiplying:a4")


def test_a_model_must_beat_what_the_library_selects_by_itself(tmp_path: Path) -> None:
    rows = times((4, 8, "ring", 5), (4, 8, "recursive_doubling", 6),
                 (4, 1024, "ring", 89), (4, 1024, "recursive_doubling", 100),
                 (4, 4096, "ring", 91), (4, 4096, "recursive_doubling", 100),
                 (4, 1 << 14, "ring", 1), (4, 1 << 14, "recursive_doubling", 9),
                 default_us={8: 6, 1024: 100, 4096: 100})  # fmt: skip
    found = decide(rows, "openmpi")
    assert [(one.first, one.schedule, one.stays) for one in found] == [
        (8, "ring", ""), (4096, OWN, "gain"), (1 << 14, OWN, "unknown"),
    ]  # fmt: skip
    assert found[1].time_ps == 100 * 10**6
    assert decide(rows, "openmpi", least_gain=0.05)[0].last == (1 << 14) - 1
    (written,), _ = write_all(rows, ["openmpi"], Writer(tmp_path, {}))
    assert written.notes[0].startswith("2 of 3 ranges of sizes keep the default of Open MPI 5.0")
    assert "the model cannot predict it (1)" in written.notes[0]
    slower = rows.filter(pl.col("size_bytes") == 4096)
    _, left = write_all(slower, ["openmpi"], Writer(tmp_path, {}))
    assert "beat the library's default by 10%" in left["openmpi"].problem


def test_the_greatest_loss_of_joined_sizes_is_reported() -> None:
    rows = times((4, 8, "recursive_doubling", 10), (4, 8, "recursive_multiplying:a4", 9),
                 (4, 64, "recursive_doubling", 12), (4, 64, "direct", 3),
                 (4, 512, "recursive_doubling", 20), (4, 512, "ring", 21))  # fmt: skip
    (found,) = decide(rows, "openmpi", least_gain=None)
    assert (found.first, found.last) == (8, 512)
    assert (found.loss, found.loss_size, found.best) == (3.0, 64, "direct")


def test_times_of_one_mpi_do_not_decide_for_another() -> None:
    here = measured(times((4, 8, OWN, 1), (4, 8, "ring", 5), (4, 8, "recursive_doubling", 9)),
                    "mpich 5.0.2")  # fmt: skip
    modelled = times((4, 8, "ring", 5), (4, 8, "recursive_doubling", 9))
    both = pl.concat([here, modelled])
    assert decide(both, "plan")[0].schedule == OWN
    # Not for the measured library either: its algorithms are others than those of libtutti_mpi.
    for target in ("mpich", "openmpi", "openmpi6", "ucc"):
        (found,) = decide(both, target)
        mine = "recursive_doubling" if target == "ucc" else "ring"
        assert (found.schedule, found.method) == (mine, "model")
        assert decide(here, target) == []
    (found,) = decide(measured(modelled, "openmpi 5.0.11"), "plan")
    assert found.method == "measurement"


def test_decisions_by_a_model_for_another_mpi_are_reported(tmp_path: Path) -> None:
    rows = times((4, 8, "ring", 5), (4, 8, "recursive_doubling", 9))
    both = pl.concat([measured(rows, "mpich 5.0.2"), rows])
    (written,), _ = write_all(both, ["openmpi"], Writer(tmp_path, {}))
    assert "the schedules measured on mpich 5.0.2 are libtutti_mpi's" in written.notes[0]
    nothing, left = write_all(measured(rows, "mpich 5.0.2"), ["openmpi"], Writer(tmp_path, {}))
    assert not nothing
    assert "measured on mpich 5.0.2, not the library's own" in left["openmpi"].problem


def test_emulated_times_are_marked(tmp_path: Path) -> None:
    rows = measured(times((4, 8, "ring", 5)), "openmpi 5.0.11").with_columns(
        pl.lit("emulated").alias("method"), pl.lit("postal(alpha_p=2 ms)").alias("conditions")
    )
    written, _ = write_all(rows, ["plan", "openmpi"], Writer(tmp_path, {}))
    for one in written:
        assert {decision.method for decision in one.decisions} == {"emulated"}
        assert "emulated distance: postal(alpha_p=2 ms)" in one.shell.read_text()
    plan = CollectivePlan.read(tmp_path / "plan.tutti")
    assert plan.provenance["times"] == ["emulated distance: postal(alpha_p=2 ms)"]


def test_variables_that_are_replaced_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "OMPI_MCA_coll_tuned_dynamic_rules_filename"
    monkeypatch.setenv(name, "/site/rules")
    monkeypatch.setenv("OMPI_MCA_coll", "^adapt")
    rows = times((4, 8, "ring", 5), (4, 8, "recursive_doubling", 9))
    (written,), _ = write_all(rows, ["openmpi"], Writer(tmp_path, {}))
    assert written.notes == [f"{name} is '/site/rules' here: the written value replaces it"]
    assert "OMPI_MCA_coll" not in written.variables


def test_algorithms_that_need_equal_parts_have_a_fallback() -> None:
    rows = times((4, 4096, "blue_connect", 5), (4, 4096, "recursive_doubling", 9))
    rows = rows.with_columns((pl.col("schedule") == "blue_connect").alias("moves_chunks"))
    assert decide(rows, "plan")[0].fallback == "recursive_doubling"


def test_code_of_the_mpi_can_be_fastest(tmp_path: Path) -> None:
    rows = times((4, 8, OWN, 1), (4, 8, "ring", 2), (4, 64, OWN, 3), (4, 64, "ring", 2))
    assert spans(decide(rows, "plan")) == [(4, 8, 63, OWN), (4, 64, 64, "ring")]
    write_all(rows, ["plan"], Writer(tmp_path, {}))
    rules = CollectivePlan.read(tmp_path / "plan.tutti").rules
    assert [(rule.schedule.name, rule.sizes) for rule in rules] == [("ring", (64, 64))]
    _, left = write_all(rows.filter(pl.col("schedule") == OWN), ["plan"], Writer(tmp_path, {}))
    assert "nothing to plan" in left["plan"].problem


def test_a_measured_schedule_must_beat_the_native_collective_clearly() -> None:
    rows = measured(
        times((4, 8, OWN, 100), (4, 8, "ring", 95), (4, 64, OWN, 100), (4, 64, "ring", 80)),
        "mpich 5.0.2",
    )
    assert spans(decide(rows, "plan")) == [(4, 8, 63, OWN), (4, 64, 64, "ring")]
    assert spans(decide(rows, "plan", least_gain=None)) == [(4, 8, 64, "ring")]


# --- Open MPI -------------------------------------------------------------------------------------


def looked_up(text: str, ranks: int, size: int) -> int:
    """The algorithm of an all_reduce by the rules of Open MPI 5: the largest key not above."""
    numbers = [
        int(word)
        for line in text.splitlines()
        if not line.startswith("rule-file")
        for word in line.partition("#")[0].split()
    ]
    width = 5 if text.startswith("rule-file-version-2") else 4
    at, tables = 3, {}
    assert numbers[:2] == [1, 2]
    for _ in range(numbers[2]):
        key, count = numbers[at : at + 2]
        start = at + 2
        tables[key] = [numbers[start + i * width :][:width] for i in range(count)]
        at = start + count * width
    assert at == len(numbers)
    keys = [key for key in tables if key <= ranks] or [min(tables)]
    return [row[1] for row in tables[max(keys)] if row[0] <= size][-1]


@pytest.mark.parametrize("second", [False, True])
def test_classic_rules_apply_only_to_their_ranks(second: bool) -> None:
    text = openmpi.classic(extended(decide(TWO, "openmpi", least_gain=None)), second=second)
    assert text.startswith("rule-file-version-2\n") is second
    request = {
        (n, s): looked_up(text, n, s) for n in range(2, 9) for s in (0, 8, 4095, 4096, 1 << 30)
    }
    for (ranks, size), algorithm in request.items():
        expected = {4: 4 if size >= 4096 else 3, 6: 3}.get(ranks, 0)
        assert algorithm == expected, (ranks, size)


def test_classic_rules_apply_only_to_their_sizes() -> None:
    text = openmpi.classic(decide(TWO, "openmpi", least_gain=None))
    algorithms = [looked_up(text, 4, size) for size in (0, 7, 8, 4095, 4096, 4097, 1 << 30)]
    assert algorithms == [0, 0, 3, 3, 4, 0, 0]


def test_classic_rules_of_neighbouring_ranks() -> None:
    rows = times((4, 8, "ring", 1), (5, 8, "recursive_doubling", 1))
    text = openmpi.classic(decide(rows, "openmpi", least_gain=None))
    assert [looked_up(text, ranks, 8) for ranks in (3, 4, 5, 6)] == [0, 4, 3, 0]


def test_json_rules_say_both_ends() -> None:
    written = json.loads(openmpi.json_rules(decide(TWO, "openmpi6", least_gain=None)))
    four, six = written["collectives"]["allreduce"]
    assert (four["comm_size_min"], four["comm_size_max"]) == (4, 4)
    assert four["rules"] == [
        {"msg_size_min": 8, "msg_size_max": 4095, "alg": 3},
        {"msg_size_min": 4096, "msg_size_max": 4096, "alg": 4},
    ]
    assert six["rules"] == [{"msg_size_min": 8, "msg_size_max": 8, "alg": 3}]
    written = json.loads(openmpi.json_rules(extended(decide(TWO, "openmpi6", least_gain=None))))
    _, six = written["collectives"]["allreduce"]
    assert six["rules"] == [{"msg_size_min": 0, "msg_size_max": "inf", "alg": 3}]


def test_inexpressible_decisions_are_refused() -> None:
    rows = times((6, 8, "recursive_multiplying:a3,a2", 1))
    for write in (openmpi.classic, openmpi.json_rules):
        with pytest.raises(TuningError, match="has none of the fastest"):
            write(decide(rows, "openmpi"))


# --- MPICH ----------------------------------------------------------------------------------------


STOCK: dict[str, Any] = {
    f"collective={name}": {
        "comm_type=intra": {"algorithm=stock": {}},
        "comm_type=inter": {"algorithm=inter": {}},
    }
    for name in (
        "allreduce", "bcast", "reduce", "allgather", "alltoall", "reduce_scatter_block", "barrier",
    )
}  # fmt: skip


def selected(tree: dict[str, Any], **facts: Any) -> str:
    """Returns the algorithm that the conditions select for `size` and `ranks`."""
    for key, below in tree.items():
        if key.startswith("algorithm="):
            return key
        name, _, expected = key.partition("=")
        if name.endswith("<"):
            fact = facts["ranks"] if name.startswith("comm_size") else facts["size"]
            holds = fact <= int(expected)
        else:
            holds = expected == "any" or facts.get(name, "yes") == expected
        if key == "count<pow2":
            holds = facts.get("few", False)
        if holds:
            return selected(below, **facts)
    raise AssertionError(tree)


def test_selections_are_merged_into_the_complete_tree() -> None:
    written = json.loads(mpich.merged(STOCK, decide(TWO, "mpich", least_gain=None)))
    assert set(written) == set(STOCK)
    assert written["collective=bcast"] == STOCK["collective=bcast"]
    tree = written["collective=allreduce"]["comm_type=intra"]
    name = "algorithm=MPIR_Allreduce_intra_"
    assert selected(tree, ranks=4, size=8) == f"{name}recursive_multiplying"
    assert selected(tree, ranks=4, size=4096) == f"{name}ring"
    assert selected(tree, ranks=6, size=8) == f"{name}recursive_doubling"
    assert {selected(tree, ranks=4, size=size) for size in (7, 4097)} == {"algorithm=stock"}
    for ranks in (2, 3, 5, 7, 64):
        assert selected(tree, ranks=ranks, size=8) == "algorithm=stock"
    stock = {"is_commutative": "no"}, {"is_op_built_in": "no"}, {"few": True}
    for facts in stock:
        assert selected(tree, ranks=4, size=4096, **facts) == "algorithm=stock"
    assert STOCK["collective=allreduce"]["comm_type=intra"] == {"algorithm=stock": {}}


def test_parameters_of_algorithms_are_keys() -> None:
    text = mpich.merged(STOCK, decide(TWO, "mpich", least_gain=None))
    assert '"k=4": {}' in text


def test_incomplete_tree_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "generic.json"
    path.write_text(json.dumps(STOCK))
    assert mpich.stock_of_file(path) == STOCK
    path.write_text(json.dumps({"collective=allreduce": {}}))
    with pytest.raises(TuningError, match="lacks some collectives"):
        mpich.stock_of_file(path)
    path.write_text("{")
    with pytest.raises(TuningError, match="cannot be read as JSON"):
        mpich.stock_of_file(path)


# --- all together ---------------------------------------------------------------------------------


def test_all_files_are_written(tmp_path: Path) -> None:
    written, left = write_all(TWO, TARGETS, Writer(tmp_path, {"by": "test"}, mpich.Stock(STOCK)))
    assert not left
    assert [one.target for one in written] == list(TARGETS)
    for one in written:
        assert "\nexport " in one.shell.read_text()
    plan = CollectivePlan.read(tmp_path / "plan.tutti")
    assert plan.provenance["by"] == "test"
    assert [(rule.ranks, rule.sizes) for rule in plan.rules] == [
        (4, (8, 4095)), (4, (4096, 4096)), (6, (8, 8))
    ]  # fmt: skip
    _, left = write_all(TWO, ["mpich"], Writer(tmp_path, {}))
    assert "stock selections" in left["mpich"].problem


@pytest.mark.parametrize("target", ["openmpi", "mpich", "ucc"])
def test_counterparts_can_be_laid_out(target: str) -> None:
    for collective in ("all_reduce", "broadcast", "reduce", "all_gather", "all_to_all",
                       "reduce_scatter", "barrier"):  # fmt: skip
        for ranks in range(2, 18):
            for one in counterparts(target, collective, ranks):
                laid_out = schedule(one.schedule, collective=collective, ranks=ranks)
                assert counterpart(target, collective, ranks, laid_out.name) is not None


# --- by a model -----------------------------------------------------------------------------------


def test_a_model_finds_wide_stages_for_short_messages() -> None:
    question = Question("all_reduce", 9, [8, 1 << 20], targets=("plan", "openmpi"))
    found = by_model(question, MACHINE)
    assert found.schema == pl.Schema(TIMES)
    best = decide(found, "plan")
    assert best[0].schedule in {"direct", "recursive_multiplying:a3,a3", "recursive_multiplying:a9"}
    short, long = decide(found, "openmpi")
    # Open MPI's basic_linear: the root receives from all other ranks at once.
    assert (short.schedule, short.stays) == ("knomial:9", "")
    assert long.schedule == "ring"
    worth = fastest(found, question, 2)
    assert best[0].schedule in worth
    assert "recursive_doubling" in worth
    assert len(worth) <= 2 * 2 * 2 + 4


def test_only_named_algorithms_are_tried() -> None:
    question = Question("all_reduce", 4, [8], targets=("plan",))
    found = by_model(question, MACHINE, ["ring", "direct"])
    assert set(found["schedule"]) == {"ring", "direct", OWN}
    with pytest.raises(TuningError, match="no algorithm performs"):
        by_model(Question("all_to_all", 6, [24]), MACHINE, ["recursive_doubling", "swing"])


def test_every_collective_has_times() -> None:
    for collective in ("broadcast", "reduce", "all_gather", "all_to_all", "reduce_scatter"):
        question = Question(collective, 6, [24 * 6], targets=TARGETS)
        assert decide(by_model(question, MACHINE), "plan")[0].schedule
    barrier = by_model(Question("barrier", 6, [0], targets=TARGETS), MACHINE)
    assert decide(barrier, "mpich")[0].schedule == "recursive_multiplying:a6"
