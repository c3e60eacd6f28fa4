"""Frames: written, read back, and their provenance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tutti import errors
from tutti.collectives import frames as results

if TYPE_CHECKING:
    from pathlib import Path


def frame() -> pl.DataFrame:
    return results.measurement_frame([{"collective": "all_reduce", "ranks": 4, "time_ps": 5}])


def test_frames_are_written_by_suffix(tmp_path: Path) -> None:
    parquet = results.write(frame(), tmp_path / "new" / "a.parquet")
    assert_frame_equal(pl.read_parquet(parquet), frame())
    text = results.write(frame(), tmp_path / "a.csv").read_text()
    assert text.splitlines()[0].startswith("collective,algorithm,schedule,ranks,size_bytes")


def test_unwritable_results_are_refused(tmp_path: Path) -> None:
    with pytest.raises(errors.ConfigError, match=r"expected \.parquet or \.csv"):
        results.write(frame(), tmp_path / "a.xlsx")
    (tmp_path / "file").touch()
    with pytest.raises(errors.ConfigError, match="cannot be written"):
        results.write(frame(), tmp_path / "file" / "a.csv")


def test_equal_configurations_have_equal_hashes() -> None:
    assert results.config_hash({"a": 1, "b": [2]}) == results.config_hash({"b": [2], "a": 1})
    assert results.config_hash({"a": 1}) != results.config_hash({"a": 2})
    assert len(results.config_hash({})) == 16


def test_the_commit_names_the_working_tree() -> None:
    commit = results.commit()
    assert commit is None or len(commit.removesuffix("-dirty")) >= 12
