"""Compares collectives with ASTRA-sim, from its files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import against_astrasim
import pytest
from against_astrasim import Row

from tutti.interop import astrasim, chakra

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("row", against_astrasim.rows(), ids=str)
def test_times_are_within_the_tolerance(row: Row) -> None:
    assert abs(row.off) <= against_astrasim.about()["tolerance"]["time"]


@pytest.mark.parametrize("row", against_astrasim.rows(), ids=str)
def test_truncation_explains_the_difference(row: Row) -> None:
    assert row.to_the_nanosecond == row.ns


def test_traces_are_read_from_files(tmp_path: Path) -> None:
    """Files as its generator writes them: one per NPU."""
    for npu in range(8):
        chakra.write(tmp_path / f"all_reduce.{npu}.et", against_astrasim.trace(1 << 20))
    folder = against_astrasim.FOLDER
    given = (
        astrasim.load_network(folder / "Ring_8.yml"),
        astrasim.load_system(folder / "Ring_4chunks.json"),
    )
    prefix = tmp_path / "all_reduce"
    run = astrasim.simulate(*given, astrasim.load_programs(prefix, *given))
    assert run.npus == 8
    assert run.total.ps == against_astrasim.predicted("Ring", 8, 1 << 20, "Ring_4chunks", "aware")
