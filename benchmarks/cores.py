"""What two threads could gain at most within one simulation.

A line per case of docs/performance.md, "One simulation on two cores". The benchmark runs the
sequential engines and derives an upper bound of the speed-up:

- Flows: flows that share no link, directly or through others, may be solved in parallel. At some
  moments of a run, the flows in flight are divided into these components. The time of a solution
  is proportional to its flows, so two threads take that of the larger half, or of the largest
  component.
- A training step: the groups of one host share no link with those of another, until the replicas
  reduce gradients. The time of a step of one replica, for each replica, is the part that may run in
  parallel.
- Packets and cycles: threads that have a part of the network each must meet once in a lookahead,
  the time in which one part cannot affect another. The bound follows from the work between two
  meetings and the time of a meeting, which a C program measures.

CPU seconds; `python benchmarks/cores.py [CASE ...]`. The benchmark has no pass criterion.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

import tutti
from tutti.collectives.simulation import simulate
from tutti.networks import flit, mesh
from tutti.platforms import Packets
from tutti.schedules.ir import schedule
from tutti.training.endpoint import configurations
from tutti.training.files.step_file import load_training

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent
MOMENTS = 5
"""Moments of a run whose flows are divided into components."""


def meeting_ns() -> float:
    """Returns the time of a meeting of two threads at a barrier."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "meeting"
        subprocess.run(["cc", "-O2", "-pthread", HERE / "meeting.c", "-o", program], check=True)
        return float(subprocess.run([program], check=True, capture_output=True, text=True).stdout)


def with_meetings(work_ns: float, meetings: int) -> str:
    """Returns the bound of work that two threads halve, and meet in between."""
    pause = meeting_ns()
    gain = work_ns / (work_ns / 2 + meetings * pause)
    text = f"{work_ns / 1e3:.1f} us between {meetings} meetings of {pause:.0f} ns"
    return f"{text}: at most {gain:.2f}"


def platform(notation: str, contention: Packets | None = None) -> tutti.Platform:
    """Returns a platform of links of 50 GB/s and 500 ns without costs of endpoints."""
    topology = tutti.Topology.build(notation, rate="50 GB/s", latency="500 ns")
    model = tutti.PipeliningPostal(alpha_p="0 ns", alpha_r="1 ns")
    routes = topology.routes("d_mod_k")
    return tutti.Platform(name=notation, model=model, routes=routes, contention=contention)


