"""Steps whose collectives take the time of their simulation alone.

Those of a library take the time that its own model predicts. Any platform works, also those whose
network model cannot interleave with a step: cost models without a topology, flits, and a mesh with
several hops per cycle. Collectives of different groups and messages do not share links.
"""

from __future__ import annotations

import math
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
    from collections.abc import Sequence

    from tutti.platforms.machine import Platform
    from tutti.schedules.ir import Schedule
    from tutti.training.fabric import StepNetwork


def isolated(network: StepNetwork, programs: Sequence[_core.TrainingProgram]) -> _core.StepFabric:
    """Returns a fabric on which each transfer takes as long as alone.

    Args:
        network: The platform, and an algorithm for each collective.
        programs: The programs of the step.

    Raises:
        WorkloadError: There is no platform, a collective has no algorithm, or a platform with a
            topology has groups of some of its NPUs, or messages.
        AlgorithmError: An algorithm does not fit its collective.
        SimulationError: The simulation of a collective fails.
    """
    platform = network.platform
    if platform is None:
        message = "`detail = isolated` needs a platform: expected `platform`, or packets"
        raise WorkloadError(message, kind="not_in_flows")
    transfers = sorted({one for program in programs for one in program.transfers})
    issued = (each for program in programs for each in program.issued)
    messages = sorted({sent.size for sent in issued if sent.kind == "send"})
    network.check_collectives(transfers)
    collectives = [(one, _time(network, platform, one)) for one in transfers]
    hops = [(size, _message(platform, size)) for size in messages]
    return _core.StepFabric.isolated(network.sizes, collectives, hops)


def _time(network: StepNetwork, platform: Platform, transfer: _core.Transfer) -> int:
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
    if _has_topology(platform) and ranks != math.prod(network.sizes):
        message = (
            f"{collective} on groups of {ranks} NPUs of {platform.name}: expected groups of all "
            "NPUs, or a platform without a topology"
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


def _message(platform: Platform, size: int) -> int:
    if _has_topology(platform):
        message = (
            f"messages between stages on {platform.name}: expected no pipeline, or a platform "
            "without a topology"
        )
        raise WorkloadError(message, kind="not_in_flows")
    pair = lay_out("knomial", collective="broadcast", ranks=2, root=0, routes=None)
    # Messages need no launch, as collectives do.
    return _simulated(pair, platform, size) - platform.model.launch.ps


def _simulated(schedule: Schedule, platform: Platform, size: int) -> int:
    return simulate(schedule, platform, size=Size(bytes=size), datatype="int8").completion_ps


def _has_topology(platform: Platform) -> bool:
    return platform.routes is not None or platform.effective_contention.kind == "mesh"
