"""What to measure next, so that more decisions are certain.

An undecided cell is a collective, rank count and size whose choice has less confidence than
:data:`UNDECIDED`. Of its choice and its runner-up, the algorithm with the wider interval is
measured, since it contributes more to the uncertainty. Its size is that of the cell with the widest
interval, and the job has twice as many ranks as the largest measured. Measurements are ordered by
the sum of the probabilities of a wrong choice over the undecided cells that they are about.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tutti.measured.advise.questions import measured_ranks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.measured.advise.decide import Decision
    from tutti.measured.advise.scope import Scope

UNDECIDED: Final = 0.8
"""Confidence below which a choice is undecided."""
_GROWTH: Final = 2


@dataclass(frozen=True)
class NextMeasurement:
    """A measurement that makes decisions more certain.

    Attributes:
        collective: the collective.
        algorithm: what to measure.
        ranks: number of ranks; None on a torus, whose sides the user chooses.
        size_bytes: size, as in :data:`tutti.formats.measurements.MEASUREMENTS`.
        cells: the number of undecided cells in which its time is uncertain.
        factor: ratio of its predicted time to the lower end of its 90 % interval.
        wrong: sum of the probabilities of a wrong choice in these cells.
    """

    collective: str
    algorithm: str
    ranks: int | None
    size_bytes: int
    cells: int
    factor: float
    wrong: float


def next_measurements(
    scope: Scope, decisions: Sequence[Decision], most: int = 3
) -> list[NextMeasurement]:
    """Returns the most useful measurements, best first.

    Args:
        scope: the machine.
        decisions: the decisions for larger jobs.
        most: how many to return.
    """
    found: dict[tuple[str, str], list[tuple[float, Decision]]] = {}
    for one in decisions:
        if one.runner_up is not None and (one.stated_confidence or 0.0) < UNDECIDED:
            wider = one.runner_up_spread > one.spread
            name = one.runner_up if wider else one.algorithm
            factor = one.runner_up_spread if wider else one.spread
            found.setdefault((one.collective, name), []).append((factor, one))
    listed = [_measurement(scope, *key, some) for key, some in found.items()]
    listed.sort(key=lambda one: (-one.wrong, one.collective, one.algorithm))
    return listed[:most]


def _measurement(
    scope: Scope, collective: str, algorithm: str, some: Sequence[tuple[float, Decision]]
) -> NextMeasurement:
    factor, widest = max(some, key=lambda one: (one[0], one[1].ranks, one[1].size_bytes))
    return NextMeasurement(
        collective=collective,
        algorithm=algorithm,
        ranks=None if scope.torus else _ranks(scope, collective, widest.ranks),
        size_bytes=widest.size_bytes,
        cells=len(some),
        factor=factor,
        wrong=sum(1 - one.confidence for _, one in some),
    )


def _ranks(scope: Scope, collective: str, target: int) -> int:
    """Returns twice the largest measured rank count, on full nodes, but at most the target."""
    nodes = -(-_GROWTH * max(measured_ranks(scope, collective)) // scope.ranks_per_node)
    return min(target, nodes * scope.ranks_per_node)
