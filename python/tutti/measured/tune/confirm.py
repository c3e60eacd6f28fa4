"""Compares the default of an MPI library with rules for it, in processes that alternate.

A rule also covers the sizes between the tuned ones. So these are compared, too, and each rule is
divided there. Where a rule is not faster, the default stays.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import isqrt
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from tutti.base.datatypes import DATATYPES
from tutti.collectives.sizes import part_bytes
from tutti.measured.tune.late import in_time
from tutti.measured.tune.measure import right_blocks
from tutti.mpi.bench import BenchCandidate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tutti.measured.tune.forced import ChosenAlgorithm
    from tutti.measured.tune.measure import Question
    from tutti.mpi.bench_job import Settings
    from tutti.mpi.underneath import Mpi

ROUNDS: Final = 8
"""Runs of the processes without and with the rules."""
_HELD: Final = 7
"""Rounds in which a rule has to be faster: 3.5 % of the rules that are exactly as fast pass. Times
differ more from run to run than from block to block, so that fewer rounds let slower rules pass."""

Points = dict[int, "ChosenAlgorithm"]
"""The algorithm from each size on, up to the next size; absent where the default stays."""


class Comparison(NamedTuple):
    """Default and rules at one size.

    Attributes:
        collective: The collective.
        ranks: Number of ranks.
        size: In bytes, by the convention of nccl-tests.
        algorithm: The algorithm that the rule names.
        default_ps: Median time of the default in ps.
        ruled_ps: Median time with the rules in ps.
        holds: Whether the rule is faster.
    """

    collective: str
    ranks: int
    size: int
    algorithm: str
    default_ps: int
    ruled_ps: int
    holds: bool

    @property
    def gain(self) -> float:
        """The share of the default's time that the rules save; negative if they are slower."""
        return 1 - self.ruled_ps / max(self.default_ps, 1)


class Side(NamedTuple):
    """One side of a comparison.

    Attributes:
        settings: How to measure; the variables select rules.
        candidate: What is measured.
    """

    settings: Settings
    candidate: BenchCandidate = BenchCandidate("own")


def between(question: Question) -> dict[int, int]:
    """Returns a size between each tuned size and the next, by the smaller one."""
    unit = max(part_bytes(question.collective, question.ranks, DATATYPES[question.datatype]), 1)
    middles = {size: isqrt(size * after) // unit * unit
               for size, after in pairwise(question.sizes)}  # fmt: skip
    return {size: middle for size, middle in middles.items() if size < middle}


def points(question: Question, choices: Mapping[int, ChosenAlgorithm]) -> Points:
    """Divides the ranges of chosen algorithms between the tuned sizes.

    Args:
        question: The collective, ranks and sizes.
        choices: The algorithm at each size; absent where the default stays.

    Returns:
        The algorithms at the sizes, and at one size between each of them and the next.
    """
    chosen: Points = {}
    middles = between(question)
    for size in question.sizes:
        if size not in choices:
            continue
        chosen[size] = choices[size]
        if size in middles:
            chosen[middles[size]] = choices[size]
    return chosen


def confirm(
    question: Question,
    chosen: Points,
    variables: Mapping[str, str],
    mpi: Mpi,
    settings: Settings,
    *,
    done: Callable[[int, int], object] | None = None,
) -> list[Comparison]:
    """Runs the default and the rules in turn, at each size with a rule.

    Args:
        question: The collective and ranks.
        chosen: The rules; each holds up to the next size.
        variables: The variables that make the library read the rules.
        mpi: The MPI library.
        settings: How to measure; its blocks are divided among the rounds.
        done: Called with the finished and the expected number of rounds.

    Raises:
        BenchError: A run failed, or a result was wrong.
    """
    if not chosen:
        return []
    blocks = max(3, settings.blocks // ROUNDS)
    without, ruled = (
        Side(replace(settings, blocks=blocks, variables={**settings.variables, **added}))
        for added in ({}, variables)
    )
    pairs = alternated(question, list(chosen), mpi, (without, ruled), ROUNDS, done=done)
    return [_compared(question, size, one.name, pairs[size]) for size, one in chosen.items()]


def alternated(
    question: Question,
    sizes: Sequence[int],
    mpi: Mpi,
    sides: tuple[Side, Side],
    rounds: int,
    *,
    done: Callable[[int, int], object] | None = None,
) -> dict[int, list[tuple[int, int]]]:
    """Runs two sides in separate processes, in turn: the first precedes in even rounds.

    Args:
        question: The collective and ranks.
        sizes: In bytes.
        mpi: The MPI library.
        sides: What to compare.
        rounds: Runs of each side.
        done: Called with the finished and the expected number of rounds.

    Returns:
        The median times in ps of both sides in each round, by size.

    Raises:
        BenchError: A run failed, or a result was wrong.
    """
    pairs: dict[int, list[tuple[int, int]]] = {size: [] for size in sizes}
    for number in range(rounds):
        times: list[dict[int, int]] = [{}, {}]
        for side in (0, 1) if number % 2 == 0 else (1, 0):
            times[side] = _medians(question, sizes, mpi, sides[side])
        for size in sizes:
            pairs[size].append((times[0][size], times[1][size]))
        if done is not None:
            done(number + 1, rounds)
    return pairs


def _compared(
    question: Question, size: int, algorithm: str, pairs: Sequence[tuple[int, int]]
) -> Comparison:
    default_ps, ruled_ps = (round(median(times)) for times in zip(*pairs, strict=True))
    faster = sum(ruled < default for default, ruled in pairs)
    holds = faster >= _HELD and ruled_ps < default_ps
    return Comparison(
        question.collective, question.ranks, size, algorithm, default_ps, ruled_ps, holds
    )


def _medians(question: Question, sizes: Sequence[int], mpi: Mpi, side: Side) -> dict[int, int]:
    """Returns the median time in ps of a side, by size."""
    chosen = {size: [side.candidate] for size in sizes}
    frame = right_blocks(question, mpi, side.settings, chosen, None)
    crowded = bool(frame["crowded"].any())
    tolerance = side.settings.tolerance_s(question.ranks, crowded=crowded)
    return {row["size_bytes"]: row["time_ps"]
            for row in in_time(frame, tolerance).iter_rows(named=True)}  # fmt: skip
