"""Schedules of TACOS (CSV): verified, and compared with what the file states twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tutti
from damaged import refused
from tutti.base.errors import ConfigError
from tutti.formats.formats import Options, head, recognised
from tutti.formats.tacos import read_schedule

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.schedules.ir import Schedule

GATHER = """\
NPUs Count,3
Links Count,3
Chunks Count,6
Chunk Size,1.04858e+06,B
SrcID,DestID,Latency (ns),Bandwidth (GB/s),Chunks
0,1,500,50,0,3,2,5
1,2,500,50,1,4,0,3
2,0,500,50,2,5,1,4
"""
"""A ring of three NPUs with two chunks each: chunk c starts at NPU c mod 3."""

EXCHANGE = """\
NPUs Count,3
Links Count,3
Chunks Count,9
Chunk Size,1000
Collective Time,60.0,ns
Synthesis Time,0.1,s
SrcID,DestID,Latency (ns),Bandwidth (GB/s),Chunks (ID:ns:ns)
0,1,5,1,1:0:20,2:20:40,7:40:60
1,2,5,1,5:0:20,3:20:40,2:40:60
2,0,5,1,6:0:20,7:20:40,3:40:60
"""
"""An all_to_all of bean-tacos on the same ring: chunk 3 * source + end, half of them relayed."""

BROADCAST = """\
NPUs Count,3
Links Count,2
Chunks Count,2
Chunk Size,8,B
SrcID,DestID,Latency (ns),Bandwidth (GB/s),Chunks
2,0,500,50,0,1
0,1,500,50,0,1
"""


def read(tmp_path: Path, text: str) -> tuple[Schedule, tuple[str, ...]]:
    path = tmp_path / "t.csv"
    path.write_text(text)
    return read_schedule(path, Options())


@pytest.mark.parametrize(
    ("text", "collective", "size"),
    [
        (GATHER, "all_gather", "6291480"),
        (EXCHANGE, "all_to_all", "3000"),
        (BROADCAST, "broadcast", "16"),
    ],
)
def test_the_collective_follows_from_the_chunks(
    tmp_path: Path, text: str, collective: str, size: str
) -> None:
    schedule, losses = read(tmp_path, text)
    schedule.verify()
    assert (schedule.collective, schedule.ranks) == (collective, 3)
    assert any(f"--size {size} is" in loss for loss in losses)
    assert losses[-1] == f"inferred: collective {collective}, from the NPUs that get each chunk"


def test_the_messages_are_those_of_the_links(tmp_path: Path) -> None:
    """Every link carries four of the six chunks: two per step of the ring of three NPUs."""
    schedule, _ = read(tmp_path, GATHER)
    ring = tutti.schedule("ring", collective="all_gather", ranks=3)
    counts = [
        {word: each.to_text().count(f"{word}") for word in ("\nstep", " send ")}
        for each in (schedule, ring)
    ]
    assert counts == [{"\nstep": 6, " send ": 12}, {"\nstep": 6, " send ": 6}]


@pytest.mark.parametrize(
    ("text", "old", "new", "problem"),
    [
        (GATHER, "Links Count,3", "Links Count,4", "Links Count is 4, but 3 links follow"),
        (GATHER, "0,3,2,5", "0,3,2", "all_gather: NPU 1 never receives chunk 5"),
        (GATHER, "0,3,2,5", "0,3,2,5,1", "NPU 1 receives chunk 1, which it has"),
        (GATHER, "50,2,5,1,4", "50,2,1,5,6", "line 8: there is no chunk"),
        (GATHER, "1,2,500", "1,3,500", "line 7: the link joins"),
        (GATHER, "1,2,500", "0,1,500", "appears twice"),
        (GATHER, "Chunks Count,6\n", "", "lacks `Chunks Count`"),
        (GATHER, "SrcID", "Src", "unknown line"),
        (GATHER, "0,3,2,5", "2,5,0,3", "deadlock"),
        (
            EXCHANGE,
            "Time,60.0",
            "Time,61.0",
            "Collective Time is 61 ns, but the last transfer",
        ),
        (EXCHANGE, "2:20:40,7", "2:10:40,7", "chunk 2 is sent from 10 to 40"),
        (EXCHANGE, "7:20:40,3", "4:20:40,3", "NPU 0 sends chunk 7, which it never has"),
        (BROADCAST, "2,0,500,50,0,1", "2,0,500,50,0", "perform no collective"),
    ],
)
def test_contradictions_are_refused(
    tmp_path: Path, text: str, old: str, new: str, problem: str
) -> None:
    changed = text.replace(old, new)
    if problem == "deadlock":  # every link sends first what only arrives later
        for before, after in (("1,4,0,3", "0,3,1,4"), ("2,5,1,4", "1,4,2,5")):
            changed = changed.replace(before, after)
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, changed)
    assert problem in str(caught.value)


def test_the_format_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(GATHER)
    assert recognised(path, head(path), option="--from").name == "tacos-csv"


@pytest.mark.parametrize("text", [GATHER, EXCHANGE])
def test_damaged_files_are_refused(tmp_path: Path, text: str) -> None:
    def again(path: Path) -> object:
        return read_schedule(path, Options())

    assert refused(again, text.encode(), tmp_path / "t.csv", count=150) > 75
