"""Figures 10, 11 and 12: training steps with the five configurations."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from statistics import mean
from typing import TYPE_CHECKING

import polars as pl

from tutti.base.progress import at_once
from tutti.training.endpoint import Npu, configurations
from tutti_papers import Exhibit, ExhibitResult, looks
from tutti_papers.ace.conclusions import (
    counts,
    of_background,
    of_ideal,
    of_iterations,
    of_links,
    of_sensitivity,
)
from tutti_papers.ace.published import BACKGROUND, CERTAINTY, SPEEDUPS, SURE, UTILISATION, compared
from tutti_papers.ace.readings import MODELS, WITHIN, grid, score, scores
from tutti_papers.ace.system import SAMPLE, SIZES, ace, step
from tutti_papers.ace.timing import BASELINES, LARGEST, active_percent, iteration, period
from tutti_papers.ace.workloads import BATCH, slowdown_of
from tutti_papers.exhibits import COLUMN, plot_bars, plot_panels

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tutti.training.results import TrainingResult
    from tutti_papers.ace.published import Published
    from tutti_papers.claims import Conclusion

CONFIGURATIONS = (*BASELINES, "ace", "ideal")

Case = tuple[str, str, str]
"""Model, size, configuration."""
Runs = dict[Case, "TrainingResult"]

NO_DIGITS = "a figure without digits; only its shape is comparable: two bursts of traffic"
NOT_PUBLISHED = (
    "resnet50_libra and dlrm_libra: public workloads of the authors' group; resnet50, gnmt and "
    "dlrm: MLPerf's layers and a roofline, of GNMT a quarter (fitted)"
)


@cache
def all_steps() -> Runs:
    """Runs two iterations of every model on every size with every configuration."""
    known = configurations()
    cases = list(product(BATCH, SIZES, CONFIGURATIONS))
    return at_once(lambda case: step(case[0], case[1], known[case[2]]), cases)


def speedup(runs: Mapping[Case, TrainingResult], model: str, size: str) -> float:
    """Returns the iteration time of the best baseline over that of ACE."""
    best = min(iteration(runs[model, size, name]) for name in BASELINES)
    return best / iteration(runs[model, size, "ace"])


def ceiling(runs: Mapping[Case, TrainingResult], model: str, size: str) -> float:
    """Returns the upper bound of a speedup: best baseline over computation without exposed time."""
    best = min(iteration(runs[model, size, name]) for name in BASELINES)
    ideal = runs[model, size, "ideal"]
    return best / (ideal.compute / ideal.iterations)


def _figure_10(folder: Path) -> ExhibitResult:
    """Returns utilisation over time: 128 NPUs, two iterations."""
    runs = all_steps()
    frames, drawn = [], []
    for model in BATCH:
        lines = {}
        for name in CONFIGURATIONS:
            frame = _over_time(runs[model, LARGEST, name], model, name)
            frames.append(frame)
            lines[name] = (frame["ms"], frame["links"])
        drawn.append(
            plot_panels(
                folder / f"figure_10_{model}.svg", lines, x=f"time, {model} (ms)",
                y="link utilisation", verdict=NO_DIGITS, looks=looks.ACE,
            )
        )  # fmt: skip
    rows = [
        _utilisation_row(model, name, run)
        for (model, size, name), run in runs.items()
        if size == LARGEST
    ]
    return ExhibitResult(
        frame=pl.DataFrame(rows),
        conclusions=of_links(
            {
                (m, name): _by_place(runs[m, LARGEST, name])
                for m, name in product(MODELS, CONFIGURATIONS)
            },
            {m: _while_communicating(runs[m, LARGEST, "comm_opt"]) for m in MODELS},
        ),
        source=NO_DIGITS,
        figures=tuple(drawn),
        notes=("windows of 20 us; utilisation is the mean over the links of an NPU",),
        tables={"over_time": pl.concat(frames)},
    )


def _utilisation_row(model: str, name: str, run: TrainingResult) -> dict[str, object]:
    inside, between = _by_place(run)
    return {
        "model": model,
        "configuration": name,
        "ms": round(run.total.ps / 1e9, 3),
        "inside_packages": round(inside, 4),
        "between_packages": round(between, 4),
        "while_communicating": round(_while_communicating(run), 4),
        "npu_utilisation": round(run.compute / run.total.ps, 4),
    }


def _over_time(run: TrainingResult, model: str, name: str) -> pl.DataFrame:
    """Returns a row per window."""
    window = run.step.window.ps if run.step.window else 1
    links = len(run.record.links())
    windows = run.record.over_time()
    series = (windows.links_ps, windows.computing_ps)
    longest = max(map(len, series))
    padded = [[*busy, *([0] * (longest - len(busy)))] for busy in series]
    return pl.DataFrame(
        {
            "model": [model] * longest,
            "configuration": [name] * longest,
            "ms": [index * window / 1e9 for index in range(longest)],
            "links": [round(busy / window / links, 4) for busy in padded[0]],
            "npu": [round(busy / window, 4) for busy in padded[1]],
        }
    )


def _by_place(run: TrainingResult) -> tuple[float, float]:
    """Returns the mean utilisation of an NPU's links inside its package and between packages."""
    inside = [used.busy_ps for used in run.record.links() if used.name.startswith("ring 0 ")]
    between = [used.busy_ps for used in run.record.links() if not used.name.startswith("ring 0 ")]
    return mean(inside) / run.total.ps, mean(between) / run.total.ps


