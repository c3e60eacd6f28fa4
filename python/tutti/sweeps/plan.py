"""The measurements of a sweep, point by point, and the omitted ones with reasons."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tutti.base.units import Size
from tutti.collectives.experiment import try_plan
from tutti.platforms.files.notation import defaults_of
from tutti.sweeps.designs import DesignPlan, plan_designs
from tutti.sweeps.keys import Questions, proof_key
from tutti.sweeps.steps import StepPlan, plan_steps
from tutti.sweeps.worker import Item

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from tutti.base.errors import ConfigError
    from tutti.collectives.experiment import ExperimentPlan, LeftOut, TimedSchedule
    from tutti.collectives.files.resolve import Experiment
    from tutti.schedules.errors import LayoutError
    from tutti.sweeps.files import Sweep


@dataclass
class SweepPlan:
    """All measurements of a sweep.

    Attributes:
        sweep: The sweep.
        measurements: Measurements by point, and within a point in the order of `tutti compare`.
        proofs: The proof of each schedule, once. Empty if verification is skipped.

        proof_keys: The key of the proof of each measurement.
        labels: The label columns of each measurement.
        baselines: What the library of a platform predicts for its choice, as rows, by point.
        left_out: Omitted measurements, with their point.
        remarks: Remarks on ranges and machines, to report before the run.
    """

    sweep: Sweep
    measurements: list[Item] = field(default_factory=list)
    proofs: list[Item] = field(default_factory=list)
    proof_keys: list[str] = field(default_factory=list)
    labels: list[dict[str, Any]] = field(default_factory=list)
    baselines: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    left_out: list[tuple[int, LeftOut]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def values(self, item: Item) -> Mapping[str, Any]:
        """Returns the swept keys of the item's point, with their values."""
        return self.sweep.points[item.point]

    def omissions(self) -> list[str]:
        """Returns a line per omitted schedule, with its reason and number of points."""
        points: dict[LeftOut, int] = {}
        for _, one in self.left_out:
            points[one] = points.get(one, 0) + 1
        total = len(self.sweep.points)
        names: dict[tuple[str, int, str], list[str]] = {}
        for one, count in points.items():
            names.setdefault((one.where, count, one.reason), []).append(one.notation)
        return [
            f"left out: {', '.join(alike)} on {where}, at {count:,} of {total:,} points: {reason}"
            for (where, count, reason), alike in names.items()
        ]

    def frame(self, rows: Mapping[str, Mapping[str, Any]]) -> pl.DataFrame:
        """Returns the finished rows, see :func:`tutti.sweeps.frame.sweep_frame`."""
        from tutti.sweeps.frame import sweep_frame

        return sweep_frame(self, rows)

    def label(self, item: Item) -> str:
        """Returns the name of an item in errors."""
        what = f"{item.notation} on {item.ranks} ranks"
        if item.size_bytes is not None:
            what += f" with {Size(bytes=item.size_bytes)}"
        return f"{self.sweep.source}, {self.sweep.label(item.point)}: {what}"


AnyPlan = SweepPlan | StepPlan | DesignPlan
"""The measurements of a sweep of experiments, of training steps or of networks."""


def plan_sweep(sweep: Sweep, *, verify: bool = True) -> AnyPlan:
    """Validates all points, and plans their measurements.

    Args:
        sweep: The sweep.
        verify: Whether schedules are verified before they are timed.

    Raises:
        ConfigError: A point is not a valid experiment, or an explicitly named algorithm does not
            apply to any of its points.
        LayoutError: No algorithm supports the parts of every size, at any point.
    """
    if sweep.template.kind == "training":
        return plan_steps(sweep, verify=verify)
    if sweep.template.kind == "noc":
        return plan_designs(sweep, verify=verify)
    return _plan_experiments(sweep, verify=verify)


def _plan_experiments(sweep: Sweep, *, verify: bool) -> SweepPlan:
    laid_out = SweepPlan(sweep)
    fitting: set[str] = set()
    misfits: dict[str, ConfigError] = {}
    unequal_parts: list[LayoutError] = []
    proofs: dict[str, Item] = {}
    remarks = _Remarks()
    notes: dict[str, None] = {}
    for index, experiment in enumerate(sweep.experiments()):
        remarks.add(experiment)
        planned, refused, unequal = try_plan(experiment)
        where = f"{sweep.source}, {sweep.label(index)}"
        unequal_parts.extend(one.reworded(f"{where}: {one.problem}") for one in unequal)
        questions = Questions(experiment)
        fitting.update(set(experiment.algorithms or ()) - refused.keys())
        for notation, error in refused.items():
            misfits.setdefault(notation, error)
        laid_out.left_out.extend((index, one) for one in planned.left_out)
        for case in planned.cases:
            key = proof_key(questions, case)
            proofs.setdefault(key, _item(key, index, case, None, 0))
        if planned.library is not None:
            rows = planned.library.rows(planned, {})
            laid_out.baselines.extend((index, row) for row in rows)
            notes |= planned.library.notes
        _add_measurements(laid_out, index, planned, questions)
    for notation, error in misfits.items():
        if notation not in fitting:
            raise error
    if unequal_parts and not laid_out.measurements:
        raise unequal_parts[0]
    laid_out.proofs = list(proofs.values()) if verify else []
    laid_out.remarks = [*remarks.texts, *notes]
    return laid_out


class _Remarks:
    """The distinct remarks on the ranges and the platforms of a sweep."""

    def __init__(self) -> None:
        self.texts: dict[str, None] = {}
        self._seen: set[str] = set()

    def add(self, experiment: Experiment) -> None:
        """Adds ranges that end early, defaults of a notation, and remarks of a topology, once."""
        self.texts.update(dict.fromkeys(experiment.remarks))
        platform = experiment.platform
        if platform.name not in self._seen:
            self._seen.add(platform.name)
            if defaults := defaults_of(platform):
                self.texts[defaults] = None
        table = platform.topology
        if table is None or table.flits is None:
            return
        topology = table.model_dump_json()
        if topology not in self._seen:
            self._seen.add(topology)
            self.texts.update(dict.fromkeys(experiment.machine().remarks))


def _add_measurements(
    laid_out: SweepPlan, index: int, planned: ExperimentPlan, questions: Questions
) -> None:
    for point in planned.points:
        case, size, repetition = point
        key = questions.measurement(case.notation, case.schedule.ranks, size.bytes, repetition)
        laid_out.measurements.append(_item(key, index, case, size.bytes, repetition))
        laid_out.proof_keys.append(proof_key(questions, case))
        laid_out.labels.append(planned.labels(point))


def _item(
    key: str, point: int, case: TimedSchedule, size_bytes: int | None, repetition: int
) -> Item:
    ranks = case.schedule.ranks
    at = size_bytes or min(case.sizes or [0])
    return Item(key, point, case.notation, ranks, size_bytes, repetition, case.messages, at)
