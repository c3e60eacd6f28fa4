"""The command line, Python and sweeps: same candidates, verified by one rule, same numbers."""

from __future__ import annotations

import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import tutti
from called import call
from tutti.base.errors import ConfigError
from tutti.collectives.frames import MEASUREMENTS
from tutti.collectives.phases import simulate_phases
from tutti.platforms import platform
from tutti.schedules import proving
from tutti.schedules.errors import VerificationError
from tutti.schedules.ir import Schedule, Verification
from tutti.schedules.text import renamed

if TYPE_CHECKING:
    from pathlib import Path

SEED = 1
"""The seed of files that name none; that of `tutti.compare` is 0."""

SAME = [name for name in MEASUREMENTS if name not in {"config_hash", "commit"}]

WRONG = """tutti schedule 1
name wrong
collective all_reduce
ranks 4
chunks 1
slots 2
result data

rank 0
step
  send data[0] to 1
rank 1
step
  recv s1[0] from 0
  reduce data[0] = data + s1
"""

REQUESTS: dict[str, dict[str, Any]] = {
    "all_reduce": {
        "platform": "cray_xc30",
        "collective": "all_reduce",
        "algorithms": "all",
        "ranks": [5, 12],
        "sizes": ["8 B", "1 KiB"],
    },
    "unequal parts": {
        "platform": "loggp_cluster",
        "collective": "all_gather",
        "algorithms": "all",
        "ranks": [5],
        "sizes": ["40 B", "1 KiB"],
        "repetitions": 2,
        "seed": 3,
    },
    "some ranks only": {
        "platform": "cray_xc30",
        "collective": "broadcast",
        "algorithms": ["binomial", "knomial:3", "scatter_all_gather"],
        "ranks": [4, 6],
        "root": 2,
        "sizes": ["48 B"],
    },
    "named for some ranks": {
        "platform": "cray_xc30",
        "collective": "all_reduce",
        "algorithms": ["ring", "recursive_multiplying:a4"],
        "ranks": [4, 8],
        "sizes": ["8 B"],
    },
}


def toml(request: dict[str, Any]) -> str:
    return "".join(f"{key} = {value!r}\n".replace("'", '"') for key, value in request.items())


def by_command(
    request: dict[str, Any], here: Path, *options: str
) -> tuple[pl.DataFrame, list[str]]:
    """Returns the measurements of `tutti compare`, and its remarks."""
    (here / "e.toml").write_text(toml(request))
    done = call("compare", "e.toml", "--no-report", "--out", "out", *options, cwd=here)
    assert done.returncode == 0, done.stderr
    return pl.read_parquet(here / "out" / "results.parquet"), remarks(done.stderr)


def remarks(stderr: str) -> list[str]:
    """The lines on verification and omitted schedules, with wrapped lines joined."""
    found: list[str] = []
    first = ("left out: ", "not verified, ", "no schedule is verified", "and ")
    for line in stderr.splitlines():
        if line.startswith(first):
            found.append(line)
        elif found and not line.endswith(("simulated in", "measurements")):
            found[-1] += f" {line}"
    return [" ".join(line.split()) for line in found]


def by_python(request: dict[str, Any], **options: Any) -> tuple[pl.DataFrame, list[str]]:
    requested = {"seed": SEED, **request}
    machine, algorithms = platform(requested.pop("platform")), requested.pop("algorithms")
    lines: list[str] = []
    frame = tutti.compare(
        machine,
        algorithms=None if algorithms == "all" else algorithms,
        remark=lines.append,
        **requested,
        **options,
    )
    return frame, lines


def by_sweep(request: dict[str, Any], **options: Any) -> pl.DataFrame:
    ranks = request["ranks"]
    tables = {"experiment": {**request, "ranks": ranks[:1]}, "sweep": {"grid": {"ranks": ranks}}}
    with ThreadPoolExecutor(2) as threads:
        return tutti.sweep(tables, executor=threads, **options)


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("verify", [True, False])
def test_the_same_request_gives_the_same_rows_everywhere(
    name: str, tmp_path: Path, *, verify: bool
) -> None:
    request = REQUESTS[name]
    command, received = by_command(request, tmp_path, *(() if verify else ("--no-verify",)))
    frame, lines = by_python(request, verify=verify)
    assert_frame_equal(command.select(SAME), frame.select(SAME))
    assert received == lines
    assert lines or name == "some ranks only"
    assert set(frame["verified"]) == {verify}
    omitted: list[str] = []
    swept = by_sweep(request, verify=verify, remark=omitted.append)
    points = re.compile(r", at 1 of [0-9]+ points")
    assert sorted(points.sub("", line) for line in omitted) == sorted(lines)
    assert_frame_equal(swept.select(SAME), frame.select(SAME))


def test_too_large_schedules_are_reported_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A ring of 12 ranks sends 264 messages, one of 5 ranks 40.
    monkeypatch.setattr(proving, "MOST_VERIFIED", 100)
    request = {**REQUESTS["all_reduce"], "algorithms": ["ring", "recursive_doubling"]}
    command, received = by_command(request, tmp_path)
    frame, lines = by_python(request)
    assert_frame_equal(command.select(SAME), frame.select(SAME))
    assert received == lines == ["not verified, as it is too large: ring, 12 ranks"]
    assert frame.filter(~pl.col("verified"))["schedule"].unique().to_list() == ["ring"]
    assert_frame_equal(by_sweep(request).select(SAME), frame.select(SAME))
    run = tutti.simulate(tutti.schedule("ring", ranks=12), platform("cray_xc30"), size="48 B")
    assert run.not_verified == proving.TOO_LARGE
    assert "not verified" in repr(run)


