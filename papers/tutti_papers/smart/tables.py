"""Table 1: all numbers of sections I and V compared with tutti."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti_papers import Exhibit, ExhibitResult
from tutti_papers.smart import full_system, system
from tutti_papers.smart.published import DERIVED, STATED, VAGUE, Row, claims_of, frame_of, score
from tutti_papers.smart.system import (
    ALL,
    BASELINE,
    BYPASS_END,
    COMPLETE,
    CORNERS,
    DEFAULT,
    GREEDY,
    IN_BYPASS,
    IN_COMPLETE,
    IN_LOCAL,
    INTERVALS,
    LOW,
    MIDDLE,
    PRIVATE,
    SHOWN,
    SOME,
    TO_ONE,
    by_latency,
    ideal_load,
    latency,
    reductions,
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


def _row(row: str, quantity: str, published: float, ours: float, sure: str = STATED) -> Row:
    return Row(row=row, quantity=quantity, published=published, ours=ours, confidence=sure)


def to_one(reading: str = DEFAULT) -> list[Row]:
    """Returns rows C1 to C4: reductions, by a reading of `system.REDUCTIONS`."""
    return [
        *_baseline_to_one(reading),
        *_greedy_local(reading),
        *_greedy_bypass(reading),
        *_complete(reading),
    ]


def _baseline_to_one(reading: str) -> list[Row]:
    found = reductions(BASELINE, reading)
    first, middle = system.low(found, TO_ONE), system.at(found, MIDDLE)
    load = f"at {MIDDLE:g} flows per cycle"
    return [
        _row("C1", "63-to-1, baseline: latency, cycles", 25, first.latency.mean),
        _row("C1", f"baseline: latency {load}, cycles", 25, middle.latency.mean, VAGUE),
        _row("C1", "baseline: saturation, flows per cycle", 0.44, found.by_throughput),
        _row("C1", "baseline: ACKs per flow, minimum", 12, first.loads[0].arrivals.mean),
        _row("C1", f"baseline: ACKs per flow, maximum ({load})", 18,
             middle.loads[0].arrivals.mean),
        _row("C1", f"baseline: flows in flight {load}", 9, middle.loads[0].active.mean),
    ]  # fmt: skip


def _greedy_local(reading: str) -> list[Row]:
    base, local = (reductions(name, reading) for name in (BASELINE, IN_LOCAL))
    full = system.at(local, BYPASS_END)

    def over(load: float) -> float:
        return system.at(local, load).latency.mean / system.at(base, load).latency.mean

    return [
        _row("C2", "SFI_Greedy, Local: latency over baseline", 1.0, over(LOW), VAGUE),
        _row("C2", f"SFI_Greedy, Local: the same at {MIDDLE:g} flows per cycle", 1.0,
             over(MIDDLE), VAGUE),
        _row("C2", "SFI_Greedy, Local: saturation over baseline", 1.0,
             local.by_throughput / base.by_throughput, VAGUE),
        _row("C2", "SFI_Greedy, Local: cycles waited per router", 1.0,
             system.low(local, TO_ONE).stay.mean, VAGUE),
        _row("C2", "SFI_Greedy, Local: cycles waited when saturated", 4.5, full.stay.mean),
        _row("C2", "SFI_Greedy, Local: ACKs per flow when saturated", 1,
             full.loads[0].arrivals.mean),
    ]  # fmt: skip


def _greedy_bypass(reading: str) -> list[Row]:
    found = reductions(IN_BYPASS, reading)
    first, last, what = (
        system.low(found, TO_ONE),
        system.at(found, BYPASS_END),
        "SFI_Greedy, Bypass",
    )
    return [
        _row("C3", f"{what}: latency, minimum", 5.7, first.latency.mean),
        _row("C3", f"{what}: latency at {BYPASS_END:g} flows per cycle", 8.9, last.latency.mean),
        _row("C3", f"{what}: saturation, flows per cycle", 0.8, found.by_throughput),
        _row("C3", f"{what}: ACKs per flow", 4, last.loads[0].arrivals.mean),
    ]


def _complete(reading: str) -> list[Row]:
    found = reductions(IN_COMPLETE, reading)
    first, end, last = (
        system.low(found, TO_ONE),
        system.at(found, BYPASS_END),
        system.at(found, 1.0),
    )
    in_flight = f"SFI_Complete: flows in flight (ART occupancy) at {BYPASS_END:g} per cycle"
    return [
        _row("C4", "SFI_Complete: latency, minimum", 4.7, first.latency.mean),
        _row("C4", "SFI_Complete: latency, maximum", 7.1, last.latency.mean),
        Row(row="C4", quantity="SFI_Complete: saturation, flows per cycle", published=1.0,
            ours=found.by_throughput, at_least=True),
        _row("C4", "SFI_Complete: ACKs per flow", 1, last.loads[0].arrivals.mean),
        _row("C4", in_flight, 4, end.loads[0].active.mean, VAGUE),
    ]  # fmt: skip


def abstract(reading: str = DEFAULT) -> list[Row]:
    """Returns rows E of synthetic traffic, by a reading of `system.REDUCTIONS`."""
    base, complete = (reductions(name, reading) for name in (BASELINE, IN_COMPLETE))
    first = [system.low(one, TO_ONE).latency.mean for one in (base, complete)]
    return [
        Row(row="E", quantity="1-to-M latency saved, %", published=76, ours=_saved(ALL, GREEDY)),
        Row(row="E", quantity="M-to-1 latency saved, %", published=82,
            ours=100 * (1 - first[1] / first[0])),
        Row(row="E", quantity="1-to-M throughput over baseline", published=1.6,
            ours=_times(ALL, PRIVATE)),
        Row(row="E", quantity="M-to-1 throughput over baseline", published=2.0,
            ours=complete.by_throughput / base.by_throughput),
    ]  # fmt: skip


def _table_1(_: Path) -> ExhibitResult:
    for experiment in (CORNERS, ALL, SOME, TO_ONE):
        system.curves(experiment, SHOWN[experiment])
    rows = [*corners(), *all_nodes(), *some(), *to_one(), *abstract(), *full_system.rows()]
    agreeing, values = score(rows)
    return ExhibitResult(
        frame=frame_of(rows),
        published=claims_of(rows),
        source="sections I and V and the abstract",
        notes=(
            f"{agreeing} of {values} distinct published values agree",
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
