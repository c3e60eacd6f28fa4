"""Figs 8 to 15 and Tables 1 and 2, measured on real ranks with emulated distance.

Each exhibit compares measured times with the emulated model and the published values. The published
times are of another network, so only ratios and orders are comparable.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import polars as pl

from tutti.base.progress import watched
from tutti.mpi.bench import summarise
from tutti.mpi.bench_multicast import FITTED_PEERS, fit
from tutti.mpi.distance import NOTE
from tutti.mpi.machine import this_machine
from tutti.mpi.view.bench import plot_multicasts
from tutti.view.plot import plot_boxes
from tutti_papers import Exhibit, ExhibitResult
from tutti_papers.exhibits import plot_curves
from tutti_papers.recursive_multiplying.conclusions import (
    CLUSTERED,
    of_64_ranks,
    of_blocks,
    of_eight_ranks,
    of_the_model,
)
from tutti_papers.recursive_multiplying.published import (
    TABLE_1,
    compared,
    doubling,
    reduction,
)
from tutti_papers.recursive_multiplying.schedules import factored
from tutti_papers.recursive_multiplying_live import runs

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tutti_papers.recursive_multiplying.published import Table2Row

EIGHT = ("a2,a2,a2", "a2,a4", "a4,a2", "a8")
SUBSET_64 = ("a2,a2,a2,a2,a2,a2", "a4,a4,a4", "a8,a8", "a16,a4")
SIZES_8 = tuple(8 << power for power in range(10))
SIZES_64 = (8, 64, 256, 1024, 4096)
BLOCK_SIZES = (1, 2, 5, 10, 20)
SCATTERED = (4, 6, 8, 12, 16, 24, 32)
WIDEST = 16


def _notes() -> tuple[str, ...]:
    return (
        f"""{NOTE}: real ranks of {runs.mpi()} on one machine ({this_machine()}). A message \
