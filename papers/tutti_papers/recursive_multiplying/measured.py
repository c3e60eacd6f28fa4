"""The paper's measurements on its machine: Figs 9, 12 and 16, and Table 2.

"Measured" means a simulation of the machine in `archer`. Only Table 2 of the paper has numbers. No
values were read from curves and scatter plots; they are compared with the text of the paper.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from tutti.base.progress import watched
from tutti_papers import Exhibit, ExhibitResult
from tutti_papers.claims import TOLERANCE, verdict_line
from tutti_papers.exhibits import Anchor, plot_curves
from tutti_papers.recursive_multiplying.archer import (
    BLOCKS,
    CALIBRATED,
    Archer,
    predicted,
    quiet,
)
from tutti_papers.recursive_multiplying.conclusions import (
    of_congestion,
    of_differences,
    of_overhead,
    of_scaling,
    of_uniform_noise,
)
from tutti_papers.recursive_multiplying.fitting import (
    CALIBRATED_ROWS,
    CHANGED,
    EXPONENTIAL,
    FITS,
    FITTED,
    HELD_BACK,
    agreeing,
    errors,
    misfit,
    misfit_of_uniform_noise,
)
from tutti_papers.recursive_multiplying.published import (
    PICTURE,
    TABLE_1,
    TABLE_2,
    TIMES,
    compared,
    doubling,
    modelled,
    reduction,
    times_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tutti_papers import Conclusion
    from tutti_papers.recursive_multiplying.published import Table2Row

FEW_BLOCKS = 5
"""Blocks per allocation for predicted rows in tables of many machines: 200 in total."""
_ERRORS = ("minima, %", "medians, %")


def _every() -> dict[int, dict[str, float]]:
    """Returns the predictions of all rows, by rank count."""
    return {row.ranks: predicted(FITTED, row, BLOCKS) for row in watched("rows", TABLE_2)}


# --- table 2 -------------------------------------------------------------------------------------


def _table_2(_folder: Path) -> ExhibitResult:
    """Returns all rows with published values, the readings, parameters and sensitivities."""
    return ExhibitResult(
        frame=_rows(FITTED),
        published=compared(_times()),
        conclusions=(_uniform_noise(),),
        source="Table 2: published | ours (error), times in us, reductions in per cent",
        notes=(
            "Fitted to N = 4, 8 and 16 only; the other eight rows are predictions.",
            """The table `laws` has every law of detours that was fitted. The smallest misfit on \
the three rows selects the law; the other columns select nothing.""",
            f"""Misfits and fitted rows have {BLOCKS} blocks per allocation in every table. \
