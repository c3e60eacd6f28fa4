"""What ordinary programs do before and around a step: data, modules that move, printed losses."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import fsdp
from torch.utils.data import DataLoader, TensorDataset

import tutti
from tutti.training.capture.capturing import capture_script
from tutti.training.capture.refusals import refusal_of
from tutti.training.capture.view import capture_view
from tutti.training.errors import CaptureError

pytestmark = pytest.mark.filterwarnings("ignore")


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(100, 32)
        self.scores = nn.Linear(32, 100, bias=False)
        self.scores.weight = self.table.weight
        self.norm = nn.BatchNorm1d(100)

    def forward(self, x):
        return self.norm(self.scores(self.table(x)))


@pytest.mark.parametrize("move", [lambda one: one.cuda(), lambda one: one.to("cuda")])
def test_modules_that_move_keep_their_parameters(move) -> None:
    """A weight that two layers share is one, and an optimizer made before updates it."""
    with tutti.capture(world_size=8, rank=3) as capturing:
        model = Tied()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        move(model)
        model(torch.zeros(4, dtype=torch.int64, device="cuda")).sum().backward()
        optimizer.step()
    (role,) = capturing.result.roles
    assert role.parameters == role.weights == 100 * 32 + 2 * 100
    assert sum(one.phase == "optimizer" for one in role.operators) >= 1


def test_samples_are_loaded_in_this_process() -> None:
    """Workers and pinned memory would ask the driver; scalars are printed with assumed values."""
    samples = TensorDataset(torch.zeros(64, 16))
    with tutti.capture(world_size=8, step=2, values=0.0) as capturing:
        layer = nn.Linear(16, 16).cuda()
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        for (given,) in DataLoader(samples, 8, num_workers=2, pin_memory=True):
            loss = layer(given.cuda(non_blocking=True)).sum() + torch.tensor(1.0, device="cuda")
            loss.backward()
            optimizer.step()
            assert f"{loss:.2f}" == "0.00"
    (role,) = capturing.result.roles
    assert role.flops("product") == 2 * 2 * 8 * 16 * 16
    copied = next(one.bytes for one in role.operators if one.name == "aten._to_copy")
    assert copied == 2 * 8 * 16 * 4


def test_the_innermost_file_of_a_program_is_named(tmp_path: Path) -> None:
    """A program is its script and other files that are not installed."""
    (tmp_path / "own_losses.py").write_text("def read(loss):\n    return loss.item()\n")
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\nfrom own_losses import read\n"
        "loss = torch.nn.Linear(4, 4, device='cuda')(torch.zeros(4, 4, device='cuda')).sum()\n"
        "read(loss)\n"
    )
    with pytest.raises(CaptureError, match=r"own_losses\.py, line 2") as error:
        capture_script(script, [], 8)
    assert error.value.kind == "values"


def test_truncated_normal_values_are_not_drawn_again() -> None:
    with tutti.capture(world_size=8) as capturing:
        layer = nn.Linear(16, 16, device="cuda")
        nn.init.trunc_normal_(layer.weight, std=0.02)
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        layer(torch.zeros(2, 16, device="cuda")).sum().backward()
        optimizer.step()
    assert capturing.result.roles[0].parameters == 16 * 17


def test_checkpoints_are_not_written(tmp_path: Path) -> None:
    """The accelerator is the named GPU; a captured rank that exchanges nothing is remarked."""
    file = tmp_path / "weights.pt"
    file.write_bytes(b"earlier")
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\n"
        "found = getattr(torch, 'accelerator', None)\n"
        "layer = torch.nn.Linear(8, 8).to(found.current_accelerator() if found else 'cuda')\n"
        "optimizer = torch.optim.SGD(layer.parameters())\n"
        "for _ in range(2):\n"
        "    layer(torch.zeros(2, 8, device='cuda')).sum().backward()\n"
        "    layer.weight.record_stream(torch.cuda.Stream())\n"
        "    with torch.cuda.device(0): print(torch.cuda.memory_summary())\n"
        "    optimizer.step()\n"
        f"    torch.save(layer.state_dict(), {str(file)!r})\n",
        encoding="utf-8",
    )
    step = capture_script(script, [], 8)
    assert file.read_bytes() == b"earlier"
    assert any("exchange nothing" in line for line in capture_view(step).log)


GAN = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("nccl")
maker, judge = (DistributedDataParallel(torch.nn.Linear(32, 32, bias=False).cuda())
                for _ in range(2))
of_maker, of_judge = (torch.optim.Adam(one.parameters(), fused=True) for one in (maker, judge))
noise = torch.zeros(8, 32, device="cuda")
for _ in range(6):
    for _ in range(2):
        of_judge.zero_grad()
        (judge(noise) - judge(maker(noise).detach())).mean().backward()
        of_judge.step()
    of_maker.zero_grad()
    judge(maker(noise)).mean().backward()
    of_maker.step()
"""


