"""Kinds of parallelism in captured programs, against the decoder of workloads."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tutti.training.capture.capturing import capture_script
from tutti.training.capture.files import write_step
from tutti.training.files.step_file import load_training
from tutti.workloads import Parallelism, build
from tutti.workloads.decoder import Decoder, Experts
from tutti.workloads.transfers import Elements
from tutti.workloads.zoo.llm import model_of

if TYPE_CHECKING:
    from tutti.training.capture.record import CapturedStep, Phase, Role

pytestmark = pytest.mark.filterwarnings("ignore")

SCRIPTS = Path(__file__).parents[2] / "examples" / "30_capture"
SHAPE = Decoder(layers=2, hidden=512, heads=8, kv_heads=2, wide=1536, vocabulary=4096, tokens=256)
OPTIONS = [
    *("--layers", "2", "--width", "512", "--heads", "8", "--kv-heads", "2", "--wide", "1536"),
    *("--vocabulary", "4096", "--tokens", "256"),
]
RANKS = 64
NORMS = (2 * SHAPE.layers + 1) * SHAPE.hidden
SCORES = SHAPE.vocabulary * SHAPE.hidden
INSIDE = 4 * SHAPE.queries * SHAPE.tokens * (SHAPE.tokens + 1) // 2
"""FLOPs of the causal scores and sums of a block."""


def captured(script: str, *options: str) -> CapturedStep:
    return capture_script(SCRIPTS / script, [*OPTIONS, *options], RANKS)


def sizes(role: Role, collective: str, ranks: int | None = None) -> list[int]:
    return [to.bytes for _, to in role.exchanges if to.collective == collective
            and ranks in {None, len(role.groups[to.group].ranks)}]  # fmt: skip


def flops(role: Role, kind: str, phase: Phase) -> int:
    return sum(one.flops for one in role.operators if (one.kind, one.phase) == (kind, phase))


def moved(shape: Decoder, rings: tuple[tuple[str, int], ...], kinds: Parallelism) -> Counter[str]:
    """Returns the bytes of the decoder's collectives by name and rings."""
    elements = Elements(weights=2, gradients=4)
    part = kinds.divide(model_of("decoder", "", shape), kinds.micro_batches, 2, rings,
                        lambda layer, _: layer.macs, elements=elements)  # fmt: skip
    found: Counter[str] = Counter()
    for _, one in part.layers:
        single = (one.before_forward, one.before_backward, one.after_weight_gradient)
        for each in (*filter(None, single), *one.after_forward, *one.after_input_gradient,
                     *one.with_forward, *one.with_backward):  # fmt: skip
            found[f"{each.collective} {' '.join(each.rings)}"] += each.bytes
    return found


def run_of(step: CapturedStep, folder: Path) -> int:
    write_step(folder, step)
    training = load_training(folder, ["platform=dgx_h100_cluster"])
    return training.step.run(training.configurations[0]).total.ps


def test_accumulated_gradients_are_reduced_once() -> None:
    """Each micro-batch gathers the weights in both passes; the last one reduces gradients."""
    (role,) = captured("llama_fsdp.py", "--micro-batches", "2").roles
    passed = SHAPE.parameters - SCORES
    assert role.flops("product") == 2 * 6 * passed * SHAPE.tokens
    expected = moved(SHAPE, (("data", RANKS),), Parallelism(zero=3, micro_batches=2))
    assert sum(sizes(role, "reduce_scatter")) == expected["reduce_scatter data"] + 4 * NORMS
    # FSDP2 keeps the root, embedding and classifier, between the passes of a micro-batch.
    root = 2 * 2 * 2 * SCORES
    norms = 2 * 2 * (2 * NORMS - SHAPE.hidden)
    assert sum(sizes(role, "all_gather")) == expected["all_gather data"] - root + norms


def test_recomputed_blocks_stop_before_their_last_product(tmp_path: Path) -> None:
    """PyTorch repeats a block until it has all saved tensors: not the projection at its end."""
    step = captured("llama_fsdp.py", "--checkpoint")
    (role,) = step.roles
    again = 2 * SHAPE.tokens * (SHAPE.blocks - SHAPE.layers * SHAPE.wide * SHAPE.hidden)
    assert flops(role, "product", "recompute") == again
    assert flops(role, "attention", "recompute") == SHAPE.layers * INSIDE
    plain = captured("llama_fsdp.py")
    assert [to for _, to in role.exchanges] == [to for _, to in plain.roles[0].exchanges]
    assert run_of(step, tmp_path / "a") > run_of(plain, tmp_path / "b")


