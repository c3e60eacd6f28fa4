"""`tutti energy`, and `tutti run` on a package: what they show, write and refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from called import call
from tutti.energy.technology import technologies

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

pytestmark = pytest.mark.timeout(600)
"""Starting many programs is slow on a busy machine."""


EXPERIMENT = """
collective = "all_reduce"
algorithms = ["ring"]
ranks = 16
sizes = "64 KiB"
output = "out"
[platform]
name = "package"
[platform.models.ends]
kind = "postal"
alpha = "1 ps"
[platform.topology]
build = "torus:4x4"
links = [{ rate = "68 GB/s", latency = "12 ns" }]
[platform.topology.packets.package]
pitch = "5 mm"
"""


def tutti(*arguments: str, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = call(*arguments, cwd=cwd)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


def test_technologies_are_listed(tmp_path: Path) -> None:
    output = tutti("energy", "list", cwd=tmp_path).stdout
    assert all(entry.name in output for entry in technologies())


def test_packages_are_compared_with_published_values(tmp_path: Path) -> None:
    output = tutti("energy", "package", "--side", "8", cwd=tmp_path).stdout
    assert max(len(line) for line in output.splitlines()) <= 80
    rows = {line[:20].strip(): line[20:].split() for line in output.splitlines()}
    assert rows["bypass, published"] == ["5", "128", "0.1302", "0.1302", "0.0047", "8.63"]
    assert "flattened butterfly" in rows
    refused = tutti("energy", "package", "--link", "rope", cwd=tmp_path, code=2).stderr
    assert "unknown link technology `rope`" in refused
    assert "--side" in tutti("energy", "package", "--side", "1", cwd=tmp_path, code=2).stderr


def test_run_with_packets_prints_energy(tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text(EXPERIMENT)
    output = " ".join(tutti("run", "e.toml", cwd=tmp_path).stdout.split())
    for words in ("buffers", "leakage", "power: ", "area: 2.084 mm2"):
        assert words in output, words
    energy = pl.read_parquet(tmp_path / "out" / "energy.parquet")
    assert energy["total_j"].sum() > 0
    (tmp_path / "e.toml").write_text(EXPERIMENT.replace('pitch = "5 mm"', "circuit = true"))
    refused = tutti("run", "e.toml", cwd=tmp_path, code=2).stderr
    assert "the length of the link from npu0 to npu1 is not known" in refused
