"""What runs of kernels on chips with coherent caches show: runtimes, misses, flows."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tutti.networks.coherence.traces import PREFIX
from tutti.networks.mesh.view.text import describe_buffers, describe_mesh
from tutti.view.charts import NAMES, Axis, bars, chart
from tutti.view.page import MOST_SENTENCES, SORTING, Chart, Section
from tutti.view.palette import styles
from tutti.view.quantity import format_share, plural, sentence, three
from tutti.view.tables import Column, ReportTable, of_scope
from tutti.view.view import Fact, View, facts_of, results

from .quantities import (
    CORES,
    FLOWS,
    MISSES,
    NETWORK,
    PARTS,
    QUANTITIES,
    Compared,
    compared,
    flow_parts,
    miss_parts,
)
from .quantities import latencies as miss_latencies

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.networks.coherence.results import CoherenceRun
    from tutti.view.charts import Figure

_CAPTION = (
    "cycles: region of interest; ratio: cycles relative to the first design; MPKI: network misses "
    "per thousand instructions; stall: share of core time spent waiting for the network; "
    "1-to-M: mean broadcast latency (cycles); responses: arrivals per reduction"
)
_ALL = (
    "cycles: region of interest; IPC: instructions per cycle and core; MPKI: network misses per "
    "thousand instructions"
)
CONVENTIONS = (
    "Times are in cycles of the region of interest. Kernels have the sharing patterns of the "
    "benchmarks that they are named after, but are not these benchmarks: compare designs, not "
    "published runtimes. The result of each kernel equals that of the serial program. Cores are "
    "in-order and block on every access. A miss is an access that the core's private caches "
    "cannot serve, including upgrades to write permission. The latency of a broadcast runs from "
    "its creation to its last arrival, that of a reduction from the same cycle to the arrival of "
    "the last response. "
    "docs/models/coherence.md describes the model and its limits."
)


def runs_view(runs: Sequence[CoherenceRun], *, title: str = "") -> View:
    """Returns what one or more runs show.

    Args:
        runs: The runs, kernel by kernel; the first design of a kernel is the reference.
        title: The title of the experiment.
    """
    rows, summary = compared(runs), _summary(runs)
    is_single = len(runs) == 1
    facts = [
        *facts_of(CORES, rows[0]),
        *(Fact(*fact) for fact in miss_latencies(runs[0])),
        *facts_of(NETWORK, rows[0]),
        *_checked(runs),
    ]
    return View(
        kind="coherence",
        kicker="kernels on a chip with coherent caches",
        title=title,
        question=_question(runs),
        answer=summary if len(summary) <= MOST_SENTENCES else [_overall(runs)],
        findings=[("", summary)] if len(summary) > MOST_SENTENCES else [],
        headline=Fact("chip", _describe(runs[0]) if is_single else _describe_chip(runs[0])),
        inputs=_inputs(runs),
        facts=facts if is_single else [],
        tables=[] if is_single else [ReportTable(_columns(rows), rows, caption=_CAPTION)],
        data=[
            results(QUANTITIES, rows),
            results(MISSES, miss_parts(runs), "misses"),
            results(FLOWS, flow_parts(runs), "flows"),
        ],
        sections=partial(_sections, runs),
        conventions=CONVENTIONS,
    )  # fmt: skip


def _checked(runs: Sequence[CoherenceRun]) -> list[Fact]:
    """States what the results were compared with; nothing about traces, which have none."""
    if any(run.case.kernel.startswith(PREFIX) for run in runs):
        return []
    return [Fact("result", "equals the serial program")]


def _describe(run: CoherenceRun) -> str:
    case = run.case
    scale = [] if case.kernel.startswith(PREFIX) else [case.scale]
    on = [*scale, f"on {plural(run.cores, 'core')}", case.protocol]
    return f"{', '.join([case.kernel, *on])}: {describe_mesh(case.mesh)}"


def _describe_chip(run: CoherenceRun) -> str:
    """Returns the settings that all runs share, on one line."""
    size = f"{run.case.mesh.columns} x {run.case.mesh.rows}"
    return f"{run.case.protocol}, {plural(run.cores, 'core')} on {size}, scale {run.case.scale}"


def _caches(run: CoherenceRun) -> str:
    """Returns size, associativity and latency of the caches, and the memory."""
    chip = run.chip
    each = [
        f"{name.upper()} {chip[f'{name}_bytes'] / 1024:g} KiB, associativity "
        f"{chip[f'{name}_ways']}, {plural(chip[f'{name}_cycles'], 'cycle')}"
        for name in ("l1", "l2")
    ]
    memory = f"memory at {plural(len(chip['homes']), 'node')}"
    return "; ".join((*each, f"{memory}, {plural(chip['dram_cycles'], 'cycle')}"))


def _columns(rows: Sequence[Compared]) -> list[Column[Compared]]:
    """Returns the columns of tables on runs, without responses if no run reduces."""
    has_reductions = any(row.run.reductions.count for row in rows)
    return [
        column
        for column in of_scope(QUANTITIES, "runs")
        if has_reductions or column.key != "responses_per_flow"
    ]


def _inputs(runs: Sequence[CoherenceRun]) -> list[Fact]:
    first = runs[0]
    meshes = dict.fromkeys(describe_mesh(run.case.mesh) for run in runs)
    cores = plural(first.cores, "core")
    kernels = f"scale {first.case.scale}, seed {first.case.seed}, "
    traces = all(run.case.kernel.startswith(PREFIX) for run in runs)
    return [
        Fact("caches", _caches(first)),
        Fact("buffers", describe_buffers(first.case.mesh)),
        *(Fact("mesh", mesh) for mesh in meshes if len(runs) > 1),
        Fact("input", cores if traces else f"{kernels}{cores}"),
    ]


def _sections(runs: Sequence[CoherenceRun]) -> list[Section]:
    rows = compared(runs)
    faster = f"Bars below 1 are faster than {runs[0].case.mesh.design}."
    caption = (
        "Horizontal: kernel. Vertical: cycles relative to the first design.",
        "the lowest bar of each kernel, and kernels on which the designs differ most.",
    )
    runtime = (
        [Section("Relative runtime", faster, {"runtimes": Chart(runtimes(runs), *caption)})]
        if len(runs) > 1
        else []
    )
    every = f"{sentence(_ALL)} {SORTING}"
    return [
        *runtime,
        Section("All runs", every, table=ReportTable(_columns(rows), rows)),
        Section(
            "Components of miss latency",
            "Mean latency of a miss in cycles, by component, in order of time.",
            {
                "latencies": Chart(
                    latencies(runs),
                    "Horizontal: mean latency of a miss in cycles. Vertical: kernel and design.",
                    "the longest part of a bar, and the part that shrinks on the faster design.",
                )
            },
            ReportTable(of_scope(MISSES, "runs"), miss_parts(runs)),
        ),
        Section(
            "Flows",
            "Unicasts, broadcasts and reductions of responses, by message kind.",
            table=ReportTable(of_scope(FLOWS, "runs"), flow_parts(runs)),
        ),
    ]


def _question(runs: Sequence[CoherenceRun]) -> str:
    designs = list(dict.fromkeys(run.case.mesh.design for run in runs))
    kernels = list(dict.fromkeys(run.case.kernel for run in runs))
    what = kernels[0] if len(kernels) == 1 else f"{len(kernels)} kernels"
    if len(designs) == 1:
        verb = "does" if len(kernels) == 1 else "do"
        return f"How long {verb} {what} run on {designs[0]}?"
    return f"Which of {len(designs)} designs runs {what} fastest?"


def _overall(runs: Sequence[CoherenceRun]) -> str:
    """Returns the design that is fastest on the most kernels, and its mean relative runtime."""
    shares = compared(runs)
    wins: dict[str, list[float]] = {}
    kernels = list(dict.fromkeys(run.case.kernel for run in runs))
    for kernel in kernels:
        best, share = min(((run, share) for run, share in shares if run.case.kernel == kernel),
                          key=lambda pair: pair[1])  # fmt: skip
        wins.setdefault(best.case.mesh.design, []).append(share)
    design, ratios = max(wins.items(), key=lambda item: len(item[1]))
    mean = sum(ratios) / len(ratios)
    first = runs[0].case.mesh.design
    return (
        f"{design} is fastest on {len(ratios)} of {plural(len(kernels), 'kernel')}, where it takes "
        f"{format_share(mean)} of the cycles of {first} on average."
    )


def _summary(runs: Sequence[CoherenceRun]) -> list[str]:
    """Returns the fastest design of each kernel, or the runtime of a single run."""
    if len(runs) == 1:
        stall = format_share(runs[0].network_stall)
        return [
            f"{runs[0].case.kernel} runs for {runs[0].cycles:,} cycles.",
            (
                f"A miss takes {three(runs[0].miss_latency)} cycles on average; cores wait for the "
                f"network during {stall} of their time."
            ),
        ]
    lines = []
    shares = compared(runs)
    for kernel in dict.fromkeys(run.case.kernel for run in runs):
        of_kernel = [(run, share) for run, share in shares if run.case.kernel == kernel]
        if len(of_kernel) > 1:
            best, share = min(of_kernel[1:], key=lambda pair: pair[1])
            change = f"{format_share(abs(1 - share))} {'fewer' if share <= 1 else 'more'} cycles"
            lines.append(
                f"{kernel} takes {change} on {best.case.mesh.design} than on "
                f"{of_kernel[0][0].case.mesh.design}."
            )
    return lines or [f"{plural(len(runs), 'kernel')} on {runs[0].case.mesh.design}."]


def runtimes(runs: Sequence[CoherenceRun]) -> Figure:
    """Returns the cycles relative to the first design, a group of bars per kernel."""
    designs = list(dict.fromkeys(run.case.mesh.design for run in runs))
    chosen = styles(designs)
    shares = compared(runs)
    traces = []
    for design in designs:
        bars_of = [(run, share) for run, share in shares if run.case.mesh.design == design]
        hover = f"%{{x}}: %{{y:.3f}}, %{{customdata:,}} cycles<extra>{design}</extra>"
        names, values = [run.case.kernel for run, _ in bars_of], [share for _, share in bars_of]
        traces.append(bars(names, values, chosen[design].colour, hover, name=design,
                           customdata=[run.cycles for run, _ in bars_of]))  # fmt: skip
    y = Axis("relative runtime", f"{designs[0]} = 1", zero=True)
    return chart(traces, Axis(), y, 400, barmode="group")


def latencies(runs: Sequence[CoherenceRun]) -> Figure:
    """Returns the components of the mean miss latency, a bar per run."""
    chosen = styles(PARTS)
    several = len({run.case.kernel for run in runs}) > 1
    names = [f"{run.case.kernel}<br>" * several + run.case.mesh.design for run in runs]
    traces = []
    for part, name in PARTS.items():
        values = [run.parts[part] / max(run.misses_of_all, 1) for run in runs]
        if any(values):
            hover = f"%{{y}}: %{{x:.4g}} cycles<extra>{name}</extra>"
            traces.append(bars(names, values, chosen[part].colour, hover, across=True, name=name))
    x = Axis("mean latency of a miss", "cycles", zero=True)
    y = Axis(more=NAMES.more | {"autorange": "reversed", "dtick": 1})
    return chart(traces, x, y, 120 + 40 * len(names), barmode="stack",
                 legend={"traceorder": "normal"})  # fmt: skip
