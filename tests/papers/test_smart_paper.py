"""The exhibits of SMART-FanOut and SMART-FanIn: chosen parameters, and results."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tutti.networks import mesh as smart
from tutti_papers import find_paper
from tutti_papers.smart import sensitivity, system, tables
from tutti_papers.smart.published import Row, score
from tutti_papers.smart.thresholds import threshold

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
"""Thousands of runs are slow on a busy machine."""


SHORT = smart.ReplicationPlan(warmup=200, measure=600, drain=600, seeds=2)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Shortens the runs."""
    for plan in ("PLAN", "MANY"):
        monkeypatch.setattr(system, plan, SHORT)
    monkeypatch.setattr(system, "POINTS", (system.LOW, system.MIDDLE, system.BYPASS_END, 1.0))
    for cached in (system.curve, system.reductions):
        cached.cache_clear()
    yield
    for cached in (system.curve, system.reductions):
        cached.cache_clear()


@pytest.mark.parametrize(
    ("experiment", "name"),
    [(system.ALL, system.BASELINE), (system.ALL, system.PRIVATE), (system.TO_ONE, system.IN_LOCAL)],
)
@pytest.mark.parametrize("grid", [(), (0.2, 0.35, 0.5, 0.8)])
def test_thresholds_are_those_of_complete_searches(
    experiment: str, name: str, grid: tuple[float, ...]
) -> None:
    """Fewer runs, same result."""
    most = system.largest(experiment)
    case = system.mesh(name), system.TRAFFIC[experiment]
    loads = [part * most for part in grid]
    known = smart.sweep(*case, loads, SHORT)
    every = smart.saturation(*case, SHORT, tolerance=0.02, most=most, known=known)
    few = threshold(*case, SHORT, tolerance=0.02, most=most, grid=loads)
    assert few.by_throughput == every.by_throughput
    assert few.accepted == every.accepted
    assert few.zero_load == every.zero_load
    assert len(few.runs) < len(every.runs)


def test_loads_without_a_run_are_refused() -> None:
    found = threshold(
        system.mesh(system.BASELINE), system.TRAFFIC[system.TO_ONE], SHORT, tolerance=0.5, most=0.1
    )
    with pytest.raises(StopIteration):
        system.at(found, 0.77)


def test_variations_change_what_they_name() -> None:
    """`?` is the other priority; a named one is that one."""
    by_name = {one.name: one for one in sensitivity.VARIATIONS}
    other = sensitivity.mesh_of(by_name["the other priority"], system.IN_BYPASS)
    named = sensitivity.mesh_of(by_name["ACKs bypass, others local"], system.IN_BYPASS)
    assert other.priority == "local"
    assert named.priority == "bypass_responses"


def test_buffers_reproduce_most_published_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sensitivity, "BUFFERS", ((4, 2, 2), (6, 8, 8), (6, 8, 6)))
    monkeypatch.setattr(sensitivity, "FEW", SHORT)
    monkeypatch.setattr(system, "SOME_SEEDS", replace(SHORT, measure=2_000, drain=2_000))
    found = sensitivity.calibration()
    first = found.row(0, named=True)
    used = (system.VCS, system.CREDIT_DELAY, system.FAN_OUT_CREDIT_DELAY)
    assert (first["vcs"], first["credit_delay"], first["fan_out_credit_delay"]) == used
    # Only unequal delays separate shared trees from the baseline.
    equal = found.filter(found["credit_delay"] == found["fan_out_credit_delay"])
    assert max(equal["B SVT over baseline"].to_list()) < 1.05
    assert first["B SVT over baseline"] > 1.1


