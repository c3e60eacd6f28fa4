"""The HTML report of a training step: where the time went, what was busy when, layer by layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tutti.errors import ReportError

from . import training_figures, training_words
from .page import write_page
from .quantity import format_rate, format_share, format_size, format_time

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import plotly.graph_objects as go
    import polars as pl

    from tutti.training import TrainingResult

MOST_ROWS = 3000
"""Of the table of layers; the frame has all of them."""

CONVENTIONS = (
    "Times are predictions, of one NPU that stands for all, which do the same. Each moment is one "
    "of computing alone, computing and communicating (overlap), communicating alone (exposed) and "
    "idle; the four make up the whole. A link or a server is busy while bytes pass it; links are "
    "averaged over both ways of all rings, each as one. GB is 10^9 bytes, GiB 2^30."
)

Section = dict[str, Any]


def write_training_report(
    path: str | Path, runs: Sequence[TrainingResult], title: str = ""
) -> Path:
    """Writes the report of a training step with one configuration of endpoints or several.

    Args:
        path: where to; the folder must exist.
        runs: of one step; if it has windows, they tell what was busy when.
        title: the question; by default it is made from the step.

    Returns:
        The path written.

    Raises:
        ReportError: there are no runs.
    """
    if not runs:
        raise ReportError("there is no run of a training step to be shown", kind="frame")
    charts: dict[str, go.Figure] = {"breakdown": training_figures.breakdown(runs)}
    sections = [
        {
            "heading": "Where the time of an NPU goes",
            "lead": "With each configuration of endpoints, all iterations together.",
            "chart": "breakdown",
            "table": _times(runs),
        },
        *_over_time(runs, charts),
        *_costs(runs, charts),
        _layers(runs),
    ]
    name = runs[0].step.model.name
    return write_page(
        path,
        kicker="training steps",
        title=title or f"What does communication cost a training step of {name}?",
        answer=training_words.answer(runs),
        facts=training_words.facts(runs),
        sections=sections,
        charts=charts,
        conventions=CONVENTIONS,
    )


def _ps(value: float) -> tuple[object, str]:
    return value, format_time(value)


def _times(runs: Sequence[TrainingResult]) -> Section:
    names = ("total", *(words for _, words, _ in training_figures.PARTS))
    columns = [("configuration", "text"), *((name, "number") for name in names)]
    rows = []
    for run in runs:
        name = run.configuration.name
        rows.append([(name, name), _ps(run.total.ps), *map(_ps, run.record.breakdown())])
    return {"columns": columns, "rows": rows}


def _over_time(runs: Sequence[TrainingResult], charts: dict[str, go.Figure]) -> list[Section]:
    import polars as pl

    from tutti.training_frames import window_frame

    watched = [run for run in runs if run.step.window is not None]
    if not watched:
        return []
    windows = pl.concat(window_frame(run) for run in watched)
    charts["over_time"] = training_figures.over_time(windows)
    width = format_time(watched[0].step.window.ps)  # type: ignore[union-attr]
    return [
        {
            "heading": "What is busy when",
            "lead": "The share of the time in which a link carries data, on average over all links "
            f"of an NPU, and in which its processor computes; in windows of {width}.",
            "chart": "over_time",
        }
    ]


def _costs(runs: Sequence[TrainingResult], charts: dict[str, go.Figure]) -> list[Section]:
    import polars as pl

    from tutti.training_frames import server_frame

    columns = [
        ("configuration", "text"),
        ("endpoint", "text"),
        ("SMs taken", "text"),
        ("memory taken", "text"),
        ("arithmetic left", "number"),
        ("memory left", "number"),
        ("read", "number"),
        ("a byte sent", "number"),
        ("sent at", "number"),
    ]
    servers = pl.concat(_by_ring(server_frame(run)) for run in runs)
    charts["servers"] = training_figures.busy_servers(servers)
    return [
        {
            "heading": "What each endpoint costs",
            "lead": "SMs and bandwidth of memory that are taken for communication are missing when "
            "the NPU computes. Read is what communication reads from memory, in all iterations and "
            "for each byte that is sent; sent at is told of the time in which an NPU communicates.",
            "table": {"columns": columns, "rows": [_cost(run) for run in runs]},
        },
        {
            "heading": "How busy each endpoint is",
            "lead": "Its parts, and the links of each ring, while there is something to "
            "communicate. What is always busy is what holds communication up.",
            "chart": "servers",
        },
    ]


def _cost(run: TrainingResult) -> list[tuple[object, str]]:
    configuration, npu = run.configuration, run.step.npu
    sms, memory = training_words.taken(configuration, npu)
    name, kind = configuration.name, configuration.kind
    each = run.read / run.sent if run.sent else 0.0
    return [
        (name, name),
        (kind, kind),
        (sms, sms),
        (memory, memory),
        *training_words.left(configuration, npu),
        (run.read, format_size(run.read)),
        (each, f"{each:.2f}"),
        (run.network_rate, format_rate(run.network_rate)),
    ]


def _by_ring(servers: pl.DataFrame) -> pl.DataFrame:
    """The two ways of a ring as one."""
    import polars as pl

    ring = pl.when("is_link").then("links " + pl.col("server").str.head(-2))
    named = servers.with_columns(server=ring.otherwise("server"))
    return named.group_by("configuration", "server", maintain_order=True).agg(
        pl.col("utilisation").mean()
    )


_OF_LAYERS = (
    ("forward", "forward_ps"),
    ("input gradient", "input_gradient_ps"),
    ("weight gradient", "weight_gradient_ps"),
    ("other", "other_ps"),
    ("waited before it", "waited_ps"),
    ("collectives took", "carried_ps"),
)


def _layers(runs: Sequence[TrainingResult]) -> Section:
    import polars as pl

    from tutti.training_frames import layer_frame

    found = pl.concat(layer_frame(run) for run in runs)
    shown = [(name, column) for name, column in _OF_LAYERS if found[column].sum()]
    columns = [("configuration", "text"), ("layer", "text")]
    columns += [(name, "number") for name, _ in shown] + [("handed over", "number")]
    rows = [
        [
            (row["configuration"], row["configuration"]),
            (number, row["layer"]),
            *(_ps(row[column]) for _, column in shown),
            (row["bytes"], format_size(row["bytes"])),
        ]
        for number, row in enumerate(found.head(MOST_ROWS).iter_rows(named=True))
    ]
    waited = int(found["waited_ps"].sum()) / sum(run.total.ps for run in runs)
    lead = (
        f"All iterations together; a heading sorts. Waiting, {format_share(waited)} of the time of "
        "all runs, stands at the layer that was computed next; gradients that were gathered stand "
        "at the layer whose gradients came last. What belongs to no layer, such as the wait for "
        "the last collectives, is in the rows (none)."
    )
    if found.height > MOST_ROWS:
        lead += f" The first {MOST_ROWS:,} of {found.height:,} rows; layers.parquet has all."
    return {
        "heading": "Layer by layer",
        "lead": lead,
        "table": {"columns": columns, "rows": rows},
    }
