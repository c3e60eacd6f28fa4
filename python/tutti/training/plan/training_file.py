"""The file of a training step (`tutti train run`) of a plan."""

from __future__ import annotations

import os
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tutti.base.files.writer import document
from tutti.training.plan.explain import described, parallelism_of
from tutti.training.plan.simulate import dimensions_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tutti.training.plan.cluster import Cluster
    from tutti.training.plan.search import PlanSearch, Ranked


def relative(path: Path, folder: Path) -> str:
    """Returns a path as a file in a folder states it."""
    return Path(os.path.relpath(path, folder)).as_posix()


def training_file(
    search: PlanSearch,
    ranked: Ranked,
    model: str,
    platform: Mapping[str, Any],
    build: str,
    *,
    folder: Path,
) -> str:
    """Returns the file of a plan; it simulates kernels and communication of all micro-batches.

    Args:
        search: The search.
        ranked: The plan.
        model: The notation of the model.
        platform: The tables of the platform.
        build: The topology with the number of GPUs; empty for that of the platform.
        folder: The folder of the file, to which the path of a calibration is relative.
    """
    cluster, plan = search.cluster, ranked.plan
    npu, elements = cluster.engine, cluster.elements
    tables = deepcopy(dict(platform))
    if build:
        tables["topology"]["build"] = build
    dimensions = [
        {"name": one.name, "nodes": one.nodes} for one in dimensions_of(plan, cluster.domain)
    ]
    return document(
        _comments(search, ranked),
        {
            "title": f"{model} on {cluster.gpus:,} {cluster.npu.name}: {described(ranked.plan)}",
            "model": model,
            "batch": plan.samples,
            "precision": "bf16",
            "iterations": 1,
            "detail": "flows",
            "configurations": ["ideal"],
            "elements": {"weights": elements.weights, "gradients": elements.gradients},
            "dimensions": dimensions,
            "npu": {"arithmetic": str(npu.arithmetic), "sms": npu.sms, "memory": str(npu.memory)},
            "compute": _compute(cluster, folder),
            "parallelism": parallelism_of(ranked),
            "platform": tables,
        },
    )


def _compute(cluster: Cluster, folder: Path) -> dict[str, object]:
    """Returns the table `[compute]`, without the defaults."""
    calibrated = cluster.calibrated
    found = {
        "model": "gpu",
        "gpu": cluster.npu.name,
        "precision": cluster.precision,
        "dispatcher": cluster.dispatcher,
        "overlapped": cluster.overlapped or None,
        "graph": cluster.graph,
        "efficiency": cluster.efficiency,
        "calibration": calibrated and relative(Path(calibrated.source), folder),
    }
    return {key: value for key, value in found.items() if value is not None}


def _comments(search: PlanSearch, ranked: Ranked) -> list[str]:
    """Returns what the plan predicts, and what the simulation of the file leaves out."""
    timing, more = ranked.timing, ranked.timing.update
    took = "took a closed form." if ranked.simulated is None else "took few: up to 1 % apart."
    return [
        f"A plan of `tutti train plan`, which predicts a step of {timing.step:.3f} s.",
        *_interval(search, ranked),
        "`tutti train run` simulates kernels and communication. It leaves out casts of weights,",
        f"the optimizer and the constant of a step ({more:.3f} s), and exposes collectives of",
        "layers in full. Its line `as a plan` has the exposed shares of measured runs, and what it",
        f"leaves out. It simulates all micro-batches and replicas; `train plan` {took}",
    ]


def _interval(search: PlanSearch, ranked: Ranked) -> Iterator[str]:
    """Yields the interval of the step on a GPU without measured steps."""
    if spread := search.spread(ranked):
        low, high = spread.interval(ranked.timing.step)
        gpu = search.cluster.npu.name
        yield f"No run on {gpu} is fitted: 90 % interval {low:.3f} to {high:.3f} s."
