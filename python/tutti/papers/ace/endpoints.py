"""Figures 5 and 6: one all-reduce of 64 MiB, over memory bandwidth and over SMs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from tutti.endpoint import Configuration
from tutti.papers import Exhibit, ExhibitResult, at_once
from tutti.papers.ace.published import MEMORY, SURE, Published, compared
from tutti.papers.ace.system import (
    BETWEEN,
    PAYLOAD,
    SAMPLE,
    SIZES,
    ace,
    alone,
    baseline,
)
from tutti.report.plot import plot_curves
from tutti.units import Size

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.alone import AloneResult

IDEAL = Configuration(name="ideal", kind="ideal")
AMPLE = {"sram": Size.parse("64 MiB"), "fsms": 128, "banks": 16}
"""Settings of an ACE that only its memory bandwidth and its links bind."""

MEMORIES = (32, 64, 96, 112, 128, 160, 192, 256, 320, 384, 420, 450, 600, 900)
"""GB/s for communication."""
SHOWN = ("4x2x2", "4x4x4")
"""The two sizes of the figures (R)."""
ENOUGH = 0.9
"""The part of the ideal that the paper calls near it (R)."""

BOTH_WAYS_SHARES = (32, 1, 1, 8, 8)
"""Proportions of the scratchpad when the first and last phase count both ways round their ring."""
OTHERWISE = {"division": "evenly", "handover": "ahead"}

READINGS: tuple[tuple[str, int, dict[str, Any]], ...] = (
    ("as it stands", BETWEEN, {}),
    ("state machines: 4 for each phase", BETWEEN, {"division": "evenly"}),
    ("room is taken ahead of a phase", BETWEEN, {"handover": "ahead"}),
    ("partitions: both ways of the local ring", BETWEEN, {"shares": BOTH_WAYS_SHARES}),
    ("all three", BETWEEN, OTHERWISE | {"shares": BOTH_WAYS_SHARES}),
    ("20 state machines", BETWEEN, {"fsms": 20}),
    ("24 state machines, 8 MiB", BETWEEN, {"fsms": 24, "sram": Size.parse("8 MiB")}),
    ("links of 200 cycles", SAMPLE, {}),
    ("200 cycles, 4 for each phase", SAMPLE, {"division": "evenly"}),
    ("200 cycles, all three", SAMPLE, OTHERWISE | {"shares": BOTH_WAYS_SHARES}),
)
"""What the paper leaves open, each with what is set otherwise."""


def _peak(size: str) -> tuple[float, float]:
    """X, the bytes sent for each byte of payload, and the most that links carry (GB/s)."""
    local, vertical, horizontal = SIZES[size]
    inside = 2 * (local - 1) / local
    across = [2 * (nodes - 1) / (nodes * local) for nodes in (vertical, horizontal)]
    sent = inside + sum(across)
    return sent, sent / max(inside / 400, *(part / 50 for part in across))


def _rate(run: AloneResult) -> float:
    return run.rate / 1e9


def _swept(size: str) -> dict[str, list[tuple[float, float]]]:
    """(memory bandwidth, bandwidth sent) of each endpoint, GB/s."""
    kinds: dict[str, list[tuple[float, Configuration]]] = {
        "baseline": [(memory, baseline(f"{memory} GB/s")) for memory in MEMORIES],
        "ace": [(memory, ace(f"{memory} GB/s")) for memory in MEMORIES],
        "ace_ample": [(memory, ace(f"{memory} GB/s", **AMPLE)) for memory in MEMORIES],
        "ideal": [(float(memory), IDEAL) for memory in MEMORIES[-1:]],
    }
    asked = [(kind, memory, what) for kind, all_ in kinds.items() for memory, what in all_]
    runs = at_once(lambda index: alone(asked[index][2], size), range(len(asked)))
    found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
    for (kind, memory, _), run in zip(asked, runs.values(), strict=True):
        found[kind].append((float(memory), _rate(run)))
    return found


def _needed(curve: list[tuple[float, float]], wanted: float) -> float | None:
    """The memory bandwidth at which a curve first reaches what is wanted, between two points."""
    before = (0.0, 0.0)
    for memory, rate in curve:
        if rate >= wanted:
            part = (wanted - before[1]) / (rate - before[1])
            return before[0] + part * (memory - before[0])
        before = (memory, rate)
    return None


def _figure_5(folder: Path) -> ExhibitResult:
    """Bandwidth sent over memory bandwidth."""
    curves = {size: _swept(size) for size in SHOWN}
    frame = pl.DataFrame(
        [
            {"torus": size, "endpoint": kind, "memory GB/s": memory, "sent GB/s": round(rate, 1)}
            for size, kinds in curves.items()
            for kind, points in kinds.items()
            for memory, rate in points
        ]
    )
    lines = {
        f"{kind} {size}": ([m for m, _ in points], [rate for _, rate in points])
        for size, kinds in curves.items()
        for kind, points in kinds.items()
        if kind != "ideal"
    }
    drawn = plot_curves(
        folder / "figure_5.svg", lines, x="memory bandwidth (GB/s)", y="send rate of an NPU (GB/s)"
    )
    return ExhibitResult(
        frame=frame,
        published=compared(_claims(curves["4x4x4"])),
        source=f"the abstract; the analysis that goes with the figure. {SURE}",
        figures=(drawn,),
        notes=(
            "ace_ample: 64 MiB, 128 state machines, 16 banks, so that only memory and links bind.",
            "published 128 GB/s for 90 % requires enough chunks in flight: see `readings`.",
        ),
        tables={"peaks": _peaks(curves), "readings": _readings(curves["4x4x4"]["ideal"][0][1])},
    )


def _claims(curves: dict[str, list[tuple[float, float]]]) -> list[tuple[Published, float]]:
    ideal = curves["ideal"][0][1]
    wanted = ENOUGH * ideal
    of_baseline = _needed(curves["baseline"], wanted) or float("nan")
    of_ample = _needed(curves["ace_ample"], wanted) or float("nan")
    at_128 = dict(curves["ace"])[128.0]
    return [
        (Published("ideal, GB/s (300 before headers)", 282, "D"), ideal),
        (Published("memory for 90 % of ideal, baseline, GB/s", 450, "B"), of_baseline),
        (Published("memory for 90 % of ideal, ACE that nothing else binds", 128, "B"), of_ample),
        (MEMORY, of_baseline / of_ample),
        (Published("ACE at 128 GB/s, % of ideal", 90, "R"), 100 * at_128 / ideal),
    ]


def _peaks(curves: dict[str, dict[str, list[tuple[float, float]]]]) -> pl.DataFrame:
    """What follows from the topology alone, and what the ideal endpoint reached."""
    rows = []
    for size in SIZES:
        sent, peak = _peak(size)
        ideal = curves[size]["ideal"][0][1] if size in curves else _rate(alone(IDEAL, size))
        run = alone(baseline("900 GB/s"), size)
        rows.append(
            {
                "torus": size,
                "sent_per_byte": sent,
                "counted": run.sent / PAYLOAD.bytes,
                "peak GB/s": round(peak, 1),
                "with_headers": round(0.94 * peak, 1),
                "ideal GB/s": round(ideal, 1),
                "reads_per_byte": run.read / run.sent,
                "ace read GB/s": round(peak / sent, 1),
                "NPU read GB/s": round(1.5 * peak, 1),
            }
        )
    return pl.DataFrame(rows)


def _readings(ideal: float) -> pl.DataFrame:
    """How much ACE's bandwidth depends on what the paper leaves open."""
    memories = (64, 128, 900)
    asked = [(index, memory) for index in range(len(READINGS)) for memory in memories]

    def run(ask: tuple[int, int]) -> AloneResult:
        _, between, settings = READINGS[ask[0]]
        return alone(ace(f"{ask[1]} GB/s", **settings), "4x4x4", between)

    runs = at_once(run, asked)
    return pl.DataFrame(
        [
            {"reading": READINGS[index][0]}
            | {f"at {memory} GB/s": round(_rate(runs[index, memory]), 1) for memory in memories}
            | {"of_ideal": round(_rate(runs[index, 128]) / ideal, 3)}
            for index in range(len(READINGS))
        ]
    )