def _while_communicating(run: TrainingResult) -> float:
    rows = run.record.links()
    parts = run.record.breakdown()
    communicating = parts.overlap_ps + parts.exposed_ps
    return sum(used.busy_ps for used in rows) / len(rows) / max(communicating, 1)


def _figure_11(folder: Path) -> ExhibitResult:
    """Returns the breakdown of iterations, and the speedups of ACE."""
    runs = all_steps()
    frame = pl.DataFrame([_row(case, run) for case, run in runs.items()])
    values = _claims(runs)
    claims = (
        *compared(values[: -len(UTILISATION)], "{}: speedup of ACE over the best baseline"),
        *compared(values[-len(UTILISATION) :]),
    )
    parts = {case: _parts(run) for case, run in runs.items()}
    conclusions = _conclusions(parts)
    verdict = counts(claims, conclusions)
    drawn = [_drawn_parts(folder, model, parts, verdict) for model in BATCH]
    return ExhibitResult(
        frame=frame,
        published=claims,
        conclusions=conclusions,
        readings=scores(),
        source=f"the abstract. {SURE}",
        figures=(_drawn_speedups(folder, runs, verdict), *drawn),
        notes=(
            "ceiling: best baseline over computation alone, the upper bound of a speedup",
            "batches: same network and endpoints, fewer samples per NPU",
            "network utilisation: iterations of a baseline over those of ACE, for the same bytes",
            f"readings: published values within {100 * WITHIN:.0f} and 15 %, cases of conclusions",
            "score: distinct published values of figures 5, 6, 9, 11 and 12 and of table 4",
            "the best joint reading is of those with the paper's ACE",
            NOT_PUBLISHED,
        ),
        tables={
            "speedups": _speedups(runs),
            "batches": _batches(),
            "links": _links(),
            "utilisation": _utilisation(runs),
            "exchanges": _exchanges(runs),
            "readings": grid(),
            "score": score(),
        },
    )


def _conclusions(parts: Mapping[Case, Mapping[str, float]]) -> tuple[Conclusion, ...]:
    """Returns the conclusions about the paper's three workloads."""
    of_paper = {case: one for case, one in parts.items() if case[0] in MODELS}
    time = {case: one["compute"] + one["exposed"] for case, one in of_paper.items()}
    left = configurations()["comm_opt"].compute(Npu())
    return (
        *of_iterations(time, {case: one["exposed"] for case, one in of_paper.items()}),
        of_ideal(time),
        of_sensitivity({model: slowdown_of(model, left) for model in MODELS}),
    )


def _drawn_parts(
    folder: Path, model: str, parts: Mapping[Case, Mapping[str, float]], verdict: str
) -> Path:
    """Draws the compute and the exposed communication of an iteration."""
    return plot_bars(
        folder / f"figure_11_{model}.svg",
        {size: {name: parts[model, size, name] for name in CONFIGURATIONS} for size in SIZES},
        y=f"iteration, {model} (ms)", verdict=verdict, looks=looks.ACE,
    )  # fmt: skip


