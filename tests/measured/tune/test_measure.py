"""Which measured blocks are used, and the parameters of a measurement."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from tutti.measured.tune import Question, by_measurement
from tutti.measured.tune.late import Lateness, in_time
from tutti.measured.tune.measure import cautions
from tutti.measured.tune.times import OWN, TIMES
from tutti.mpi import bench
from tutti.mpi.bench_job import Settings
from tutti.mpi.distance import Distance
from tutti.mpi.underneath import Mpi

NONE_HERE = Mpi("openmpi", "5.0.11", Path("mpicc"), Path("mpiexec"), Path())


def blocks(*rows: tuple[str, int, int]) -> pl.DataFrame:
    """Blocks of 8 bytes: schedule, time and lateness of the last rank, in us."""
    return pl.DataFrame(
        [(name, 8, time * 10**6, late * 10**6, 0, True, "a") for name, time, late in rows],
        schema=["schedule", "size_bytes", "time_ps", "late_ps", "wrong", "crowded", "host"],
        orient="row",
    )  # fmt: skip


def test_late_blocks_are_discarded() -> None:
    measured = blocks(("ring", 9, 0), ("ring", 1, 50), ("ring", 1, 60), ("ring", 8, 2))
    (row,) = in_time(measured, 5e-6).to_dicts()
    assert (row["time_ps"], row["blocks"], row["late"]) == (8 * 10**6, 2, 2)


def test_blocks_count_if_all_started_late() -> None:
    (row,) = in_time(blocks(("ring", 9, 50), ("ring", 7, 50)), 5e-6).to_dicts()
    assert (row["time_ps"], row["blocks"], row["late"]) == (7 * 10**6, 2, 2)


def test_late_blocks_are_reported_once() -> None:
    """As many blocks can be late in a case without any other blocks as in one with as many."""
    some = [("ring", 9, 0), ("ring", 1, 50), ("ring", 1, 60), ("ring", 8, 2)]
    every = [("direct", 9, 50), ("direct", 7, 50), ("direct", 7, 50), ("direct", 7, 50)]
    late = Lateness.of(in_time(blocks(*some, *every), 5e-6), 4)
    assert late == Lateness(blocks=8, discarded=2, cases=2, late_cases=1)
    assert late.text == (
        "2 of 8 blocks started late and were discarded: the times are the medians of the others; "
        "in 1 of 2 cases all blocks started late and were used: these times are those of a busy "
        "machine"
    )
    assert late.plus(late).blocks == 16
    assert Lateness.of(in_time(blocks(("ring", 9, 0)), 5e-6), 1).text == ""


@pytest.mark.parametrize(
    ("collective", "each"), [("broadcast", [1]), ("reduce", [1]), ("all_reduce", [10, 1])]
)
def test_rooted_and_long_collectives_are_measured_one_by_one(
    collective: str, each: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def measure(
        _mpi: object, _request: object, cases: dict[int, list[bench.BenchCandidate]],
        settings: Settings, **_: object,
    ) -> pl.DataFrame:  # fmt: skip
        seen.append(settings.each)
        (names,) = {tuple(one.schedule.name if one.schedule else "" for one in listed)
                    for listed in cases.values()}  # fmt: skip
        return blocks(*((name, 5, 0) for name in names))

    monkeypatch.setattr(bench, "measure", measure)
    question = Question(collective, 4, [8, 256 << 10, 1 << 20])
    found = by_measurement(question, NONE_HERE, Settings(each=10), ["direct"])
    assert seen == each
    assert found.schema == pl.Schema(TIMES)
    assert found["schedule"].to_list() == [OWN, "direct"]
    assert found["mpi"].unique().to_list() == ["openmpi 5.0.11"]
    assert found["method"].unique().to_list() == ["measurement"]
    (conditions,) = found["conditions"].unique()
    assert conditions == "Open MPI 5.0.11, a, more ranks than cores"
    assert [one.split(":")[0] for one in cautions([conditions])] == [
        "ranks outnumber the cores", "all ranks ran on one host",
    ]  # fmt: skip
    assert not list(cautions(["Open MPI 5.0.11, 2 hosts, rank 0 on a"]))


def test_emulated_times_are_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "measure", lambda *_, **__: blocks(("direct", 5, 0)))
    distance = Distance.parse("pipelining_postal:alpha_p=2 ms,alpha_r=1 ms")
    settings = Settings(distance=distance)
    found = by_measurement(Question("all_reduce", 4, [8]), NONE_HERE, settings, ["direct"])
    (row,) = found.to_dicts()
    assert row["method"] == "emulated"
    assert row["conditions"] == str(distance)
