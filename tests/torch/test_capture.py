"""Captured steps of PyTorch programs against the decoder of workloads; `make test-torch`."""

from __future__ import annotations

import textwrap
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn

import tutti
from tutti.platforms.npus import npu
from tutti.training.capture.capturing import capture_script
from tutti.training.capture.files import read_step, write_step
from tutti.training.capture.kernels import SEPARATE
from tutti.training.capture.record import CapturedStep
from tutti.training.capture.summary import peak
from tutti.training.errors import CaptureError
from tutti.training.files.step_file import load_training
from tutti.training.plan.efficiency import coefficients, kernels_of, setting_of
from tutti.workloads import Parallelism, build
from tutti.workloads.decoder import Decoder
from tutti.workloads.kernels import TERMS
from tutti.workloads.transfers import Elements
from tutti.workloads.zoo.llm import model_of

pytestmark = pytest.mark.filterwarnings("ignore")

SCRIPTS = Path(__file__).parents[2] / "examples" / "30_capture"
SHAPE = Decoder(layers=2, hidden=512, heads=8, kv_heads=2, wide=1536, vocabulary=4096, tokens=256)
OPTIONS = [
    *("--layers", "2", "--width", "512", "--heads", "8", "--kv-heads", "2", "--wide", "1536"),
    *("--vocabulary", "4096", "--tokens", "256"),
]
RANKS = 64
LAYERS = 16
"""Blocks of the step that is compared with the built-in model."""


@pytest.fixture(scope="module")
def sharded() -> CapturedStep:
    return capture_script(SCRIPTS / "llama_fsdp.py", OPTIONS, RANKS)


