"""Expected copies of tokens compared with counted ones."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from tutti.workloads import Parallelism, build
from tutti.workloads.errors import WorkloadError
from tutti.workloads.experts import STAGES, ExpertLayer, Placement, copies, sampled_choices
from tutti.workloads.sharing import mean_copies, shared_copies


@pytest.mark.parametrize(
    ("experts", "top", "ranks", "domain", "most"),
    [(256, 8, 32, 8, None), (128, 4, 8, 8, None), (64, 2, 16, 4, None), (256, 8, 32, 8, 2)],
)
def test_mean_copies_are_those_of_sampled_tokens(
    experts: int, top: int, ranks: int, domain: int, most: int | None
) -> None:
    layer = ExpertLayer(hidden=64, experts=experts, top_k=top, tokens=256, most_nodes=most)
    placed = Placement.of(experts, ranks=ranks, per_node=domain)
    chosen = sampled_choices(layer, placed, np.full(experts, 1 / experts), seed=1)
    sent = copies(chosen, placed, "normal")
    near = placed.nodes[:, None] == placed.nodes
    own = np.eye(ranks, dtype=bool)
    tokens = ranks * layer.tokens
    groups = ranks // domain
    between, within = mean_copies(
        experts, top, ranks=ranks, domain=domain, groups=groups, most_groups=most
    )
    assert between == pytest.approx(sent[~near].sum() / tokens, rel=0.03)
    assert within == pytest.approx(sent[near & ~own].sum() / tokens, rel=0.03)


@pytest.mark.parametrize(("ranks", "domain"), [(64, 8), (32, 8), (64, 32), (8, 8)])
def test_groups_limit_copies_as_sampled(ranks: int, domain: int) -> None:
    """DeepSeek-V3: 4 of 8 groups of 32 experts, whether a domain has one group or several."""
    layer = ExpertLayer(hidden=64, experts=256, top_k=8, tokens=256, groups=8, most_groups=4)
    placed = Placement.of(256, ranks=ranks, per_node=domain)
    chosen = sampled_choices(layer, placed, np.full(256, 1 / 256), seed=1)
    sent = copies(chosen, placed, "normal")
    near = placed.nodes[:, None] == placed.nodes
    own = np.eye(ranks, dtype=bool)
    between, within = mean_copies(256, 8, ranks=ranks, domain=domain, groups=8, most_groups=4)
    tokens = ranks * layer.tokens
    assert between == pytest.approx(sent[~near].sum() / tokens, rel=0.03)
    assert within == pytest.approx(sent[near & ~own].sum() / tokens, rel=0.03)
    free, _ = mean_copies(256, 8, ranks=ranks, domain=domain)
    assert between <= free


def test_an_expert_per_rank_shares_no_copies() -> None:
    """With one expert per NPU of one domain, dispatch sends a copy per selected expert."""
    assert shared_copies(8, 2, ranks=8, domain=8) == pytest.approx(1)


def test_copies_for_a_domain_are_sent_once() -> None:
    """8 of 256 experts on 4 domains of 8: 3 x 0.91 copies leave a domain, instead of 6."""
    between, _ = mean_copies(256, 8, ranks=32, domain=8)
    assert between == pytest.approx(3 * (1 - 0.75**8), rel=0.01)
    assert shared_copies(256, 8, ranks=32, domain=8) == pytest.approx(between / 6)


def _exchanged(**kinds: object) -> dict[str, int]:
    """Returns the bytes of the all-to-alls around the experts of DeepSeek-V3 on 32 GPUs."""
    parallelism = Parallelism(expert=32, expert_domain=8, **kinds)  # type: ignore[arg-type]
    model = build("deepseek_v3:tokens=256")
    part = parallelism.divide(model, 1, 2, [("expert", 32)], lambda layer, _: layer.macs)
    of = dict(zip((layer.name for layer in model.layers), part.layers, strict=True))
    found = {}
    for name, layer in (("dispatch", "block_9_shared_down"), ("combine", "block_9_expert_down")):
        _, moved = of[layer]
        found[name] = next(
            one.bytes for one in moved.after_forward if one.collective == "all_to_all"
        )
    return found


@pytest.mark.parametrize("sent", ["fp8", "bf16"])
def test_a_step_dispatches_the_bytes_that_moe_counts(sent: Literal["fp8", "bf16"]) -> None:
    """Bytes of a GPU for other domains: expected ones of the step, and those of sampled tokens."""
    layer = ExpertLayer(
        hidden=7168, experts=256, top_k=8, tokens=256, dispatch=sent, groups=8, most_groups=4
    )
    placed = Placement.of(256, ranks=32, per_node=8)
    chosen = sampled_choices(layer, placed, np.full(256, 1 / 256), seed=1)
    matrix = copies(chosen, placed, "normal")
    between = matrix[placed.nodes[:, None] != placed.nodes].sum() / 32
    found = _exchanged(dispatch_format=sent)
    for stage in STAGES:
        counted = between * layer.token_bytes(stage)
        # An all-to-all sends equal parts to all GPUs: 24 of 32 are in other domains.
        assert found[stage] * 24 / 32 == pytest.approx(counted, rel=0.03)


def test_the_busiest_gpu_has_more_tokens() -> None:
    even, skewed = (_exchanged(expert_imbalance=one) for one in (1.0, 1.5))
    assert skewed["combine"] == pytest.approx(1.5 * even["combine"], rel=1e-6)
    model = build("deepseek_v3:tokens=256")
    layer = next(one for one in model.layers if one.name == "block_9_expert_up")
    parts = [Parallelism(expert=32, expert_imbalance=one).part(layer) for one in (1.0, 1.5)]
    assert parts[1].macs == pytest.approx(1.5 * parts[0].macs, rel=1e-3)
    assert parts[1].parameters == parts[0].parameters


def test_settings_of_experts_need_experts() -> None:
    kinds = Parallelism(dispatch_format="fp8")
    with pytest.raises(WorkloadError, match="`dispatch_format` without experts in llama3_8b"):
        kinds.divide(build("llama3_8b"), 1, 2, [("data", 8)], lambda layer, _: layer.macs)
