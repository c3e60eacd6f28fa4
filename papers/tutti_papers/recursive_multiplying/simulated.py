"""Figures from models and from the paper's simulator: 3, 4 and 17 to 23.

Published values are from the paper's text and captions. No value was read from a curve.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

import tutti
from tutti.collectives.view.gantt import draw_timeline
from tutti.platforms import platform
from tutti.platforms.formulas import b_opt, time_of_uniform_stages
from tutti.schedules.view.program_graph import draw_program_graph, program_graph
from tutti_papers import Exhibit, ExhibitResult
from tutti_papers.claims import verdict_line
from tutti_papers.exhibits import Anchor, plot_curves
from tutti_papers.recursive_multiplying.published import DATATYPE, SIZE, compared

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tutti.collectives.result import Run
    from tutti.platforms.machine import Platform

RATIOS = tuple(ratio / 4 for ratio in range(4, 41))
"""alpha_p / alpha_r from 1 to 10; ratios below 1 are "not reasonable" (section 3)."""

RANKS_OF_FIGURE_4 = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
WIDTHS_OF_FIGURE_4 = range(1, 17)
"""b, the messages that overlap in a stage."""


Case = tuple[str, int]
"""Notation of a schedule, number of ranks."""
Runs = dict[Case, "Run"]


@dataclass(frozen=True)
class Stated:
    """A value that the paper states about a figure.

    Attributes:
        quantity: The quantity, with its unit and definition.
        published: The value, or the bounds of a range.
        where: Section or caption.
        ours: Computes tutti's value from the runs of the figure.
    """

    quantity: str
    published: float | tuple[float, float]
    where: str
    ours: Callable[[Runs], float]


@dataclass(frozen=True)
class Simulated:
    """A timeline of a schedule on the paper's simulated machine, and reference schedules."""

    shown: Case
    title: str
    claims: tuple[Stated, ...] = ()
    references: tuple[Case, ...] = ()
    notes: tuple[str, ...] = ()


DOUBLING_8 = ("recursive_multiplying:a2,a2,a2", 8)
PIPELINED_8 = ("recursive_multiplying:a8", 8)
SPLIT = ("recursive_multiplying:c6m2,a2,a2,e6m2", 7)
MERGE_1 = ("recursive_multiplying:m1g2a3,n1g3a2", 7)
MERGE_3 = ("recursive_multiplying:m3g2a2,n3g2a2", 7)
ELIMINATION_6 = ("elimination", 6)
ELIMINATION_7 = ("elimination", 7)


def _skew(case: Case) -> Callable[[Runs], float]:
    return lambda runs: runs[case].finish_skew_ps / 1000


def _skew_with_puts(case: Case) -> Callable[[Runs], float]:
    """Returns the skew in ns if a rank finishes when its last message has arrived."""

    def skew(runs: Runs) -> float:
        done = list(runs[case].finish_ps)
        for source, arrival in runs[case].messages_frame.select("source", "arrival_ps").iter_rows():
            done[source] = max(done[source], arrival)
        return (max(done) - min(done)) / 1000

    return skew


def _gain(slow: Case, fast: Case) -> Callable[[Runs], float]:
    return lambda runs: (runs[slow].completion_ps - runs[fast].completion_ps) / 1000


def _ratio(this: Case, that: Case) -> Callable[[Runs], float]:
    return lambda runs: runs[this].completion_ps / runs[that].completion_ps


def _merged(case: Case, skew_ns: float) -> tuple[Stated, ...]:
    gain = "faster than splitting, ns (published: about)"
    return (
        Stated("skew at the finish, ns (published: within)", skew_ns, "section 6.3", _skew(case)),
        Stated(gain, 1000, "section 6.3", _gain(SPLIT, case)),
    )