def _drawn_speedups(folder: Path, runs: Runs, verdict: str) -> Path:
    """Draws the speedups of ACE over the best baseline: mean and maximum over sizes."""
    bars, published = {}, {}
    for model, values in SPEEDUPS.items():
        found = [speedup(runs, model, size) for size in SIZES]
        bars[model] = {"mean over sizes": {"": mean(found)}, "maximum": {"": max(found)}}
        for name, value in zip(bars[model], values, strict=True):
            published[model, name] = (value.value, CERTAINTY[value.sure])
    return plot_bars(
        folder / "figure_11.svg", bars, y="speedup over the best baseline", verdict=verdict,
        published=published, width=COLUMN, mean=False,
    )  # fmt: skip


def _speedups(runs: Runs) -> pl.DataFrame:
    """Returns the speedups of ACE over the best baseline and over each, with the upper bound."""
    rows = []
    for model, size in product(BATCH, SIZES):
        ace = iteration(runs[model, size, "ace"])
        over = {
            f"over_{name}": round(iteration(runs[model, size, name]) / ace, 3) for name in BASELINES
        }
        gain = round(speedup(runs, model, size), 3)
        limit = round(ceiling(runs, model, size), 3)
        rows.append({"model": model, "torus": size, "speedup": gain, "ceiling": limit, **over})
    return pl.DataFrame(rows)


def _row(ask: Case, run: TrainingResult) -> dict[str, object]:
    model, size, name = ask
    compute, exposed = _parts(run).values()
    return {
        "model": model,
        "torus": size,
        "configuration": name,
        "iteration_ms": round(iteration(run) / 1e9, 3),
        "compute_ms": round(compute, 3),
        "exposed_ms": round(exposed, 3),
        "sent GB/s": round(run.network_rate / 1e9, 1),
    }


def _parts(run: TrainingResult) -> dict[str, float]:
    count = run.iterations * 1e9
    return {"compute": run.compute / count, "exposed": (run.exposed + run.idle) / count}


def _claims(runs: Runs) -> list[tuple[Published, float]]:
    rows = []
    for model, (average, most) in SPEEDUPS.items():
        found = [speedup(runs, model, size) for size in SIZES]
        rows += [(average, mean(found)), (most, max(found))]
    gains = [
        _by_iterations(runs, *case)
        for model in SPEEDUPS
        for case in product([model], SIZES, BASELINES)
    ]
    return [*rows, (UTILISATION[0], mean(gains)), (UTILISATION[1], max(gains))]


def _by_iterations(runs: Runs, model: str, size: str, name: str) -> float:
    """Returns ACE's network utilisation over that of a baseline: they send the same bytes."""
    return iteration(runs[model, size, name]) / iteration(runs[model, size, "ace"])


def _utilisation(runs: Runs) -> pl.DataFrame:
    """Returns ACE's network utilisation over baselines, in iterations and while communicating."""
    rows = []
    for model, name in product(BATCH, BASELINES):
        times = [_by_iterations(runs, model, size, name) for size in SIZES]
        rates = [
            runs[model, size, "ace"].network_rate / runs[model, size, name].network_rate
            for size in SIZES
        ]
        rows.append(
            {
                "model": model,
                "baseline": name,
                "iterations": round(mean(times), 3),
                "iterations_most": round(max(times), 3),
                "while_communicating": round(mean(rates), 3),
                "while_communicating_most": round(max(rates), 3),
            }
        )
    return pl.DataFrame(rows)


def _exchanges(runs: Runs) -> pl.DataFrame:
    """Returns iterations of DLRM if any FSM, or only those of a phase, process all-to-alls."""
    cases = list(product(("dlrm", "dlrm_libra"), SIZES))
    shared = at_once(lambda case: step(*case, ace(exchanges="of_phase")), cases)
    return pl.DataFrame(
        [
            {
                "model": model,
                "torus": size,
                "any_fsm_ms": round(iteration(runs[model, size, "ace"]) / 1e9, 3),
                "of_phase_ms": round(iteration(shared[model, size]) / 1e9, 3),
                "comm_opt_ms": round(iteration(runs[model, size, "comm_opt"]) / 1e9, 3),
            }
            for model, size in cases
        ]
    )


_ROOFLINE = ("resnet50", "gnmt")
_PARTS = (1, 2, 4, 8, 16)


