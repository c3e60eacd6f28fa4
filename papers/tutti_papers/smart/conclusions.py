"""The paper's conclusions, which its text states in words, and whether the runs support them."""

from __future__ import annotations

from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING

from tutti_papers.claims import TOLERANCE, Conclusion
from tutti_papers.smart.system import (
    ALL,
    BASELINE,
    COMPLETE,
    CORNERS,
    GREEDY,
    IN_BYPASS,
    IN_COMPLETE,
    IN_LOCAL,
    INTERVALS,
    LOW,
    MIDDLE,
    PRIVATE,
    TO_ONE,
    at,
    largest,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tutti.networks.mesh import Saturation


def of_fan_out(found: Mapping[str, Mapping[str, Saturation]]) -> tuple[Conclusion, ...]:
    """Returns the conclusions of figure 6, from the curves by traffic and design."""
    corners = {name: one.by_throughput for name, one in found[CORNERS].items()}
    slots = {interval: corners[COMPLETE.format(interval)] for interval in INTERVALS}
    best = max(slots, key=slots.__getitem__)
    every = {name: one.by_throughput / largest(ALL) for name, one in found[ALL].items()}
    order = (BASELINE, GREEDY, PRIVATE)
    shown = ", ".join(f"{name} {every[name]:.2f}" for name in order)
    return (
        Conclusion(
            statement="a broadcast interval of 6 cycles has the highest throughput",
            holds=best == 6,
            why=", ".join(f"BI={i} {4 * rate:.2f}" for i, rate in slots.items())
            + " broadcasts per cycle",
        ),
        Conclusion(
            statement="SFO_Greedy on shared trees outperforms the baseline, on private trees more",
            holds=all(every[b] > (1 + TOLERANCE) * every[a] for a, b in pairwise(order)),
            why=f"throughput over the ideal: {shown}",
        ),
    )


def of_fan_in(found: Mapping[str, Saturation]) -> tuple[Conclusion, ...]:
    """Returns the conclusions of figure 7, from the curves by design."""
    rate = {name: one.by_throughput for name, one in found.items()}
    arrivals = max(run.loads[0].arrivals.mean for run in found[IN_COMPLETE].runs)
    order = (BASELINE, IN_BYPASS, IN_COMPLETE)
    return (
        Conclusion(
            statement="SFI_Complete delivers one ACK per flow",
            holds=arrivals < 1.001,
            why=f"at most {arrivals:.3f} on average over all loads",
        ),
        Conclusion(
            statement="SFI_Complete does not saturate",
            holds=rate[IN_COMPLETE] >= largest(TO_ONE),
            why=f"accepts {rate[IN_COMPLETE]:.2f} of {largest(TO_ONE):.2f} flows per cycle",
        ),
        _like_the_baseline(found[IN_LOCAL], found[BASELINE]),
        Conclusion(
            statement="SFI_Greedy saturates later than the baseline, SFI_Complete still later",
            holds=all(rate[b] > rate[a] for a, b in pairwise(order)),
            why=", ".join(f"{name} {rate[name]:.2f}" for name in order),
        ),
    )


def _like_the_baseline(local: Saturation, base: Saturation) -> Conclusion:
    """Returns the conclusion on SFI_Greedy with Prio=Local; "like" is within `TOLERANCE`."""
    latency = {
        load: at(local, load).latency.mean / at(base, load).latency.mean for load in (LOW, MIDDLE)
    }
    saturation = local.by_throughput / base.by_throughput
    holds = all(abs(ratio - 1) <= TOLERANCE for ratio in (*latency.values(), saturation))
    ratios = " and ".join(f"{ratio:.2f} times at {load:g}" for load, ratio in latency.items())
    why = f"latency {ratios} flows per cycle, saturation {saturation:.2f} times "
    why += f"(like: {100 * TOLERANCE:.0f} %)"
    if not holds:
        why += "; an ACK passes routers whose output is idle, in the text all ACKs stop"
    return Conclusion(
        statement="SFI_Greedy with Prio=Local performs like the baseline", holds=holds, why=why
    )


def of_runtimes(
    statement: str, runtime: Mapping[str, Mapping[str, float]], order: tuple[str, ...]
) -> Conclusion:
    """Returns whether the mean runtime falls from each mesh to the next, whichever kernel is left
    out.

    Args:
        statement: The conclusion.
        runtime: Runtime relative to the same mesh, by mesh and kernel.
        order: The meshes from slow to fast.
    """
    names = list(runtime[order[0]])

    def means(without: str = "") -> list[float]:
        return [fmean(runtime[mesh][name] for name in names if name != without) for mesh in order]

    def falls(without: str = "") -> bool:
        return all(after < before for before, after in pairwise(means(without)))

    decisive = [name for name in names if len(names) > 1 and not falls(name)]
    why = ", ".join(f"{name} {value:.2f}" for name, value in zip(order, means(), strict=True))
    faster = [
        sum(runtime[after][name] < runtime[before][name] for name in names)
        for before, after in pairwise(order)
    ]
    why += f"; faster on {' and '.join(map(str, faster))} of {len(names)} kernels"
    if falls() and decisive:
        why += f"; not without {' or '.join(decisive)}"
    if not falls() and (against := [name for name in names if len(names) > 1 and falls(name)]):
        why += f"; holds without {' or '.join(against)}"
    return Conclusion(statement=statement, holds=falls() and not decisive, why=why)


def near_ideal(
    runtime: Mapping[str, Mapping[str, float]],
    name: str,
    ideal: str,
    kernels: Sequence[str] = (),
) -> Conclusion:
    """Returns whether a mesh leaves at most 30 % of the performance of full connection.

    Args:
        runtime: Runtime relative to the same mesh, by mesh and kernel.
        name: The mesh.
        ideal: The fully connected network.
        kernels: The kernels that do not saturate the mesh; all of them if empty.
    """

    def left(kernels: Iterable[str]) -> float:
        return 100 * (1 - fmean(runtime[ideal][one] / runtime[name][one] for one in kernels))

    counted = list(kernels or runtime[name])
    less = left(counted)
    why = (
        f"leaves {less:.0f} % of its performance on kernels that do not saturate the mesh, "
        f"{left(runtime[name]):.0f} % on all"
    )
    if less > 30 and len(counted) > 1:
        most = max(counted, key=lambda one: left([one]))
        others = [one for one in counted if one != most]
        why += f"; {most} alone leaves {left([most]):.0f} %, the others {left(others):.0f} %"
    return Conclusion(
        statement=f"{name} comes within 30 % of a fully connected network",
        holds=less <= 30,
        why=why,
    )
