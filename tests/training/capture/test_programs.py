"""Captured steps as files and programs, without torch."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from tutti.base.errors import TuttiError
from tutti.base.units import TimePerByte
from tutti.cli import options
from tutti.cli.compare import Compared
from tutti.platforms.npus import npu
from tutti.training.capture.files import read_step, write_step
from tutti.training.capture.grid import Grid, pairs_of, ranks_of
from tutti.training.capture.kernels import KernelTimes
from tutti.training.capture.programs import CapturedWork
from tutti.training.capture.record import (
    MEMORY_KINDS,
    CapturedStep,
    Exchange,
    Group,
    MemoryChange,
    Operator,
    Role,
)
from tutti.training.capture.streams import Order
from tutti.training.capture.summary import modules, peak
from tutti.training.capture.view import memory_tables
from tutti.training.errors import CaptureError
from tutti.training.files.step_file import load_training
from tutti.training.plan.efficiency import Setting
from tutti.training.spans import spans
from tutti.training.view.captured import captured_remarks

if TYPE_CHECKING:
    from pathlib import Path

LEFT = (10**15, TimePerByte.parse("3 TB/s"))
GATHER = Exchange("all_gather", 0, 1 << 20)


def computed(module: str, after: tuple[int, ...] = (), size: int = 3_000_000) -> Operator:
    return Operator("aten.add", module, "forward", 0, "memory", after, bytes=size)


def gathered(after: tuple[int, ...] = ()) -> Operator:
    return Operator("c10d.gather", "layers.1", "forward", -1, "collective", after,
                    bytes=GATHER.bytes, exchange=GATHER)  # fmt: skip


def step_of(*operators: Operator, ranks: int = 16) -> CapturedStep:
    group = Group("mesh_dp", tuple(range(ranks)))
    memory = (MemoryChange(0, 100, "a", "parameters"), MemoryChange(1, 50, "b", "temporary"),
              MemoryChange(2, -50, "b", "temporary"))  # fmt: skip
    role = Role(0, operators, (group,), 10, 160, memory, ("a remark",))
    return CapturedStep(script="train.py", world_size=ranks, torch="2.9", roles=(role,))


def work_of(step: CapturedStep) -> CapturedWork:
    setting = Setting(npu="h100", precision="bf16")
    return CapturedWork(step=step, kernels=KernelTimes(peaks=npu("h100"), setting=setting))


def test_consecutive_operators_of_a_block_are_one_task() -> None:
    """The gather waits for the first operator only, so that the second starts a task."""
    step = step_of(computed("layers.0.a"), gathered((0,)), computed("layers.0.b", (0,)),
                   computed("layers.0.c", (2,)), computed("layers.1.a", (1, 3)))  # fmt: skip
    (program,) = work_of(step).programs(LEFT)
    tasks = [(task.layer, task.amount) for task in program.tasks if task.kind == "compute"]
    assert tasks == [("layers.0 forward", 10**6), ("layers.0 forward", 2 * 10**6),
                     ("layers.1 forward", 10**6)]  # fmt: skip


def test_copies_on_another_stream_overlap_a_block(tmp_path: Path) -> None:
    """FSDP2 copies the shards of the next block while a block computes, then gathers them."""
    copied = replace(computed("layers.1"), stream=1)
    step = step_of(computed("layers.0.a", size=300_000_000_000), copied, gathered((1,)),
                   computed("layers.1.a", (0, 2)))  # fmt: skip
    write_step(tmp_path, step)
    training = load_training(tmp_path, ["platform=dgx_h100_cluster"])
    run = training.step.run(training.configurations[0])
    lanes = [one.lane for one in spans(run) if not one.is_collective]
    assert sorted(lanes) == ["background", "compute", "compute"]
    assert run.exposed == 0


def test_slow_ranks_take_longer() -> None:
    (program,) = work_of(step_of(computed("a"))).programs(LEFT, slowdown=1.5)
    assert [task.amount for task in program.tasks] == [1_500_000]


@pytest.mark.parametrize("strides", [[(1, 8)], [(8, 4)], [(1, 2), (8, 2)], [(2, 4), (16, 4)]])
def test_groups_are_strides(strides: list[tuple[int, int]]) -> None:
    ranks = ranks_of(3, strides)
    assert ranks_of(*pairs_of(ranks)) == ranks


def test_a_grid_has_the_digits_of_all_groups() -> None:
    grid = Grid.of(64, [range(8), range(0, 64, 8), range(0, 16, 8)])
    assert [one.nodes for one in grid.digits] == [8, 2, 4]
    assert grid.mask(range(0, 64, 8)) == 0b110
    with pytest.raises(CaptureError, match="divide each other"):
        Grid.of(12, [range(0, 8, 2), range(0, 12, 3)])
    with pytest.raises(CaptureError, match="a grid of ranks"):
        pairs_of((0, 1, 5))


def stage_of(rank: int, *exchanges: tuple[str, int, int | None]) -> Role:
    """Returns a stage of two ranks: groups of its pipeline, and of the first and the last stage."""
    groups = (Group("pipeline", (0, 2, 4, 6)), Group("tied", (0, 6)))
    operators = [computed("a")]
    for name, group, peer in exchanges:
        to = Exchange(name, group, 1 << 20, peer)
        after, stream = (len(operators) - 1,), -1 - group
        operators.append(Operator(name, "", "backward", stream, "collective", after,
                                  bytes=to.bytes, exchange=to))  # fmt: skip
    return Role(rank, tuple(operators), groups)


def test_two_ranks_outside_of_the_mesh_exchange_messages(tmp_path: Path) -> None:
    """Megatron's first and last stage sum the gradients of the embedding that they share."""
    tied = ("all_reduce", 1, None)
    roles = (
        stage_of(0, ("send", 0, 2), tied),
        stage_of(2, ("recv", 0, 0), ("send", 0, 4)),
        stage_of(4, ("recv", 0, 2), ("send", 0, 6)),
        stage_of(6, ("recv", 0, 4), tied),
    )
    step = CapturedStep(script="train.py", world_size=8, torch="2.9", roles=roles)
    work = work_of(step)
    assert work.assignment.apart == {(0, 6)}
    assert [one.nodes for one in work.dimensions] == [2, 4]
    messages = [(one.exchange.collective, one.exchange.peer, one.after)
                for one in work.tasks(roles[0], LEFT) if one.exchange]  # fmt: skip
    assert messages == [("send", 2, {0}), ("send", 6, {1}), ("recv", 6, {1})]
    write_step(tmp_path, step)
    training = load_training(tmp_path, ["platform=dgx_h100_cluster"])
    run = training.step.run(training.configurations[0])
    assert run.total.ps > 4 * 10**6
    assert any("two ranks outside of the mesh" in line for line in captured_remarks(work))
    other = replace(step, roles=(stage_of(0, ("broadcast", 1, None)), *roles[1:]))
    with pytest.raises(CaptureError, match="rank 0 calls broadcast in a group of the ranks 0 and"):
        work_of(other).programs(LEFT)


