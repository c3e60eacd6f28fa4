"""The values that a page draws, as JSON: comparisons, runs and topologies."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from tutti.collectives.explanation import parts, why
from tutti.collectives.view import summary as words
from tutti.collectives.view.comparison_charts import decision_lines
from tutti.collectives.view.timeline import picture
from tutti.schedules.proving import capped
from tutti.topologies.view.graph import MOST_DRAWN
from tutti.topologies.view.layout import layout
from tutti.view.palette import KIND_COLOURS

if TYPE_CHECKING:
    from tutti.collectives.comparison import Fastest, Measurement
    from tutti.collectives.result import Run
    from tutti.explore.engine import Compared
    from tutti.explore.preview import Preview
    from tutti.topologies import Topology

_MOST_RANKS, _MOST_BARS, _MOST_ARROWS = 64, 20_000, 2_000
"""Limits of a drawn timeline."""
_MOST_HOPS = 400
"""Parts of a critical path that are listed."""
_MOST_LINKS = 4000
"""Links of a drawn topology."""


def cells_json(found: Compared | Preview) -> dict[str, Any]:
    """Returns the cells of a decision map, and the styles of their algorithms."""
    case = found.case
    return {"cells": [_cell(one) for one in case.decisions().values()], "styles": _styles(found)}


def _styles(found: Compared | Preview) -> dict[str, dict[str, Any]]:
    """Returns the styles of algorithms."""
    return {
        name: {"colour": one.colour, "marker": one.marker, "dash": one.dash}
        for name, one in found.styles.items()
    }


def compared_json(found: Compared | Preview) -> dict[str, Any]:
    """Returns a comparison: cells of the decision map, curves and styles."""
    case = found.case
    left_out = [f"{one.notation}, {one.where}: {one.reason}" for one in found.plan.left_out]
    reasons = words.Reasons(found.plan.experiment.ps_per_byte, found.plan)
    return {
        "key": found.key,
        "complete": found.complete,
        "measurements": found.measurements,
        "total": len(found.plan.points),
        "collective": case.collective,
        "platform": case.platform,
        "model": case.model,
        "datatype": case.datatype,
        "ranks": [one for one in found.plan.experiment.ranks if one in case.ranks],
        "sizes": case.sizes,
        "cells": [_cell(one) for one in case.decisions().values()],
        "rows": [_row(one) for one in case.best().values()],
        "styles": _styles(found),
        "summary": [
            {"name": one.name, "found": one.found, "why": one.why}
            for one in words.summary(case, reasons)
        ]
        if found.complete
        else [],
        "left_out": capped(left_out, "left out"),
    }


def _cell(one: Fastest) -> dict[str, Any]:
    return {
        "ranks": one.winner.ranks,
        "size": one.winner.size_bytes,
        "algorithm": one.winner.algorithm,
        "schedule": one.winner.schedule,
        "time_ps": one.winner.time_ps,
        "margin": one.margin,
        "text": decision_lines(one),
    }


def _row(one: Measurement) -> list[Any]:
    """Returns ranks, size, algorithm, schedule, time, busbw and the lower bound."""
    return [
        *(one.ranks, one.size_bytes, one.algorithm, one.schedule),
        *(one.time_ps, one.busbw, one.bound_ps),
    ]


def run_json(run: Run, rival: Run | None = None, *, ps_per_byte: float = 1.0) -> dict[str, Any]:
    """Returns a run: timeline, links on the topology, and the causes of its time.

    Args:
        run: The run.
        rival: The run of another schedule at the same point.
        ps_per_byte: The time per byte of the model.
    """
    path = run.critical_path
    return {
        "schedule": run.name,
        "ranks": run.schedule.ranks,
        "size": run.size.bytes,
        "time_ps": run.completion_ps,
        "bound_ps": run.bound.at_least_ps,
        "busbw": run.busbw,
        "messages": run.messages,
        "bytes": run.message_bytes,
        "not_verified": run.not_verified,
        "causes": path.shares_ps,
        "path": [
            [one.rank, one.kind, one.start_ps, one.end_ps, one.source, one.bytes]
            for one in path.hops[:_MOST_HOPS]
        ],
        "path_length": len(path.hops),
        "reason": _reason(run, rival, ps_per_byte),
        "timeline": _timeline(run),
        "topology": _topology(run),
    }


def _reason(run: Run, rival: Run | None, ps_per_byte: float) -> str:
    """Returns what the faster of two runs saves."""
    if rival is None:
        return ""
    faster, slower = sorted((run, rival), key=lambda one: one.completion_ps)
    first, second = (
        parts(one.schedule, one.size.bytes, measured=(one.messages, one.message_bytes))
        for one in (faster, slower)
    )
    gap = slower.completion_ps - faster.completion_ps
    saved = why(first, second, gap_ps=gap, ps_per_byte=ps_per_byte)
    return f"{faster.name} needs {saved}." if saved else ""


def _timeline(run: Run) -> dict[str, Any]:
    if run.timeline.is_empty():
        return {"ranks": [], "bars": [], "arrows": [], "end_ps": 0, "notes": [], "colours": {}}
    drawn = picture(run.timeline, run.messages_frame, _MOST_RANKS, _MOST_BARS, _MOST_ARROWS)
    return {
        "ranks": drawn.ranks,
        "bars": [
            [one.rank, one.kind, one.start_ps, one.end_ps, one.label, one.name, one.bytes]
            for one in drawn.bars
            if one.duration_ps
        ],
        "arrows": [
            [one.source, one.destination, one.sent_ps, one.arrival_ps, one.bytes]
            for one in drawn.arrows
        ],
        "end_ps": drawn.end_ps,
        "notes": drawn.notes,
        "colours": KIND_COLOURS,
    }


def _topology(run: Run) -> dict[str, Any] | None:
    """Returns the vertices and links of the topology with their use; None without a topology.

    A topology that is too large to draw is reduced to the vertices that messages passed.
    """
    routes = run.platform.routes
    if routes is None:
        return None
    topology = routes.topology
    use = {row["link"]: row for row in run.links.iter_rows(named=True)}
    reduced = len(topology.vertices) > MOST_DRAWN
    active = {one for row in use.values() if row["bytes"] for one in (row["source"], row["target"])}
    if reduced and (not active or not topology.is_family or len(active) > MOST_DRAWN):
        return None
    at = _positions(topology, active if reduced else None)
    kinds = {one.name: (one.kind, one.rank) for one in topology.vertices}
    links = [
        [one.source, one.target, str(one.rate), use[one.index]["bytes"], use[one.index]["busy_ps"]]
        for one in topology.links
        if one.index in use and one.source in at and one.target in at
        if not reduced or use[one.index]["bytes"]
    ]
    return {
        "name": topology.name,
        "vertices": [[name, *kinds[name], *place] for name, place in at.items()],
        "links": links[:_MOST_LINKS],
        "measured": bool(use),
        "reduced": reduced,
    }


def _positions(topology: Topology, active: set[str] | None) -> dict[str, tuple[float, float]]:
    """Returns positions of vertices; in rows of active vertices the gaps are closed."""
    at = layout(topology).at
    if active is None:
        return at
    at = {name: place for name, place in at.items() if name in active}
    rows: dict[float, list[str]] = defaultdict(list)
    for name, (_, y) in sorted(at.items(), key=lambda item: item[1]):
        rows[round(y, 6)].append(name)
    if len(rows) > 6:
        return at
    widest = max(len(row) for row in rows.values())
    levels = {y: level for level, y in enumerate(sorted(rows))}
    return {
        name: ((index + 0.5) / len(row) * widest, levels[y] * max(1.5, 0.3 * widest))
        for y, row in rows.items()
        for index, name in enumerate(row)
    }
