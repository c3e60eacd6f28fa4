"""The parts of a difference between a simulated time and that of a library's own model.

A library's model adds a latency and a transfer. The simulated time has the same parts: the latency
is the time of a payload of 8 bytes per chunk, the transfer that of the busiest link. The rest of it
is time in which messages wait for others, or, if negative, in which latency and transfer overlap.
The differences of the three parts add up to the difference of the times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tutti import _core
from tutti.collectives.case import make_case
from tutti.view.quantity import format_time, plural

if TYPE_CHECKING:
    from tutti.collectives.result import Run
    from tutti.platforms.library import Prediction

_LEAST_OF_CHUNK = 8
"""Bytes of a chunk in the payload whose time is the latency: an element of any datatype."""
_LEAST_SHARE = 0.01
"""The share of a difference above which a part is stated."""
_MAIN = 0.5
"""The share of a difference for which the named parts account."""


class Part(NamedTuple):
    """A part of a difference.

    Attributes:
        name: `latency`, `transfer`, or `waiting`, which is negative if parts overlap.
        simulated_ps: The part of the simulated time.
        model_ps: The part of the time of the library's model.
    """

    name: str
    simulated_ps: int
    model_ps: int

    @property
    def ps(self) -> int:
        """The difference."""
        return self.simulated_ps - self.model_ps


class Difference(NamedTuple):
    """The difference between a simulated time and that of a library's model.

    Attributes:
        latency: The times of a payload that has 8 bytes per chunk.
        transfer: The time in which the busiest link is busy, and the model's bytes over its rate.
        waiting: What the simulated time has in addition, or less.
        steps: The most steps of a rank in the simulation.
        link: The busiest link; empty without one.
    """

    latency: Part
    transfer: Part
    waiting: Part
    steps: int
    link: str

    @classmethod
    def of(cls, run: Run, predicted: Prediction) -> Difference:
        """Returns the difference of a run, whose schedule is simulated once more.

        Args:
            run: The run of the schedule of a library.
            predicted: What the library's own model predicts.
        """
        latency, (busy, link) = _latency(run), _busiest(run)
        transfer = predicted.time_ps - predicted.latency_ps
        schedule = run.schedule
        return cls(
            Part("latency", latency, predicted.latency_ps),
            Part("transfer", busy, transfer),
            Part("waiting", run.completion_ps - latency - busy, 0),
            max(schedule.steps(rank) for rank in range(schedule.ranks)),
            link,
        )

    @property
    def parts(self) -> tuple[Part, Part, Part]:
        """The three parts."""
        return self.latency, self.transfer, self.waiting

    @property
    def ps(self) -> int:
        """The difference of the times, which is that of the parts."""
        return sum(part.ps for part in self.parts)

    @property
    def main(self) -> list[Part]:
        """The parts that account for at least half of the difference, largest first."""
        same_sign = [part for part in self.parts if part.ps * self.ps > 0]
        found: list[Part] = []
        for part in sorted(same_sign, key=lambda part: -abs(part.ps)):
            found.append(part)
            if sum(one.ps for one in found) / self.ps >= _MAIN:
                break
        return found

    def text(self) -> str:
        """Returns the parts with their times, the main ones first, without tiny ones."""
        main, least = self.main, _LEAST_SHARE * abs(self.ps)
        others = [part for part in self.parts if part not in main and abs(part.ps) > least]
        first, rest = ("; ".join(map(self._times, parts)) for parts in (main, others))
        if not rest:
            return f"Of {_signed(self.ps)}: {first}"
        return f"Of {_signed(self.ps)}, mainly {first}. Other parts: {rest}"

    def _times(self, part: Part) -> str:
        difference, simulated = _signed(part.ps), format_time(abs(part.simulated_ps))
        if part.name == "waiting":
            overlaps = part.simulated_ps < 0
            name = "overlap of latency and transfer" if overlaps else "messages wait for others"
            return f"{name} {difference}"
        where = f" on {self.link}" if part.name == "transfer" and self.link else ""
        if part.name == "latency":
            where = f" for {plural(self.steps, 'step')} of a rank"
        model = format_time(part.model_ps)
        return f"{part.name} {difference} ({simulated}{where}, {model} in the model)"


def _latency(run: Run) -> int:
    """Returns the time of the schedule with 8 bytes per chunk, in ps."""
    from tutti.base.units import Size

    least = _LEAST_OF_CHUNK * run.schedule.chunks
    if least >= run.size.bytes:
        return run.completion_ps
    case = make_case(run.schedule, run.platform, size=Size(bytes=least), datatype=run.datatype)
    return _core.simulate(case).completion_ps


def _busiest(run: Run) -> tuple[int, str]:
    """Returns the time in which the busiest link is busy, in ps, and its name; 0 without links."""
    if run.links.is_empty():
        return 0, ""
    busiest = run.links.sort("busy_ps", "link", descending=[True, False]).row(0, named=True)
    return busiest["busy_ps"], f"{busiest['source']} > {busiest['target']}"


def _signed(ps: int) -> str:
    return f"{'-' if ps < 0 else '+'}{format_time(abs(ps))}"
