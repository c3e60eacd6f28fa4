"""Table I: links, chunks and steps of each algorithm; Table II: parameters of all runs."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt, log
from typing import TYPE_CHECKING, Any

import polars as pl

import tutti
from tutti import simulate
from tutti.base.units import Size
from tutti.bypass import BypassMesh
from tutti.bypass.package_networks import DEFAULT, PITCH, RATE, SIDES
from tutti.platforms.machine import PipeliningPostal, Platform
from tutti_papers import Exhibit, ExhibitResult
from tutti_papers.aries.published import compared

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tutti.schedules.ir import Schedule


@dataclass(frozen=True)
class TableLine:
    """A line of Table I, as functions of the number N of chiplets.

    Attributes:
        name: The paper's name of the algorithm.
        links: The maximum number of links in use.
        chunk: The fraction of the gradients in a message.
        latency: Steps until the reduction completes.
        bandwidth: The maximum bandwidth, in payloads.
        reducing: The reduction phase of tutti's schedule for a side.
        note: The difference between both definitions, if any.
    """

    name: str
    links: Callable[[int], int]
    chunk: Callable[[int], float]
    latency: Callable[[int], float]
    bandwidth: int
    reducing: Callable[[int], Schedule]
    note: str = ""


def _reduce_scatter(notation: str) -> Callable[[int], Schedule]:
    return lambda side: tutti.schedule(
        notation.format(f"{side}x{side}"), collective="reduce_scatter", ranks=side * side
    )


def _trees(side: int) -> Schedule:
    return tutti.schedule("double_binary_tree:nccl,phased", ranks=side * side).phase(0)


def _groups(side: int) -> Schedule:
    return tutti.schedule(f"concentrated_multi_tree:{side}x{side}", ranks=side * side)


LINES = (
    TableLine(
        "Ring",
        lambda n: n,
        lambda n: 1 / n,
        lambda n: n - 1,
        1,
        _reduce_scatter("ring:{}"),
    ),
    TableLine(
        "2D Ring",
        lambda n: 2 * n,
        lambda n: 1 / n,
        lambda n: 2 * (isqrt(n) - 1),
        2,
        _reduce_scatter("multi_ring:{}:all_dimensions"),
        "chunks: half of the payload uses rows first, half columns first",
    ),
    TableLine(
        "Binary Tree",
        lambda n: 2 * (n - 1),
        lambda _: 1 / 2,
        lambda n: isqrt(n) - 1,
        2,
        _trees,
        "latency: the published value is the diameter of the network; the trees are log2 N deep",
    ),
    TableLine(
        "Multi-Tree",
        lambda n: 4 * (n - 1),
        lambda _: 1 / 4,
        lambda n: isqrt(n) - 1,
        4,
        _reduce_scatter("multi_tree:torus:{}"),
        "the paper counts 4 trees; MultiTree has N, on all 4 N links of the torus",
    ),
    TableLine(
        "ARIES",
        lambda n: 8 * (isqrt(n) - 1) * isqrt(n),
        lambda n: 1 / n,
        lambda n: min(log(n / 4, 4), round(log(n, 4)) * (isqrt(n) - 1)),
        4,
        _groups,
        "links: mesh links and wire segments; steps: in and between groups; rings: figure 6",
    ),
)


COUNTS = (
    ("links", "links", "links_counted"),
    ("payload over message", "G_over", "G_over_counted"),
    ("steps of the reduction", "latency", "steps_counted"),
    ("maximum bandwidth over G", "max_bandwidth", "links_times_chunk"),
)
"""Quantity, and the columns of the formula and of the count."""


def _counted(schedule: Schedule) -> tuple[int, float, int]:
    """Returns communicating pairs, the smallest payload fraction of a message, and steps."""
    ops = (
        (rank, op)
        for rank in range(schedule.ranks)
        for step in range(schedule.steps(rank))
        for op in schedule.ops(rank, step)
        if op.kind == "send" and op.chunks
    )
    sends = [(rank, op.peer, op.chunks or (0, 0)) for rank, op in ops]
    least = min(end - first for *_, (first, end) in sends) / schedule.chunks
    machine = Platform(name="steps", model=PipeliningPostal(alpha_p="1 us", alpha_r="0 us"))
    run = simulate(schedule, machine, size=Size(bytes=schedule.chunks), datatype="int8")
    pairs = {(rank, peer) for rank, peer, _ in sends}
    return len(pairs), least, run.completion_ps // 10**6


def _table_1(folder: Path) -> ExhibitResult:
    """Returns the published formulas evaluated, and the counts of tutti's schedules."""
    del folder
    rows: list[dict[str, Any]] = []
    for line in LINES:
        for side in SIDES:
            ranks = side * side
            links, chunk, steps = _counted(line.reducing(side))
            if line.name == "ARIES":
                links, steps = BypassMesh(side=side).total_segments, steps // 2
            rows.append(
                {
                    "algorithm": line.name,
                    "N": ranks,
                    "links": line.links(ranks),
                    "links_counted": links,
                    "G_over": round(1 / line.chunk(ranks)),
                    "G_over_counted": round(1 / chunk),
                    "latency": round(line.latency(ranks), 2),
                    "steps_counted": steps,
                    "max_bandwidth": line.bandwidth,
                    "links_times_chunk": round(line.links(ranks) * line.chunk(ranks), 2),
                }
            )
    claims = [
        (f"{row['algorithm']}, N = {row['N']}: {what}", row[published], row[counted])
        for row in rows
        for what, published, counted in COUNTS
    ]
    return ExhibitResult(
        frame=pl.DataFrame(rows),
        published=compared(claims, method="formula"),
        source="formulas of Table I evaluated; counted: the reduction phase of tutti's schedules",
        notes=(
            *(f"{line.name}: {line.note}" for line in LINES if line.note),
            (
                "links_times_chunk: links times bandwidth per link of the same line; it is "
                "(N - 1) G for both trees, whose maximum is stated as 2 G and 4 G"
            ),
        ),
    )