def test_a_wrong_schedule_is_timed_only_on_request(tmp_path: Path) -> None:
    (tmp_path / "wrong.schedule").write_text(WRONG)
    request = {**REQUESTS["all_reduce"], "algorithms": [str(tmp_path / "wrong.schedule")]}
    request |= {"ranks": [4]}
    (tmp_path / "e.toml").write_text(toml(request))
    one = ("--size", "8", "--out", "out")
    for verb, options in (("compare", ("--no-report",)), ("run", one)):
        done = call(verb, "e.toml", *options, cwd=tmp_path)
        assert done.returncode == 3, done.stderr
        assert "of the result lacks" in " ".join(done.stderr.split())
        done = call(verb, "e.toml", *options, "--no-verify", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert proving.SKIPPED in " ".join((done.stdout + done.stderr).split())
    with pytest.raises(
        VerificationError, match=r"wrong.schedule on 4 ranks: rank .: chunk . of the result lacks"
    ):
        by_python(request)
    with pytest.raises(VerificationError, match="of the result lacks"):
        by_sweep(request)
    assert by_python(request, verify=False)[0]["verified"].to_list() == [False, False]
    assert by_sweep(request, verify=False)["verified"].to_list() == [False, False]
    wrong = tutti.Schedule.from_text(WRONG)
    machine = platform("cray_xc30")
    with pytest.raises(VerificationError, match="of the result lacks"):
        tutti.simulate(wrong, machine, size="8 B")
    assert tutti.simulate(wrong, machine, size="8 B", verify=False).not_verified == proving.SKIPPED
    with pytest.raises(VerificationError, match="of the result lacks"):
        tutti.simulate(wrong.repeated(2), machine, size="8 B")


def test_unverified_sweep_is_verified_before_its_rows_are_reused(
    tmp_path: Path,
) -> None:
    (tmp_path / "wrong.schedule").write_text(WRONG)
    request = {**REQUESTS["all_reduce"], "algorithms": [str(tmp_path / "wrong.schedule")]}
    request |= {"ranks": [4]}
    cache = tmp_path / "cache"
    by_sweep(request, verify=False, cache=cache)
    with pytest.raises(VerificationError, match="of the result lacks"):
        by_sweep(request, cache=cache)
    shutil.rmtree(cache)


def test_a_schedule_is_verified_once(monkeypatch: pytest.MonkeyPatch) -> None:
    proved: list[str] = []
    verify = Schedule.verify

    def counted(self: Schedule) -> Verification:
        proved.append(f"{self.name} on {self.ranks}")
        return verify(self)

    monkeypatch.setattr(Schedule, "verify", counted)
    by_python({**REQUESTS["all_reduce"], "repetitions": 3})
    assert len(proved) == len(set(proved)) > 20
    proved.clear()
    machine, rings = platform("cray_xc30"), tutti.schedule("mirrored_ring:4x4", ranks=16)
    for size in ("64 B", "1 KiB"):
        simulate_phases(rings, [machine] * rings.phases, size=size)
        tutti.simulate(rings.repeated(2), machine, size=size)
    assert proved == ["mirrored_ring:4x4 on 16"]
    proved.clear()
    grid = {"ranks": [4, 6], "platform.models.minimum.alpha_p": ["1 us", "2 us", "3 us"]}
    tables = {"experiment": {**REQUESTS["all_reduce"], "ranks": [4]}, "sweep": {"grid": grid}}
    with ThreadPoolExecutor(1) as threads:
        tutti.sweep(tables, executor=threads)
    assert len(proved) == len(set(proved))


def test_python_reports_omissions_like_the_command_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    request = REQUESTS["unequal parts"]
    requested = {
        key: value for key, value in request.items() if key not in {"platform", "algorithms"}
    }
    tutti.compare(platform(request["platform"]), **requested)
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("tutti", "WARNING")
    assert record.getMessage().startswith("left out: bruck, pat on 5 ranks at 1 KiB: ")
    assert "needs equal parts" in record.getMessage()


@pytest.mark.parametrize("order", [("ring", "mine.schedule"), ("mine.schedule", "ring")])
def test_a_schedule_takes_the_name_of_its_file_if_another_has_its_name(
    tmp_path: Path, order: tuple[str, str]
) -> None:
    text = renamed(tutti.schedule("direct", ranks=4), "ring").to_text()
    for folder in (tmp_path, tmp_path / "other"):
        folder.mkdir(exist_ok=True)
        (folder / "mine.schedule").write_text(text)
    names = [str(tmp_path / name) if "." in name else name for name in order]
    request = {**REQUESTS["all_reduce"], "ranks": [4], "algorithms": names}
    found, _ = by_python(request)
    assert set(found["schedule"]) == {"ring", "mine.schedule"}
    assert set(found.filter(schedule="mine.schedule")["algorithm"]) == {"mine.schedule"}
    names.append(str(tmp_path / "other" / "mine.schedule"))
    with pytest.raises(ConfigError, match="two schedules for 4 ranks have the name `ring`"):
        by_python(request | {"algorithms": names})
