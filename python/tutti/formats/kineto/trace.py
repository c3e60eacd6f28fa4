"""Profiles of PyTorch (Kineto) as traces of `tutti convert`: a JSON file per rank.

Kernels, copies and fills become computations of their streams; kernels of NCCL become collectives
or messages. Calls that launch them become computations of a CPU stream. See
`tutti.formats.kineto.timeline` for dependencies, `tutti.formats.kineto.communication` for NCCL.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from glob import has_magic
from typing import TYPE_CHECKING

from tutti.base.files.reader import missing
from tutti.formats.formats import INFERRED, head, named
from tutti.formats.kineto.communication import Communications
from tutti.formats.kineto.placement import Placement
from tutti.formats.kineto.profile import EXPECTED, load_profile
from tutti.formats.kineto.timeline import Timeline
from tutti.workloads.errors import TraceError
from tutti.workloads.operations import Trace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tutti.formats.formats import Options
    from tutti.formats.kineto.communication import Communication
    from tutti.formats.kineto.profile import Profile
    from tutti.workloads.operations import CollectiveCall, Operations

ENDINGS = (".json", ".json.gz")
_RANK = re.compile(r"(?i)(rank[-_]?)(\d{1,7})")
_NOTABLE_NS = 1_000_000
"""Idle time that is worth a remark."""


def read_trace(path: Path, options: Options) -> tuple[Trace, tuple[str, ...]]:  # noqa: ARG001 - of all formats
    """Reads the profiles of all ranks.

    Args:
        path: The file of a rank, a pattern such as ``rank*.json``, or a folder of files.
        options: No option has an effect.

    Returns:
        The trace, and a line per loss or inferred value.

    Raises:
        ConfigError: A file cannot be read, is truncated or not JSON.
        TraceError: A file is no profile, the file of a rank is missing, or an event is invalid.
    """
    found, losses = read_profiles(path)
    return found.trace, losses


@dataclass(frozen=True)
class Profiles:
    """The profiles of all ranks.

    Attributes:
        trace: The trace.
        cpu: The stream of the CPU of each rank.
    """

    trace: Trace
    cpu: tuple[int, ...]


def read_profiles(path: Path) -> tuple[Profiles, tuple[str, ...]]:
    """Reads the profiles of all ranks, as `read_trace` does; states the streams of CPUs, too."""
    profiles, lines = _by_rank(path)
    builder = _Builder(len(profiles))
    ranks = [builder.rank(profile, number) for number, profile in enumerate(profiles)]
    builder.drop_cut(ranks)
    operations = [builder.operations(rank) for rank in ranks]
    skew = _skew(profiles)
    if skew:
        lines.append(f"starts of ranks, which differ by up to {skew / 1e6:,.3f} ms: all start at 0")
    trace = Trace(
        name=re.sub(r"\.json(?:\.gz)?$", "", path.name),
        ranks=tuple(of for of, _ in operations),
        collectives=tuple(builder.collectives),
    )
    cpu = tuple(stream for _, stream in operations)
    return Profiles(trace, cpu), (*lines, *builder.lines())


def _skew(profiles: Sequence[Profile]) -> int:
    """Returns the largest difference of the starts of ranks in ns."""
    starts = [each.base + min(one.start for one in each.activities) for each in profiles]
    return max(starts) - min(starts)


# --- files and ranks ---


def _by_rank(path: Path) -> tuple[list[Profile], list[str]]:
    """Returns the profiles by rank, and lines about them.

    Raises:
        TraceError: A rank is unknown, missing or has two files.
    """
    lines: list[str] = []
    found: dict[int, Profile] = {}
    files = _files(path)
    is_alone = len(files) == 1
    for file in sorted(files, key=lambda each: each != path):
        profile = load_profile(file)
        rank = _rank(profile, is_alone=is_alone, lines=lines)
        if rank in found:
            message = f"{file} and {found[rank].source} are both of rank {rank}"
            hint = "name the files of one profile, such as `step7/rank*.json`"
            raise TraceError(f"{message}: expected one file per rank", kind="same_rank", hint=hint)
        found[rank] = profile
        if file == path and profile.world_size == 1:
            break
    count = max(*found, *((each.world_size or 1) - 1 for each in found.values())) + 1
    absent = [rank for rank in range(count) if rank not in found] if count <= 1 << 20 else [0]
    if absent:
        shown = ", ".join(map(str, absent[:8])) + (", ..." if len(absent) > 8 else "")
        message = f"{path}: the job has {count:,} ranks, and {len(absent):,} have no file: {shown}"
        fields = {"rank": absent[0]}
        raise TraceError(f"{message}: expected the file of each", kind="no_profile", fields=fields)
    return [found[rank] for rank in range(count)], lines


def _rank(profile: Profile, *, is_alone: bool, lines: list[str]) -> int:
    """Returns the rank of a file.

    Raises:
        TraceError: Neither the file nor its name states it, and there are other files.
    """
    named_rank = _RANK.search(profile.source.name)
    stated = int(named_rank[2]) if named_rank else None
    if profile.rank is not None:
        if stated is not None and stated != profile.rank:
            text = f"{profile.source.name} is of rank {profile.rank}, not {stated} as in its name"
            lines.append(f"{INFERRED}{text}: `distributedInfo` has the rank")
        return profile.rank
    if stated is None and not is_alone:
        message = f"{profile.source}: no rank in `distributedInfo` or in the name of the file"
        raise TraceError(f"{message}: expected a name such as rank0.json", kind="no_profile")
    rank = 0 if stated is None else stated
    text = f"{profile.source.name} is of rank {rank}: it has no rank in `distributedInfo`"
    lines.append(f"{INFERRED}{text}")
    return rank


def _files(path: Path) -> list[Path]:
    """Returns the files of all ranks.

    Raises:
        ConfigError: There is no file.
    """
    if has_magic(path.name):
        found = sorted(path.parent.glob(path.name))
    elif path.is_dir():
        found = _profiles_of(path)
    elif path.is_file():
        return _siblings(path)
    else:
        found = []
    if not found:
        raise missing(path, f"{EXPECTED}, a folder of them, or a pattern")
    return found


def _siblings(path: Path) -> list[Path]:
    """Returns the files of the ranks of a profile: those whose names differ in the rank.

    If no other name does, these are all profiles of the folder.
    """
    pattern = _RANK.sub(r"\1#", path.name)
    others = _profiles_of(path.parent)
    found = [each for each in others if _RANK.sub(r"\1#", each.name) == pattern]
    if len(found) < 2:
        found = others
    return found if path in found else [path]


def _profiles_of(folder: Path) -> list[Path]:
    matches = named("kineto", option="--from").matches
    return [
        each
        for each in sorted(folder.iterdir())
        if each.name.endswith(ENDINGS) and each.is_file() and matches and matches(head(each))
    ]


# --- operations ---


@dataclass
class _Rank:
    """A rank while its operations are built.

    Attributes:
        timeline: Its order.
        communications: What each activity communicates; None for computations.
    """

    timeline: Timeline
    communications: list[Communication | None]


@dataclass
class _Builder:
    """Builds the operations of all ranks.

    Attributes:
        world: The number of ranks.
        collectives: The index of each collective.
        counts: Numbers of events by remark.
        idle: Time in ns before activities that no dependency explains.
    """

    world: int
    collectives: dict[CollectiveCall, int] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    idle: int = 0

    def rank(self, profile: Profile, number: int) -> _Rank:
        """Returns the order and the communications of a rank."""
        timeline = Timeline(profile)
        found = Communications(timeline, number, self.world)
        rank = _Rank(timeline, [found.of(each) for each in timeline.activities])
        self.counts.update(timeline.counts)
        self.counts.update(found.counts)
        return rank

    def drop_cut(self, ranks: list[_Rank]) -> None:
        """Turns collectives that not all ranks have recorded into computations."""
        callers: Counter[tuple[object, object]] = Counter()
        for rank in ranks:
            callers.update({(of.call, of.number) for of in rank.communications if of and of.number})
        for rank in ranks:
            for index, of in enumerate(rank.communications):
                if of is None or of.number is None or of.call is None:
                    continue
                if callers[of.call, of.number] < len(of.call.group):
                    rank.communications[index] = None
                    text = "collectives that other ranks have not recorded are computations"
                    self.counts[text] += 1

    def operations(self, rank: _Rank) -> tuple[Operations, int]:
        """Returns the operations of a rank, and the stream of its CPU."""
        placement = Placement(rank.timeline, rank.communications, self.collectives)
        operations = placement.operations()
        self.idle += placement.idle
        return operations, placement.cpu

    def lines(self) -> list[str]:
        """Returns what was lost or inferred."""
        lines = [
            f"{INFERRED if 'inferred' in text else ''}{count:,} {text}"
            for text, count in sorted(self.counts.items())
            if count
        ]
        if self.idle >= _NOTABLE_NS:
            text = "of GPUs before activities whose dependencies had ended: part of the activities"
            lines.append(f"{self.idle / 1e6:,.1f} ms {text}")
        return lines