Predicted rows have {FEW_BLOCKS} in `laws` and `sensitivity`, which changes their errors.""",
        ),
        tables={
            "exponential detours": _rows(EXPONENTIAL),
            "readings": _readings({"exponential": EXPONENTIAL, "selected": FITTED}, BLOCKS),
            "laws": _readings(FITS, FEW_BLOCKS),
            "parameters": _parameters(),
            "sensitivity": _sensitivity(),
        },
    )


def _rows(machine: Archer) -> pl.DataFrame:
    """Returns a row per row of Table 2: published and predicted values."""
    rows = []
    for row in watched("rows", TABLE_2):
        ours, theirs = predicted(machine, row, BLOCKS), times_of(row)
        values: dict[str, object] = {
            "N": row.ranks,
            "schedule": row.schedule,
            "fit": "yes" if row.ranks in CALIBRATED else "",
        }
        for which in ("minimum", "median"):
            for name in (f"rd_{which}", f"rm_{which}"):
                off = 100 * (ours[name] / theirs[name] - 1)
                values[name] = f"{theirs[name]:.3g} | {ours[name]:.3g} ({off:+.0f} %)"
            cut = reduction(theirs, which), reduction(ours, which)
            values[f"{which}_reduction"] = f"{cut[0]:.1f} | {cut[1]:.1f}"
        rows.append(values)
    return pl.DataFrame(rows)


def _times() -> list[tuple[str, float, str, float]]:
    """Returns the times of the rows that were not used in the fit, in us."""
    return [
        (f"N = {row.ranks}, {TIMES[name]}, us", theirs, "Table 2", ours[name])
        for row in HELD_BACK
        for ours in [predicted(FITTED, row, BLOCKS)]
        for name, theirs in times_of(row).items()
    ]


def _uniform_noise() -> Conclusion:
    return of_uniform_noise(
        {"uniform noise": misfit_of_uniform_noise(), "detours": misfit(FITTED, BLOCKS)}
    )


def _readings(machines: dict[str, Archer], blocks: int) -> pl.DataFrame:
    """Returns misfit and errors of machines; `blocks` are those of the predicted rows."""
    within, rows = f"predicted within {100 * TOLERANCE:.0f} %", []
    for law, machine in watched("laws", list(machines.items())):

        def predict(row: Table2Row, machine: Archer = machine) -> dict[str, float]:
            return predicted(machine, row, BLOCKS if row in CALIBRATED_ROWS else blocks)

        parts = {
            part: errors(of, predict)
            for part, of in (("fitted", CALIBRATED_ROWS), ("predicted", HELD_BACK))
        }
        rows.append(
            {"detours": law, "misfit": misfit(machine, BLOCKS)}
            | {f"{part} {name}": off[name] for part, off in parts.items() for name in _ERRORS}
            | {within: f"{agreeing(HELD_BACK, predict)} of {len(HELD_BACK) * len(TIMES)}"}
        )
    return pl.DataFrame(rows)


def _parameters() -> pl.DataFrame:
    """Returns the fitted parameters with unit and meaning."""
    meanings = {
        "alpha_p": ("us", "overlapping latency of a message"),
        "alpha_r": ("us", "non-overlapping latency of a message"),
        "hop": ("us", "latency of a link between routers"),
        "interval": ("us", "mean time between detours of a node, median allocation"),
        "detour": ("us", "mean duration of a detour"),
        "spread": ("", "standard deviation of the log rate over allocations"),
        "shape": ("", "shape of the Pareto distribution of the duration"),
    }
    return pl.DataFrame(
        [
            {
                "parameter": name,
                "value": getattr(FITTED, name),
                "exponential": getattr(EXPONENTIAL, name),
                "unit": unit,
                "meaning": meaning,
            }
            for name, (unit, meaning) in meanings.items()
        ]
    )


def _sensitivity() -> pl.DataFrame:
    """Returns misfit and errors with each parameter changed by 10 %."""
    names = [*CHANGED, *(["shape"] if FITTED.shape else [])]
    machines = [
        ({"parameter": name, "change": label},
         replace(FITTED, **{name: getattr(FITTED, name) * factor}))
        for name in names
        for label, factor in (("-10 %", 0.9), ("+10 %", 1.1))
    ]  # fmt: skip
    machines.append(({"parameter": "(as fitted)", "change": ""}, FITTED))
    return pl.DataFrame(
        [label | _off(machine) for label, machine in watched("sensitivity", machines)]
    )


def _off(machine: Archer) -> dict[str, float]:
    found = errors(HELD_BACK, lambda row: predicted(machine, row, FEW_BLOCKS))
    return {"misfit": misfit(machine, BLOCKS)} | {
        f"predicted {name}": found[name] for name in _ERRORS
    }


# --- figures -------------------------------------------------------------------------------------


def _figure_9(folder: Path) -> ExhibitResult:
    """Returns recursive doubling and the best schedule of recursive multiplying over N."""
    found = _every()
    frame = pl.DataFrame(
        [
            {"ranks": row.ranks}
            | {f"{name}_paper_us": theirs for name, theirs in times_of(row).items()}
            | {f"{name}_us": ours for name, ours in found[row.ranks].items()}
            | {f"{name}_quiet_us": ours for name, ours in _quiet(row).items()}
            for row in TABLE_2
        ]
    )
    anchors = [
        Anchor(ranks, time, "text", TIMES[name])
        for name in TIMES
        for ranks, time in frame.select("ranks", f"{name}_paper_us").iter_rows()
    ]
    faster = sum(
        times[f"rm_{which}"] < times[f"rd_{which}"]
        for times in found.values()
        for which in ("minimum", "median")
    )
    claims = compared(
        [*_times(), ("times out of 22 below recursive doubling", 22, "section 5.3", faster)]
    )
    conclusions = (*of_scaling(found), *_congestion(found))
    drawn = plot_curves(
        folder / "figure_9.svg",
        {TIMES[name]: (frame["ranks"], frame[f"{name}_us"]) for name in TIMES},
        x="N", y="time (us)", anchors=anchors, verdict=verdict_line(claims), doubling=True,
    )  # fmt: skip
    return ExhibitResult(
        frame=frame,
        published=claims,
        conclusions=conclusions,
        source="Fig. 9; medians and minima are those of Table 2. Columns `quiet`: without detours",
        figures=(drawn,),
    )


def _quiet(row: Table2Row) -> dict[str, float]:
    """Returns the times of both schedules without detours, as on a machine without other jobs."""
    stages = {"rd": doubling(row.ranks), "rm": row.schedule}
    return {name: quiet(FITTED, row.ranks, schedule) for name, schedule in stages.items()}


def _congestion(found: dict[int, dict[str, float]]) -> tuple[Conclusion, ...]:
    idle, model, medians = {}, {}, {}
    for row in TABLE_2:
        stages = {"rd": doubling(row.ranks), "rm": row.schedule}
        for name, time in _quiet(row).items():
            case = f"N = {row.ranks}, {name}"
            idle[case] = time
            model[case] = modelled(stages[name], *TABLE_1["minimum"])
            if row.ranks >= 24:
                medians[case] = found[row.ranks][f"{name}_median"]
    return of_congestion(idle, model, medians)


def _figure_12(folder: Path) -> ExhibitResult:
    """Returns relative differences of measured times from the model with Table 1's parameters."""
    rows = []
    for row in watched("rows", TABLE_2):
        ours, theirs = predicted(FITTED, row, BLOCKS), times_of(row)
        values: dict[str, float] = {"ranks": row.ranks}
        for which in ("minimum", "median"):
            model = modelled(row.schedule, *TABLE_1[which])
            values[f"{which}_model_us"] = model
            values[f"{which}_published"] = theirs[f"rm_{which}"] / model - 1
            values[f"{which}_ours"] = ours[f"rm_{which}"] / model - 1
        rows.append(values)
    frame = pl.DataFrame(rows)
    lines = {which: (frame["ranks"], frame[f"{which}_ours"]) for which in ("minimum", "median")}
    anchors = [
        Anchor(ranks, value, "text", which)
        for which in lines
        for ranks, value in frame.select("ranks", f"{which}_published").iter_rows()
    ]
    found = compared(_of_differences(frame))
    minima, medians = (dict(frame.select("ranks", f"{which}_ours").iter_rows()) for which in lines)
    conclusions = of_differences(minima, medians)
    drawn = plot_curves(
        folder / "figure_12.svg", lines, x="N", y="measured over model - 1", anchors=anchors,
        verdict=verdict_line(found, conclusions), doubling=True,
    )  # fmt: skip
    return ExhibitResult(
        frame=frame,
        published=found,
        conclusions=conclusions,
        source="Fig. 12, recomputed from Tables 1 and 2; section 5.5",
        figures=(drawn,),
        notes=("Differences are of recursive multiplying, as fractions of the model time.",),
    )


