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
from tutti.platforms.conditions import Conditions
from tutti.platforms.formulas import b_opt, time_of_uniform_stages
from tutti.platforms.machine import LogGP, Platform
from tutti.schedules.view.program_graph import draw_program_graph, program_graph
from tutti_papers import Conclusion, Exhibit, ExhibitResult
from tutti_papers.claims import verdict_line
from tutti_papers.exhibits import Anchor, plot_curves
from tutti_papers.recursive_multiplying.published import DATATYPE, SIZE, compared

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tutti.collectives.result import Run

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


def _nothing(_runs: Runs) -> tuple[Conclusion, ...]:
    return ()


@dataclass(frozen=True)
class Simulated:
    """A timeline of a schedule on the paper's simulated machine, and reference schedules."""

    shown: Case
    title: str
    claims: tuple[Stated, ...] = ()
    references: tuple[Case, ...] = ()
    notes: tuple[str, ...] = ()
    conclusions: Callable[[Runs], tuple[Conclusion, ...]] = _nothing


DOUBLING_8 = ("recursive_multiplying:a2,a2,a2", 8)
PIPELINED_8 = ("recursive_multiplying:a8", 8)
SPLIT = ("recursive_multiplying:c6m2,a2,a2,e6m2", 7)
MERGE_1 = ("recursive_multiplying:m1g2a3,n1g3a2", 7)
MERGE_3 = ("recursive_multiplying:m3g2a2,n3g2a2", 7)
ELIMINATION_6 = ("elimination", 6)
ELIMINATION_7 = ("elimination", 7)


def _skew(case: Case) -> Callable[[Runs], float]:
    return lambda runs: runs[case].finish_skew_ps / 1000


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


def _overlaps(runs: Runs) -> tuple[Conclusion, ...]:
    """Returns the conclusion of section 6.2 on messages of a rank that are in flight at once."""
    most = {case: _in_flight(runs[case]) for case in (DOUBLING_8, PIPELINED_8)}
    one, all_of_them = most.values()
    return (
        Conclusion(
            statement="messages overlap in a stage of a8, and not in recursive doubling",
            holds=one == 1 and all_of_them > 1,
            why=f"a rank has up to {all_of_them} and {one} messages in flight",
        ),
    )


def _in_flight(run: Run) -> int:
    """Returns the largest number of messages of a rank that are in flight at once."""
    messages = run.messages_frame.filter(pl.col("source") == 0)
    return max(
        messages.filter((pl.col("sent_ps") <= now) & (pl.col("arrival_ps") > now)).height
        for now in messages["sent_ps"]
    )


def _stages(runs: Runs) -> tuple[Conclusion, ...]:
    """Returns the conclusion of section 4.1 on the number of stages."""
    split, merged = (
        max(tutti.schedule(name, ranks=ranks).steps(rank) for rank in range(ranks))
        for name, ranks in (SPLIT, MERGE_1)
    )
    return (
        Conclusion(
            statement="merging takes two stages on 7 ranks, where splitting takes four",
            holds=(merged, split) == (2, 4),
            why=f"{merged} and {split} stages, {runs[MERGE_1].completion_ps / 1000:.0f} and "
            f"{runs[SPLIT].completion_ps / 1000:.0f} ns",
        ),
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
        conclusions=_overlaps,
    ),
    20: Simulated(
        SPLIT,
        "splitting (c6m2,a2,a2,e6m2) on 7 ranks: skew from the collapse",
        (Stated("skew at the finish, ns (published: about)", 700, "section 6.3", _skew(SPLIT)),),
        notes=(
            """A rank finishes when its last put has arrived, as Algorithm 4 states ("Wait on \
sends"): the skew is one message without its reduction, 603.2 ns. If the receiver also paid the \
pipeline latency of 100 ns, it would be 702.8 ns. Section 6.2 uses the pipelining postal model, \
whose receiver pays nothing. The table `readings` has the values of Figs 20 to 22 in each \
reading.""",
        ),
    ),
    21: Simulated(
        MERGE_1,
        "merging (m1g2a3,n1g3a2) on 7 ranks",
        _merged(MERGE_1, 100),
        references=(SPLIT,),
        conclusions=_stages,
    ),
    22: Simulated(
        MERGE_3,
        "merging (m3g2a2,n3g2a2) on 7 ranks",
        _merged(MERGE_3, 200),
        references=(SPLIT,),
        notes=(
            """103.2 ns are within 200 ns, but not about 200 ns. If a rank finished when it has \
issued its last put, the skew would be 206.4 ns, and that of Fig. 20 1000 ns. None of the four \
readings in the table of Fig. 20 has all values.""",
        ),
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


def _receiver_pays() -> Platform:
    """Returns the machine of section 6.2 if the receiver also pays the pipeline latency."""
    model = LogGP(L="500 ns", o="100 ns", g="0 ns", G="0.4 ns/B", reduce_overhead="10 ns")
    return Platform(name="receiver pays", model=model)


def _run(case: Case, machine: Platform, *, waits: bool = True) -> Run:
    """Runs an all_reduce; by default a stage ends when its puts have arrived."""
    name, ranks = case
    return tutti.simulate(
        tutti.schedule(name, ranks=ranks),
        machine,
        size=SIZE,
        datatype=DATATYPE,
        conditions=Conditions(wait_for_sends=waits),
    )


def readings() -> pl.DataFrame:
    """Returns the published values of Figs 20 to 22 for each reading of the simulated machine."""
    stated = [(number, one) for number in (20, 21, 22) for one in SIMULATED[number].claims]
    rows = []
    for receiver, machine in (("free", _machine()), ("pays 100 ns", _receiver_pays())):
        for waits in (True, False):
            runs = {case: _run(case, machine, waits=waits) for case in (SPLIT, MERGE_1, MERGE_3)}
            rows.append(
                {"receiver": receiver, "finish": "put arrived" if waits else "put issued"}
                | {f"figure_{number}, {one.quantity}": one.ours(runs) for number, one in stated}
            )
    return pl.DataFrame(rows)


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
        ],
        method="formula",
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
        ],
        method="formula",
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
        ],
        method="formula",
    )
    drawn = draw_program_graph(folder / "figure_17.svg", schedule)
    return ExhibitResult(
        frame=frame, published=published, source="Fig. 17 and its caption", figures=(drawn,)
    )


def _simulated(number: int, folder: Path) -> ExhibitResult:
    """Returns the runs of a timeline, Figs 18 to 23."""
    figure = SIMULATED[number]
    machine = _machine()
    runs = {case: _run(case, machine) for case in (figure.shown, *figure.references)}
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
    conclusions = figure.conclusions(runs)
    drawn = draw_timeline(
        folder / f"figure_{number}.svg", shown.timeline, shown.messages_frame,
        title=verdict_line(claims, conclusions),
    )  # fmt: skip
    return ExhibitResult(
        frame=frame,
        published=claims,
        source=f"Fig. {number} and section 6",
        figures=(drawn,),
        notes=figure.notes,
        conclusions=conclusions,
        tables={"readings": readings()} if number == 20 else {},
    )


def _exhibit(number: int) -> Exhibit:
    return Exhibit(title=SIMULATED[number].title, make=lambda folder: _simulated(number, folder))


FIGURES: dict[int, Exhibit] = {
    3: Exhibit(title="optimal b over the ratio alpha_p / alpha_r", make=_figure_3),
    4: Exhibit(title="time over b and N", make=_figure_4),
    17: Exhibit(title="the program graph of (a3,a2) on 6 ranks", make=_figure_17),
    **{number: _exhibit(number) for number in SIMULATED},
}
