"""The model of NCCL's rings and trees, on synthetic machines."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl
import pytest
from columns import read_columns
from predictors.nccl import NcclFabric, cross_validate, fit, interpolated

from tutti.base.errors import ConfigError
from tutti.measured.errors import CalibrationError

if TYPE_CHECKING:
    from pathlib import Path

FABRIC = NcclFabric(gpus_per_node=4, node_bytes_per_us=1e5)
SIZES = [8**power for power in range(3, 10)]


def times(nodes: int, size: int) -> dict[str, float]:
    """A machine with a call of 10 us, steps of 1 us and hops of 2 us at 90 GB/s."""
    ranks = 4 * nodes
    hop = 2 + min(size / 4, 4e6) / 90e3
    return {
        "ring": 10 + 2 * (ranks - 1) * (1 + size / ranks / 90e3),
        "tree": 10 + 2 * math.log2(nodes) * hop + 3 + size / 45e3,
    }


def machine(*counts: int) -> pl.DataFrame:
    rows = [
        {"nodes": nodes, "bytes": size, "algorithm": name, "median_us": time}
        for nodes in counts
        for size in SIZES
        for name, time in times(nodes, size).items()
    ]
    return pl.DataFrame(rows)


def test_larger_machine_is_inside_the_interval() -> None:
    found = fit(machine(4, 8), FABRIC).predict(machine(16, 32, 64))
    inside = found.select(pl.col("median_us").is_between(pl.col("low_us"), pl.col("high_us")).all())
    assert inside.item()
    factor = (found["predicted_us"] / found["median_us"]).log().abs().exp()
    assert factor.max() < 1.25  # type: ignore[operator]
    assert factor.median() < 1.05  # type: ignore[operator]


def test_fit_does_not_depend_on_the_order_of_rows() -> None:
    rows = machine(4, 8)
    shuffled = rows.sample(fraction=1.0, shuffle=True, seed=1)
    requested = machine(16)
    assert fit(rows, FABRIC).predict(requested).equals(fit(shuffled, FABRIC).predict(requested))


def test_an_outlier_does_not_move_its_neighbours() -> None:
    rows = machine(4, 8)
    wrong = (pl.col("bytes") == SIZES[3]) & (pl.col("nodes") == 8) & (pl.col("algorithm") == "tree")
    broken = rows.with_columns(pl.col("median_us") * pl.when(wrong).then(20.0).otherwise(1.0))
    requested = machine(8).filter(pl.col("algorithm") == "ring")
    clean, moved = (fit(one, FABRIC).predict(requested)["predicted_us"] for one in (rows, broken))
    assert (moved / clean).log().abs().max() < 0.05  # type: ignore[operator]


def test_no_prediction_exceeds_the_interfaces() -> None:
    fast = machine(4, 8).with_columns(pl.col("median_us") / 50)
    found = fit(fast, FABRIC).predict(machine(16))
    least = 2 * (1 - 1 / 16) * found["bytes"] / FABRIC.node_bytes_per_us
    assert (found["predicted_us"] >= least * (1 - 1e-12)).all()
    assert (found["low_us"] >= least * (1 - 1e-12)).all()


def test_cross_validation_predicts_all_but_the_smallest_node_count() -> None:
    found = cross_validate(machine(4, 8, 16), FABRIC)
    assert found["nodes"].unique().sort().to_list() == [8, 16]
    with pytest.raises(CalibrationError, match="one node count"):
        cross_validate(machine(4), FABRIC)


def test_unknown_algorithm_is_named() -> None:
    rows = machine(4).with_columns(algorithm=pl.lit("nvls"))
    with pytest.raises(CalibrationError, match="nvls; expected ring or tree"):
        fit(rows, FABRIC)
    with pytest.raises(CalibrationError, match="no measurements"):
        fit(rows.clear(), FABRIC)


def test_every_second_size_is_interpolated() -> None:
    rows = pl.DataFrame({"bytes": [1, 2, 4, 8, 16], "us": [1.0, 2.0, 4.0, 8.0, 16.0]})
    found = interpolated(rows, "us")
    assert found["bytes"].to_list() == [2, 8]
    assert found["predicted_us"].to_list() == pytest.approx([2.0, 8.0])


COLUMNS = {"nodes": pl.Int64, "bytes": pl.Int64, "algorithm": pl.String, "median_us": pl.Float64}
HEAD = "nodes,bytes,algorithm,median_us\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nodes,bytes,algorithm\n1,2,ring\n", "lacks the column median_us"),
        (HEAD, "has no rows"),
        (HEAD + "4,2,ring,1\n4,2,ring,-1\n", "line 3: median_us is not valid"),
        (HEAD + "4,2,ring,nan\n", "line 2: median_us is not valid"),
        (HEAD + "4,x,ring,1\n", "line 2: bytes is not valid"),
        (HEAD + "4,2,,1\n", "line 2: algorithm is not valid"),
        (HEAD + "4,2,ring,1", "no line ending"),
        (HEAD + "4,2,ring,1,5\n", "more cells"),
    ],
)
def test_damaged_tables_are_refused(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "nccl.csv"
    path.write_text(text)
    with pytest.raises(ConfigError, match=expected):
        read_columns(path, COLUMNS)


def test_optional_cells_may_be_empty(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("question,bytes\n0,\n1,8\n")
    kinds = {"question": pl.Int64, "bytes": pl.Int64}
    assert read_columns(path, kinds, optional=("bytes",))["bytes"].to_list() == [None, 8]