def test_the_turns_of_two_optimizers_are_one_step(tmp_path: Path) -> None:
    """A GAN whose discriminator steps twice; by default, the third step of programs with DDP."""
    script = tmp_path / "gan.py"
    script.write_text(GAN, encoding="utf-8")
    (role,) = capture_script(script, [], 8).roles
    product = 2 * 8 * 32 * 32
    # Of the discriminator, 2 x (3 forward + 2 weights); of the generator, 2 + 2 + 1.
    assert role.flops("product") == (2 * 5 + 5) * product
    assert sum(one.name == "aten._fused_adam_" for one in role.operators) == 3
    gradients = [to.bytes for _, to in role.exchanges if to.collective == "all_reduce"]
    assert gradients == [4 * 32 * 32] * (2 + 2)
    assert role.remarks == ("the iteration has 3 turns of optimizers",)
    (early,) = capture_script(script, [], 8, step=2).roles
    assert early.flops() == role.flops()
    assert any("the steady state starts with `--step 3`" in line for line in early.remarks)


def test_turns_of_one_optimizer_with_other_work_are_one_step() -> None:
    with tutti.capture(world_size=8, step=2) as capturing:
        layer = nn.Linear(32, 32, bias=False, device="cuda")
        optimizer = torch.optim.SGD(layer.parameters())
        for turn in range(6):
            x = torch.zeros(8, 32, device="cuda")
            (layer(layer(x)) if turn % 2 else layer(x)).sum().backward()
            optimizer.step()
    (role,) = capturing.result.roles
    # Products: 1 forward + 1 weight; 2 forward + 2 weights + 1 input.
    assert role.flops("product") == (2 + 5) * 2 * 8 * 32 * 32


TURNS = """
import torch
layer = torch.nn.Linear(32, 32, bias=False, device="cuda")
optimizer = torch.optim.SGD(layer.parameters())
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer)
def batch(): return torch.zeros(8, 32, device="cuda")
{before}
for _ in range(9):
    for _ in range({inner}):
        layer(batch()).sum().backward()
        optimizer.step()
    {after}
    scheduler.step()
"""
OTHER = "layer(layer(batch())).sum().backward(); optimizer.step()"


def test_turns_of_one_optimizer_in_several_lines_are_one_step(tmp_path: Path) -> None:
    """A A B: of the first two, that are equal, nothing shows that another one follows."""
    script, product = tmp_path / "train.py", 2 * 8 * 32 * 32
    for before, inner, after, products in [
        ("", 2, OTHER, 2 * 2 + 5),
        (OTHER, 1, "", 2),
        ("", 1, f"if False: {OTHER}", 2),
    ]:
        text = TURNS.format(before=before, inner=inner, after=after)
        script.write_text(text, encoding="utf-8")
        (role,) = capture_script(script, [], 8).roles
        assert role.flops("product") == products * product
    assert role.remarks == (f"{script}, line 12 steps the optimizer too, but has not run",)


OBJECTS = """
import pathlib
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
dist.init_process_group("nccl")
rank, world = dist.get_rank(), dist.get_world_size()
sizes, part = [{"width": 64}] if rank == 0 else [None], [None]
dist.broadcast_object_list(sizes, src=0)
dist.scatter_object_list(part, list(range(world)) if rank == 0 else None, src=0)
assert str(part) == f"[{rank}]"
gathered = [None] * world if rank == 0 else None
dist.gather_object({"rank": rank}, gathered)
layer = torch.nn.Linear(sizes[0]["width"], 64, device="cuda")
optimizer = torch.optim.SGD(layer.parameters())
source = torch.Generator(device="cuda").manual_seed(1)
assert source.device.type == "cuda" and isinstance(torch.default_generator, torch.Generator)
torch.cuda.memory._record_memory_history(max_entries=10)
for _ in range(2):
    batch = torch.randn(8, 64, device="cuda", generator=source).type(torch.cuda.FloatTensor)
    half = torch.zeros(8, 64).type(torch.cuda.HalfTensor)
    assert (batch.type(), half.type()) == ("torch.cuda.FloatTensor", "torch.cuda.HalfTensor")
    loss = layer(batch).sum()
    loss.backward()
    dist.all_reduce(layer.weight.grad)
    optimizer.step()
    checkpoint.save({"layer": layer.state_dict()}, checkpoint_id="written")
    checkpoint.async_save({"layer": layer.state_dict()}, checkpoint_id="written").result()
    checkpoint.load({"layer": layer.state_dict()}, checkpoint_id="written")
    torch.cuda.memory._dump_snapshot("history.pickle")
"""


