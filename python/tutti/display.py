"""Access to drawings for classes below the report layer.

`tutti` registers the drawing functions, so that a class can be drawn without importing them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from tutti.bypass import BypassConfiguration
    from tutti.noc import NocRun, Saturation, smart
    from tutti.platform import Platform
    from tutti.run import Run
    from tutti.schedule import Schedule
    from tutti.topology import Topology
    from tutti.training_result import TrainingResult

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

    def platform_html(self, platform: Platform) -> str:
        """Returns the HTML of a platform for notebooks."""

    def topology_html(self, topology: Topology) -> str:
        """Returns the HTML of a topology for notebooks."""

    def training_html(self, run: TrainingResult) -> str:
        """Returns the HTML of a training step for notebooks."""

    def noc_run_html(self, run: NocRun) -> str:
        """Returns the HTML of a flit-level run for notebooks."""

    def saturation_html(self, found: Saturation) -> str:
        """Returns the HTML of a saturation load for notebooks."""

    def mesh_run_html(self, run: smart.Run) -> str:
        """Returns the HTML of a run of a single-cycle mesh for notebooks."""

    def mesh_saturation_html(self, found: smart.Saturation) -> str:
        """Returns the HTML of the saturation loads of a single-cycle mesh for notebooks."""


_load: Callable[[], Renderers] | None = None


def provide(load: Callable[[], Renderers]) -> None:
    """Registers the function that loads the renderers on first use."""
    global _load  # noqa: PLW0603 - one for the process
    _load = load


def renderers() -> Renderers:
    """Returns the registered renderers."""
    assert _load is not None  # noqa: S101 - `import tutti` provides them
    return _load()
