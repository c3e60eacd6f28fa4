"""The utilisation of every link in a training step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tutti.training.step import TrainingResult

__all__ = ["link_frame", "link_name"]


def link_name(run: TrainingResult, name: str) -> str:
    """Returns the name of a link of an NPU, such as `vertical +`, or `to s0` on a platform.

    Args:
        run: The run, whose step names the dimensions.
        name: The name in the record: `ring 1 +`, or on a platform the end of the link.
    """
    if run.step.platform is not None:
        return f"to {name}"
    _, ring, direction = name.split(" ")
    return f"{run.step.rings[int(ring)].name} {direction}"


def link_frame(run: TrainingResult) -> pl.DataFrame:
    """Returns a row per link: every link of a platform, or those of each simulated NPU of a torus.

    Columns: ``configuration``; ``npu``, the source on a torus, else null; ``source`` and
    ``target``, vertices of the topology, null on a torus; ``link``, the name; ``busy_ps``;
    ``bytes``; ``utilisation``, as a fraction of the time of the run. On a platform, ``busy_ps`` is
    the time of the bytes at the rate of the link.
    """
    schema = {
        "configuration": pl.String,
        "npu": pl.Int64,
        "source": pl.String,
        "target": pl.String,
        "link": pl.String,
        "busy_ps": pl.Int64,
        "bytes": pl.Int64,
        "utilisation": pl.Float64,
    }
    name, end = run.configuration.name, max(run.record.end_ps, 1)
    found = _of_torus(run) if run.step.platform is None else _of_platform(run)
    rows = [(name, *row, row[-2] / end) for row in found]
    return pl.DataFrame(rows, schema=schema, orient="row")


_Row = tuple[int | None, str | None, str | None, str, int, int]


def _of_torus(run: TrainingResult) -> Iterator[_Row]:
    for npu in range(run.record.npus):
        for used in run.record.links(npu):
            yield npu, None, None, link_name(run, used.name), used.busy_ps, used.bytes


def _of_platform(run: TrainingResult) -> Iterator[_Row]:
    routes = run.step.platform.routes if run.step.platform else None
    links = routes.topology.links if routes else ()
    for link, used in zip(links, run.record.graph_links(), strict=False):
        ends = (link.source, link.target)
        busy = round(used.bytes * link.rate.core.ps_per_byte)
        yield None, *ends, " to ".join(ends), busy, used.bytes
