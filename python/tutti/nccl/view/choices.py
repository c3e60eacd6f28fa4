"""What NCCL chooses: the candidates of one size, or the choice of each size."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from tutti import _core
from tutti.nccl.p2p import P2P
from tutti.nccl.tuning import best, candidates
from tutti.view.quantity import count, exact_size, format_rate, format_time, number
from tutti.view.tables import Column, ReportTable, records_of
from tutti.view.terminal import indented
from tutti.view.view import Data, Fact, View, json_facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from tutti.nccl.presets import Preset
    from tutti.nccl.settings import Settings
    from tutti.nccl.system import NcclSystem
    from tutti.nccl.tuned import Candidate


_FLOAT32 = 4
"""Bytes of an element of nccl-tests and `tutti run`, by default."""
_MOST_US = 1e4
"""The time in us above which a term has another unit."""


def _term(us: float) -> str:
    """Returns a term of a prediction, with the digits that NCCL's tables have."""
    return f"{us:.1f} us" if us < _MOST_US else format_time(us * 10**6)


class Row(NamedTuple):
    """A candidate, and the one that NCCL chooses.

    Attributes:
        candidate: The candidate.
        chosen: The one that NCCL chooses.
        size: The size in bytes.
        factor: busbw over algbw.
    """

    candidate: Candidate
    chosen: Candidate
    size: int
    factor: float

    @property
    def algbw(self) -> float:
        """The size over the time, in B/s."""
        return self.size / self.candidate.time * 1e6

    @property
    def busbw(self) -> float:
        """The bus bandwidth of nccl-tests, in B/s."""
        return self.algbw * self.factor

    @property
    def why(self) -> str:
        """The reason for the candidate's place, without a full stop."""
        row, chosen = self.candidate, self.chosen
        if not row.considered:
            return row.refusal
        latency, transfer = _term(row.latency), _term(row.transfer)
        terms = f"{latency} + {transfer} at {row.bandwidth:.4g} GB/s"
        if row.fallback:
            return f"{terms}; the settings leave no algorithm, so NCCL takes Ring"
        if row == chosen:
            return f"{terms}; the shortest time"
        if row.time == chosen.time:
            return f"{terms}; equal, and later in NCCL's order"
        if row.latency >= chosen.time:
            return f"{terms}; its latency alone takes longer"
        term = "bandwidth" if row.transfer > chosen.transfer else "latency"
        return f"{terms}; its {term} term is longer"


class Choice(NamedTuple):
    """A size in bytes, its candidates in NCCL's order, and the one that NCCL chooses."""

    size: int
    rows: list[Row]
    chosen: Candidate

    @property
    def row(self) -> Row:
        """The row of the candidate that NCCL chooses."""
        return next(row for row in self.rows if row.candidate is self.chosen)

    @property
    def considered(self) -> list[Row]:
        """The candidates that NCCL considers, the fastest first."""
        rows = [row for row in self.rows if row.candidate.considered]
        return sorted(rows, key=lambda row: row.candidate.time)

    @property
    def next_best(self) -> str | None:
        """The fastest other algorithm, and its time relative to the choice; None without one."""
        for row in self.considered:
            other, chosen = row.candidate, row.chosen
            if other.algorithm != chosen.algorithm:
                return f"{other.algorithm} {other.protocol}, {other.time / chosen.time:.2f}x"
        return None


def _time(us: float) -> str:
    return format_time(us * 10**6)


def _known_count(number: int) -> str:
    """Returns a number; a dash if it is 0, which stands for one that is not modelled."""
    return f"{number:,}" if number else "-"


def _gb_per_s(bytes_per_s: float) -> str:
    return f"{bytes_per_s / 1e9:.4g}"


CANDIDATES: tuple[Column[Row], ...] = (
    Column("algorithm", lambda row: row.candidate.algorithm, key="algorithm"),
    Column("protocol", lambda row: row.candidate.protocol, key="protocol"),
    Column("considered", lambda row: row.candidate.considered, key="considered", terminal=False),
    Column("time", lambda row: row.candidate.time, _time, key="time_us",
           when=lambda row: row.candidate.considered),
    Column("latency", lambda row: row.candidate.latency, number, "us", key="latency_us",
           terminal=False),
    Column("bandwidth", lambda row: row.candidate.bandwidth, number, "GB/s",
           key="bandwidth_gb_per_s", terminal=False),
    Column("algbw", lambda row: row.algbw, format_rate, key="algbw_bytes_per_s", terminal=False,
           when=lambda row: row.candidate.considered),
    Column("busbw", lambda row: row.busbw, format_rate, key="busbw_bytes_per_s", terminal=False,
           when=lambda row: row.candidate.considered),
    Column("channels", lambda row: row.candidate.channels, count, key="channels",
           terminal=_known_count),
    Column("threads", lambda row: row.candidate.threads, count, key="threads",
           terminal=_known_count),
    Column("why", lambda row: row.why, kind="reason", key="why",
           terminal=lambda why: why.replace("; ", "\n")),
)  # fmt: skip
"""The quantities of a candidate."""

