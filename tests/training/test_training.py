"""Training steps: costs of endpoints, and sums of parts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from training_steps import rings, small
from tutti.base.units import Size, TimePerByte
from tutti.topologies.errors import TopologyError
from tutti.training.endpoint import AceSettings, Configuration, Npu, configurations, torus
from tutti.training.errors import EndpointError
from tutti.training.runs import alike
from tutti.training.step import Step
from tutti.workloads.errors import WorkloadError
from tutti.workloads.model import Model, Tables, linear

if TYPE_CHECKING:
    from tutti.training.results import TrainingResult

RATE = TimePerByte.parse


@pytest.mark.parametrize("name", list(configurations()))
def test_parts_sum_to_the_total(name: str) -> None:
    run = small().run(configurations()[name])
    parts = run.record.breakdown()
    times = (parts.compute_ps, parts.overlap_ps, parts.exposed_ps, parts.idle_ps)
    assert sum(times) == run.total.ps
    computed = sum(
        task.amount
        for task in small().programs(run.configuration)[0].tasks
        if task.kind == "compute"
    )
    assert run.compute == computed


@pytest.mark.parametrize(
    ("size", "factor"),
    [((4, 2, 2), 2.0), ((4, 4, 2), 2.125), ((4, 4, 4), 2.25), ((4, 8, 4), 2.3125)],
)
def test_injected_bytes(size: tuple[int, int, int], factor: float) -> None:
    """X = 2 (L-1)/L + 2 (V-1)/(VL) + 2 (H-1)/(HL) for each byte of gradients."""
    for name in ("ace", "comm_opt", "ideal"):
        run = small(rings=rings(*size)).run(configurations()[name])
        gradients = 2 * 2 * run.step.model.parameters
        assert run.sent == gradients * factor


def test_the_baseline_reads_what_the_paper_counts() -> None:
    run = small().run(configurations()["comm_opt"])
    assert run.read == 1.5 * run.sent
    apart = small().run(replace(configurations()["comm_opt"], fused=False))
    assert apart.read > run.read


def test_ace_reads_each_byte_once() -> None:
    run = small().run(configurations()["ace"])
    assert run.read == 2 * 2 * run.step.model.parameters


def collective(configuration: Configuration, megabytes: int = 64) -> TrainingResult:
    """One all-reduce, alone, on 4 x 4 x 4."""
    side = 1024
    layers = (linear("one", side, megabytes * 512, first=True),)
    model = Model(name="one", source="made up", layers=layers, samples="rows")
    torus = rings(4, 4, 4)
    step = Step(model=model, batch=1, rings=torus, iterations=1, efficiency=0.94)
    return step.run(configuration)


@pytest.mark.parametrize(("memory", "expected"), [("64 GB/s", 42.7), ("128 GB/s", 85.3)])
def test_memory_bounds_the_baseline(memory: str, expected: float) -> None:
    """Two thirds of the bandwidth that it may read with reach the network."""
    base = Configuration(name="b", kind="baseline", memory=RATE(memory), sms=79)
    assert collective(base).network_rate / 1e9 == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize(("sms", "expected"), [(1, 53.3), (2, 106.7), (4, 213.3)])
def test_sms_bound_the_baseline(sms: int, expected: float) -> None:
    """80 GB/s each, 1.5 reads a byte."""
    base = Configuration(name="b", kind="baseline", sms=sms)
    assert collective(base).network_rate / 1e9 == pytest.approx(expected, rel=0.05)


def test_memory_bounds_ace() -> None:
    """A byte that is read once is sent 2.25 times."""
    ace = replace(configurations()["ace"], memory=RATE("32 GB/s"))
    assert collective(ace).network_rate / 1e9 == pytest.approx(72, rel=0.03)


@settings(max_examples=15)
@given(memory=st.sampled_from(["16 GB/s", "64 GB/s", "128 GB/s"]), megabytes=st.integers(1, 4))
def test_ace_is_never_slower_than_a_baseline_of_its_memory(memory: str, megabytes: int) -> None:
    """If memory bounds both; ideal is never slower than either."""
    ace = replace(configurations()["ace"], memory=RATE(memory))
    base = Configuration(name="b", kind="baseline", memory=RATE(memory), sms=79)
    times = [collective(one, megabytes).total for one in (configurations()["ideal"], ace, base)]
    assert times == sorted(times)


def test_one_npu_represents_all() -> None:
    for configuration in configurations().values():
        one = small().run(configuration)
        every = small(every_npu=True).run(configuration)
        assert every.record.npus == 16
        assert every.total == one.total
        for npu in range(16):
            assert every.record.breakdown(npu) == one.record.breakdown()
            assert every.record.links(npu) == one.record.links()


def test_tables_in_the_background_leave_the_loop() -> None:
    """Layers bound by arithmetic lose 1 of 80 SMs, and the loop loses lookups and updates."""
    layers = tuple(linear(f"l{i}", 4096, 4096, first=i == 0) for i in range(5))
    tables = Tables(tables=64, dimension=64, lookups=10, bottom=2)
    model = Model(name="m", source="made up", layers=layers, samples="rows", tables=tables)
    torus = rings(4, 2, 2)
    step = Step(model=model, batch=4096, rings=torus, iterations=4, efficiency=0.94)
    ace = configurations()["ace"]
    inside, background = step.run(ace), step.run(replace(ace, background=True))
    _, _, first, second = inside.record.iterations()
    _, _, third, fourth = background.record.iterations()
    assert fourth - third < second - first
    kinds = [task.kind for task in step.programs(background.configuration)[0].tasks]
    assert kinds.count("background") == 6


@pytest.mark.parametrize(
    ("ace", "problem"),
    [
        (AceSettings(sram=Size.parse("64 KiB")), "cannot hold a chunk"),
        (AceSettings(fsms=(1, 1, 1)), "3 FSMs cannot process 4 phases"),
        (AceSettings(fsms=3), "3 FSMs cannot process 4 phases"),
        (AceSettings(shares=(1, 1)), "expected 5, one per partition"),
    ],
)
def test_invalid_ace_is_refused(ace: AceSettings, problem: str) -> None:
    with pytest.raises(EndpointError, match=problem):
        small().run(replace(configurations()["ace"], ace=ace))


def test_invalid_steps_are_refused() -> None:
    with pytest.raises(EndpointError, match="no SM"):
        small().run(Configuration(name="b", kind="baseline", sms=0))
    with pytest.raises(EndpointError, match="80 of 80 SMs"):
        small().run(Configuration(name="b", kind="baseline", sms=80))
    with pytest.raises(EndpointError, match="leaves no memory"):
        small().run(Configuration(name="b", kind="ace", memory=RATE("900 GB/s")))
    with pytest.raises(WorkloadError, match="0 iterations"):
        small(iterations=0).run(configurations()["ideal"])
    with pytest.raises(TopologyError, match="has no links"):
        torus(rings(1, 1, 1))


def test_sms_for_communication_do_not_compute() -> None:
    """450 GB/s and 6 of 80 SMs set aside leave 450 GB/s and 111 TFLOP/s."""
    per_second, memory = configurations()["comm_opt"].compute(Npu())
    assert per_second == 111 * 10**12
    assert memory == RATE("450 GB/s")
    per_second, memory = configurations()["comp_opt"].compute(Npu())
    assert (per_second, memory) == (117 * 10**12, RATE("772 GB/s"))
    assert configurations()["no_overlap"].compute(Npu()) == (120 * 10**12, RATE("900 GB/s"))


def test_iterations_repeat_until_the_period_is_stable() -> None:
    run = small(iterations="stable").run(configurations()["ace"])
    assert run.is_stable
    assert run.iterations in (4, 8, 16, 32, 64)
    ends = run.record.iterations()
    assert run.period.ps == ends[-1] - ends[-2] == pytest.approx(ends[-2] - ends[-3], rel=1e-3)
    assert not small(iterations=2).run(configurations()["ace"]).is_stable


def test_compared_runs_have_equal_iterations() -> None:
    runs = [small(iterations=count).run(configurations()["ideal"]) for count in (2, 4)]
    assert [run.iterations for run in alike(runs)] == [4, 4]
