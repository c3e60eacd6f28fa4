"""Channels, semaphores and barriers of MSCCL++ execution plans."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from tutti.base.files.mistakes import mistake
from tutti.formats.msccl.program import ChunkRange

if TYPE_CHECKING:
    from tutti.formats.msccl.program import Program
    from tutti.formats.msccl.tables import Table

READS_PACKETS = frozenset({"upkt", "rppkt", "repkt", "respkt", "recpkt", "recspkt"})
WRITES_PACKETS = frozenset({"ppkt", "rppkt", "cpkt", "respkt", "recpkt", "recspkt"})

_MOST = 1 << 20
_Channel = tuple[int, int, str, int]
"""An end of a channel: GPU, peer, type and number among the channels of the pair and type."""


class Synchronisation:
    """Orders events by signals, semaphores and barriers.

    The n-th channel of a type from a GPU to another is connected to the n-th of that GPU to it.
    """

    def __init__(self, program: Program, gpus: list[Table]) -> None:
        """Reads the channels, remote buffers and semaphores of all GPUs."""
        self._program = program
        self.channels: list[dict[str, list[_Channel]]] = []
        self.remote: list[list[tuple[int, str]]] = []
        self._initial: list[list[int]] = []
        self._signals: dict[_Channel, list[int]] = defaultdict(list)
        self._waits: dict[_Channel, list[int]] = defaultdict(list)
        self._releases: dict[tuple[int, int], list[int]] = defaultdict(list)
        self._acquires: dict[tuple[int, int], list[int]] = defaultdict(list)
        self._barriers: dict[tuple[int, int], dict[int, list[tuple[int, int, int]]]] = defaultdict(
            lambda: defaultdict(list)
        )
        self._chunks: list[dict[str, int]] = []
        self._packets: dict[str, list[int]] = {"write": [], "read": []}
        for rank, gpu in enumerate(gpus):
            self._read_gpu(rank, gpu)

    def _read_gpu(self, rank: int, gpu: Table) -> None:
        most = self._program.ranks - 1
        channels: dict[str, list[_Channel]] = defaultdict(list)
        numbers: dict[tuple[int, str], int] = defaultdict(int)
        for channel in gpu.tables("channels"):
            kind = channel.text("channel_type")
            for peer in channel.counts("connected_to", most):
                channels[kind].append((rank, peer, kind, numbers[peer, kind]))
                numbers[peer, kind] += 1
        self.channels.append(channels)
        names = (("i", "input"), ("o", "output"), ("s", "scratch"))
        self._chunks.append({kind: gpu.count(f"{name}_chunks", _MOST) for kind, name in names})
        remote = []
        for buffer in gpu.tables("remote_buffers"):
            kind = buffer.text("type")
            if kind not in {"i", "o", "s"}:
                buffer.refuse("type", "i, o or s")
            if buffer.count("rank", most) == rank:
                buffer.refuse("rank", "another GPU")
            remote.append((buffer.count("rank", most), kind))
        self.remote.append(remote)
        self._initial.append([each.count("init_value", _MOST) for each in gpu.tables("semaphores")])

    def sizes(self, rank: int, factor: int) -> dict[str, int]:
        """Returns the chunks of the buffers of a GPU, in parts of chunks of the plan."""
        return {kind: count * factor for kind, count in self._chunks[rank].items()}

    def packets(self, name: str, event: int) -> None:
        """Adds an event that writes or reads packets, if its op does."""
        if name in WRITES_PACKETS:
            self._packets["write"].append(event)
        if name in READS_PACKETS:
            self._packets["read"].append(event)

    def signal(self, event: int, channel: _Channel) -> None:
        """Adds a signal of an event on a channel."""
        self._signals[channel].append(event)

    def wait(self, event: int, channel: _Channel) -> None:
        """Adds an event that waits for a signal on a channel."""
        self._waits[channel].append(event)

    def release(self, event: int, rank: int, semaphore: int) -> None:
        """Adds an event that increments a semaphore."""
        self._releases[rank, semaphore].append(event)

    def acquire(self, event: int, rank: int, semaphore: int) -> None:
        """Adds an event that waits until a semaphore is positive, and decrements it."""
        self._acquires[rank, semaphore].append(event)

    def barrier(self, rank: int, barrier: int, events: tuple[int, int], blocks: int) -> None:
        """Adds arrival and departure of a thread block at a barrier of `blocks` thread blocks."""
        block = self._program.events[events[0]].block
        self._barriers[rank, barrier][block].append((*events, blocks))

    def connect(self) -> None:
        """Adds the order of events.

        Raises:
            ConfigError: An event waits forever, or several thread blocks share a channel or a
                semaphore so that their order is unknown.
        """
        for channel, waits in sorted(self._waits.items()):
            rank, peer, kind, number = channel
            signals = self._signals.get((peer, rank, kind, number), [])
            name = f"{kind} channel {number} from GPU {peer}"
            self._pair(signals, waits, 0, name)
        for key, waits in sorted(self._acquires.items()):
            known = self._initial[key[0]]
            initial = known[key[1]] if key[1] < len(known) else 0
            self._pair(self._releases.get(key, []), waits, initial, f"semaphore {key[1]}")
        for (rank, barrier), blocks in sorted(self._barriers.items()):
            self._meet(rank, barrier, blocks)
        self._order_packets()

    def _order_packets(self) -> None:
        """Orders readers of packets after the only writer of their scratch chunks."""
        events = self._program.events
        writers: dict[tuple[int, int], int] = {}
        for number in self._packets["write"]:
            for action in events[number].actions:
                if isinstance(action.into, ChunkRange) and action.into.buffer == "s":
                    for index in range(action.into.index, action.into.end):
                        if writers.setdefault((action.rank, index), number) != number:
                            problem = f"writes packets to scratch chunk {index} a second time"
                            raise self._error(number, problem)
        for number in self._packets["read"]:
            event = events[number]
            sources = [
                source
                for action in event.actions
                if action.rank == event.rank
                for source in action.sources
                if isinstance(source, ChunkRange) and source.buffer == "s"
            ]
            for source in sources:
                for index in range(source.index, source.end):
                    writer = writers.get((event.rank, index), number)
                    if writer != number and writer not in event.after_all:
                        event.after_all.append(writer)

    def _pair(self, signals: list[int], waits: list[int], initial: int, name: str) -> None:
        """Orders the n-th wait after the n-th signal."""
        events = self._program.events
        if len({events[wait].block for wait in waits}) > 1:
            raise self._error(waits[-1], f"{name} has waits of several thread blocks")
        if len(waits) > len(signals) + initial:
            raise self._error(waits[len(signals) + initial], f"waits forever for {name}")
        if len({events[signal].block for signal in signals}) > 1:
            # Only the wait for the last signal is ordered after a certain one: after all of them.
            if len(waits) == len(signals) + initial and waits:
                events[waits[-1]].after += signals
            return
        for signal, wait in zip(signals, waits[initial:], strict=False):
            events[wait].after.append(signal)

    def _meet(self, rank: int, barrier: int, blocks: dict[int, list[tuple[int, int, int]]]) -> None:
        count = max(len(arrivals) for arrivals in blocks.values())
        for number in range(count):
            met = [arrivals[number] for arrivals in blocks.values() if number < len(arrivals)]
            if any(expected != len(met) for _, _, expected in met):
                raise self._error(
                    met[0][0],
                    f"barrier {barrier} of GPU {rank} joins {len(met)} thread blocks, and expects "
                    f"{met[0][2]}",
                )
            for _, departure, _ in met:
                self._program.events[departure].after += [arrival for arrival, _, _ in met]

    def _error(self, event: int, problem: str) -> Exception:
        return mistake(
            problem,
            source=self._program.source,
            key=self._program.events[event].place,
            expected="a signal, release or arrival for each wait",
        )
