"""Compares collectives with ASTRA-sim, from its files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import against_astrasim
import pytest
from against_astrasim import Row

from tutti.formats.astrasim.networks import load_network
from tutti.formats.astrasim.reader import load_workload, simulate
from tutti.formats.astrasim.systems import load_system
from tutti.formats.chakra import reader as chakra

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("row", against_astrasim.rows(), ids=str)
def test_times_are_within_the_tolerance(row: Row) -> None:
    assert abs(row.off) <= against_astrasim.about()["tolerance"]["time"]


@pytest.mark.parametrize("row", against_astrasim.rows(), ids=str)
def test_truncation_explains_the_difference(row: Row) -> None:
    assert row.to_the_nanosecond in (row.ns, None)


@pytest.mark.parametrize(("npus", "us"), [(4, 41.6), (8, 125.5), (16, 391.2)])
def test_its_microbenchmark_of_an_all_to_all(npus: int, us: float) -> None:
    """1 MiB in four chunks on one ring; tutti does not truncate times to nanoseconds."""
    row = against_astrasim.row(f"all_to_all-Ring-{npus}-{1 << 20}-Ring_4chunks-aware")
    assert round(row.ns / 1000, 1) == us
    assert abs(row.predicted_ps / 1000 - row.ns) < 45


def test_traces_are_read_from_files(tmp_path: Path) -> None:
    """Files as its generator writes them: one per NPU."""
    row = against_astrasim.row(f"all_reduce-Ring-8-{1 << 20}-Ring_4chunks-aware")
    trace = against_astrasim.trace(row.collective, row.size)
    for npu in range(8):
        chakra.write(tmp_path / f"all_reduce.{npu}.et", trace)
    folder = against_astrasim.FOLDER
    given = (
        load_network(folder / "Ring_8.yml"),
        load_system(folder / "Ring_4chunks.json"),
    )
    prefix = tmp_path / "all_reduce"
    run = simulate(*given, load_workload(prefix, *given).programs)
    assert run.npus == 8
    assert run.total.ps == row.predicted_ps
