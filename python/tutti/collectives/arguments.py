"""Chooses the argument of each algorithm: radix, ports, fanout, segments, group and level sizes.

For each size, every argument of the grid is timed: by the closed form if there is one, else by
simulation. Recursive multiplying has a separate search, :mod:`tutti.search`.
"""

from __future__ import annotations

import functools
import itertools
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from tutti import _core
from tutti.base.errors import SimulationError
from tutti.collectives.argument_grids import grid, other_levels
from tutti.collectives.case import CaseBuilder, Races, run_all
from tutti.collectives.pruning import Known, is_large
from tutti.schedules.errors import AlgorithmError, LayoutError
from tutti.schedules.ir import schedule
from tutti.schedules.proving import messages_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from tutti.base.units import Size
    from tutti.collectives.case import Figures
    from tutti.collectives.pruning import Pruned
    from tutti.platforms.machine import Platform
    from tutti.schedules.block_sizes import Matrix
    from tutti.schedules.ir import Schedule

_PIVOTS = 4
"""Intervals of sizes, at whose ends every argument is timed."""
_KEPT = 2
"""Best arguments of a size that are timed at neighbouring sizes."""
_MOST_RANKS = 16_384
"""Most ranks for algorithms whose steps may grow with the rank count."""
_LOGARITHMIC = (
    "dissemination", "elimination", "knomial", "recursive_doubling", "recursive_exchange",
)  # fmt: skip
"""Algorithms that are tuned for any number of ranks."""

_SEARCHED = "recursive_multiplying"


class ArgumentChoice(NamedTuple):
    """An algorithm with its best argument for a size.

    Attributes:
        notation: The algorithm with its argument.
        size: The size.
        time_ps: The time, by the closed form or by simulation.
        method: `closed form` or `simulation`.
    """

    notation: str
    size: Size
    time_ps: int
    method: str


class Tuned(NamedTuple):
    """The best arguments, and the algorithms whose arguments were not tuned.

    Attributes:
        variants: The best argument per algorithm and size, in the order of the registry.
        left_out: Algorithms that take too long to time, and why.
        scored: The number of combinations of argument and size that were tried.
        simulated: The figures of those that were simulated to the end, by the name of the schedule
            and the size in bytes; the best ones are among them.
        pruned: Large schedules that cannot be among the two fastest algorithms.
        known: The fastest times.
    """

    variants: list[ArgumentChoice]
    left_out: dict[str, str]
    scored: int
    simulated: dict[tuple[str, int], Figures]
    pruned: list[Pruned]
    known: Known


def tune_arguments(
    platform: Platform,
    collective: str,
    ranks: int,
    sizes: Sequence[Size],
    *,
    root: int = 0,
    blocks: str | Matrix | None = None,
    datatype: str = "float32",
    most: int,
    defaults: bool = True,
    threads: int = 0,
    prune: bool = False,
    running: Callable[[str], object] | None = None,
) -> Tuned:
    """Finds the best argument of each algorithm for each size.

    Args:
        platform: The platform, without disturbances.
        collective: The collective.
        ranks: The number of ranks.
        sizes: The sizes.
        root: The root of a rooted collective.
        blocks: The relative sizes of the blocks of an all_to_all_v; see `tutti.schedule`.
        datatype: The datatype of the elements.
        most: Most messages to simulate for one algorithm; algorithms beyond are left out.
        defaults: Whether to time algorithms without arguments, too.
        threads: Threads of the simulations; 0 uses one per core. Results do not depend on it.
        prune: Whether to leave out large algorithms at sizes at which they cannot be among the two
            fastest.
        running: Called with each algorithm before it is timed.

    Returns:
        The best argument of each algorithm at each size.

    Raises:
        LayoutError: The datatype is unknown.
        SimulationError: A run cannot finish.
    """
    lay_out = functools.partial(
        schedule,
        collective=collective,
        ranks=ranks,
        root=root,
        topology=platform.routes,
        blocks=blocks,
    )
    timer = _Timer(platform, CaseBuilder(platform, datatype=datatype), lay_out, most, threads)
    ascending = sorted(sizes, key=lambda size: size.bytes)
    large: list[tuple[str, dict[str, Schedule]]] = []
    for name in _tunable(collective, ranks, root):
        notations = grid(name, collective, ranks)
        if (len(notations) == 1 and not (defaults or prune)) or timer.leaves_out(name, ranks):
            continue
        laid_out = _distinct(lay_out, notations)
        if prune and any(is_large(one) for one in laid_out.values()):
            large.append((name, laid_out))
        elif len(notations) > 1 or defaults:
            _announce(running, name)
            timer.tune(name, laid_out, ascending)
    for name, laid_out in large:
        _announce(running, name)
        timer.tune(name, laid_out, ascending, prune=True)
    return timer.tuned()


