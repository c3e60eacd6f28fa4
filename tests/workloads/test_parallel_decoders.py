"""Communication of decoders compared with closed forms: context, experts, recomputation, bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tutti.base.units import Time, TimePerByte
from tutti.training.endpoint import Configuration, Npu, Ring, configurations
from tutti.training.step import Step
from tutti.workloads import Parallelism, build
from tutti.workloads.compute import MeasuredCompute, PassTimes, Roofline, covered
from tutti.workloads.errors import WorkloadError
from tutti.workloads.model import PASSES, Model, ModelLayer
from tutti.workloads.parallel import Transfer
from tutti.workloads.transfers import Elements, recomputed

if TYPE_CHECKING:
    from tutti.workloads.parallel import Divided
    from tutti.workloads.transfers import CpCommType, Recompute

RINGS = (("a", 4), ("b", 2), ("c", 8))
GPT = "gpt:layers=2,hidden=64,tokens=8,vocabulary=100"
IDEAL = Configuration(name="ideal", kind="ideal")


def divide(
    notation: str, samples: int, elements: Elements | None = None, **kinds: object
) -> Divided:
    parallelism = Parallelism(**kinds)  # type: ignore[arg-type]

    def cost(layer: ModelLayer, _: int) -> int:
        return layer.macs

    return parallelism.divide(
        build(notation), samples, 2, RINGS, cost, elements=elements or Elements()
    )


def moved(part: Divided, where: str, collective: str) -> list[Transfer]:
    found = [one for _, layer in part.layers for one in getattr(layer, where)]
    return [one for one in found if one.collective == collective]


def gradients(part: Divided) -> list[Transfer]:
    found = [layer.after_weight_gradient for _, layer in part.layers]
    return [one for one in found if one is not None]


def test_context_parallelism_gathers_keys_and_values() -> None:
    """2 x samples x tokens x hidden elements per block; in the backward pass twice."""
    part = divide(GPT, 4, context=4)
    size = 2 * 4 * 8 * 64 * 2
    gathered = Transfer("all_gather", size, ("a",))
    assert moved(part, "after_forward", "all_gather") == [gathered] * 2
    assert moved(part, "after_input_gradient", "all_gather") == [gathered] * 2
    scattered = Transfer("reduce_scatter", size, ("a",))
    assert moved(part, "after_input_gradient", "reduce_scatter") == [scattered] * 2


def test_a_ring_exchange_sends_as_much_during_attention() -> None:
    gathered, ring = (divide(GPT, 4, context=4, cp_comm_type=one) for one in ("all_gather", "p2p"))
    for collective in ("all_gather", "reduce_scatter"):
        after = moved(gathered, "after_input_gradient", collective)
        assert moved(ring, "with_backward", collective) == after
        assert moved(ring, "after_input_gradient", collective) == []
    forward = moved(gathered, "after_forward", "all_gather")
    assert moved(ring, "with_forward", "all_gather") == forward
    assert moved(ring, "after_forward", "all_gather") == []


@pytest.mark.parametrize("recompute", ["none", "selective"])
def test_a_slow_ring_exchange_hides_all_blocks_of_attention_but_one(recompute: Recompute) -> None:
    """Of n blocks of keys and values, n - 1 arrive during attention; gradients come last."""
    ring = Ring("a", 4, TimePerByte.parse("10 MB/s"), Time.parse("1 us"))
    configuration = configurations()["no_overlap"]

    def step(cp_comm_type: CpCommType) -> Step:
        kinds = Parallelism(context=4, cp_comm_type=cp_comm_type, recompute=recompute)
        model = build("gpt:layers=2,hidden=64,tokens=1024,vocabulary=100")
        return Step(model=model, batch=1, rings=(ring,), iterations=1, parallelism=kinds)

    times = PassTimes(Roofline(), 1, 2, configuration.compute(step("p2p").npu))
    blocks = [
        covered(times, layer, recompute, 4)
        for layer, _ in step("p2p").divided(configuration).layers
        if layer.name.endswith("attention")
    ]
    gathered, sent = (step(one).run(configuration).total.ps for one in ("all_gather", "p2p"))
    assert len(blocks) == 2
    assert gathered - sent == sum(one.forward + one.backward for one in blocks) > 0


def test_measured_times_have_no_ring_exchange() -> None:
    times = PassTimes(MeasuredCompute({}, "times"), 1, 2, IDEAL.compute(Npu()))
    with pytest.raises(WorkloadError, match="times has one time for the projections"):
        covered(times, build(GPT).layers[1], "none", 4)


def test_grouped_queries_shrink_the_exchange() -> None:
    """Llama 3 70B has 8 of 64 heads of keys and values, which tensor parallelism divides."""
    part = divide("llama3_70b", 1, tensor=4, context=2, sequence=True)
    found = moved(part, "after_forward", "all_gather")
    exchanged = [one for one in found if one.rings == ("b",)]
    assert exchanged == [Transfer("all_gather", 2 * 8 * 128 * 8192 * 2 // 4, ("b",))] * 80
    # Between blocks, an NPU holds 1/2 of the tokens: context divides the volumes of tensor.
    assert {one.bytes for one in found if one.rings == ("a",)} == {8192 // 2 * 8192 * 2}


def test_context_parallelism_divides_work_and_replicates_weights() -> None:
    undivided, part = divide("llama3_8b", 2), divide("llama3_8b", 2, context=8)
    macs = [sum(layer.macs for layer, _ in one.layers) for one in (undivided, part)]
    assert macs[0] == 8 * macs[1]
    reduced = gradients(part)
    assert sum(one.bytes for one in reduced) == 2 * build("llama3_8b").parameters
    assert reduced[0].rings == ("a", "b", "c")


def test_messages_between_stages_are_divided_by_context() -> None:
    for context in (1, 4):
        part = divide("llama3_8b", 2, context=context, pipeline=8, micro_batches=2 * 1)
        assert part.pipeline is not None
        assert set(part.pipeline.messages) == {8192 * 4096 * 2 // context}


def test_stages_end_between_blocks() -> None:
    """32 blocks of four layers, the embedding before the first, and the classifier."""
    part = divide("llama3_8b", 8, pipeline=8, micro_batches=8)
    assert part.pipeline is not None
    assert all((end - 1) % 4 == 0 for end in part.pipeline.ends[:-1])
    assert part.pipeline.ends[-1] == 32 * 4 + 2
    with pytest.raises(WorkloadError, match="expected at most 33 chunks, the number of blocks"):
        divide("llama3_8b", 8, pipeline=8, micro_batches=8, interleaved=5)


def test_context_parallelism_needs_attention() -> None:
    with pytest.raises(WorkloadError, match="vgg16 has no attention"):
        divide("vgg16", 4, context=4)


def test_the_order_may_leave_out_context() -> None:
    part = divide(GPT, 4, tensor=4, order=("tensor", "expert", "data", "pipeline"))
    assert gradients(part)[0].rings == ("b", "c")
    with pytest.raises(WorkloadError, match="expected each of tensor, context"):
        divide(GPT, 4, context=4, order=("tensor", "expert", "data", "pipeline"))


def test_each_token_is_sent_to_its_top_experts() -> None:
    """Top-2: two copies of each token to the experts and back, in both passes."""
    part = divide("mixtral_8x7b", 1, expert=4)
    size = 2 * 4096 * 4096 * 2
    for where in ("after_forward", "after_input_gradient"):
        assert moved(part, where, "all_to_all") == [Transfer("all_to_all", size, ("a",))] * 64
    named = {layer.name: layer for layer, _ in part.layers}
    assert named["block_1_expert_up"].experts == 2


def test_bytes_of_activations_weights_and_gradients() -> None:
    """FP8 activations, BF16 weights and FP32 gradients, as in DeepSeek-V3."""
    elements = Elements(activations=1, weights=2, gradients=4)
    part = divide(GPT, 4, elements, tensor=4, zero=1)
    weights = 2 * 12 * 64 * 64 + 100 * 64
    assert sum(one.bytes for one in gradients(part)) == 4 * weights // 4
    gathers = [layer.before_forward for _, layer in part.layers]
    assert sum(one.bytes for one in gathers if one) == 2 * weights // 4
    assert {one.bytes for one in moved(part, "after_forward", "all_reduce")} == {4 * 8 * 64}


def test_full_recomputation_repeats_collectives_of_the_forward_pass() -> None:
    """Two all-reduces per block more in the backward pass (Korthikanti et al. 2022, section 5)."""
    plain, full = (divide(GPT, 4, tensor=4, recompute=kind) for kind in ("none", "full"))
    counts = [len(moved(one, "after_input_gradient", "all_reduce")) for one in (plain, full)]
    assert counts[1] - counts[0] == 2 * 2
    assert moved(full, "after_forward", "all_reduce") == moved(plain, "after_forward", "all_reduce")


def computed(model: Model, recompute: str) -> int:
    """Returns picoseconds of compute of a step, which communication does not affect."""
    ring = Ring("a", 4, TimePerByte.parse("100 GB/s"), Time.parse("10 ns"))
    parallelism = Parallelism(recompute=recompute)  # type: ignore[arg-type]
    step = Step(model=model, batch=2, rings=(ring,), iterations=1, parallelism=parallelism)
    return step.run(IDEAL).compute


def test_recomputation_adds_the_forward_pass() -> None:
    """Full: that of the blocks. Selective: that of scores and weighted sums."""
    model = build("gpt:layers=2,hidden=1024,tokens=4096,vocabulary=1000")
    none, selective, full = (computed(model, kind) for kind in ("none", "selective", "full"))
    left = (120 * 10**12, TimePerByte.parse("900 GB/s"))
    step = Step(model=model, batch=2, rings=(Ring("a", 4, left[1], Time.parse("1 ns")),))
    times = PassTimes(step.compute, 2, step.element, left)
    blocks = [layer for layer in model.layers if layer.name.startswith("block")]
    assert full - none == sum(times.of(layer, PASSES[0]) for layer in blocks)
    parts = [part for layer in blocks if (part := recomputed(layer, "selective"))]
    assert len(parts) == 2
    assert selective - none == sum(times.of(part, "forward") for part in parts)
    # The share of the products: 4 s^2 h of 24 s h^2 + 4 s^2 h FLOPs (Narayanan et al. 2021).
    share = sum(part.macs for part in parts) / sum(layer.macs for layer in blocks)
    assert share == pytest.approx(4096 / (6 * 1024 + 4096))
