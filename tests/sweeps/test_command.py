"""`tutti sweep` from the command line: killed and resumed, stopped, watched."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from called import call
from processes import wait_until
from tutti.sweeps.cache import CacheContents, _line, _parsed, _records

TUTTI = Path(sys.executable).with_name("tutti")

SMALL = """
title = "small"
[experiment]
platform = "cray_xc30"
collective = "all_reduce"
algorithms = ["ring", "recursive_doubling"]
sizes = "8 B"
[sweep.grid]
ranks = [4, 8]
"platform.models.minimum.alpha_p" = ["1 us", "2 us"]
"""

# 600 rings on 112 ranks: 24,864 messages each.
LONG = """
[experiment]
platform = "cray_xc30"
collective = "all_reduce"
algorithms = ["ring"]
ranks = 112
repetitions = 100
sizes = "8 B"
noise.step = { kind = "exponential", mean = "200 ns" }
[sweep.grid]
"platform.models.minimum.alpha_p" = [%s]
"""
LONG %= ", ".join(f'"{n} us"' for n in range(1, 7))


def tutti(*arguments: str | Path, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = call(*arguments, cwd=cwd)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "small.toml").write_text(SMALL)
    (tmp_path / "long.toml").write_text(LONG)
    return tmp_path


def journal_keys(folder: Path) -> dict[Path, list[str]]:
    """The keys in each journal, oldest first."""
    journals = sorted(folder.glob("*.journal"), key=lambda path: path.stat().st_mtime_ns)
    return {path: [key for key, _ in _records(path, CacheContents())] for path in journals}


def started(here: Path, *options: str) -> subprocess.Popen[str]:
    """A long sweep that has finished some of its measurements, and not all.

    Both this process and the sweep slow down on a busy machine; the sweep has 30 times the
    measurements that are waited for.
    """
    process = subprocess.Popen(
        [TUTTI, "sweep", "long.toml", "--workers", "2", *options],
        cwd=here,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    folder = here / "out" / "sweep" / "cache"
    wait_until(process, lambda: sum(len(keys) for keys in journal_keys(folder).values()) >= 20)
    return process


def wait_for_workers(group: int) -> None:
    """Waits until the workers of a sweep have ended: they notice its end after it.

    The limit is for workers that never end.
    """
    deadline = time.monotonic() + 60
    while not has_ended(group):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def has_ended(group: int) -> bool:
    """Whether every process of a session has ended."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(") ")[2].split()
            except OSError:
                continue
            if int(fields[3]) == group and fields[0] not in "ZX":
                return False
    return True


@pytest.mark.timeout(240)
def test_killed_sweep_resumes(here: Path) -> None:
    process = started(here)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    before = journal_keys(here / "out/sweep/cache")
    ((_, finished),) = before.items()
    assert 20 <= len(finished) < 600
    output = tutti("sweep", "long.toml", "--status", cwd=here).stdout
    assert f"{len(finished) - 1:,} finished" in output  # and one proof
    wait_for_workers(process.pid)

    output = tutti("sweep", "long.toml", cwd=here).stderr
    assert f"{len(finished) - 1:,} of them from out/sweep/cache" in output
    after = journal_keys(here / "out/sweep/cache")
    times = Counter(key for keys in after.values() for key in keys)
    assert len(times) == 601
    assert set(times.values()) == {1}  # no simulation ran twice

    tutti("sweep", "long.toml", "--cache", "other", "--out", "expected", cwd=here)
    expected = (here / "expected/results.parquet").read_bytes()
    assert (here / "out/sweep/results.parquet").read_bytes() == expected


@pytest.mark.timeout(120)
def test_ctrl_c_prints_how_to_resume(here: Path) -> None:
    process = started(here)
    os.killpg(process.pid, signal.SIGINT)
    _, output = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in output
    assert "to resume, run the same command again: tutti sweep long.toml" in output
    finished = re.findall(r"interrupted: ([\d,]+) of 600 measurements finished", output)[0]
    rows = pl.read_parquet(here / "out/sweep/results.parquet").height
    assert rows == int(finished.replace(",", ""))
    wait_for_workers(process.pid)