@pytest.mark.usefixtures("short")
def test_polled_responses_give_the_published_row_c3() -> None:
    """With an ejection cycle; merging on landing, as footnote 13 has it, does not."""
    polled = {row.quantity: row for row in tables.to_one("polled") if row.row == "C3"}
    late = [row for name, row in polled.items() if "saturation" not in name]  # needs long runs
    assert len(late) == 3
    for row in late:
        assert row.ours == pytest.approx(row.published, rel=0.15), row
    landing = {row.quantity: row for row in tables.to_one("footnote 13")}
    assert landing["SFI_Greedy, Bypass: ACKs per flow"].ours < 2.5


def test_local_priority_without_bypasses_is_the_baseline() -> None:
    """The reason why SFI_Greedy with Prio=Local does not perform like the baseline."""
    settings = system.REDUCTIONS[system.DEFAULT].settings
    base, local = (
        replace(system.mesh(name), **settings) for name in (system.BASELINE, system.IN_LOCAL)
    )
    traffic = smart.at_load(system.TRAFFIC[system.TO_ONE], system.MIDDLE)
    one_hop, plain, hops = (
        smart.run(mesh, traffic, SHORT) for mesh in (replace(local, hpc_max=1), base, local)
    )
    assert one_hop.latency.mean == plain.latency.mean
    assert hops.latency.mean < 0.9 * plain.latency.mean


def test_stages_that_share_vcs_lose_most_of_the_gain() -> None:
    """Private trees gain 1.63 over the baseline, and 1.19 with 6 VCs in total."""
    by_name = {one.name: one for one in sensitivity.VARIATIONS}
    shared = by_name["6 VCs in total, divided among stages"]
    base, private = (
        sensitivity._search(system.ALL, sensitivity.mesh_of(shared, name)).by_throughput
        for name in (system.BASELINE, system.PRIVATE)
    )
    assert private / base == pytest.approx(1.19, abs=0.01)
    assert 64 * private == pytest.approx(0.707, abs=0.001)


@pytest.mark.usefixtures("short")
def test_oldest_flits_first_give_the_published_latency_before_saturation() -> None:
    of = {reading: tables.to_one(reading) for reading in ("footnote 13", "oldest")}
    what = f"baseline: latency at {system.MIDDLE:g} flows per cycle, cycles"
    turn, oldest = (next(row for row in rows if row.quantity == what) for rows in of.values())
    assert oldest.ours == pytest.approx(oldest.published, rel=0.15) != turn.ours
    assert turn.ours > 1.3 * turn.published


def test_rows_that_repeat_a_published_value_do_not_count_twice() -> None:
    first = Row(row="A", quantity="x", published=10, ours=10)
    again, other = replace(first, variant=True), replace(first, ours=20)
    assert score([first, again, other]) == (1, 2)


def test_corner_broadcasts_match_published_values() -> None:
    """Each within 8 %; the published throughputs and ours follow from the slots alone."""
    for row in tables.corners():
        assert row.ours == pytest.approx(row.published, rel=0.08), row


def test_slot_throughput_follows_from_its_cycles() -> None:
    for interval in system.INTERVALS:
        found = system.throughput(system.CORNERS, system.COMPLETE.format(interval))
        assert found == pytest.approx(min(4, interval - 2) / interval, rel=0.06), interval


@pytest.mark.usefixtures("short")
def test_figure_7_is_drawn(tmp_path: Path) -> None:
    made = find_paper("smart").figures[7].make(tmp_path)
    assert {path.name for path in made.figures} == {
        "figure_7a.svg", "figure_7b.svg", "figure_7c.svg"
    }  # fmt: skip
    assert set(made.frame["design"]) == {*system.SHOWN[system.TO_ONE]}
    complete = made.frame.filter(made.frame["design"] == system.IN_COMPLETE)
    assert complete["arrivals"][0] == 1


@pytest.mark.usefixtures("short")
def test_every_row_states_its_confidence() -> None:
    rows = [*tables.to_one(), *tables.abstract(), *tables.all_nodes()]
    assert {row.confidence for row in rows} == {"stated", "derived", "vague"}
    assert {row.row for row in rows} == {"B5", "B6", "B7", "C1", "C2", "C3", "C4", "E"}
