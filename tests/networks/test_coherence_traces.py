"""Traces of memory accesses on chips with coherent caches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from called import call
from tutti.base.errors import ConfigError
from tutti.networks import coherence
from tutti.networks.coherence import Chip
from tutti.networks.coherence.traces import parse_trace
from tutti.networks.errors import CoherenceError
from tutti.networks.mesh import SmartMesh

if TYPE_CHECKING:
    from pathlib import Path

MESH = SmartMesh(columns=4, rows=4)
TRACE = """
# core 0 writes a line that core 1 reads
0 compute 100
0 store 0x40   # misses
barrier
1 load 0x48
1 load 0x50
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    file = tmp_path / "t.txt"
    file.write_text(TRACE, encoding="utf-8")
    return file


@pytest.mark.parametrize("protocol", ["ht", "tc"])
def test_a_trace_is_repeated(trace: Path, protocol: coherence.Protocol) -> None:
    run = coherence.run(
        kernel=f"trace:{trace}", protocol=protocol, mesh=MESH, chip=Chip(check=True)
    )
    assert run.cores == 2
    assert run.cycles > 100
    reads, writes, _ = run.misses
    # The lines of the barrier are shared too.
    assert reads.from_caches >= 1
    assert writes.latency.count >= 1


def test_accesses_of_a_trace_take_the_cycles_of_their_misses(tmp_path: Path) -> None:
    """Core 5 of 4 x 4 reads a line from memory, and hits it ten times."""
    file = tmp_path / "t.txt"
    lines = ["5 load 0x1000", *["5 load 4104"] * 10, "5 compute 7"]
    file.write_text("\n".join(lines), encoding="utf-8")
    run = coherence.run(kernel=f"trace:{file}", mesh=MESH)
    assert (run.accesses, run.misses_of_all, run.instructions) == (11, 1, 18)
    assert run.cycles == run.misses[0].latency.mean + 1 + 10 + 7
    more = coherence.run(kernel=f"trace:{file}", mesh=MESH, chip=Chip(work_per_miss=30))
    assert (more.cycles, more.instructions) == (run.cycles + 30, run.instructions + 30)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("0 load 3", ["t.txt:1", "a multiple of 8"]),
        ("x load 8", ["t.txt:1", "invalid core"]),
        ("0 fetch 8", ["t.txt:1", "invalid step", "0 load 0x1000"]),
        ("0 load", ["t.txt:1", "invalid step"]),
        ("\n0 load 0xfg", ["t.txt:2", "invalid number"]),
        ("0 compute -1", ["t.txt:1", "invalid number", "a number of cycles"]),
        ("# nothing", ["t.txt", "no core has a step"]),
        ("0 barrier\n1 load 8", ["core 1 has 0 barriers and core 0 has 1"]),
    ],
)
def test_mistakes_in_traces_name_the_line(text: str, parts: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_trace(text, source="t.txt")
    for part in parts:
        assert part in str(caught.value)


def test_settings_of_kernels_are_refused(trace: Path) -> None:
    with pytest.raises(CoherenceError, match="`scale` is 'tiny', and a trace has none"):
        coherence.run(kernel=f"trace:{trace}", mesh=MESH, scale="tiny")
    far = trace.with_name("far.txt")
    far.write_text("16 load 8", encoding="utf-8")
    with pytest.raises(CoherenceError, match="accesses of core 16"):
        coherence.run(kernel=f"trace:{far}", mesh=MESH)


def test_a_core_beyond_the_mesh_and_a_missing_file_are_named(trace: Path) -> None:
    trace.write_text("9 load 0x40", encoding="utf-8")
    with pytest.raises(CoherenceError, match="accesses of core 9: expected cores 0 to 3") as caught:
        coherence.run(kernel=f"trace:{trace}", mesh=SmartMesh(columns=2, rows=2))
    assert "enlarge the mesh" in caught.value.hint
    refused = call("coherence", "run", "--kernel", "trace:", cwd=trace.parent)
    assert refused.returncode == 2
    assert "`trace:` names no file" in refused.stderr


def test_the_command_runs_a_trace(trace: Path) -> None:
    size = ("--set", "mesh.columns=4", "--set", "mesh.rows=4")
    done = call("coherence", "run", "-k", "trace:t.txt", *size, cwd=trace.parent)
    assert done.returncode == 0, done.stderr
    assert "trace:t.txt, on 2 cores, ht" in done.stdout
    assert "seed" not in done.stdout, "kernels have scale and seed, traces do not"
    assert "serial program" not in done.stdout
    config = trace.parent / "sub" / "chip.toml"
    config.parent.mkdir()
    config.write_text(
        'kernel = "trace:../t.txt"\n[mesh]\ncolumns = 4\nrows = 4\n', encoding="utf-8"
    )
    done = call("coherence", "run", config, cwd=trace.parent)
    assert done.returncode == 0, done.stderr


def test_work_per_miss_dilutes_misses() -> None:
    runs = [
        coherence.run(kernel="radix_like", mesh=MESH, scale="tiny", chip=Chip(work_per_miss=work))
        for work in (0, 200)
    ]
    assert runs[1].mpki < runs[0].mpki
    assert runs[1].network_stall < runs[0].network_stall
    with pytest.raises(CoherenceError, match="work_per_miss"):
        coherence.run(kernel="radix_like", mesh=MESH, chip=Chip(work_per_miss=1 << 21))
