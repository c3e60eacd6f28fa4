"""`tutti run`, `compare` and `sweep` on a platform with flits: what they show, write and refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from called import call

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

pytestmark = pytest.mark.timeout(600)
"""Starting many programs is slow on a busy machine."""


EXPERIMENT = """
collective = "all_to_all"
algorithms = ["direct"]
ranks = 5
sizes = "20 KiB"
output = "out"
[platform]
name = "ring"
[platform.models.ends]
kind = "loggp"
L = "1 ns"
o = "5 ns"
g = "1 ns"
G = "0 ns/B"
[platform.topology]
build = "ring:5"
links = [{ rate = "64 GB/s", latency = "1 ns", length = "1 mm" }]
[platform.topology.flits]
flit = "64 B"
packet = 16
[platform.topology.flits.router]
vcs = 1
buffer = 32
[platform.topology.flits.energy]
router = "dsent_45nm"
link = "dsent_45nm"
"""

SWEEP = """
experiment = "e.toml"
output = "swept"
[sweep.grid]
algorithms = ["direct", "ring"]
"platform.topology.flits.router.buffer" = [32, 64]
"""


def tutti(*arguments: str, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = call(*arguments, cwd=cwd)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "e.toml").write_text(EXPERIMENT)
    (tmp_path / "sweep.toml").write_text(SWEEP)
    return tmp_path


def test_run_prints_events_energy_and_deadlock_warning(here: Path) -> None:
    done = tutti("run", "e.toml", cwd=here)
    assert "routing `shortest_path` can deadlock" in " ".join(done.stderr.split())
    output = done.stdout
    assert max(len(line) for line in output.splitlines()) <= 80
    for words in ("flits", "buffer writes", "dynamic", "leakage", "power: ", "area: "):
        assert words in output, words
    channels = pl.read_parquet(here / "out" / "channels.parquet")
    links = pl.read_parquet(here / "out" / "links.parquet")
    assert links["flits"].sum() == channels.filter(kind="link")["flits"].sum() > 0
    energy = pl.read_parquet(here / "out" / "energy.parquet")
    assert energy["total_j"].sum() > 0


def test_a_deadlocked_run_ends_with_its_deadlock_cycle(here: Path) -> None:
    tight = EXPERIMENT.replace("buffer = 32", "buffer = 1")
    (here / "e.toml").write_text(tight)
    output = " ".join(tutti("run", "e.toml", cwd=here, code=3).stderr.split())
    assert "the network is deadlocked" in output
    assert "(each waits for the next, the last for the first): VC 0 of npu" in output
    refusing = tight.replace('flit = "64 B"', 'flit = "64 B"\ndeadlock = "refuse"')
    (here / "e.toml").write_text(refusing)
    output = " ".join(tutti("compare", "e.toml", cwd=here, code=2).stderr.split())
    assert "topology.flits.routing: routing `shortest_path` can deadlock" in output


def test_energy_needs_lengths_before_anything_runs(here: Path) -> None:
    (here / "e.toml").write_text(EXPERIMENT.replace(', length = "1 mm"', ""))
    output = " ".join(tutti("run", "e.toml", cwd=here, code=2).stderr.split())
    assert "topology.links: the length of the link from npu0 to npu1 is unknown" in output


def test_a_sweep_takes_keys_of_routers(here: Path) -> None:
    done = tutti("sweep", "sweep.toml", cwd=here)
    assert done.stderr.count("can deadlock") == 1
    frame = pl.read_parquet(here / "swept" / "results.parquet")
    assert frame["model"].unique().to_list() == ["loggp+flit"]
    assert sorted(frame["sweep.platform.topology.flits.router.buffer"]) == [32, 32, 64, 64]
    assert frame["time_ps"].null_count() == 0
    # Finished measurements come from the cache.
    assert "; 0 missing" in tutti("sweep", "sweep.toml", "--status", cwd=here).stdout