def test_objects_generators_and_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last rank, which is checked, has the objects of rank 0; nothing is written."""
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "train.py"
    script.write_text(OBJECTS, encoding="utf-8")
    step = capture_script(script, [], 8)
    assert [role.remarks for role in step.roles] == [()]
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]
    # Rank 0 runs until it has sent its objects, although only rank 3 is captured.
    script.write_text(OBJECTS.replace("if rank == 0 else None, src=0)", "if not rank else None)"))
    assert [role.rank for role in capture_script(script, [], 8, ranks=[3]).roles] == [3]
    script.write_text(OBJECTS.replace("list(range(world)) if rank == 0 else None", "None"))
    with pytest.raises(CaptureError, match="line 10: `scatter_object_list` waits") as error:
        capture_script(script, [], 8, ranks=[3])
    assert error.value.kind == "peer"


def test_fsdp_needs_no_mesh() -> None:
    with tutti.capture(world_size=8) as capturing:
        dist.init_process_group("nccl")
        layer = fsdp.fully_shard(nn.Linear(64, 64, device="cuda"))
        optimizer = torch.optim.SGD(layer.parameters())
        layer(torch.zeros(2, 64, device="cuda")).sum().backward()
        optimizer.step()
    names = [to.collective for _, to in capturing.result.roles[0].exchanges]
    assert names == ["all_gather", "reduce_scatter"]


def test_errors_of_stages_are_their_causes() -> None:
    """Pipelining wraps errors in one whose text starts with an empty line."""
    wrapped = RuntimeError("\n  Failed to run stage backward")
    wrapped.__cause__ = RuntimeError("no gradient")
    refusal = refusal_of(wrapped, "train.py")
    assert refusal is not None
    assert "RuntimeError: no gradient" in str(refusal)


PIPELINE = """
import sys
import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, ScheduleZBVZeroBubble
dist.init_process_group("nccl")
rank, device = dist.get_rank(), torch.device("cuda")
stages = [PipelineStage(torch.nn.Linear(64, 64, device=device), at, 4, device)
          for at in (rank, 3 - rank)]
schedule = ScheduleZBVZeroBubble(stages, 4, loss_fn=torch.nn.functional.mse_loss)
weights = [one for each in stages for one in each.submod.parameters()]
optimizer = torch.optim.SGD(weights)
for _ in range(3):
    batch = torch.zeros(16, 64, device=device)
    given = {} if rank else {"target": batch}
    schedule.step(*(() if rank else (batch,)), **given)
    optimizer.step()
    optimizer.zero_grad()
"""


def test_stages_ask_each_other_for_their_shapes(tmp_path: Path) -> None:
    """Both ranks run until they have answered: that of the first stage has the last one, too."""
    script = tmp_path / "train.py"
    script.write_text(PIPELINE, encoding="utf-8")
    step = capture_script(script, [], 2)
    assert [role.rank for role in step.roles] == [0, 1]
    for role in step.roles:
        assert [to.collective for _, to in role.exchanges].count("send") == 8
        assert role.flops() in {3 * 2 * 2 * 16 * 64 * 64, 5 * 2 * 16 * 64 * 64}


def test_gradients_are_clipped_on_lists_and_sharded_weights_drawn() -> None:
    """PyTorch calls operators on lists on a GPU, and draws each shard from the seed of all."""
    with tutti.capture(world_size=8) as capturing:
        dist.init_process_group("nccl")
        model = torch.nn.Linear(64, 64, bias=False, device="cuda")
        fsdp.fully_shard(model)
        torch.nn.init.normal_(model.weight)
        model(torch.zeros(8, 64, device="cuda")).sum().backward()
        weights = [torch.zeros(64, 64, device="cuda", requires_grad=True) for _ in range(2)]
        for one in weights:
            one.grad = torch.zeros_like(one)
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
    (role,) = capturing.result.roles
    names = [one.name.removeprefix("aten.").partition(".")[0] for one in role.operators]
    assert names.count("_foreach_norm") == names.count("_foreach_mul_") == 2
