"""Which ranks a capture takes as one of each role, and what it refuses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tutti.training.capture import search
from tutti.training.capture.assignment import Assignment
from tutti.training.capture.capturing import capture_script
from tutti.training.capture.files import read_step, write_step
from tutti.training.errors import CaptureError
from tutti.training.files.step_file import load_training

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


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("rank == 3 and layer(layer(batch))", {0: (), 3: (3,)}),
        ("rank * 2 < world or layer(layer(batch))", {0: (), 63: tuple(range(32, 64))}),
        ("int(os.environ['LOCAL_RANK']) in {5} and layer(layer(batch))",
         {0: (), 5: tuple(range(5, 64, 8))}),
        # Each rank has its turn, in which every fourth one does more.
        ("for r in range(world):\n        if rank == r: r % 4 and layer(layer(batch))",
         {0: (), 63: tuple(rank for rank in range(64) if rank % 4)}),
        # Ranks that only log take other branches, and do the same.
        ("rank % 8 == 7 and print('logs')", {0: ()}),
    ],
)  # fmt: skip
def test_ranks_that_take_other_branches_are_captured(
    line: str, expected: dict[int, tuple[int, ...]], tmp_path: Path
) -> None:
    """No process group and no message separates them."""
    step = capture_script(script_of(tmp_path, "import os\n", line), [], 64)
    assert {role.rank: role.ranks for role in step.roles} == expected
    assert {role.flops() for role in step.roles[1:]} <= {2 * PRODUCTS}
    assert not any(role.remarks for role in step.roles)
    write_step(tmp_path / "step", step)
    assert read_step(tmp_path / "step") == step
    numbers = Assignment(64, step.roles).numbers()
    assert sum(numbers) == sum(map(len, expected.values()))


def test_ranks_that_compare_too_much_are_remarked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rank is a length: each has its own branch. Those that have run do the same."""
    monkeypatch.setattr(search, "_MOST_OPERATORS", 0)
    (role,) = capture_script(script_of(tmp_path, "", "range(rank)"), [], 64).roles
    (line,) = role.remarks
    assert line.startswith("rank 5 takes other branches of the program than ranks that have run")
    assert "is priced as rank 0: 4 such ranks do the same" in line


MODULE = """
from torch.distributed import get_rank, init_process_group
def rank_of(): return get_rank()
def is_odd(): return rank_of() % 2
"""


def test_modules_of_a_program_get_the_rank(tmp_path: Path) -> None:
    """They stay imported between ranks, and their functions are those of the rank that runs."""
    (tmp_path / "own_ranks.py").write_text(MODULE, encoding="utf-8")
    before = "import own_ranks\nassert own_ranks.rank_of() == rank, own_ranks.rank_of()\n"
    script = script_of(tmp_path, before, "own_ranks.is_odd() and layer(layer(batch))")
    text = script.read_text(encoding="utf-8")
    start = "import own_ranks\nown_ranks.init_process_group('nccl')"
    script.write_text(text.replace('dist.init_process_group("nccl")', start), encoding="utf-8")
    step = capture_script(script, [], 8)
    assert [role.ranks for role in step.roles] == [(), (1, 3, 5, 7)]


def test_collectives_that_some_ranks_leave_out_are_refused(tmp_path: Path) -> None:
    """The job would hang. Rank 0 initialises weights and computes what it logs: no other role."""
    script = script_of(tmp_path, "rank or dist.all_reduce(batch)\n", "")
    with pytest.raises(CaptureError, match="rank 7 issues 0 calls of all_reduce in a group of 8"):
        capture_script(script, [], 8)
    before = "rank or [torch.nn.init.normal_(layer.weight) for _ in range(9)]\n"
    script = script_of(tmp_path, before, "rank or layer.weight[0, 0].mean()")
    assert len(capture_script(script, [], 8).roles) == 1


TIED = """
import torch
import torch.distributed as dist
dist.init_process_group("nccl")
rank, each = dist.get_rank(), dist.get_world_size() // 4
stage, mine = rank // each, {}
for at in range(each):
    stages = list(range(at, 4 * each, each))
    for kind, ranks in (("stages", stages), ("tied", [stages[0], stages[-1]])):
        group = dist.new_group(ranks)
        mine |= {kind: group} if rank in ranks else {}
words = torch.nn.Embedding(100, 64, device="cuda") if stage in (0, 3) else None
layer = torch.nn.Linear(64, 64, bias=False, device="cuda")
weights = [*layer.parameters(), *(words.parameters() if words else ())]
optimizer = torch.optim.SGD(weights)
for _ in range(3):
    x = torch.zeros(8, 64, device="cuda")
    if stage:
        dist.recv(x, rank - each, group=mine["stages"])
        y = layer(x.requires_grad_())
    else:
        y = layer(words(torch.zeros(8, dtype=torch.int64, device="cuda")))
    if stage == 3:
        (y @ words.weight.T).sum().backward()
    else:
        dist.send(y, rank + each, group=mine["stages"])
        dist.recv(torch.empty_like(y), rank + each, group=mine["stages"])
        y.backward(torch.empty_like(y))
    if stage:
        dist.send(x.grad, rank - each, group=mine["stages"])
    if words:
        dist.all_reduce(words.weight.grad, group=mine["tied"])
    optimizer.step()
    if rank == 0:
        print("step")
"""


def test_first_and_last_stage_may_share_an_embedding(tmp_path: Path) -> None:
    """Their group is in no mesh; nor are the messages of other stages."""
    script = tmp_path / "train.py"
    script.write_text(TIED, encoding="utf-8")
    step = capture_script(script, [], 8)
    assert [role.rank for role in step.roles] == [0, 2, 4, 6]
    sums = [[role.groups[to.group].ranks for _, to in role.exchanges
             if to.collective == "all_reduce"] for role in step.roles]  # fmt: skip
    assert sums == [[(0, 6)], [], [], [(0, 6)]]
    write_step(tmp_path / "step", step)
    training = load_training(tmp_path / "step", ["platform=dgx_h100_cluster"])
    assert training.step.run(training.configurations[0]).total.ps > 0
    script.write_text(TIED.replace("dist.all_reduce(words.weight.grad, ",
                                   "dist.broadcast(words.weight.grad, 0, "))  # fmt: skip
    with pytest.raises(CaptureError, match="rank 0 calls broadcast in a group of the ranks 0 and"):
        capture_script(script, [], 8)


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
    # PyTorch 2.5 numbers the groups of a mesh.
    assert re.search(r"8 \((mesh_shard|\d+)\) x 2 \((mesh_replicate|\d+)\)", error.value.problem)
    assert "--world-size 16" in (error.value.hint or "")


def test_messages_that_do_not_match_are_refused(tmp_path: Path) -> None:
    before = "part = batch[:8] if rank else batch\n"
    line = "(dist.recv if rank else dist.send)(part, 1 - rank)"
    with pytest.raises(CaptureError) as error:
        capture_script(script_of(tmp_path, before, line), [], 2)
    assert error.value.kind == "peer"
    expected = "rank 0 sends 1 message of 4 KiB to rank 1, which receives 1 message of 2 KiB"
    assert expected in error.value.problem