def test_roles_may_name_their_ranks(tmp_path: Path) -> None:
    """Ranks that take another branch of the program differ in no digit of the process groups."""
    (role,) = step_of(computed("a"), gathered((0,))).roles
    slow = replace(
        role, rank=3, ranks=(3, 4, 9), operators=(computed("a", size=10**9), gathered((0,)))
    )
    step = replace(step_of(), roles=(role, slow))
    assert work_of(step).numbers() == [0] * 3 + [1] * 2 + [0] * 4 + [1] + [0] * 6
    write_step(tmp_path, step)
    assert read_step(tmp_path) == step
    training = load_training(tmp_path, ["platform=dgx_h100_cluster"])
    run = training.step.run(training.configurations[0])
    assert run.total.ps > 10**9 / 3.35e12 * 1e12
    path = tmp_path / "step.json"
    path.write_text(path.read_text().replace("9,", "16,").replace("9\n", "16\n"))
    with pytest.raises(CaptureError, match="a role has ranks outside 0 to 15"):
        read_step(tmp_path)


def test_ranks_without_a_captured_role_are_refused() -> None:
    to = Exchange("send", 0, 64, peer=8)
    sends = Operator("send", "", "forward", -9, "message", bytes=64, exchange=to)
    with pytest.raises(CaptureError, match="rank 8 has the role of none"):
        work_of(step_of(sends)).numbers()


