"""A network, its traffic and its measurement: what a file of `tutti noc` describes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from tutti.networks.loads import Loaded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tutti.networks.loads import SearchPlan
    from tutti.view.view import View

Network = TypeVar("Network")
Traffic = TypeVar("Traffic")
Plan = TypeVar("Plan")
Run = TypeVar("Run", bound=Loaded)


@dataclass(frozen=True, kw_only=True)
class Experiment(ABC, Generic[Network, Traffic, Plan, Run]):
    """A network, its traffic and its measurement.

    Attributes:
        source: The file, for messages.
        title: Title of reports.
        network: The network.
        traffic: The traffic of each class or kind.
        plan: The phases of a run.
        output: The folder for results; None to write none.
    """

    package: ClassVar[str]
    """The package with `run`, `sweep` and `saturation` for the network, and their views."""

    source: str
    title: str
    network: Network
    traffic: Traffic
    plan: Plan
    output: Path | None

    @property
    @abstractmethod
    def default_loads(self) -> list[float]:
        """The loads of a sweep."""

    @abstractmethod
    def search_plan(self, runs: Sequence[Run], tolerance: float | None) -> SearchPlan:
        """Returns the search for saturation that starts from runs.

        Args:
            runs: Earlier runs.
            tolerance: Tolerance in the unit of the loads; None for the default.
        """

    def remarks(self) -> list[str]:
        """Returns warnings about the network."""
        return []

    @property
    def has_saturation(self) -> bool:
        """Whether more load can be offered than the network accepts."""
        return True

    @property
    def scalable(self) -> Traffic:
        """The traffic, for runs at several loads."""
        return self.traffic

    def run(self) -> Run:
        """Runs the traffic."""
        run: Run = self._module().run(self.network, self.traffic, self.plan)
        return run

    def sweep(
        self, loads: Sequence[float], threads: int, done: Callable[[Run], object]
    ) -> list[Run]:
        """Runs the traffic at several loads."""
        runs: list[Run] = self._module().sweep(
            self.network, self.scalable, loads, self.plan, threads=threads, done=done
        )
        return runs

    def saturation(
        self, plan: SearchPlan, runs: Sequence[Run], threads: int, done: Callable[[Run], object]
    ) -> object:
        """Searches for the saturation load, from earlier runs."""
        return self._module().saturation(
            self.network, self.scalable, self.plan, tolerance=plan.tolerance, most=plan.most,
            known=runs, threads=threads, done=done,
        )  # fmt: skip

    def run_view(self, run: Run, remarks: Sequence[str]) -> View:
        """Returns what a run shows."""
        view: View = self._module(".view.run").run_view(run, title=self.title, remarks=remarks)
        return view

    def load_view(self, runs: Sequence[Run], saturation: object, remarks: Sequence[str]) -> View:
        """Returns what runs at several loads, and a search for saturation, show."""
        load_view = self._module(".view.load").load_view
        view: View = load_view(runs, saturation, title=self.title, remarks=remarks)
        return view

    def _module(self, name: str = "") -> Any:  # noqa: ANN401 - the functions of either package
        return import_module(f"{self.package}{name}")
