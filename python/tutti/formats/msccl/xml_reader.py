"""Reads MSCCL XML: programs of msccl-tools, of the MSCCL runtime and of RCCL.

Source: microsoft/msccl-tools 030a750 (msccl/language/ir.py), microsoft/msccl b23e9cd
(src/graph/topo.cc) and ROCm/rccl 0cbce2a (src/misc/msccl/msccl_parser.cc).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tutti.base.errors import TuttiError
from tutti.base.files import limits
from tutti.base.files.mistakes import did_you_mean, mistake, shown
from tutti.base.files.reader import read_bytes
from tutti.formats.formats import INFERRED
from tutti.formats.msccl.build import assuming, built
from tutti.formats.msccl.program import Action, ChunkRange, Event, Held, Program
from tutti.formats.xml_files import (
    Limits,
    check_elements,
    content,
    parse_xml,
    unknown_attributes,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.base.errors import ConfigError
    from tutti.formats.formats import Options
    from tutti.formats.msccl.program import Ref
    from tutti.formats.xml_files import Element
    from tutti.schedules.ir import Schedule

COLLECTIVES: Final = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "reducescatter": "reduce_scatter",
    "alltoall": "all_to_all",
    "broadcast": "broadcast",
    "reduce": "reduce",
}
"""The collectives by `coll`; RCCL spells reduce_scatter without the underscore."""

_TYPES: Final = ("s", "r", "rcs", "rrs", "rrc", "rrcs", "cpy", "re", "nop")
_SENDS: Final = {"s", "rcs", "rrs", "rrcs"}
_RECEIVES: Final = {"r", "rcs", "rrs", "rrc", "rrcs"}
_MOST_ELEMENTS: Final = 1 << 17
_MOST: Final = 1 << 20
_MOST_ROOTS: Final = 64
_COPIES: Final = -1
"""The thread block of the copies of a GPU, which run before the others."""
_EXPECTED: Final = "an MSCCL XML program"
_DEFAULTS: Final = {
    "algo": {"inplace": "0"},
    "step": {"depid": "-1", "hasdep": "0"},
}
"""Values that the reader assumes for attributes that files leave out."""
_GRAMMAR: Final = {
    "algo": content(
        "name proto nchannels nchunksperloop ngpus coll inplace outofplace minBytes maxBytes "
        "nthreads redop",
        "gpu",
    ),
    "gpu": content("id i_chunks o_chunks s_chunks", "copy tb"),
    "copy": content("i_off o_off"),
    "tb": content("id send recv chan", "step op"),
    "step": content("s type srcbuf srcoff dstbuf dstoff cnt depid deps hasdep"),
}
"""Runtimes read these; msccl-tools 2a3becf wrote <copy>."""


def read_xml_program(path: Path, _options: Options) -> tuple[Schedule, tuple[str, ...]]:
    """Reads and verifies an MSCCL XML program.

    Returns:
        The schedule, and one line for each part of the file that it does not represent.

    Raises:
        ConfigError: The file cannot be read, is not a valid program, deadlocks, depends on timing,
            or does not perform its collective.
    """
    data = read_bytes(path, limits.Bytes.SCHEDULE, _EXPECTED)
    algo = parse_xml(data, "algo", _EXPECTED, str(path), Limits(elements=_MOST_ELEMENTS))
    check_elements(algo, _GRAMMAR)
    program = read_program(algo)
    assumed = _assumed(algo)
    with assuming(assumed):
        schedule, losses = _rooted(program)
        if algo.text("inplace", "0") == algo.text("outofplace", "0") == "1":
            built(replace(program, in_place=True))
            losses.append("verified in place and out of place; the schedule is out of place")
    inferred = [f"{INFERRED}{each}, which the file does not state" for each in assumed]
    return schedule, (*_losses(algo), *_unread(algo), *losses, *inferred)


def _assumed(algo: Element) -> list[str]:
    """Returns the values that the reader assumes for attributes that elements lack."""
    lacking: Counter[str] = Counter()
    for element in algo.walk():
        for name in _DEFAULTS.get(element.tag, ()):
            lacking[name] += not element.attributes.get(name)
    return [
        f'{name}="{value}"' + (f" of {lacking[name]:,} steps" if tag == "step" else "")
        for tag, names in _DEFAULTS.items()
        for name, value in names.items()
        if lacking[name]
    ]


def _unread(algo: Element) -> list[str]:
    """Returns a line for each attribute that no runtime reads."""
    places: dict[tuple[str, str], list[Element]] = {}
    for element, name in unknown_attributes(algo, _GRAMMAR):
        places.setdefault((element.tag, name), []).append(element)
    lines = []
    for (tag, name), elements in places.items():
        meant = did_you_mean(name, _GRAMMAR[tag].attributes)
        count = f", {len(elements):,} x from line" if len(elements) > 1 else ", line"
        text = f"attribute {shown(name)[1:-1]}={shown(elements[0].attributes[name])} of <{tag}>"
        suffix = f"; {meant}" if meant else ""
        lines.append(f"{text}{count} {elements[0].line}: no runtime reads it{suffix}")
    return lines


def _rooted(program: Program) -> tuple[Schedule, list[str]]:
    """Builds the schedule; the file does not name the root of a rooted collective."""
    if program.collective not in {"broadcast", "reduce"}:
        return built(program)
    end = 1 if program.collective == "broadcast" else 0
    active = {message[end] for message in program.messages}
    roots = sorted(range(program.ranks), key=lambda rank: rank in active)[:_MOST_ROOTS]
    first: TuttiError | None = None
    for root in roots:
        try:
            return built(replace(program, root=root))
        except TuttiError as error:
            first = first or error
    raise first or mistake("has no root", source=program.source)


def _losses(algo: Element) -> list[str]:
    blocks = [block for gpu in algo.each("gpu") for block in gpu.each("tb")]
    channels = {block.attributes.get("chan") for block in blocks}
    found = [
        f"{words} {algo.attributes[name]}"
        for name, (words, neutral) in _LOST.items()
        if algo.attributes.get(name, neutral) != neutral
    ]
    stated = algo.attributes.get("nchannels", "").strip()
    used = 1 + max((block.count("chan", _MOST) for block in blocks), default=-1)
    if stated and stated != str(used):
        found.append(f"nchannels {shown(stated)[1:-1]}: thread blocks use {used}")
    if len(blocks) > sum(1 for _ in algo.each("gpu")):
        count = f"{len(channels)} channel{'s' if len(channels) > 1 else ''}"
        text = f"{len(blocks)} thread blocks on {count}: a rank performs one sequence of steps"
        found.append(text)
    return found


_LOST = {
    "proto": ("protocol", "Simple"),
    "minBytes": ("minBytes", "0"),
    "maxBytes": ("maxBytes", "0"),
    "nthreads": ("nthreads", ""),
    "redop": ("redop", ""),
}
"""Attributes that a schedule does not represent: their names, and the value without effect."""


def read_program(algo: Element) -> Program:
    """Returns the program of an `<algo>` element.

    Raises:
        ConfigError: An attribute is missing or invalid, or a message is not matched.
    """
    gpus = sorted(algo.each("gpu"), key=lambda gpu: gpu.count("id", _MOST))
    ranks = algo.count("ngpus", _MOST)
    if [gpu.count("id", _MOST) for gpu in gpus] != list(range(ranks)) or not ranks:
        algo.refuse("ngpus", f"one <gpu> for each id from 0 to {max(ranks, 1) - 1}")
    name = algo.attributes.get("name", "").strip()
    program = Program(
        name=name if name.isprintable() and name else "msccl",
        collective=_collective(algo),
        ranks=ranks,
        chunks=algo.count("nchunksperloop", _MOST),
        in_place=_flag(algo, "inplace") and not _flag(algo, "outofplace"),
        source=algo.source,
    )
    if not program.chunks:
        algo.refuse("nchunksperloop", "1 or more")
    if program.collective in {"all_gather", "reduce_scatter", "all_to_all"} and (
        program.chunks % ranks
    ):
        algo.refuse("nchunksperloop", f"a multiple of the {ranks} GPUs")
    steps = _Steps(program)
    for gpu in gpus:
        steps.add_gpu(gpu)
    steps.match()
    return program


def _collective(algo: Element) -> str:
    name = algo.text("coll")
    if name not in COLLECTIVES:
        raise mistake(
            f"collective {shown(name)} has no postcondition that tutti can verify"
            if name == "custom"
            else f"unknown collective {shown(name)}",
            source=algo.place,
            key="coll",
            expected=f"one of {', '.join(COLLECTIVES)}",
        )
    return COLLECTIVES[name]


def _flag(element: Element, name: str) -> bool:
    return element.count(name, 1, 0) == 1


class _Steps:
    """Collects the events of all thread blocks."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._sends: dict[tuple[int, int, int], list[tuple[Action, Element]]] = defaultdict(list)
        self._recvs: dict[tuple[int, int, int], list[tuple[Action, Element]]] = defaultdict(list)
        self._owner: dict[tuple[str, int, int, int], Element] = {}

    def add_gpu(self, gpu: Element) -> None:
        """Adds the thread blocks of a GPU."""
        rank = gpu.count("id", _MOST)
        sizes = {name: gpu.count(f"{name}_chunks", _MOST) for name in "ios"}
        self._check_sizes(gpu, sizes)
        copies = self._add_copies(gpu, rank, sizes)
        blocks: dict[int, list[tuple[int, Element]]] = {}
        for block in gpu.each("tb"):
            number = block.count("id", _MOST)
            if number in blocks:
                block.refuse("id", "a number that no other thread block of the GPU has")
            blocks[number] = self._add_block(block, rank, number, sizes)
        for number, steps in blocks.items():
            for index, step in steps:
                self._add_dependency(index, step, number, blocks)
            if steps:
                self._program.events[steps[0][0]].after += copies

    def _add_copies(self, gpu: Element, rank: int, sizes: dict[str, int]) -> list[int]:
        """Adds the copies from input to output that precede all thread blocks of a GPU."""
        added: list[int] = []
        for copy in gpu.each("copy"):
            ends = []
            for buffer in "io":
                chunks = ChunkRange(buffer, copy.count(f"{buffer}_off", _MOST), 1)
                if chunks.end > sizes[buffer]:
                    copy.refuse(f"{buffer}_off", f"a chunk below {sizes[buffer]}")
                ends.append(chunks)
            event = Event(rank, _COPIES, len(added), label=f"<copy> of line {copy.line}")
            event.actions = [Action("copy", rank, (ends[0],), ends[1])]
            added.append(len(self._program.events))
            self._program.events.append(event)
        return added[-1:]

    def _check_sizes(self, gpu: Element, sizes: dict[str, int]) -> None:
        program = self._program
        shards = {"all_gather": "i", "reduce_scatter": "o"}.get(program.collective)
        for name in "io":
            expected = program.chunks // (program.ranks if name == shards else 1)
            if sizes[name] not in {0, expected}:
                gpu.refuse(f"{name}_chunks", f"{expected}, from nchunksperloop, or 0")

    def _add_block(
        self, block: Element, rank: int, number: int, sizes: dict[str, int]
    ) -> list[tuple[int, Element]]:
        last = self._program.ranks - 1
        peers = {}
        for side in ("send", "recv"):
            peers[side] = block.integer(side)
            if not -1 <= peers[side] <= last or peers[side] == rank:
                block.refuse(side, f"another GPU from 0 to {last}, or -1")
        channel = block.count("chan", _MOST)
        for side, peer in peers.items():
            if peer >= 0 and self._owner.setdefault((side, rank, peer, channel), block) != block:
                block.refuse(
                    side, f"one thread block with {side}={peer} on channel {channel} of the GPU"
                )
        found: list[tuple[int, Element]] = []
        for step in block.children:
            if step.tag == "op":
                expected = "<step> with srcbuf, srcoff, dstbuf, dstoff and cnt"
                problem = "<op> is the layout of msccl-tools that no runtime reads"
                raise mistake(problem, source=step.place, expected=expected)
            if step.count("s", _MOST) != len(found):
                step.refuse("s", f"{len(found)}: steps are numbered from 0")
            event = Event(rank, number, len(found))
            self._add_actions(event, step, peers, channel, sizes)
            found.append((len(self._program.events), step))
            self._program.events.append(event)
        return found

    def _add_actions(
        self,
        event: Event,
        step: Element,
        peers: dict[str, int],
        channel: int,
        sizes: dict[str, int],
    ) -> None:
        kind = step.text("type")
        if kind not in _TYPES:
            step.refuse("type", f"one of {', '.join(_TYPES)}")
        if kind == "nop" or not step.count("cnt", _MOST):
            return
        for side, kinds in (("send", _SENDS), ("recv", _RECEIVES)):
            if kind in kinds and peers[side] < 0:
                problem = f"type `{kind}` in a thread block without a {side} peer"
                raise mistake(problem, source=step.place, expected=f'<tb {side}="..."> of a GPU')
        event.actions = _actions(kind, step, event.rank, sizes)
        for action in event.actions:
            if action.kind == "send":
                self._sends[event.rank, peers["send"], channel].append((action, step))
            elif action.kind == "recv":
                self._recvs[peers["recv"], event.rank, channel].append((action, step))

    def _add_dependency(
        self, index: int, step: Element, block: int, blocks: dict[int, list[tuple[int, Element]]]
    ) -> None:
        other = step.integer("depid", -1)
        if other < 0:
            return
        number = step.count("deps", _MOST)
        if other == block or other not in blocks or number >= len(blocks[other]):
            raise mistake(
                f"depends on tb {other}, step {number}",
                source=step.place,
                expected="a step of another thread block of the same GPU",
            )
        # The runtime waits for a counter that only steps with hasdep set; nops do not.
        for target, candidate in blocks[other][number:]:
            if _flag(candidate, "hasdep") and candidate.text("type") != "nop":
                self._program.events[index].after.append(target)
                return
        raise mistake(
            f"waits forever for tb {other}, step {number}",
            source=step.place,
            expected='hasdep="1" on that step or a later one of its thread block',
        )

    def match(self) -> None:
        """Matches sends and receives in order, for each pair of GPUs and channel."""
        for key in sorted({*self._sends, *self._recvs}):
            sends, recvs = self._sends[key], self._recvs[key]
            for (send, step), (recv, other) in zip(sends, recvs, strict=False):
                if send.sources[0].count != _count(recv):
                    raise mistake(
                        f"receives {_count(recv)} chunks of the {send.sources[0].count} that "
                        f"line {step.line} sends",
                        source=other.place,
                        expected="the same cnt in both steps",
                    )
                send.message = recv.message = len(self._program.messages)
                self._program.messages.append(key[:2])
            if len(sends) != len(recvs):
                raise _unmatched(key, sends, recvs)


