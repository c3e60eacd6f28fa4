"""Memory of training compared with published formulas and figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tutti.workloads import Parallelism, build
from tutti.workloads.decoder import Decoder
from tutti.workloads.errors import WorkloadError
from tutti.workloads.memory import States, block_activations, in_flight, memory

GPT3 = Decoder(
    layers=96,
    hidden=12_288,
    heads=96,
    kv_heads=96,
    wide=4 * 12_288,
    vocabulary=51_200,
    tied=True,
    gated=False,
    tokens=2048,
)
MT_NLG = replace(GPT3, layers=105, hidden=20_480, heads=128, kv_heads=128, wide=4 * 20_480)


@pytest.mark.parametrize("shape", [GPT3, MT_NLG])
@pytest.mark.parametrize(
    ("recompute", "sequence", "factors"),
    [
        # Korthikanti et al. 2022, table 2: bytes per token are h (c + d / t + e 5 a s / (h t)).
        ("none", False, (10, 24, 1)),
        ("none", True, (0, 34, 1)),
        ("selective", False, (10, 24, 0)),
        ("selective", True, (0, 34, 0)),
        ("full", False, (2, 0, 0)),
    ],
)
@pytest.mark.parametrize("tensor", [1, 8])
def test_activations_of_a_block_have_the_published_formula(
    shape: Decoder, recompute: str, sequence: bool, factors: tuple[int, int, int], tensor: int
) -> None:
    kinds = Parallelism(
        tensor=tensor,
        sequence=sequence and tensor > 1,
        recompute=recompute,  # type: ignore[arg-type]
    )
    around, inside, scores = factors
    expected = around + inside / tensor
    expected += scores * 5 * shape.heads * shape.tokens / shape.hidden / tensor
    assert block_activations(shape, 0, kinds) == pytest.approx(expected * shape.hidden)


@pytest.mark.parametrize(("shape", "saved"), [(GPT3, 0.70), (MT_NLG, 0.65)])
def test_selective_recomputation_saves_the_published_share(shape: Decoder, saved: float) -> None:
    """Korthikanti et al. 2022, section 5: 70 % for GPT-3 and 65 % for MT-NLG."""
    stored = [
        block_activations(shape, 0, Parallelism(recompute=kind)) for kind in ("none", "selective")
    ]
    assert 1 - stored[1] / stored[0] == pytest.approx(saved, abs=0.005)


@pytest.mark.parametrize(
    ("zero", "published"),
    # Rajbhandari et al. 2020, figure 1: 7.5 B weights on 64 NPUs, 2 + 2 + 12 B per weight.
    [(0, 120), (1, 31.4), (2, 16.6), (3, 1.9)],
)
def test_zero_stages_have_the_published_states(zero: int, published: float) -> None:
    model = build("gpt:layers=36,hidden=4096,tokens=128,vocabulary=60800")
    assert model.parameters / 1e9 == pytest.approx(7.5, abs=0.005)
    kinds = Parallelism(zero=zero)  # type: ignore[arg-type]
    found = memory(model, kinds, data=64, states=States(gradients=2))
    assert found.states / 1e9 == pytest.approx(published, abs=0.06)


def test_the_distributed_optimizer_has_the_published_bytes() -> None:
    """Megatron-Core, distributed optimizer, BF16 weights and FP32 gradients: 18, or 6 + 12 / d."""
    model = build("llama3_8b")
    for zero, expected in ((0, 18), (1, 6 + 12 / 16)):
        kinds = Parallelism(zero=zero)  # type: ignore[arg-type]
        found = memory(model, kinds, data=16)
        assert found.states == pytest.approx(expected * model.parameters)


def test_stages_store_the_micro_batches_in_flight() -> None:
    """1F1B: p - k. Interleaved: (1 + (p - 1) / (p v)) L blocks on the first (Korthikanti)."""
    kinds = Parallelism(pipeline=8, micro_batches=32)
    assert [in_flight(kinds, stage) for stage in (0, 3, 7)] == [8, 5, 1]
    assert in_flight(replace(kinds, micro_batches=8, schedule="gpipe"), 7) == 8
    interleaved = replace(kinds, interleaved=3)
    assert in_flight(interleaved, 0) / (8 * 3) == 1 + 7 / (8 * 3)
    assert in_flight(Parallelism(), 0) == 1


def test_a_pipeline_stores_as_much_as_no_pipeline_on_its_first_stage() -> None:
    """L blocks of one micro-batch, with and without a pipeline: p micro-batches of L / p."""
    model = build("llama3_8b")
    kinds = Parallelism(tensor=2, sequence=True, recompute="selective")
    single = memory(model, kinds, data=1)
    piped = memory(model, replace(kinds, pipeline=4, micro_batches=8), data=1)
    scores = 8192 * (4 * 4096 + 4 * 128_256) // 2
    assert piped.activations == pytest.approx(single.activations - scores, rel=1e-6)
    assert piped.weights < single.weights / 3


def test_experts_are_partitioned_among_fewer_npus() -> None:
    """Mixtral 8x7B on 64 NPUs with 8-way experts: 45.1 B expert weights on 8, others on 64."""
    model = build("mixtral_8x7b")
    found = memory(model, Parallelism(expert=8, zero=1), data=8)
    experts = sum(layer.parameters for layer in model.layers if layer.experts > 1)
    others = model.parameters - experts
    assert found.weights == 2 * (experts // 8 + others)
    assert found.optimizer == pytest.approx(12 * (experts / 64 + others / 64))


def test_context_parallelism_divides_activations_only() -> None:
    model = build("llama3_8b")
    found = [memory(model, Parallelism(context=c), data=8 // c) for c in (1, 4)]
    assert found[0].activations == pytest.approx(4 * found[1].activations)
    assert found[0].states == found[1].states


def test_full_recomputation_needs_a_block_at_a_time() -> None:
    model = build("llama3_8b")
    assert model.decoder is not None
    found = memory(model, Parallelism(recompute="full"), data=1)
    assert found.working == 8192 * block_activations(
        model.decoder,
        0,
        Parallelism(recompute="selective"),
    )


def test_other_models_are_refused() -> None:
    with pytest.raises(WorkloadError, match="resnet50 is not modelled: expected a decoder"):
        memory(build("resnet50"), Parallelism(), data=1)
    with pytest.raises(WorkloadError, match="64 model chunks: expected at most 33"):
        memory(build("llama3_8b"), Parallelism(pipeline=64, micro_batches=64), data=1)
