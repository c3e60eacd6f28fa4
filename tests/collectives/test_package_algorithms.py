"""All-reduce on a package of chiplets: links of 68 GB/s and 12 ns, messages that meet as packets.

The ratios of rings are those of a model of alpha = 12 ns a step and beta = 1/68 ns a byte, worked
out by hand for the latency- and bandwidth-optimised rings of ARIES (Yin et al., ICCAD 2023).
"""

from __future__ import annotations

from functools import cache

import pytest

import tutti
from tutti.bypass import BypassConfiguration, BypassMesh

ALPHA_NS, BYTES_PER_NS = 12, 68
ENDS = tutti.PipeliningPostal(alpha_p="1 ps", alpha_r="0 ns")
"""Negligible compared with the links; a model needs some cost."""


@cache
def package(notation: str, links: int = 1) -> tutti.Platform:
    """A network of such links, each as fast as several side by side."""
    rate = f"{links * BYTES_PER_NS} GB/s"
    topology = tutti.Topology.build(notation, rate=rate, latency=f"{ALPHA_NS} ns")
    packets = tutti.Packets(size=tutti.Size(bytes=1 << 20), buffer=tutti.Size(bytes=1 << 20))
    return tutti.Platform(name=notation, model=ENDS, routes=topology.routes(), contention=packets)


def takes(algorithm: str, size: int, *, ranks: int, links: int = 1) -> float:
    """Nanoseconds of an all_reduce on a fully connected graph."""
    machine = package(f"fully_connected:{ranks}", links)
    run = tutti.simulate(
        tutti.schedule(algorithm, ranks=ranks), machine, size=tutti.Size(bytes=size)
    )
    return run.completion_ps / 1000


def closed(steps: list[tuple[int, int]], size: int, *, links: int = 1) -> float:
    """Nanoseconds of reduce_scatter and all_gather, with steps and payload parts per level."""
    step = sum(count * (ALPHA_NS + size / part / links / BYTES_PER_NS) for count, part in steps)
    return 2 * step


RINGS = {
    "ring:4x4": (16, [(15, 16)]),
    "mirrored_ring:4x4": (16, [(3, 4), (3, 16)]),
    "ring:8x8": (64, [(63, 64)]),
    "mirrored_ring:8x8": (64, [(3, 4), (3, 16), (3, 64)]),
    "mirrored_ring:8x8:4x2,2x4": (64, [(7, 8), (7, 64)]),
}
"""Ranks, and for each level the steps of a reduce_scatter and the divisor of the payload."""


@pytest.mark.parametrize("algorithm", RINGS)
@pytest.mark.parametrize("links", [1, 2])
def test_rings_take_the_time_of_their_steps(algorithm: str, links: int) -> None:
    """Sending half of each part in either direction is as fast as links of twice the rate."""
    ranks, steps = RINGS[algorithm]
    both = f"{algorithm},bidirectional"
    for pieces in (1, 16, 100):
        size = 2 * ranks * BYTES_PER_NS * 4 * pieces
        expected = closed(steps, size, links=links)
        overhead = 0.001 * 2 * sum(count for count, _ in steps)
        assert takes(algorithm, size, ranks=ranks, links=links) == pytest.approx(
            expected + overhead, abs=1e-6
        )
        if links == 2:
            found = takes(both, size, ranks=ranks)
            assert found == pytest.approx(expected + overhead, abs=1e-6)


def pairs(schedule: tutti.Schedule) -> set[tuple[int, int]]:
    """The pairs of sender and receiver."""
    steps = ((rank, step) for rank in range(schedule.ranks) for step in range(schedule.steps(rank)))
    ops = ((rank, op) for rank, step in steps for op in schedule.ops(rank, step))
    return {(rank, op.peer) for rank, op in ops if op.kind == "send" and op.peer is not None}


def wired(configuration: BypassConfiguration, packet: int) -> tutti.Platform:
    topology = configuration.topology(rate=f"{BYTES_PER_NS} GB/s", latency=f"{ALPHA_NS} ns")
    packets = tutti.Packets(size=tutti.Size(bytes=packet), buffer=tutti.Size(bytes=1 << 20))
    routes = configuration.routes(topology, paths={})
    return tutti.Platform(name="wired", model=ENDS, routes=routes, contention=packets)


