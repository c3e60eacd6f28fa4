"""The exhibits of SMART-FanOut and SMART-FanIn: chosen parameters, and results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tutti.noc import smart
from tutti.papers import find_paper
from tutti.papers.smart import sensitivity, synthetic, system, tables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
"""Thousands of runs are slow on a busy machine."""


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Shortens the runs."""
    monkeypatch.setattr(
        system, "PLAN", smart.ReplicationPlan(warmup=200, measure=600, drain=600, seeds=2)
    )
    monkeypatch.setattr(system, "POINTS", (system.LOW, 0.5, 1.0))
    system.curve.cache_clear()
    yield
    system.curve.cache_clear()


def test_buffers_minimise_the_error_of_the_baseline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sensitivity, "BUFFERS", ((4, 4), (5, 5), (6, 8)))
    first = sensitivity.calibration().row(0, named=True)
    assert (first["vcs"], first["credit_delay"]) == (system.VCS, system.CREDIT_DELAY)
    assert first["max_error"] < 0.08


def test_corner_broadcasts_match_published_values() -> None:
    """Each within 8 %; the published throughputs and ours follow from the slots alone."""
    for row in tables.corners():
        assert row.ours == pytest.approx(row.published, rel=0.08), row


def test_slot_throughput_follows_from_its_cycles() -> None:
    for interval in system.INTERVALS:
        found = system.throughput(system.CORNERS, system.COMPLETE.format(interval))
        assert found == pytest.approx(min(4, interval - 2) / interval, rel=0.05), interval


@pytest.mark.usefixtures("short")
def test_figure_7_is_drawn(tmp_path: Path) -> None:
    made = find_paper("smart").figures[7].make(tmp_path)
    assert {path.name for path in made.figures} == {
        "figure_7a.svg", "figure_7b.svg", "figure_7c.svg"
    }  # fmt: skip
    assert set(made.frame["design"]) == {*synthetic.SHOWN[system.TO_ONE]}
    complete = made.frame.filter(made.frame["design"] == system.IN_COMPLETE)
    assert complete["arrivals"][0] == 1


@pytest.mark.usefixtures("short")
def test_every_row_states_its_confidence() -> None:
    rows = [*tables.to_one(), *tables.abstract(), *tables.all_nodes()]
    assert {row.confidence for row in rows} == {"stated", "derived", "vague"}
    assert {row.row for row in rows} == {"B5", "B6", "B7", "C1", "C2", "C3", "C4", "E"}
