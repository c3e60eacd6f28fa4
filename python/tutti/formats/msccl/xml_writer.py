"""Writes schedules as MSCCL XML programs.

Source: the attributes that ROCm/rccl 0cbce2a (src/misc/msccl/msccl_parser.cc) requires, and its
limits (src/include/msccl/msccl_struct.h).
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

from tutti.formats.msccl.blocks import COLLECTIVES, Blocks, assigned

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tutti.formats.formats import Options
    from tutti.formats.msccl.blocks import Block, Step
    from tutti.schedules.ir import Schedule

_MOST_STEPS = 256  # MSCCL_MAX_NUM_STEPS
_MOST_COUNT = 71  # MSCCL_MAX_COUNT - 1
_MOST_CHANNELS = 32  # MAXCHANNELS
_LONGEST_NAME = 63  # MSCCL_MAX_ALGO_NAME


def write_xml_program(schedule: Schedule, path: Path, _options: Options) -> tuple[str, ...]:
    """Writes a schedule as an MSCCL XML program.

    The messages of two ranks are distributed over more channels while a thread block exceeds the
    steps that runtimes accept.

    Returns:
        One line for each property that runtimes may refuse or that the file does not represent.

    Raises:
        ConfigError: The collective has no counterpart, or the schedule is too large.
    """
    channels = 1
    blocks = assigned(schedule, most=_MOST_COUNT)
    while _longest(blocks) > _MOST_STEPS and channels < _MOST_CHANNELS:
        channels *= 2
        blocks = assigned(schedule, channels=channels, most=_MOST_COUNT)
    path.write_text("".join(f"{line}\n" for line in _lines(schedule, blocks)), encoding="utf-8")
    return (*blocks.losses, *_losses(schedule, blocks))


def _losses(schedule: Schedule, blocks: Blocks) -> list[str]:
    found = ["thread blocks of a GPU do not wait for the steps of the schedule"]
    if schedule.root is not None:
        found.append(f"root {schedule.root}: the format has no attribute for it")
    if schedule.collective == "reduce_scatter":
        found.append('coll="reducescatter" as RCCL spells it; microsoft/msccl reads reduce_scatter')
    if _longest(blocks) > _MOST_STEPS:
        found.append(f"{_longest(blocks)} steps of a thread block: runtimes accept {_MOST_STEPS}")
    channels = 1 + max((block.channel for rank in blocks.ranks for block in rank), default=0)
    if channels > _MOST_CHANNELS:
        found.append(f"{channels} channels: runtimes accept {_MOST_CHANNELS}")
    return found


def _longest(blocks: Blocks) -> int:
    return max(
        (
            sum(max(1, len(step.after)) for step in block.steps)
            for rank in blocks.ranks
            for block in rank
        ),
        default=0,
    )


def _lines(schedule: Schedule, blocks: Blocks) -> Iterator[str]:
    channels = 1 + max((block.channel for rank in blocks.ranks for block in rank), default=0)
    attributes = {
        "name": schedule.name[:_LONGEST_NAME],
        "proto": "Simple",
        "nchannels": channels,
        "nchunksperloop": blocks.chunks,
        "ngpus": schedule.ranks,
        "coll": COLLECTIVES[schedule.collective],
        "inplace": int(blocks.in_place),
        "outofplace": int(not blocks.in_place),
        "minBytes": 0,
        "maxBytes": 0,  # no maximum in RCCL
    }
    yield _tag("algo", attributes)
    sizes = {f"{name}_chunks": blocks.sizes[name] for name in "ios"}
    for rank, thread_blocks in enumerate(blocks.ranks):
        yield "  " + _tag("gpu", {"id": rank, **sizes})
        numbers = [_numbers(block) for block in thread_blocks]
        for number, block in enumerate(thread_blocks):
            peers = {"id": number, "send": block.send, "recv": block.recv, "chan": block.channel}
            yield "    " + _tag("tb", peers)
            yield from _steps(block, numbers)
            yield "    </tb>"
        yield "  </gpu>"
    yield "</algo>"


def _steps(block: Block, numbers: list[list[int]]) -> Iterator[str]:
    """Yields the steps; each dependency but the last of a step is on a nop before it."""
    number = 0
    for step in block.steps:
        after = [(other, numbers[other][at]) for other, at in step.after.items()]
        for dependency in after[:-1]:
            nop = {"type": "nop", "srcbuf": "i", "srcoff": -1, "dstbuf": "o", "dstoff": -1}
            yield _step(number, {**nop, "cnt": 0}, dependency, awaited=False)
            number += 1
        chunks = _chunks(step)
        last = after[-1] if after else (-1, -1)
        yield _step(number, {"type": step.kind, **chunks}, last, awaited=step.awaited)
        number += 1


def _numbers(block: Block) -> list[int]:
    """Returns the numbers of steps in the file, which also counts nops."""
    found, number = [], 0
    for step in block.steps:
        number += max(1, len(step.after))
        found.append(number - 1)
    return found


def _chunks(step: Step) -> dict[str, object]:
    return {
        "srcbuf": step.source.buffer,
        "srcoff": step.source.index,
        "dstbuf": step.into.buffer,
        "dstoff": step.into.index,
        "cnt": step.source.count,
    }


def _step(
    number: int, attributes: dict[str, object], after: tuple[int, int], *, awaited: bool
) -> str:
    depends = {"depid": after[0], "deps": after[1], "hasdep": int(awaited)}
    return "      " + _tag("step", {"s": number, **attributes, **depends}, closed=True)


def _tag(name: str, attributes: Mapping[str, object], *, closed: bool = False) -> str:
    text = " ".join(f"{key}={quoteattr(str(value))}" for key, value in attributes.items())
    return f"<{name} {text}{'/' if closed else ''}>"
