"""Compares cycles of systolic arrays with SCALE-Sim, layer by layer."""

from __future__ import annotations

import against_scalesim
import pytest


def test_the_table_is_complete() -> None:
    assert against_scalesim.topology().name == "resnet50"
    assert len(against_scalesim.topology().layers) == 54
    assert len(against_scalesim.theirs()) == 6


@pytest.mark.parametrize("array", list(against_scalesim.theirs()))
def test_cycles_are_equal(array: str) -> None:
    """SCALE-Sim reports the number of the last cycle, counted from 0."""
    last = {layer: cycles - 1 for layer, cycles in against_scalesim.ours(array).items()}
    assert last == against_scalesim.theirs()[array]
