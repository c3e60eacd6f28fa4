"""Reads execution plans of MSCCL++ (JSON).

Transfers are one-sided: a GPU writes to or reads from memory of another, and signals on a channel.
Each transfer becomes a message; signals only order it. Packets carry their own flags, so that the
reader of a packet waits for its writer.

Source: microsoft/mscclpp 1f5f065 (src/core/executor/execution_plan.cc, execution_kernel.hpp).
"""

from __future__ import annotations

import json
from functools import partial
from math import lcm
from typing import TYPE_CHECKING, Final

from tutti.base.files import limits
from tutti.base.files.mistakes import mistake, shown
from tutti.base.files.reader import parse_json, read_text
from tutti.formats.formats import INFERRED
from tutti.formats.msccl.build import assuming, built
from tutti.formats.msccl.plan_keys import unread_keys
from tutti.formats.msccl.plan_ops import ThreadBlock
from tutti.formats.msccl.plan_sync import Synchronisation
from tutti.formats.msccl.program import Program
from tutti.formats.msccl.tables import Table

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.formats.formats import Options
    from tutti.schedules.ir import Schedule

COLLECTIVES: Final = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "reducescatter": "reduce_scatter",
    "alltoall": "all_to_all",
}
_EXPECTED: Final = "an MSCCL++ execution plan"
_MOST: Final = 1 << 20
_MOST_PARTS: Final = 64


def read_plan(path: Path, _options: Options) -> tuple[Schedule, tuple[str, ...]]:
    """Reads and verifies an MSCCL++ execution plan.

    Returns:
        The schedule, and one line for each part of the plan that it does not represent.

    Raises:
        ConfigError: The file cannot be read, is not a valid plan, has ops that a schedule cannot
            represent, deadlocks, depends on timing, or does not perform its collective.
    """
    text = read_text(path, limits.Bytes.SCHEDULE, _EXPECTED)
    loads = partial(json.loads, parse_int=_bounded)
    plan = Table(parse_json(text, source=str(path), expected=_EXPECTED, parse=loads), str(path))
    program, losses = read_plan_program(plan)
    with assuming([] if "inplace" in plan else ["inplace false"]):
        schedule, more = built(program)
    return schedule, (*losses, *more)


def _bounded(digits: str) -> int:
    """Returns an integer; plans write 2^64 - 1 for no limit."""
    return min(int(digits), limits.MOST)


def read_plan_program(plan: Table) -> tuple[Program, list[str]]:
    """Returns the program of a plan, and what it does not represent.

    Raises:
        ConfigError: A value is missing or invalid, or an op cannot be represented.
    """
    gpus = list(plan.tables("gpus"))
    if not gpus or [gpu.count("id", _MOST) for gpu in gpus] != list(range(len(gpus))):
        plan.refuse("gpus", "a list of GPUs in the order of their ids")
    factor = _parts(gpus)
    program = Program(
        name=_name(plan),
        collective=_collective(plan),
        ranks=len(gpus),
        chunks=0,
        in_place=plan.flag("inplace"),
        source=plan.source,
    )
    program.chunks = _chunks(program, gpus) * factor
    losses = [f"protocol {plan.text('protocol')}"]
    names = ("min_message_size", "max_message_size", "num_threads_per_block")
    losses += [f"{name} {plan.count(name, limits.MOST)}" for name in names if name in plan]
    losses += [name for name in ("reuse_resources", "use_double_scratch_buffer") if plan.flag(name)]
    if plan.count("buffer_alignment", _MOST, 16) != 16:
        losses.append(f"buffer_alignment {plan.count('buffer_alignment', _MOST)}")
    losses += unread_keys(plan)
    if "inplace" not in plan:
        losses.append(f"{INFERRED}inplace false, which the plan does not state")
    sync = Synchronisation(program, gpus)
    found: dict[str, None] = {}
    for gpu in gpus:
        for block in gpu.tables("threadblocks"):
            ThreadBlock(program, sync, gpu, block, factor=factor, losses=found).read()
    sync.connect()
    count = len({(event.rank, event.block) for event in program.events})
    losses.append(f"{count} thread blocks: a rank performs one sequence of steps")
    losses.append("signals without data, and the order that only they enforce")
    return program, [*losses, *found]


def _name(plan: Table) -> str:
    name = plan.text("name").strip()
    return name if name and name.isprintable() else "mscclpp"


def _collective(plan: Table) -> str:
    name = plan.text("collective")
    if name not in COLLECTIVES:
        raise mistake(
            f"collective {shown(name)} has no postcondition that tutti can verify",
            source=plan.source,
            key="collective",
            expected=f"one of {', '.join(COLLECTIVES)}",
        )
    return COLLECTIVES[name]


def _parts(gpus: list[Table]) -> int:
    """Returns into how many parts thread block groups divide chunks."""
    sizes = {1}
    for gpu in gpus:
        for block in gpu.tables("threadblocks"):
            for op in block.tables("ops"):
                for each in (op, *op.tables("ops")):
                    sizes |= {group.count("tbg_size", _MOST_PARTS) for group in _groups(each)}
    if 0 in sizes or lcm(*sizes) > _MOST_PARTS:
        gpus[0].refuse("threadblocks", f"groups that divide chunks into 1 to {_MOST_PARTS} parts")
    return lcm(*sizes)


def _groups(op: Table) -> list[Table]:
    return [op.table("tbg_info")] if "tbg_info" in op else []


def _chunks(program: Program, gpus: list[Table]) -> int:
    """Returns the number of chunks of the payload."""
    shards = {"all_gather": "input_chunks", "reduce_scatter": "output_chunks"}
    shard = shards.get(program.collective)
    found = set()
    for gpu in gpus:
        for name in ("input_chunks", "output_chunks"):
            count = gpu.count(name, _MOST)
            if count:
                found.add(count * (program.ranks if name == shard else 1))
    if len(found) != 1:
        gpus[0].refuse("input_chunks", "chunks of equal size on all GPUs and in input and output")
    chunks = found.pop()
    if program.collective != "all_reduce" and chunks % program.ranks:
        gpus[0].refuse("input_chunks", f"a multiple of the {program.ranks} GPUs")
    return chunks
