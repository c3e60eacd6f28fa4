"""Files of PyTorch profiles (Kineto): which belong to a job, and errors in them."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from profiles import RankProfile, overlapped, written
from tutti.base.errors import ConfigError, TuttiError
from tutti.formats.formats import Options, recognised
from tutti.formats.kineto.trace import read_trace
from tutti.workloads.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tutti.workloads.operations import Trace


def loaded(path: Path) -> Trace:
    trace, _ = read_trace(path, Options())
    return trace


@pytest.mark.parametrize("name", ["rank{}.json", "rank-{}.pt.trace.json.gz", "r{}_x.json"])
def test_files_of_all_ranks_are_found(tmp_path: Path, name: str) -> None:
    """By names that differ in the rank, otherwise all profiles of the folder."""
    path = written(tmp_path, overlapped, name=name)
    (tmp_path / "other.json").write_text('{"nodes": []}')
    for given in (path, tmp_path, tmp_path / "r*"):
        assert len(loaded(given).ranks) == 2
    assert recognised(path, path.read_bytes()[:4096], option="--from").name == "kineto"


def test_ranks_without_a_file_can_repeat_another(tmp_path: Path) -> None:
    written(tmp_path, overlapped)
    (tmp_path / "rank0.json").unlink()
    with pytest.raises(TraceError, match="2 ranks, and rank 0 has no file") as raised:
        loaded(tmp_path)
    assert "--repair" in str(raised.value)
    trace, lines = read_trace(tmp_path, Options(repair=True))
    assert "inferred: 1 ranks without a file repeat rank 1" in lines
    assert trace.ranks[0] == trace.ranks[1]


def changed(folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """Returns a profile of rank 0 with a change of its tables, next to one of rank 1."""
    written(folder, overlapped)
    (folder / "rank0.json").unlink()
    profile = RankProfile(0, 2)
    overlapped(profile)
    tables = profile.tables()
    change(tables)
    path = folder / "p.json"
    path.write_text(json.dumps(tables))
    return path


ERRORS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "no events": (lambda each: each.pop("traceEvents"), "no member `traceEvents`"),
    "other": (
        lambda each: each.update(traceEvents=[{"ph": "X", "cat": "v8", "ts": 1, "dur": 2}]),
        r"its events \(v8\) are not of the PyTorch profiler",
    ),
    "no kernels": (
        lambda each: each.update(traceEvents=[{"ph": "X", "cat": "cpu_op", "ts": 1, "dur": 2}]),
        "the profile has no GPU activity",
    ),
    "one of four": (
        lambda each: each["distributedInfo"].update(world_size=4),
        "files state 2, 4 ranks",
    ),
    "time": (
        lambda each: each["traceEvents"][1].update(ts="soon"),
        "event 2: `ts` is 'soon': expected a number of microseconds",
    ),
    "endless": (lambda each: each["traceEvents"][1].update(dur=1e300), "`dur` is 1e"),
    "dtype": (
        lambda each: each["traceEvents"][6]["args"].update(dtype="Real"),
        "unknown dtype 'Real'",
    ),
    "collective": (
        lambda each: each["traceEvents"][6]["args"].update({"Collective name": "gossip"}),
        "unknown collective 'gossip'",
    ),
    "group": (
        lambda each: each["traceEvents"][6]["args"].update({"Group size": 3}),
        "has 2 ranks and a `Group size` of 3",
    ),
    "rank": (
        lambda each: each["distributedInfo"].update(rank=7),
        r"process group .0. is \[0, 1\]: expected ranks with rank 7",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_name_file_and_event(tmp_path: Path, name: str) -> None:
    change, expected = ERRORS[name]
    path = changed(tmp_path, change)
    with pytest.raises(TuttiError, match=expected) as raised:
        loaded(path)
    assert str(path) in str(raised.value)


def test_one_rank_of_four_is_an_error(tmp_path: Path) -> None:
    profile = RankProfile(2, 4)
    profile.kernel("A", 7, (2, 5), launch=0)
    with pytest.raises(TraceError, match="the job has 4 ranks, and ranks 0, 1, 3 have no file"):
        loaded(profile.write(tmp_path))


def test_groups_beyond_the_job_are_errors(tmp_path: Path) -> None:
    """A file that states one rank, and collectives of two."""
    path = written(tmp_path, overlapped, ranks=1)
    with pytest.raises(TraceError, match="has rank 1: expected ranks of the job, 0 to 0"):
        loaded(path)


def test_truncated_files_are_errors(tmp_path: Path) -> None:
    path = written(tmp_path, overlapped, ranks=1)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(ConfigError, match="the JSON ends in element 7 of `traceEvents`"):
        loaded(path)
    packed = tmp_path / "q.json.gz"
    packed.write_bytes(gzip.compress(data)[:-20])
    with pytest.raises(ConfigError, match=r"q\.json\.gz: .*cannot be read"):
        loaded(packed)
    path.write_text("[]")
    with pytest.raises(ConfigError, match="is not a JSON object"):
        loaded(path)


def test_two_files_of_a_rank_are_errors(tmp_path: Path) -> None:
    written(tmp_path, overlapped)
    (tmp_path / "again.json").write_bytes((tmp_path / "rank0.json").read_bytes())
    with pytest.raises(TraceError, match="are of rank 0: expected one file per rank"):
        loaded(tmp_path)
    assert len(loaded(tmp_path / "rank1.json").ranks) == 2
