"""Reads the training file of a plan back as the plan, its model and its GPUs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tutti.base.files.mistakes import mistake, shown
from tutti.base.files.reader import read_toml
from tutti.platforms.npus import npu
from tutti.training.files.calibration import read_calibration
from tutti.training.files.step_file import resolve_training
from tutti.training.files.tables import GpuTable
from tutti.training.plan.cluster import Cluster
from tutti.training.plan.space import Plan
from tutti.workloads.parallel import Parallelism

if TYPE_CHECKING:
    from tutti.training.files.step_file import Training
    from tutti.workloads.model import Model

__all__ = ["Planned", "planned_of", "read_planned"]


class Planned(NamedTuple):
    """A plan, its model and its GPUs."""

    model: Model
    plan: Plan
    cluster: Cluster


def read_planned(path: Path) -> Planned:
    """Reads a training file of `tutti train plan --out`.

    Factors of a calibration that the file names are left out.

    Raises:
        ConfigError: The file is invalid, or does not describe a plan.
    """
    source = str(path)
    training = resolve_training(read_toml(path), source=source, folder=path.parent)
    planned = planned_of(training)
    if planned is not None:
        return planned._replace(cluster=replace(planned.cluster, calibrated=None))
    raw = training.raw
    if not isinstance(raw.compute, GpuTable) or raw.platform is None:
        key, expected = "compute.model", '"gpu" and a platform, as `tutti train plan --out` writes'
        raise mistake("the step is not a plan of GPUs", source=source, key=key,
                      value=shown(raw.compute.model), expected=expected)  # fmt: skip
    raise mistake("is not a decoder", source=source, key="model", value=shown(raw.model),
                  expected="a decoder of `tutti train list`, or hf:FILE")  # fmt: skip


def planned_of(training: Training) -> Planned | None:
    """Returns the plan that a training file describes; None if it is not that of a plan.

    Raises:
        ConfigError: The file of the calibration is invalid.
    """
    raw, step = training.raw, training.step
    compute, kinds, platform = raw.compute, step.parallelism, step.platform
    if not isinstance(compute, GpuTable) or not isinstance(kinds, Parallelism):
        return None
    if platform is None or step.model.decoder is None:
        return None
    calibration = compute.calibration
    folder = Path(training.source).parent
    cluster = Cluster(
        platform=platform,
        npu=npu(compute.gpu),
        precision=compute.precision,
        efficiency=compute.efficiency,
        dispatcher=compute.dispatcher,
        overlapped=compute.overlapped,
        graph=compute.graph,
        gradients=raw.elements.gradients or 2,
        calibrated=read_calibration(folder / calibration) if calibration else None,
    )
    data = step.npus // (kinds.replica * kinds.expert)
    plan = Plan(kinds=kinds, data=data, micro_batch=step.batch // kinds.micro_batches)
    return Planned(step.model, plan, cluster)
