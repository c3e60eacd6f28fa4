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
from tutti.collectives.case import CaseBuilder, Races, run_all
from tutti.schedules.errors import AlgorithmError, LayoutError
from tutti.schedules.ir import schedule
from tutti.schedules.proving import messages_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tutti.base.units import Size
    from tutti.collectives.case import Figures
    from tutti.platforms.machine import Platform
    from tutti.schedules.block_sizes import Matrix
    from tutti.schedules.ir import Schedule

_RADICES = range(2, 17)
_SEGMENTS = (2, 4, 8, 16, 32, 64)
_MOST_LEVELS = 8
"""Most splits of the ranks into two and into three levels, the most balanced ones."""
_MOST_GROUPS = 16
"""Most sizes of equal groups, the smallest ones."""
_OF_LEVELS = ("ring", "direct", "recursive_halving_doubling", "recursive_exchange")
_OF_LEADERS = ("binomial", "direct", "knomial")
"""Algorithms of one level, the default first."""
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
    """

    variants: list[ArgumentChoice]
    left_out: dict[str, str]
    scored: int
    simulated: dict[tuple[str, int], Figures]


def grid(name: str, collective: str, ranks: int) -> list[str]:
    """Returns the notations of an algorithm with each argument to try, the default first.

    Args:
        name: The algorithm.
        collective: The collective.
        ranks: The number of ranks, at least 2.
    """
    arguments = _GRIDS[name](collective, ranks) if name in _GRIDS else ()
    return [name, *(f"{name}:{argument}" for argument in arguments)]


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

    Returns:
        The best argument of each algorithm at each size.

    Raises:
        LayoutError: The datatype is unknown.
        SimulationError: A run cannot finish.
    """
    builder = CaseBuilder(platform, datatype=datatype)
    lay_out = functools.partial(
        schedule,
        collective=collective,
        ranks=ranks,
        root=root,
        topology=platform.routes,
        blocks=blocks,
    )
    timer = _Timer(platform, builder, lay_out, most, threads)
    ascending = sorted(sizes, key=lambda size: size.bytes)
    for entry in _core.algorithms():
        name = entry.name
        if entry.for_graphs or name == _SEARCHED or not entry.claims(collective, ranks, root=root):
            continue
        notations = grid(name, collective, ranks)
        if len(notations) == 1 and not defaults:
            continue
        if ranks > _MOST_RANKS and name not in _LOGARITHMIC:
            timer.left_out[name] = f"{ranks:,} ranks, above the limit of {_MOST_RANKS:,}"
            continue
        timer.tune(name, notations, ascending)
    return Tuned(timer.variants, timer.left_out, timer.scored, timer.simulated)


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
        self._platform = platform
        self._builder = builder
        self._lay_out = lay_out
        self._most = most
        self._threads = threads

    def tune(self, name: str, notations: Iterable[str], sizes: Sequence[Size]) -> None:
        """Adds the best argument for each size, or the reason why it takes too long.

        Every argument is timed at some of the sizes, and so are variants of the best. Between two
        of these sizes, only the best arguments of both are.
        """
        laid_out = _distinct(self._lay_out, notations)
        pivots = sorted({round(part * (len(sizes) - 1) / _PIVOTS) for part in range(_PIVOTS + 1)})
        points = [(notation, place) for place in pivots for notation in laid_out]
        cases = self._cases(laid_out, sizes, points)
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
        ]
        timed |= self._time(laid_out, self._cases(laid_out, sizes, between), sizes, fastest=1)
        for place in range(len(sizes)):
            best = _first(timed, place)[:1]
            self.variants += [timed[notation, place] for notation in best]

    def _vary(
        self,
        laid_out: dict[str, Schedule],
        timed: dict[_Point, ArgumentChoice],
        pivots: Iterable[int],
        sizes: Sequence[Size],
    ) -> dict[_Point, ArgumentChoice]:
        """Times the best arguments with another algorithm on one level, and lays these out."""
        points = dict.fromkeys(
            (notation, place)
            for place in pivots
            for best in _first(timed, place)
            for notation in _other_levels(best)
        )
        new = _distinct(self._lay_out, dict.fromkeys(notation for notation, _ in points))
        laid_out |= {notation: one for notation, one in new.items() if notation not in laid_out}
        untimed = [point for point in points if point[0] in laid_out and point not in timed]
        cases = self._cases(laid_out, sizes, untimed)
        within = self._work(laid_out, sizes, cases) <= self._most
        return self._time(laid_out, cases, sizes, timed) if within else {}

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
        self, laid_out: dict[str, Schedule], sizes: Sequence[Size], points: Sequence[_Point]
    ) -> dict[_Point, _Case]:
        """Returns the inputs of the points, without schedules that need equal parts."""
        cases: dict[_Point, _Case] = {}
        for notation, place in points:
            try:
                case = self._builder.case(laid_out[notation], size=sizes[place])
            except LayoutError as error:
                if error.kind != "unequal_parts":
                    raise
                continue
            cases[notation, place] = case, case.closed_form_ps()
        return cases

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
        finished: dict[_Point, Figures] = {}
        try:
            run_all(
                [cases[point][0] for point in waiting],
                lambda index, figures: finished.__setitem__(waiting[index], figures),
                threads=self._threads,
                races=Races([place for _, place in waiting], times, fastest),
            )
        except SimulationError as error:
            if error.kind != "time_overflow":
                raise
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


