"""Diagnoses measured collectives of NCCL: choices, achieved bandwidth, suspicious rails and ranks.

For each size: the measured time, the choice of NCCL if it is known, the share of the bandwidth that
rings can achieve, the share of the lower bound, and a better choice that was measured. Choices are
from debug logs, from the user, or a guess of a model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import ceil
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from tutti.base.files.mistakes import mistake
from tutti.nccl.bounds import Rails, bound_us, gpu_rate, rails_of
from tutti.nccl.evidence import Evidence, Selected
from tutti.nccl.series import Finding, Point, Series, rate, series_of, share, size, suspicious
from tutti.nccl.suspects import of_log, of_operations, of_topology
from tutti.nccl.tuner_csv import COLLECTIVES, NO_LIMIT, TunerRule

if TYPE_CHECKING:
    from tutti.formats.nccl.debug import DebugLog
    from tutti.formats.nccl.topology import Topology

Model = Callable[[str, int, int, int], Selected | None]
"""Returns the probable choice of NCCL for collective, ranks, nodes and size in bytes."""
Basis = Literal["user", "log", "guess", ""]
_GAIN: Final = 0.05
"""Share of the time from which another choice is advised."""
_POOR: Final = 0.7
"""Share of the achievable bandwidth at the largest sizes below which it is reported."""
_NEAR: Final = 0.85
"""Share of the bandwidth of some NICs from which only these seem to be used."""
_BEYOND: Final = 1.05
_SHARDS: Final = frozenset({"all_gather", "reduce_scatter"})


class Better(NamedTuple):
    """A measured choice that takes less time, and the share of the time that it saves."""

    choice: Selected
    time_us: float
    saves: float


@dataclass(frozen=True)
class Sized:
    """A size of a series.

    Attributes:
        choice: The algorithm and protocol; None if they are unknown.
        basis: Where the choice is from.
        channels: The number of channels; None if it is unknown.
        bus_bytes_per_s: The bus bandwidth.
        of_ring: Its share of what rings can achieve; None if that is unknown.
        of_bound: The share of the measured time that the lower bound is; above 1 with reduction in
            switches.
        better: A better measured choice.
    """

    point: Point
    choice: Selected | None
    basis: Basis
    channels: int | None
    bus_bytes_per_s: float
    of_ring: float | None
    of_bound: float | None
    better: Better | None

    @property
    def beyond_rings(self) -> bool:
        """Whether no ring can be as fast."""
        return self.of_ring is not None and self.of_ring > _BEYOND


@dataclass(frozen=True)
class Subject:
    """A series with its diagnosis; `ring` is the bus bandwidth that rings can achieve, in B/s."""

    series: Series
    ring: float | None
    limits: str
    sizes: tuple[Sized, ...]


@dataclass
class Diagnosis:
    """The diagnosis of all files."""

    subjects: list[Subject]
    findings: list[Finding]
    omitted: list[tuple[str, int, str]] = field(default_factory=list)
    remarks: tuple[str, ...] = ()


def diagnose(
    evidence: Evidence,
    *,
    topology: Topology | None = None,
    rails: Rails | None = None,
    model: Model | None = None,
) -> Diagnosis:
    """Diagnoses measured collectives.

    Args:
        evidence: What the files state, from `read_evidence`.
        topology: The topology of a node.
        rails: Rates of links instead of those of the topology.
        model: Guesses the choice of NCCL where logs do not state it.

    Raises:
        ConfigError: There is nothing to diagnose.
    """
    if not (evidence.rows or evidence.wrong or evidence.logs or evidence.operations):
        if evidence.why:
            raise mistake(evidence.why, source="the file")
        raise mistake("nothing to diagnose", source="the files",
                      expected="results of nccl-tests, debug logs or Inspector output")  # fmt: skip
    if rails is None:
        rails = rails_of(topology) if topology is not None else gpu_rate(evidence.gpus)
    found = series_of(evidence.rows)
    chosen = _Choices(evidence.logs, found, model)
    subjects = [_subject(one, found, rails, chosen) for one in found]
    findings = _findings(evidence, topology, rails, subjects)
    order = ("problem", "warning", "note")
    findings.sort(key=lambda one: order.index(one.level))
    return Diagnosis(subjects, findings, evidence.omitted, evidence.remarks)


def _findings(
    evidence: Evidence,
    topology: Topology | None,
    rails: Rails | None,
    subjects: Sequence[Subject],
) -> list[Finding]:
    """Returns what is suspicious in files, nodes and times."""
    findings = [
        Finding("problem", file, f"line {line}: {reason}", "check memory, links and drivers")
        for file, line, reason in evidence.wrong
    ]
    for log in evidence.logs.values():
        findings += of_log(log)
    if topology is not None:
        findings += of_topology(topology)
    findings += of_operations(evidence.operations)
    gpus = len(topology.gpus) if topology is not None else 0
    for one in (subject.series for subject in subjects if gpus):
        if one.ranks != gpus * one.nodes:
            seen = f"{one.ranks} ranks on {one.nodes} nodes, but the topology has {gpus} GPUs"
            do = "rates are those of the complete node: use the topology of the job's nodes"
            findings.append(Finding("note", one.title, seen, do))
    for subject in subjects:
        findings += _poor(subject, rails)
        findings += _beyond_rings(subject)
        findings += _impossible(subject)
        findings += _contradictions(subject)
        choices = {one.point.size_bytes: str(one.choice) for one in subject.sizes if one.choice}
        findings += suspicious(subject.series, choices)
    findings += [Finding("note", option, seen) for option, seen in evidence.unused]
    if not evidence.rows and not evidence.operations:
        findings.append(_no_times(evidence))
    for file in {row.file: None for row in evidence.rows if row.nodes is None}:
        findings.append(
            Finding("note", file, "the number of nodes is unknown: 1 is assumed", "set --nodes N")
        )
    return findings


def _no_times(evidence: Evidence) -> Finding:
    why = f": {evidence.why}" if evidence.why else ""
    do = "add output of nccl-tests with its heading and the lines `Rank`, or set --ranks"
    return Finding("warning", "the files", f"no measured times were read{why}", do)


def _contradictions(subject: Subject) -> Iterator[Finding]:
    """Returns a finding for sizes at which the log states another choice than the forced one."""
    forced = subject.series.forced
    other = [
        one for one in subject.sizes
        if forced and one.basis == "log" and one.choice and not _fits(one.choice, forced)
    ]  # fmt: skip
    if other:
        seen = f"the debug log states {other[0].choice} at {size(other[0].point)}, not {forced}"
        yield Finding("warning", subject.series.title, seen, "check --choice and NCCL_ALGO")


def _fits(choice: Selected, forced: Selected) -> bool:
    """Returns whether a choice is the forced one, of which the protocol may be open."""
    same = choice.algorithm == forced.algorithm
    return same and forced.protocol in {None, choice.protocol}


def _subject(
    series: Series, every: Sequence[Series], rails: Rails | None, chosen: _Choices
) -> Subject:
    ring = rails.ring(series.nodes) if rails is not None else None
    sizes = []
    for point in series.points:
        choice, basis, channels = chosen.of(series, point)
        bus = series.bus_bytes_per_s(point)
        bound = rails and bound_us(
            rails, series.collective, point.size_bytes, series.ranks, series.nodes
        )
        sizes.append(
            Sized(
                point=point,
                choice=choice,
                basis=basis,
                channels=channels,
                bus_bytes_per_s=bus,
                of_ring=bus / ring if ring else None,
                of_bound=bound / point.time_us if bound else None,
                better=_better(series, point, every),
            )
        )
    return Subject(series, ring, rails.source if rails and ring else "", tuple(sizes))


def _better(series: Series, point: Point, every: Sequence[Series]) -> Better | None:
    """Returns the fastest other choice that was measured at a size, if it saves enough."""
    if series.forced is not None:
        return None
    found = [
        (one.steady_us, str(other.forced), other.forced)
        for other in every
        if other.forced is not None
        and (other.collective, other.ranks, other.nodes)
        == (series.collective, series.ranks, series.nodes)
        for one in other.points
        if one.size_bytes == point.size_bytes
    ]
    if not found:
        return None
    time_us, _, choice = min(found)
    saves = 1 - time_us / point.steady_us
    return Better(choice, time_us, saves) if saves >= _GAIN else None


def _poor(subject: Subject, rails: Rails | None) -> Iterable[Finding]:
    """Yields a finding if the largest size of a series is far from what rings can achieve."""
    last = subject.sizes[-1]
    if last.of_ring is None or last.of_ring >= _POOR or last.point.size_bytes < 1 << 26:
        return
    hint = "force other choices with NCCL_ALGO and NCCL_PROTO; check rails and GPUDirect RDMA"
    if rails is not None and subject.series.nodes > 1 and len(set(rails.nics)) == 1:
        used = last.bus_bytes_per_s / rails.nics[0]
        if used >= _NEAR * (count := ceil(used)) and 2 * count <= len(rails.nics):
            hint = f"this is the bandwidth of {count} of {len(rails.nics)} NICs: check the others"
    yield Finding(
        "warning",
        subject.series.title,
        f"the largest size reaches {rate(last.bus_bytes_per_s)}, {share(last.of_ring)} of what "
        f"rings can achieve, {rate(subject.ring or 0)}",
        hint,
    )


def _beyond_rings(subject: Subject) -> Iterable[Finding]:
    """Yields a note on sizes at which no ring can be as fast, which narrows down the choice."""
    beyond = [one for one in subject.sizes if one.beyond_rings and not _is_impossible(one)]
    if beyond:
        yield Finding(
            "note",
            subject.series.title,
            f"from {size(beyond[0].point)} on, busbw exceeds what rings can achieve, "
            f"{rate(subject.ring or 0)}",
            "NVLink SHARP ran" if subject.series.nodes == 1 else
            "a tree, NVLink SHARP or CollNet ran: fewer bytes cross the network than in rings",
        )  # fmt: skip


def _is_impossible(sized: Sized) -> bool:
    """Returns whether a stated choice cannot be as fast as measured, by the stated links."""
    if sized.choice is None or sized.basis == "guess":
        return False
    if sized.choice.algorithm == "ring":
        return sized.beyond_rings
    # Only switches that reduce go below the bound.
    beyond = sized.of_bound is not None and sized.of_bound > _BEYOND
    return beyond and sized.choice.algorithm in {"tree", "pat"}


def _impossible(subject: Subject) -> Iterable[Finding]:
    """Yields a finding if the stated choice and the stated links contradict the times."""
    first = next(filter(_is_impossible, subject.sizes), None)
    if first is None:
        return
    if first.beyond_rings:
        least = f"rings achieve at most {rate(subject.ring or 0)} busbw"
    else:
        least = f"the lower bound is {share(first.of_bound or 0)} of the time"
    forced = first.basis == "user"
    yield Finding(
        "problem",
        subject.series.title,
        f"{'the forced choice' if forced else 'the choice of the debug log'} is {first.choice}, "
        f"but {size(first.point)} reaches {rate(first.bus_bytes_per_s)}, and by {subject.limits} "
        f"{least}",
        f"{'--choice (or NCCL_ALGO)' if forced else 'the debug log'} or {subject.limits} "
        "contradicts the times: correct one of them",
    )


# --- choices --------------------------------------------------------------------------------------


class _Choices:
    """The choices of NCCL that logs state."""

    def __init__(
        self, logs: Mapping[str, DebugLog], every: Sequence[Series], model: Model | None
    ) -> None:
        measured = {file for one in every for file in one.files}
        self._model = model
        self._logs = logs
        # Logs without results describe the runs whose choice NCCL made.
        self._others = [log for file, log in logs.items() if file not in measured]

    def of(self, series: Series, point: Point) -> tuple[Selected | None, Basis, int | None]:
        """Returns choice, basis and number of channels."""
        own = [self._logs[file] for file in series.files if file in self._logs]
        logs = own or (self._others if series.forced is None else [])
        found = [
            (Selected(one.algorithm, one.protocol), one.channels)
            for log in logs
            for one in log.choices
            if one.collective in {None, series.collective}
            and _size(one.size_bytes, one.channels, series) == point.size_bytes
        ]
        channels = {channels for log in logs for channels in log.channels}
        usual = channels.pop() if len(channels) == 1 else None
        if found:
            # Warm-up and both halves of a row repeat the same choice.
            choice, used = max(found, key=found.count)
            return choice, "log", used or usual
        if series.forced is not None:
            return series.forced, "user", usual
        guess = self._model and self._model(
            series.collective, series.ranks, series.nodes, point.size_bytes
        )
        return (guess, "guess", usual) if guess else (None, "", usual)


def _size(logged: int, channels: int | None, series: Series) -> int:
    """Returns a logged size by tutti's convention: NCCL since 2.27 logs one rank's shard."""
    shards = channels is not None and series.collective in _SHARDS
    return logged * series.ranks if shards else logged


# --- rules ----------------------------------------------------------------------------------------


def tuner_rules(
    diagnosis: Diagnosis, *, channels: int | None = None
) -> tuple[list[TunerRule], list[str]]:
    """Returns rules with the fastest known choice at each measured size, and remarks.

    The rules of a communicator cover all sizes, as the plugin uses one channel for others.

    Args:
        diagnosis: The diagnosis.
        channels: The number of channels, if logs do not state it.

    Raises:
        ConfigError: No choice is known, or a number of channels is missing.
    """
    groups: dict[tuple[str, int, int], list[Subject]] = {}
    for one in diagnosis.subjects:
        if one.series.collective in COLLECTIVES:
            key = (one.series.collective, one.series.ranks, one.series.nodes)
            groups.setdefault(key, []).append(one)
    rules: list[TunerRule] = []
    remarks: list[str] = []
    for key, subjects in groups.items():
        fastest = _fastest(subjects)
        if not fastest:
            remarks.append(f"{subjects[0].series.title}: no rule: no choice is known")
            continue
        # Logs without debug records are of the same communicator.
        stated = [size.channels for one in subjects for size in one.sizes if size.channels]
        rules += _rules(key, fastest, channels, max(stated, default=None))
        remarks += _losses(subjects, fastest)
    if not rules:
        raise mistake(
            "no choice of algorithm and protocol is known",
            source="the files",
            expected="a run with forced choices, or NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,TUNING",
            hint="name the forced choice of a file: --choice FILE=ring/ll128",
        )
    covered = ", ".join(dict.fromkeys(rule.collective for rule in rules))
    remarks.append(f"the plugin runs collectives without a rule on one channel; rules: {covered}")
    return rules, remarks


def _fastest(subjects: Sequence[Subject]) -> dict[int, Sized]:
    """Returns the fastest size of any series whose choice is known, by size."""
    found: dict[int, Sized] = {}
    for sized in (one for subject in subjects for one in subject.sizes):
        known = sized.choice is not None and sized.choice.protocol and sized.basis != "guess"
        best = found.get(sized.point.size_bytes)
        if known and (best is None or sized.point.steady_us < best.point.steady_us):
            found[sized.point.size_bytes] = sized
    return dict(sorted(found.items()))


def _rules(
    key: tuple[str, int, int],
    fastest: Mapping[int, Sized],
    channels: int | None,
    usual: int | None,
) -> list[TunerRule]:
    collective, ranks, nodes = key
    rules: list[TunerRule] = []
    for (choice, count), some in groupby(
        fastest.values(), lambda one: (one.choice, channels or one.channels or usual)
    ):
        sizes = [one.point.size_bytes for one in some]
        if count is None:
            raise mistake(
                f"the number of channels of {collective} at {sizes[0]} bytes is unknown",
                source="the files",
                expected="a log with NCCL_DEBUG=INFO, which states `coll channels`",
                hint="set it: --channels N; without it the plugin uses one channel",
            )
        if choice is None or choice.protocol is None:
            continue
        first = rules[-1].last_bytes + 1 if rules else 0
        later = [size for size in fastest if size > sizes[-1]]
        rules.append(
            TunerRule(collective=collective, first_bytes=first,
                      last_bytes=later[0] - 1 if later else NO_LIMIT,
                      algorithm=choice.algorithm, protocol=choice.protocol, channels=count,
                      nodes=nodes, ranks=ranks)
        )  # fmt: skip
    return rules


def _losses(subjects: Sequence[Subject], fastest: Mapping[int, Sized]) -> Iterable[str]:
    """Yields remarks where a choice that is not known is faster than the rule."""
    for subject in subjects:
        slower = [
            (fastest[one.point.size_bytes].point.steady_us / one.point.steady_us - 1, one.point)
            for one in subject.sizes
            if one.point.size_bytes in fastest
        ]
        loss, point = max(slower, default=(0.0, None))
        if point is not None and loss >= _GAIN:
            yield (
                f"{subject.series.title}: at {size(point)} the rule is {share(loss)} slower than "
                "this run, whose choice is unknown"
            )