def _batches() -> pl.DataFrame:
    """Returns the speedups of ACE with smaller batches, on 128 NPUs."""
    known = configurations()
    cases = [
        (model, BATCH[model] // part, name)
        for model in _ROOFLINE
        for part in _PARTS
        for name in CONFIGURATIONS
    ]
    runs = at_once(lambda case: step(case[0], LARGEST, known[case[2]], batch=case[1]), cases)
    rows = []
    for model in _ROOFLINE:
        for part in _PARTS:
            batch = BATCH[model] // part
            of_batch = {(model, LARGEST, name): runs[model, batch, name] for name in CONFIGURATIONS}
            rows.append(
                {
                    "model": model,
                    "batch": batch,
                    "compute_ms": round(of_batch[model, LARGEST, "ideal"].compute / 2e9, 3),
                    "speedup": round(speedup(of_batch, model, LARGEST), 3),
                    "ceiling": round(ceiling(of_batch, model, LARGEST), 3),
                    "active_percent": active_percent(of_batch[model, LARGEST, "ace"])[1],
                }
            )
    return pl.DataFrame(rows)


def _links() -> pl.DataFrame:
    """Returns speedups with links of 200 cycles between packages, as in ASTRA-sim's sample."""
    known = configurations()
    cases = [(model, LARGEST, name) for model in BATCH for name in CONFIGURATIONS]
    runs = at_once(lambda case: step(case[0], case[1], known[case[2]], between=SAMPLE), cases)
    default = all_steps()
    return pl.DataFrame(
        [
            {
                "model": model,
                "speedup": round(speedup(default, model, LARGEST), 3),
                "speedup_with_200_cycles": round(speedup(runs, model, LARGEST), 3),
            }
            for model in BATCH
        ]
    )


def _figure_12(folder: Path) -> ExhibitResult:
    """Returns DLRM iterations with the embedding tables in the background."""
    known = configurations()
    cases = list(product(("dlrm", "dlrm_libra"), CONFIGURATIONS, (False, True)))

    def run(case: tuple[str, str, bool]) -> TrainingResult:
        model, name, background = case
        configuration = replace(known[name], background=background)
        return step(model, LARGEST, configuration, iterations=8)

    every = at_once(run, cases)
    frame = pl.DataFrame(
        [
            _background_row(model, name, every[model, name, False], every[model, name, True])
            for model, name in product(("dlrm", "dlrm_libra"), CONFIGURATIONS)
        ]
    )
    runs = {case[1:]: one for case, one in every.items() if case[0] == "dlrm_libra"}
    gains = {name: period(runs[name, False]) / period(runs[name, True]) for name in known}
    claims = compared(
        [(published, gains[name]) for name, published in BACKGROUND.items()],
        "DLRM, {}: speedup by tables in the background",
    )
    compute = {
        name: (runs[name, False].compute / 8e6, runs[name, True].compute / 8e6)
        for name in BACKGROUND
    }
    conclusions = of_background(gains, compute)
    drawn = _drawn_background(folder, runs, counts(claims, conclusions))
    return ExhibitResult(
        frame=frame,
        published=claims,
        conclusions=conclusions,
        source=f"recalled values of the figure. {SURE}",
        figures=(drawn,),
        notes=("times are means over the later half of 8 iterations", NOT_PUBLISHED),
    )


def _drawn_background(
    folder: Path, runs: Mapping[tuple[str, bool], TrainingResult], verdict: str
) -> Path:
    """Draws iterations with and without tables in the background."""
    return plot_bars(
        folder / "figure_12.svg",
        {name: {"default": {"": period(runs[name, False]) / 1e9},
                "background": {"": period(runs[name, True]) / 1e9}} for name in CONFIGURATIONS},
        y="iteration (ms)", verdict=verdict, width=COLUMN, mean=False,
        published={(name, "background"): (period(runs[name, False]) / 1e9 / one.value,
                                          CERTAINTY[one.sure])
                   for name, one in BACKGROUND.items()},
    )  # fmt: skip


def _background_row(
    model: str, name: str, default: TrainingResult, background: TrainingResult
) -> dict[str, object]:
    return {
        "model": model,
        "configuration": name,
        "default_us": round(period(default) / 1e6, 1),
        "background_us": round(period(background) / 1e6, 1),
        "compute_us": round(default.compute / 8e6, 1),
        "background_compute_us": round(background.compute / 8e6, 1),
        "gain": round(period(default) / period(background), 3),
    }


FIGURES = {
    10: Exhibit(title="utilisation of NPUs and links over time, 128 NPUs", make=_figure_10),
    11: Exhibit(title="breakdown of an iteration, 16 to 128 NPUs", make=_figure_11),
    12: Exhibit(title="DLRM with its tables in the background", make=_figure_12),
}
