"""Traces of schedules against LogGOPSim's finishing times, which must be identical."""

from __future__ import annotations

import against_loggopsim as loggopsim
import pytest


@pytest.mark.parametrize("row", loggopsim.stored(), ids=str)
def test_traces_finish_when_loggopsim_does(row: loggopsim.Row) -> None:
    assert loggopsim.ours(row) == row.finish_ns * 1000


def test_stored_times_are_those_of_loggopsim() -> None:
    folder = loggopsim.programs()
    if folder is None:
        pytest.skip(f"{loggopsim.VARIABLE} names no folder with LogGOPSim and txt2bin")
    for row in loggopsim.stored():
        assert loggopsim.measured(row.trace(), folder) == row.finish_ns, row