becomes visible no earlier than {runs.distance()} predicts. No network was measured.""",
    )


# --- tables ---------------------------------------------------------------------------------------


def _table_1(_folder: Path) -> ExhibitResult:
    """Returns alpha_p and alpha_r, fitted to multicasts with non-blocking sends."""
    fitted = fit(runs.multicasts()).filter(~pl.col("blocking"))
    emulated = {"alpha_p": runs.ALPHA_P.ps, "alpha_r": runs.ALPHA_R.ps}
    rows = []
    for one in fitted.iter_rows(named=True):
        theirs = dict(zip(("alpha_p", "alpha_r"), TABLE_1[one["statistic"]], strict=True))
        for name in ("alpha_p", "alpha_r"):
            emulated_ms = emulated[name] / 1e9
            rows.append(
                {
                    "statistic": one["statistic"],
                    "parameter": name,
                    "emulated_ms": emulated_ms,
                    "fitted_ms": one[f"{name}_ps"] / 1e9,
                    "low_ms": one[f"{name}_low_ps"] / 1e9,
                    "high_ms": one[f"{name}_high_ps"] / 1e9,
                    "error_percent": 100 * (one[f"{name}_ps"] / 1e9 / emulated_ms - 1),
                    "published_us": theirs[name],
                }
            )
    ratios = {
        one["statistic"]: one["alpha_p_ps"] / one["alpha_r_ps"]
        for one in fitted.iter_rows(named=True)
    }
    claims = [
        (f"alpha_p over alpha_r, {which}", alpha_p / alpha_r, "Table 1", ratios[which])
        for which, (alpha_p, alpha_r) in TABLE_1.items()
    ]
    return ExhibitResult(
        frame=pl.DataFrame(rows),
        published=compared(claims),
        source=f"Table 1; section 5.1: linear regression over one to {FITTED_PEERS} peers",
        notes=(*_notes(), "low_ms to high_ms: 95 % confidence interval, by bootstrap."),
    )


def _table_2(_folder: Path) -> ExhibitResult:
    """Returns rows up to N = 64: measured and model times, their ratio, published reductions."""
    rows, all_ratios, order = [], [], []
    claims: list[tuple[str, float | tuple[float, float], str, float]]
    for row in watched("rows", runs.EMULATED_ROWS):
        found = runs.row_of(row)
        ratios = [found[f"{n}_median"] / found[f"{n}_model"] for n in ("rd", "rm")]
        all_ratios += ratios
        order.append((row.ranks, reduction(found, "median"), reduction(found, "model")))
        rows.append(_row_of_table_2(row, found))
    measured = [name for name, *_ in sorted(order, key=lambda one: one[1])]
    modelled = [name for name, *_ in sorted(order, key=lambda one: one[2])]
    frame = pl.DataFrame(rows)
    claims = [
        ("largest difference of a median from the model, %", (0.0, 10.0), "target",
         100 * max(abs(ratio - 1) for ratio in all_ratios)),
        ("share of pairs of reductions in the model's order", 1.0, "target",
         _agreement((modelled, measured) for _, measured, modelled in order)),
        ("wrong elements", 0.0, "target", float(frame["wrong"].sum())),
    ]  # fmt: skip
    return ExhibitResult(
        frame=frame,
        published=compared(claims),
        source="Table 2: its schedules up to N = 64, 8-byte sum, blocks of 10 all_reduces",
        notes=(
            *_notes(),
            f"N in ascending order of the reduction: measured {measured}, model {modelled}.",
        ),
    )


def _agreement(order: Iterable[tuple[float, float]]) -> float:
    """Returns the share of pairs, 1 % or more apart in the model, that are measured in order."""
    pairs = [
        (one, other) if one[0] < other[0] else (other, one)
        for one, other in itertools.combinations(order, 2)
        if abs(one[0] - other[0]) >= 0.01 * max(abs(one[0]), abs(other[0]))
    ]
    return sum(one[1] < other[1] for one, other in pairs) / len(pairs) if pairs else 1.0


def _row_of_table_2(row: Table2Row, found: dict[str, float]) -> dict[str, object]:
    values: dict[str, object] = {"N": row.ranks, "schedule": row.schedule}
    for name in ("rd", "rm"):
        median, model = found[f"{name}_median"], found[f"{name}_model"]
        values[f"{name}_minimum_ms"] = round(found[f"{name}_minimum"], 3)
        values[f"{name}_median_ms"] = round(median, 3)
        values[f"{name}_model_ms"] = round(model, 3)
        values[f"{name}_over_model"] = round(median / model, 4)
    values["reduction"] = round(reduction(found, "median"), 1)
    values["model_reduction"] = round(reduction(found, "model"), 1)
    values["published_minimum"], values["published_median"] = row.reductions
    values["wrong"] = found["wrong"]
    return values


# --- figures --------------------------------------------------------------------------------------


def _figure_8(folder: Path) -> ExhibitResult:
    """Returns multicasts to 1 to 16 peers, with blocking and non-blocking sends."""
    frame = runs.multicasts()
    times = pl.col("received_ps") / 1e9
    found = (
        frame.group_by(["blocking", "peers"], maintain_order=True)
        .agg(
            minimum_ms=times.min(), median_ms=times.median(), upper_quartile_ms=times.quantile(0.75)
        )
        .sort("blocking", "peers")
    )
    slower = [
        found.filter((pl.col("peers") == peers) & pl.col("blocking"))["median_ms"].item()
        > found.filter((pl.col("peers") == peers) & ~pl.col("blocking"))["median_ms"].item()
        for peers in range(2, runs.PEERS + 1)
    ]
    claims = [
        ("share of peer counts from 2 on with faster non-blocking sends (text: clearly)", 1.0,
         "section 5.1", sum(slower) / len(slower)),
    ]  # fmt: skip
    return ExhibitResult(
        frame=found,
        published=compared(claims),
        source="Fig. 8 and section 5.1; no values were read from the figure",
        figures=(plot_multicasts(folder / "figure_8.svg", frame),),
        notes=(*_notes(), "A blocking send occupies its sender until the message has arrived."),
    )


def _figure_9(folder: Path) -> ExhibitResult:
    """Returns recursive doubling and multiplying over N."""
    series: dict[str, list[list[float]]] = {"recursive doubling": [], "recursive multiplying": []}
    lines: dict[str, list[float | None]] = {name: [] for name in series}
    rows = []
    for row in watched("rows", runs.EMULATED_ROWS):
        stages = (doubling(row.ranks), row.schedule)
        blocks = runs.measured(row.ranks, stages)
        found = runs.row_of(row)
        rows.append(
            {"ranks": row.ranks, **{f"{k}_ms": v for k, v in found.items() if k != "wrong"}}
        )
        for name, one in zip(series, stages, strict=True):
            part = blocks.filter(pl.col("schedule") == runs.multiplying(one))
            series[name].append((part["time_ps"] / 1e9).to_list())
            lines[name].append(part["model_ps"][0] / 1e9)
    drawn = plot_boxes(
        folder / "figure_9.svg", [str(row.ranks) for row in runs.EMULATED_ROWS], series,
        x="N", y="time (ms)", lines=lines, title=f"all_reduce of 8 bytes; {NOTE}",
    )  # fmt: skip
    frame = pl.DataFrame(rows)
    faster = frame.filter(pl.col("rm_median_ms") < pl.col("rd_median_ms")).height
    return ExhibitResult(
        frame=frame,
        published=compared(
            [(f"medians below recursive doubling, out of {frame.height}", frame.height,
              "section 5.3", faster)]
        ),
        source="Fig. 9; no values were read from the figure",
        figures=(drawn,),
        notes=_notes(),
    )  # fmt: skip


def _sweep(folder: Path, number: int) -> ExhibitResult:
    """Returns times over message sizes; beta makes bandwidth bind at the published sizes."""
    ranks, schedules, sizes = (8, EIGHT, SIZES_8) if number == 10 else (64, SUBSET_64, SIZES_64)
    blocks = runs.measured(
        ranks, schedules, sizes=sizes, blocks=runs.FEW_BLOCKS, each=2, per_byte=True
    )
    summary = summarise(blocks)
    stages = pl.col("schedule").str.strip_prefix("recursive_multiplying:")
    frame = summary.select(
        stages, elements=pl.col("size_bytes") // 8, minimum_ms=pl.col("least_ps") / 1e9,
        median_ms=pl.col("median_ps") / 1e9, model_ms=pl.col("model_ps") / 1e9,
        over_model=pl.col("median_ps") / pl.col("model_ps"),
    )  # fmt: skip
    named = blocks.with_columns(stages.alias("stages"))
    series = {
        name: [
            (part["time_ps"] / 1e9).to_list()
            for size in sizes
            for part in [named.filter((pl.col("stages") == name) & (pl.col("size_bytes") == size))]
        ]
        for name in schedules
    }
    lines = {name: list(frame.filter(pl.col("schedule") == name)["model_ms"]) for name in schedules}
    drawn = plot_boxes(
        folder / f"figure_{number}.svg", [str(size // 8) for size in sizes], series,
        x="elements of 8 bytes", y="time (ms)", lines=lines,
        title=f"{ranks} ranks; {NOTE}", logarithmic=True,
    )  # fmt: skip
    best = frame.group_by("elements", maintain_order=True).agg(
        measured=pl.col("schedule").sort_by("median_ms").first(),
        modelled=pl.col("schedule").sort_by("model_ms").first(),
    )
    claims = [
        ("largest difference of a median from the model, %", (0.0, 10.0), "target",
         100 * max(abs(ratio - 1) for ratio in frame["over_model"])),
    ]  # fmt: skip
    minima, medians = (
        {(name, elements): time
         for name, elements, time in frame.select("schedule", "elements", column).iter_rows()}
        for column in ("minimum_ms", "median_ms")
    )  # fmt: skip
    conclusions = of_eight_ranks(minima, medians) if number == 10 else of_64_ranks(minima)
    return ExhibitResult(
        frame=frame,
        published=compared(claims),
        conclusions=conclusions,
        source=f"Fig. {number} and section 5.4; no values were read from its curves",
        figures=(drawn,),
        tables={"fastest by size": best},
        notes=(
            *_notes(),
            f"""beta is set so that {runs.BYTES_IN_ALPHA_R} bytes cost alpha_r: bandwidth binds \