SIZES: tuple[Column[Choice], ...] = (
    Column("size", lambda choice: choice.size, exact_size, key="size_bytes"),
    Column("choice", lambda choice: {"algorithm": choice.chosen.algorithm,
                                     "protocol": choice.chosen.protocol},
           key="choice", terminal=False),
    Column("candidates", lambda choice: records_of(CANDIDATES, choice.rows), key="candidates",
           terminal=False),
    Column("algorithm", lambda choice: choice.chosen.algorithm),
    Column("protocol", lambda choice: choice.chosen.protocol),
    Column("time", lambda choice: choice.chosen.time, _time),
    Column("busbw", lambda choice: choice.row.busbw, format_rate, short="busbw\nGB/s",
           terminal=_gb_per_s),
    Column("channels", lambda choice: choice.chosen.channels, count, short="chan-\nnels",
           terminal=_known_count),
    Column("next best", lambda choice: choice.next_best),
)  # fmt: skip
"""The quantities of a size."""


def system_view(name: str, preset: Preset) -> View:
    """Returns a system, its source and what is inferred."""
    facts = {key: getattr(preset, key) for key in ("summary", "source", "inferred")}
    return View(
        headline=Fact("name", name),
        below=[indented(text if key == "summary" else f"{key}: {text}")
               for key, text in facts.items()],
        data=[Data("systems", lambda: [{"name": name, **facts}])],
    )  # fmt: skip


def choices_view(
    system: NcclSystem, collective: str, sizes: Sequence[int], nccl: str, settings: Settings
) -> View:
    """Returns what NCCL considers for one size and why, or what it chooses for each of several.

    Takes the arguments of :func:`tutti.nccl.candidates`, with sizes in bytes.

    Raises:
        ConfigError: An argument or a setting is invalid.
        TuningError: The settings leave no algorithm.
    """
    choices = []
    for size in sizes:
        rows = candidates(system, collective, size, nccl, settings)
        chosen, factor = best(rows, collective), _core.busbw_factor(collective, system.ranks)
        named = [Row(row, chosen, size, factor) for row in rows]
        choices.append(Choice(size, named, chosen))
    first, is_single = choices[0], len(choices) == 1
    about = f"{collective} of {exact_size(first.size)}" if is_single else collective
    single = ReportTable(CANDIDATES, first.considered, bold=lambda row: row.candidate is row.chosen)
    gpus = f"{system.nodes} x {system.gpus_per_node} GPUs"
    return View(
        headline=Fact("question", f"{about} on {system.name}, {gpus}, {system.library} {nccl}"),
        facts=json_facts(system=system.name, nodes=system.nodes, gpus_per_node=system.gpus_per_node,
                      nccl=nccl, collective=collective),
        tables=[single if is_single else ReportTable(SIZES, choices)],
        data=[Data("sizes", lambda: records_of(SIZES, choices))],
        below=[*(_conclusion(first, system.library) if is_single else ()),
               *_notes(first, system.library, collective),
               *_unequal(sizes, system.ranks, collective)],
    )  # fmt: skip


def _notes(choice: Choice, library: str, collective: str) -> Iterator[RenderableType]:
    """Yields what predicts sends and receives, as docs/guides/nccl.md states."""
    if choice.chosen.algorithm == P2P:
        yield (
            f"{library} has no model of {collective}, which is sends and receives. tutti predicts "
            "the launch and the latency of a step of a ring, and the rates of the graphs. Channels "
            "and threads are not modelled."
        )


def _unequal(sizes: Sequence[int], ranks: int, collective: str) -> Iterator[RenderableType]:
    """Yields the size that nccl-tests take instead of one that messages do not divide."""
    unit = ranks * _FLOAT32
    others = [size for size in sizes if size % unit]
    if collective == "all_to_all" and others:
        several = f" nor are {len(others) - 1} other sizes." if len(others) > 1 else ""
        yield (
            f"{exact_size(others[0])} is not a multiple of {ranks} ranks x {_FLOAT32} B (float32)"
            f"{',' if several else '.'}{several} nccl-tests round down, to "
            f"{others[0] // unit * unit:,} B; `tutti run` takes such sizes only"
        )


def _conclusion(choice: Choice, library: str) -> Iterator[RenderableType]:
    """Yields the candidates that the library does not consider, by reason, and the choice."""
    refused = [row.candidate for row in choice.rows if not row.candidate.considered]
    if refused:
        yield "not considered"
    for (algorithm, refusal), rows in groupby(refused, lambda row: (row.algorithm, row.refusal)):
        yield indented(f"{algorithm} {', '.join(row.protocol for row in rows)}: {refusal}")
    rates = f"{format_rate(choice.row.algbw)}, {format_rate(choice.row.busbw)}"
    yield f"{library} chooses {choice.chosen.algorithm} with {choice.chosen.protocol}"
    yield f"algbw, busbw: {rates}"
