"""Communication of each parallelism, compared with closed forms."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.base.units import Time, TimePerByte
from tutti.training.endpoint import Configuration, Ring
from tutti.training.step import Step
from tutti.workloads import Parallelism, build
from tutti.workloads.errors import WorkloadError
from tutti.workloads.model import Model, ModelLayer, linear
from tutti.workloads.parallel import Transfer
from tutti.workloads.stages import shortest_stages
from tutti.workloads.transfers import LayerTransfers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tutti.workloads.parallel import Divided, Kind

RINGS = (("local", 4), ("vertical", 2), ("horizontal", 8))
IDEAL = Configuration(name="ideal", kind="ideal")


def divide(model: str | Model, samples: int, **kinds: int) -> Divided:
    built = build(model) if isinstance(model, str) else model
    parallelism = Parallelism(**kinds)  # type: ignore[arg-type]
    return parallelism.divide(built, samples, 2, RINGS, lambda layer, _: layer.macs)


def transfers(part: Divided) -> Iterator[tuple[str, Transfer]]:
    for _, layer in part.layers:
        for one in layer.after_forward:
            yield "forward", one
        for one in layer.after_input_gradient:
            yield "backward", one
        for name in ("before_forward", "before_backward", "after_weight_gradient"):
            one = getattr(layer, name)
            if one is not None:
                yield name, one


def step(model: Model, batch: int, nodes: tuple[int, ...], parallelism: Parallelism) -> Step:
    rate, latency = TimePerByte.parse("100 GB/s"), Time.parse("10 ns")
    rings = tuple(Ring(f"r{i}", n, rate, latency) for i, n in enumerate(nodes))
    given = {"iterations": 1, "parallelism": parallelism}
    return Step(model=model, batch=batch, rings=rings, **given)  # type: ignore[arg-type]


def equal(layers: int, side: int = 512) -> Model:
    """Identical layers."""
    made = tuple(linear(f"l{i}", side, side, first=i == 0) for i in range(layers))
    return Model(name="equal", source="made up", layers=made, samples="rows")


def test_data_parallelism_reduces_every_weight_once() -> None:
    part = divide("resnet50", 32)
    found = [one for _, one in transfers(part)]
    assert {one.collective for one in found} == {"all_reduce"}
    assert sum(one.bytes for one in found) == 2 * 25_502_912
    assert found[0].rings == ("local", "vertical", "horizontal")


def test_tensor_parallelism_of_blocks_matches_megatron() -> None:
    """Two all-reduces of batch x tokens x hidden per pass and block: Shoeybi et al. 2019."""
    part = divide("gpt:layers=3,hidden=64,tokens=8,vocabulary=100", 16, tensor=4)
    for direction, layers in (("forward", 3 * 2 + 1), ("backward", 3 * 2 + 1)):
        found = [one for where, one in transfers(part) if where == direction]
        # One more forward for the embedding lookup, one more backward for the scores.
        assert found == [Transfer("all_reduce", 16 * 8 * 64 * 2, ("local",))] * layers
    gradients = sum(one.bytes for where, one in transfers(part) if where == "after_weight_gradient")
    assert gradients == 2 * (3 * 12 * 64 * 64 + 100 * 64) // 4


def test_tensor_parallelism_divides_the_work() -> None:
    undivided, part = divide("gpt", 4), divide("gpt", 4, tensor=8)
    flops = [
        sum(layer.work("forward", 4, 2).flops for layer, _ in one.layers)
        for one in (undivided, part)
    ]
    # 50,257 words do not divide by 8: the largest share has 6,283.
    assert flops[1] == (flops[0] + 2 * 4 * 1024 * 2048 * (8 * 6283 - 50_257)) // 8


def test_tensor_parallelism_of_layers_by_columns_gathers_their_outputs() -> None:
    part = divide(equal(3), 8, tensor=4)
    assert [one for where, one in transfers(part) if where == "forward"] == [
        Transfer("all_gather", 8 * 512 * 2, ("local",))
    ] * 2
    assert [one for where, one in transfers(part) if where == "backward"] == [
        Transfer("all_reduce", 8 * 512 * 2, ("local",))
    ] * 2


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_zero_sends_as_much_as_an_all_reduce_or_1_5_times(zero: int) -> None:
    """2 P (N - 1) / N bytes up to stage 2, then 3 P (N - 1) / N: Rajbhandari et al. 2020."""
    model = equal(3)
    run = step(model, 8, (4,), Parallelism(zero=zero)).run(IDEAL)  # type: ignore[arg-type]
    all_reduced = 2 * 3 * 2 * model.parameters // 4
    assert run.sent == all_reduced * (3 if zero == 3 else 2) // 2


def test_stage_three_waits_for_weights_in_both_passes() -> None:
    part = divide(equal(2), 8, zero=3)
    _, layer = part.layers[1]
    weights = Transfer("all_gather", 2 * 512 * 512, ("local", "vertical", "horizontal"))
    assert layer.before_forward == layer.before_backward == weights
    assert layer.after_weight_gradient == replace(weights, collective="reduce_scatter")
    assert divide(equal(2), 8, zero=1).layers[1][1].before_backward is None


def test_stage_three_gathers_blocks_of_a_decoder() -> None:
    """As FSDP wraps them: embedding, blocks and classifier, a collective each (Zhao et al. 2023).

    The next unit is gathered during a block, which has 4 layers.
    """
    part = divide("llama3_8b", 8, zero=3)
    named = {layer.name: moved for layer, moved in part.layers}
    block = 2 * sum(layer.parameters for layer, _ in part.layers[1:5])
    first, last = named["block_1_attention"], named["block_1_down"]
    assert first.before_forward is not None
    assert (first.before_forward.collective, first.before_forward.bytes) == ("all_gather", block)
    assert first.after_weight_gradient == replace(first.before_forward, collective="reduce_scatter")
    assert (last.before_forward, last.before_backward) == (None, first.before_forward)
    assert named["block_1_up"] == LayerTransfers()
    moves = [moved for _, moved in part.layers]
    for pass_ in ("before_forward", "before_backward", "after_weight_gradient"):
        assert sum(getattr(moved, pass_) is not None for moved in moves) == 32 + 2
    assert part.prefetch == 4
    # Stages of a pipeline have complete units.
    piped = divide("llama3_8b", 8, pipeline=8, micro_batches=8, zero=3)
    for pass_ in ("before_forward", "before_backward", "after_weight_gradient"):
        gathers = [getattr(moved, pass_) is not None for _, moved in piped.layers]
        assert gathers == [getattr(moved, pass_) is not None for moved in moves]
    assert piped.prefetch == 4


def test_experts_of_a_unit_have_a_collective_of_their_own() -> None:
    part = divide("mixtral_8x7b", 8, expert=4, zero=3)
    named = {layer.name: moved for layer, moved in part.layers}
    dense, experts = named["block_1_attention"], named["block_1_expert_up"]
    assert dense.before_forward is not None
    assert experts.before_forward is not None
    assert dense.before_forward.rings != experts.before_forward.rings
    assert named["block_1_projection"].before_forward is None
    assert named["block_1_expert_down"].before_forward is None


def test_expert_parallelism_exchanges_tokens_twice_per_pass() -> None:
    """To the experts and back; the weights of experts are reduced among fewer NPUs."""
    model = "gpt:layers=2,hidden=64,tokens=8,vocabulary=100,experts=16"
    part = divide(model, 4, tensor=4, expert=2)
    for direction in ("forward", "backward"):
        found = [one for where, one in transfers(part) if where == direction]
        exchanged = [one for one in found if one.collective == "all_to_all"]
        assert exchanged == [Transfer("all_to_all", 4 * 8 * 64 * 2, ("vertical",))] * 4
    named = {layer.name: (layer, moved) for layer, moved in part.layers}
    up, moved = named["block_1_up"]
    assert (up.experts, up.parameters) == (8, 16 * 64 * 256 // (4 * 2))
    assert moved.after_weight_gradient == Transfer("all_reduce", 2 * up.parameters, ("horizontal",))
    _, dense = named["block_1_projection"]
    assert dense.after_weight_gradient is not None
    assert dense.after_weight_gradient.rings == ("vertical", "horizontal")


def test_dlrm_exchanges_embedding_lookups() -> None:
    """Samples x tables x dimension per pass; the layers are all-reduced."""
    small = step(build("dlrm_small"), 16, (4, 2), Parallelism())
    tasks = small.programs(IDEAL)[0].tasks
    sizes = [task.amount for task in tasks if task.kind == "all_to_all"]
    assert sizes == [16 * 64 * 16 * 2] * 2
    assert sum(task.kind == "all_reduce" for task in tasks) == 7


def test_idle_time_of_a_pipeline_matches_its_closed_form() -> None:
    """The last stage waits for 3 forward passes before its first pass, and for 3 backward passes
    after its last. The first layer of the model has no input gradient."""
    parallelism = Parallelism(pipeline=4, micro_batches=8)
    piped = step(equal(8, 1 << 16), 64, (4,), parallelism)
    parts = piped.run(IDEAL).record.breakdown(3)
    assert parts.idle_ps / (parts.compute_ps + parts.overlap_ps) == pytest.approx(
        (3 * 2 + 4 + 4 + 3) / (8 * 6), rel=0.02
    )
    part = piped.divided(IDEAL)
    assert part.pipeline is not None
    assert (part.pipeline.ends, part.pipeline.rings) == ((2, 4, 6, 8), ("r0",))
    assert part.pipeline.messages == (64 // 8 * (1 << 16) * 2,) * 3
    first, second, *_ = piped.programs(IDEAL)
    kinds = [[task.kind for task in program.tasks] for program in (first, second)]
    assert (kinds[0].count("send"), kinds[0].count("recv")) == (8, 8)
    assert (kinds[1].count("send"), kinds[1].count("recv")) == (16, 16)


def test_model_chunks_shorten_the_bubble() -> None:
    """(stages - 1) / chunks instead of stages - 1 (Narayanan et al. 2021, section 2.2)."""
    model = equal(8, 1 << 10)
    totals = []
    for chunks, waits in ((1, 3 * 2 + 4 + 4 + 3), (2, 3 + 2 + 2 + 1)):
        parallelism = Parallelism(pipeline=4, micro_batches=8, interleaved=chunks)
        run = step(model, 64, (4,), parallelism).run(IDEAL)
        parts = run.record.breakdown(3)
        computing = parts.compute_ps + parts.overlap_ps
        assert parts.idle_ps / computing == pytest.approx(waits / (8 * 6), rel=0.1)
        totals.append(run.total)
    assert totals[1] < totals[0]


def test_sequence_parallelism_divides_all_reduces() -> None:
    gpt = "gpt:layers=4,hidden=64,tokens=8,vocabulary=100"
    full = divide(gpt, 8, tensor=4, pipeline=8, micro_batches=8)
    parts = divide(gpt, 8, tensor=4, pipeline=8, micro_batches=8, sequence=1)
    names = [moved.collective for _, moved in transfers(parts)]
    reduced = [moved for _, moved in transfers(full) if moved.collective == "all_reduce"]
    gradients = [one for one in reduced if one.rings != ("local",)]
    assert names.count("all_reduce") == len(gradients)
    assert names.count("reduce_scatter") == len(reduced) - len(gradients)
    assert full.pipeline is not None
    assert parts.pipeline is not None
    assert [4 * size for size in parts.pipeline.messages] == list(full.pipeline.messages)
    with pytest.raises(WorkloadError, match="without tensor"):
        divide(gpt, 8, sequence=1)


def test_the_order_of_kinds_places_groups() -> None:
    rings = [("a", 4), ("b", 2), ("c", 8)]
    usual = Parallelism(tensor=4, pipeline=8).on(rings)
    assert (usual.tensor, usual.data, usual.pipeline) == (("a",), ("b",), ("c",))
    inner: tuple[Kind, ...] = ("pipeline", "data", "expert", "tensor")
    placed = Parallelism(tensor=8, pipeline=4, order=inner).on(rings)
    assert (placed.tensor, placed.data, placed.pipeline) == (("c",), ("b",), ("a",))
    with pytest.raises(
        WorkloadError, match="expected each of tensor, context, expert, data, pipeline"
    ):
        Parallelism(order=("tensor", "data", "data", "expert")).on(rings)


@given(costs=st.lists(st.integers(0, 100), min_size=2, max_size=8), stages=st.integers(2, 4))
def test_stages_are_as_even_as_they_can_be(costs: list[int], stages: int) -> None:
    stages = min(stages, len(costs))
    bounds = shortest_stages(tuple(costs), stages)
    assert [start for start, _ in bounds] == [0, *(stop for _, stop in bounds[:-1])]
    assert bounds[-1][1] == len(costs)
    assert all(start < stop for start, stop in bounds)
    longest = max(sum(costs[start:stop]) for start, stop in bounds)
    every = combinations(range(1, len(costs)), stages - 1)
    cuts = ([0, *inner, len(costs)] for inner in every)
    best = min(max(sum(costs[a:b]) for a, b in pairwise(cut)) for cut in cuts)
    assert longest == best


@pytest.mark.parametrize(
    ("model", "kinds", "words"),
    [
        ("resnet50", {"tensor": 3}, ("`tensor = 3`", "4 x 2 x 8", "4 or 8 or 64")),
        ("resnet50", {"tensor": 128}, ("`tensor = 128`", "4 x 2 x 8")),
        ("resnet50", {"pipeline": 4}, ("`pipeline = 4`", "expected 1 or 8 or 16")),
        ("resnet50", {"tensor": 64, "pipeline": 8}, ("`pipeline = 8`", "expected 1")),
        ("resnet50", {"pipeline": 8, "micro_batches": 5}, ("`micro_batches = 5`", "32 samples")),
        ("resnet50", {"expert": 4}, ("`expert = 4`", "1 experts")),
        ("gpt:experts=6", {"expert": 4}, ("`expert = 4`", "6 experts")),
        ("dlrm", {"tensor": 4}, ("dlrm", "embedding tables")),
        (equal(4), {"pipeline": 8}, ("at most 4 chunks", "8 stages")),
    ],
)
def test_indivisible_parallelism_is_refused(
    model: str | Model, kinds: dict[str, int], words: tuple[str, ...]
) -> None:
    with pytest.raises(WorkloadError) as refused:
        divide(model, 32, **kinds)
    for word in words:
        assert word in str(refused.value)


def test_npus_of_a_stage_act_alike() -> None:
    parallelism = Parallelism(tensor=2, pipeline=4, micro_batches=4, zero=3)
    piped = step(build("gpt:layers=4,hidden=64,tokens=8,vocabulary=100"), 8, (2, 2, 4), parallelism)
    run = piped.run(IDEAL)
    assert piped.numbers(IDEAL) == [npu // 4 for npu in range(16)]
    for npu in range(16):
        assert run.record.breakdown(npu) == run.record.breakdown(npu // 4 * 4)


def test_layers_of_a_stage_are_those_of_the_model() -> None:
    part = divide("vgg16", 8, pipeline=8)
    names = [layer.name for layer in build("vgg16").layers]
    assert [layer.name for layer, _ in part.layers] == names
    assert part.pipeline is not None
    assert part.pipeline.ends[-1] == len(names)
    assert all(isinstance(layer, ModelLayer) for layer, _ in part.layers)
