"""Figures 5 and 6: a 64 MiB all_reduce over memory bandwidth and over SMs."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import polars as pl

from tutti.base.progress import at_once
from tutti.base.units import Size
from tutti_papers import Exhibit, ExhibitResult, looks
from tutti_papers.ace.published import MEMORY, SURE, Published, compared
from tutti_papers.ace.system import BETWEEN, PAYLOAD, SAMPLE, SIZES, ace, alone, baseline
from tutti_papers.ace.tori import AMPLE, IDEAL, VARIANT, shares, sram_rates
from tutti_papers.claims import verdict_line
from tutti_papers.exhibits import Anchor, plot_curves

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.training.collective import AloneResult
    from tutti.training.endpoint import Configuration

MEMORIES = (32, 64, 96, 112, 128, 160, 192, 256, 320, 384, 420, 450, 600, 900)
"""Memory bandwidth for communication, GB/s."""
SHOWN = ("4x2x2", "4x4x4")
"""The two sizes of the figures (R)."""
_ACE_MEMORY = 128.0
"""Memory bandwidth of the paper's ACE, GB/s (B)."""
_NEAR = (96.0, 112.0, _ACE_MEMORY)
NEAR_IDEAL = 0.9
"""Fraction of the ideal bandwidth that the paper calls near ideal (R)."""

BIDIRECTIONAL_SHARES = (32, 1, 1, 8, 8)
"""Scratchpad shares if the first and last phase count both directions of the local ring."""
EVEN_AHEAD = {"division": "evenly", "handover": "ahead"}

ASSUMPTIONS: tuple[tuple[str, int, dict[str, Any]], ...] = (
    ("default", BETWEEN, {}),
    ("4 FSMs per phase", BETWEEN, {"division": "evenly"}),
    ("buffer space reserved ahead of a phase", BETWEEN, {"handover": "ahead"}),
    (
        "partitions: both directions of the local ring",
        BETWEEN,
        {"shares": BIDIRECTIONAL_SHARES},
    ),
    ("all three above", BETWEEN, EVEN_AHEAD | {"shares": BIDIRECTIONAL_SHARES}),
    ("20 FSMs", BETWEEN, {"fsms": 20}),
    ("24 FSMs, 8 MiB", BETWEEN, {"fsms": 24, "sram": Size.parse("8 MiB")}),
    ("links of 200 cycles", SAMPLE, {}),
    ("200 cycles, 4 FSMs per phase", SAMPLE, {"division": "evenly"}),
    ("200 cycles, all three above", SAMPLE, EVEN_AHEAD | {"shares": BIDIRECTIONAL_SHARES}),
)
"""Alternatives to what the paper leaves open: label, link latency in cycles, changed settings."""


def _peak(size: str) -> tuple[float, float]:
    """Returns the bytes sent per byte of payload, and the link-limited send rate in GB/s."""
    local, vertical, horizontal = SIZES[size]
    inside = 2 * (local - 1) / local
    between = [2 * (nodes - 1) / (nodes * local) for nodes in (vertical, horizontal)]
    sent = inside + sum(between)
    return sent, sent / max(inside / 400, *(part / 50 for part in between))


def _rate(run: AloneResult) -> float:
    return run.rate / 1e9


@cache
def _swept(size: str) -> dict[str, list[tuple[float, float]]]:
    """Returns (memory bandwidth, send rate) in GB/s by endpoint model."""
    models: dict[str, list[tuple[float, Configuration]]] = {
        "baseline": [(memory, baseline(f"{memory} GB/s")) for memory in MEMORIES],
        "ace": [(memory, ace(f"{memory} GB/s")) for memory in MEMORIES],
        "ace_ample": [(memory, ace(f"{memory} GB/s", **AMPLE)) for memory in MEMORIES],
        "ideal": [(float(memory), IDEAL) for memory in MEMORIES[-1:]],
    }
    cases = [(model, *point) for model, points in models.items() for point in points]
    runs = at_once(lambda index: alone(cases[index][2], size), range(len(cases)))
    curves: dict[str, list[tuple[float, float]]] = {model: [] for model in models}
    for (model, memory, _), run in zip(cases, runs.values(), strict=True):
        curves[model].append((float(memory), _rate(run)))
    return curves


