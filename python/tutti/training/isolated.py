"""Steps whose collectives take the time of their simulation alone.

Those of a library take the time that its own model predicts. Any platform works, also those whose
network model cannot interleave with a step: cost models without a topology, flits, and a mesh with
several hops per cycle. On a topology with flows, groups of some of the NPUs take the time in which
all such groups perform the collective at once, and a message the time in which every NPU sends one:
equal groups share links. Different collectives and messages do not.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

from tutti import _core
from tutti.base.errors import TuttiError
from tutti.base.units import Size
from tutti.collectives.request import lay_out
from tutti.collectives.simulation import simulate
from tutti.schedules.errors import AlgorithmError
from tutti.schedules.ir import candidates
from tutti.training.fabric import AUTO
from tutti.training.library import predicted
from tutti.workloads.errors import WorkloadError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tutti.platforms.machine import Platform
    from tutti.schedules.ir import Schedule
    from tutti.training.endpoint import Configuration
    from tutti.training.fabric import StepNetwork
    from tutti.training.step import Step


def check_detail(step: Step, configuration: Configuration) -> None:
    """Refuses what a step without packets does not honour.

    Raises:
        WorkloadError: The endpoint is not ideal, there is no platform, or windows are recorded.
    """
    problem = None
    if step.platform is None:
        problem = f"`detail = {step.detail}` needs a platform: expected one, or packets"
    elif configuration.kind != "ideal":
        name = configuration.name
        problem = f"`detail = {step.detail}` does not simulate the endpoint of {name}"
        problem += ": expected the configuration ideal, or packets"
    elif step.window is not None:
        problem = f"`detail = {step.detail}` records no utilisation over time"
        problem += ": expected no window"
    if problem:
        raise WorkloadError(problem, kind="not_in_flows")


def isolated(
    network: StepNetwork,
    programs: Sequence[_core.TrainingProgram],
    run: Callable[[_core.StepFabric, _core.TrainingProgram], int],
) -> _core.StepFabric:
    """Returns a fabric on which each transfer takes as long as alone.

    Args:
        network: The platform, and an algorithm for each collective.
        programs: The programs of the step.
        run: Returns the time in ps of a program that every NPU of a fabric executes, with flows.

    Raises:
        WorkloadError: There is no platform, a collective has no algorithm, or a platform with a
            topology but without flows has groups of some of its NPUs, or messages.
        AlgorithmError: An algorithm does not fit its collective.
        SimulationError: The simulation of a collective fails.
    """
    platform = network.platform
    if platform is None:
        message = "`detail = isolated` needs a platform: expected `platform`, or packets"
        raise WorkloadError(message, kind="not_in_flows")
    transfers = sorted({one for program in programs for one in program.transfers})
    issued = (each for program in programs for each in program.issued)
    messages = sorted({(sent.size, sent.mask) for sent in issued if sent.kind == "send"})
    network.check_collectives(transfers)
    groups = _Groups(network, transfers, run)
    collectives = [(one, _time(network, platform, one, groups)) for one in transfers]
    hops: dict[int, int] = {}
    for size, mask in messages:
        hops[size] = max(hops.get(size, 0), _message(platform, size, mask, groups))
    return _core.StepFabric.isolated(network.sizes, collectives, sorted(hops.items()))


class _Groups:
    """Collectives and messages that all groups of a platform with flows perform at once."""

    def __init__(
        self,
        network: StepNetwork,
        transfers: Sequence[_core.Transfer],
        run: Callable[[_core.StepFabric, _core.TrainingProgram], int],
    ) -> None:
        self._network, self._transfers, self._run = network, transfers, run

    @cached_property
    def _fabric(self) -> _core.StepFabric:
        return self._network.fabric(self._transfers, self._run)

    def collective(self, transfer: _core.Transfer) -> int:
        """Returns the time in ps in which all groups perform a collective."""
        return self._run(self._fabric, _core.TrainingProgram.alone(transfer))

    def message(self, size: int, mask: int) -> int:
        """Returns the time in ps in which every NPU sends a message to the next of its group."""
        sides = {"send": 1, "recv": self._network.group_size(mask) - 1}
        tasks = [
            _core.TraceTask(
                side,
                after=[],
                exchange=_core.Message(side, mask, ahead=ahead, size=size, tag=0),
            )
            for side, ahead in sides.items()
        ]
        return self._run(self._fabric, _core.TrainingProgram.of_tasks(tasks))


def _time(
    network: StepNetwork, platform: Platform, transfer: _core.Transfer, groups: _Groups
) -> int:
    """Returns the time of a collective in ps."""
    collective, mask = transfer.collective, transfer.mask
    ranks = network.group_size(mask)
    given = network.algorithm(collective, mask)
    if by_library := network.library_of(collective, mask):
        try:
            return predicted(network, by_library, transfer).time_ps
        except AlgorithmError:
            if given is not None:
                raise
    if ranks != math.prod(network.sizes) and _has_flows(platform):
        return groups.collective(transfer)
    if _has_topology(platform) and ranks != math.prod(network.sizes):
        message = (
            f"{collective} on groups of {ranks} NPUs of {platform.name}: expected groups of all "
            "NPUs, flows, or a platform without a topology"
        )
        raise WorkloadError(message, kind="not_in_flows")
    if given is None or isinstance(given, tuple):
        message = f"{collective} has no single algorithm: expected one in `algorithms`"
        raise WorkloadError(message, kind="not_in_flows")
    routes = platform.routes
    notations = candidates(collective, ranks, root=0, routes=routes) if given == AUTO else [given]
    times = []
    for notation in notations:
        try:
            schedule = lay_out(notation, collective=collective, ranks=ranks, root=0, routes=routes)
            times.append(_simulated(schedule, platform, transfer.size))
        except TuttiError:
            if given != AUTO:
                raise
    if not times:
        raise AlgorithmError(f"no algorithm performs {collective} on groups of {ranks} NPUs")
    return min(times)


def _message(platform: Platform, size: int, mask: int, groups: _Groups) -> int:
    """Returns the time of a message in ps."""
    if _has_flows(platform):
        return groups.message(size, mask)
    if _has_topology(platform):
        message = (
            f"messages between stages on {platform.name}: expected no pipeline, flows, or a "
            "platform without a topology"
        )
        raise WorkloadError(message, kind="not_in_flows")
    pair = lay_out("knomial", collective="broadcast", ranks=2, root=0, routes=None)
    # Messages need no launch, as collectives do.
    return _simulated(pair, platform, size) - platform.model.launch.ps


def _simulated(schedule: Schedule, platform: Platform, size: int) -> int:
    return simulate(schedule, platform, size=Size(bytes=size), datatype="int8").completion_ps


def _has_topology(platform: Platform) -> bool:
    return platform.routes is not None or platform.effective_contention.kind == "mesh"


def _has_flows(platform: Platform) -> bool:
    return platform.routes is not None and platform.effective_contention.kind == "flow"