def test_ring_attention_shifts_keys_and_values() -> None:
    """The forward pass moves what an all-gather of keys and values receives.

    The backward pass moves them again, and gradients once more around the ring, in FP32.
    """
    step = captured("llama_context.py")
    (role,) = step.roles
    assert role.flops("product") == 6 * (SHAPE.parameters - SCORES) * SHAPE.tokens // 4
    assert flops(role, "attention", "forward") == SHAPE.layers * INSIDE // 4
    rings = (("context", 4), ("data", RANKS // 4))
    expected = moved(SHAPE, rings, Parallelism(context=4, zero=3, cp_comm_type="p2p"))
    gathered = expected["all_gather context"] // 2
    forward = [to.bytes for one, to in role.exchanges
               if to.collective == "all_to_all" and one.phase == "forward"]  # fmt: skip
    assert len(forward) == 3 * SHAPE.layers
    assert sum(forward) == gathered * 3 // 4
    backward = sum(sizes(role, "all_to_all")) - sum(forward)
    assert backward == gathered * 3 // 4 + 2 * expected["reduce_scatter context"]
    assert sum(sizes(role, "reduce_scatter")) == (
        expected["reduce_scatter context data"] + 4 * NORMS
    )
    assert any("shifts in a ring" in line for line in role.remarks)


def test_experts_exchange_the_copies_of_tokens(tmp_path: Path) -> None:
    """Weights, FLOPs and bytes are the decoder's with a router of (width, experts) per block.

    FSDP2 pads the 16 rows of a router to one for each rank.
    """
    step = captured("experts_fsdp.py")
    (role,) = step.roles
    shape = replace(SHAPE, experts=Experts(routed=16, top=2, wide=SHAPE.wide))
    router = SHAPE.hidden * 16
    local = shape.parameters - 14 * SHAPE.layers * 3 * SHAPE.hidden * SHAPE.wide
    assert role.weights == local + NORMS + SHAPE.layers * router
    active = shape.active - SCORES + SHAPE.layers * router
    assert role.flops("product") == 6 * active * SHAPE.tokens
    rings = (("expert", 8), ("data", 8))
    expected = moved(shape, rings, Parallelism(expert=8, zero=3))
    exchanged = sizes(role, "all_to_all")
    assert exchanged == [2 * SHAPE.tokens * SHAPE.hidden * 2] * (4 * SHAPE.layers)
    assert sum(exchanged) == expected["all_to_all expert"]
    experts = [to for _, to in role.exchanges if role.groups[to.group].ranks[1] == 8]
    for collective in ("all_gather", "reduce_scatter"):
        found = sum(to.bytes for to in experts if to.collective == collective)
        assert found == expected[f"{collective} data"]
    dense = sizes(role, "reduce_scatter", RANKS)
    padded = SHAPE.layers * router * RANKS // 16
    assert sum(dense) == expected["reduce_scatter expert data"] + 4 * (NORMS + padded)
    assert run_of(step, tmp_path) > 0


def test_resnet_has_the_weights_and_flops_of_the_built_in_model(tmp_path: Path) -> None:
    """The built-in model leaves batch normalisation out."""
    step = capture_script(SCRIPTS / "resnet_ddp.py", [], 16, step=3)
    (role,) = step.roles
    model = build("resnet50")
    assert role.weights == pytest.approx(model.parameters, rel=0.01)
    forward = flops(role, "product", "forward") / 32
    assert forward == pytest.approx(2 * sum(one.macs for one in model.layers), rel=0.01)
    buckets = sizes(role, "all_reduce")
    assert sum(buckets) == 4 * role.weights
    # DDP's first bucket takes 1 MiB, the others 25 MiB, from the classifier to the first layer.
    assert 1 << 20 <= buckets[0] < 10 << 20
    assert all(size > 25 << 20 for size in buckets[1:-1])
    assert run_of(step, tmp_path) > 0
