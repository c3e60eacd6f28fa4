"""Reservations of memory bandwidth: what they cost, hide, and return to computation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from training_steps import rings, small
from tutti import _core
from tutti.base.errors import ConfigError
from tutti.base.units import TimePerByte
from tutti.cli.app import app
from tutti.training.endpoint import Configuration, Npu, configurations
from tutti.training.errors import EndpointError
from tutti.training.files.step_file import load_training
from tutti.training.step import Step
from tutti.training.view import reservation
from tutti.workloads import build
from tutti.workloads.model import Model, linear

if TYPE_CHECKING:
    from pathlib import Path

RATE = TimePerByte.parse
CONFIGURATIONS = configurations()


def conserving(name: str, **changes: object) -> Configuration:
    changed = {"name": f"{name}_shared", "reservation": "work_conserving"} | changes
    return replace(CONFIGURATIONS[name], **changed)  # type: ignore[arg-type]


def resnet(batch: int, iterations: int = 1) -> Step:
    return Step(
        model=build("resnet50"),
        batch=batch,
        rings=rings(4, 4, 4),
        iterations=iterations,
        efficiency=0.94,
    )


@pytest.mark.parametrize("name", ["comm_opt", "comp_opt", "ace"])
def test_computation_has_what_the_endpoint_does_not_use(name: str) -> None:
    """Computation takes between the times on a complete NPU and with a static reservation."""
    step = small()
    static, shared = step.run(CONFIGURATIONS[name]), step.run(conserving(name))
    assert shared.complete_compute == static.complete_compute
    assert static.complete_compute < shared.compute < static.compute
    assert 0 < shared.reservation_cost < static.reservation_cost
    assert shared.bound.time.ps <= shared.total.ps < static.total.ps
    parts = shared.record.breakdown()
    times = (parts.compute_ps, parts.overlap_ps, parts.exposed_ps, parts.idle_ps)
    assert sum(times) == shared.total.ps
    assert replace(step, every_npu=True).run(conserving(name)).total == shared.total


def test_memory_bound_computation_loses_the_bytes_that_the_endpoint_reads() -> None:
    """Passes that memory bounds throughout, with all communication hidden, share 900 GB/s."""
    layers = tuple(linear(f"l{i}", 1024, 1024, first=i == 0) for i in range(8))
    model = Model(name="m", source="made up", layers=layers, samples="rows")
    step = Step(model=model, batch=32, rings=rings(4, 2, 1), iterations=1, efficiency=0.94)
    ace = conserving("ace", memory=RATE("64 GB/s"))
    run = step.run(ace)
    span = run.overlap
    busy = next(used for used in run.record.servers() if used.name == "memory").busy_ps
    # The endpoint reads while compute runs, or after it.
    lost = run.compute - run.complete_compute
    assert 0 < lost <= busy * 64 / 900 + len(run.program_of().tasks)
    assert span > 0


def test_the_break_even_follows_from_the_share_that_memory_bounds() -> None:
    """Below r / (B - r) x m no send rate suffices; m is summed here from the roofline."""
    npu = Npu()
    step = resnet(32)
    ace, apart = step.run(CONFIGURATIONS["ace"]), step.run(CONFIGURATIONS["no_overlap"])
    per_second, memory = npu.without(0, None)
    bound = {"arithmetic": 0, "memory": 0}
    for layer in step.model.layers:
        for which in ("forward", "input_gradient", "weight_gradient"):
            work = layer.work(which, 32, 2)
            ps, by = _core.roofline_time(work.flops, work.bytes, per_second, memory.core)
            bound[by] += ps
    share = bound["memory"] / sum(bound.values())
    assert reservation.memory_bound(ace) == pytest.approx(share)
    assert sum(bound.values()) == ace.complete_compute == apart.compute
    predicted = 128 / (900 - 128) * share
    exact = ace.reservation_cost / ace.complete_compute
    assert predicted == pytest.approx(0.166 * share, rel=2e-3)
    # Passes that become memory-bound only with the reservation add to the cost.
    assert predicted * (1 - 1e-6) <= exact <= 1.1 * predicted
    assert apart.exposed / apart.compute < exact
    assert ace.total > apart.total


def test_a_work_conserving_reservation_pays_off_below_the_break_even() -> None:
    step = resnet(32)
    runs = [step.run(CONFIGURATIONS["no_overlap"]), step.run(conserving("ace"))]
    assert runs[1].total < runs[0].total
    assert not list(reservation.losses(runs))


def test_losses_name_the_cost_and_the_cure() -> None:
    runs = [resnet(32).run(CONFIGURATIONS[name]) for name in ("no_overlap", "ace", "ideal")]
    (loss,) = reservation.losses(runs)
    assert loss.startswith("ace costs more than it hides")
    assert "work_conserving" in loss
    assert "banks" in loss
    names = [fact.name for fact in reservation.facts(runs)]
    assert names == ["reservation", "break-even", "break-even"]


@pytest.mark.parametrize(
    ("configuration", "problem"),
    [
        (conserving("ideal"), "uses no memory bandwidth"),
        (conserving("no_overlap"), "alternate"),
        (conserving("ace", memory=None), "no `memory` is reserved"),
    ],
)
def test_a_reservation_without_effect_is_refused(
    configuration: Configuration, problem: str
) -> None:
    with pytest.raises(EndpointError, match=problem):
        small().run(configuration)


FILE = """
model = "dlrm_small"
batch = 16
iterations = 1
[torus]
rings = [{{ name = "local", nodes = 4, rate = "200 GB/s", latency = "72 ns" }}]
[[configurations]]
name = "mine"
kind = "{kind}"
memory = "128 GB/s"
sms = 2
reservation = "work_conserving"
"""


def test_files_and_commands_choose_the_reservation(tmp_path: Path) -> None:
    path = tmp_path / "step.toml"
    path.write_text(FILE.format(kind="baseline"), encoding="utf-8")
    training = load_training(path)
    run = training.step.run(training.configurations[0])
    static = "configurations[0].reservation=static"
    other = load_training(path, [static])
    assert run.compute < other.step.run(other.configurations[0]).compute
    result = CliRunner().invoke(app, ["train", "run", str(path), "-o", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    path.write_text(FILE.format(kind="ideal"), encoding="utf-8")
    with pytest.raises(ConfigError, match="uses no memory bandwidth"):
        load_training(path)
