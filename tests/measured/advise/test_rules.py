"""Rules of libraries from predictions: counterparts, defaults and files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from tutti.measured.advise import PREDICTIONS, write_rules
from tutti.measured.advise.rules import library_counterpart, planned, ruled_times, rules
from tutti.measured.advise.rules_view import rule_remarks, ruled_sizes
from tutti.measured.predict.catalogue import execution
from tutti.measured.tune import mpich
from tutti.measured.tune.files import Writer
from tutti.measured.tune.library_algorithms import library_algorithms
from tutti.measured.tune.targets import library_of
from tutti.measured.tune.times import OWN
from tutti.mpi.plan import CollectivePlan

if TYPE_CHECKING:
    from pathlib import Path

RD, RING, OVER = "recursive_doubling_ompi", "ring_ompi", "ring_over"


def writer(folder: Path, tree: dict[str, Any] | None = None) -> Writer:
    return Writer(folder, {}, mpich.Stock(tree) if tree else None, command="tutti advise")


def predicted(
    times: dict[int, dict[str, float]],
    default: dict[int, float] | None = None,
    collective: str = "all_reduce",
    ranks: int = 64,
) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    for size, by_name in times.items():
        for place, (name, time) in enumerate(sorted(by_name.items(), key=lambda one: one[1]), 1):
            rows.append({
                "collective": collective, "ranks": ranks, "size_bytes": size, "algorithm": name,
                "predicted_us": time, "low_us": time / 2, "high_us": time * 2, "choice_us": time,
                "place": place, "near_fastest": 0.5, "default_us": (default or {}).get(size),
            })  # fmt: skip
    return pl.DataFrame(rows, schema=PREDICTIONS)


@pytest.mark.parametrize("target", ["openmpi", "openmpi4", "openmpi6"])
def test_names_of_open_mpi_are_its_numbers(target: str) -> None:
    library, version = library_of(target)
    for collective in ("all_reduce", "all_gather", "all_to_all", "broadcast", "reduce"):
        for one in library_algorithms(library, version, collective):
            for name in {one.name, *one.aliases}:
                if execution(collective, f"{name}_ompi") is None or not one.runs_on(64):
                    continue
                found = library_counterpart(target, collective, 64, f"{name}_ompi")
                assert found is not None
                assert found.number == one.number
    bruck = library_counterpart(target, "all_gather", 64, "bruck_ompi")
    assert bruck is not None
    assert bruck.parameters == {"faninout": 2}


def test_no_rule_has_a_number_that_the_version_lacks(tmp_path: Path) -> None:
    """Open MPI 5.0 aborts a job at the algorithm 7 of all_reduce."""
    times = predicted(
        {8: {"allgather_reduce_ompi": 1.0, RD: 2.0}, 64: {RING: 1.0, RD: 2.0}}, {8: 3.0}
    )
    (first, *_) = rules(times, "openmpi")
    assert (first.schedule, first.unruled) == (RD, "allgather_reduce_ompi")
    written = write_rules(times, "openmpi", writer(tmp_path))
    assert written.path is not None
    lines = "\n8 3 0 0  # recursive_doubling\n64 4 0 0  # ring\n65 0 0 0  # default\n"
    assert lines in written.path.read_text()
    (first, *_) = rules(times, "openmpi6")
    assert first.schedule == "allgather_reduce_ompi"


@pytest.mark.parametrize(
    ("target", "collective", "name", "expected"),
    [
        ("mpich", "all_reduce", "rabenseifner_mpich",
         "MPIR_Allreduce_intra_reduce_scatter_allgather"),
        ("mpich", "all_gather", "recursive_doubling_mpich",
         "MPIR_Allgather_intra_recursive_doubling"),
        ("mpich", "all_gather", "brucks_mpich", "MPIR_Allgather_intra_brucks"),
        ("openmpi", "all_reduce", "recursive_doubling", "recursive_doubling"),
    ],
)  # fmt: skip
def test_names_of_libraries(target: str, collective: str, name: str, expected: str) -> None:
    found = library_counterpart(target, collective, 64, name)
    assert found is not None
    assert found.name == expected


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("openmpi", OVER),
        ("openmpi", "ring_mpich"),
        ("mpich", "ring_ompi"),
        ("openmpi", "bine_lat_over"),
        ("mpich", "rabenseifner_over"),
        ("openmpi", "magic_ompi"),
    ],
)
def test_algorithms_that_are_not_of_the_library(target: str, name: str) -> None:
    assert library_counterpart(target, "all_reduce", 64, name) is None


def test_the_library_gets_the_fastest_algorithm_that_it_has() -> None:
    times = {8: {RD: 2.0, OVER: 1.0, RING: 9.0}, 64: {RD: 9.0, RING: 3.0}, 512: {OVER: 1.0}}
    found = rules(predicted(times, dict.fromkeys(times, 9.0)), "openmpi")
    assert [(one.first, one.last, one.schedule) for one in found] == [
        (8, 63, RD), (64, 511, RING), (512, 512, None),
    ]  # fmt: skip
    assert [one.unruled for one in found] == [OVER, "", OVER]
    assert found[0].loss == pytest.approx(1.0)
    assert found[0].time_ps == 2_000_000


def test_the_default_stays_where_it_is_faster_and_near_such_sizes() -> None:
    times = {size: {RING: 2.0} for size in (8, 64, 4096, 65536)}
    found = rules(predicted(times, {64: 2.1, 65536: 2.5}), "openmpi")
    assert [(one.first, one.schedule, one.stays) for one in found] == [
        (8, OWN, "gain"), (4096, RING, ""),
    ]  # fmt: skip


def test_the_default_is_predicted_where_it_was_not_measured(tmp_path: Path) -> None:
    """Open MPI's default of 64 ranks is recursive_doubling below 256 KiB, then rabenseifner."""
    frame = predicted({8: {RD: 1.0, RING: 2.0}, 4096: {RD: 9.0, RING: 1.0}})
    found = rules(frame, "openmpi")
    assert [(one.first, one.schedule, one.stays) for one in found] == [
        (8, OWN, "gain"), (4096, RING, ""),
    ]  # fmt: skip
    (remark,) = rule_remarks(write_rules(frame, "openmpi", writer(tmp_path)))
    assert "the default stays: 8 B to 4095 B; no algorithm is predicted to beat it" in remark
    (one,) = rules(predicted({1 << 20: {RING: 1.0}}), "openmpi")
    assert (one.schedule, one.stays) == (OWN, "unknown")


