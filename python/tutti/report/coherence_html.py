"""The HTML report of kernels on chips with coherent caches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import coherence_figures, coherence_words
from .noc_words import number
from .page import write_page
from .quantity import format_share, plural
from .smart_words import describe_buffers, describe_mesh

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tutti.coherence import CoherenceRun

CONVENTIONS = (
    "Times are in cycles, and of the region of interest of each kernel. Kernels share data as "
    "the benchmarks do that they are named after, but are none of them: designs can be compared by "
    "them, runtimes of those benchmarks cannot. Each kernel has computed what its serial program "
    "computes. A core is in order and waits for every access; what its own caches do not have is a "
    "miss, also the right to write a line that they have. 1-to-M is from a broadcast's creation to "
    "its last arrival, M-to-1 from the first answer's turn to the last one's arrival. "
    "docs/models/coherence.md says what is simulated, and what is not."
)

_KICKER = "kernels on a chip with coherent caches"


def write_coherence_report(path: str | Path, runs: Sequence[CoherenceRun], title: str = "") -> Path:
    """Writes the report of kernels on chips: runtimes, misses, flows.

    Args:
        path: where to; the folder must exist.
        runs: one or more.
        title: the question; by default it is made from the runs.

    Returns:
        The path written.
    """
    charts = {"latencies": coherence_figures.latencies(runs)}
    if len(runs) > 1:
        charts["runtimes"] = coherence_figures.runtimes(runs)
    return write_page(
        path,
        kicker=_KICKER,
        title=title or coherence_words.describe_chip(runs),
        answer=_answer(runs),
        facts=_facts(runs),
        sections=_sections(runs),
        charts=charts,
        conventions=CONVENTIONS,
    )


def _sections(runs: Sequence[CoherenceRun]) -> list[dict[str, Any]]:
    runtime = {
        "heading": "Runtime",
        "lead": f"Bars below 1 are faster than {runs[0].case.mesh.design}.",
        "chart": "runtimes",
    }
    columns = coherence_words.columns(runs)
    return [
        *([runtime] if len(runs) > 1 else []),
        {
            "heading": "Every run",
            "lead": f"A heading sorts. {_sentence(coherence_words.ALL)}",
            "table": {"columns": columns, "rows": coherence_words.rows(runs)},
        },
        {
            "heading": "What a miss is spent on",
            "lead": "One after the other; together they are the mean latency.",
            "chart": "latencies",
            "table": _misses(runs),
        },
        {
            "heading": "Flows",
            "lead": "Messages to one node, broadcasts, and reductions of answers, by kind.",
            "table": _flows(runs),
        },
    ]


def _facts(runs: Sequence[CoherenceRun]) -> list[tuple[str, str]]:
    first = runs[0]
    meshes = dict.fromkeys(describe_mesh(run.case.mesh) for run in runs)
    return [
        ("caches", coherence_words.caches(first)),
        ("buffers", describe_buffers(first.case.mesh)),
        *(("mesh" if not place else "", mesh) for place, mesh in enumerate(meshes)),
        (
            "input",
            f"scale {first.case.scale}, seed {first.case.seed}, {plural(first.cores, 'core')}",
        ),
    ]


def _answer(runs: Sequence[CoherenceRun]) -> list[str]:
    """The fastest design of each kernel, or how long the only run took."""
    if len(runs) == 1:
        run = runs[0]
        return [f"{run.case.kernel} takes {run.cycles:,} cycles."]
    lines = []
    shares = list(zip(runs, coherence_words.relative(runs), strict=True))
    for kernel in dict.fromkeys(run.case.kernel for run in runs):
        own = [(run, share) for run, share in shares if run.case.kernel == kernel]
        if len(own) > 1:
            best, share = min(own[1:], key=lambda pair: pair[1])
            change = format_share(abs(1 - share))
            how = "less" if share <= 1 else "more"
            lines.append(
                f"{kernel} takes {change} {how} on {best.case.mesh.design} than on "
                f"{own[0][0].case.mesh.design}."
            )
    return lines or [f"{plural(len(runs), 'kernel')}, on {runs[0].case.mesh.design}."]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def _misses(runs: Sequence[CoherenceRun]) -> dict[str, Any]:
    columns = [("kernel", "text"), ("design", "text"), ("to", "text")]
    columns += [
        (name, "number") for name in ("misses", "cycles", "most", "from caches", "from memory")
    ]
    columns += [(name, "number") for name in coherence_words.PARTS.values()]
    rows = []
    for run in runs:
        for one in run.misses:
            cells: list[tuple[Any, str]] = [
                (run.case.kernel, run.case.kernel),
                (run.case.mesh.design, run.case.mesh.design),
                (one.kind, one.kind),
                (one.latency.count, f"{one.latency.count:,}"),
                (one.latency.mean, number(one.latency.mean)),
                (one.latency.most, f"{one.latency.most:,}"),
                (one.from_caches, f"{one.from_caches:,}"),
                (one.from_memory, f"{one.from_memory:,}"),
            ]
            cells += [
                (one.parts[part], number(one.parts[part], 3)) for part in coherence_words.PARTS
            ]
            rows.append(cells)
    return {"columns": columns, "rows": rows}


def _flows(runs: Sequence[CoherenceRun]) -> dict[str, Any]:
    columns = [("kernel", "text"), ("design", "text"), ("message", "text"), ("cast", "text")]
    columns += [("class", "number"), ("flows", "number"), ("of all", "number")]
    rows = []
    for run in runs:
        total = sum(one.count for one in run.flows)
        for one in run.flows:
            share = one.count / total
            rows.append(
                [
                    (run.case.kernel, run.case.kernel),
                    (run.case.mesh.design, run.case.mesh.design),
                    (one.kind, one.kind),
                    (one.cast, one.cast),
                    (one.message_class, str(one.message_class)),
                    (one.count, f"{one.count:,}"),
                    (share, format_share(share)),
                ]
            )
    return {"columns": columns, "rows": rows}