def _levels(_collective: str, ranks: int) -> Iterator[str]:
    """Yields the splits of the ranks into two and three levels."""
    for count in (2, 3):
        splits = sorted(_factorings(ranks, count), key=lambda split: max(split) / min(split))
        for split in splits[:_MOST_LEVELS]:
            sizes = "x".join(str(size) for size in split)
            yield sizes
            yield f"{sizes}:direct"


def _other_levels(notation: str) -> Iterator[str]:
    """Yields the notations with another algorithm on one level, if it has levels."""
    name, _, argument = notation.partition(":")
    if not argument or _GRIDS.get(name) is not _levels:
        return
    choices = _OF_LEADERS if name == "hierarchical_leader" else _OF_LEVELS
    sizes, _, named = argument.partition(":")
    count = sizes.count("x") + 1
    algorithms = named.split("/") if named else [choices[0]]
    algorithms *= count // len(algorithms)
    for level, other in itertools.product(range(count), choices):
        if algorithms[level] != other:
            varied = [*algorithms[:level], other, *algorithms[level + 1 :]]
            yield f"{name}:{sizes}:{'/'.join(varied)}"


def _factorings(number: int, count: int) -> Iterator[tuple[int, ...]]:
    """Yields the ordered factorings of a number into `count` factors of at least 2."""
    if count == 1:
        if number >= 2:
            yield (number,)
        return
    for factor in range(2, number // 2 ** (count - 1) + 1):
        if number % factor == 0:
            yield from ((factor, *rest) for rest in _factorings(number // factor, count - 1))


def _numbers(values: Iterable[int]) -> Callable[[str, int], Iterator[str]]:
    values = tuple(values)

    def arguments(_collective: str, ranks: int) -> Iterator[str]:
        return (str(value) for value in values if value <= max(ranks, 2))

    return arguments


def _segments(*prefixes: str) -> Callable[[str, int], Iterator[str]]:
    """Returns the grid of segments, alone and behind each prefix."""

    def arguments(_collective: str, _ranks: int) -> Iterator[str]:
        for prefix in ("", *prefixes):
            if prefix:
                yield prefix
            for count in _SEGMENTS:
                yield f"{prefix},segments={count}" if prefix else f"segments={count}"

    return arguments


def _shards(_collective: str, ranks: int) -> Iterator[str]:
    """Yields the powers of two below the rank count."""
    return (str(1 << bit) for bit in range((ranks - 1).bit_length()))


def _groups(_collective: str, ranks: int) -> Iterator[str]:
    """Yields the sizes of equal groups of ranks; one group, or one rank each, is a ring."""
    sizes = (size for size in range(2, ranks // 2 + 1) if ranks % size == 0)
    return map(str, itertools.islice(sizes, _MOST_GROUPS))


def _named(*arguments: str) -> Callable[[str, int], Iterator[str]]:
    return lambda _collective, _ranks: iter(arguments)


_GRIDS: dict[str, Callable[[str, int], Iterator[str]]] = {
    "binary_tree": _segments(),
    "bine": _segments("latency_optimal", "block_by_block", "two_blocks", "send"),
    "blue_connect": _levels,
    "bruck": _numbers(_RADICES),
    "chain": _segments("fanout=2", "fanout=4"),
    "direct": _named("two_step"),
    "dissemination": _numbers(_RADICES),
    "double_binary_tree": _numbers(_SEGMENTS),
    "elimination": _named("3-2_overlapping", "2-1"),
    "hierarchical": _levels,
    "hierarchical_leader": _levels,
    "hierarchical_local": _levels,
    "k_ring": _groups,
    "kary_tree": _segments("fanout=3", "fanout=4", "fanout=8"),
    "knomial": _numbers(_RADICES),
    "pat": _shards,
    "recursive_exchange": _numbers(_RADICES),
    "recursive_halving_doubling": _segments("2-1", "3-2", "binary_blocks"),
    "reduce_scatter_gather": _named("ring"),
    "ring": _segments(),
    "scatter_all_gather": _named("dissemination", "recursive_doubling"),
    "scatter_destination": _numbers((1, 2, 4, 8, 16, 64)),
    "split_binary_tree": _segments(),
    "swing": _named("latency_optimal"),
}
"""The arguments of each algorithm, beyond the default."""
