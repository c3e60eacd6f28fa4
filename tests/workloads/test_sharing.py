"""Expected copies of tokens compared with counted ones."""

from __future__ import annotations

import numpy as np
import pytest

from tutti.workloads.experts import ExpertLayer, Placement, copies, sampled_choices
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
    between, within = mean_copies(experts, top, ranks=ranks, domain=domain, most_domains=most)
    assert between == pytest.approx(sent[~near].sum() / tokens, rel=0.03)
    assert within == pytest.approx(sent[near & ~own].sum() / tokens, rel=0.03)


def test_an_expert_per_rank_shares_no_copies() -> None:
    """With one expert per NPU of one domain, dispatch sends a copy per selected expert."""
    assert shared_copies(8, 2, ranks=8, domain=8) == pytest.approx(1)


def test_copies_for_a_domain_are_sent_once() -> None:
    """8 of 256 experts on 4 domains of 8: 3 x 0.91 copies leave a domain, instead of 6."""
    between, _ = mean_copies(256, 8, ranks=32, domain=8)
    assert between == pytest.approx(3 * (1 - 0.75**8), rel=0.01)
    assert shared_copies(256, 8, ranks=32, domain=8) == pytest.approx(between / 6)