@pytest.mark.parametrize("pieces", [4, 64])
def test_ring_on_two_parallel_links(pieces: int) -> None:
    """Bandwidth first: every edge has its mesh link and a parallel piece of bypass wire."""
    ring = tutti.schedule("ring:4x4", ranks=16)
    doubled = ",".join(f"{a}>{b},{a}=>{b}" for a, b in sorted(pairs(ring)))
    size = 16 * 2 * BYTES_PER_NS * pieces
    machine = wired(BypassMesh(side=4).configure(doubled), size // 32)
    run = tutti.simulate(ring, machine, size=tutti.Size(bytes=size))
    expected = closed([(15, 16)], size, links=2) * 1000
    assert run.completion_ps == pytest.approx(expected, abs=30)


@pytest.mark.parametrize("pieces", [4, 64])
def test_bidirectional_mirrored_rings_use_every_wire(pieces: int) -> None:
    """Latency and bandwidth: short edges on mesh links, long ones on wires, none shared."""
    rings = tutti.schedule("mirrored_ring:4x4,bidirectional", ranks=16)
    edges = sorted(pairs(rings))
    # 3 apart in a row, 12 in a column: from one edge to the other.
    far = [pair for pair in edges if abs(pair[0] - pair[1]) in (3, 12)]
    assert (len(far), len(edges)) == (16, 64)
    links = [f"{a}=>{b}" if (a, b) in far else f"{a}>{b}" for a, b in edges]
    configuration = BypassMesh(side=4).configure(",".join(links))
    assert configuration.used_segments == configuration.total_segments
    size = 16 * 2 * BYTES_PER_NS * pieces
    run = tutti.simulate(rings, wired(configuration, 1 << 20), size=tutti.Size(bytes=size))
    expected = closed([(3, 4), (3, 16)], size, links=2) * 1000
    assert run.completion_ps == pytest.approx(expected, abs=12)


TABLE = {
    ("ring:4x4", 2): (1.04, 1.39, 1.72, 1.99),
    ("mirrored_ring:4x4", 1): (2.25, 1.36, 1.11, 1.00),
    ("mirrored_ring:4x4", 2): (2.46, 2.19, 2.07, 2.00),
    ("ring:8x8", 2): (1.01, 1.14, 1.39, 1.95),
    ("mirrored_ring:8x8", 1): (6.28, 2.88, 1.61, 1.02),
}
"""How many times faster than a plain ring at 1 KiB, 16 KiB, 64 KiB and 2 MiB."""


@pytest.mark.parametrize(("algorithm", "links"), TABLE)
def test_gains_over_a_ring(algorithm: str, links: int) -> None:
    ranks, _ = RINGS[algorithm]
    sizes = (1 << 10, 16 << 10, 64 << 10, 2 << 20)
    for size, expected in zip(sizes, TABLE[algorithm, links], strict=True):
        ring = takes("ring", size, ranks=ranks)
        gain = ring / takes(algorithm, size, ranks=ranks, links=links)
        assert gain == pytest.approx(expected, rel=0.02), size


def test_a_ring_round_a_grid_is_the_same_on_a_mesh_and_a_torus() -> None:
    ring = tutti.schedule("ring:4x4", ranks=16)
    runs = [
        tutti.simulate(ring, package(f"{kind}:4x4"), size="64 KiB") for kind in ("mesh", "torus")
    ]
    assert runs[0].completion_ps == runs[1].completion_ps
    assert runs[0].completion_ps == pytest.approx(1000 * closed([(15, 16)], 64 << 10), rel=1e-3)


@pytest.mark.parametrize(
    ("notation", "ranks", "steps", "full"),
    [
        ("mesh:4x4", 16, 8, False),
        ("mesh:8x8", 64, 32, False),
        ("torus:4x4", 16, 5, True),
        ("torus:8x8", 64, 17, True),
    ],
)
def test_multi_tree_is_no_slower_than_lock_step(
    notation: str, ranks: int, steps: int, full: bool
) -> None:
    """With queueing, it takes no longer than with all ranks starting each step together.

    On a torus it takes as long, on a mesh less: ranks without dependencies in a step continue.
    """
    machine = package(notation)
    trees = tutti.schedule("multi_tree", ranks=ranks, topology=machine.routes)
    for chunk in (68, 6800, 680_000):
        run = tutti.simulate(trees, machine, size=tutti.Size(bytes=ranks * chunk))
        in_step = closed([(steps, ranks)], ranks * chunk) * 1000
        assert run.completion_ps <= 1.0001 * in_step
        assert run.completion_ps >= (1 if full else 0.8) * in_step


@pytest.mark.parametrize("accumulators", [1, 2, 4])
@pytest.mark.parametrize(("side", "between"), [(4, 2), (8, 8)])
def test_concentrated_trees_take_the_time_of_their_steps(
    side: int, accumulators: int, between: int
) -> None:
    """Two steps in the groups, as documented, and those of MultiTree between them.

    Each step has a dedicated link, but between groups ranks send to both sides.
    """
    ranks = side * side
    local = {1: [2, 2], 2: [4, 4], 4: [4, 8]}[accumulators]
    steps = [(1, part) for part in local] + [(between, accumulators * ranks // 4)]
    size = 16 * ranks * BYTES_PER_NS
    algorithm = f"concentrated_multi_tree:{side}x{side},accumulators={accumulators}"
    found = takes(algorithm, size, ranks=ranks)
    assert 0.8 * closed(steps, size) <= found <= 1.001 * closed(steps, size)