def _table_2(folder: Path) -> ExhibitResult:
    """Returns the stated parameters and the assumed ones."""
    del folder
    rows = [
        ("data width", "32 bits", "Table II"),
        ("PEs per chiplet", "16", "Table II"),
        ("multipliers per PE", "32 x 32, output stationary", "Table II; dataflow inferred"),
        ("clock", "1 GHz", "Table II"),
        ("link", RATE, "section V"),
        ("hop", f"{DEFAULT.hop}: 10 ns and two router cycles", "section V; their sum inferred"),
        ("VCs, flits per VC", "4, 32", "section V"),
        ("flit", "68 B: bytes per link and cycle", "inferred"),
        ("long wires", "same latency as short wires", "inferred"),
        ("bypass wires per line, direction", str(DEFAULT.wires), "section III-B"),
        ("muxes", f"{DEFAULT.muxes} wire per port", "inferred from figure 6(c)"),
        ("reconfigured between phases", f"yes, in {DEFAULT.switch}", "figure 7(c); once in IV-C"),
        (
            "flattened butterfly",
            DEFAULT.butterfly,
            "inferred: micro-bump pitch limits links (III-B)",
        ),
        ("chunks per half of a double tree", str(DEFAULT.chunks), "inferred"),
        ("accumulators per group", str(DEFAULT.accumulators), "inferred; literally 2"),
        ("pitch of chiplets", PITCH, "inferred"),
    ]
    return ExhibitResult(
        frame=pl.DataFrame(rows, schema=["parameter", "value", "source"], orient="row"),
        source="Table II and section V; figure 10 has sensitivities of inferred parameters",
    )


TABLES = {
    1: Exhibit(title="links, chunks and steps of the algorithms", make=_table_1),
    2: Exhibit(title="parameters and their sources", make=_table_2),
}
"""The tables of this module, by number."""