def _required_memory(curve: list[tuple[float, float]], target: float) -> float | None:
    """Returns the memory bandwidth at which a curve first reaches `target`, interpolated."""
    before = (0.0, 0.0)
    for memory, rate in curve:
        if rate >= target:
            part = (target - before[1]) / (rate - before[1])
            return before[0] + part * (memory - before[0])
        before = (memory, rate)
    return None


def _figure_5(folder: Path) -> ExhibitResult:
    """Returns send rates over memory bandwidth."""
    curves = {size: _swept(size) for size in SHOWN}
    frame = pl.DataFrame(
        [
            {"torus": size, "endpoint": kind, "memory GB/s": memory, "sent GB/s": round(rate, 1)}
            for size, kinds in curves.items()
            for kind, points in kinds.items()
            for memory, rate in points
        ]
    )
    claims = compared(memory_values())
    verdict = verdict_line(claims)
    drawn = [_drawn(folder, size, kinds, verdict) for size, kinds in curves.items()]
    return ExhibitResult(
        frame=frame,
        published=claims,
        source=f"the abstract; the text on the figure. {SURE}",
        figures=tuple(drawn),
        notes=(
            "ace_ample: 64 MiB, 128 FSMs, 16 banks; only memory and links limit it",
            "published values are compared with the paper's ACE only",
            "ace never reaches 90 % of ideal on 4x4x4 with the paper's resources: see `shares`",
            "engines: memory for the send rate of each ACE with 128 GB/s, baseline over ACE",
            "sram_rates: ample space and FSMs, 900 GB/s of memory",
        ),
        tables={
            "peaks": _peaks(curves),
            "engines": _engines(curves),
            "shares": shares(),
            "sram_rates": sram_rates(),
            "assumptions": _assumptions(curves["4x4x4"]["ideal"][0][1]),
        },
    )


def _drawn(
    folder: Path, size: str, kinds: dict[str, list[tuple[float, float]]], verdict: str
) -> Path:
    """Draws the send rates of a torus; the published values are of 4x4x4."""
    lines = {
        kind: ([m for m, _ in points], [rate for _, rate in points])
        for kind, points in kinds.items()
        if kind != "ideal"
    }
    ideal = kinds["ideal"][0][1]
    lines["ideal"] = (list(MEMORIES), [ideal] * len(MEMORIES))
    near = NEAR_IDEAL * ideal
    anchors = [
        Anchor(None, 282, "derived", "ideal"),
        Anchor(450, near, "quoted", "baseline"),
        Anchor(128, near, "quoted", "ace"),
    ]
    return plot_curves(
        folder / f"figure_5_{size}.svg", lines, x="memory bandwidth (GB/s)",
        y=f"send rate of an NPU, {size} (GB/s)", verdict=verdict,
        anchors=anchors if size == "4x4x4" else (), looks=looks.ACE | looks.ACE_ENDPOINTS,
    )  # fmt: skip


def memory_values() -> list[tuple[Published, float]]:
    """Returns the published values of figure 5 and those of the paper's ACE, on 4x4x4."""
    curves = _swept("4x4x4")
    ideal = curves["ideal"][0][1]
    at_128 = dict(curves["ace"])[_ACE_MEMORY]
    of_baseline = _required_memory(curves["baseline"], NEAR_IDEAL * ideal) or float("nan")
    return [
        (Published("ideal, GB/s (300 before headers)", 282, "D"), ideal),
        (Published("memory for 90 % of ideal, baseline, GB/s", 450, "B"), of_baseline),
        (Published("ACE at 128 GB/s, % of ideal", 90, "R"), 100 * at_128 / ideal),
        (MEMORY, _over_ace(curves, at_128)),
    ]


def _over_ace(curves: dict[str, list[tuple[float, float]]], rate: float) -> float:
    """Returns the memory bandwidth of the baseline over that of ACE, at ACE's send rate."""
    return (_required_memory(curves["baseline"], rate) or float("nan")) / _ACE_MEMORY


def _engines(curves: dict[str, dict[str, list[tuple[float, float]]]]) -> pl.DataFrame:
    """Returns the memory that a baseline needs for the send rates of three engines."""
    rows = []
    for size, of_size in curves.items():
        variant = [(m, _rate(alone(ace(f"{m:.0f} GB/s", **VARIANT), size))) for m in _NEAR]
        known = {name: of_size[name] for name in ("ace", "ace_ample")}
        for engine, curve in (known | {"8 banks, 24 FSMs": variant}).items():
            rows.append({"torus": size, "engine": engine, **_needed(of_size, curve)})
    return pl.DataFrame(rows)


