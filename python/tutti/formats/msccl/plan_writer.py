"""Writes schedules as execution plans of MSCCL++ (JSON).

Each message is a `put` and a signal on a channel that only messages of one direction of two GPUs
use. The receiver signals on it first if the chunks of the message were accessed before, and for the
first message, so that no GPU writes to another that has not started. Dependencies between thread
blocks are semaphores.

Source: microsoft/mscclpp 1f5f065 (python/mscclpp/language, src/core/include/execution_common.hpp).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tutti.formats.msccl.blocks import COLLECTIVES, assigned, refused
from tutti.formats.msccl.plan_reader import COLLECTIVES as PLAN_COLLECTIVES

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.formats.formats import Options
    from tutti.formats.msccl.blocks import Block, Blocks, Step
    from tutti.formats.msccl.program import ChunkRange
    from tutti.schedules.ir import Schedule

_MOST_OPS = 64  # MAX_OPERATION
_MOST_SEMAPHORES = 16  # MAX_DEVICE_SEMAPHORES
_NO_LIMIT = 2**64 - 1

_Channel = tuple[int, int, int]
"""Sender, receiver and number."""


def write_plan(schedule: Schedule, path: Path, _options: Options) -> tuple[str, ...]:
    """Writes a schedule as an MSCCL++ execution plan.

    Returns:
        One line for each limit of the executor that the plan exceeds, and for each property that
        it does not represent.

    Raises:
        ConfigError: The collective has no counterpart, the schedule is too large, or it requires
            buffering of messages.
        VerificationError: The schedule is not correct.
    """
    if COLLECTIVES.get(schedule.collective) not in PLAN_COLLECTIVES:
        expected = f"one of {', '.join(PLAN_COLLECTIVES.values())}"
        raise refused(schedule, f"{schedule.collective} has no counterpart in MSCCL++", expected)
    if not schedule.verify().rendezvous_safe:
        problem = "messages require buffering, and MSCCL++ writes to the chunks of the receiver"
        raise refused(schedule, problem, "a schedule that is safe with rendezvous")
    blocks = assigned(schedule)
    gpus = [_Gpu(blocks, rank) for rank in range(schedule.ranks)]
    plan = _plan(schedule, blocks, gpus)
    path.write_text(json.dumps(plan, indent=1) + "\n", encoding="utf-8")
    return (
        *blocks.losses,
        "thread blocks of a GPU do not wait for the steps of the schedule",
        *_exceeded(gpus),
    )


def _plan(schedule: Schedule, blocks: Blocks, gpus: list[_Gpu]) -> dict[str, Any]:
    return {
        "name": schedule.name,
        "collective": COLLECTIVES[schedule.collective],
        "protocol": "Simple",
        "inplace": blocks.in_place,
        "reuse_resources": False,
        "gpus": [gpu.table() for gpu in gpus],
        "num_threads_per_block": 1024,
        "use_double_scratch_buffer": False,
        "buffer_alignment": 16,
        "min_message_size": 0,
        "max_message_size": _NO_LIMIT,
    }


def _exceeded(gpus: list[_Gpu]) -> list[str]:
    """Returns the limits of the executor that a plan exceeds."""
    ops = max(gpu.longest for gpu in gpus)
    semaphores = max(gpu.semaphores for gpu in gpus)
    found = []
    if ops > _MOST_OPS:
        found.append(f"{ops} ops of a thread block: the executor accepts {_MOST_OPS}")
    if semaphores > _MOST_SEMAPHORES:
        found.append(f"{semaphores} semaphores of a GPU: the executor accepts {_MOST_SEMAPHORES}")
    return found


class _Gpu:
    """The plan of a GPU."""

    def __init__(self, blocks: Blocks, rank: int) -> None:
        self._blocks, self._rank = blocks, rank
        self._channels = _channels(blocks, rank)
        self._remote: list[tuple[int, str]] = []
        self._semaphores: dict[tuple[int, int], int] = {}
        self._releases: dict[tuple[int, int], list[int]] = {}
        for number, block in enumerate(blocks.ranks[rank]):
            for step in block.steps:
                for other, at in step.after.items():
                    semaphore = self._semaphores.setdefault((other, number), len(self._semaphores))
                    self._releases.setdefault((other, at), []).append(semaphore)
        self._tables = [
            self._block(number, block) for number, block in enumerate(blocks.ranks[rank])
        ]

    def table(self) -> dict[str, Any]:
        """Returns the object of the file."""
        sizes = self._blocks.sizes
        peers = [_peer(channel, self._rank) for channel in self._channels]
        return {
            "id": self._rank,
            "input_chunks": sizes["i"],
            "output_chunks": sizes["o"],
            "scratch_chunks": sizes["s"],
            "threadblocks": self._tables,
            "channels": [{"channel_type": "memory", "connected_to": peers}] if peers else [],
            "remote_buffers": [
                {"rank": peer, "type": kind, "access_channel_types": ["memory"]}
                for peer, kind in self._remote
            ],
            "semaphores": [{"init_value": 0} for _ in self._semaphores],
        }

    @property
    def longest(self) -> int:
        """The number of ops of the longest thread block."""
        return max((len(each["ops"]) for each in self._tables), default=0)

    @property
    def semaphores(self) -> int:
        """The number of semaphores."""
        return len(self._semaphores)

    def _block(self, number: int, block: Block) -> dict[str, Any]:
        self._used: list[int] = []
        ops: list[dict[str, Any]] = []
        handshakes = self._handshakes(block)
        for index, step in enumerate(block.steps):
            waits = [self._semaphores[other, number] for other in step.after]
            if waits:
                ops += [{"name": "sem_acquire", "semaphore_ids": waits}, {"name": "nop"}]
            if step.kind == "s":
                ops += self._send(block, step, ready=handshakes[index])
            elif step.kind == "r":
                ops += self._receive(ready=handshakes[index])
            else:
                ops += [{"name": "nop"}, _local(step)]
            releases = self._releases.get((number, index), [])
            if releases:
                ops += [{"name": "nop"}, {"name": "sem_release", "semaphore_ids": releases}]
        channel = self._channel(block)
        refs = {"access_channel_type": "memory", "remote_buffer_ids": self._used}
        return {
            "id": number,
            "ops": ops,
            "channels": []
            if channel is None
            else [{"channel_type": "memory", "channel_ids": [self._channels.index(channel)]}],
            "remote_buffer_refs": [refs] if self._used else [],
        }

    def _channel(self, block: Block) -> _Channel | None:
        if block.send >= 0:
            return self._rank, block.send, block.channel
        return (block.recv, self._rank, block.channel) if block.recv >= 0 else None

    def _handshakes(self, block: Block) -> dict[int, bool]:
        """Returns for each message of a thread block whether the receiver signals first."""
        mine = [index for index, step in enumerate(block.steps) if step.kind in {"s", "r"}]
        steps = block.steps
        if block.send >= 0:
            other = next(
                each
                for each in self._blocks.ranks[block.send]
                if (each.recv, each.channel) == (self._rank, block.channel)
            )
            steps = other.steps
        reused = [step.reused for step in steps if step.kind == "r"]
        return {index: number == 0 or reused[number] for number, index in enumerate(mine)}

    def _send(self, block: Block, step: Step, *, ready: bool) -> list[dict[str, Any]]:
        place = (block.send, step.into.buffer)
        if place not in self._remote:
            self._remote.append(place)
        number = self._remote.index(place)
        if number not in self._used:
            self._used.append(number)
        target = {
            "buffer_id": self._used.index(number),
            "index": step.into.index,
            "size": step.into.count,
        }
        put = {
            "name": "put",
            "src_buff": [_chunks(step.source)],
            "dst_buff": [target],
            "channel_type": "memory",
        }
        wait = [_on_channel("wait"), {"name": "nop"}] if ready else []
        return [*wait, put, {"name": "nop"}, _on_channel("signal")]

    def _receive(self, *, ready: bool) -> list[dict[str, Any]]:
        signal = [{"name": "nop"}, _on_channel("signal")] if ready else []
        return [*signal, _on_channel("wait"), {"name": "nop"}]


def _channels(blocks: Blocks, rank: int) -> list[_Channel]:
    """Returns the channels of a GPU; two GPUs list those between them in the same order."""
    found: set[_Channel] = set()
    for block in blocks.ranks[rank]:
        if block.send >= 0:
            found.add((rank, block.send, block.channel))
        elif block.recv >= 0:
            found.add((block.recv, rank, block.channel))
    return sorted(found, key=lambda each: (_peer(each, rank), each))


def _peer(channel: _Channel, rank: int) -> int:
    return channel[1] if channel[0] == rank else channel[0]


def _on_channel(name: str) -> dict[str, Any]:
    return {"name": name, "channel_ids": [0], "channel_type": "memory"}


def _chunks(chunks: ChunkRange) -> dict[str, Any]:
    return {"type": chunks.buffer, "index": chunks.index, "size": chunks.count}


def _local(step: Step) -> dict[str, Any]:
    if step.kind == "cpy":
        sources = [_chunks(step.source)]
        return {"name": "copy", "src_buff": sources, "dst_buff": [_chunks(step.into)]}
    return {
        "name": "re",
        "src_buff": [_chunks(step.into), _chunks(step.source)],
        "dst_buff": [_chunks(step.into)],
        "reduce_op": "sum",
    }
