"""Captured steps as Chakra traces."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tutti.cli.app import app
from tutti.formats.chakra.reader import read_all
from tutti.platforms.npus import npu
from tutti.training.capture import export
from tutti.training.capture.export import trace_of
from tutti.training.capture.files import write_step
from tutti.training.capture.kernels import KernelTimes
from tutti.training.capture.programs import CapturedWork
from tutti.training.capture.record import CapturedStep, Exchange, Group, Operator, Role
from tutti.training.endpoint import configurations
from tutti.training.errors import CaptureError
from tutti.training.files.step_file import load_training
from tutti.training.plan.efficiency import Setting
from tutti.workloads.operations import Kind

RUNNER = CliRunner()
EXAMPLE = Path(__file__).parents[3] / "examples" / "10_training_step" / "training.toml"
SIZE = 64 << 20


def role(rank: int) -> Role:
    """A stage of two: a block on 8 ranks, its gradients, and a message to the other stage."""
    groups = (Group("mesh_dp", tuple(range(rank, rank + 8))), Group("mesh_pp", (0, 8)))
    peer, kind = (8, "send") if rank == 0 else (0, "recv")
    computed = Operator("aten.add", "layers.0", "forward", 0, "memory", bytes=3_000_000_000)
    reduced = Operator("c10d.all_reduce", "layers.0", "backward", -1, "collective", (0,),
                       bytes=SIZE, exchange=Exchange("all_reduce", 0, SIZE))  # fmt: skip
    sent = Operator("c10d.send", "", "forward", -9, "message", (0,), bytes=1 << 20,
                    exchange=Exchange(kind, 1, 1 << 20, peer))  # fmt: skip
    return Role(rank, (computed, reduced, sent), groups)


def step_of() -> CapturedStep:
    roles = (role(0), role(8))
    return CapturedStep(script="train.py", world_size=16, torch="2.9", roles=roles)


def test_ranks_have_their_groups_and_peers() -> None:
    kernels = KernelTimes(peaks=npu("h100"), setting=Setting(npu="h100", precision="bf16"))
    work = CapturedWork(step=step_of(), kernels=kernels)
    trace = trace_of(work, (10**15, npu("h100").memory_bandwidth))
    assert len(trace.ranks) == 16
    assert [call.group for call in trace.collectives] == [tuple(range(8)), tuple(range(8, 16))]
    sender, receiver = trace.ranks[3], trace.ranks[11]
    assert (sender.kinds[2], sender.peers[2]) == (Kind.SEND, 11)
    assert (receiver.kinds[2], receiver.peers[2]) == (Kind.RECEIVE, 3)
    assert sender.names == ("layers.0 forward", "layers.0 all_reduce", "send")


def test_an_exported_step_takes_as_long_as_the_captured_one(tmp_path: Path) -> None:
    write_step(tmp_path / "step", step_of())
    words = ["train", "export", str(tmp_path / "step"), "-o", str(tmp_path / "traces" / "run.et")]
    done = RUNNER.invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    traces = read_all(tmp_path / "traces" / "run")
    assert len(traces) == 16
    ideal = configurations()["ideal"]
    captured = load_training(tmp_path / "step").step
    exported = replace(captured, captured=None, traces=tuple(traces))
    assert exported.run(ideal).total == captured.run(ideal).total


def test_too_many_tasks_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "MOST_TASKS", 47)
    kernels = KernelTimes(peaks=npu("h100"), setting=Setting(npu="h100", precision="bf16"))
    work = CapturedWork(step=step_of(), kernels=kernels)
    with pytest.raises(CaptureError, match="48 tasks of 16 ranks"):
        trace_of(work, (10**15, npu("h100").memory_bandwidth))


def test_other_steps_are_refused(tmp_path: Path) -> None:
    words = ["train", "export", str(EXAMPLE), "-o", str(tmp_path / "run.et")]
    done = RUNNER.invoke(app, words)
    assert done.exit_code == 2
    assert "a folder of `tutti train capture`" in " ".join(done.output.split())
