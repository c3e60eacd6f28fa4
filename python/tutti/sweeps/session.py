"""Runs one sweep from its plan to its rows: reads the cache, and executes missing items."""

from __future__ import annotations

import importlib
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti.schedules.errors import VerificationError
from tutti.schedules.proving import SKIPPED, TOO_LARGE, capped
from tutti.sweeps.cache import CacheContents, Journal, lookup
from tutti.sweeps.execution import Execution, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import polars as pl

    from tutti.base.errors import TuttiError
    from tutti.sweeps.executors import Crew
    from tutti.sweeps.plan import AnyPlan
    from tutti.sweeps.worker import Item


@dataclass(frozen=True)
class Missing:
    """The items of a plan without cached results: each once, in order."""

    proofs: list[Item]
    measurements: list[Item]


class Session:
    """A plan and its results.

    Attributes:
        plan: The plan.
        found: The cached results.
        outcome: The results of this session, complete or partial.
    """

    def __init__(self, plan: AnyPlan, cache: Path | None, *, is_fresh: bool = False) -> None:
        """Reads the cache.

        Args:
            plan: The plan.
            cache: The folder of the cache; None to cache nothing.
            is_fresh: Whether to ignore cached results.

        Raises:
            CacheError: The cache cannot be read, or has contradictory results.
        """
        self.plan = plan
        self.outcome = Outcome()
        self._cache = cache
        keys = {item.key for item in (*plan.measurements, *plan.proofs)}
        self.found = CacheContents() if cache is None or is_fresh else lookup(cache, keys)

    @property
    def missing(self) -> Missing:
        """The items without a result."""
        known = self.found.rows.keys() | self.outcome.rows.keys()
        measurements = {i.key: i for i in self.plan.measurements if i.key not in known}
        proofs = [item for item in self.plan.proofs if item.key not in known]
        return Missing(proofs, list(measurements.values()))

    @property
    def total(self) -> int:
        """The number of distinct measurements."""
        return len({item.key for item in self.plan.measurements})

    @property
    def finished(self) -> int:
        """The number of distinct measurements with a result."""
        return self.total - len(self.missing.measurements)

    def run(self, crew: Crew, finished: Callable[[Item], object]) -> None:
        """Runs the missing items, proofs first, so that only correct schedules are timed.

        Args:
            crew: The workers.
            finished: Called after each item.

        Raises:
            VerificationError: A schedule is incorrect.
            WorkerError: Workers die before any result.
            CacheError: Results cannot be stored.
        """
        missing = self.missing
        # The import is slow, so that it runs during the simulations.
        threading.Thread(target=importlib.import_module, args=("tutti.sweeps.frame",)).start()
        journal = Journal(self._cache) if self._cache is not None else None
        work = Execution(self.plan, crew, journal, finished)
        self.outcome = work.outcome
        try:
            work.run(missing.proofs)
            for _, error in self.failures:
                if isinstance(error, VerificationError):
                    raise error
            work.run(missing.measurements)
        except KeyboardInterrupt:
            crew.stop()
            raise
        finally:
            if journal is not None:
                journal.close()

    @property
    def failures(self) -> list[tuple[Item, TuttiError]]:
        """Items without a result and their errors, in the order of the plan."""
        failed = {item.key: error for item, error in self.outcome.failures}
        items = {item.key: item for item in (*self.plan.proofs, *self.plan.measurements)}
        return [
            (item, _named(self.plan, item, failed[key]))
            for key, item in items.items()
            if key in failed
        ]

    def unverified(self) -> list[Item]:
        """Returns the schedules that are too large to verify."""
        rows = self.found.rows | self.outcome.rows
        return [i for i in self.plan.proofs if not rows.get(i.key, {}).get("proved", True)]

    def remarks(self, *, skipped: bool) -> list[str]:
        """Returns a line per omitted or unverified schedule, with the reason.

        Args:
            skipped: Whether verification was skipped on request.
        """
        if skipped:
            first = [f"no schedule is verified: {SKIPPED}"]
        else:
            labels = [self.plan.label(item) for item in self.unverified()]
            lines = [f"not verified, as {TOO_LARGE}: {label}" for label in labels]
            first = capped(lines, "not verified")
        return first + capped(self.plan.omissions(), "left out")

    def frame(self) -> pl.DataFrame:
        """Returns the finished rows, in the order of the plan."""
        return self.plan.frame(self.found.rows | self.outcome.rows)


def _named(plan: AnyPlan, item: Item, error: TuttiError) -> TuttiError:
    if plan.sweep.source in error.problem:
        return error
    return error.reworded(f"{plan.label(item)}: {error.problem}")
