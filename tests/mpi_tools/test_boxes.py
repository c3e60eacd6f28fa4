from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from tutti.mpi.bench import BLOCKS
from tutti.mpi.view.bench import plot_blocks

if TYPE_CHECKING:
    from pathlib import Path


def blocks(schedules: list[str], sizes: list[int], *, emulated: bool) -> pl.DataFrame:
    row: dict[str, Any] = dict.fromkeys(BLOCKS) | {
        "collective": "all_reduce", "implementation": "schedule", "ranks": 4, "emulated": emulated,
        "model": "the model", "model_ps": 10**9,
    }  # fmt: skip
    rows = [
        row | {"schedule": name, "size_bytes": size, "block": b, "time_ps": (b + place + 1) * 10**9}
        for size in sizes
        for place, name in enumerate(schedules)
        for b in range(10)
    ]
    return pl.DataFrame(rows, schema=BLOCKS, orient="row")


@pytest.mark.parametrize("sizes", [[8], [8, 64]])
def test_every_schedule_is_named_and_drawings_are_deterministic(
    sizes: list[int], tmp_path: Path
) -> None:
    frame = blocks(["ring", "recursive_multiplying:a4"], sizes, emulated=False)
    drawn = plot_blocks(tmp_path / "a.svg", frame)
    assert plot_blocks(tmp_path / "b.svg", frame).read_bytes() == drawn.read_bytes()
    output = drawn.read_text(encoding="utf-8")
    assert ">ring<" in output
    assert ">a4<" in output
    assert "emulated" not in output


def test_title_states_emulated_distance(tmp_path: Path) -> None:
    drawn = plot_blocks(tmp_path / "a.svg", blocks(["ring"], [8], emulated=True))
    assert "distance is emulated: the model" in drawn.read_text(encoding="utf-8")


def test_of_many_schedules_the_fastest_are_drawn(tmp_path: Path) -> None:
    names = [f"recursive_multiplying:a{width}" for width in range(2, 22)]
    output = plot_blocks(tmp_path / "a.svg", blocks(names, [8], emulated=False)).read_text("utf-8")
    assert ">a2<" in output
    assert ">a21<" not in output