def _count(recv: Action) -> int:
    return recv.into.count if recv.into is not None else 0


def _unmatched(
    key: tuple[int, int, int],
    sends: list[tuple[Action, Element]],
    recvs: list[tuple[Action, Element]],
) -> ConfigError:
    sender, receiver, channel = key
    longer, verb = (sends, "sends") if len(sends) > len(recvs) else (recvs, "receives")
    first = longer[min(len(sends), len(recvs))][1]
    return mistake(
        f"{verb} a message from GPU {sender} to GPU {receiver} on channel {channel} without a "
        "counterpart",
        source=first.place,
        expected=f"as many sends as receives; there are {len(sends)} and {len(recvs)}",
    )


def _actions(kind: str, step: Element, rank: int, sizes: dict[str, int]) -> list[Action]:
    """Returns what a step does."""

    def chunks(side: str) -> ChunkRange:
        return _range(step, side, sizes)

    if kind in {"s", "cpy", "re"}:
        return [_local(kind, rank, chunks("src"), chunks("dst") if kind != "s" else None)]
    if kind in {"r", "rcs"}:
        into: Ref = chunks("dst")
        found = [Action("recv", rank, (), into)]
    else:
        source = chunks("src")
        target = source if kind == "rrs" else chunks("dst")
        held = Held(target)
        into = held if kind == "rrs" else target
        found = [Action("recv", rank, (), held), Action("fold", rank, (source, held), into)]
    return [*found, Action("send", rank, (into,))] if kind in _SENDS else found


def _local(kind: str, rank: int, source: ChunkRange, into: ChunkRange | None) -> Action:
    if into is None:
        return Action("send", rank, (source,))
    if kind == "cpy":
        return Action("copy", rank, (source,), into)
    return Action("fold", rank, (into, source), into)


def _range(step: Element, side: str, sizes: dict[str, int]) -> ChunkRange:
    buffer = step.text(f"{side}buf")
    if buffer not in sizes:
        step.refuse(f"{side}buf", "i, o or s")
    found = ChunkRange(buffer, step.count(f"{side}off", _MOST), step.count("cnt", _MOST))
    if found.end > sizes[buffer]:
        raise mistake(
            f"accesses chunks {found.index} to {found.end - 1} of buffer {buffer}",
            source=step.place,
            key=f"{side}off",
            expected=f"chunks below {sizes[buffer]}, from {buffer}_chunks",
        )
    return found
