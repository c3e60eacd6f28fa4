"""What NCCL chooses: the candidates of one size, or the choice of each size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tutti.nccl.tuning import best, candidates
from tutti.view.quantity import count, format_size, format_time, number
from tutti.view.tables import Column, ReportTable, records_of
from tutti.view.terminal import indented
from tutti.view.view import Data, Fact, View

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from tutti.nccl.settings import Settings
    from tutti.nccl.system import NcclSystem
    from tutti.nccl.tuning import Candidate

_PS = 10**6
"""Picoseconds per microsecond."""


class Considered(NamedTuple):
    """A candidate, and the one that NCCL chooses."""

    candidate: Candidate
    chosen: Candidate

    @property
    def why(self) -> str:
        """The reason for the candidate's place, without a full stop."""
        row, chosen = self
        if not row.considered:
            return row.refusal
        terms = f"{row.latency:.1f} us + {row.transfer:.1f} us at {row.bandwidth:.4g} GB/s"
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
    """The candidates of a size, in NCCL's order, and the one that NCCL chooses.

    Attributes:
        size: The size in bytes.
        rows: The candidates.
        chosen: One of them.
    """

    size: int
    rows: Sequence[Candidate]
    chosen: Candidate

    @property
    def every(self) -> list[Considered]:
        """All candidates."""
        return [Considered(row, self.chosen) for row in self.rows]

    @property
    def best(self) -> Considered:
        """The candidate that NCCL chooses."""
        return Considered(self.chosen, self.chosen)

    @property
    def next_best(self) -> str | None:
        """The fastest other algorithm, and its time relative to the choice; None without one."""
        name, time = self.chosen.algorithm, self.chosen.time
        others = [row for row in self.rows if row.considered and row.algorithm != name]
        if not others:
            return None
        other = min(others, key=lambda row: row.time)
        return f"{other.algorithm} {other.protocol}, {other.time / time:.2f}x"

    @property
    def refused(self) -> dict[tuple[str, str], list[str]]:
        """The protocols that NCCL does not consider, by algorithm and reason."""
        protocols: dict[tuple[str, str], list[str]] = {}
        for row in self.rows:
            if not row.considered:
                protocols.setdefault((row.algorithm, row.refusal), []).append(row.protocol)
        return protocols


def _time(us: float) -> str:
    return format_time(us * _PS)


CANDIDATES: tuple[Column[Considered], ...] = (
    Column("algorithm", lambda row: row.candidate.algorithm, key="algorithm"),
    Column("protocol", lambda row: row.candidate.protocol, key="protocol"),
    Column("considered", lambda row: row.candidate.considered, key="considered", terminal=False),
    Column("time", lambda row: row.candidate.time, _time, key="time_us",
           when=lambda row: row.candidate.considered),
    Column("latency", lambda row: row.candidate.latency, number, "us", key="latency_us",
           terminal=False),
    Column("bandwidth", lambda row: row.candidate.bandwidth, number, "GB/s",
           key="bandwidth_gb_per_s", terminal=False),
    Column("channels", lambda row: row.candidate.channels, count, key="channels"),
    Column("threads", lambda row: row.candidate.threads, str, key="threads"),
    Column("why", lambda row: row.why, kind="wrap", key="why",
           terminal=lambda why: why.replace("; ", "\n")),
)  # fmt: skip
"""The quantities of a candidate."""

SIZES: tuple[Column[Choice], ...] = (
    Column("size", lambda choice: choice.size, format_size, key="size_bytes"),
    Column("choice", lambda choice: records_of(CANDIDATES[:2], [choice.best])[0], key="choice",
           terminal=False),
    Column("candidates", lambda choice: records_of(CANDIDATES, choice.every), key="candidates",
           terminal=False),
    Column("algorithm", lambda choice: choice.chosen.algorithm),
    Column("protocol", lambda choice: choice.chosen.protocol),
    Column("time", lambda choice: choice.chosen.time, _time),
    Column("channels", lambda choice: choice.chosen.channels, count),
    Column("next best", lambda choice: choice.next_best),
)  # fmt: skip
"""The quantities of a size."""


@dataclass(frozen=True)
class Question:
    """A collective on a system, with a version of NCCL.

    Attributes:
        system: The system.
        collective: The collective.
        nccl: The version of NCCL.
        settings: The environment variables of NCCL.
    """

    system: NcclSystem
    collective: str
    nccl: str
    settings: Settings

    def choice(self, size: int) -> Choice:
        """Returns the choice for a size in bytes.

        Raises:
            ConfigError: An argument or a setting is invalid.
            TuningError: The settings leave no algorithm.
        """
        rows = candidates(self.system, self.collective, size, self.nccl, self.settings)
        return Choice(size, rows, best(rows, self.collective))

    @property
    def facts(self) -> list[Fact]:
        """The figures of `--json`."""
        figures = {
            "system": self.system.name,
            "nodes": self.system.nodes,
            "gpus_per_node": self.system.gpus_per_node,
            "nccl": self.nccl,
            "collective": self.collective,
        }
        return [Fact(key, key=key, value=value) for key, value in figures.items()]

    def headline(self, about: str) -> Fact:
        """Returns the system, after what it is asked for."""
        gpus = f"{self.system.nodes} x {self.system.gpus_per_node} GPUs"
        return Fact("question", f"{about} on {self.system.name}, {gpus}, NCCL {self.nccl}")


def choice_view(question: Question, size: int) -> View:
    """Returns what NCCL considers for a size in bytes, and why it chooses one candidate.

    Raises:
        ConfigError: An argument or a setting is invalid.
        TuningError: The settings leave no algorithm.
    """
    choice = question.choice(size)
    considered = [row for row in choice.every if row.candidate.considered]
    considered.sort(key=lambda row: row.candidate.time)
    refused: list[RenderableType] = ["not considered"] if choice.refused else []
    for (algorithm, refusal), protocols in choice.refused.items():
        refused.append(indented(f"{algorithm} {', '.join(protocols)}: {refusal}"))
    name = f"{choice.chosen.algorithm} with {choice.chosen.protocol}"
    return View(
        headline=question.headline(f"{question.collective} of {format_size(size)}"),
        facts=question.facts,
        table=ReportTable(CANDIDATES, considered, bold=lambda row: row.candidate is row.chosen),
        data=[Data("sizes", lambda: records_of(SIZES, [choice]))],
        below=[*refused, f"NCCL chooses {name}"],
    )


def sizes_view(question: Question, sizes: Sequence[int]) -> View:
    """Returns the choice of NCCL for each size in bytes.

    Raises:
        ConfigError: An argument or a setting is invalid.
        TuningError: The settings leave no algorithm.
    """
    choices = list(map(question.choice, sizes))
    return View(
        headline=question.headline(question.collective),
        facts=question.facts,
        table=ReportTable(SIZES, choices, gap=2),
        data=[Data("sizes", lambda: records_of(SIZES, choices))],
    )
