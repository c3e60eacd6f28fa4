"""Links of plans: those between pairs of GPUs, messages between stages, errors by kind of plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tutti.platforms.files.presets import platform_of
from tutti.platforms.files.scaled import scaled
from tutti.platforms.npus import npu
from tutti.training.endpoint import configurations
from tutti.training.plan import Cluster, Plan, estimate, ranked
from tutti.training.plan.simulate import _extrapolated, as_planned, simulate, step_of
from tutti.training.plan.timing import StepTiming
from tutti.workloads import Parallelism, build
from tutti.workloads.pieces import Pieces


def cluster(gpu: str, platform: str, gpus: int) -> Cluster:
    raw = platform_of(platform, folder=Path(), source="test")
    return Cluster(platform=scaled(raw, gpus, source="test"), npu=npu(gpu))


@pytest.mark.parametrize(
    ("kinds", "data"),
    [
        (Parallelism(context=8, pipeline=2, interleaved=8, micro_batches=8, zero=1), 1),
        (Parallelism(tensor=8, sequence=True, pipeline=2, micro_batches=4), 1),
        (Parallelism(tensor=4, sequence=True, context=2, pipeline=2, micro_batches=4, zero=1), 1),
        (Parallelism(zero=1), 16),
    ],
)
def test_groups_on_links_between_pairs_are_near_the_simulation(
    kinds: Parallelism, data: int
) -> None:
    """A group of n GPUs of an MI300X host has n - 1 links per GPU, not one."""
    where = cluster("mi300x", "mi300x_cluster", 16)
    pieces = Pieces(build("llama3_8b:tokens=4096"))
    plan = Plan(kinds=replace(kinds, recompute="selective"), data=data, micro_batch=1)
    quick, exact = estimate(pieces, plan, where), simulate(pieces, plan, where)
    assert quick.step == pytest.approx(exact.step, rel=0.05)


def test_a_library_answers_for_links_between_pairs_only() -> None:
    assert cluster("mi300x", "mi300x", 8).pairwise_library is not None
    assert cluster("h100", "dgx_h100_cluster", 8).pairwise_library is None


def test_errors_of_the_closed_form_apply_to_plans_of_the_same_kind() -> None:
    listed = ranked(build("llama3_8b:tokens=2048"), cluster("h100", "dgx_h100_cluster", 8), 8)
    first = listed.fitting[0]
    shown = replace(first, simulated=first.estimated.times(1.2))
    others = listed.with_simulated([shown]).fitting
    assert {one.kind for one in others if one.correction != 1.0} == {first.kind}
    assert sorted({one.correction for one in others}) == pytest.approx([1.0, 1.2])


def test_messages_between_stages_are_exposed_in_each_micro_batch() -> None:
    """They have their own kind, and few micro-batches have few of them."""

    def run(micro_batches: int) -> StepTiming:
        exposed = {"pipeline": 0.5 * micro_batches, "data": 3.0}
        return StepTiming(compute=float(micro_batches), exposed=exposed)

    found = _extrapolated(run, Parallelism(pipeline=2, micro_batches=16))
    assert found.exposed == {"pipeline": 8.0, "data": 3.0}
    kinds = Parallelism(pipeline=8, interleaved=2, micro_batches=24, zero=1, recompute="selective")
    model, where = (
        build("gpt:layers=16,hidden=1024,tokens=2048"),
        cluster("h100", "dgx_h100_cluster", 16),
    )
    few = simulate(Pieces(model), plan := Plan(kinds=kinds, data=2, micro_batch=1), where)
    complete = step_of(model, plan, where).run(configurations()["ideal"])
    every = as_planned(complete, Pieces(model), plan, where)
    assert few.exposed["pipeline"] == pytest.approx(every.exposed["pipeline"], rel=0.01)
    assert every.exposed["pipeline"] > 1e-4
    assert few.step == pytest.approx(every.step, rel=0.01)