def test_events_and_streams_order_operators() -> None:
    order = Order()
    assert order.issue(0, stream=0) == ()
    point = order.point(0)
    assert order.issue(1, stream=0) == (0,)
    order.wait(1, point)
    assert order.issue(2, stream=1) == (0,)
    order.wait(0, order.point(1))
    assert order.issue(3, stream=0, reads=[2]) == (1, 2)


def test_the_peak_is_by_kind() -> None:
    (role,) = step_of(computed("a")).roles
    assert peak(role).kinds == {"parameters": 100, "temporary": 50}


def test_memory_of_modules_is_by_kind_and_adds_up() -> None:
    memory = (MemoryChange(0, 100, "", "parameters"), MemoryChange(1, 30, "layers.0", "gathered"),
              MemoryChange(1, 40, "layers.11", "gathered"),
              MemoryChange(2, 50, "layers.1", "other"),
              MemoryChange(2, -50, "layers.1", "other"))  # fmt: skip
    (role,) = step_of(computed("a")).roles
    found = modules(replace(role, memory=memory))
    assert [(one.module, one.kind, one.bytes) for one in found] == [
        ("no module", "parameters", 100), ("layers.*", "gathered", 70), ("layers.*", "other", 50),
    ]  # fmt: skip


def test_tables_of_memory_fit_into_80_columns() -> None:
    """Headings and units are complete, whatever a rank holds."""
    memory = tuple(MemoryChange(0, 320 << at, "layers.0", kind)
                   for at, kind in enumerate(MEMORY_KINDS))  # fmt: skip
    step = step_of(computed("a"))
    step = replace(step, roles=(replace(step.roles[0], rank=10_000, memory=memory),))
    console = Console(width=80, file=io.StringIO())
    with console.capture() as captured:
        for table in memory_tables(step):
            console.print(table)
    words = captured.get().split()
    assert {"rank", "peak", *MEMORY_KINDS} <= set(words)
    assert words.count("10000") == 2


def test_compare_refuses_a_step_with_the_commands_that_run_it(tmp_path: Path) -> None:
    write_step(tmp_path, step_of(computed("a")))
    with pytest.raises(TuttiError, match="is a captured training step") as error:
        options.experiment(Compared(), tmp_path)
    assert f"`tutti train run {tmp_path} --platform NAME`" in (error.value.hint or "")


def test_steps_are_written_read_and_run(tmp_path: Path) -> None:
    step = step_of(computed("layers.0.a"), gathered((0,)), computed("layers.1.a", (0, 1)))
    write_step(tmp_path, step)
    assert read_step(tmp_path) == step
    training = load_training(tmp_path, ["platform=dgx_h100_cluster"])
    run = training.step.run(training.configurations[0])
    assert run.compute == sum(training.step.captured.kernels.times(  # type: ignore[union-attr]
        step.roles[0].operators, (10**15, npu("h100").memory_bandwidth)))  # fmt: skip
    assert run.exposed > 0


@pytest.mark.parametrize(
    ("key", "value"),
    [("format", "tutti.captured_step/9"), ("world_size", 4), ("roles", []), ("torch", 3)],
)
def test_damaged_steps_are_refused(key: str, value: object, tmp_path: Path) -> None:
    path = write_step(tmp_path, step_of(computed("a"), gathered((0,))))
    tables = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(tables | {key: value}), encoding="utf-8")
    with pytest.raises(CaptureError, match=r"step\.json|a group has ranks"):
        read_step(tmp_path)


def test_dependencies_on_later_operators_are_refused(tmp_path: Path) -> None:
    write_step(tmp_path, step_of(replace(computed("a"), after=(4,))))
    with pytest.raises(CaptureError, match="out of range"):
        read_step(tmp_path)


def test_folders_without_a_step_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TuttiError, match=r"step\.json"):
        load_training(tmp_path)
