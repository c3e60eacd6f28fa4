"""Expected copies of a token in dispatch and combine, for uniform routing.

The closed form of :func:`tutti.workloads.experts.copies`, which counts copies of sampled tokens.
"""

from __future__ import annotations

from math import comb

__all__ = ["mean_copies", "shared_copies"]


def mean_copies(
    experts: int, top: int, *, ranks: int, domain: int, most_domains: int | None = None
) -> tuple[float, float]:
    """Returns the mean copies of a token to other domains, and over the links of a domain.

    A token is sent once to each other domain with one of its experts, and there, or in its own
    domain, once to each NPU with one: the `normal` kernel of DeepEP.

    Args:
        experts: Experts of a layer.
        top: Experts of a token.
        ranks: NPUs with different experts, a multiple of `domain` or fewer.
        domain: NPUs of a scale-up domain.
        most_domains: The most domains of a token's experts.
    """
    near = min(domain, ranks)
    domains = ranks // near
    used = min(most_domains or domains, domains)
    among = experts * used // domains
    on_domain = used / domains * _any(among, experts // domains, top)
    on_rank = used / domains * _any(among, experts // ranks, top)
    return (domains - 1) * on_domain, domains * (near - 1) * on_rank


def shared_copies(experts: int, top: int, *, ranks: int, domain: int) -> float:
    """Returns the copies of a token per selected expert that a uniform all-to-all needs.

    Its bytes on the slowest links, those between domains or else those of the domain, are the bytes
    of :func:`mean_copies`.
    """
    near = min(domain, ranks)
    if ranks % near:
        near = 1
    between, within = mean_copies(experts, top, ranks=ranks, domain=near)
    if ranks > near:
        return between * ranks / (ranks - near) / top
    return within * ranks / (ranks - 1) / top


def _any(among: int, owned: int, top: int) -> float:
    """Returns the probability that one of `top` of `among` experts is one of `owned`."""
    return 1 - comb(among - owned, top) / comb(among, top)