SMS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16)


def _figure_6(folder: Path) -> ExhibitResult:
    """Bandwidth sent over the SMs that communicate, memory unlimited."""
    asked = [(size, sms) for size in SHOWN for sms in SMS]
    unlimited = "100 TB/s"
    runs = at_once(lambda ask: _rate(alone(baseline(unlimited, ask[1]), ask[0])), asked)
    frame = pl.DataFrame(
        [
            {
                "torus": size,
                "sms": sms,
                "sent GB/s": round(rate, 1),
                "derived GB/s": round(min(0.94 * _peak(size)[1], sms * 80 / 1.5), 1),
            }
            for (size, sms), rate in runs.items()
        ]
    )
    lines = {size: (list(SMS), [runs[size, sms] for sms in SMS]) for size in SHOWN}
    drawn = plot_curves(folder / "figure_6.svg", lines, x="SMs", y="send rate of an NPU (GB/s)")
    ideal = _rate(alone(IDEAL, "4x4x4"))
    enough = next(sms for sms in SMS if runs["4x4x4", sms] >= 0.97 * ideal)
    rows = [
        (Published("SMs for the peak on 4x4x4", 6, "B"), enough),
        (Published("2 SMs, GB/s", 107, "D"), runs["4x4x4", 2]),
        (
            Published("2 SMs and 128 GB/s, GB/s", 85, "D"),
            _rate(alone(baseline("128 GB/s", 2), "4x4x4")),
        ),
    ]
    return ExhibitResult(
        frame=frame,
        published=compared([(published, float(ours)) for published, ours in rows]),
        source=f"the text on the figure, and values derived from 80 GB/s per SM. {SURE}",
        figures=(drawn,),
    )


FIGURES = {
    5: Exhibit(title="send rate of an all_reduce over memory bandwidth", make=_figure_5),
    6: Exhibit(title="send rate of an all_reduce over SMs", make=_figure_6),
}
