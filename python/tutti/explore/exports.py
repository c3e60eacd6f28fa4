"""The files that a page exports: the experiment, the report of its comparison, and a trace."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tutti.collectives.view.comparison import comparison_view
from tutti.collectives.view.perfetto import write_trace
from tutti.explore.state import to_toml
from tutti.view.page import page_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tutti.explore.engine import Engine, Point

KINDS = {"toml": "experiment.toml", "html": "report.html", "trace": "run.pftrace"}
"""The name of the file of each kind of export."""


def export(engine: Engine, kind: str, state: Mapping[str, Any], point: Point | None) -> bytes:
    """Returns the content of a file.

    Args:
        engine: Has the results, or computes them.
        kind: One of :data:`KINDS`.
        state: The state of the page.
        point: The run of the trace, and of the timeline in the report.

    Raises:
        TuttiError: The state or the point is invalid.
    """
    if kind == "toml":
        return to_toml(engine.base, state).encode()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / KINDS[kind]
        if kind == "trace" and point is not None:
            run = engine.run(state, point)
            write_trace(path, run.timeline, run.messages_frame)
        else:
            _report(engine, state, point, path)
        return path.read_bytes()


def _report(engine: Engine, state: Mapping[str, Any], point: Point | None, path: Path) -> None:
    found = engine.compare(state, lambda *_: None, threading.Event())
    experiment = found.plan.experiment
    drawn = None
    if point is not None:
        run = engine.run(state, point)
        drawn = (run.timeline, run.messages_frame)
    view = comparison_view(
        found.frame,
        experiment.facts(),
        plan=found.plan,
        run=(lambda: drawn) if drawn else None,
        title=experiment.title or "",
    )
    page_of(view).write(path)