SIMULATED: dict[int, Simulated] = {
    18: Simulated(DOUBLING_8, "recursive doubling (a2,a2,a2) on 8 ranks: no overlap"),
    19: Simulated(
        PIPELINED_8,
        "a single 8-way stage (a8) on 8 ranks: full overlap",
        (
            Stated(
                "a8 over a2,a2,a2, time (published: significantly below 1)",
                (0, 1),
                "section 6.2",
                _ratio(PIPELINED_8, DOUBLING_8),
            ),
        ),
        references=(DOUBLING_8,),
    ),
    20: Simulated(
        SPLIT,
        "splitting (c6m2,a2,a2,e6m2) on 7 ranks: skew from the collapse",
        (
            Stated("skew at the finish, ns (published: about)", 700, "section 6.3", _skew(SPLIT)),
            Stated(
                "the same, if a rank finishes when its last message has arrived",
                700,
                "section 6.3",
                _skew_with_puts(SPLIT),
            ),
        ),
        notes=(
            """In tutti a rank with nothing to receive finishes when its last message is issued, \
103.2 ns after its start: rank 1 finishes 1000 ns before rank 4. If a put occupies its rank until \
arrival, the skew is one collapse, 603.2 ns. The paper states about 700 ns, without a definition.\
""",
        ),
    ),
    21: Simulated(
        MERGE_1, "merging (m1g2a3,n1g3a2) on 7 ranks", _merged(MERGE_1, 100), references=(SPLIT,)
    ),
    22: Simulated(
        MERGE_3, "merging (m3g2a2,n3g2a2) on 7 ranks", _merged(MERGE_3, 200), references=(SPLIT,)
    ),
    23: Simulated(
        ELIMINATION_6,
        "3-2 elimination on 6 ranks",
        (
            Stated(
                "duration in rounds of recursive doubling (published: ceil(log2 6))",
                3,
                "section 6.4",
                lambda runs: 3 * _ratio(ELIMINATION_6, DOUBLING_8)(runs),
            ),
            Stated(
                "on 7 ranks, time over that of splitting (published: near 1)",
                1,
                "section 6.4",
                _ratio(ELIMINATION_7, SPLIT),
            ),
        ),
        references=(DOUBLING_8, ELIMINATION_7, SPLIT),
        notes=("A round is a third of a2,a2,a2 on 8 ranks: one message and one reduction.",),
    ),
}


def _machine() -> Platform:
    """Returns the machine of section 6.2.

    Latency 500 ns, pipeline latency 100 ns, 0.4 ns/B, compute tasks of 10 ns.
    """
    return platform("paper_simulator")


def _figure_3(folder: Path) -> ExhibitResult:
    """Returns b_opt over alpha_p / alpha_r, equation (5)."""
    rows = []
    for ratio in RATIOS:
        best = b_opt(alpha_p=f"{ratio} us", alpha_r="1 us")
        times = {b: time_of_uniform_stages(f"{ratio} us", "1 us", b, 1024) for b in range(1, 33)}
        rows.append(
            {"ratio": ratio, "b_opt": best, "best_integer_b": min(times, key=times.__getitem__)}
        )
    frame = pl.DataFrame(rows)
    published = compared(
        [
            ("b_opt at ratio 4", 3.97, "derived from equation (5)", _at(frame, 4.0)),
            ("b_opt at ratio 1", 1.72, "derived from equation (5)", _at(frame, 1.0)),
        ]
    )
    drawn = plot_curves(
        folder / "figure_3.svg",
        {"b_opt, equation (5)": (frame["ratio"], frame["b_opt"])},
        x="alpha_p / alpha_r",
        y="b_opt (messages that overlap in a stage)",
        points={"best integer b": (frame["ratio"], frame["best_integer_b"])},
        verdict=verdict_line(published),
        anchors=[Anchor(4, 3.97, "derived"), Anchor(1, 1.72, "derived")],
    )
    source = "equation (5) and Fig. 3; the values are derived from the equation"
    return ExhibitResult(frame=frame, published=published, source=source, figures=(drawn,))


def _at(frame: pl.DataFrame, ratio: float) -> float:
    return float(frame.filter(frame["ratio"] == ratio)["b_opt"].item())