def test_weights_and_flops_are_those_of_the_decoder(sharded: CapturedStep) -> None:
    """Norms are weights of the program only; torch's causal attention has S (S + 1) / 2 scores."""
    (role,) = sharded.roles
    norms = (2 * SHAPE.layers + 1) * SHAPE.hidden
    assert role.weights == SHAPE.parameters + norms
    passed = SHAPE.parameters - SHAPE.vocabulary * SHAPE.hidden
    assert role.flops("product") == 6 * passed * SHAPE.tokens
    forward = [one.flops for one in role.operators
               if one.kind == "attention" and one.phase == "forward"]  # fmt: skip
    inside = 4 * SHAPE.queries * SHAPE.tokens * (SHAPE.tokens + 1) // 2
    assert forward == [inside] * SHAPE.layers
    # The backward pass computes the scores again: five products instead of four.
    assert role.flops("attention") == SHAPE.layers * (inside + 5 * inside // 2)


def test_collectives_are_those_of_fsdp_in_order(sharded: CapturedStep) -> None:
    """Weights are gathered in BF16 in both passes; gradients are reduced in FP32, the last first.

    The root, with embedding and classifier, keeps its weights between the passes.
    """
    (role,) = sharded.roles
    block = SHAPE.blocks // SHAPE.layers + 2 * SHAPE.hidden
    root = 2 * SHAPE.vocabulary * SHAPE.hidden + SHAPE.hidden
    found = [(to.collective, to.bytes) for _, to in role.exchanges]
    gathers = [size for name, size in found if name == "all_gather"]
    assert gathers == [2 * root, 2 * block, 2 * block, 2 * block, 2 * block]
    reduced = [size for name, size in found if name == "reduce_scatter"]
    assert reduced == [4 * block, 4 * block, 4 * root]
    assert {role.groups[to.group].ranks for _, to in role.exchanges} == {tuple(range(RANKS))}


def test_ranks_of_one_role_issue_the_same(sharded: CapturedStep) -> None:
    other = capture_script(SCRIPTS / "llama_fsdp.py", OPTIONS, RANKS, ranks=[RANKS - 1])
    assert sharded.roles[0].is_like(other.roles[0])


def test_gathers_overlap_the_block_before(sharded: CapturedStep) -> None:
    """The second block's weights are gathered on another stream, before the first block ends."""
    (role,) = sharded.roles
    gathers = [at for at, one in enumerate(role.operators)
               if one.exchange and one.exchange.collective == "all_gather"]  # fmt: skip
    first = next(at for at, one in enumerate(role.operators) if one.module.startswith("layers.0."))
    second = role.operators[gathers[2]]
    assert second.stream != 0
    assert not any(role.operators[at].module.startswith("layers.0.") and at > first
                   and role.operators[at].stream == 0 for at in second.after)  # fmt: skip


def test_a_step_takes_as_long_as_that_of_the_built_in_model(tmp_path: Path) -> None:
    """Half of the blocks of Llama 3 8B with FSDP on 128 GPUs, as of a compiled program: within 2 %.

    Both gather a unit ahead. The root of FSDP2 has the embedding and the classifier, which it
    gathers once; the built-in model gathers each of them in both passes. FSDP2 copies weights out
    of each gather and gradients into each reduction, which the built-in model does not. Without a
    compiler, operators between products take their bytes, in place of those of products.
    """
    options = ["--layers", str(LAYERS), "--tokens", "8192"]
    captured = capture_script(SCRIPTS / "llama_fsdp.py", options, 128)
    write_step(tmp_path, replace(captured, compiled=True))
    training = load_training(tmp_path, ["platform=dgx_h100_cluster", "detail=isolated"])
    fused = training.step.run(training.configurations[0])
    shape = build("llama3_8b").decoder
    assert shape is not None
    model = model_of("llama", "", replace(shape, layers=LAYERS))
    setting = setting_of(npu("h100"), model, "bf16", graph="eager")
    built_in = replace(
        training.step,
        captured=None,
        model=model,
        elements=Elements(weights=2, gradients=4),
        parallelism=Parallelism(zero=3),
        compute=kernels_of(npu("h100"), setting),
    ).run(training.configurations[0])
    (role,) = captured.roles
    bandwidth = npu("h100").memory_bandwidth.core.bytes_per_second
    copied = sum(one.bytes for one in role.operators
                 if one.name.startswith("fsdp.") and one.stream == 0)  # fmt: skip
    copies = round(1e12 * copied / bandwidth)
    assert 0.03 < copies / fused.total.ps < 0.05
    assert fused.total.ps - copies == pytest.approx(built_in.total.ps, rel=0.02)
    count = {
        kind: sum(
            one.kind == kind for one in built_in.step.programs(training.configurations[0])[0].issued
        )
        for kind in ("all_gather", "reduce_scatter")
    }
    found = Counter(to.collective for _, to in role.exchanges)
    assert (count["all_gather"], found["all_gather"]) == (2 * (LAYERS + 2), 2 * LAYERS + 1)
    assert (count["reduce_scatter"], found["reduce_scatter"]) == (LAYERS + 2, LAYERS + 1)
    write_step(tmp_path, captured)
    training = load_training(tmp_path, ["platform=dgx_h100_cluster", "detail=isolated"])
    eager = training.step.run(training.configurations[0])
    moved = sum(one.bytes for one in role.operators
                if one.kind == "memory" and not one.name.startswith(SEPARATE))  # fmt: skip
    inside = sum(one.bytes - one.weight for one in role.operators if one.kind == "product")
    # The fitted coefficient of the bytes of products stands for the operators between them.
    fitted = dict(zip(TERMS, coefficients(setting), strict=False))["memory"] * inside
    assert (eager.compute - fused.compute) * 1e-12 == pytest.approx(
        (moved - fitted) / bandwidth, rel=0.03
    )


def test_tensor_parallelism_divides_products_and_tokens() -> None:
    """Blocks gather tokens twice in each pass, and reduce-scatter as often (Korthikanti 2022)."""
    shape = replace(SHAPE, kv_heads=8)
    step = capture_script(SCRIPTS / "llama_tensor.py", [*OPTIONS, "--kv-heads", "8"], RANKS)
    (role,) = step.roles
    passed = shape.parameters - shape.vocabulary * shape.hidden
    assert role.flops("product") == 6 * passed * SHAPE.tokens // 8
    hidden = 2 * SHAPE.tokens * SHAPE.hidden
    tensor = [(one.phase, to.collective, to.bytes) for one, to in role.exchanges
              if role.groups[to.group].ranks == tuple(range(8))]  # fmt: skip
    for phase in ("forward", "backward"):
        for collective in ("all_gather", "reduce_scatter"):
            found = [size for when, name, size in tensor if (when, name) == (phase, collective)]
            assert found.count(hidden) >= 2 * SHAPE.layers


def test_stages_of_a_pipeline_are_roles(tmp_path: Path) -> None:
    """Interleaved 1F1B: each chunk sends and receives a hidden state per micro-batch and pass."""
    options = ["--layers", "8", *OPTIONS[2:]]
    step = capture_script(SCRIPTS / "llama_pipeline.py", options, 16)
    assert [role.rank for role in step.roles] == [0, 4, 8, 12]
    hidden = 2 * SHAPE.tokens * SHAPE.hidden
    sent = {}
    for role in step.roles:
        found = [to for _, to in role.exchanges if to.peer is not None]
        assert {to.bytes for to in found} == {hidden}
        for to in found:
            key = (role.rank, to.peer) if to.collective == "send" else (to.peer, role.rank)
            sent[key] = sent.get(key, 0) + (1 if to.collective == "send" else -1)
    assert set(sent.values()) == {0}
    layers = sum(role.flops("product") for role in step.roles) / 8
    passed = SHAPE.blocks // 2 * 8 + SHAPE.vocabulary * SHAPE.hidden
    assert layers == 6 * passed * SHAPE.tokens
    write_step(tmp_path, step)
    training = load_training(tmp_path, ["platform=dgx_h100_cluster"])
    run = training.step.run(training.configurations[0])
    assert run.total.ps > 0


def test_stages_of_a_pipeline_divide_their_tensors() -> None:
    """Tensor groups of 2 in 2 stages: half of the products; 3 blocks are 1 and 2 of a stage."""
    options = [*OPTIONS[2:], "--layers", "3", "--stages", "2", "--chunks", "1",
               "--micro-batches", "2"]  # fmt: skip
    steps = [capture_script(SCRIPTS / "llama_pipeline.py", [*options, "--tensor", str(tensor)], 8,
                            step=1) for tensor in (1, 2)]  # fmt: skip
    assert [[role.rank for role in step.roles] for step in steps] == [[0, 4], [0, 4]]
    plain, divided = ([role.flops("product") for role in step.roles] for step in steps)
    assert plain == [2 * flops for flops in divided]
    assert sum(plain) == 2 * 6 * (SHAPE.blocks // 2 * 3 + 4096 * 512) * SHAPE.tokens
    messages = {to.bytes for _, to in steps[1].roles[0].exchanges if to.peer is not None}
    # PyTorch 2.9 greets the neighbours with numbers of stages in the first step.
    hidden = {size for size in messages if size > 8}
    assert hidden == {2 * SHAPE.tokens * SHAPE.hidden // 2}
    names = {to.collective for role in steps[1].roles for _, to in role.exchanges}
    assert names == {"all_gather", "reduce_scatter", "all_reduce", "send", "recv"}
    groups = {group.ranks for role in steps[1].roles for group in role.groups}
    assert {(0, 1), (4, 5)} <= groups


def test_a_step_is_stored_and_read_back(sharded: CapturedStep, tmp_path: Path) -> None:
    write_step(tmp_path / "step", sharded)
    assert read_step(tmp_path / "step") == sharded


def test_a_step_runs_on_a_platform(sharded: CapturedStep, tmp_path: Path) -> None:
    write_step(tmp_path, sharded)
    training = load_training(tmp_path, ["platform=dgx_h100_cluster"])
    run = training.step.run(training.configurations[0])
    assert run.total.ps == run.compute + run.exposed + run.idle
    flops = sharded.roles[0].flops() / npu("h100").bf16_flops.per_second
    assert run.compute * 1e-12 > flops


def test_memory_has_parameters_and_states_of_adam(sharded: CapturedStep) -> None:
    (role,) = sharded.roles
    kinds = peak(role).kinds
    assert kinds["parameters"] == 4 * role.parameters
    assert 8 * role.parameters <= kinds["optimizer"] < 8 * role.parameters + 4096
    assert kinds["activations"] > 0


def test_all_to_alls_of_experts_have_their_group() -> None:
    with tutti.capture(world_size=16, rank=3) as capturing:
        dist.init_process_group("nccl")
        groups = [dist.new_group(list(range(at, at + 4))) for at in range(0, 16, 4)]
        experts = nn.Linear(64, 64, bias=False, device="cuda", dtype=torch.bfloat16)
        tokens = torch.zeros(32, 64, device="cuda", dtype=torch.bfloat16)
        received = torch.empty_like(tokens)
        dist.all_to_all_single(received, tokens, group=groups[0])
        computed = experts(received)
        dist.all_to_all_single(received, computed, group=groups[0])
    (role,) = capturing.result.roles
    found = [(to.collective, role.groups[to.group].ranks, to.bytes) for _, to in role.exchanges]
    assert found == [("all_to_all", (0, 1, 2, 3), 32 * 64 * 2)] * 2
    dispatch, combine = (at for at, one in enumerate(role.operators) if one.exchange)
    product = next(at for at, one in enumerate(role.operators) if one.kind == "product")
    assert dispatch in role.operators[product].after
    assert product in role.operators[combine].after
    assert role.flops() == 2 * 32 * 64 * 64


PRELUDE = """
import torch
import torch.distributed as dist
dist.init_process_group("nccl")
layer = torch.nn.Linear(64, 64, device="cuda")
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for _ in range(2):
    loss = layer(torch.zeros(4, 64, device="cuda")).sum()
    loss.backward()
    optimizer.step()
"""

BAD = {
    "    print(loss.item())": ("values", "line 11"),
    "    loss.detach().cpu().numpy()": ("values", "line 11"),
    "    layer.weight.nonzero()": ("shapes", "line 11"),
    "    dist.recv_object_list([None], src=1)": ("peer", "line 11"),
    "    torch.nn.SyncBatchNorm(64).cuda()(layer.weight)": ("no_fake", "line 11: `aten::batch_"),
    "    undefined": ("program", "line 11: NameError"),
    "    raise SystemExit(3)": ("program", "exits with 3"),
}


@pytest.mark.parametrize("line", BAD)
def test_what_a_capture_cannot_do_is_refused_with_its_line(line: str, tmp_path: Path) -> None:
    kind, text = BAD[line]
    script = tmp_path / "train.py"
    script.write_text(PRELUDE + line + "\n", encoding="utf-8")
    with pytest.raises(CaptureError, match=text) as error:
        capture_script(script, [], 8)
    assert error.value.kind == kind


def test_operators_without_a_fake_implementation_are_named(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    defined = textwrap.dedent("""
        library = torch.library.Library("mine", "DEF")
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: 2 * x, "CUDA")
        torch.ops.mine.twice(layer.weight)
    """)
    script.write_text(PRELUDE.replace("for _", f"{defined}for _"), encoding="utf-8")
    with pytest.raises(CaptureError, match="`mine::twice` has no fake implementation") as error:
        capture_script(script, [], 8)
    assert error.value.kind == "no_fake"


def test_values_can_be_assumed(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(PRELUDE + "    assert loss.item() == 1.0\n", encoding="utf-8")
    step = capture_script(script, [], 8, values=1.0)
    assert any("values that the program reads are 1" in line for line in step.roles[0].remarks)


def test_a_step_without_a_gpu_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(PRELUDE.replace('"cuda"', '"cpu"'), encoding="utf-8")
    with pytest.raises(CaptureError, match="no operator on a GPU"):
        capture_script(script, [], 8)


def test_a_program_without_a_step_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import torch\n", encoding="utf-8")
    with pytest.raises(CaptureError, match="without a training step"):
        capture_script(script, [], 8)
