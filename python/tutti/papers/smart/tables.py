"""Table 1: all numbers of sections I and V compared with tutti."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.papers import Exhibit, ExhibitResult
from tutti.papers.smart import full_system, system
from tutti.papers.smart.published import DERIVED, VAGUE, Row, claims_of, frame_of
from tutti.papers.smart.system import (
    ALL,
    BASELINE,
    COMPLETE,
    CORNERS,
    GREEDY,
    IN_BYPASS,
    IN_COMPLETE,
    IN_LOCAL,
    INTERVALS,
    PRIVATE,
    SHOWN,
    SOME,
    TO_ONE,
    by_latency,
    curve,
    ideal_load,
    latency,
    throughput,
)

if TYPE_CHECKING:
    from pathlib import Path


def _saved(experiment: str, name: str) -> float:
    """Returns the latency saved over the baseline at low load, in per cent."""
    return 100 * (1 - latency(experiment, name) / latency(experiment, BASELINE))


def _times(experiment: str, name: str, other: str = BASELINE) -> float:
    return throughput(experiment, name) / throughput(experiment, other)


def _of_ideal(name: str) -> float:
    """Returns accepted broadcasts from all nodes as a fraction of the ideal."""
    return throughput(ALL, name) / (64 * ideal_load(ALL))


def corners() -> list[Row]:
    """Returns rows B1 to B4: the four corners broadcast."""
    saved = [_saved(CORNERS, name) for name in SHOWN[CORNERS][1:]]
    best = COMPLETE.format(6)
    others = [_times(CORNERS, best, COMPLETE.format(i)) for i in INTERVALS if i != 6]
    rows = [
        Row(row="B1", quantity="4-CR: minimum latency saved, %", published=73, ours=min(saved)),
        Row(row="B1", quantity="4-CR: maximum latency saved, %", published=86, ours=max(saved)),
    ]
    for interval, cycles, sure in (
        (3, 5.4, None),
        (4, 3.8, None),
        (6, 5.0, VAGUE),
        (8, 6.25, VAGUE),
        (10, 7.5, VAGUE),
    ):
        found = latency(CORNERS, COMPLETE.format(interval))
        what = f"SFO_Complete, BI={interval}: latency, cycles"
        rows.append(Row(row="B2", quantity=what, published=cycles, ours=found,
                        confidence=sure or "stated"))  # fmt: skip
    return [
        *rows,
        Row(row="B3", quantity="BI=6: minimum throughput over another BI", published=1.36,
            ours=min(others)),
        Row(row="B3", quantity="BI=6: maximum throughput over another BI", published=2.14,
            ours=max(others)),
        Row(row="B4", quantity="SFO_Greedy: latency saved, %", published=83,
            ours=_saved(CORNERS, GREEDY)),
        Row(row="B4", quantity="SFO_Greedy: throughput over baseline", published=1.0,
            ours=_times(CORNERS, GREEDY), confidence=VAGUE),
    ]  # fmt: skip


def all_nodes() -> list[Row]:
    """Returns rows B5 to B7: all nodes broadcast."""
    six = COMPLETE.format(6)
    more = latency(ALL, PRIVATE) - latency(ALL, GREEDY)
    return [
        Row(row="B5", quantity="SFO_Complete, BI=6: latency saved, %", published=62,
            ours=_saved(ALL, six)),
        Row(row="B5", quantity="SFO_Complete, BI=6: throughput over baseline", published=1.0,
            ours=_times(ALL, six), confidence=VAGUE),
        Row(row="B6", quantity="SFO_Greedy, SVT: latency, cycles", published=5.6,
            ours=latency(ALL, GREEDY)),
        Row(row="B6", quantity="SFO_Greedy, SVT: throughput over baseline", published=1.22,
            ours=_times(ALL, GREEDY)),
        Row(row="B6", quantity="SFO_Greedy, SVT: throughput of ideal", published=0.70,
            ours=_of_ideal(GREEDY)),
        Row(row="B7", quantity="SFO_Greedy, PVT: throughput over baseline", published=1.55,
            ours=_times(ALL, PRIVATE)),
        Row(row="B7", quantity="SFO_Greedy, PVT: throughput of ideal", published=0.90,
            ours=_of_ideal(PRIVATE)),
        Row(row="B7", quantity="SFO_Greedy: latency, PVT minus SVT, cycles", published=3.5,
            ours=more, confidence=VAGUE),
        Row(row="B7", quantity="baseline: throughput of ideal (calibrated)", published=0.58,
            ours=_of_ideal(BASELINE), confidence=DERIVED),
    ]  # fmt: skip


def some() -> list[Row]:
    """Returns rows B8: all nodes multicast."""
    four = _times(SOME, COMPLETE.format(4), COMPLETE.format(6))
    return [
        Row(row="B8", quantity="multicast, SFO_Complete: BI=4 over BI=6, throughput", published=1.0,
            ours=four, confidence=VAGUE, at_least=True),
        Row(row="B8", quantity="multicast, SFO_Greedy: latency saved, %", published=75,
            ours=_saved(SOME, GREEDY)),
        Row(row="B8", quantity="multicast, SFO_Greedy: throughput over baseline", published=1.11,
            ours=_times(SOME, GREEDY)),
    ]  # fmt: skip


def to_one() -> list[Row]:
    """Returns rows C1 to C4: reductions."""
    found = {name: curve(TO_ONE, name) for name in SHOWN[TO_ONE]}
    first = {name: system.low(one, TO_ONE) for name, one in found.items()}
    last = {name: system.last_stable(one) for name, one in found.items()}
    full = {name: one.runs[-1] for name, one in found.items()}
    base, local, bypass, complete = BASELINE, IN_LOCAL, IN_BYPASS, IN_COMPLETE

    def row(row: str, quantity: str, published: float, ours: float, sure: str = "stated") -> Row:
        return Row(row=row, quantity=quantity, published=published, ours=ours, confidence=sure)

    stays = [one[local].stay.mean for one in (first, full)]
    return [
        row("C1", "63-to-1, baseline: latency, cycles", 25, first[base].latency.mean),
        row("C1", "baseline: saturation, flows per cycle", 0.44, found[base].by_throughput),
        row("C1", "baseline: ACKs per flow, minimum", 12, first[base].loads[0].arrivals.mean),
        row("C1", "baseline: ACKs per flow, maximum", 18, last[base].loads[0].arrivals.mean),
        row("C1", "baseline: flows in flight before saturation", 9,
            last[base].loads[0].active.mean),
        row("C2", "SFI_Greedy, Local: latency over baseline", 1.0,
            first[local].latency.mean / first[base].latency.mean, VAGUE),
        row("C2", "SFI_Greedy, Local: saturation over baseline", 1.0,
            found[local].by_throughput / found[base].by_throughput, VAGUE),
        row("C2", "SFI_Greedy, Local: cycles waited per router", 1.0, stays[0], VAGUE),
        row("C2", "SFI_Greedy, Local: cycles waited when saturated", 4.5, stays[1]),
        row("C3", "SFI_Greedy, Bypass: latency, minimum", 5.7, first[bypass].latency.mean),
        row("C3", "SFI_Greedy, Bypass: latency, maximum", 8.9, last[bypass].latency.mean),
        row("C3", "SFI_Greedy, Bypass: saturation, flows per cycle", 0.8,
            found[bypass].by_throughput),
        row("C3", "SFI_Greedy, Bypass: ACKs per flow", 4, last[bypass].loads[0].arrivals.mean),
        row("C4", "SFI_Complete: latency, minimum", 4.7, first[complete].latency.mean),
        row("C4", "SFI_Complete: latency, maximum", 7.1, last[complete].latency.mean),
        Row(row="C4", quantity="SFI_Complete: saturation, flows per cycle", published=1.0,
            ours=found[complete].by_throughput, at_least=True),
        row("C4", "SFI_Complete: ACKs per flow", 1, last[complete].loads[0].arrivals.mean),
        row("C4", "SFI_Complete: flows in flight (ART occupancy)", 4,
            last[complete].loads[0].active.mean, VAGUE),
    ]  # fmt: skip


def abstract() -> list[Row]:
    """Returns rows E of synthetic traffic."""
    saturated = curve(TO_ONE, IN_COMPLETE).by_throughput / curve(TO_ONE, BASELINE).by_throughput
    return [
        Row(row="E", quantity="1-to-M latency saved, %", published=76, ours=_saved(ALL, GREEDY)),
        Row(row="E", quantity="M-to-1 latency saved, %", published=82,
            ours=_saved(TO_ONE, IN_COMPLETE)),
        Row(row="E", quantity="1-to-M throughput over baseline", published=1.6,
            ours=_times(ALL, PRIVATE)),
        Row(row="E", quantity="M-to-1 throughput over baseline", published=2.0, ours=saturated),
    ]  # fmt: skip


def _table_1(_: Path) -> ExhibitResult:
    for experiment in (CORNERS, ALL, SOME, TO_ONE):
        system.curves(experiment, SHOWN[experiment])
    rows = [*corners(), *all_nodes(), *some(), *to_one(), *abstract(), *full_system.rows()]
    return ExhibitResult(
        frame=frame_of(rows),
        published=claims_of(rows),
        source="sections I and V and the abstract",
        notes=(
            (
                "confidence: `stated`: a number in the text; `derived`: computed from several "
                "numbers; `vague`: a qualitative statement such as 'about' or 'similar'"
            ),
            (
                f"low load: {system.LOW:g} of the ideal load; throughput: accepted throughput "
                "at the load where 97 % of the offered load is accepted"
            ),
            "load with three times the zero-load latency, all nodes: "
            + ", ".join(f"{name} {64 * by_latency(ALL, name):.2f}" for name in SHOWN[ALL])
            + " broadcasts per cycle",
        ),
    )


TABLES = {1: Exhibit(title="all numbers of sections I and V compared with tutti", make=_table_1)}
"""The table of this module, by number."""
