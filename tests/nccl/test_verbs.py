"""One question, one answer: the verbs that price a collective agree with `nccl explain`.

`trace run`, and `train run` in isolation, take its number. `train run` with flows is at least that
number, and within `ABOVE` of it without other traffic. `sweep` and `explore` have the rows of
`compare`, whose agreement test_one_answer.py tests.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest

from called import call
from tutti import _core
from tutti.base.units import Size
from tutti.collectives.lowering import timed
from tutti.collectives.simulation import simulate_trace
from tutti.nccl import choose
from tutti.nccl.of_platform import LibraryTimes
from tutti.nccl.presets import partial_system
from tutti.platforms import platform
from tutti.platforms.files.presets import find_platform
from tutti.platforms.files.scaled import scaled
from tutti.training.endpoint import Npu, configurations, fabric_settings
from tutti.training.fabric import Dimension, StepNetwork
from tutti.training.library import by_library, members, predicted
from tutti.workloads.operations import CollectiveCall, Kind, Operations, Trace

if TYPE_CHECKING:
    from tutti.platforms.machine import Platform
    from tutti.training.fabric import Transfer

SIZES = ("1 MiB", "16 MiB", "256 MiB", "1 GiB", "8 GiB")
ABOVE = 0.05
"""The most by which flows without other traffic exceed NCCL's model."""


class Question(NamedTuple):
    """A platform, its NCCL system, and a group along some dimensions of its GPUs.

    Attributes:
        platform: The platform.
        system: The NCCL system.
        dimensions: The dimensions of the GPUs, innermost first.
        mask: The dimensions of the group, a bit each.
        layout: The nodes of the group, and its GPUs on each.
    """

    platform: str
    system: str
    dimensions: tuple[int, ...]
    mask: int
    layout: tuple[int, int]

    @property
    def gpus(self) -> int:
        return int(np.prod(self.dimensions))

    @property
    def where(self) -> Platform:
        found = platform(self.platform)
        if found.routes is not None and found.routes.topology.ranks == self.gpus:
            return found
        raw = find_platform(self.platform, folder=Path())
        return scaled(raw, self.gpus, source="test")

    @property
    def group(self) -> tuple[int, ...]:
        return members(self.dimensions, self.mask)[0]

    def network(self, where: Platform) -> StepNetwork:
        rings = tuple(Dimension(f"d{at}", size) for at, size in enumerate(self.dimensions))
        return StepNetwork(rings=rings, platform=where, library=True)


QUESTIONS = [
    Question("dgx_a100", "dgx_a100", (8,), 1, (1, 8)),
    Question("dgx_a100_cluster", "dgx_a100", (16,), 1, (2, 8)),
    Question("dgx_h100", "dgx_h100", (8,), 1, (1, 8)),
    Question("dgx_h100_cluster", "dgx_h100", (16,), 1, (2, 8)),
    Question("dgx_h100_cluster", "dgx_h100", (32,), 1, (4, 8)),
    Question("dgx_h100_cluster", "dgx_h100", (8, 4), 2, (4, 1)),
    Question("dgx_h100_cluster", "dgx_h100", (4, 2, 2), 5, (2, 4)),
    Question("rail_only_h100", "dgx_h100", (16,), 1, (2, 8)),
    Question("mare_nostrum_5_gpus", "mare_nostrum_5", (16, 40), 1, (4, 4)),
    Question("dgx_b200", "dgx_b200", (8,), 1, (1, 8)),
    Question("dgx_b200_cluster", "dgx_b200", (16,), 1, (2, 8)),
    Question("gb200_nvl72", "gb200_nvl72", (72,), 1, (1, 72)),
    Question("gb200_nvl72", "gb200_nvl72", (8, 9), 1, (1, 8)),
]
NAMES = [f"{one.platform}-{one.layout[0]}x{one.layout[1]}" for one in QUESTIONS]


def explained_ps(question: Question, collective: str, size: int) -> int:
    """Returns the time of `nccl explain`."""
    system = partial_system(question.system, *question.layout)
    return round(choose(system, collective, size, "2.28").time * 1e6)


def of_trace(question: Question, collective: str, size: int) -> int:
    """Returns the time of a trace with one collective, as `trace run` has it."""
    where, group = question.where, question.group
    empty = np.zeros(0, np.int64)
    started = Operations(
        kinds=np.array([Kind.COLLECTIVE], np.uint8),
        sizes=np.array([size]),
        durations=np.zeros(1, np.int64),
        peers=np.zeros(1, np.int32),
        tags=np.zeros(1, np.int64),
        streams=np.zeros(1, np.int32),
        first_dependency=np.zeros(2, np.int64),
        dependencies=empty,
        on_start=empty.astype(np.bool_),
    )
    idle = started.replaced(
        **{name: getattr(started, name)[:0] for name in ("kinds", "sizes", "durations", "peers")},
        tags=empty,
        streams=empty.astype(np.int32),
        first_dependency=np.zeros(1, np.int64),
    )
    ranks = tuple(started if rank in group else idle for rank in range(max(group) + 1))
    trace = Trace(name="one", ranks=ranks, collectives=(CollectiveCall(collective, group),))
    times = LibraryTimes.of(where)
    assert times is not None
    return simulate_trace(timed(trace, times), where).completion_ps


def of_flows(question: Question, collective: str, size: int) -> int:
    """Returns the time of a collective of all groups in a step with the detail `flows`."""
    where = question.where
    transfer: Transfer = (collective, question.mask, size, 0)
    fabric = question.network(where).fabric([transfer])
    sizes = {"chunk": Size.parse("64 KiB"), "message": Size.parse("8 KiB")}
    settings = fabric_settings(
        *sizes.values(), every_npu=True, detail="flows", launch=where.model.launch.ps
    )
    endpoint = configurations()["ideal"].endpoint(Npu(), fabric, transfers=[transfer], **sizes)
    program = _core.TrainingProgram.alone(transfer)
    return _core.simulate_training([program], fabric, endpoint, settings).end_ps


@pytest.mark.parametrize("question", QUESTIONS, ids=NAMES)
@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "all_to_all"])
def test_traces_and_isolated_steps_take_the_time_of_nccl(
    question: Question, collective: str
) -> None:
    network = question.network(question.where)
    for text in SIZES:
        size = Size.parse(text).bytes
        expected = explained_ps(question, collective, size)
        assert of_trace(question, collective, size) == pytest.approx(expected, abs=1)
        transfer = (collective, question.mask, size, 0)
        assert predicted(network, "nccl", transfer).time_ps == pytest.approx(expected, abs=1)


@pytest.mark.parametrize("question", QUESTIONS, ids=NAMES)
def test_steps_with_flows_take_at_least_the_time_of_nccl(question: Question) -> None:
    for text in SIZES if question.gpus < 72 else SIZES[::3]:
        size = Size.parse(text).bytes
        share = of_flows(question, "all_reduce", size) / explained_ps(question, "all_reduce", size)
        assert 1 - 1e-6 < share < 1 + ABOVE, (text, share)
