"""The report page of kernels on chips with coherent caches: runtimes, misses, flows."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tutti.networks.mesh.view.text import describe_buffers, describe_mesh
from tutti.view.charts import NAMES, Axis, bars, chart
from tutti.view.page import MOST_SENTENCES, SORTING, Chart, Page, Section
from tutti.view.palette import styles
from tutti.view.quantity import count, format_share, number, plural, sentence, three
from tutti.view.tables import Column, ReportTable

from . import text as words

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tutti.networks.coherence import CoherenceRun
    from tutti.view.charts import Figure

    Part = tuple[CoherenceRun, Any]

CONVENTIONS = (
    "Times are in cycles of the region of interest. Kernels have the sharing patterns of the "
    "benchmarks that they are named after, but are not these benchmarks: compare designs, not "
    "published runtimes. Each result equals that of the serial program. Cores are in-order and "
    "block on every access. A miss is an access that the core's private caches cannot serve, "
    "including upgrades to write permission. The latency of a broadcast runs from its creation to "
    "its last arrival, that of a reduction from the same cycle to the arrival of the last "
    "response. "
    "docs/models/coherence.md describes the model and its limits."
)


def write_coherence_report(path: str | Path, runs: Sequence[CoherenceRun], title: str = "") -> Path:
    """Writes the report of kernels on chips: runtimes, misses, flows.

    Args:
        path: The file to write; its folder must exist.
        runs: One or more runs.
        title: The title of the experiment, above the question of the page.

    Returns:
        The path written.
    """
    summary = _summary(runs)
    page = Page(
        kind="coherence",
        kicker="kernels on a chip with coherent caches",
        title=title,
        question=_question(runs),
        answer=summary if len(summary) <= MOST_SENTENCES else [_overall(runs)],
        findings=[("", summary)] if len(summary) > MOST_SENTENCES else [],
        facts=_facts(runs),
        sections=_sections(runs),
        conventions=CONVENTIONS,
    )
    return page.write(path)


def _sections(runs: Sequence[CoherenceRun]) -> list[Section]:
    faster = f"Bars below 1 are faster than {runs[0].case.mesh.design}."
    compared = (
        "Horizontal: kernel. Vertical: cycles relative to the first design.",
        "the lowest bar of each kernel, and kernels on which the designs differ most.",
    )
    runtime = (
        [Section("Relative runtime", faster, {"runtimes": Chart(runtimes(runs), *compared)})]
        if len(runs) > 1
        else []
    )
    every = f"{sentence(words.ALL)} {SORTING}"
    return [
        *runtime,
        Section("All runs", every, table=words.table(runs)),
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
            _misses(runs),
        ),
        Section(
            "Flows",
            "Unicasts, broadcasts and reductions of responses, by message kind.",
            table=_flows(runs),
        ),
    ]


def _facts(runs: Sequence[CoherenceRun]) -> list[tuple[str, str]]:
    first = runs[0]
    meshes = dict.fromkeys(describe_mesh(run.case.mesh) for run in runs)
    cores = plural(first.cores, "core")
    return [
        ("caches", words.caches(first)),
        ("buffers", describe_buffers(first.case.mesh)),
        *(("mesh", mesh) for mesh in meshes),
        ("input", f"scale {first.case.scale}, seed {first.case.seed}, {cores}"),
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
    shares = list(zip(runs, words.relative(runs), strict=True))
    wins: dict[str, list[float]] = {}
    kernels = list(dict.fromkeys(run.case.kernel for run in runs))
    for kernel in kernels:
        best, share = min(((run, share) for run, share in shares if run.case.kernel == kernel),
                          key=lambda pair: pair[1])  # fmt: skip
        wins.setdefault(best.case.mesh.design, []).append(share)
    design, found = max(wins.items(), key=lambda item: len(item[1]))
    mean = sum(found) / len(found)
    first = runs[0].case.mesh.design
    return (
        f"{design} is fastest on {len(found)} of {plural(len(kernels), 'kernel')}, where it takes "
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
    shares = list(zip(runs, words.relative(runs), strict=True))
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


_OF_RUN: tuple[Column[tuple[Any, Any]], ...] = (
    Column("kernel", lambda part: part[0].case.kernel),
    Column("design", lambda part: part[0].case.mesh.design),
)


def _misses(runs: Sequence[CoherenceRun]) -> ReportTable[Part]:
    columns: list[Column[Part]] = [
        *_OF_RUN,
        Column("access", lambda part: part[1].kind),
        Column("misses", lambda part: part[1].latency.count, count),
        Column(
            "mean latency",
            lambda part: part[1].latency,
            lambda latency: number(latency.mean),
            exported="cycles",
        ),
        Column("maximum latency", lambda part: part[1].latency.most, count, exported="cycles"),
        Column("served by caches", lambda part: part[1].from_caches, count),
        Column("served by memory", lambda part: part[1].from_memory, count),
        *(
            Column(name, partial(_spent, key), three, exported="cycles")
            for key, name in words.PARTS.items()
        ),
    ]
    return ReportTable(columns, [(run, one) for run in runs for one in run.misses])


def _spent(key: str, part: Part) -> float:
    return part[1].parts[key]  # type: ignore[no-any-return]


def _flows(runs: Sequence[CoherenceRun]) -> ReportTable[Part]:
    totals = {id(run): sum(one.count for one in run.flows) for run in runs}
    columns: list[Column[Part]] = [
        *_OF_RUN,
        Column("message kind", lambda part: part[1].kind),
        Column("flow kind", lambda part: part[1].cast),
        Column("message class", lambda part: part[1].message_class, str),
        Column("flows", lambda part: part[1].count, count),
        Column("share of flows", lambda part: part[1].count / totals[id(part[0])], format_share),
    ]
    return ReportTable(columns, [(run, one) for run in runs for one in run.flows])


def runtimes(runs: Sequence[CoherenceRun]) -> Figure:
    """Returns the cycles relative to the first design, a group of bars per kernel."""
    designs = list(dict.fromkeys(run.case.mesh.design for run in runs))
    chosen = styles(designs)
    shares = list(zip(runs, words.relative(runs), strict=True))
    traces = []
    for design in designs:
        found = [(run, share) for run, share in shares if run.case.mesh.design == design]
        hover = f"%{{x}}: %{{y:.3f}}, %{{customdata:,}} cycles<extra>{design}</extra>"
        names, values = [run.case.kernel for run, _ in found], [share for _, share in found]
        traces.append(bars(names, values, chosen[design].colour, hover, name=design,
                           customdata=[run.cycles for run, _ in found]))  # fmt: skip
    y = Axis("relative runtime", f"{designs[0]} = 1", zero=True)
    return chart(traces, Axis(), y, 400, barmode="group")


def latencies(runs: Sequence[CoherenceRun]) -> Figure:
    """Returns the components of the mean miss latency, a bar per run."""
    chosen = styles(words.PARTS)
    several = len({run.case.kernel for run in runs}) > 1
    names = [f"{run.case.kernel}<br>" * several + run.case.mesh.design for run in runs]
    traces = []
    for part, name in words.PARTS.items():
        values = [run.parts[part] / max(run.misses_of_all, 1) for run in runs]
        if any(values):
            hover = f"%{{y}}: %{{x:.4g}} cycles<extra>{name}</extra>"
            traces.append(bars(names, values, chosen[part].colour, hover, across=True, name=name))
    x = Axis("mean latency of a miss", "cycles", zero=True)
    y = Axis(more=NAMES.more | {"autorange": "reversed", "dtick": 1})
    return chart(traces, x, y, 120 + 40 * len(names), barmode="stack",
                 legend={"traceorder": "normal"})  # fmt: skip
