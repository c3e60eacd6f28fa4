"""Expected copies of a token in dispatch and combine, for uniform routing.

The closed form of :func:`tutti.workloads.experts.copies`, which counts copies of sampled tokens.
"""

from __future__ import annotations

from functools import lru_cache
from math import comb

__all__ = ["mean_copies", "shared_copies"]

_SAMPLED = 4096
"""Tokens of a sample: the mean over all parts of 64 NPUs is within 0.5 %."""


def mean_copies(
    experts: int,
    top: int,
    *,
    ranks: int,
    domain: int,
    groups: int = 1,
    most_groups: int | None = None,
) -> tuple[float, float]:
    """Returns the mean copies of a token to other domains, and over the links of a domain.

    A token is sent once to each other domain with one of its experts, and there, or in its own
    domain, once to each NPU with one: the `normal` kernel of DeepEP.

    Args:
        experts: Experts of a layer.
        top: Experts of a token.
        ranks: NPUs with different experts, a multiple of `domain` or fewer.
        domain: NPUs of a scale-up domain.
        groups: Groups of consecutive experts.
        most_groups: The most groups of a token's experts (group-limited gating); by default all.
    """
    near = min(domain, ranks)
    domains = ranks // near
    limit = (groups, min(most_groups or groups, groups))
    on_domain = _reached(experts, top, domains, limit)
    on_rank = _reached(experts, top, ranks, limit)
    return (domains - 1) * on_domain, domains * (near - 1) * on_rank


def shared_copies(
    experts: int,
    top: int,
    *,
    ranks: int,
    domain: int,
    groups: int = 1,
    most_groups: int | None = None,
) -> float:
    """Returns the copies of a token per selected expert that a uniform all-to-all needs.

    Its bytes on the slowest links, those between domains or else those of the domain, are the bytes
    of :func:`mean_copies`, whose arguments these are.
    """
    near = min(domain, ranks)
    if ranks % near:
        near = 1
    between, within = mean_copies(
        experts, top, ranks=ranks, domain=near, groups=groups, most_groups=most_groups
    )
    if ranks > near:
        return between * ranks / (ranks - near) / top
    return within * ranks / (ranks - 1) / top


@lru_cache(maxsize=4096)
def _reached(experts: int, top: int, parts: int, limit: tuple[int, int]) -> float:
    """Returns the probability that one of the `parts` equal parts has an expert of a token.

    `limit` has the groups and the number of them that a token uses. Gating selects groups by their
    best experts, so that nearly all of these are used: the probability is that of sampled tokens.
    """
    groups, used = limit
    if used == groups:
        return _any(experts, experts // parts, top)
    return _sampled(experts, top, parts, limit)


def _sampled(experts: int, top: int, parts: int, limit: tuple[int, int]) -> float:
    import numpy as np

    from tutti.workloads.experts import ExpertLayer, Placement, sampled_choices

    groups, used = limit
    layer = ExpertLayer(
        hidden=1, experts=experts, top_k=top, tokens=_SAMPLED, groups=groups, most_groups=used
    )
    alone = Placement.of(experts, ranks=1, per_node=1)
    chosen = sampled_choices(layer, alone, np.full(experts, 1 / experts))[0]
    is_used = np.zeros((_SAMPLED, parts), dtype=bool)
    np.put_along_axis(is_used, chosen // (experts // parts), values=True, axis=1)
    return float(is_used.mean())


def _any(among: int, owned: int, top: int) -> float:
    """Returns the probability that one of `top` of `among` experts is one of `owned`."""
    return 1 - comb(among - owned, top) / comb(among, top)
