"""Access to drawings for classes below the report layer.

`tutti` registers the drawing functions, so that a class can be drawn without importing them.
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
    """The drawing functions of `tutti.report.display`."""

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
        """Returns the HTML of a run for notebooks."""

    def schedule_html(self, schedule: Schedule) -> str:
        """Returns the HTML of a schedule for notebooks."""


_load: Callable[[], Renderers] | None = None


def provide(load: Callable[[], Renderers]) -> None:
    """Registers the function that loads the renderers on first use."""
    global _load  # noqa: PLW0603 - one for the process
    _load = load


def renderers() -> Renderers:
    """Returns the registered renderers."""
    assert _load is not None  # noqa: S101 - `import tutti` provides them
    return _load()