def _needed(
    of_size: dict[str, list[tuple[float, float]]], curve: list[tuple[float, float]]
) -> dict[str, float | None]:
    """Returns the send rate of an engine, and the memory of a baseline over that of the engine.

    None stands for a rate that is never reached: 90 % of ideal, or the engine's by a baseline.
    """
    ideal, rate = of_size["ideal"][0][1], dict(curve)[_ACE_MEMORY]
    same, near = (_required_memory(of_size["baseline"], one) for one in (rate, NEAR_IDEAL * ideal))
    own = _required_memory(curve, NEAR_IDEAL * ideal)
    return {
        "sent GB/s": round(rate, 1),
        "of_ideal": round(rate / ideal, 3),
        "over_ace_at_its_rate": round(same / _ACE_MEMORY, 2) if same else None,
        "over_ace_at_90_percent": round(near / own, 2) if near and own else None,
    }


def _peaks(curves: dict[str, dict[str, list[tuple[float, float]]]]) -> pl.DataFrame:
    """Returns the peaks of the topology, and the send rate of the ideal endpoint."""
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


def _assumptions(ideal: float) -> pl.DataFrame:
    """Returns ACE's send rates under each assumption, on 4x4x4."""
    memories = (64, 128, 900)
    cases = [(index, memory) for index in range(len(ASSUMPTIONS)) for memory in memories]

    def run(case: tuple[int, int]) -> AloneResult:
        index, memory = case
        _, between, settings = ASSUMPTIONS[index]
        return alone(ace(f"{memory} GB/s", **settings), "4x4x4", between)

    runs = at_once(run, cases)
    return pl.DataFrame(
        [
            {"assumption": ASSUMPTIONS[index][0]}
            | {f"at {memory} GB/s": round(_rate(runs[index, memory]), 1) for memory in memories}
            | {"of_ideal": round(_rate(runs[index, 128]) / ideal, 3)}
            for index in range(len(ASSUMPTIONS))
        ]
    )


SMS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16)


@cache
def _over_sms() -> dict[tuple[str, int], float]:
    """Returns send rates in GB/s by size and SMs, with unlimited memory bandwidth."""
    unlimited = "100 TB/s"
    cases = [(size, sms) for size in SHOWN for sms in SMS]
    return at_once(lambda case: _rate(alone(baseline(unlimited, case[1]), case[0])), cases)


def sm_values() -> list[tuple[Published, float]]:
    """Returns the published values of figure 6 and those of the baseline, on 4x4x4."""
    runs, ideal = _over_sms(), _rate(alone(IDEAL, "4x4x4"))
    enough = next(sms for sms in SMS if runs["4x4x4", sms] >= 0.97 * ideal)
    limited = _rate(alone(baseline("128 GB/s", 2), "4x4x4"))
    return [
        (Published("SMs for the peak on 4x4x4", 6, "B"), float(enough)),
        (Published("2 SMs, GB/s", 107, "D"), runs["4x4x4", 2]),
        (Published("2 SMs and 128 GB/s, GB/s", 85, "D"), limited),
    ]


def _figure_6(folder: Path) -> ExhibitResult:
    """Returns send rates over the SMs used for communication, with unlimited memory bandwidth."""
    runs = _over_sms()
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
    claims = compared(sm_values())
    ideal = _rate(alone(IDEAL, "4x4x4"))
    drawn = plot_curves(
        folder / "figure_6.svg", lines, x="SMs", y="send rate of an NPU (GB/s)",
        verdict=verdict_line(claims),
        anchors=[Anchor(6, ideal, "quoted", "4x4x4"), Anchor(2, 107, "derived", "4x4x4")],
    )  # fmt: skip
    return ExhibitResult(
        frame=frame,
        published=claims,
        source=f"the text on the figure, and values derived from 80 GB/s per SM. {SURE}",
        figures=(drawn,),
    )


FIGURES = {
    5: Exhibit(title="send rate of an all_reduce over memory bandwidth", make=_figure_5),
    6: Exhibit(title="send rate of an all_reduce over SMs", make=_figure_6),
}
