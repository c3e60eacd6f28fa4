"""Races the algorithms of an MPI library against its default, and decides where one wins.

Few blocks of every algorithm decide which of them are worth more blocks. The first round covers
some of the sizes only. At a size between two of them, an algorithm takes part only if it was not
much slower than the fastest at either. Each later round has fewer algorithms and more blocks, and
leaves out sizes at which the default is clearly the fastest. The default takes part in every round,
and takes turns with the algorithms block by block. An algorithm wins a size if its blocks are
faster than the default's in nearly all resamples of the pairs.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

DEFAULT: Final = ""
"""Replaces the name of an algorithm: the library's default."""

_STRIDE: Final = 4
"""Every so many sizes are in the first round."""
_FIRST_BLOCKS: Final = 3
_NEAR: Final = 1.6
"""An algorithm takes part between two sizes if it took at most so many times the time of the
fastest at one of them. Times of three blocks differ by up to a third on a busy machine."""
_HOPELESS: Final = 1.15
"""A size is decided if the fastest algorithm takes so many times the time of the default."""
_PREDICTED_NEAR: Final = 4.0
"""The same for predictions of a model, whose errors are larger."""
_ROUNDS: Final = ((1.3, 4, 0.15), (1.12, 2, 0.3))
"""Later rounds: how near to the fastest, how many algorithms at most, share of all blocks."""
_RESAMPLES: Final = 1000
CONFIDENCE: Final = 0.99
"""Share of the resamples in which an algorithm has to be faster than the default: several are
compared, at many sizes."""
LEAST_GAIN: Final = 0.02
"""Share of the default's time that a winner has to save: the file of rules also costs time."""

Cases = dict[int, list[str]]
"""The names of algorithms to measure, by size in bytes; the default is measured, too."""
Blocks = dict[tuple[int, str], dict[int, int]]
"""The times of blocks in ps by size and name, each by the number of the block; those of one number
form a pair."""


class Winner(NamedTuple):
    """The algorithm for a size.

    Attributes:
        name: :data:`DEFAULT` if no algorithm is faster.
        time_ps: Its median time.
        default_ps: The median time of the default in the same blocks.
        fastest: The fastest of all algorithms in its median, whether it wins or not.
    """

    name: str
    time_ps: int
    default_ps: int
    fastest: str


