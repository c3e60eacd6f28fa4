"""Plans of training steps: the space, the closed form, the simulation and published runs."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tutti.base.errors import ConfigError
from tutti.platforms.files.presets import platform_of
from tutti.platforms.files.scaled import scaled
from tutti.platforms.nodes import domain_of
from tutti.platforms.npus import npu
from tutti.training.endpoint import configurations
from tutti.training.files.step_file import find_model
from tutti.training.plan import (
    Cluster,
    FixedDegrees,
    Plan,
    PlanSearch,
    Ranked,
    amounts,
    estimate,
    plans,
    ranked,
    search,
)
from tutti.training.plan.efficiency import NAMES, rates_of
from tutti.training.plan.estimate import BLOCKING, least_data
from tutti.training.plan.explain import exceeds, explained, table_of
from tutti.training.plan.simulate import simulate, step_of
from tutti.training.plan.view.plan import PLANS, plan_view
from tutti.workloads import Model, Parallelism, build
from tutti.workloads.errors import WorkloadError
from tutti.workloads.kernels import TERMS
from tutti.workloads.memory import memory
from tutti.workloads.pieces import Pieces

if TYPE_CHECKING:
    from tutti.workloads.decoder import Decoder


def cluster(gpus: int, **given: float) -> Cluster:
    raw = platform_of("dgx_h100_cluster", folder=Path(), source="test")
    platform = scaled(raw, gpus, source="test")
    return Cluster(platform=platform, npu=npu("h100"), **given)  # type: ignore[arg-type]


def shape(name: str) -> Decoder:
    decoder = build(name).decoder
    assert decoder is not None
    return decoder


def found(model: Model, gpus: Cluster, batch: int) -> PlanSearch:
    return PlanSearch(cluster=gpus, model=model, batch=batch, fitting=[], exceeding=[])


@pytest.mark.parametrize(("name", "experts"), [("llama3_8b", 1), ("mixtral_8x7b", 8)])
def test_every_plan_uses_all_gpus_and_the_batch(name: str, experts: int) -> None:
    decoder = shape(name)
    made = list(plans(decoder, 64, 128, 8))
    assert len({(one.kinds, one.micro_batch) for one in made}) == len(made)
    for one in made:
        kinds = one.kinds
        assert kinds.tensor * kinds.context * kinds.expert * kinds.pipeline * one.data == 64
        assert one.samples * one.data * kinds.expert == 128
        assert experts % kinds.expert == 0
        assert kinds.tensor <= 8
        assert kinds.pipeline * kinds.interleaved <= decoder.layers
        assert kinds.micro_batches >= kinds.pipeline
    assert {one.kinds.expert for one in made} == {n for n in (1, 2, 4, 8) if n <= experts}


@pytest.mark.parametrize(
    ("fixed", "words"),
    [
        (FixedDegrees(tensor=3), "tensor 3 = 3 GPUs: expected a divisor of 64"),
        (
            FixedDegrees(tensor=2, context=1, expert=1, data=2, pipeline=2),
            "tensor 2 x context 1 x expert 1 x data 2 x pipeline 2 = 8 GPUs",
        ),
        (FixedDegrees(expert=16), "`expert = 16` does not divide 8 experts"),
        (FixedDegrees(tensor=64), "`tensor = 64` does not divide 32 heads"),
        (FixedDegrees(pipeline=64), "64 stages: expected at most 32"),
    ],
)
def test_degrees_that_do_not_divide_are_refused(fixed: FixedDegrees, words: str) -> None:
    with pytest.raises(WorkloadError, match=words):
        list(plans(shape("mixtral_8x7b"), 64, 128, 8, fixed))


def test_groups_within_a_domain() -> None:
    kinds = Parallelism(tensor=4, context=2, pipeline=4, micro_batches=4)
    plan = Plan(kinds=kinds, data=4, micro_batch=1)
    assert plan.inside(8) == ["tensor", "context"]
    assert plan.inside(128) == ["tensor", "context", "data", "pipeline"]
    assert plan.stride("pipeline") == 32


def test_a_cluster_knows_its_domain_and_rates() -> None:
    gpus = cluster(32)
    assert (gpus.gpus, gpus.domain) == (32, 8)
    assert gpus.inner.rate == pytest.approx(370.8e9)
    assert gpus.outer.rate == pytest.approx(49e9)
    # 90 % of 81,559 MiB.
    assert gpus.capacity == pytest.approx(0.9 * 81_559 * 2**20, rel=1e-3)


def test_platforms_have_other_numbers_of_gpus() -> None:
    assert cluster(2048).platform.routes is not None
    for gpus, words in ((12, "such as 8 or 16"), (1048, "such as 1,040 or 1,056")):
        with pytest.raises(ConfigError, match=words):
            cluster(gpus)
    racks = platform_of("gb200_nvl72_cluster", folder=Path(), source="test")
    for gpus, domain in ((64, 64), (128, 64), (72, 72), (576, 72)):
        routes = scaled(racks, gpus, source="test").routes
        assert routes is not None
        assert (routes.topology.ranks, domain_of(routes)) == (gpus, domain)
    with pytest.raises(
        ConfigError, match=r"equally many in all, such as 68 \(1 x 68\) or 72 \(1 x 72\)"
    ):
        scaled(racks, 70, source="test")
    raw = platform_of("dgx_h100", folder=Path(), source="test")
    with pytest.raises(ConfigError, match="another number of NPUs"):
        scaled(raw, 16, source="test")


@pytest.mark.parametrize(
    ("gpus", "tokens", "context", "data", "samples", "published"),
    # Grattafiori et al. 2024, table 4: TP 8, PP 16; one block per model chunk (figure 6).
    [
        (8192, 8192, 1, 64, 32, 0.43),
        (16_384, 8192, 1, 128, 16, 0.41),
        (16_384, 131_072, 16, 8, 16, 0.38),
    ],
)
def test_the_closed_form_is_near_the_published_mfu_of_llama_3(
    gpus: int, tokens: int, context: int, data: int, samples: int, published: float
) -> None:
    model = build(f"llama3_405b:tokens={tokens}")
    kinds = Parallelism(
        tensor=8,
        context=context,
        pipeline=16,
        sequence=True,
        micro_batches=samples,
        interleaved=8,
        zero=1,
        recompute="selective",
    )
    where = cluster(gpus)
    took = estimate(Pieces(model), Plan(kinds=kinds, data=data, micro_batch=1), where)
    assert found(model, where, samples * data).mfu(took) == pytest.approx(published, abs=0.025)


def test_the_amounts_have_the_flops_of_the_model() -> None:
    """One GPU per replica: all FLOPs at the peak of BF16, with attention's recomputation."""
    model, where = build("llama3_8b"), cluster(16)
    kinds = Parallelism(recompute="selective", zero=1)
    plan = Plan(kinds=kinds, data=16, micro_batch=1)
    step = amounts(Pieces(model), plan, where)
    names = [TERMS.index(name) for name in ("products", "attention", "classifier")]
    seconds = (step.forward + step.backward)[0, names].sum()
    decoder = shape("llama3_8b")
    again = 2 * decoder.layers * decoder.attended * 2 * decoder.hidden
    assert seconds * where.peak == pytest.approx(decoder.tokens * (decoder.flops + again), rel=1e-3)
    # Gradients in FP32 and weights in BF16, in rings through 16 GPUs and 8 adapters of each host.
    moved = float(step.gather[0] + step.reduce[0])
    slowest = min(where.inner.rate, 8 * where.outer.rate)
    assert moved == pytest.approx(6 * model.parameters * 15 / 16 / slowest, rel=0.05)


