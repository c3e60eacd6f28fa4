"""One sweep from its plan to its rows: what the cache has is taken, what it lacks is done."""

from __future__ import annotations

import importlib
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti.errors import VerificationError
from tutti.proving import SKIPPED, TOO_LARGE, capped
from tutti.sweep.cache import CacheContents, Journal, found_in
from tutti.sweep.carry_out import CarryOut, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import polars as pl

    from tutti.errors import TuttiError
    from tutti.sweep.executors import Crew
    from tutti.sweep.plan import SweepPlan
    from tutti.sweep.worker import Item


@dataclass(frozen=True)
class Missing:
    """What a cache lacks of a plan: each item once, in order."""

    proofs: list[Item]
    measurements: list[Item]


class Session:
    """A plan and what is finished of it.

    Attributes:
        plan: What is asked.
        found: What was in the cache.
        outcome: What this session has done itself, all of it or a part.
    """

    def __init__(self, plan: SweepPlan, cache: Path | None, *, is_fresh: bool = False) -> None:
        """Looks into the cache.

        Args:
            plan: What is asked.
            cache: The folder; None to keep nothing.
            is_fresh: Does everything again, whatever the cache has.

        Raises:
            CacheError: The cache cannot be read, or contradicts itself.
        """
        self.plan = plan
        self.outcome = Outcome()
        self._cache = cache
        wanted = {item.key for item in (*plan.measurements, *plan.proofs)}
        self.found = CacheContents() if cache is None or is_fresh else found_in(cache, wanted)

    @property
    def missing(self) -> Missing:
        """What is still to be done."""
        known = self.found.rows.keys() | self.outcome.rows.keys()
        measurements = {i.key: i for i in self.plan.measurements if i.key not in known}
        proofs = [item for item in self.plan.proofs if item.key not in known]
        return Missing(proofs, list(measurements.values()))

    def run(self, crew: Crew, finished: Callable[[Item], object]) -> None:
        """Does what is missing: proofs first, so that nothing is timed that is not right.

        Args:
            crew: Who does the work.
            finished: Called after each item.

        Raises:
            VerificationError: A schedule does not do what it is meant to do.
            WorkerError: Workers cannot be relied on at all.
            CacheError: What is finished cannot be kept.
        """
        missing = self.missing
        # Loading it takes as long as some simulations; until they are done there is time for it.
        threading.Thread(target=importlib.import_module, args=("tutti.sweep.frame",)).start()
        journal = Journal(self._cache) if self._cache is not None else None
        work = CarryOut(self.plan, crew, journal, finished)
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
        """What gave no result and why, in the order of the plan, with the point in the message."""
        failed = {item.key: error for item, error in self.outcome.failures}
        items = {item.key: item for item in (*self.plan.proofs, *self.plan.measurements)}
        return [
            (item, _named(self.plan, item, failed[key]))
            for key, item in items.items()
            if key in failed
        ]

    def unverified(self) -> list[Item]:
        """Schedules that are too large to be verified."""
        rows = self.found.rows | self.outcome.rows
        return [i for i in self.plan.proofs if not rows.get(i.key, {}).get("proved", True)]

    def remarks(self, *, skipped: bool) -> list[str]:
        """What is left out and what is not verified, with the reasons, a line each.

        Args:
            skipped: Whether verification was left out on request.
        """
        if skipped:
            first = [f"no schedule is verified: {SKIPPED}"]
        else:
            labels = [self.plan.label(item) for item in self.unverified()]
            lines = [f"not verified, as {TOO_LARGE}: {label}" for label in labels]
            first = capped(lines, "not verified")
        return first + capped(self.plan.omissions(), "left out")

    def frame(self) -> pl.DataFrame:
        """What is finished: see :func:`tutti.sweep.frame.sweep_frame`."""
        from tutti.sweep.frame import sweep_frame

        return sweep_frame(self.plan, self.found.rows | self.outcome.rows)


def _named(plan: SweepPlan, item: Item, error: TuttiError) -> TuttiError:
    if plan.sweep.source in error.problem:
        return error
    problem = f"{plan.label(item)}: {error.problem}"
    return type(error)(problem, kind=error.kind, hint=error.hint, fields=error.fields)
