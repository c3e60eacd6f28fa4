"""What a sweep measures, point by point, and what it leaves out and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tutti.experiment import try_plan
from tutti.sweep.keys import Questions
from tutti.sweep.worker import Item
from tutti.units import Size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tutti.config import Experiment, Sweep
    from tutti.errors import ConfigError, LayoutError
    from tutti.experiment import ExperimentPlan, LeftOut, TimedSchedule


@dataclass
class SweepPlan:
    """All measurements of a sweep.

    Attributes:
        sweep: What is swept.
        measurements: In the order of the points, and within each in that of `tutti compare`.
        proofs: Of every schedule that is measured, each once; none where verification is skipped.
        proof_keys: The key of the proof of each measurement, in the same order.
        labels: What results say of each measurement besides what it came to, in the same order.
        left_out: What is not measured, with the point it belongs to.
        remarks: What a person should know of the machines before anything is run.
    """

    sweep: Sweep
    measurements: list[Item] = field(default_factory=list)
    proofs: list[Item] = field(default_factory=list)
    proof_keys: list[str] = field(default_factory=list)
    labels: list[dict[str, Any]] = field(default_factory=list)
    left_out: list[tuple[int, LeftOut]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def values(self, item: Item) -> Mapping[str, Any]:
        """The swept keys of the point that an item belongs to, with their values."""
        return self.sweep.points[item.point]

    def omissions(self) -> list[str]:
        """What is left out and why, each once, and at how many points."""
        points: dict[LeftOut, int] = {}
        for _, one in self.left_out:
            points[one] = points.get(one, 0) + 1
        total = len(self.sweep.points)
        return [
            f"left out: {one.notation} on {one.ranks} ranks, at {count:,} of {total:,} points: "
            f"{one.reason}"
            for one, count in points.items()
        ]

    def label(self, item: Item) -> str:
        """What errors call an item."""
        what = f"{item.notation} on {item.ranks} ranks"
        if item.size_bytes is not None:
            what += f" with {Size(bytes=item.size_bytes)}"
        return f"{self.sweep.source}, {self.sweep.label(item.point)}: {what}"


def plan_sweep(sweep: Sweep, *, verify: bool = True) -> SweepPlan:
    """Reads and checks every point, and lays out what it measures.

    Args:
        sweep: What is swept.
        verify: Whether schedules are verified before they are timed.

    Raises:
        ConfigError: A point is no experiment, or an algorithm that was asked for by name fits none
            of the points that ask for it.
        LayoutError: No algorithm can do with the parts of every size, at any point.
    """
    laid_out = SweepPlan(sweep)
    fitting: set[str] = set()
    misfits: dict[str, ConfigError] = {}
    unequal_parts: list[LayoutError] = []
    proofs: dict[str, Item] = {}
    remarks = _Remarks()
    for index, experiment in enumerate(sweep.experiments()):
        remarks.hear(experiment)
        planned, refused, unequal = try_plan(experiment)
        unequal_parts.extend(unequal)
        questions = Questions(experiment)
        fitting.update(set(experiment.algorithms or ()) - refused.keys())
        for notation, error in refused.items():
            misfits.setdefault(notation, error)
        laid_out.left_out.extend((index, one) for one in planned.left_out)
        for case in planned.cases:
            key = questions.proof(case.notation, case.schedule.ranks)
            proofs.setdefault(key, _item(key, index, case, None, 0))
        _add_measurements(laid_out, index, planned, questions)
    for notation, error in misfits.items():
        if notation not in fitting:
            raise error
    if unequal_parts and not laid_out.measurements:
        raise unequal_parts[0]
    laid_out.proofs = list(proofs.values()) if verify else []
    laid_out.remarks = list(remarks.texts)
    return laid_out


class _Remarks:
    """What is to be known of the machines of a sweep, each once; most points share theirs."""

    def __init__(self) -> None:
        self.texts: dict[str, None] = {}
        self._heard: set[str] = set()

    def hear(self, experiment: Experiment) -> None:
        """Asks a machine, unless one with the same topology was asked."""
        table = experiment.platform.topology
        if table is None or table.flits is None:
            return
        asked = table.model_dump_json()
        if asked not in self._heard:
            self._heard.add(asked)
            self.texts.update(dict.fromkeys(experiment.machine().remarks))


def _add_measurements(
    laid_out: SweepPlan, index: int, planned: ExperimentPlan, questions: Questions
) -> None:
    for point in planned.points:
        case, size, repetition = point
        asked = (case.notation, case.schedule.ranks, size.bytes, repetition)
        key = questions.measurement(*asked)
        laid_out.measurements.append(_item(key, index, case, size.bytes, repetition))
        laid_out.proof_keys.append(questions.proof(case.notation, case.schedule.ranks))
        laid_out.labels.append(planned.labels(point))


def _item(
    key: str, point: int, case: TimedSchedule, size_bytes: int | None, repetition: int
) -> Item:
    ranks = case.schedule.ranks
    return Item(key, point, case.notation, ranks, size_bytes, repetition, case.messages)