def _of_differences(frame: pl.DataFrame) -> list[tuple[str, float, str, float]]:
    """Returns published and computed differences below and from N = 24 on."""
    small, large = (frame.filter(of) for of in (pl.col("ranks") < 24, pl.col("ranks") >= 24))
    most = [float(small[f"minimum_{of}"].abs().max()) for of in ("published", "ours")]  # type: ignore[arg-type]
    means = {
        which: [float(large[f"{which}_{of}"].mean()) for of in ("published", "ours")]  # type: ignore[arg-type]
        for which in ("minimum", "median")
    }
    values = {
        "largest difference of minima below N = 24 (text: follows the model)": most,
        "mean difference of minima from N = 24 on (text: a clear upwards trend)": means["minimum"],
        "mean difference of medians from N = 24 on": means["median"],
    }
    return [
        (name, theirs, "derived from Tables 1 and 2", ours)
        for name, (theirs, ours) in values.items()
    ]


def _figure_16(folder: Path) -> ExhibitResult:
    """Returns the overhead of a library with which MPI's recursive doubling would be as fast."""
    frame = pl.DataFrame(
        [
            {"ranks": ranks}
            | {
                f"{which}_gap_us": times[f"rd_{which}"] - times[f"rm_{which}"]
                for which in ("minimum", "median")
            }
            for ranks, times in _every().items()
        ]
    )
    gaps = {
        f"N = {ranks}, {which}": gap
        for which in ("minimum", "median")
        for ranks, gap in frame.select("ranks", f"{which}_gap_us").iter_rows()
    }
    conclusions = (of_overhead(gaps),)
    drawn = plot_curves(
        folder / "figure_16.svg",
        {which: (frame["ranks"], frame[f"{which}_gap_us"]) for which in ("minimum", "median")},
        x="N", y="recursive doubling less recursive multiplying (us)",
        verdict=verdict_line((), conclusions), doubling=True,
    )  # fmt: skip
    return ExhibitResult(
        frame=frame,
        conclusions=conclusions,
        source=f"Fig. 16 and section 5.8: Cray MPI uses recursive doubling; {PICTURE}",
        figures=(drawn,),
        notes=(
            """The overhead of Cray MPI is not published. `tutti paper recursive-multiplying-live \
--figure 16` measures the installed MPI on real ranks.""",
        ),
    )


FIGURES: dict[int, Exhibit] = {
    9: Exhibit(title="recursive doubling and multiplying over N", make=_figure_9),
    12: Exhibit(title="measured times compared with the model", make=_figure_12),
    16: Exhibit(title="recursive multiplying compared with MPI's all_reduce", make=_figure_16),
}

TABLES: dict[int, Exhibit] = {
    2: Exhibit(title="eight rows predicted from N = 4, 8 and 16", make=_table_2),
}
