"""Figures 10, 11 and 12: training steps with the five configurations."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from statistics import mean
from typing import TYPE_CHECKING

import polars as pl

from tutti.endpoint import configurations
from tutti.papers import Exhibit, ExhibitResult, at_once
from tutti.papers.ace.published import BACKGROUND, SPEEDUPS, SURE, UTILISATION, compared
from tutti.papers.ace.system import BATCH, SAMPLE, SIZES, step
from tutti.report.plot import plot_curves, plot_stacked_bars

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tutti.papers.ace.published import Published
    from tutti.training import TrainingResult

BASELINES = ("no_overlap", "comm_opt", "comp_opt")
CONFIGURATIONS = (*BASELINES, "ace", "ideal")
LARGEST = "4x8x4"
"""128 NPUs."""

Ask = tuple[str, str, str]
"""A model, a size, a configuration."""
Runs = dict[Ask, "TrainingResult"]

NOT_PUBLISHED = (
    "the layers of GNMT and of the production DLRM, and how the paper's NPU times a layer, are not "
    "published: docs/papers/ace.md says what stands here instead"
)


@cache
def all_steps() -> Runs:
    """Every model on every size with every configuration, two iterations."""
    known = configurations()
    asked = list(product(BATCH, SIZES, CONFIGURATIONS))
    return at_once(lambda ask: step(ask[0], ask[1], known[ask[2]]), asked)


def iteration(run: TrainingResult) -> float:
    """Picoseconds of an iteration, the mean of all."""
    return run.total.ps / run.iterations


def period(run: TrainingResult) -> float:
    """Picoseconds of an iteration when all go alike: the mean of the later half."""
    ends = run.record.iterations()
    half = len(ends) // 2
    return (ends[-1] - ends[half - 1]) / (len(ends) - half)


def speedup(runs: Mapping[Ask, TrainingResult], model: str, size: str) -> float:
    """Iteration time of the best baseline over that of ACE."""
    best = min(iteration(runs[model, size, name]) for name in BASELINES)
    return best / iteration(runs[model, size, "ace"])


def ceiling(runs: Mapping[Ask, TrainingResult], model: str, size: str) -> float:
    """No endpoint gains more over the best baseline: its time over that of computing alone."""
    best = min(iteration(runs[model, size, name]) for name in BASELINES)
    ideal = runs[model, size, "ideal"]
    return best / (ideal.compute / ideal.iterations)


def active_percent(run: TrainingResult) -> tuple[float, float]:
    """Per cent of the forward and of the backward pass in which the endpoint has a chunk."""
    window = run.step.window.ps if run.step.window else 1
    backward = _backward(run)
    sums = {False: [0, 0], True: [0, 0]}
    total = run.total.ps
    busy = run.record.active_over_time()
    for index in range(-(-total // window)):
        middle = index * window + window // 2
        part = sums[any(start <= middle < end for start, end in backward)]
        part[0] += busy[index] if index < len(busy) else 0
        part[1] += min(window, total - index * window)
    forward, back = (100 * active / max(whole, 1) for active, whole in sums.values())
    return round(forward, 1), round(back, 1)


def _backward(run: TrainingResult) -> list[tuple[int, int]]:
    """From the first weight gradient of each iteration to the first forward pass of the next."""
    tasks = run.step.program(run.configuration).tasks
    first: dict[tuple[str, int], int] = {}
    for task, start, _ in run.record.spans():
        kind, _, of, iteration, _ = tasks[task]
        if kind == "compute":
            first[of, iteration] = min(start, first.get((of, iteration), start))
    return [
        (
            first["weight_gradient", iteration],
            first.get(("forward", iteration + 1), run.total.ps),
        )
        for iteration in range(run.iterations)
    ]


def _figure_10(folder: Path) -> ExhibitResult:
    """Utilisation over time at 128 NPUs, 2 iterations."""
    runs = all_steps()
    frames, drawn = [], []
    for model in BATCH:
        lines = {}
        for name in CONFIGURATIONS:
            frame = _over_time(runs[model, LARGEST, name], model, name)
            frames.append(frame)
            lines[name] = (frame["ms"], frame["links"])
        drawn.append(
            plot_curves(
                folder / f"figure_10_{model}.svg", lines, x="time (ms)", y="part of links at work"
            )
        )
    rows = [
        {
            "model": model,
            "configuration": name,
            "ms": round(run.total.ps / 1e9, 3),
            "links_at_work": round(_links_at_work(run), 4),
            "while_communicating": round(_while_communicating(run), 4),
            "npu_at_work": round(run.compute / run.total.ps, 4),
        }
        for (model, size, name), run in runs.items()
        if size == LARGEST
    ]
    return ExhibitResult(
        frame=pl.DataFrame(rows),
        source="a picture without digits: nothing to compare but the shape, two bursts of traffic",
        figures=tuple(drawn),
        notes=(
            "windows of 20 us; the part of time in which a link works, mean over an NPU's links",
        ),
        tables={"over_time": pl.concat(frames)},
    )


def _over_time(run: TrainingResult, model: str, name: str) -> pl.DataFrame:
    """A row for each window."""
    window = run.step.window.ps if run.step.window else 1
    links = len(run.record.links())
    on_links, computing = run.record.over_time()
    longest = max(len(on_links), len(computing))
    padded = [[*busy, *([0] * (longest - len(busy)))] for busy in (on_links, computing)]
    return pl.DataFrame(
        {
            "model": [model] * longest,
            "configuration": [name] * longest,
            "ms": [index * window / 1e9 for index in range(longest)],
            "links": [round(busy / window / links, 4) for busy in padded[0]],
            "npu": [round(busy / window, 4) for busy in padded[1]],
        }
    )


def _links_at_work(run: TrainingResult) -> float:
    rows = run.record.links()
    return sum(row[1] for row in rows) / len(rows) / run.total.ps


def _while_communicating(run: TrainingResult) -> float:
    rows = run.record.links()
    _, overlap, exposed, _ = run.record.breakdown()
    return sum(row[1] for row in rows) / len(rows) / max(overlap + exposed, 1)


def _figure_11(folder: Path) -> ExhibitResult:
    """Where an iteration's time goes, and what ACE gains."""
    runs = all_steps()
    frame = pl.DataFrame([_row(ask, run) for ask, run in runs.items()])
    drawn = [
        plot_stacked_bars(
            folder / f"figure_11_{model}.svg",
            {
                f"{size}\n{name}": _parts(runs[model, size, name])
                for size, name in product(SIZES, CONFIGURATIONS)
            },
            y="iteration (ms)",
        )
        for model in BATCH
    ]
    return ExhibitResult(
        frame=frame,
        published=compared(_claims(runs)),
        source=f"the abstract. {SURE}",
        figures=tuple(drawn),
        notes=(
            "ceiling: the best baseline over computing alone; no endpoint can gain more here",
            "batches: the same network and endpoints, fewer samples on each NPU",
            NOT_PUBLISHED,
        ),
        tables={
            "speedups": _speedups(runs),
            "batches": _batches(),
            "links": _links(),
        },
    )