def _figure_4(folder: Path) -> ExhibitResult:
    """Returns times over b and N, equation (4), alpha_p = 1 us and alpha_r = 0.25 us."""
    alpha_p, alpha_r = "1 us", "0.25 us"
    frame = pl.DataFrame(
        [
            {"b": b, "ranks": n, "time_us": time_of_uniform_stages(alpha_p, alpha_r, b, n) / 1e6}
            for n in RANKS_OF_FIGURE_4
            for b in WIDTHS_OF_FIGURE_4
        ]
    )
    best = (
        frame.sort("time_us").group_by("ranks", maintain_order=True).first()["b"].unique().to_list()
    )
    published = compared(
        [
            ("best integer b, equal for every N", 4, "caption and equation (5): 3.97", best[0]),
            (
                "rank counts with another best b",
                0,
                "only the ratio matters (section 3)",
                len(best) - 1,
            ),
        ]
    )
    lines = {
        f"N = {n}": (part["b"], part["time_us"])
        for n in RANKS_OF_FIGURE_4
        for part in [frame.filter(frame["ranks"] == n)]
    }
    drawn = plot_curves(
        folder / "figure_4.svg", lines, x="b (messages that overlap in a stage)", y="time (us)",
        verdict=verdict_line(published), anchors=[Anchor(4, None, "text")],
    )  # fmt: skip
    return ExhibitResult(
        frame=frame,
        published=published,
        source="equation (4) and the caption of Fig. 4: alpha_p = 1 us, alpha_r = 0.25 us",
        figures=(drawn,),
        notes=(f"b_opt is {b_opt(alpha_p=alpha_p, alpha_r=alpha_r):.2f} at every N.",),
    )


def _figure_17(folder: Path) -> ExhibitResult:
    """Returns the task counts of the program graph of (a3,a2) on 6 ranks."""
    schedule = tutti.schedule("recursive_multiplying:a3,a2", ranks=6)
    graph = program_graph(schedule)
    kinds = Counter(str(graph.nodes[task]["kind"]) for task in graph)
    frame = pl.DataFrame({"task": list(kinds), "count": list(kinds.values())}).sort("task")
    published = compared(
        [
            ("start tasks", 6, "Fig. 17: one per process", kinds["start"]),
            ("put tasks", 18, "derived: 6 x (2 + 1) messages", kinds["put"]),
            ("compute tasks", 12, "derived: 6 x 2 stages", kinds["compute"]),
        ]
    )
    drawn = draw_program_graph(folder / "figure_17.svg", schedule)
    return ExhibitResult(
        frame=frame, published=published, source="Fig. 17 and its caption", figures=(drawn,)
    )


def _simulated(number: int, folder: Path) -> ExhibitResult:
    """Returns the runs of a timeline, Figs 18 to 23."""
    figure = SIMULATED[number]
    machine = _machine()
    runs = {
        (name, ranks): tutti.simulate(
            tutti.schedule(name, ranks=ranks), machine, size=SIZE, datatype=DATATYPE
        )
        for name, ranks in (figure.shown, *figure.references)
    }
    shown = runs[figure.shown]
    frame = pl.DataFrame(
        [
            {
                "schedule": name,
                "ranks": ranks,
                "completion_ns": run.completion_ps / 1000,
                "finish_skew_ns": run.finish_skew_ps / 1000,
                "messages": run.messages,
            }
            for (name, ranks), run in runs.items()
        ]
    )
    claims = compared([(c.quantity, c.published, c.where, c.ours(runs)) for c in figure.claims])
    drawn = draw_timeline(
        folder / f"figure_{number}.svg", shown.timeline, shown.messages_frame,
        title=verdict_line(claims),
    )  # fmt: skip
    return ExhibitResult(
        frame=frame,
        published=claims,
        source=f"Fig. {number} and section 6",
        figures=(drawn,),
        notes=figure.notes,
    )


def _exhibit(number: int) -> Exhibit:
    return Exhibit(title=SIMULATED[number].title, make=lambda folder: _simulated(number, folder))


FIGURES: dict[int, Exhibit] = {
    3: Exhibit(title="optimal b over the ratio alpha_p / alpha_r", make=_figure_3),
    4: Exhibit(title="time over b and N", make=_figure_4),
    17: Exhibit(title="the program graph of (a3,a2) on 6 ranks", make=_figure_17),
    **{number: _exhibit(number) for number in SIMULATED},
}
