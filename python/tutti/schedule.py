"""Schedules: what every rank does, in which order, on which part of the payload.

A schedule is free of sizes: chunks are equal fractions of the payload. Its steps are laid out when
they are asked for, so a schedule of a million ranks costs nothing until someone walks it.

>>> ring = schedule("ring", collective="all_reduce", ranks=4)
>>> ring.steps(0)
6
>>> ring.ops(0, 0)[0]
send 3 of slot 0 to rank 1
"""

from __future__ import annotations

from tutti import _core

__all__ = ["Op", "Schedule", "algorithms", "schedule"]

Op = _core.Op


class Schedule:
    """A collective algorithm laid out for a number of ranks: a stream of steps per rank."""

    __slots__ = ("_core",)

    def __init__(self, core: _core.Schedule) -> None:
        """Wraps what the core laid out; use :func:`schedule` or a builder."""
        self._core = core

    @property
    def name(self) -> str:
        """How it was asked for, in the notation ``name[:argument]``."""
        return self._core.name

    @property
    def collective(self) -> str:
        """The collective it performs, such as ``all_reduce``."""
        return self._core.collective

    @property
    def root(self) -> int | None:
        """The root of a rooted collective."""
        return self._core.root

    @property
    def ranks(self) -> int:
        """How many ranks take part."""
        return self._core.ranks

    @property
    def chunks(self) -> int:
        """How many equal chunks the payload is divided into."""
        return self._core.chunks

    @property
    def slots(self) -> int:
        """How many slots a rank needs: the data slot, then scratch."""
        return self._core.slots

    @property
    def result(self) -> int:
        """The slot that holds the result afterwards."""
        return self._core.result

    def steps(self, rank: int) -> int:
        """How many steps ``rank`` takes.

        Raises:
            ScheduleError: there is no such rank.
        """
        return self._core.steps(rank)

    def ops(self, rank: int, step: int) -> list[Op]:
        """The ops of one step: sends, then receives, then local ops, in order.

        Raises:
            ScheduleError: there is no such rank or step.
        """
        return self._core.ops(rank, step)

    def step_name(self, rank: int, step: int) -> str:
        """A short name for the step, for drawings and traces.

        Raises:
            ScheduleError: there is no such rank or step.
        """
        return self._core.step_name(rank, step)

    def __repr__(self) -> str:
        return f"<Schedule {self.name}: {self.collective} on {self.ranks} ranks>"


def schedule(algorithm: str, *, collective: str, ranks: int, root: int = 0) -> Schedule:
    """Lays out an algorithm.

    Args:
        algorithm: its notation, ``name[:argument]``, such as ``"recursive_multiplying:a8,a4"``.
        collective: what it is to perform, such as ``"all_reduce"``.
        ranks: how many ranks take part; at least two.
        root: the root of a rooted collective.

    Raises:
        AlgorithmError: the name, the argument, the collective or the rank count does not fit.
    """
    return Schedule(_core.build_schedule(algorithm, collective, ranks, root=root))


def algorithms() -> list[_core.Algorithm]:
    """Every algorithm there is, with its summary, source, collectives and rank counts."""
    return _core.algorithms()
