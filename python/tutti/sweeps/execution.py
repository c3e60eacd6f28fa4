"""Executes a sweep: submits batches to workers, and stores results as they arrive.

After a worker died, its items are retried one by one with new workers. An item that fails again is
reported, and the sweep continues.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tutti.base.errors import TuttiError
from tutti.sweeps.designs import run_designs
from tutti.sweeps.errors import WorkerError
from tutti.sweeps.steps import run_steps
from tutti.sweeps.version import simulator
from tutti.sweeps.worker import Batch, run_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tutti.sweeps.cache import Journal
    from tutti.sweeps.executors import Crew
    from tutti.sweeps.plan import AnyPlan
    from tutti.sweeps.worker import Done, Item

_RUNS = {"experiment": run_batch, "training": run_steps, "noc": run_designs}
"""Functions that run a batch, by what its points are."""

_SECONDS_PER_BATCH = 0.25
"""Long enough to amortise submission, short enough to lose little and to show progress."""

_MOST_IN_A_BATCH = 500
_BATCHES_PER_WORKER = 2
"""One running and one queued."""

_MOST_LOST = 3
"""Lost measurements without any result after which the sweep gives up."""


@dataclass
class Outcome:
    """The results of a sweep.

    Attributes:
        rows: Rows by key.
        failures: Items without a row, and their errors.
        core_seconds: Time of all workers in the core.
    """

    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    failures: list[tuple[Item, TuttiError]] = field(default_factory=list)
    core_seconds: float = 0.0


class Execution:
    """The execution of the items of a sweep by workers."""

    def __init__(
        self,
        plan: AnyPlan,
        crew: Crew,
        journal: Journal | None,
        finished: Callable[[Item], object],
    ) -> None:
        """Initialises the execution without starting it.

        Args:
            plan: The plan of the items.
            crew: The workers.
            journal: Stores results, if set.
            finished: Called after each item.
        """
        self.outcome = Outcome()
        self._plan = plan
        self._crew = crew
        self._journal = journal
        self._finished = finished
        self._pace = _Pace()
        self._running: dict[Future[Done], list[Item]] = {}
        self._suspects: deque[Item] = deque()
        self._is_broken = False

    def run(self, items: Iterable[Item]) -> None:
        """Runs all items; the outcome has rows and failures.

        Raises:
            WorkerError: Workers die before any result, or run another version or input.
            CacheError: Results cannot be stored.
        """
        waiting = deque(items)
        while waiting or self._running or self._suspects:
            if self._suspects and not self._running:
                self._renew()
                self._alone(self._suspects.popleft())
                continue
            while waiting and not self._suspects and len(self._running) < self._most_running:
                self._hand_over(self._pace.batch(waiting, self._crew.workers))
            self._take_back(wait(self._running, return_when=FIRST_COMPLETED).done)

    def _renew(self) -> None:
        """Replaces the workers after one died."""
        if self._is_broken:
            self._crew.renew()
            self._is_broken = False

    @property
    def _most_running(self) -> int:
        return self._crew.workers * _BATCHES_PER_WORKER

    def _hand_over(self, items: list[Item]) -> None:
        try:
            self._running[self._submit(items)] = items
        except BrokenExecutor:
            self._lost(items)

    def _submit(self, items: Sequence[Item]) -> Future[Done]:
        values = {item.point: self._plan.values(item) for item in items}
        batch = Batch(self._plan.sweep.template, values, items, simulator())
        return self._crew.executor.submit(_RUNS[batch.template.kind], batch)

    def _take_back(self, futures: Iterable[Future[Done]]) -> None:
        for future in futures:
            items = self._running.pop(future)
            try:
                self._keep(items, future.result())
            except Exception as error:
                if not _is_death(error):
                    raise
                self._lost(items)

    def _lost(self, items: Sequence[Item]) -> None:
        """Marks items as suspects: a dead worker ends all batches of its pool."""
        self._suspects.extend(items)
        self._is_broken = True

    def _alone(self, item: Item) -> None:
        """Retries an item during which a worker died."""
        try:
            self._keep([item], self._submit([item]).result())
        except Exception as error:
            if not _is_death(error):
                raise
            self._is_broken = True
            problem = f"{self._plan.label(item)}: a worker died twice"
            self._failed(item, WorkerError(problem, kind="died", fields={"point": item.point + 1}))
            if not self.outcome.rows and len(self.outcome.failures) >= _MOST_LOST:
                problem = f"{_MOST_LOST} workers died without a result: {error}"
                raise WorkerError(problem, kind="none_left") from None

    def _keep(self, items: Sequence[Item], done: Done) -> None:
        rows = {
            item.key: result
            for item, result in zip(items, done.results, strict=True)
            if isinstance(result, dict)
        }
        if self._journal is not None:
            self._journal.add(rows)
        self.outcome.rows |= rows
        self.outcome.core_seconds += done.core_seconds
        self._pace.learn(items, done)
        for item, result in zip(items, done.results, strict=True):
            if isinstance(result, TuttiError):
                self._failed(item, result)
            else:
                self._finished(item)

    def _failed(self, item: Item, error: TuttiError) -> None:
        self.outcome.failures.append((item, error))
        self._finished(item)


def _is_death(error: BaseException) -> bool:
    """Returns whether an error of any executor means that a worker died."""
    return isinstance(error, BrokenExecutor) or type(error).__name__ == "KilledWorker"


class _Pace:
    """Chooses the number of items of a batch from the times of finished batches."""

    def __init__(self) -> None:
        self._messages = 0
        self._items = 0
        self._seconds = 0.0

    def batch(self, waiting: deque[Item], workers: int) -> list[Item]:
        """Removes a batch from the queue; batches shrink towards the end."""
        most = max(1, min(_MOST_IN_A_BATCH, len(waiting) // (2 * workers)))
        items = [waiting.popleft()]
        seconds = self._expected(items[0])
        while waiting and len(items) < most and seconds < _SECONDS_PER_BATCH:
            items.append(waiting.popleft())
            seconds += self._expected(items[-1])
        return items

    def learn(self, items: Sequence[Item], done: Done) -> None:
        """Records the time of a batch."""
        self._items += len(items)
        self._messages += sum(weight(item) for item in items)
        self._seconds += done.core_seconds

    def _expected(self, item: Item) -> float:
        if not self._seconds:
            return _SECONDS_PER_BATCH / 4
        return weight(item) * self._seconds / self._messages


def weight(item: Item) -> int:
    """Returns the weight of an item in the progress: its approximate number of messages."""
    return item.messages or item.ranks
