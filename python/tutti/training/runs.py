"""Runs of many training steps in threads.

Results do not depend on the number of threads.

Examples:
    >>> from tutti.training.endpoint import Ring, configurations
    >>> from tutti.training.step import Step
    >>> from tutti.base.units import Time, TimePerByte
    >>> from tutti.workloads import build
    >>> rings = (Ring("local", 4, TimePerByte.parse("200 GB/s"), Time.parse("72 ns")),)
    >>> step = Step(model=build("dlrm_small"), batch=8, rings=rings, iterations=1)
    >>> pairs = [(step, configurations()[name]) for name in ("ideal", "ace")]
    >>> found = {}
    >>> run_all(pairs, found.__setitem__, npus=step.npus)
    >>> [found[index].total == pair[0].run(pair[1]).total for index, pair in enumerate(pairs)]
    [True, True]
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from tutti import _core
from tutti.base.errors import TuttiError
from tutti.base.units import Time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tutti.training.endpoint import Configuration
    from tutti.training.results import TrainingResult
    from tutti.training.step import Step

    Result: TypeAlias = TrainingResult | TuttiError
    """The result of a step, or why it has none."""

__all__ = ["STABLE_COUNTS", "TOO_LATE", "alike", "run_all", "run_each", "threads_for", "watched"]

TOO_LATE = "too_late"
"""The kind of error of a step that takes longer than its latest end."""

STABLE_COUNTS = (4, 8, 16, 32, 64)
"""The numbers of iterations that a step with `iterations = stable` tries in turn."""

_NPUS_AT_ONCE = 1 << 14
"""NPUs of the steps that run at once, unless a single one has more.

As flows, a step of 16,384 NPUs takes 0.6 GB, and with more concurrent messages up to the 8 GB that
a machine is assumed to have (docs/performance.md). Smaller steps take proportionally less.
"""


def threads_for(npus: int, threads: int = 0) -> int:
    """Returns the number of steps that run at once.

    Args:
        npus: The NPUs of a step.
        threads: The most threads; 0 for one per core.
    """
    return min(threads or os.cpu_count() or 1, max(1, _NPUS_AT_ONCE // npus))


def run_all(
    steps: Iterable[tuple[Step, Configuration]],
    done: Callable[[int, Result], object],
    *,
    npus: int,
    threads: int = 0,
    latest_ps: Sequence[int | None] = (),
) -> None:
    """Runs steps in threads.

    Args:
        steps: The steps with their endpoint configurations. A thread takes the next one when it is
            ready for it.
        done: Called with the index and the result of each step, in the order in which they end.
        npus: The NPUs of a step, which limit the steps that run at once.
        threads: The most threads; 0 for one per core.
        latest_ps: The latest end of each step, whose iterations are fixed, or None; empty if none
            has one. The run of a step that takes longer ends early, with an error of the kind
            `TOO_LATE`.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed.
    """
    waiting: Iterable[_Waiting] = (_Waiting(at, *one) for at, one in enumerate(steps))
    for count in STABLE_COUNTS:
        attempt = _Attempt(waiting, count, done, latest_ps)
        _core.simulate_steps(attempt.cases(), attempt.ended, threads=threads_for(npus, threads))
        waiting = sorted(attempt.unstable)
        if not waiting:
            return


def run_each(
    steps: Iterable[tuple[Step, Configuration]],
    done: Callable[[int, TrainingResult], object],
    *,
    npus: int,
    threads: int = 0,
) -> None:
    """Runs steps in threads, as :func:`run_all`, until one fails.

    Raises:
        TuttiError: A step fails; that of the first one, when those before it have ended.
        KeyboardInterrupt: Ctrl-C was pressed.
    """
    failed: dict[int, TuttiError] = {}
    later: set[int] = set()
    first = 0

    def ended(index: int, result: Result) -> None:
        nonlocal first
        if isinstance(result, TuttiError):
            failed[index] = result
        else:
            done(index, result)
        later.add(index)
        while first in later:
            if first in failed:
                raise failed[first]
            later.remove(first)
            first += 1

    run_all(steps, ended, npus=npus, threads=threads)


def alike(runs: Sequence[TrainingResult], threads: int = 0) -> list[TrainingResult]:
    """Returns the runs with the number of iterations of the longest."""
    most = max(run.iterations for run in runs)
    found = list(runs)
    shorter = [at for at, run in enumerate(runs) if run.iterations != most]
    again = [(replace(runs[at].step, iterations=most), runs[at].configuration) for at in shorter]

    def longer(index: int, run: TrainingResult) -> None:
        found[shorter[index]] = run

    run_each(again, longer, npus=runs[0].step.npus, threads=threads)
    return found


class _Waiting(NamedTuple):
    number: int
    step: Step
    configuration: Configuration


@dataclass
class _Attempt:
    """Runs of steps; with `iterations = stable`, of a number of iterations.

    Attributes:
        unstable: The steps that need more iterations.
    """

    waiting: Iterable[_Waiting]
    count: int
    done: Callable[[int, Result], object]
    latest_ps: Sequence[int | None] = ()
    unstable: list[_Waiting] = field(default_factory=list)
    _started: dict[int, tuple[_Waiting, Step]] = field(default_factory=dict)

    def cases(self) -> Iterator[_core.TrainingCase | TuttiError]:
        """Yields the run of each step, or why it has none."""
        for place, one in enumerate(self.waiting):
            step = one.step
            if step.iterations == "stable" and not step.is_recorded:
                step = replace(step, iterations=self.count)
            self._started[place] = one, step
            case: _core.TrainingCase | TuttiError
            try:
                case = step.case(one.configuration)
                latest = self.latest_ps[one.number] if self.latest_ps else None
                case = case if latest is None else case.before(latest)
            except TuttiError as error:
                case = error
            yield case

    def ended(self, place: int, record: _core.TrainingRecord | TuttiError) -> None:
        """Passes the result of a step on, or repeats the step."""
        one, step = self._started.pop(place)
        if not isinstance(record, _core.TrainingRecord):
            self.done(one.number, record)
            return
        run = step.result(one.configuration, record)
        if step is one.step or run.is_stable or self.count == STABLE_COUNTS[-1]:
            self.done(one.number, run)
        else:
            self.unstable.append(one)


def watched(step: Step, configuration: Configuration, windows: int = 200) -> Step:
    """Returns the step with utilisation recorded in about `windows` windows of its compute time.

    A step that has windows is returned unmodified. Configurations to be compared share the windows
    of one of them.
    """
    if step.window is not None or step.detail != "packets":
        return step
    tasks = step.programs(configuration)[0].tasks
    computing = sum(task.amount for task in tasks if task.kind == "compute")
    return replace(step, window=Time(ps=max(1, computing // windows)))