def test_files_of_open_mpi(tmp_path: Path) -> None:
    frame = predicted({8: {RD: 1.0, RING: 2.0}, 1024: {RD: 2.0, RING: 1.0}}, {8: 2.0, 1024: 2.0})
    written = write_rules(frame, "openmpi", writer(tmp_path))
    assert written.path == tmp_path / "openmpi.rules"
    text = written.path.read_text()
    assert text.startswith("# Written by `tutti advise`.")
    assert (
        "64  # ranks and more\n4  # sizes\n0 0 0 0  # default\n8 3 0 0  # recursive_doubling\n"
        "1024 4 0 0  # ring\n1025 0 0 0  # default\n65  # ranks and more"
    ) in text
    assert written.shell is not None
    assert str(written.path.resolve()) in written.shell.read_text()
    newer = write_rules(frame, "openmpi6", writer(tmp_path))
    assert newer.path is not None
    (rule,) = json.loads(newer.path.read_text())["collectives"]["allreduce"]
    assert [one["alg"] for one in rule["rules"]] == [3, 4]


def test_nothing_is_written_without_counterparts_or_trees(tmp_path: Path) -> None:
    written = write_rules(predicted({8: {OVER: 1.0}}), "openmpi", writer(tmp_path))
    assert (written.path, written.shell) == (None, None)
    assert "none of the fastest" in written.notes[0]
    written = write_rules(predicted({8: {"ring_mpich": 1.0}}, {8: 2.0}), "mpich", writer(tmp_path))
    assert "--csel-base" in written.notes[0]
    assert list(tmp_path.iterdir()) == []


def test_files_of_mpich(tmp_path: Path) -> None:
    names = ("allreduce", "bcast", "reduce", "allgather", "alltoall", "reduce_scatter_block",
             "barrier")  # fmt: skip
    tree: dict[str, Any] = {
        f"collective={one}": {"comm_type=intra": {"comm_size=any": {}}} for one in names
    }
    frame = predicted({1024: {"recursive_doubling_mpich": 1.0}}, {1024: 2.0})
    written = write_rules(frame, "mpich", writer(tmp_path, tree))
    assert written.path is not None
    assert "algorithm=MPIR_Allreduce_intra_recursive_doubling" in written.path.read_text()
    assert written.shell is not None
    assert "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE" in written.shell.read_text()


def test_reduce_scatter_is_of_blocks(tmp_path: Path) -> None:
    frame = predicted(
        {1024: {"recursive_halving_ompi": 1.0}}, {1024: 2.0}, collective="reduce_scatter"
    )
    assert "MPI_Reduce_scatter_block" in write_rules(frame, "openmpi", writer(tmp_path)).notes[0]


@pytest.mark.parametrize(
    ("measured", "noted"),
    [("OMPI 5.0.3", False), ("Open MPI 4.1.6", True), ("customOMPI 5.0.7", True), ("", False)],
)
def test_another_release_than_that_of_the_rules_is_reported(
    measured: str, noted: bool, tmp_path: Path
) -> None:
    frame = predicted({1024: {RING: 1.0}}, {1024: 2.0})
    notes = write_rules(frame, "openmpi", writer(tmp_path), measured=measured).notes
    assert any("numbers of Open MPI 5.0" in note for note in notes) is noted