@dataclass
class Race:
    """A race on the sizes of a collective.

    Attributes:
        sizes: In bytes, ascending.
        names: The algorithms at each size.
        blocks: The number of blocks of a finalist.
        predicted: Times of a model in ps, by size and name, as far as it has them.
        samples: The measured blocks.
    """

    sizes: Sequence[int]
    names: Mapping[int, Sequence[str]]
    blocks: int
    predicted: Mapping[tuple[int, str], int] = field(default_factory=dict)
    samples: dict[tuple[int, str], list[tuple[int, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    _measured: int = 0
    _numbered: int = 0

    @property
    def measured_blocks(self) -> int:
        """The number of blocks measured, the default's included."""
        return self._measured

    @property
    def grid_blocks(self) -> int:
        """The number of blocks if every algorithm were measured as often as a finalist."""
        return sum(len(self.names[size]) + 1 for size in self.sizes) * self.blocks

    def run(self, measure: Callable[[Cases, int], Blocks]) -> dict[int, Winner]:
        """Runs the rounds and returns the winner of each size.

        Args:
            measure: Measures a number of blocks of each case and of the default, in turn.
        """
        done = first = min(_FIRST_BLOCKS, self.blocks)
        scouts = list(dict.fromkeys([*self.sizes[::_STRIDE], self.sizes[-1]]))
        self._round({size: self._promising(size) for size in scouts}, first, measure)
        others = {s: self._between(s, scouts) for s in self.sizes if s not in scouts}
        self._round(others, first, measure)
        for near, most, share in _ROUNDS:
            cases = {s: self._nearest(s, near, most) for s in self.sizes if self._is_open(s)}
            done += self._round(cases, min(round(self.blocks * share), self.blocks - done), measure)
        finalists = {s: self._nearest(s, 1, 1) for s in self.sizes if self._is_open(s)}
        self._round(finalists, self.blocks - done, measure)
        return {size: self._winner(size) for size in self.sizes}

    def _round(self, cases: Cases, blocks: int, measure: Callable[[Cases, int], Blocks]) -> int:
        """Measures blocks of each case, and returns their number."""
        cases = {size: names for size, names in cases.items() if names}
        if not cases or not blocks:
            return 0
        for (size, name), times in measure(cases, blocks).items():
            before = self._numbered
            self.samples[size, name] += [(before + block, time) for block, time in times.items()]
        self._numbered += blocks
        self._measured += blocks * sum(len(names) + 1 for names in cases.values())
        return blocks

    def _promising(self, size: int) -> list[str]:
        """Returns the algorithms that a model does not predict to be much slower."""
        times = {name: self.predicted.get((size, name)) for name in self.names[size]}
        least = min((time for time in times.values() if time is not None), default=0)
        return [name for name, time in times.items()
                if time is None or time <= _PREDICTED_NEAR * least]  # fmt: skip

    def _between(self, size: int, scouts: Sequence[int]) -> list[str]:
        """Returns the algorithms that were near the fastest at the size before or after."""
        before = max((scout for scout in scouts if scout < size), default=scouts[0])
        after = min((scout for scout in scouts if scout > size), default=scouts[-1])
        near = {*self._nearest(before, _NEAR), *self._nearest(after, _NEAR)}
        unknown = {name for name in self._promising(size)
                   if all(name not in self.names[scout] for scout in (before, after))}  # fmt: skip
        return [name for name in self.names[size] if name in near | unknown]

    def _nearest(self, size: int, near: float, most: int | None = None) -> list[str]:
        """Returns the algorithms whose medians are near the fastest, fastest first."""
        medians = {name: self._median(size, name) for name in self.names[size]
                   if self.samples.get((size, name))}  # fmt: skip
        least = min(medians.values(), default=0)
        close = [name for name, time in medians.items() if time <= near * least]
        return sorted(close, key=lambda name: (medians[name], name))[:most]

    def _is_open(self, size: int) -> bool:
        """Whether an algorithm may still be faster than the default."""
        best = next(iter(self._nearest(size, 1, 1)), None)
        return best is not None and (
            self._median(size, best) <= _HOPELESS * self._median(size, DEFAULT)
        )

    def _median(self, size: int, name: str) -> float:
        return median(time for _, time in self.samples[size, name])

    def _winner(self, size: int) -> Winner:
        best = next(iter(self._nearest(size, 1, 1)), DEFAULT)
        own = dict(self.samples.get((size, DEFAULT), ()))
        if not own:
            return Winner(DEFAULT, 0, 0, DEFAULT)
        pairs = [(time, own[block]) for block, time in self.samples[size, best] if block in own]
        # Late blocks are discarded, so that no pair may be left.
        default_ps = round(median([time for _, time in pairs] or list(own.values())))
        if best == DEFAULT or not is_faster(pairs, LEAST_GAIN):
            return Winner(DEFAULT, default_ps, default_ps, best)
        return Winner(best, round(median(time for time, _ in pairs)), default_ps, best)


def is_faster(pairs: Sequence[tuple[int, int]], gain: float = 0.0) -> bool:
    """Whether the first of each pair is faster than the second beyond the noise.

    Args:
        pairs: Times that were measured in turn; at least three.
        gain: Share of the second time that the first has to save.

    Returns:
        Whether the ratio of the medians is below 1 - `gain` in :data:`CONFIDENCE` of the resamples
        of the pairs (bootstrap).
    """
    if len(pairs) < 3:
        return False
    chance = random.Random(len(pairs))  # noqa: S311 - reproducible
    faster = 0
    for _ in range(_RESAMPLES):
        drawn = chance.choices(pairs, k=len(pairs))
        first, second = median(time for time, _ in drawn), median(time for _, time in drawn)
        faster += first < (1 - gain) * second
    return faster >= CONFIDENCE * _RESAMPLES