def test_a_given_efficiency_replaces_the_fitted_ones() -> None:
    model = build("llama3_8b")
    slow, fast = (cluster(16, efficiency=one).coefficients(model) for one in (0.4, 0.8))
    names = [name for name, a, b in zip(NAMES, slow, fast, strict=True) if a != b]
    assert names == ["products", "grouped", "attention", "classifier"]
    assert slow[0] == pytest.approx(2.5)


@pytest.mark.parametrize(
    ("name", "precision"), [("h100", "mxfp8"), ("mi300x", "mxfp8"), ("h100", "nvfp4")]
)
def test_formats_of_later_gpus_are_refused(name: str, precision: Any) -> None:
    with pytest.raises(WorkloadError, match=f"{name} has no {precision}: expected bf16 or fp8\n"):
        rates_of(npu(name), precision)
    assert rates_of(npu("b200"), precision).flops > rates_of(npu("b200"), "bf16").flops


def test_bf16_gradients_take_half_of_the_memory() -> None:
    model = build("llama3_8b:tokens=2048")
    first, second = (
        ranked(model, replace(cluster(8), gradients=size), 16, FixedDegrees(tensor=8)).fitting[0]
        for size in (4, 2)
    )
    assert first.memory.gradients == 2 * second.memory.gradients


def test_kernels_take_longer_with_fewer_resources() -> None:
    where = cluster(8)
    compute, layer = where.compute(build("llama3_8b")), build("llama3_8b").layers[1]
    left = (where.peak, where.npu.memory_bandwidth)
    full, half = (compute.time(layer, "forward", 1, 2, (left[0] // n, left[1])) for n in (1, 2))
    assert full < half < 2 * full


@pytest.mark.parametrize(
    ("kinds", "data"),
    [
        (Parallelism(tensor=8, sequence=True), 2),
        (Parallelism(context=4, zero=1), 4),
        (Parallelism(pipeline=4, micro_batches=8, zero=1), 4),
        (Parallelism(pipeline=4, interleaved=2, micro_batches=8, zero=1), 4),
        (Parallelism(zero=3), 16),
        # Context groups that span hosts, whose gradients share links with tensor parallelism.
        (Parallelism(tensor=4, sequence=True, context=4, micro_batches=4, zero=3), 1),
        # Stages and chunks that differ, and as many micro-batches as stages.
        (Parallelism(pipeline=8, micro_batches=8, zero=1), 2),
        (Parallelism(pipeline=4, interleaved=8, micro_batches=4, zero=1), 4),
    ],
)
def test_the_closed_form_is_near_the_simulation(kinds: Parallelism, data: int) -> None:
    model, where = build("llama3_8b:tokens=4096"), cluster(16)
    plan = Plan(kinds=replace(kinds, recompute="selective"), data=data, micro_batch=1)
    quick, exact = estimate(Pieces(model), plan, where), simulate(Pieces(model), plan, where)
    # With ZeRO 3, the closed form adds the least exposed share of each gather.
    assert quick.step == pytest.approx(exact.step, rel=0.06 if kinds.zero == 3 else 0.05)
    assert quick.compute == pytest.approx(exact.compute, rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["llama3_8b:tokens=4096", "mixtral_8x7b"])
def test_random_plans_are_near_the_simulation(name: str) -> None:
    """25 plans of each model: all are within 5 %; the worst is at 5.0 %."""
    model, where = build(name), cluster(16)
    pieces = Pieces(model)
    made = [
        one
        for one in plans(shape(name), 16, 32, 8)
        if memory(pieces, one.kinds, data=one.data, micro_batch=one.micro_batch).total < 200e9
    ]
    for one in Random(7).sample(made, 25):
        exact = simulate(pieces, one, where).step
        assert estimate(pieces, one, where).step == pytest.approx(exact, rel=0.051), one


def test_layers_that_differ_take_the_time_of_the_closed_form(tmp_path: Path) -> None:
    """Layers of Llama 4: launches of some exceed the GPU's time, and stages are not equal."""
    text = {
        "head_dim": 128, "hidden_size": 5120, "interleave_moe_layer_step": 2,
        "intermediate_size": 8192, "intermediate_size_mlp": 16_384, "model_type": "llama4_text",
        "num_attention_heads": 40, "num_experts_per_tok": 1, "num_hidden_layers": 12,
        "num_key_value_heads": 8, "num_local_experts": 16, "vocab_size": 202_048,
    }  # fmt: skip
    (tmp_path / "own.json").write_text(json.dumps(text))
    pieces, where = Pieces(find_model("hf:own.json,tokens=4096", tmp_path)), cluster(16)
    for kinds, data in (
        (Parallelism(tensor=4, sequence=True, context=4, micro_batches=8, zero=1), 1),
        (Parallelism(tensor=2, sequence=True, pipeline=2, micro_batches=4, zero=1), 4),
        (Parallelism(expert=2, expert_domain=8, pipeline=4, micro_batches=8, zero=1), 2),
        (Parallelism(tensor=8, sequence=True, pipeline=2, micro_batches=4), 1),
    ):
        plan = Plan(kinds=replace(kinds, recompute="selective"), data=data, micro_batch=1)
        quick, exact = estimate(pieces, plan, where), simulate(pieces, plan, where)
        assert quick.compute == pytest.approx(exact.compute, rel=0.01)
        assert quick.step == pytest.approx(exact.step, rel=0.05)


@pytest.mark.parametrize(
    "kinds",
    [
        Parallelism(expert=8, expert_domain=8, pipeline=2, micro_batches=4, zero=1),
        Parallelism(tensor=4, sequence=True, pipeline=2, micro_batches=4, zero=1),
    ],
)
def test_collectives_alone_are_near_all_flows(
    kinds: Parallelism, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, where = build("mixtral_8x7b"), cluster(16)
    data = 16 // (kinds.tensor * kinds.pipeline * kinds.expert)
    plan = Plan(kinds=replace(kinds, recompute="selective"), data=data, micro_batch=1)
    flows = simulate(Pieces(model), plan, where)
    monkeypatch.setattr("tutti.training.plan.simulate.MOST_FLOWS", 0)
    isolated = simulate(Pieces(model), plan, where)
    assert (isolated.isolated, flows.isolated) == (True, False)
    assert isolated.step == pytest.approx(flows.step, rel=0.06)


def test_a_plan_of_collectives_alone_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tutti.training.plan.simulate.MOST_FLOWS", 0)
    searched = search(build("llama3_8b:tokens=2048"), cluster(8), 16, simulated=1)
    (table,) = plan_view(searched, 2).tables
    assert "^ each collective simulated once" in table.caption
    steps = [
        str(column.get(row)) for column in PLANS if column.name == "step" for row in table.rows
    ]
    assert sum(text.startswith("^") for text in steps) == 1


@pytest.mark.parametrize(
    "given", [{}, {"dispatch_format": "fp8", "expert_imbalance": 1.3}], ids=["even", "skewed"]
)
def test_experts_in_the_closed_form_and_in_the_simulation(given: dict[str, Any]) -> None:
    model, where = build("mixtral_8x7b"), cluster(16)
    kinds = Parallelism(expert=8, expert_domain=8, zero=1, recompute="selective", **given)
    plan = Plan(kinds=kinds, data=2, micro_batch=1)
    quick, exact = estimate(Pieces(model), plan, where), simulate(Pieces(model), plan, where)
    # With ZeRO 3, the closed form adds the least exposed share of each gather.
    assert quick.step == pytest.approx(exact.step, rel=0.06 if kinds.zero == 3 else 0.05)
    assert quick.compute == pytest.approx(exact.compute, rel=0.01)
    assert quick.exposed["expert"] == pytest.approx(exact.exposed["expert"], rel=0.1)


@pytest.mark.parametrize(
    "kinds",
    [
        Parallelism(tensor=2, sequence=True, pipeline=4, micro_batches=16),
        Parallelism(context=2, pipeline=4, interleaved=2, micro_batches=16, zero=0),
    ],
)
def test_many_micro_batches_are_extrapolated(kinds: Parallelism) -> None:
    model, where = build("llama3_8b:tokens=2048"), cluster(8)
    plan = Plan(kinds=kinds, data=1, micro_batch=1)
    extrapolated = simulate(Pieces(model), plan, where)
    complete = step_of(model, plan, where).run(configurations()["ideal"])
    # The simulation exposes collectives of layers in full, and has no update.
    shares = dict(zip(NAMES, where.coefficients(model), strict=True))
    full = sum(
        seconds / (shares[kind] if kind in BLOCKING else 1)
        for kind, seconds in extrapolated.exposed.items()
    )
    # A share of the gradients is exposed, although the simulation hides them.
    full -= least_data(Pieces(model), plan, where)
    total = extrapolated.compute + extrapolated.idle + full
    assert total == pytest.approx(complete.total.ps * 1e-12, rel=0.01)


@pytest.mark.parametrize(
    ("kinds", "data"),
    [(Parallelism(zero=1), 32), (Parallelism(pipeline=2, micro_batches=2, zero=1), 16)],
)
def test_a_few_replicas_represent_all(kinds: Parallelism, data: int) -> None:
    """16 of 32 GPUs are simulated, and the closed form adds the difference."""
    model, where = build("llama3_8b:tokens=4096"), cluster(32)
    raw = platform_of("dgx_h100_cluster", folder=Path(), source="test")
    fast = replace(where, smaller=partial(scaled, raw, source="test"))
    plan = Plan(kinds=replace(kinds, recompute="selective"), data=data, micro_batch=1)
    few, all_of_them = (simulate(Pieces(model), plan, one) for one in (fast, where))
    assert few.step == pytest.approx(all_of_them.step, rel=0.05)


def test_a_search_ranks_simulates_and_explains() -> None:
    model, where = build("llama3_8b"), cluster(16)
    result = search(model, where, 64, fixed=FixedDegrees(tensor=2, pipeline=1), simulated=2)
    steps = [one.timing.step for one in result.fitting]
    assert steps == sorted(steps)
    assert result.fitting[0].simulated is not None
    assert 2 <= sum(one.simulated is not None for one in result.fitting) <= 4
    corrections = {one.correction for one in result.fitting if one.simulated is None}
    assert all(one == pytest.approx(1, abs=0.2) for one in corrections)
    assert all(one.memory.total <= where.capacity for one in result.fitting)
    assert all(one.memory.total > where.capacity for one in result.exceeding)
    assert 0.3 < result.mfu(result.fitting[0].timing) < 0.6
    words = " ".join(explained(result))
    assert "Within 8 GPUs of a scale-up domain: tensor" in words
    assert "plans exceed 77 GB per GPU" in words
    assert re.search(
        r"compute of the best's slowest stage, by the closed form: \d\d% matrix products", words
    )
    assert table_of(result.fitting[0]).startswith("[parallelism]\ntensor = 2\n")


def test_a_model_that_does_not_fit_is_refused() -> None:
    with pytest.raises(WorkloadError, match=r"llama3_405b does not fit 16 GPUs") as refused:
        search(build("llama3_405b"), cluster(16), 16, fixed=FixedDegrees(tensor=8), simulated=0)
    # Working memory has two gathered blocks of 3.19 G weights / 8, in 2 B: 1.6 GB.
    assert "needs 460.9 GB per GPU (304.4 GB optimizer states" in str(refused.value)
    assert "states alone need 96 GPUs" in str(refused.value)


def test_a_batch_without_plans_is_refused() -> None:
    with pytest.raises(WorkloadError, match="no plan of 3 sequences on 16 GPUs"):
        search(build("llama3_8b"), cluster(16), 3, fixed=FixedDegrees(data=16), simulated=0)


def test_the_published_plan_of_llama_3_is_rejected_by_1_2_gb() -> None:
    """Grattafiori et al. 2024, table 4: 8K tokens, TP 8, PP 16, DP 128, no recomputation.

    FSDP shards optimizer states and gradients. All 16 micro-batches of 8 blocks are in flight.
    """
    kinds = Parallelism(
        tensor=8,
        pipeline=16,
        sequence=True,
        micro_batches=16,
        interleaved=4,
        zero=2,
        recompute="selective",
    )
    where = cluster(32)
    used = memory(build("llama3_405b"), kinds, data=128)
    token = 2 * (2 * 16_384 + 2048 + 3 * 53_248) + 2 * 4 * 16_384
    assert used.activations == 8192 * 16 * 8 * token // 8
    block = 16_384 * (2 * 16_384 + 2048 + 3 * 53_248)
    assert used.weights == 2 * 8 * block // 8
    assert used.gradients == pytest.approx(4 * block / 128)
    # The gradients of a model chunk of two blocks, before they are reduced.
    assert used.working == 4 * 2 * block // 8
    assert exceeds(used, where.capacity) == (
        "exceeds 77.0 GB by 1.2 GB: 68.2 GB activations, 6.4 GB weights, 3.2 GB working memory, "
        "0.3 GB optimizer states, 0.1 GB gradients"
    )


def test_undivided_experts_divide_tensor_groups() -> None:
    """Expert parallelism over 32 GPUs with tensor parallelism over 2, as in Megatron-Core."""
    fixed = FixedDegrees(tensor=2, context=1, pipeline=8, expert=32, micro_batch=1, chunks=1)
    made = list(plans(shape("qwen3_235b_a22b"), 256, 2048, 8, fixed))
    assert made
    assert all(one.kinds.expert == 16 and one.kinds.undivided_experts for one in made)
    assert {one.expert_ranks for one in made} == {32}
    assert {one.data for one in made} == {1}


@pytest.mark.parametrize(
    ("fixed", "expected"),
    [
        (FixedDegrees(micro_batch=4), {"micro_batch": {4}}),
        (FixedDegrees(chunks=5, pipeline=4), {"interleaved": {5}}),
        (FixedDegrees(recompute="none"), {"recompute": {"none"}}),
        (FixedDegrees(zero=3), {"zero": {3}}),
    ],
)
def test_a_recipe_is_fixed(fixed: FixedDegrees, expected: dict[str, set[object]]) -> None:
    made = list(plans(shape("llama3_70b"), 64, 256, 8, fixed))
    assert made
    for key, values in expected.items():
        got = {getattr(one, key, None) or getattr(one.kinds, key) for one in made}
        assert got == values


def test_groups_that_span_domains_use_all_adapters() -> None:
    """A data group of 16 GPUs with 4 per host: rings within hosts, and 4 rings between them."""
    kinds = Parallelism(tensor=2, sequence=True)
    plan = Plan(kinds=kinds, data=16, micro_batch=1)
    assert list(plan.dimensions(8)) == [("tensor", 2, True), ("data", 4, True), ("data", 4, False)]


def test_128_model_chunks_hold_126_blocks_the_embedding_and_the_classifier() -> None:
    pieces = Pieces(build("llama3_405b"))
    chunks = pieces.chunks(128)
    assert [sum(one.values()) for one in chunks] == [1] * 128
    assert chunks[1] == chunks[2] != chunks[0]
    with pytest.raises(WorkloadError, match="129 model chunks"):
        pieces.chunks(129)


def test_zero_2_needs_one_round_of_an_interleaved_pipeline() -> None:
    made = [one.kinds for one in plans(shape("llama3_70b"), 64, 64, 8) if one.kinds.zero == 2]
    assert made
    assert all(one.interleaved > 1 and one.micro_batches == one.pipeline for one in made)


def test_a_ring_exchange_hides_behind_attention() -> None:
    """Its exposed time is that of the gathers, less n - 1 of n parts of attention."""
    model, where = build("llama3_8b:tokens=32768"), cluster(16)
    kinds = Parallelism(context=4, zero=1, recompute="selective")
    ring = replace(kinds, cp_comm_type="p2p")
    gathered, sent = (
        estimate(Pieces(model), Plan(kinds=one, data=4, micro_batch=1), where)
        for one in (kinds, ring)
    )
    assert sent.compute == pytest.approx(gathered.compute)
    assert sent.exposed["context"] < 2 * gathered.exposed["context"]
    used = memory(model, ring, data=4)
    one = Ranked(plan=Plan(kinds=ring, data=4, micro_batch=1), memory=used, estimated=sent)
    assert 'cp_comm_type = "p2p"' in table_of(one)


@pytest.mark.parametrize("name", ["llama3_8b", "mixtral_8x7b"])
def test_stored_costs_change_no_estimate(name: str) -> None:
    """Estimates of a search, which share costs of blocks, compared with those of plans alone."""
    model, gpus = build(name), cluster(16)
    result = ranked(model, gpus, 16)
    pieces = Pieces(model)
    for one in (*result.fitting, *result.exceeding)[::7]:
        assert one.estimated == estimate(pieces, one.plan, gpus)
