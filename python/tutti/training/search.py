"""Searches the algorithms of a training step's collectives that minimise the time of the step.

Coordinate descent: for one collective after the other, the one with the most bytes first, the step
runs with every candidate, and the fastest is adopted. Rounds repeat until no collective changes.
The result is a local optimum. The candidates of a collective run in threads. Of many micro-batches,
trials simulate few (:mod:`tutti.training.shortened`), and the chosen algorithms all.
:meth:`tutti.training.step.Step.bound` limits how much faster the optimum can be.

Examples:
    >>> from tutti.training.endpoint import Ring, configurations
    >>> from tutti.training.step import Step
    >>> from tutti.base.units import Time, TimePerByte
    >>> from tutti.workloads import build
    >>> rings = (Ring("local", 4, TimePerByte.parse("200 GB/s"), Time.parse("72 ns")),)
    >>> step = Step(model=build("dlrm_small"), batch=8, rings=rings, iterations=1)
    >>> search = AlgorithmSearch(step, configurations()["comp_opt"], algorithms=["ring", "bruck"])
    >>> search.run()
    >>> search.best.total <= search.default.total
    True
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from tutti.base.errors import TuttiError
from tutti.training.loads import LinkLoads
from tutti.training.runs import TOO_LATE, run_all, run_each
from tutti.training.searched import collectives_of, steps_of
from tutti.training.shortened import latest_of, shortened, time_of
from tutti.workloads.errors import WorkloadError
from tutti.workloads.parallel import Parallelism

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tutti.training.endpoint import Configuration
    from tutti.training.results import TrainingResult
    from tutti.training.runs import Result
    from tutti.training.searched import SearchedCollective
    from tutti.training.step import Step

DEFAULT = "default"
"""The algorithm of the step: that of its file or the platform's library, or rings."""

_LEAST_GAIN = 1e-3
"""The least share of the step time for which algorithms are worth a change."""

_FIRST_TRIALS = 4
"""The trials of a collective that run first. The best step so far limits the time of those after
them, of which twice as many run next, so that limits are the same for any number of threads."""

_MOST_COMPARED = 64
"""The steps of algorithms on more ranks are not compared, which would take long."""


@dataclass(frozen=True)
class Trial:
    """A step with an algorithm for one collective.

    Attributes:
        round: The round of the descent, from 1.
        collective: The collective.
        algorithm: The notation.
        time_ps: The time of the step, of many micro-batches extrapolated; None if it did not run.
        refused: Why the algorithm does not run on this network.
        pruned: Why it did not run: its lower bound is at least the time of the best step so far.
        more_than_ps: The time of the best step so far, at which its simulation ended.
    """

    round: int
    collective: SearchedCollective
    algorithm: str
    time_ps: int | None
    refused: str = ""
    pruned: Pruned | None = None
    more_than_ps: int | None = None


class Pruned(NamedTuple):
    """The lower bound in ps of a step that did not run, and the time of the best step so far."""

    bound_ps: int
    best_ps: int


class Declined(NamedTuple):
    """Algorithms that are faster than the default, but not worth a change.

    Attributes:
        algorithms: The fastest algorithms, by key.
        gain: The share of the simulated step that they gain.
        of_plan: Whether only the step as a plan gains too little.
    """

    algorithms: dict[str, str]
    gain: float
    of_plan: bool


class _Outcome(NamedTuple):
    """What a step gives: its time, why it was refused or did not run, or a time it exceeds."""

    time_ps: int | None = None
    refused: str = ""
    pruned: Pruned | None = None
    more_than_ps: int | None = None