def _speedups(runs: Runs) -> pl.DataFrame:
    """What ACE gains over the best baseline and over each, and what no endpoint can exceed."""
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


def _row(ask: Ask, run: TrainingResult) -> dict[str, object]:
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
        runs[model, size, "ace"].network_rate / runs[model, size, name].network_rate
        for model, size, name in product(BATCH, SIZES, ("comm_opt", "comp_opt"))
    ]
    return [*rows, (UTILISATION[0], mean(gains)), (UTILISATION[1], max(gains))]


def _batches() -> pl.DataFrame:
    """What ACE gains when each NPU has fewer samples, on 128 NPUs."""
    known = configurations()
    asked = [
        (model, samples // part, name)
        for model, samples in BATCH.items()
        for part in (1, 2, 4, 8, 16)
        for name in CONFIGURATIONS
    ]
    runs = at_once(lambda ask: step(ask[0], LARGEST, known[ask[2]], batch=ask[1]), asked)
    rows = []
    for model, samples in BATCH.items():
        for part in (1, 2, 4, 8, 16):
            batch = samples // part
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
    """The same with links of 200 cycles between packages, as in ASTRA-sim's sample."""
    known = configurations()
    asked = [(model, LARGEST, name) for model in BATCH for name in CONFIGURATIONS]
    runs = at_once(lambda ask: step(ask[0], ask[1], known[ask[2]], between=SAMPLE), asked)
    usual = all_steps()
    return pl.DataFrame(
        [
            {
                "model": model,
                "speedup": round(speedup(usual, model, LARGEST), 3),
                "speedup_with_200_cycles": round(speedup(runs, model, LARGEST), 3),
            }
            for model in BATCH
        ]
    )


def _figure_12(folder: Path) -> ExhibitResult:
    """DLRM with its tables in the background of the loop."""
    known = configurations()
    asked = [(name, background) for name in CONFIGURATIONS for background in (False, True)]

    def run(ask: tuple[str, bool]) -> TrainingResult:
        name, background = ask
        configuration = replace(known[name], background=background)
        return step("dlrm", LARGEST, configuration, iterations=8)

    runs = at_once(run, asked)
    gains = {name: period(runs[name, False]) / period(runs[name, True]) for name in known}
    frame = pl.DataFrame(
        [
            {
                "configuration": name,
                "default_us": round(period(runs[name, False]) / 1e6, 1),
                "background_us": round(period(runs[name, True]) / 1e6, 1),
                "compute_us": round(runs[name, False].compute / 8e6, 1),
                "background_compute_us": round(runs[name, True].compute / 8e6, 1),
                "gain": round(gains[name], 3),
            }
            for name in CONFIGURATIONS
        ]
    )
    bars = {
        f"{name}\n{'background' if background else 'default'}": _parts(run)
        for (name, background), run in runs.items()
    }
    return ExhibitResult(
        frame=frame,
        published=compared([(published, gains[name]) for name, published in BACKGROUND.items()]),
        source=f"recalled values of the figure. {SURE}",
        figures=(plot_stacked_bars(folder / "figure_12.svg", bars, y="iteration (ms)"),),
        notes=("the later half of 8 iterations", NOT_PUBLISHED),
    )


FIGURES = {
    10: Exhibit(title="how busy NPUs and links are over time, 128 NPUs", make=_figure_10),
    11: Exhibit(title="where an iteration's time goes, 16 to 128 NPUs", make=_figure_11),
    12: Exhibit(title="DLRM with its tables in the background", make=_figure_12),
}