@pytest.mark.timeout(120)
def test_two_sweeps_at_once_share_a_cache(here: Path) -> None:
    both = [
        subprocess.Popen(
            [TUTTI, "sweep", "small.toml", "--cache", "cache", "--out", f"out{n}"],
            cwd=here,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for n in range(2)
    ]
    assert [process.wait() for process in both] == [0, 0]
    first, second = (pl.read_parquet(here / f"out{n}/results.parquet") for n in range(2))
    assert first.equals(second)
    assert len({key for keys in journal_keys(here / "cache").values() for key in keys}) == 8 + 4


def test_results_are_scannable_and_record_provenance(here: Path) -> None:
    done = tutti("sweep", "small.toml", cwd=here)
    assert "4 points, 8 measurements\n" in done.stderr
    assert "wrote out/sweep/results.parquet" in done.stdout
    rows = pl.scan_parquet(here / "out/sweep/*.parquet").collect()
    assert rows.height == 8
    assert {"config_hash", "version", "commit", "sweep.ranks"} <= set(rows.columns)
    assert rows["config_hash"].n_unique() == 4
    assert rows["sweep.platform.models.minimum.alpha_p_ps"].n_unique() == 2
    assert pl.read_csv(here / "out/sweep/results.csv").height == 8


def test_second_run_uses_the_cache(here: Path) -> None:
    first = tutti("sweep", "small.toml", cwd=here)
    again = tutti("sweep", "small.toml", cwd=here)
    assert first.stdout == again.stdout
    assert "8 of them from out/sweep/cache" in again.stderr
    fresh = tutti("sweep", "small.toml", "--fresh", cwd=here)
    assert "from out/sweep/cache" not in fresh.stderr
    assert len(journal_keys(here / "out/sweep/cache")) == 2


def test_cache_of_another_version_is_reported(here: Path) -> None:
    tutti("sweep", "small.toml", cwd=here)
    (journal,) = (here / "out/sweep/cache").iterdir()
    header, _, rest = journal.read_text().partition("\n")
    written = _parsed(header.encode())
    assert written is not None
    old = _line(written | {"simulator": "0.0.9+feed"}).decode()
    journal.write_text(old + rest)
    output = tutti("sweep", "small.toml", cwd=here).stderr
    assert "written by tutti 0.0.9+feed, not" in " ".join(output.split())
    assert "8 measurements in" in output


def test_a_bad_sweep_has_exit_code_2(here: Path) -> None:
    (here / "small.toml").write_text(SMALL.replace("[4, 8]", "[4, 1]"))
    output = tutti("sweep", "small.toml", cwd=here, code=2).stderr
    assert "error: small.toml, point 3 of 4 (ranks = 1, " in output
    assert not (here / "out").exists()
    output = tutti("sweep", "smal.toml", cwd=here, code=2).stderr
    assert "did you mean `small.toml`?" in output
    output = tutti("run", "small.toml", cwd=here, code=2).stderr
    assert "small.toml: is a sweep" in output
    assert "hint: tutti sweep FILE" in output
    (here / "e.toml").write_text('platform = "cray_xc30"\ncollective = "all_reduce"\n')
    output = tutti("sweep", "e.toml", cwd=here, code=2).stderr
    assert "e.toml: is an experiment" in output
    assert 'experiment = "e.toml"' in output
    output = tutti("sweep", "small.toml", "--executor", "mpi", cwd=here, code=2).stderr
    assert "start it as mpiexec" in output


@pytest.mark.parametrize("width", [80, 40])
def test_progress_fits_the_terminal(here: Path, width: int) -> None:
    """Runs in a terminal of that width; no printed line is longer."""
    main, worker = pty.openpty()
    process = subprocess.Popen(
        [TUTTI, "sweep", "long.toml"],
        cwd=here,
        stdout=subprocess.DEVNULL,
        stderr=worker,
        env=os.environ | {"COLUMNS": str(width), "TERM": "xterm"},
    )
    os.close(worker)
    drawn = b""
    while process.poll() is None and not re.search(rb"\d+:\d\d", drawn):
        drawn += os.read(main, 4096)
    process.kill()
    process.wait()
    os.close(main)
    assert process.returncode in (0, -signal.SIGKILL)
    plain = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", drawn).decode(errors="replace")
    assert "sweeping" in plain
    assert "/600" in plain
    assert max(len(line) for line in re.split(r"[\r\n]+", plain)) <= width
