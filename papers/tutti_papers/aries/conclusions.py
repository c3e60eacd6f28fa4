"""The paper's conclusions, which its text states in words, and whether the runs support them."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from tutti_papers.aries.published import NETWORKS
from tutti_papers.claims import Conclusion

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SHORT = {
    "ring": "rings",
    "double_binary_tree": "double binary trees",
    "multi_tree": "MultiTree schedules",
}


def of_speedups(
    speedup: Mapping[tuple[str, int, str], float], bounds: Mapping[str, float]
) -> tuple[Conclusion, ...]:
    """Returns the conclusions of figure 10.

    Args:
        speedup: Speedup of iterations on ARIES, by algorithm, side and network.
        bounds: Upper bound of the speedup of an iteration with rings, by application.
    """
    faster = tuple(_faster(algorithm, speedup) for algorithm in SHORT)
    least = min(bounds, key=bounds.__getitem__)
    return (
        *faster,
        Conclusion(
            statement="the Transformer gains little, since it is bound by computation",
            holds=least == "transformer",
            why=f"no network speeds up its iteration more than {bounds['transformer']:.2f} times",
        ),
    )


def _faster(algorithm: str, speedup: Mapping[tuple[str, int, str], float]) -> Conclusion:
    ratios = {
        f"{network} {side}x{side}": value
        for (name, side, network), value in speedup.items()
        if name == algorithm
    }
    slower = [f"{name} ({value:.2f})" for name, value in ratios.items() if value < 1]
    low, high = min(ratios.values()), max(ratios.values())
    why = f"speedups {low:.2f} to {high:.2f}"
    if slower:
        why += f"; not over {', '.join(slower).replace('_', ' ')}"
    statement = f"{SHORT[algorithm]} are faster on ARIES than on every other network"
    return Conclusion(statement=statement, holds=not slower, why=why)


def of_energy(saved: Mapping[tuple[str, int], float]) -> tuple[Conclusion, ...]:
    """Returns the conclusions of figure 11.

    Args:
        saved: Per cent of the network energy that ARIES saves, by network and side.
    """
    sides = list(dict.fromkeys(side for _, side in saved))
    in_order = all(
        saved[one, side] > saved[other, side] for side in sides for one, other in pairwise(NETWORKS)
    )
    found = "; ".join(
        f"{side}x{side}: " + ", ".join(f"{saved[network, side]:.0f} %" for network in NETWORKS)
        for side in sides
    )
    return (
        Conclusion(
            statement="ARIES saves energy over every other network",
            holds=min(saved.values()) > 0,
            why=f"{min(saved.values()):.0f} to {max(saved.values()):.0f} %",
        ),
        Conclusion(
            statement="savings fall from mesh and torus to butterfly and Adapt-NoC",
            holds=in_order,
            why=f"mesh, torus, butterfly, Adapt-NoC: {found}",
        ),
    )


def of_throughput(words: Sequence[tuple[str, str, float]]) -> tuple[Conclusion, ...]:
    """Returns the conclusions of figure 9.

    Args:
        words: Claim, the published word and the computed ratio; `above 1` and `more` are above 1,
            `about 1` is within 15 % of 1.
    """
    return tuple(
        Conclusion(
            statement=f"{claim} is {'above 1' if published == 'more' else published}",
            holds=abs(ours - 1) <= 0.15 if published == "about 1" else ours > 1,
            why=f"{ours:.2f}",
        )
        for claim, published, ours in words
    )


def of_concentration(half: Mapping[str, float]) -> tuple[Conclusion, ...]:
    """Returns the conclusion of figure 8.

    Args:
        half: Time of a phase over that of the payload on a link, by network and side, such as
            `aries 4x4`; the fastest variant.
    """
    return tuple(
        Conclusion(
            statement=f"concentration nearly keeps the bandwidth of MultiTree on {side}x{side}",
            holds=half[f"aries {side}x{side}"] <= 1.15 * half[f"torus {side}x{side}"],
            why=(
                f"{half[f'aries {side}x{side}']:.3f} of the payload's time on a link, "
                f"{half[f'torus {side}x{side}']:.3f} on a torus"
            ),
        )
        for side in (4, 8)
    )