class AlgorithmSearch:
    """A search of the algorithms of a step with one endpoint configuration.

    It is deterministic, for any number of threads. After an interruption, its attributes hold the
    results so far.

    Attributes:
        trials: The trials so far, in order.
        chosen: The fastest algorithm of each collective, by key.
        is_complete: Whether the last round changed nothing.
        declined: The fastest algorithms, if :meth:`settle` keeps the default instead.
    """

    def __init__(
        self,
        step: Step,
        configuration: Configuration,
        *,
        algorithms: Sequence[str] | None = None,
        limit: int = 0,
        threads: int = 0,
        prune: bool = True,
    ) -> None:
        """Lists the collectives and their candidates, and runs the step without changes.

        Args:
            step: The step.
            configuration: The endpoint configuration.
            algorithms: The notations to try; by default all of the registry.
            limit: The most trials; 0 for no limit.
            threads: The most threads; 0 for one per core.
            prune: Whether steps that a lower bound excludes do not run, and others end once they
                take longer than the best so far; the choice is the same.

        Raises:
            AlgorithmError: A given algorithm performs no collective of the step.
            WorkloadError: The step has no fixed number of iterations, or does not fit the network.
            EndpointError: As :meth:`Step.run`.
        """
        _check_fixed(step)
        self.step = step
        self.configuration = configuration
        self.limit, self.threads, self._ends_early = limit, threads, prune
        self.trials: list[Trial] = []
        self.is_complete = False
        self.declined: Declined | None = None
        self.collectives = collectives_of(step, configuration, algorithms)
        self.chosen = {one.key: DEFAULT for one in self.collectives}
        self.default = self.best = step.run(configuration)
        self._simulated = shortened(step)
        self._least_ps = self._default_ps()
        self._loads = LinkLoads(self.default) if prune and not self.micro_batches else None
        self._equal: dict[tuple[str, str], str] = {}
        self._known: dict[tuple[str, ...], _Outcome] = {}

    @cached_property
    def work(self) -> int:
        """The number of trials of a round."""
        return sum(len(one.candidates) for one in self.collectives)

    @property
    def refused(self) -> dict[tuple[SearchedCollective, str], str]:
        """The algorithms that do not run on this network, and why."""
        return {(one.collective, one.algorithm): one.refused for one in self.trials if one.refused}

    @property
    def micro_batches(self) -> tuple[int, ...]:
        """The micro-batches of the steps that trials simulate, if these are fewer than all."""
        short = [one.parallelism for one in self._simulated if one is not self.step]
        return tuple(one.micro_batches for one in short if isinstance(one, Parallelism))

    @property
    def progress(self) -> float:
        """The share of the work done, from 0 to 1; it never decreases.

        The number of rounds is unknown: each one is half of what the rounds before it left.
        """
        rounds, trials = divmod(len(self.trials), self.work)
        within = trials / self.work
        if len(self.collectives) > 1:
            done = 1 - 0.5**rounds * (1 - within / 2)
        else:
            done = min(1.0, rounds + within)
        return max(done, len(self.trials) / self.limit if self.limit else 0.0)

    @property
    def changes(self) -> dict[str, str]:
        """The chosen algorithms other than those of the step, by key."""
        return {key: one for key, one in self.chosen.items() if one != DEFAULT}

    def run(self, done: Callable[[int], object] | None = None) -> None:
        """Searches until a round changes nothing or the limit is reached.

        Args:
            done: Called with the number of trials after each of them.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed. Algorithms that were not simulated with all
                micro-batches are not chosen.
        """
        try:
            self._descend(done)
        except KeyboardInterrupt:
            self._keep_default()
            raise
        self._confirm()

    def settle(self, planned: Callable[[TrainingResult], float] | None = None) -> None:
        """Keeps the default unless the chosen algorithms gain a thousandth of the step.

        Args:
            planned: Returns the time of a run as a plan, which must gain as much, too.
        """
        if not self.changes:
            return
        gain = 1 - self.best.total.ps / self.default.total.ps
        of_plan = 1 - planned(self.best) / planned(self.default) if planned else gain
        if min(gain, of_plan) < _LEAST_GAIN:
            self.declined = Declined(self.changes, gain, gain >= _LEAST_GAIN)
            self.chosen, self.best = dict.fromkeys(self.chosen, DEFAULT), self.default

    def _descend(self, done: Callable[[int], object] | None) -> None:
        """Searches, round after round."""
        number = 0
        while not self.is_complete:
            number += 1
            before = dict(self.chosen)
            for collective in self.collectives:
                names = collective.candidates
                if self.limit:
                    names = names[: self.limit - len(self.trials)]
                self._try(number, collective, names, done)
                if len(names) < len(collective.candidates):
                    return
            self.is_complete = self.chosen == before or len(self.collectives) == 1

    def _try(
        self,
        number: int,
        collective: SearchedCollective,
        names: Sequence[str],
        done: Callable[[int], object] | None,
    ) -> None:
        """Tries algorithms for a collective; the trials are recorded in the order of the names."""
        variants = [{**self.chosen, collective.key: name} for name in names]
        untried = deque(zip(names, variants, strict=True))
        shorter: dict[tuple[str, ...], TrainingResult] = {}

        def record() -> None:
            """Records the trials up to the first whose outcome is unknown."""
            while untried and (key := self._key(untried[0][1])) in self._known:
                notation, variant = untried.popleft()
                outcome = self._known[key]
                self.trials.append(Trial(number, collective, notation, *outcome))
                if outcome.time_ps is not None and outcome.time_ps < self._least_ps:
                    self._least_ps, self.chosen = outcome.time_ps, variant
                    self.best = shorter.get(key, self.best)
                if done is not None:
                    done(len(self.trials))

        record()
        size = _FIRST_TRIALS
        while untried:
            # An algorithm whose steps equal those of a refused one runs after it, for its reason.
            new: dict[tuple[str, ...], dict[str, str]] = {}
            for _, variant in untried:
                if (key := self._key(variant)) not in self._known:
                    new.setdefault(key, variant)
            for key, variant in list(new.items()):
                if pruned := self._pruned(variant):
                    self._known[key] = _Outcome(pruned=pruned)
                    del new[key]
            record()
            self._simulate(dict(islice(new.items(), size)), shorter, record)
            size *= 2

    def _pruned(self, chosen: dict[str, str]) -> Pruned | None:
        """Returns why a step with these algorithms cannot be the best; None if it may be."""
        given = {key: None if one == DEFAULT else one for key, one in chosen.items()}
        bound = self._loads.bound_ps(given) if self._loads else 0
        return Pruned(bound, self._least_ps) if bound >= self._least_ps else None

    def _key(self, chosen: dict[str, str]) -> tuple[str, ...]:
        """Returns what the time of a step with these algorithms depends on."""
        key = tuple(self._steps(one, chosen[one.key]) for one in self.collectives)
        known = self._known.get(key)
        # The refusal names the algorithm.
        return tuple(chosen.values()) if known and known.refused else key

    def _simulate(
        self,
        new: dict[tuple[str, ...], dict[str, str]],
        shorter: dict[tuple[str, ...], TrainingResult],
        record: Callable[[], None],
    ) -> None:
        """Runs the step with algorithms, adds the outcomes to the known, and shorter steps.

        The steps with fewest micro-batches run first, and give the latest ends of the others.
        """
        latest_ps, parts = self._least_ps, len(self._simulated)
        times: dict[tuple[str, ...], list[int]] = {key: [] for key in new}

        def ended(keys: list[tuple[str, ...]], index: int, found: Result) -> None:
            key = keys[index]
            if isinstance(found, TuttiError):
                late = found.kind == TOO_LATE
                more, why = (latest_ps, "") if late else (None, found.problem)
                self._known[key] = _Outcome(refused=why, more_than_ps=more)
                return record()
            times[key].append(found.total.ps)
            if len(times[key]) < parts:
                return None
            time_ps = self._time(times[key])
            self._known[key] = _Outcome(time_ps=time_ps)
            if time_ps < latest_ps and parts == 1:
                shorter[key] = found
            return record()

        for step in self._simulated:
            keys = [key for key in new if key not in self._known]
            steps = ((self._changed(step, new[key]), self.configuration) for key in keys)
            latest = [self._latest_ps(times[key], latest_ps) for key in keys]
            run_all(
                steps,
                partial(ended, keys),
                npus=self.step.npus,
                threads=self.threads,
                latest_ps=latest if self._ends_early else (),
            )

    def _latest_ps(self, times_ps: Sequence[int], latest_ps: int) -> int | None:
        """Returns the latest end of the step after those with fewer micro-batches."""
        kinds = self.step.parallelism
        if not self.micro_batches or not isinstance(kinds, Parallelism):
            return latest_ps
        if not times_ps:
            return None
        return latest_of(kinds.micro_batches, kinds.pipeline, times_ps[0], latest_ps)

    def _time(self, times_ps: Sequence[int]) -> int:
        """Returns the time of the step in ps from those of the simulated steps."""
        kinds = self.step.parallelism
        if not isinstance(kinds, Parallelism):
            return times_ps[0]
        return time_of(kinds.micro_batches, kinds.pipeline, times_ps)

    def _default_ps(self) -> int:
        """Returns the time of the step without changes, as trials have theirs."""
        if not self.micro_batches:
            return self.default.total.ps
        return self._time([one.run(self.configuration).total.ps for one in self._simulated])

    def _confirm(self) -> None:
        """Simulates the chosen algorithms with all micro-batches, and keeps them if they gain."""
        if not self.micro_batches or not self.changes:
            return
        runs: dict[int, TrainingResult] = {}
        step = self._changed(self.step, self.chosen), self.configuration
        run_each([step], runs.__setitem__, npus=self.step.npus, threads=self.threads)
        if runs[0].total < self.default.total:
            self.best = runs[0]
        else:
            self._keep_default()

    def _keep_default(self) -> None:
        if self.micro_batches:
            self.chosen = dict.fromkeys(self.chosen, DEFAULT)

    @staticmethod
    def _changed(step: Step, chosen: dict[str, str]) -> Step:
        changes = {key: one for key, one in chosen.items() if one != DEFAULT}
        return replace(step, algorithms={**step.algorithms, **changes}).sharing(step)

    def _steps(self, collective: SearchedCollective, notation: str) -> str:
        """Returns the steps of an algorithm: those with equal ones take equal times.

        The notation stands for the steps where they are many, or not a schedule.
        """
        key = collective.key, notation
        if key not in self._equal:
            self._equal[key] = notation
            if notation != DEFAULT and collective.ranks <= _MOST_COMPARED:
                with suppress(TuttiError):
                    self._equal[key] = steps_of(collective, notation, self.step)
        return self._equal[key]


def _check_fixed(step: Step) -> None:
    if step.iterations == "stable":
        message = "the number of iterations of a search is `stable`: expected a number"
        raise WorkloadError(message, kind="unfixed_iterations")
