"""Which ranks a capture takes as one of each role, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tutti.training.capture.capturing import capture_script
from tutti.training.errors import CaptureError

pytestmark = pytest.mark.filterwarnings("ignore")

PRELUDE = """
import sys
import torch
import torch.distributed as dist
dist.init_process_group("nccl")
rank, world = dist.get_rank(), dist.get_world_size()
layer = torch.nn.Linear(64, 64, bias=False, device="cuda")
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
batch = torch.zeros(16, 64, device="cuda")
"""
STEPS = """
for _ in range(3):
    layer(batch).sum().backward()
    {line}
    optimizer.step()
"""
PRODUCTS = 2 * 2 * 16 * 64 * 64
"""FLOPs of the forward pass and of the gradient of the weight."""


def script_of(folder: Path, before: str, line: str) -> Path:
    script = folder / "train.py"
    script.write_text(PRELUDE + before + STEPS.format(line=line), encoding="utf-8")
    return script


def test_ranks_of_other_process_groups_are_captured(tmp_path: Path) -> None:
    """The upper half reduces its gradients; ranks that only log among themselves do the same."""
    script = script_of(
        tmp_path,
        "upper, one = dist.new_group([4, 5, 6, 7]), dist.new_group([0])\n",
        "dist.all_reduce(layer.weight.grad, group=upper)",
    )
    step = capture_script(script, [], 8)
    assert [role.rank for role in step.roles] == [0, 4]
    assert [len(list(role.exchanges)) for role in step.roles] == [0, 1]


def test_ranks_that_compute_more_are_captured_or_remarked(tmp_path: Path) -> None:
    """Eight ranks are captured; of more, the last one is named."""
    script = script_of(tmp_path, "", "rank * 2 < world or layer(layer(batch))")
    step = capture_script(script, [], 8)
    flops = [role.flops() for role in step.roles]
    assert flops == [PRODUCTS] * 4 + [2 * PRODUCTS] * 4
    (role,) = capture_script(script, [], 64).roles
    assert any("rank 63 has +100% FLOPs compared with rank 0" in line for line in role.remarks)
    named = capture_script(script, [], 64, ranks=[0, 32])
    assert [role.flops() for role in named.roles] == [PRODUCTS, 2 * PRODUCTS]


def test_collectives_that_some_ranks_leave_out_are_refused(tmp_path: Path) -> None:
    """The job would hang. Rank 0 initialises weights and computes what it logs: no other role."""
    script = script_of(tmp_path, "rank or dist.all_reduce(batch)\n", "")
    with pytest.raises(CaptureError, match="rank 7 issues 0 calls of all_reduce in a group of 8"):
        capture_script(script, [], 8)
    before = "rank or [torch.nn.init.normal_(layer.weight) for _ in range(9)]\n"
    script = script_of(tmp_path, before, "rank or layer.weight[0, 0].mean()")
    assert len(capture_script(script, [], 8).roles) == 1


MESH = """
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
mesh = init_device_mesh("cuda", (world // 8, 8), mesh_dim_names=("replicate", "shard"))
fully_shard(layer, mesh=mesh)
"""


def test_meshes_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    script = script_of(tmp_path, MESH, "")
    with pytest.raises(CaptureError, match="mesh of 16 ranks, and the job has 20") as error:
        capture_script(script, [], 20)
    assert "8 (mesh_shard) x 2 (mesh_replicate)" in error.value.problem
    assert "--world-size 16" in (error.value.hint or "")


def test_messages_that_do_not_match_are_refused(tmp_path: Path) -> None:
    before = "part = batch[:8] if rank else batch\n"
    line = "(dist.recv if rank else dist.send)(part, 1 - rank)"
    with pytest.raises(CaptureError) as error:
        capture_script(script_of(tmp_path, before, line), [], 2)
    assert error.value.kind == "peer"
    expected = "rank 0 sends 1 message of 4 KiB to rank 1, which receives 1 message of 2 KiB"
    assert expected in error.value.problem
