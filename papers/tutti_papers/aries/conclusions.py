"""The paper's conclusions, which its text states in words, and whether the runs support them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tutti_papers.aries.published import NETWORKS
from tutti_papers.claims import TOLERANCE, Conclusion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

SHORT = {
    "ring": "rings",
    "double_binary_tree": "double binary trees",
    "multi_tree": "MultiTree schedules",
}

BUTTERFLY_SLOWEST = "the butterfly is the slowest network for double binary trees"
NOC_FASTEST = "Adapt-NoC is the fastest of the others for double binary trees"
BUTTERFLY_FASTEST = "the butterfly is the fastest of the others for MultiTree"
CONCENTRATED = "concentration nearly keeps the bandwidth of MultiTree on {0}x{0}"
SAVINGS_FALL = "savings fall from mesh and torus to butterfly and Adapt-NoC"
MULTI_SAVES_MOST = "MultiTree saves the most energy of the three algorithms"


def with_reasons(
    conclusions: Iterable[Conclusion], reasons: Mapping[str, str]
) -> tuple[Conclusion, ...]:
    """Adds the reasons, by statement, to conclusions that do not hold."""
    return tuple(
        one
        if one.holds or one.statement not in reasons
        else replace(one, why=f"{one.why}. Reason: {reasons[one.statement]}")
        for one in conclusions
    )


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
        *_of_baselines(speedup),
        Conclusion(
            statement="the Transformer gains little, since it is bound by computation",
            holds=least == "transformer",
            why=f"no network speeds up its iteration more than {bounds['transformer']:.2f} times",
        ),
    )


def _of_baselines(speedup: Mapping[tuple[str, int, str], float]) -> tuple[Conclusion, ...]:
    """Returns what section V-B states of the other networks; ARIES gains least over the fastest."""
    ring, trees, multi = SHORT
    return (
        _alike(speedup, ring, "rings take as long on a torus as on a mesh"),
        _alike(speedup, trees, "double binary trees take similar times on a torus and a mesh"),
        _compared(
            speedup, ring, "rings on the butterfly and on Adapt-NoC are faster than on a mesh",
            lambda gain: max(gain["flattened_butterfly"], gain["adapt_noc"]) < gain["mesh"],
        ),
        _compared(
            speedup, trees, BUTTERFLY_SLOWEST,
            lambda gain: max(gain, key=gain.__getitem__) == "flattened_butterfly",
        ),
        _compared(
            speedup, trees, NOC_FASTEST,
            lambda gain: gain["adapt_noc"] <= min(gain.values()),
        ),
        _compared(
            speedup, multi, BUTTERFLY_FASTEST,
            lambda gain: gain["flattened_butterfly"] <= min(gain.values()),
        ),
        Conclusion(
            statement="double binary trees gain more on 8x8 than on 4x4",
            holds=all(speedup[trees, 8, one] > speedup[trees, 4, one] for one in NETWORKS),
            why="; ".join(
                f"{_text(one)} {speedup[trees, 4, one]:.2f} and {speedup[trees, 8, one]:.2f}"
                for one in NETWORKS
            ),
        ),
    )  # fmt: skip


def _alike(
    speedup: Mapping[tuple[str, int, str], float], algorithm: str, statement: str
) -> Conclusion:
    """Returns whether ARIES gains over a torus as over a mesh, within the tolerance."""
    ratios = {side: speedup[algorithm, side, "torus"] / speedup[algorithm, side, "mesh"]
              for side in (4, 8)}  # fmt: skip
    return Conclusion(
        statement=statement,
        holds=all(abs(ratio - 1) <= TOLERANCE for ratio in ratios.values()),
        why="torus over mesh: "
        + ", ".join(f"{side}x{side} {ratio:.2f}" for side, ratio in ratios.items()),
    )


def _compared(
    speedup: Mapping[tuple[str, int, str], float],
    algorithm: str,
    statement: str,
    is_so: Callable[[dict[str, float]], bool],
) -> Conclusion:
    gains = {side: {one: speedup[algorithm, side, one] for one in NETWORKS} for side in (4, 8)}
    return Conclusion(
        statement=statement,
        holds=all(is_so(gain) for gain in gains.values()),
        why="speedup of ARIES over each: "
        + "; ".join(
            f"{side}x{side} "
            + ", ".join(f"{_text(one)} {value:.2f}" for one, value in gain.items())
            for side, gain in gains.items()
        ),
    )


def faster(algorithm: str) -> str:
    """Returns the statement that an algorithm is faster on ARIES."""
    return f"{SHORT[algorithm]} are faster on ARIES than on every other network"


def _text(network: str) -> str:
    return network.replace("_", " ")


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
    return Conclusion(statement=faster(algorithm), holds=not slower, why=why)


def of_energy(
    saved: Mapping[tuple[str, int], float], by_algorithm: Mapping[str, float]
) -> tuple[Conclusion, ...]:
    """Returns the conclusions of figure 11.

    Args:
        saved: Per cent of the network energy that ARIES saves, by network and side.
        by_algorithm: The same by algorithm, mean over networks and sides.
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
            statement=SAVINGS_FALL,
            holds=in_order,
            why=f"mesh, torus, butterfly, Adapt-NoC: {found}",
        ),
        Conclusion(
            statement=MULTI_SAVES_MOST,
            holds=by_algorithm["multi_tree"] >= max(by_algorithm.values()),
            why=", ".join(f"{SHORT[one]} {value:.0f} %" for one, value in by_algorithm.items()),
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


def of_rings(
    rows: Sequence[Mapping[str, Any]], steps: Sequence[Mapping[str, Any]]
) -> tuple[Conclusion, ...]:
    """Returns the conclusions of figure 6, from its mappings and steps."""
    doubled = [row for row in rows if row["flow set"].startswith("ring, twice")]
    taken = {row["schedule"]: row["ours"] for row in steps}
    ring, hierarchical = taken["ring:4x4"], taken["mirrored_ring:4x4"]
    return (
        Conclusion(
            statement="every two neighbours on a ring have two dedicated links",
            holds=all(row["dedicated"] == row["flows"] for row in doubled),
            why=", ".join(f"{row['dedicated']} of {row['flows']} links" for row in doubled),
        ),
        Conclusion(
            statement="hierarchical rings halve the steps of the reduction on 4x4",
            holds=2 * hierarchical <= ring,
            why=f"{hierarchical} instead of {ring} steps",
        ),
    )


def of_trees(
    rows: Sequence[Mapping[str, Any]], most: Mapping[tuple[int, int], tuple[int, int]]
) -> tuple[Conclusion, ...]:
    """Returns the conclusions of figure 7.

    Args:
        rows: The mappings.
        most: By side and wires, an upper bound of the dedicated flows of a phase, and all flows.
    """
    counts = {(row["flow set"], row["wires"]): row for row in rows if row["muxes"] == "any"}

    def of(*which: tuple[str, int]) -> str:
        found = [counts[one] for one in which]
        return "; ".join(f"{row['flow set']} {row['dedicated']} of {row['flows']}" for row in found)

    def fit(*which: tuple[str, int]) -> bool:
        return all(counts[one]["dedicated"] == counts[one]["flows"] for one in which)

    phases = (("reducing, 4x4", 1), ("broadcasting, 4x4", 1))
    both = (("both at once, 4x4", 2), ("both at once, 8x8", 2))
    beyond, flows = most[32, 2]
    one_wire, fewer = most[16, 1]
    return (
        Conclusion(
            statement="each phase of both trees fits the wires of 4x4, with a link for each edge",
            holds=fit(*phases),
            why=of(*phases),
        ),
        Conclusion(
            statement="both phases fit together, as one configuration before the run requires",
            holds=fit(*both),
            why=f"two wires: {of(*both)}"
            + (
                ", the most of any configuration"
                if all(map(_is_most, map(counts.get, both)))
                else ""
            ),
        ),
        Conclusion(
            statement="bypass links suffice for double binary trees up to 16x16, and not beyond",
            holds=fit(("reducing, 16x16", 2)) and beyond < flows,
            why=(
                f"two wires: {of(('reducing, 16x16', 2))}, 32x32 at most {beyond} of {flows}; "
                f"one wire: 16x16 at most {one_wire} of {fewer}"
            ),
        ),
    )


def _is_most(row: Mapping[str, Any] | None) -> bool:
    """Returns whether no mapping can have more dedicated flows."""
    return row is not None and row["dedicated"] == row["bound"]


def of_concentration(half: Mapping[str, float]) -> tuple[Conclusion, ...]:
    """Returns the conclusion of figure 8.

    Args:
        half: Time of a phase over that of the payload on a link, by network and side, such as
            `aries 4x4`; the fastest variant.
    """
    return tuple(
        Conclusion(
            statement=CONCENTRATED.format(side),
            holds=half[f"aries {side}x{side}"] <= 1.15 * half[f"torus {side}x{side}"],
            why=(
                f"{half[f'aries {side}x{side}']:.3f} of the payload's time on a link, "
                f"{half[f'torus {side}x{side}']:.3f} on a torus"
            ),
        )
        for side in (4, 8)
    )
