"""Allocations of jobs: hosts by rank, and the groups of the network that a job spans."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from tutti.base.errors import ConfigError
from tutti.formats.measurements.allocations import (
    group_of,
    read_allocations,
    spanned,
    with_groups,
    without_groups,
)

if TYPE_CHECKING:
    from pathlib import Path

HEADING = "system,timestamp,file,rank,host,position\n"


def test_groups_follow_from_host_names() -> None:
    assert [group_of(one) for one in ("lrdn0180", "lrdn0181")] == ["cell 0", "cell 1"]
    assert group_of("nid005193", "x1101c4s2b1n0") == "cabinet 1101"
    assert group_of("as07r1b32") == "island 07"
    assert group_of("nid005193") is None
    assert group_of("gs05r2b08") is None


def test_runs_of_a_job_are_separate(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(
        HEADING
        + "m,j,alloc_2.csv,1,lrdn0200,\nm,j,alloc_2.csv,0,lrdn0001,\n"
        + "".join(f"m,j,alloc_4.csv,{rank},lrdn0{rank // 2}01,\n" for rank in range(4))
        + "m,k,alloc.csv,0,unknown,\n"
    )
    found = read_allocations(path)
    assert found["group"].to_list()[:2] == ["cell 0", "cell 1"]
    assert spanned(found).rows() == [
        ("m", "j", 2, 2, 2, 1),
        ("m", "j", 4, 2, 1, 4),
        ("m", "k", 1, 1, None, None),
    ]


def test_measurements_get_the_groups_of_their_job(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    hosts = ("lrdn0300", "lrdn0001", "lrdn0301")
    path.write_text(HEADING + "".join(f"m,j,a,{at},{one},\n" for at, one in enumerate(hosts)))
    rows = pl.DataFrame({"system": ["m"] * 3, "job": ["j/0", "j", "k"], "ranks": [3, 4, 3]})
    found = with_groups(rows, read_allocations(path))
    assert found["rank_groups"].to_list() == [bytes([1, 0, 1]), None, None]


def test_a_file_may_state_groups(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("system,timestamp,rank,host,group\nm,j,0,lrdn0001,b\nm,j,1,node7,a\nm,k,0,n,\n")
    known = read_allocations(path)
    assert known["group"].to_list() == ["b", "a", None]
    rows = pl.DataFrame({"system": ["m", "m"], "job": ["j/0", "k"], "ranks": [2, 1]})
    assert with_groups(rows, known)["rank_groups"].to_list() == [bytes([1, 0]), None]
    assert "a column `group` states it" in without_groups(rows[1:], known)
    other = rows.with_columns(pl.lit("other").alias("system"))
    assert "no run of the file has the system" in without_groups(other, known)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("system,rank\nm,0\n", "lacks the columns timestamp, host"),
        (HEADING + "m,j,a,x,lrdn0001,\n", "line 2.*rank is not a count"),
        (HEADING + "m,j,a,0,lrdn0001,\nm,j,a,0,lrdn0002,\n", "line 2.*repeated"),
        (HEADING + "m,j,a,0,lrdn0001,\nm,j,a,1,lrd", "line 3.*truncated"),
    ],
)
def test_damaged_files_are_errors(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(ConfigError, match=problem):
        read_allocations(path)