near 24 to 32 elements, as the text states.""",
        ),
    )


def _figure_12(folder: Path) -> ExhibitResult:
    """Returns relative differences of measured times from the model, with live Table 1."""
    fitted = fit(runs.multicasts()).filter(~pl.col("blocking"))
    live = {
        one["statistic"]: (
            one["alpha_p_ps"],
            one["alpha_r_ps"],
        )
        for one in fitted.iter_rows(named=True)
    }
    rows = []
    for row in watched("rows", runs.EMULATED_ROWS):
        found = runs.row_of(row)
        values: dict[str, float] = {"ranks": row.ranks}
        for which, of_table in (("minimum", row.minimum), ("median", row.median)):
            alpha_p, alpha_r = TABLE_1[which]
            widths = [int(stage[1:]) - 1 for stage in row.schedule.split(",")]
            here = len(widths) * live[which][0] + sum(widths) * live[which][1]
            theirs = len(widths) * alpha_p + sum(widths) * alpha_r
            values[f"{which}_live"] = found[f"rm_{which}"] * 1e9 / here - 1
            values[f"{which}_published"] = of_table[1] / theirs - 1
        rows.append(values)
    frame = pl.DataFrame(rows)
    lines = {
        name.replace("_", ", "): (frame["ranks"], frame[name])
        for name in frame.columns
        if name != "ranks"
    }
    drawn = plot_curves(
        folder / "figure_12.svg", {}, x="N", y="measured over model - 1", points=lines
    )
    most = {
        f"{which}_{origin}": max(abs(value) for value in frame[f"{which}_{origin}"])
        for which in ("minimum", "median")
        for origin in ("live", "published")
    }
    claims = [
        (f"largest difference of {which} times from the model, as a fraction",
         most[f"{which}_published"], "Tables 1 and 2", most[f"{which}_live"])
        for which in ("minimum", "median")
    ]  # fmt: skip
    return ExhibitResult(
        frame=frame,
        published=compared(claims),
        source="Fig. 12, recursive multiplying; model with the parameters of the live Table 1",
        figures=(drawn,),
        notes=_notes(),
    )


def _figure_13(folder: Path) -> ExhibitResult:
    """Returns times of the (a8, a8) schedule on 64 ranks, by all_reduces per block."""
    ranks = runs.LARGEST_RANKS
    blocks = {
        each: runs.measured(ranks, ("a8,a8",), each=each, blocks=2 * runs.FEW_BLOCKS)
        for each in watched("block sizes", BLOCK_SIZES)
    }
    frame = pl.concat(
        [
            summarise(one).select(
                "each", minimum_ms=pl.col("least_ps") / 1e9, median_ms=pl.col("median_ps") / 1e9,
                model_ms=pl.col("model_ps") / 1e9,
            )
            for one in blocks.values()
        ]
    )  # fmt: skip
    drawn = plot_boxes(
        folder / "figure_13.svg", [str(each) for each in blocks],
        {"a8,a8": [(one["time_ps"] / 1e9).to_list() for one in blocks.values()]},
        x="all_reduces in a block", y="time of one (ms)", title=f"64 ranks; {NOTE}",
        lines={"a8,a8": frame["model_ms"].to_list()},
    )  # fmt: skip
    minima, medians = (
        dict(frame.select("each", f"{which}_ms").iter_rows()) for which in ("minimum", "median")
    )
    return ExhibitResult(
        frame=frame,
        conclusions=of_blocks(minima, medians),
        source="Fig. 13 and section 5.6",
        figures=(drawn,),
        notes=_notes(),
    )  # fmt: skip


def _scatter(folder: Path, number: int) -> ExhibitResult:
    """Returns measured times of all factored schedules, and those of the model."""
    column, which = ("least_ps", "minimum") if number == 14 else ("median_ps", "median")
    frames = []
    for ranks in watched("rank counts", SCATTERED):
        names = tuple(
            name for name in factored(ranks) if max(int(s[1:]) for s in name.split(",")) <= WIDEST
        )
        found = summarise(runs.measured(ranks, names, blocks=runs.FEW_BLOCKS, each=2))
        frames.append(
            found.select(
                "ranks", pl.col("schedule").str.strip_prefix("recursive_multiplying:"),
                model_ms=pl.col("model_ps") / 1e9,
                measured_ms=pl.col(column) / 1e9,
            )
        )  # fmt: skip
    frame = pl.concat(frames)
    dots = {
        f"N = {ranks}": (part["model_ms"], part["measured_ms"])
        for (ranks,), part in frame.group_by(["ranks"], maintain_order=True)
    }
    longest = float(frame["model_ms"].max())  # type: ignore[arg-type]
    drawn = plot_curves(
        folder / f"figure_{number}.svg", {"model = measured": ([0, longest], [0, longest])},
        x="model (ms)", y=f"measured, {which} (ms)", points=dots,
    )  # fmt: skip
    by_ranks = [
        {
            "ranks": ranks,
            "in_order": _agreement(part.select("model_ms", "measured_ms").iter_rows()),
            "lost": part.sort("model_ms", maintain_order=True)["measured_ms"][0]
            / min(part["measured_ms"])
            - 1,
        }
        for (ranks,), part in frame.group_by(["ranks"], maintain_order=True)
    ]
    order = pl.DataFrame(by_ranks)
    loss = 100 * float(order["lost"].max())  # type: ignore[arg-type]
    ordered = float(order["in_order"].min())  # type: ignore[arg-type]
    why = f"at least {ordered:.2f} of the pairs have the model's order"
    conclusions = of_the_model(loss, which, holds=ordered >= CLUSTERED, why=why)
    return ExhibitResult(
        frame=frame,
        conclusions=conclusions,
        source=f"Fig. {number} and section 5.7; no values were read from its points",
        figures=(drawn,),
        tables={"by rank count": order},
        notes=_notes(),
    )


FIGURES: dict[int, Exhibit] = {
    8: Exhibit(title="multicasts with blocking and non-blocking sends", make=_figure_8),
    9: Exhibit(title="recursive doubling and multiplying over N", make=_figure_9),
    10: Exhibit(title="message sizes on 8 ranks", make=lambda folder: _sweep(folder, 10)),
    11: Exhibit(title="message sizes on 64 ranks", make=lambda folder: _sweep(folder, 11)),
    12: Exhibit(title="measured times compared with the model", make=_figure_12),
    13: Exhibit(title="(a8, a8) on 64 ranks over block sizes", make=_figure_13),
    14: Exhibit(
        title="all factored schedules: minimum over model time",
        make=lambda folder: _scatter(folder, 14),
    ),
    15: Exhibit(
        title="all factored schedules: median over model time",
        make=lambda folder: _scatter(folder, 15),
    ),
}

TABLES: dict[int, Exhibit] = {
    1: Exhibit(title="alpha_p and alpha_r of a multicast", make=_table_1),
    2: Exhibit(title="recursive doubling and multiplying up to N = 64", make=_table_2),
}
