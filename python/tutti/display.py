"""Drawings of objects whose classes lie below the report layer, which provides them.

`tutti` itself tells where they are, so that a class can be drawn without importing a drawing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from tutti.bypass import BypassConfiguration
    from tutti.run import Run
    from tutti.schedule import Schedule
    from tutti.topology import Topology

__all__ = ["Renderers", "provide", "renderers"]


class Renderers(Protocol):
    """What draws: `tutti.report.display`."""

    def draw_topology(
        self, path: str | Path, topology: Topology, names: bool | None = None
    ) -> Path:
        """Draws a topology to a file."""

    def draw_configuration(
        self,
        path: str | Path,
        configuration: BypassConfiguration,
        paths: Mapping[tuple[int, int], Sequence[int]] | None = None,
        title: str | None = None,
    ) -> Path:
        """Draws a configuration of bypass links to a file."""

    def run_html(self, run: Run) -> str:
        """Returns what a notebook shows of a run."""

    def schedule_html(self, schedule: Schedule) -> str:
        """Returns what a notebook shows of a schedule."""


_load: Callable[[], Renderers] | None = None


def provide(load: Callable[[], Renderers]) -> None:
    """Tells what loads the renderers when something is drawn for the first time."""
    global _load  # noqa: PLW0603 - one for the process
    _load = load


def renderers() -> Renderers:
    """Returns the renderers that were provided."""
    assert _load is not None  # noqa: S101 - `import tutti` provides them
    return _load()