def _tunable(collective: str, ranks: int, root: int) -> list[str]:
    """Returns the algorithms with arguments, in the order of the registry."""
    return [
        entry.name
        for entry in _core.algorithms()
        if not entry.for_graphs
        and entry.name != _SEARCHED
        and entry.claims(collective, ranks, root=root)
    ]


def _announce(running: Callable[[str], object] | None, name: str) -> None:
    if running is not None:
        running(name)


_Point = tuple[str, int]
"""A notation, and the index of a size."""
_Case = tuple[_core.Case, int | None]
"""The inputs of a run, and its closed form in ps if there is one."""


class _Timer:
    """Times the arguments of algorithms."""

    def __init__(
        self,
        platform: Platform,
        builder: CaseBuilder,
        lay_out: Callable[[str], Schedule],
        most: int,
        threads: int,
    ) -> None:
        self.variants: list[ArgumentChoice] = []
        self.left_out: dict[str, str] = {}
        self.scored = 0
        self.simulated: dict[tuple[str, int], Figures] = {}
        self.pruned: list[Pruned] = []
        self.known = Known()
        self._platform = platform
        self._builder = builder
        self._lay_out = lay_out
        self._most = most
        self._threads = threads

    def leaves_out(self, name: str, ranks: int) -> bool:
        """Returns whether an algorithm has too many messages on many ranks, and notes it."""
        if ranks <= _MOST_RANKS or name in _LOGARITHMIC:
            return False
        self.left_out[name] = f"{ranks:,} ranks, above the limit of {_MOST_RANKS:,}"
        return True

    def tuned(self) -> Tuned:
        """Returns what was found, in the order of the registry."""
        places = {entry.name: place for place, entry in enumerate(_core.algorithms())}
        self.variants.sort(key=lambda one: places[one.notation.split(":", 1)[0]])
        return Tuned(
            self.variants, self.left_out, self.scored, self.simulated, self.pruned, self.known
        )

    def tune(
        self,
        name: str,
        laid_out: dict[str, Schedule],
        sizes: Sequence[Size],
        *,
        prune: bool = False,
    ) -> None:
        """Adds the best argument for each size, or the reason why it takes too long.

        Every argument is timed at some of the sizes, and so are variants of the best. Between two
        of these sizes, only the best arguments of both are. `prune` omits sizes at which no
        argument can be among the two fastest algorithms.
        """
        pivots = sorted({round(part * (len(sizes) - 1) / _PIVOTS) for part in range(_PIVOTS + 1)})
        points = [(notation, place) for place in pivots for notation in laid_out]
        cases = self._cases(laid_out, sizes, points, prune=prune)
        work = self._work(laid_out, sizes, cases)
        if work > self._most:
            self.left_out[name] = (
                f"about {work:,} messages to simulate, above the limit of {self._most:,}"
            )
            return
        timed = self._time(laid_out, cases, sizes)
        timed |= self._vary(laid_out, timed, pivots, sizes)
        between = [
            (notation, place)
            for first, last in itertools.pairwise(pivots)
            for place in range(first + 1, last)
            for notation in dict.fromkeys([*_first(timed, first), *_first(timed, last)])
            or (laid_out if prune else ())
        ]
        cases = self._cases(laid_out, sizes, between, prune=prune)
        timed |= self._time(laid_out, cases, sizes, fastest=1)
        for place, size in enumerate(sizes):
            for notation in _first(timed, place)[:1]:
                best = timed[notation, place]
                self.variants.append(best)
                self.known.note(name, size.bytes, best.time_ps)

    def _vary(
        self,
        laid_out: dict[str, Schedule],
        timed: dict[_Point, ArgumentChoice],
        pivots: Collection[int],
        sizes: Sequence[Size],
    ) -> dict[_Point, ArgumentChoice]:
        """Times the best arguments with another algorithm on one level, and lays these out."""
        points = dict.fromkeys(
            (notation, place)
            for place in pivots
            for best in _first(timed, place)
            for notation in other_levels(best)
        )
        new = _distinct(self._lay_out, dict.fromkeys(notation for notation, _ in points))
        laid_out |= {notation: one for notation, one in new.items() if notation not in laid_out}
        untimed = [point for point in points if point[0] in laid_out and point not in timed]
        cases = self._cases(laid_out, sizes, untimed)
        if self._work(laid_out, sizes, cases) > self._most:
            return {}
        # Between two of the sizes, the second-best argument is timed, too.
        fastest = _KEPT if len(set(pivots)) < len(sizes) else 1
        return self._time(laid_out, cases, sizes, timed, fastest)

    def _work(
        self, laid_out: dict[str, Schedule], sizes: Sequence[Size], cases: dict[_Point, _Case]
    ) -> int:
        """Returns the weighted number of messages to simulate."""
        return sum(
            (messages_of(laid_out[notation]) or laid_out[notation].ranks ** 2)
            * message_weight(self._platform, sizes[place])
            for (notation, place), (_, closed_form) in cases.items()
            if closed_form is None
        )

    def _cases(
        self,
        laid_out: dict[str, Schedule],
        sizes: Sequence[Size],
        points: Sequence[_Point],
        *,
        prune: bool = False,
    ) -> dict[_Point, _Case]:
        """Returns the inputs of the points, without schedules that need equal parts."""
        found: dict[int, dict[str, _core.Case]] = {}
        for notation, place in points:
            try:
                case = self._builder.case(laid_out[notation], size=sizes[place])
            except LayoutError as error:
                if error.kind != "unequal_parts":
                    raise
                continue
            found.setdefault(place, {})[notation] = case
        cases: dict[_Point, _Case] = {}
        for place, here in found.items():
            lost = self._prune(laid_out, here, sizes[place]) if prune else set()
            cases |= {
                (notation, place): (case, case.closed_form_ps())
                for notation, case in here.items()
                if notation not in lost
            }
        return cases

    def _prune(
        self, laid_out: dict[str, Schedule], cases: dict[str, _core.Case], size: Size
    ) -> set[str]:
        """Returns the large arguments that are not simulated, and notes one of them."""
        large = [(laid_out[name], case) for name, case in cases.items() if is_large(laid_out[name])]
        shown, lost = self.known.pruned(large, size.bytes)
        self.pruned += [shown] if shown else []
        return {notation for notation in cases if laid_out[notation].name in lost}

    def _time(
        self,
        laid_out: dict[str, Schedule],
        cases: dict[_Point, _Case],
        sizes: Sequence[Size],
        before: Mapping[_Point, ArgumentChoice] = MappingProxyType({}),
        fastest: int = _KEPT,
    ) -> dict[_Point, ArgumentChoice]:
        """Returns the times at the points, without those above the range of time.

        At each size, the fastest have a time; slower ones may have none.

        Args:
            laid_out: The schedules by notation.
            cases: The inputs by point.
            sizes: The sizes.
            before: Known times, which count among the fastest.
            fastest: How many of the fastest need a time.
        """
        self.scored += len(cases)
        closed_forms = {
            point: closed_form
            for point, (_, closed_form) in cases.items()
            if closed_form is not None
        }
        waiting = [point for point in cases if point not in closed_forms]
        times: list[list[int]] = [[] for _ in sizes]
        for (_, place), choice in before.items():
            times[place].append(choice.time_ps)
        for (_, place), time in closed_forms.items():
            times[place].append(time)
        races = Races([place for _, place in waiting], times, fastest)
        finished = self._finished(cases, waiting, races)
        for (notation, place), figures in finished.items():
            self.simulated[laid_out[notation].name, sizes[place].bytes] = figures
        # In the order of the points, so that the first of equal arguments is the default.
        timed: dict[_Point, ArgumentChoice] = {}
        for point in cases:
            notation, place = point
            if point in closed_forms:
                timed[point] = ArgumentChoice(
                    notation, sizes[place], closed_forms[point], "closed form"
                )
            elif point in finished:
                time = finished[point][0]
                timed[point] = ArgumentChoice(notation, sizes[place], time, "simulation")
        return timed

    def _finished(
        self, cases: dict[_Point, _Case], waiting: Sequence[_Point], races: Races
    ) -> dict[_Point, Figures]:
        """Simulates the waiting points; returns those that were not stopped."""
        finished: dict[_Point, Figures] = {}
        try:
            run_all(
                [cases[point][0] for point in waiting],
                lambda index, figures: finished.__setitem__(waiting[index], figures),
                threads=self._threads,
                races=races,
            )
        except SimulationError as error:
            if error.kind != "time_overflow":
                raise
        return finished


def _first(timed: dict[_Point, ArgumentChoice], place: int) -> list[str]:
    """Returns the fastest arguments at a size; of equal ones, the first of the grid."""
    here = [one for (_, at), one in timed.items() if at == place]
    return [one.notation for one in sorted(here, key=lambda one: one.time_ps)[:_KEPT]]


def message_weight(platform: Platform, size: Size) -> int:
    """Returns the cost of simulating a message, relative to a platform without contention."""
    contention = platform.effective_contention
    if contention.kind == "flit":
        return 10 * max(1, size.bytes // contention.flit.bytes)
    if contention.kind == "packet":
        return 10 * max(1, size.bytes // contention.size.bytes)
    return 3 if contention.kind == "flow" else 1


def _distinct(lay_out: Callable[[str], Schedule], notations: Iterable[str]) -> dict[str, Schedule]:
    """Returns the schedules of the arguments that fit, each once, by notation."""
    found: dict[str, Schedule] = {}
    names: set[str] = set()
    for notation in notations:
        try:
            laid_out = lay_out(notation)
        except AlgorithmError:
            continue
        if laid_out.name not in names:
            names.add(laid_out.name)
            found[notation] = laid_out
    return found
