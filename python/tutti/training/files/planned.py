"""Reads the training file of a plan back as the plan, its model and its GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tutti.base.files.kinds import validated_file
from tutti.base.files.mistakes import mistake, shown
from tutti.base.files.reader import read_toml
from tutti.platforms.npus import npu
from tutti.training.files.step_file import resolve_training
from tutti.training.files.tables import GpuTable, RawTraining
from tutti.training.plan.cluster import Cluster
from tutti.training.plan.space import Plan
from tutti.workloads.parallel import Parallelism

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.workloads.model import Model

__all__ = ["Planned", "read_planned"]


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
    tables, source = read_toml(path), str(path)
    raw = validated_file(RawTraining, tables, source=source)
    compute = raw.compute
    if not isinstance(compute, GpuTable) or raw.platform is None:
        key, expected = "compute.model", '"gpu" and a platform, as `tutti train plan --out` writes'
        raise mistake("the step is not a plan of GPUs", source=source, key=key,
                      value=shown(compute.model), expected=expected)  # fmt: skip
    step = resolve_training(tables, source=source, folder=path.parent).step
    kinds = step.parallelism
    if step.model.decoder is None or not isinstance(kinds, Parallelism) or step.platform is None:
        raise mistake("is not a decoder", source=source, key="model", value=shown(raw.model),
                      expected="a decoder of `tutti train list`, or hf:FILE")  # fmt: skip
    cluster = Cluster(
        platform=step.platform,
        npu=npu(compute.gpu),
        precision=compute.precision,
        efficiency=compute.efficiency,
        dispatcher=compute.dispatcher,
        overlapped=compute.overlapped,
        graph=compute.graph,
        gradients=raw.elements.gradients or 2,
    )
    data = step.npus // (kinds.replica * kinds.expert)
    plan = Plan(kinds=kinds, data=data, micro_batch=step.batch // kinds.micro_batches)
    return Planned(step.model, plan, cluster)