def test_the_gain_is_that_of_the_rules_read_back(tmp_path: Path) -> None:
    """The fastest algorithm runs over messages of a benchmark: rules cannot take its gain."""
    times = {8: {OVER: 1.0, RD: 4.0}, 64: {OVER: 1.0, RD: 9.5}, 512: {OVER: 1.0}}
    frame = predicted(times, dict.fromkeys(times, 10.0))
    written = write_rules(frame, "openmpi", writer(tmp_path))
    assert written.path is not None
    numbers = {int(line.split()[0]): int(line.split()[1])
               for line in written.path.read_text().split("ranks and more\n")[2].splitlines()
               if "# " in line and len(line.split()) > 4}  # fmt: skip
    assert numbers == {0: 0, 8: 3, 64: 0, 513: 0}
    found = ruled_times(frame, "openmpi")
    gains = {size: found["all_reduce", 64, size].gain for size in times}
    assert gains == {8: pytest.approx(10 / 4 - 1), 64: 0, 512: 0}
    (row,) = ruled_sizes([written])
    assert row.rule.algorithm == RD
    assert row.least.gain == pytest.approx(1.5)


def test_a_plan_has_the_schedules_of_measured_algorithms(tmp_path: Path) -> None:
    times = {8: {RD: 1.0, RING: 9.0}, 4096: {RD: 9.0, OVER: 2.0, RING: 3.0}}
    frame = predicted(times, dict.fromkeys(times, 10.0), ranks=8)
    written = write_rules(frame, "plan", writer(tmp_path))
    assert written.path is not None
    plan = CollectivePlan.read(written.path)
    found = {rule.sizes: rule.schedule.name for rule in plan.rules}
    assert found == {(8, 4095): "recursive_doubling", (4096, 4096): "ring"}
    assert planned("all_reduce", 64, "dissemination:3") is None  # ranks would get different bits


def test_plans_of_too_many_ranks_are_reported(tmp_path: Path) -> None:
    large = predicted({8: {RD: 1.0}}, {8: 2.0}, ranks=4096)
    alone = write_rules(large, "plan", writer(tmp_path))
    (note,) = alone.notes
    assert note.startswith("nothing for 4,096 ranks: plans of `tutti advise` end at 2,048 ranks")
    both = pl.concat([large, predicted({8: {RD: 1.0}}, {8: 2.0}, ranks=8)])
    assert note in write_rules(both, "plan", writer(tmp_path)).notes
    kept = pl.concat([large, predicted({8: {RD: 1.0}}, {8: 1.0}, ranks=8)])
    nothing = write_rules(kept, "plan", writer(tmp_path)).notes
    assert nothing[0].startswith("no rules written: ")
    assert note in nothing


def test_what_two_releases_lack_is_named_once(tmp_path: Path) -> None:
    frame = predicted({8: {OVER: 1.0, RD: 1.5}}, {8: 9.0})
    five, four = (write_rules(frame, one, writer(tmp_path)) for one in ("openmpi", "openmpi4"))
    assert any("no rule for" in text for text in rule_remarks(five))
    assert list(rule_remarks(four, [five])) == []
    assert [text.split(":")[0] for text in rule_remarks(four)] == ["openmpi4"]


def test_rules_of_an_earlier_run_are_removed(tmp_path: Path) -> None:
    ruled = predicted({8: {RD: 1.0}}, {8: 2.0})
    assert write_rules(ruled, "openmpi", writer(tmp_path)).path is not None
    (tmp_path / "notes.txt").write_text("of the user")
    nothing = write_rules(predicted({8: {RD: 1.0}}, {8: 1.0}), "openmpi", writer(tmp_path))
    assert "removed files of an earlier run: openmpi.rules, openmpi.han" in nothing.notes[0]
    assert [one.name for one in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("per_node", "distribution"), [(None, "any"), (1, "one-per-node"), (64, "single-node")]
)
def test_rules_state_the_ranks_per_node_where_the_format_can(
    per_node: int | None, distribution: str, tmp_path: Path
) -> None:
    frame = predicted({8: {RD: 1.0}}, {8: 2.0})
    written = write_rules(frame, "openmpi6", writer(tmp_path), ranks_per_node=per_node)
    assert written.path is not None
    (rule,) = json.loads(written.path.read_text())["collectives"]["allreduce"]
    assert rule["comm_rank_distribution"] == distribution
    classic = write_rules(frame, "openmpi", writer(tmp_path), ranks_per_node=per_node)
    cannot = "which the format of Open MPI 5.0 cannot state"
    assert any(cannot in note for note in classic.notes) is (per_node is not None)
