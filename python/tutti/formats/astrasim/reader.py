"""Runs workloads on networks and systems of ASTRA-sim 2, from unmodified files.

- **Network** (YAML): building block, NPUs, bandwidth in GB/s of 2^30 bytes and latency per hop in
  ns, per dimension.
- **System** (JSON): scheduling, chunking and processing of collectives. Keys without effect on time
  are reported. Algorithms other than `ring` are refused.
- **Workload**: Chakra traces ``<prefix>.<npu>.et``, or a text file of layers of version 1.

Each dimension is a ring of NPUs. Switches take two hops. The congestion-aware network stores and
forwards messages, which share links; the congestion-unaware network has no contention. A message
then waits for the endpoint delay, and a reduction accesses memory three times (10^9 bytes in a GB).
An all-to-all is `ring:blockwise` along each dimension in sequence. Times are not rounded down to
nanoseconds, unlike in ASTRA-sim.

Source: Sys.cc, Ring.cc, CollectiveImplLookup.cc, PacketBundle.cc of astra-sim/astra-sim 518bd51.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti import _core
from tutti.base.files.mistakes import mistake
from tutti.base.units import Time
from tutti.formats.astrasim.text import load_text
from tutti.formats.chakra import reader as chakra
from tutti.formats.chakra.archive import is_archive
from tutti.formats.chakra.writer import prefix_of
from tutti.schedules.ir import schedule
from tutti.workloads.errors import TraceError
from tutti.workloads.trace import programs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import polars as pl

    from tutti.formats.astrasim.networks import AstraSimNetwork
    from tutti.formats.astrasim.systems import System

_MOST_ON_RING = 2048


@dataclass(frozen=True)
class Workload:
    """A workload.

    Attributes:
        programs: One program per NPU, or one for all NPUs.
        remarks: What has no effect, a line each.
    """

    programs: Sequence[_core.TrainingProgram]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class AstraSimRun:
    """The times of a workload.

    Attributes:
        total: The finish time of the last NPU.
        compute: Compute time of the reported NPU, in picoseconds.
        exposed: Its exposed communication, in picoseconds.
        npus: The number of NPUs.
    """

    total: Time
    compute: int
    exposed: int
    npus: int


def simulate(
    network: AstraSimNetwork,
    system: System,
    found: Sequence[_core.TrainingProgram],
    *,
    aware: bool = True,
) -> AstraSimRun:
    """Runs one program per NPU, or one program on all NPUs.

    Raises:
        TraceError: The system has `baseline` all_reduce over several dimensions, or an all_to_all
            has too many NPUs on a ring.
        TopologyError: The network is invalid.
        SimulationError: NPUs start different collectives.
    """
    if not system.nested and sum(size > 1 for size in network.sizes) > 1:
        message = "`collective-optimization`: `baseline` over several dimensions is not supported"
        raise TraceError(f"{message}: expected `localBWAware`", kind="not_carried")
    torus = network.torus(aware=aware)
    torus = torus.with_algorithms(_algorithms(network, found[0].transfers))
    settings = _core.FabricSettings(
        chunk=1,
        message=1 << 40,
        parts=system.splits,
        order=system.order,
        every_npu=len(found) > 1,
    )
    of = list(range(len(found))) if len(found) > 1 else []
    record = _core.simulate_training(list(found), torus, system.endpoint(), settings, of)
    parts = record.breakdown()
    compute = parts.compute_ps + parts.overlap_ps
    return AstraSimRun(Time(ps=record.end_ps), compute, parts.exposed_ps, torus.npus)


def frame(run: AstraSimRun, workload: str, network: str, *, aware: bool) -> pl.DataFrame:
    """Returns a row: workload, network, npus, congestion, total_ps, compute_ps, exposed_ps."""
    import polars as pl

    row = {"workload": workload, "network": network, "npus": run.npus, "congestion": aware}
    times = {"total_ps": run.total.ps, "compute_ps": run.compute, "exposed_ps": run.exposed}
    return pl.DataFrame([row | times])


def load_workload(
    path: Path, network: AstraSimNetwork, system: System, groups: Path | None = None
) -> Workload:
    """Loads the Chakra traces ``<path>.<npu>.et``, or a text file of layers.

    Args:
        path: The prefix of the traces, the file of a rank, or the text file.
        network: The network.
        system: The system.
        groups: A table of process groups, for traces.

    Raises:
        TraceError: A trace is invalid. The message has file, rank and node.
        ConfigError: A file cannot be read, a text file is invalid or has no groups, or the system
            has no algorithm for a collective and a dimension.
    """
    if path.suffix == ".txt":
        if groups is not None:
            expected = f"no --groups: {path} is a text workload"
            raise mistake("applies to Chakra traces only", source="--groups", expected=expected)
        text = load_text(path, network.sizes)
        loaded = Workload([text.program], text.remarks)
    elif path.is_file() and prefix_of(path) == path and not is_archive(path):
        expected = "the prefix of Chakra traces, one such as run.0.et, an archive of them, or a "
        expected += "text workload (.txt)"
        raise mistake("is not a workload of ASTRA-sim", source=str(path), expected=expected)
    else:
        traces = chakra.read_all(prefix_of(path) if path.is_file() else path, groups)
        tasks = programs(traces, network.sizes, timing=system.timing)
        known = traces[0].groups
        zero = "0" in known.named and known.table.get("0") is not None
        line = f"group `0` is that of {known.source}; in ASTRA-sim it is all NPUs"
        loaded = Workload(tasks, (*known.remarks(), *([line] if zero else [])))
    _check_implementations(network, system, loaded.programs[0])
    return loaded


def _algorithms(
    network: AstraSimNetwork, transfers: Sequence[_core.Transfer]
) -> list[tuple[str, int, list[_core.Schedule]]]:
    """Returns the schedule of each collective on its dimensions: all chunks use the same.

    Raises:
        TraceError: An all_to_all has too many NPUs on a ring.
    """
    found = []
    for collective, mask in dict.fromkeys((each.collective, each.mask) for each in transfers):
        given = enumerate(network.sizes)
        sizes = [size for at, size in given if size > 1 and mask >> at & 1]
        if collective == "all_to_all" and max(sizes) > _MOST_ON_RING:
            message = (
                f"an all_to_all on a ring of {max(sizes):,} NPUs is too large: each sends "
                f"{max(sizes) * (max(sizes) - 1) // 2:,} messages: expected at most "
                f"{_MOST_ON_RING:,} NPUs in a dimension"
            )
            raise TraceError(message, kind="not_carried", fields={"npus": max(sizes)})
        notation = _notation(collective, sizes)
        one = schedule(notation, collective=collective, ranks=math.prod(sizes))
        found.append((collective, mask, [one.core]))
    return found


def _notation(collective: str, sizes: Sequence[int]) -> str:
    """Returns the algorithm of a collective on dimensions of these sizes, innermost first.

    The all_gathers of an all_reduce go in the opposite direction, as in ASTRA-sim.
    """
    levels, ring = "x".join(map(str, sizes)), "ring"
    if collective == "all_to_all":
        ring = "ring:blockwise"
    if len(sizes) == 1:
        return ring
    if collective == "all_reduce":
        ring = "/".join([ring] * len(sizes) + ["ring:backward"] * (len(sizes) - 1))
    return f"hierarchical:{levels}:{ring}"


def _check_implementations(
    network: AstraSimNetwork, system: System, program: _core.TrainingProgram
) -> None:
    """Checks that each collective of a program has an algorithm for each dimension.

    Raises:
        ConfigError: A collective has no algorithms, or those of another number of dimensions.
    """
    if system.implementations is None:
        return
    for collective in dict.fromkeys(each.collective for each in program.transfers):
        key = f"{collective.replace('_', '-')}-implementation"
        count, expected = system.implementations.get(collective), len(network.dimensions)
        if count == expected:
            continue
        problem = "does not list one algorithm for each dimension of the network"
        if count is None:
            problem = f"is missing, and the workload has an {collective}"
        listed = json.dumps(["ring"] * expected)
        value = json.dumps(["ring"] * count) if count else ""
        raise mistake(problem, source=system.source, key=key, value=value, expected=listed)
