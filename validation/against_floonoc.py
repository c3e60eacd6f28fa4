"""Compares multicasts with the collective NoC of FlooNoC.

The measured cycles of the RTL are not public. The authors' model of them is, with its constants;
its geometric means agree with the published ones. `floonoc/case.toml` has the constants, and
`theirs` restates the formulas.
"""

from __future__ import annotations

import functools
import statistics
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prose import bullets, paragraph

import tutti
from tutti import platforms

if TYPE_CHECKING:
    from collections.abc import Callable

    Cycles = Callable[[str, int, int], float]

FOLDER = Path(__file__).parent / "floonoc"
COLUMNS = 4
ROWS = (1, 2, 4)
SIZES = tuple(1024 << step for step in range(6))
BATCHES = tuple(1 << step for step in range(6))
HARDWARE, TREE, CHAIN = "hardware", "tree", "pipelined chain"


@functools.cache
def about() -> dict[str, Any]:
    return tomllib.loads((FOLDER / "case.toml").read_text("utf-8"))


@functools.cache
def platform() -> tutti.Platform:
    return platforms.platform(FOLDER / "platform.toml")


def constants() -> dict[str, int]:
    found: dict[str, int] = about()["constants"]
    return found


def flits(size: int) -> int:
    return size // constants()["beat"]


def halvings(count: int) -> list[int]:
    """Returns the distances of a binary tree over a line: half, a quarter, ..., 1."""
    return [count >> step for step in range(1, count.bit_length())]