def timed(work: Callable[[], object]) -> float:
    """Returns the CPU seconds of a call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def components(pairs: np.ndarray, links: dict[tuple[int, int], list[int]]) -> tuple[int, int]:
    """Returns the number of flows, and those of the largest component."""
    used = [links[source, target] for source, target in pairs]
    flows = np.repeat(np.arange(len(used)), [len(each) for each in used])
    shared = np.concatenate([np.asarray(each) for each in used])
    size = len(used) + int(shared.max()) + 1
    graph = coo_array((np.ones(len(flows)), (flows, len(used) + shared)), (size, size))
    _, labels = connected_components(graph, directed=False)
    return len(used), int(np.bincount(labels[: len(used)]).max())


def flows(notation: str, algorithm: str, ranks: int, size: str) -> str:
    """Returns the bound of an all_to_all in flows."""
    where = platform(notation)
    laid_out = schedule(algorithm, ranks=ranks, collective="all_to_all")
    frame = simulate(laid_out, where, size=size, record=True, verify=False).messages_frame
    starts, ends = frame["sent_ps"].to_numpy(), frame["arrival_ps"].to_numpy()
    pairs = frame.select("source", "destination").to_numpy()
    links = {
        (source, target): where.routes._core.path(source, target)
        for source, target in set(map(tuple, pairs.tolist()))
    }
    total = halved = 0
    for moment in np.linspace(starts.min(), ends.max(), MOMENTS + 2)[1:-1]:
        active = pairs[(starts <= moment) & (moment < ends)]
        if len(active):
            count, largest = components(active, links)
            total, halved = total + count, halved + max(largest, count / 2)
    return f"at most {total / halved:.2f}"


def step() -> str:
    """Returns the bound of a step of 8 replicas, each on the NPUs of a leaf switch."""
    file = HERE.parent / "examples/21_large_step/training.toml"

    def one(replicas: int) -> float:
        topology = "fat_tree:m=8x8,w=1x8" if replicas > 1 else "switch:8"
        changes = (
            f'platform="{topology},rate=50GB/s,latency=500ns"',
            'model="gpt:layers=16,hidden=8192,tokens=4096,vocabulary=32000"',
            f'dimensions=[{{name="tensor",nodes=8}},{{name="data",nodes={replicas}}}]',
            "parallelism={tensor=8,micro_batches=4}",
            "batch=8",
        )
        step = load_training(file, changes).step
        step.run(configurations()["ideal"])
        return timed(lambda: replace(step).sharing(step).run(configurations()["ideal"]))

    all_replicas, alone = one(8), one(1)
    parallel = min(8 * alone, all_replicas)
    gain = all_replicas / (all_replicas - parallel / 2)
    return f"{all_replicas:.3f} s, one replica alone {alone:.3f} s: at most {gain:.2f}"


def packets() -> str:
    """Returns the bound of a pairwise all_to_all of 128 hosts in packets, without backpressure."""
    where = platform("fat_tree:m=4x4x8,w=1x4x4", Packets(size="4 KiB", buffer="64 KiB"))
    laid_out = schedule("pairwise", ranks=128, collective="all_to_all")
    result = simulate(laid_out, where, size="16 MiB")
    seconds = timed(lambda: simulate(laid_out, where, size="16 MiB"))
    lookahead_ps = 500_000
    work_ns = seconds * 1e9 / (result.completion_ps / lookahead_ps)
    return f"{seconds:.2f} s, {with_meetings(work_ns, 1)}"


def flits() -> str:
    """Returns the bound of a mesh of 32x32 routers, by rows."""
    topology = tutti.Topology.build("mesh:32x32", rate="16 GB/s", latency="1 ns")
    network = flit.Network(topology=topology, router=flit.Router(vcs=4))
    plan = flit.MeasurementPlan(warmup=1000, measure=4000, drain=4000)
    cycles = 5000
    seconds = timed(lambda: flit.run(network, flit.Traffic(rate=0.05), plan))
    return f"{cycles / seconds:,.0f} cycles/s, {with_meetings(seconds * 1e9 / cycles, 1)}"


def smart() -> str:
    """Returns the bound of a SMART mesh of 16x16 routers, by rows.

    Requests of paths, paths and flits each cross rows within a cycle.
    """
    meshes = mesh.SmartMesh(columns=16, rows=16)
    plan = mesh.ReplicationPlan(warmup=1000, measure=10_000, drain=10_000, seeds=1)
    traffic = mesh.Traffic(kind="unicast", rate=0.05)
    cycles = 11_000
    seconds = timed(lambda: mesh.run(meshes, traffic, plan, threads=1))
    return f"{cycles / seconds:,.0f} cycles/s, {with_meetings(seconds * 1e9 / cycles, 3)}"


CASES: dict[str, Callable[[], str]] = {
    "direct all_to_all, 256 hosts, flows": lambda: flows(
        "fat_tree:m=4x8x8,w=1x4x2", "direct", 256, "4 MiB"
    ),
    "pairwise all_to_all, 256 hosts, flows": lambda: flows(
        "fat_tree:m=4x8x8,w=1x4x2", "pairwise", 256, "4 MiB"
    ),
    "training step, TP 8 x DP 8, flows": step,
    "pairwise all_to_all, 128 hosts, packets": packets,
    "flits, mesh 32x32, load 0.05": flits,
    "SMART, mesh 16x16, load 0.05": smart,
}


def main() -> None:
    for name, case in CASES.items():
        if not sys.argv[1:] or any(part in name for part in sys.argv[1:]):
            print(f"{name}: {case()}", flush=True)


if __name__ == "__main__":
    main()
