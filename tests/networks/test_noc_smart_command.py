"""`tutti noc` on files with a table [mesh]: output, files and errors."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import polars as pl
import pytest

from called import call

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

pytestmark = pytest.mark.timeout(600)
"""Starting many programs is slow on a busy machine."""


FILE = """
[mesh]
design = "sfo_greedy"
columns = 4
rows = 4
[traffic]
kind = "broadcast"
rate = 0.01
[measure]
warmup = 100
measure = 1000
drain = 1000
seeds = 2
"""


def tutti(*arguments: str | Path, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = call("noc", *arguments, cwd=cwd)
    assert done.returncode == code, done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mesh.toml"
    path.write_text(FILE)
    return path


def test_run_prints_and_writes_results(file: Path) -> None:
    done = tutti("run", file, "-o", "out", cwd=file.parent)
    assert "sfo_greedy, 4 x 4: 8 hops per cycle" in done.stdout
    assert re.search(r"latency: +[4-6]\.\d", done.stdout)
    frame = pl.read_parquet(file.parent / "out" / "results.parquet")
    assert frame["ending"].to_list() == ["stable"]
    page = (file.parent / "out" / "report.html").read_text()
    assert "bypasses of a router" in page


def test_options_define_the_mesh_of_the_same_file(file: Path) -> None:
    tutti("run", file, "-o", "file", cwd=file.parent)
    plan = ("warmup=100", "measure=1000", "drain=1000", "seeds=2")
    changes = [part for one in plan for part in ("--set", f"measure.{one}")]
    mesh = ("--mesh", "4x4", "--design", "sfo_greedy", "--rate", "0.01", "-o", "short")
    done = tutti("run", *mesh, *changes, cwd=file.parent)
    assert "defaults: traffic.kind broadcast" in done.stderr
    found = [pl.read_parquet(file.parent / one / "results.parquet") for one in ("file", "short")]
    assert found[0].equals(found[1])


def test_sweep_searches_by_both_criteria(file: Path) -> None:
    done = tutti("sweep", file, "--loads", "0.01,0.03", "-o", "out", cwd=file.parent)
    assert "saturation load by throughput:" in done.stdout
    assert "saturation load by latency:" in done.stdout
    out = file.parent / "out"
    assert {path.name for path in out.iterdir()} == {
        "results.parquet", "results.csv", "latency.svg", "report.html"
    }  # fmt: skip
    loads = pl.read_csv(out / "results.csv")["load"].to_list()
    assert {0.01, 0.03} <= set(loads)
    assert loads == sorted(loads)


def test_a_saturated_run_exits_with_3(file: Path) -> None:
    done = tutti("run", file, "--set", "traffic.rate=0.2", "-o", "out", cwd=file.parent, code=3)
    assert "below 97 %" in done.stdout.replace("\n", " ")


def test_watch_writes_a_page_without_remote_resources(file: Path) -> None:
    tutti("watch", file, "--cycles", "50", "-o", "out", cwd=file.parent)
    page = (file.parent / "out" / "watch.html").read_text()
    found = re.search(r'<script type="application/json" id="scene">(.*?)</script>', page, re.S)
    assert found
    scene = json.loads(found.group(1))
    assert (scene["columns"], scene["rows"], scene["cycles"]) == (4, 4, 50)
    assert len(scene["flights"]) == len(scene["marks"]) == 50
    ended = [one for one in scene["messages"] if one["end"] >= 0]
    assert ended
    assert all(one["arrivals"] == 15 and one["end"] - one["cycle"] >= 2 for one in ended)
    assert not re.findall(r'(?:src|href)="http', page)


def test_designs_are_listed(tmp_path: Path) -> None:
    assert "sfo_complete" in tutti("list", cwd=tmp_path).stdout


@pytest.mark.parametrize(
    ("change", "texts"),
    [
        ("mesh.design=sfo_gredy", ["mesh.design: ", "design `sfo_gredy`", "did you mean"]),
        ("mesh.fan_out=greedy", ["mesh.fan_out: ", "fan_out `greedy`"]),
        (
            "mesh.fan_out=complete:2",
            ["mesh.fan_out: `complete:2` is a broadcast every 2 cycles", "expected `complete:3`"],
        ),
        ("mesh.vcs=0", ["mesh.vcs: is out of range", "1 to 64"]),
        ("mesh.hpc_max=0", ["mesh.hpc_max: is out of range", "1 to 64"]),
        ("mesh.hpc_max=-1", ["mesh.hpc_max: is out of range"]),
        (
            'mesh={design = "sfo_greedy_pvt", split_vcs = true, vcs = 2}',
            ["mesh.vcs: 2 VCs for the three stages", "or `split_vcs = false`"],
        ),
        (
            'mesh={design = "sfo_greedy_pvt", vcs = 30}',
            ["mesh.vcs: 90 VCs at each port", "or `split_vcs = true`"],
        ),
        ("mesh={reducer = true, hpc_max = 12}", ["mesh.hpc_max: 12 hops per cycle", "9 or fewer"]),
        (
            'mesh={fan_in = "complete", art_entries = 32}',
            [
                "mesh.art_entries: `art_entries` is 32: expected 64 to 65536",
                "aggregation reduction tables (ART) for each node",
            ],
        ),
        (
            'mesh={design = "fully_connected", bypass_turns = true}',
            ["mesh.bypass_turns: a fully connected network has no paths that turn"],
        ),
        ("mesh.hops=3", ["mesh.hops: unknown key `hops`", "hpc_max"]),
        ("mesh.priority=oldest", ["mesh.priority", "priority `oldest`", "local, bypass"]),
        ("mesh.hold=stays", ["mesh.hold", "unknown name `stays`", "stay, count, missing, age"]),
        ("traffic.outstanding=8", ["traffic.outstanding", "does not apply to a"]),
        ("traffic.kind=gossip", ["traffic.kind", "unicast, broadcast, multicast, reduction"]),
        ("traffic.rate=-1", ["traffic.rate"]),
        ("traffic.rate=2", ["traffic.rate", "2"]),
        ("traffic.packet=5", ["traffic.packet: "]),
        ("traffic.pattern=transpose", ["only if kind is unicast"]),
        ("traffic.process=poisson", ["traffic.process", "poisson"]),
        (
            'traffic={kind = "unicast", rate = 0.1, packet = 4}',
            ["traffic.packet: a packet of 4 flits exceeds the depth of a VC", "raise `mesh.depth`"],
        ),
        ("mesh.yx=1", ["mesh.yx: is neither true nor false"]),
        ("measure.seeds=0", ["measure.seeds"]),
        ("measure.measure=0", ["measure.measure: is out of range"]),
        ("measure.batches=3", ["measure.batches: unknown key"]),
    ],
)
def test_errors_name_the_key_and_what_is_expected(
    file: Path, change: str, texts: list[str]
) -> None:
    done = tutti("run", file, "--set", change, cwd=file.parent, code=2)
    for text in texts:
        assert text in done.stderr.replace("\n", " ").replace("  ", " "), done.stderr
    assert "mesh.toml" in done.stderr


@pytest.mark.parametrize(
    ("kind", "unit"),
    [("broadcast", "broadcasts per source"), ("reduction", "reductions per cycle")],
)
def test_the_error_for_a_missing_rate_names_its_unit(file: Path, kind: str, unit: str) -> None:
    file.write_text(FILE.replace('"broadcast"', f'"{kind}"').replace("rate = 0.01\n", ""))
    assert f"expected: {unit}" in tutti("run", file, cwd=file.parent, code=2).stderr


def test_count_of_one_is_singular(file: Path) -> None:
    changes = ("measure.seeds=1", "mesh.vcs=1", "mesh.credit_delay=1")
    options = [part for change in changes for part in ("--set", change)]
    shown = tutti("run", file, *options, "-o", "out", cwd=file.parent).stdout
    shown = " ".join(shown.split())
    assert "seeds: 1 state:" in shown
    assert "1 VC per class, 1 flit deep; credit delay 1 cycle traffic:" in shown


def test_watch_refuses_networks_without_smart_routers(file: Path) -> None:
    change = "mesh.design=fully_connected"
    done = tutti("watch", file, "--set", change, cwd=file.parent, code=2)
    assert "no routers" in done.stderr
    other = file.parent / "noc.toml"
    other.write_text("[traffic]\nrate = 0.1\n")
    done = tutti("watch", other, cwd=file.parent, code=2)
    assert "[mesh]" in done.stderr
