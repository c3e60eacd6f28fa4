"""Profiles of PyTorch (Kineto) as traces of `tutti convert`: a JSON file per rank.

Kernels, copies and fills become computations of their streams; kernels of NCCL become collectives
or messages. Calls that launch them become computations of a CPU stream. See
`tutti.formats.kineto.timeline` for dependencies, `tutti.formats.kineto.communication` for NCCL.

The operations of a rank are built before the next file is read, which bounds the memory.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tutti.formats.chakra.writer import traces_of
from tutti.formats.formats import INFERRED, stated
from tutti.formats.kineto.communication import Communications
from tutti.formats.kineto.files import files_of, job_name, rank_of
from tutti.formats.kineto.placement import Placement
from tutti.formats.kineto.profile import load_profile
from tutti.formats.kineto.timeline import Timeline
from tutti.workloads.errors import TraceError
from tutti.workloads.operations import Kind, Trace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tutti.formats.chakra.reader import ChakraTrace
    from tutti.formats.formats import Options
    from tutti.formats.kineto.communication import Communication
    from tutti.formats.kineto.placement import Numbered
    from tutti.formats.kineto.profile import Profile
    from tutti.workloads.operations import CollectiveCall, Operations

_MOST_RANKS = 1 << 20
_NOTABLE_NS = 1_000_000
"""Idle time that is worth a remark."""


def read_trace(path: Path, options: Options) -> tuple[Trace, tuple[str, ...]]:
    """Reads the profiles of all ranks.

    Args:
        path: The file of a rank, a pattern such as ``rank*.json``, or a folder of files.
        options: With `repair`, a rank without a file repeats the first one that has one, if all
            communications are collectives of all ranks.

    Returns:
        The trace, and a line per loss or inferred value.

    Raises:
        ConfigError: A file cannot be read, is truncated or not JSON.
        TraceError: A file is not a profile, the file of a rank is missing, or an event is invalid.
    """
    return _read(path, repair=options.repair)


def read_all(path: Path) -> tuple[ChakraTrace, ...]:
    """Reads the profiles of all ranks as Chakra traces, for training steps.

    Raises:
        ConfigError: A file cannot be read, is truncated or not JSON.
        TraceError: As for `read_trace`, or a collective has no Chakra equivalent.
    """
    trace, losses = _read(path, repair=False)
    first, *others = traces_of(trace)
    return replace(first, remarks=tuple(map(stated, losses))), *others


def _read(path: Path, *, repair: bool) -> tuple[Trace, tuple[str, ...]]:
    """Returns the trace, and lines about losses."""
    files = files_of(path)
    job = _Job(path)
    for file in sorted(files, key=lambda each: each != path):
        profile = load_profile(file)
        rank = rank_of(profile, is_alone=len(files) == 1, lines=job.lines)
        job.add(profile, rank, profile.world_size or max(len(files), rank + 1))
        if file == path and profile.world_size == 1:
            break
    ranks = job.all_ranks(repair=repair)
    trace = Trace(
        name=job_name(path),
        ranks=tuple(rank.operations for rank in ranks),
        collectives=tuple(job.collectives),
        cpu=tuple(rank.cpu for rank in ranks),
    )
    return trace, tuple(job.remarks())


@dataclass
class _Rank:
    """A rank that has been read.

    Attributes:
        source: Its file.
        operations: Its operations.
        cpu: The stream of its CPU.
        start: When it starts, in ns.
        numbered: The collectives with a sequence number, by operation.
        particular: What it communicates that other ranks cannot repeat, or "".
    """

    source: Path
    operations: Operations
    cpu: int
    start: int
    numbered: dict[int, Numbered]
    particular: str


@dataclass
class _Job:
    """The ranks of a job.

    Attributes:
        path: The file, folder or pattern, for errors.
        ranks: The ranks that have been read.
        sizes: The numbers of ranks that files state.
        collectives: The index of each collective.
        counts: Numbers of events by remark.
        lines: Other remarks.
        idle: Time in ns before activities that no dependency explains.
    """

    path: Path
    ranks: dict[int, _Rank] = field(default_factory=dict)
    sizes: set[int] = field(default_factory=set)
    collectives: dict[CollectiveCall, int] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    lines: list[str] = field(default_factory=list)
    idle: int = 0

    def add(self, profile: Profile, rank: int, world: int) -> None:
        """Adds the profile of a rank, in a job of `world` ranks.

        Raises:
            TraceError: The rank has another file, or a communication is invalid.
        """
        if rank in self.ranks:
            message = f"{profile.source} and {self.ranks[rank].source.name} are of rank {rank}: "
            hint = "name the files of one profile, such as `step7/rank*.json`"
            raise TraceError(f"{message}expected one file per rank", kind="same_rank", hint=hint)
        if profile.world_size is not None:
            self.sizes.add(profile.world_size)
        timeline = Timeline(profile)
        reader = Communications(timeline, rank, world)
        communications = [reader.of(each) for each in timeline.activities]
        placement = Placement(timeline, communications, self.collectives)
        operations = placement.operations()
        self.counts.update(timeline.counts)
        self.counts.update(reader.counts)
        self.idle += placement.idle
        start = profile.base + timeline.activities[0].start
        particular = _particular(communications, world)
        self.ranks[rank] = _Rank(
            profile.source, operations, placement.cpu, start, placement.numbered, particular
        )

    def all_ranks(self, *, repair: bool) -> list[_Rank]:
        """Returns all ranks of the job; those without a file repeat another one with `repair`.

        Raises:
            TraceError: A rank has no file and cannot repeat another one, or files state different
                numbers of ranks.
        """
        count = self._count()
        absent = [rank for rank in range(count) if rank not in self.ranks]
        if not absent:
            self._drop_cut()
            return [self.ranks[rank] for rank in range(count)]
        if not repair:
            raise self._without_file(absent, count)
        first = min(self.ranks)
        particular = next((rank for rank in self.ranks.values() if rank.particular), None)
        if particular is not None:
            message = f"{self.path}: rank {absent[0]} has no file and cannot repeat another: "
            message += f"{particular.source.name} has {particular.particular}: expected "
            message += "collectives of all ranks"
            raise TraceError(message, kind="no_profile", fields={"rank": absent[0]})
        self.lines.append(f"{INFERRED}{len(absent):,} ranks without a file repeat rank {first}")
        return [self.ranks.get(rank, self.ranks[first]) for rank in range(count)]

    def _count(self) -> int:
        last, sizes = max(self.ranks), sorted(self.sizes)
        count = max(last + 1, *sizes, 1)
        if len(sizes) > 1 or count > max(sizes, default=count) or count > _MOST_RANKS:
            stated_sizes = ", ".join(map(str, sizes)) or "no"
            message = f"{self.path}: files state {stated_sizes} ranks and have rank {last}"
            hint = "name the files of one job"
            raise TraceError(f"{message}: expected one job", kind="other_ranks", hint=hint)
        return count

    def _without_file(self, absent: Sequence[int], count: int) -> TraceError:
        """Returns the error of ranks without a file."""
        shown = ", ".join(map(str, absent[:8])) + (", ..." if len(absent) > 8 else "")
        ranks = f"rank {shown} has" if len(absent) == 1 else f"ranks {shown} have"
        message = f"{self.path}: the job has {count:,} ranks, and {ranks} no file: expected the "
        hint = "`--repair` lets them repeat a rank that has a file"
        fields = {"rank": absent[0]}
        return TraceError(f"{message}file of each", kind="no_profile", fields=fields, hint=hint)

    def _drop_cut(self) -> None:
        """Turns collectives that not all ranks have recorded into computations."""
        callers: Counter[tuple[object, object]] = Counter()
        for rank in self.ranks.values():
            callers.update({(one.call, one.number) for one in rank.numbered.values()})
        for rank in self.ranks.values():
            of = rank.operations
            for index, one in rank.numbered.items():
                if callers[one.call, one.number] < len(one.call.group):
                    of.kinds[index], of.sizes[index], of.peers[index] = Kind.COMPUTE, 0, -1
                    of.durations[index] = one.duration
                    text = "collectives that other ranks have not recorded are computations"
                    self.counts[text] += 1

    def remarks(self) -> list[str]:
        """Returns what was lost or inferred."""
        lines = list(self.lines)
        starts = [rank.start for rank in self.ranks.values()]
        if skew := max(starts) - min(starts):
            text = f"starts of ranks, which differ by up to {skew / 1e6:,.3f} ms: all start at 0"
            lines.append(text)
        lines += [
            f"{INFERRED * text.startswith(INFERRED)}{count:,} {text.removeprefix(INFERRED)}"
            for text, count in sorted(self.counts.items())
            if count
        ]
        if self.idle >= _NOTABLE_NS:
            text = "of GPUs before activities whose dependencies had ended: part of the activities"
            lines.append(f"{self.idle / 1e6:,.1f} ms {text}")
        return lines


def _particular(communications: Sequence[Communication | None], world: int) -> str:
    """Returns what ranks without a file cannot repeat, or ""."""
    if any(one and one.call is None for one in communications):
        return "messages"
    groups = (one.call.group for one in communications if one and one.call)
    return "collectives of some ranks" if any(len(each) < world for each in groups) else ""
