"""Profiles of PyTorch (Kineto) as traces of `tutti convert`: a JSON file per rank.

Kernels, copies and fills become computations of their streams; kernels of NCCL become collectives
or messages. Calls that launch them become computations of a CPU stream. See
`tutti.formats.kineto.timeline` for dependencies, `tutti.formats.kineto.communication` for NCCL.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from glob import has_magic
from typing import TYPE_CHECKING

from tutti.base.files.reader import missing
from tutti.formats.chakra.writer import traces_of
from tutti.formats.formats import INFERRED, head, named, stated
from tutti.formats.kineto.communication import Communications
from tutti.formats.kineto.placement import Placement
from tutti.formats.kineto.profile import EXPECTED, load_profile
from tutti.formats.kineto.timeline import Timeline
from tutti.workloads.errors import TraceError
from tutti.workloads.operations import Trace

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from tutti.formats.chakra.reader import ChakraTrace
    from tutti.formats.formats import Options
    from tutti.formats.kineto.communication import Communication
    from tutti.formats.kineto.profile import Profile
    from tutti.workloads.operations import CollectiveCall, Operations

_MOST_RANKS = 1 << 20
ENDINGS = (".json", ".json.gz")
_RANK = re.compile(r"(?i)(rank[-_]?)(\d{1,7})")
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
    trace, _, losses = _read(path, repair=options.repair)
    return trace, losses


def read_all(path: Path) -> tuple[ChakraTrace, ...]:
    """Reads the profiles of all ranks as Chakra traces, for training steps.

    Raises:
        ConfigError: A file cannot be read, is truncated or not JSON.
        TraceError: As for `read_trace`, or a collective has no Chakra equivalent.
    """
    trace, cpu, losses = _read(path, repair=False)
    first, *others = traces_of(trace, cpu)
    return replace(first, remarks=tuple(map(stated, losses))), *others


def _read(path: Path, *, repair: bool) -> tuple[Trace, tuple[int, ...], tuple[str, ...]]:
    """Returns the trace, the stream of the CPU of each rank, and lines about losses."""
    profiles, count, lines = _by_rank(path)
    builder = _Builder(count)
    absent = [rank for rank in range(count) if rank not in profiles]
    if absent and not repair:
        raise _without_file(path, absent, count)
    ranks = {number: builder.rank(profile, number) for number, profile in profiles.items()}
    if absent:
        first = min(ranks)
        builder.check_alike(ranks, first, absent[0])
        lines.append(f"{INFERRED}{len(absent):,} ranks without a file repeat rank {first}")
    else:
        builder.drop_cut(list(ranks.values()))
    built = {number: builder.operations(rank) for number, rank in sorted(ranks.items())}
    operations = [built.get(rank) or built[min(built)] for rank in range(count)]
    if skew := _skew(profiles.values()):
        lines.append(f"starts of ranks, which differ by up to {skew / 1e6:,.3f} ms: all start at 0")
    trace = Trace(
        name=_job(path),
        ranks=tuple(of for of, _ in operations),
        collectives=tuple(builder.collectives),
    )
    cpu = tuple(stream for _, stream in operations)
    return trace, cpu, (*lines, *builder.lines())


def _job(path: Path) -> str:
    """Returns a name for all ranks: that of the file without its rank, or of the folder."""
    name = re.sub(r"(?:\.pt)?(?:\.trace)?\.json(?:\.gz)?$", "", _RANK.sub("", path.name))
    return name.strip("-_.*?") or path.resolve().parent.name


def _skew(profiles: Iterable[Profile]) -> int:
    """Returns the largest difference of the starts of ranks in ns."""
    starts = [each.base + min(one.start for one in each.activities) for each in profiles]
    return max(starts) - min(starts)


# --- files and ranks ---


def _by_rank(path: Path) -> tuple[dict[int, Profile], int, list[str]]:
    """Returns the profiles by rank, the number of ranks of the job, and lines about them.

    Raises:
        TraceError: A rank is unknown or has two files, or files state different numbers of ranks.
    """
    lines: list[str] = []
    profiles: dict[int, Profile] = {}
    files = _files(path)
    for file in sorted(files, key=lambda each: each != path):
        profile = load_profile(file)
        rank = _rank(profile, is_alone=len(files) == 1, lines=lines)
        if rank in profiles:
            message = f"{file} and {profiles[rank].source.name} are of rank {rank}: expected one "
            hint = "name the files of one profile, such as `step7/rank*.json`"
            raise TraceError(f"{message}file per rank", kind="same_rank", hint=hint)
        profiles[rank] = profile
        if file == path and profile.world_size == 1:
            break
    sizes = sorted({each.world_size for each in profiles.values() if each.world_size})
    count = max(max(profiles) + 1, *sizes, 1)
    if len(sizes) > 1 or count > max(sizes, default=count) or count > _MOST_RANKS:
        stated_sizes = ", ".join(map(str, sizes)) or "no"
        message = f"{path}: files state {stated_sizes} ranks and have rank {max(profiles)}"
        hint = "name the files of one job"
        raise TraceError(f"{message}: expected one job", kind="other_ranks", hint=hint)
    return profiles, count, lines


def _without_file(path: Path, absent: Sequence[int], count: int) -> TraceError:
    """Returns the error of ranks without a file."""
    shown = ", ".join(map(str, absent[:8])) + (", ..." if len(absent) > 8 else "")
    ranks = f"rank {shown} has" if len(absent) == 1 else f"ranks {shown} have"
    message = f"{path}: the job has {count:,} ranks, and {ranks} no file: expected the file of each"
    hint = "`tutti convert FILE job.0.et --repair` lets them repeat a rank that has one"
    return TraceError(message, kind="no_profile", fields={"rank": absent[0]}, hint=hint)


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

    def check_alike(self, ranks: Mapping[int, _Rank], first: int, absent: int) -> None:
        """Checks that ranks without a file may repeat those that have one.

        Raises:
            TraceError: A communication is not a collective of all ranks without a root.
        """
        for of in (one for rank in ranks.values() for one in rank.communications if one):
            if of.call is None or len(of.call.group) < self.world:
                what = "messages" if of.call is None else "collectives of some ranks"
                message = f"rank {absent} has no file and cannot repeat rank {first}, which has "
                message += f"{what}: expected collectives of all ranks"
                raise TraceError(message, kind="no_profile", fields={"rank": absent})

    def operations(self, rank: _Rank) -> tuple[Operations, int]:
        """Returns the operations of a rank, and the stream of its CPU."""
        placement = Placement(rank.timeline, rank.communications, self.collectives)
        operations = placement.operations()
        self.idle += placement.idle
        return operations, placement.cpu

    def lines(self) -> list[str]:
        """Returns what was lost or inferred."""
        lines = [
            f"{INFERRED * text.startswith(INFERRED)}{count:,} {text.removeprefix(INFERRED)}"
            for text, count in sorted(self.counts.items())
            if count
        ]
        if self.idle >= _NOTABLE_NS:
            text = "of GPUs before activities whose dependencies had ended: part of the activities"
            lines.append(f"{self.idle / 1e6:,.1f} ms {text}")
        return lines