def theirs(how: str, rows: int, size: int) -> float:
    """Returns the cycles of a multicast by the authors' model; of chains with the best batch."""
    given, beats = constants(), flits(size)
    start, pause = given["memory"], given["synchronisation"]
    if how == HARDWARE:
        return start + beats + COLUMNS - 1 + rows - 1
    if how == TREE:
        hops = halvings(COLUMNS) + halvings(rows)
        sent = sum(given["cluster"] + 2 * distance + beats for distance in hops)
        return start + beats + sent + pause * (len(hops) - 1)
    turns = [
        (batches - 1 + COLUMNS - 1 + (batches - 1 + rows - 1 if rows > 1 else 0), beats // batches)
        for batches in BATCHES
        if beats % batches == 0
    ]
    return min(start + part + count * (start + part + pause) for count, part in turns)


def node(row: int, column: int) -> int:
    """Returns the rank of a cluster; column -1 has the memory tiles."""
    return row * (COLUMNS + 1) + column + 1


MEMORY = node(0, -1)


def _made(batches: int = 1) -> tutti.ScheduleBuilder:
    return tutti.ScheduleBuilder("broadcast", ranks=4 * (COLUMNS + 1), chunks=batches, root=MEMORY)


def _start() -> float:
    """Returns the start-up of a transfer from memory, less the two cycles of its first hop."""
    return constants()["memory"] - 2


def hardware(rows: int) -> tutti.Schedule:
    made = _made()
    others = [node(row, column) for row in range(rows) for column in range(COLUMNS)]
    made.rank(MEMORY).compute(f"{_start()} ns").multicast(others)
    for other in others:
        made.rank(other).recv(MEMORY)
    return made.build()


def tree(rows: int) -> tutti.Schedule:
    """Returns a binary tree along the row, then along all columns."""
    given, made = constants(), _made()
    made.rank(MEMORY).compute(f"{_start()} ns").send(node(0, 0))
    made.rank(node(0, 0)).recv(MEMORY)
    have, wait = [(0, 0)], given["cluster"]
    steps = [(0, distance) for distance in halvings(COLUMNS)]
    for up, across in [*steps, *((distance, 0) for distance in halvings(rows))]:
        for row, column in list(have):
            to = (row + up, column + across)
            made.rank(node(row, column)).compute(f"{wait} ns").send(node(*to))
            made.rank(node(*to)).recv(node(row, column))
            have.append(to)
        wait = given["cluster"] + given["synchronisation"]
    return made.build()


def chain(rows: int, batches: int, beats: int) -> tutti.Schedule:
    """Returns a pipeline along the row, then pipelines along all columns."""
    made = _made(batches)
    _line(made, [node(0, column) for column in range(-1, COLUMNS)], batches, beats)
    for column in range(COLUMNS if rows > 1 else 0):
        _line(made, [node(row, column) for row in range(rows)], batches, beats)
    return made.build()


def _line(made: tutti.ScheduleBuilder, line: list[int], batches: int, beats: int) -> None:
    """Appends a pipeline: in each turn a rank sends a batch and receives the next one."""
    between = _start() + constants()["synchronisation"]
    for place, rank in enumerate(line):
        program = made.rank(rank)
        for batch in range(-1 if place else 0, batches):
            if batch >= 0 and place + 1 < len(line):
                wait = _start() if rank == MEMORY and batch == 0 else between
                # The first rank receives nothing: it waits for the end of its previous transfer.
                own = beats // batches if place == 0 and batch > 0 else 0
                program.compute(f"{wait + own} ns").send(line[place + 1], chunk=batch)
            if place and batch + 1 < batches:
                program.recv(line[place - 1], chunk=batch + 1)


def reduction(rows: int) -> tutti.Schedule:
    """Returns a reduction in the routers, to the first cluster."""
    root = node(0, 0)
    made = tutti.ScheduleBuilder("reduce", ranks=4 * (COLUMNS + 1), root=root)
    others = [node(row, column) for row in range(rows) for column in range(COLUMNS)][1:]
    for other in others:
        made.rank(other).compute(f"{constants()['cluster']} ns").contribute(root)
    made.rank(root).combine(0, [(0, None), *((1 + slot, rank) for slot, rank in enumerate(others))])
    return made.build()


def ran(schedule: tutti.Schedule, size: int) -> float:
    """Returns the cycles of a schedule; memory tiles, and clusters outside it, take no part."""
    found = tutti.simulate(schedule, platform(), size=tutti.Size(bytes=size), verify=False)
    return found.completion_ps / 1000


@functools.cache
def ours(how: str, rows: int, size: int) -> float:
    """Returns the cycles of a multicast by tutti; of chains with the best batch."""
    if how == CHAIN:
        beats = flits(size)
        fit = [batches for batches in BATCHES if beats % batches == 0]
        return min(ran(chain(rows, batches, beats), size) for batches in fit)
    return ran(hardware(rows) if how == HARDWARE else tree(rows), size)


def speedup(cycles: Cycles, rows: int, size: int) -> float:
    """Returns the speed-up of hardware over the faster software."""
    software = min(cycles(how, rows, size) for how in (TREE, CHAIN))
    return software / cycles(HARDWARE, rows, size)


def geomean(cycles: Cycles, rows: int) -> float:
    return statistics.geometric_mean(speedup(cycles, rows, size) for size in SIZES)


def slower() -> float:
    """Returns the time of the largest reduction over all rows, over that of one row."""
    return ran(reduction(max(ROWS)), SIZES[-1]) / ran(reduction(1), SIZES[-1])


def section() -> str:
    """Returns the section of docs/validation.md."""
    given = about()
    parts = ["## floonoc", paragraph(given["summary"]), _facts(given), _table(), _means(given)]
    return "\n\n".join(parts)


def _facts(given: dict[str, Any]) -> str:
    limit = given["tolerance"]
    lines = (
        "Paper: {paper}.",
        (
            "Source: {source}; see `validation/floonoc/case.toml`. The cycles measured in RTL are "
            "not public. The model reproduces the published geometric means."
        ),
        (
            "Model: [smart](models/smart.md), design `baseline_collective`; "
            "`validation/floonoc/platform.toml`."
        ),
        (
            "Difference: a hop takes two cycles in tutti. In the authors' model it takes one for "
            "multicasts in hardware, and two for transfers between clusters."
        ),
        (
            "Tolerance: cycles within {software} % in software, within {hardware} % in hardware, "
            "geometric means within {geomean} %."
        ),
    )
    return bullets([line.format(**{**given, **limit}) for line in lines])


def _table() -> str:
    lines = ["Cycles are those of the source / of tutti.", ""]
    lines.append("| clusters | size | hardware | tree | pipelined chain | speed-up | ratio |")
    lines.append("|--:|--:|--:|--:|--:|--:|--:|")
    for rows in ROWS:
        for size in SIZES:
            cells = [
                f"{theirs(how, rows, size):,.0f} / {ours(how, rows, size):,.0f}"
                for how in (HARDWARE, TREE, CHAIN)
            ]
            source, found = speedup(theirs, rows, size), speedup(ours, rows, size)
            cells += [f"{source:.2f} / {found:.2f}", f"{found / source:.3f}"]
            where = f"{rows * COLUMNS} | {tutti.Size(bytes=size)}"
            lines.append(f"| {where} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _means(given: dict[str, Any]) -> str:
    mean = given["geomean"]
    lines = ["| geometric mean of speed-ups | published | source | tutti | ratio |"]
    lines.append("|---|--:|--:|--:|--:|")
    for rows in ROWS:
        known = mean.get(f"multicast_{rows}")
        found, source = geomean(ours, rows), geomean(theirs, rows)
        shown = f"{known or 'none'} | {source:.2f} | {found:.2f} | {found / (known or source):.3f}"
        lines.append(f"| multicast to {rows * COLUMNS} clusters | {shown} |")
    reductions = paragraph(
        f"Reductions: the published geometric means are {mean['reduction_1']} (version 1) and "
        f"{mean['reduction_4']} (version 2). They cannot be compared: the start-up times of "
        "transfers and sums in the authors' model are fits to cycles that are not public. A router "
        "of FlooNoC adds two operands per cycle through the cores of its tile, so a reduction over "
        f"several rows takes {given['reduction']['slower']} times as long as one over a row "
        f"(32 KiB). A router of tutti adds all operands at once: {slower():.2f} times. tutti does "
        "not model shared adders."
    )
    return "\n".join(lines) + "\n\n" + reductions
