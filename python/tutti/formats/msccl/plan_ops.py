"""Ops of the thread blocks of MSCCL++ execution plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tutti.base.files.mistakes import did_you_mean, mistake
from tutti.formats.msccl.program import Action, ChunkRange, Event, Held

if TYPE_CHECKING:
    from tutti.formats.msccl.plan_sync import Synchronisation
    from tutti.formats.msccl.program import Program, Ref
    from tutti.formats.msccl.tables import Table

_MOST: Final = 1 << 20
_SIGNALS: Final = {"signal", "rlxsignal"}
_WAITS: Final = {"wait", "rlxwait"}
_PUTS: Final = {"put", "pws", "pwsf", "ppkt", "rppkt"}
_REDUCTIONS: Final = {"re", "res", "rre", "rres", "repkt", "respkt", "recpkt", "recspkt"}
_COPIES: Final = {"copy", "cpkt", "upkt"}
_SKIPPED: Final = {"nop", "flush"}
_OTHERS: Final = {"get", "barrier", "sem_acquire", "sem_release", "pipeline"}
_SWITCH: Final = {"gstore", "gstorepkt", "glre", "glres"}
_KNOWN: Final = _SIGNALS | _WAITS | _PUTS | _REDUCTIONS | _COPIES | _SKIPPED | _OTHERS


class ThreadBlock:
    """Reads the ops of a thread block."""

    def __init__(
        self,
        program: Program,
        sync: Synchronisation,
        gpu: Table,
        block: Table,
        *,
        factor: int,
        losses: dict[str, None],
    ) -> None:
        """Prepares the channels and remote buffers to which ops refer.

        Args:
            program: The program to which events are added.
            sync: The channels, semaphores and barriers.
            gpu: The GPU.
            block: The thread block.
            factor: The number of parts of a chunk of the plan.
            losses: Collects what is not represented.
        """
        self._program, self._sync, self._block = program, sync, block
        self._rank = gpu.count("id", _MOST)
        self._number = block.count("id", _MOST)
        self._factor, self._losses = factor, losses
        self._sizes = {
            kind: gpu.count(f"{name}_chunks", _MOST) * factor
            for kind, name in (("i", "input"), ("o", "output"), ("s", "scratch"))
        }
        self._events = 0
        self._unsignalled: list[int] = []

    def read(self) -> None:
        """Adds the events of all ops.

        Raises:
            ConfigError: An op is invalid or cannot be represented.
        """
        for number, op in enumerate(self._block.tables("ops")):
            self._read(op, f"op {number}")

    def _read(self, op: Table, label: str) -> None:
        name = op.text("name")
        if name not in _KNOWN:
            raise mistake(
                f"op `{name[:20]}` uses a switch that multicasts or reduces"
                if name in _SWITCH
                else f"unknown op `{name[:20]}`",
                source=op.source,
                key=op.path("name"),
                expected=f"one of {', '.join(sorted(_KNOWN))}",
                hint=did_you_mean(name, _KNOWN),
            )
        if name == "pipeline":
            self._losses["pipelines: their ops are performed once, for all units"] = None
            for number, inner in enumerate(op.tables("ops")):
                if inner.text("name") == "pipeline":
                    inner.refuse("name", "another op than a pipeline in a pipeline")
                self._read(inner, f"{label}.{number}")
        elif name in _SIGNALS | _WAITS:
            self._synchronise(name, op, label)
        elif name in {"sem_acquire", "sem_release", "barrier"}:
            self._synchronise_locally(name, op, label)
        elif name not in _SKIPPED:
            self._transfer(name, op, label)

    # --- synchronisation ---

    def _event(self, label: str) -> int:
        self._program.events.append(Event(self._rank, self._number, self._events, label=label))
        self._events += 1
        return len(self._program.events) - 1

    def _after_puts(self, event: int) -> None:
        """Orders an event after the arrival of the data that the thread block sent before."""
        self._program.events[event].after_all += self._unsignalled
        self._unsignalled = []

    def _synchronise(self, name: str, op: Table, label: str) -> None:
        channels = self._channels(op)
        if not channels:
            op.refuse("channel_ids", "at least one channel")
        event = self._event(label)
        if name in _SIGNALS:
            self._after_puts(event)
        for channel in channels:
            if name in _SIGNALS:
                self._sync.signal(event, channel)
            else:
                self._sync.wait(event, channel)

    def _channels(self, op: Table) -> list[tuple[int, int, str, int]]:
        """Returns the channels that `channel_ids` selects from those of the thread block."""
        kind = op.text("channel_type")
        if kind not in {"memory", "port"}:
            op.refuse("channel_type", "memory or port")
        mine = [
            number
            for each in self._block.tables("channels")
            if each.text("channel_type") == kind
            for number in each.counts("channel_ids", _MOST)
        ]
        known = self._sync.channels[self._rank].get(kind, [])
        found = []
        for number in op.counts("channel_ids", _MOST):
            if number >= len(mine) or mine[number] >= len(known):
                op.refuse("channel_ids", f"indices of the {len(mine)} {kind} channels of the tb")
            found.append(known[mine[number]])
        return found

    def _synchronise_locally(self, name: str, op: Table, label: str) -> None:
        event = self._event(label)
        if name != "sem_acquire":
            self._after_puts(event)
        if name == "barrier":
            departure = self._event(label)
            barrier = op.count("barrier_id", _MOST)
            blocks = op.count("num_threadblocks", _MOST)
            self._sync.barrier(self._rank, barrier, (event, departure), blocks)
            return
        for semaphore in op.counts("semaphore_ids", _MOST):
            if name == "sem_acquire":
                self._sync.acquire(event, self._rank, semaphore)
            else:
                self._sync.release(event, self._rank, semaphore)

    # --- data ---

    def _transfer(self, name: str, op: Table, label: str) -> None:
        sources = [self._place(op, each) for each in op.tables("src_buff")]
        targets = [self._place(op, each) for each in op.tables("dst_buff")]
        if not sources or not targets:
            op.refuse("src_buff", "at least one source and one destination")
        index = self._event(label)
        event = self._program.events[index]
        if name in _COPIES:
            event.actions.append(
                Action("copy", self._rank, (self._own(op, sources[0]),), self._own(op, targets[0]))
            )
        elif name == "get":
            for source, target in self._paired(op, sources, targets):
                self._pull(event, source, self._own(op, target))
        elif name in _PUTS:
            ends = [(sources[0], each) for each in targets]
            if name != "rppkt":
                ends = self._paired(op, sources, targets)
            for source, target in ends:
                self._push(op, event, self._own(op, source), target)
        else:
            self._reduce(name, op, event, sources, targets)
        if any(action.kind == "recv" and action.rank != self._rank for action in event.actions):
            self._unsignalled.append(index)
        self._sync.packets(name, index)
        if name in {"pws", "pwsf"}:
            signal = self._event(label)
            self._after_puts(signal)
            for channel in self._channels(op):
                self._sync.signal(signal, channel)

    def _paired(
        self,
        op: Table,
        sources: list[tuple[int, ChunkRange]],
        targets: list[tuple[int, ChunkRange]],
    ) -> list[tuple[tuple[int, ChunkRange], tuple[int, ChunkRange]]]:
        if len(sources) != len(targets):
            op.refuse("dst_buff", f"{len(sources)} destinations, as src_buff")
        return list(zip(sources, targets, strict=True))

    def _reduce(
        self,
        name: str,
        op: Table,
        event: Event,
        sources: list[tuple[int, ChunkRange]],
        targets: list[tuple[int, ChunkRange]],
    ) -> None:
        into = self._own(op, targets[0])
        operands: list[Ref] = []
        for rank, chunks in sources:
            if rank == self._rank:
                operands.append(chunks)
            else:
                held = Held(into)
                self._pull(event, (rank, chunks), held)
                operands.append(held)
        if any(operand.count != into.count for operand in operands):
            op.refuse("src_buff", "sources of the size of the destination")
        event.actions.append(Action("fold", self._rank, tuple(operands), into))
        rest = targets[1:]
        if name in {"recpkt", "recspkt"} and rest:
            event.actions.append(Action("copy", self._rank, (into,), self._own(op, rest[0])))
            rest = rest[1:]
        for target in rest:
            self._push(op, event, into, target)

    def _push(
        self, op: Table, event: Event, source: ChunkRange, target: tuple[int, ChunkRange]
    ) -> None:
        """Adds a message to another GPU."""
        rank, into = target
        if rank == self._rank:
            op.refuse("dst_buff", "a buffer_id: a buffer of another GPU")
        self._message(event, (self._rank, source), (rank, into))

    def _pull(self, event: Event, source: tuple[int, ChunkRange], into: Ref) -> None:
        """Adds a message from another GPU, whose memory this one reads."""
        self._message(event, source, (self._rank, into))

    def _message(
        self, event: Event, source: tuple[int, ChunkRange], target: tuple[int, Ref]
    ) -> None:
        if source[0] == target[0] or source[1].count != target[1].count:
            raise mistake(
                "transfers between equal GPUs or ranges of different sizes",
                source=self._program.source,
                key=event.place,
                expected="a local and a remote buffer of one size",
            )
        number = len(self._program.messages)
        self._program.messages.append((source[0], target[0]))
        event.actions.append(Action("send", source[0], (source[1],), message=number))
        event.actions.append(Action("recv", target[0], (), target[1], message=number))

    def _own(self, op: Table, place: tuple[int, ChunkRange]) -> ChunkRange:
        if place[0] != self._rank:
            op.refuse("src_buff", "a local buffer, with a type")
        return place[1]

    def _place(self, op: Table, buffer: Table) -> tuple[int, ChunkRange]:
        """Returns GPU and chunks of a buffer of an op."""
        rank, kind = self._rank, ""
        if "type" in buffer:
            kind = buffer.text("type")
        elif "buffer_id" in buffer:
            rank, kind = self._remote(op, buffer)
        index, size = buffer.count("index", _MOST), buffer.count("size", _MOST)
        start, count = index * self._factor, size * self._factor
        if "tbg_info" in op:
            group = op.table("tbg_info")
            parts = group.count("tbg_size", _MOST)
            start += group.count("tb_id", parts - 1) * (count // parts)
            count //= parts
        found = ChunkRange(kind, start, count)
        sizes = self._sizes if rank == self._rank else self._sync.sizes(rank, self._factor)
        if kind not in sizes or not count or found.end > sizes[kind]:
            most = sizes.get(kind, 0) // self._factor
            buffer.refuse("index" if kind in sizes else "type", f"1 to {most} chunks of i, o or s")
        return rank, found

    def _remote(self, op: Table, buffer: Table) -> tuple[int, str]:
        kind = op.text("channel_type")
        mine = [
            number
            for each in self._block.tables("remote_buffer_refs")
            if each.text("access_channel_type") == kind
            for number in each.counts("remote_buffer_ids", _MOST)
        ]
        known = self._sync.remote[self._rank]
        number = buffer.count("buffer_id", _MOST)
        if number >= len(mine) or mine[number] >= len(known):
            buffer.refuse("buffer_id", f"an index of the {len(mine)} {kind} buffers of the tb")
        return known[mine[number]]
