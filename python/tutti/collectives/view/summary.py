"""The summary of a comparison in text: the fastest algorithm, its margin and the reason."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

import tutti
from tutti import _core
from tutti.base.errors import TuttiError
from tutti.collectives import explanation as explain
from tutti.view.page import Finding
from tutti.view.quantity import format_share, format_size, format_time, span

from .quantities import Lead, shorten

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tutti.collectives.comparison import Comparison, Fastest, Measurement
    from tutti.collectives.experiment import ExperimentPlan
    from tutti.schedules.ir import Schedule


_DOMINATES = "dominates at this size"


@dataclass(frozen=True)
class Reasons:
    """Why the schedules of a comparison are faster than others.

    Attributes:
        ps_per_byte: The time per byte of a message in ps; None if it is unknown.
        plan: The measured schedules; None to generate them by name.
    """

    ps_per_byte: float | None = None
    plan: ExperimentPlan | None = None

    def saved(self, case: Comparison, decision: Fastest) -> str:
        """Returns what the winner saves by the closed forms; empty if it is unknown."""
        first, second = decision.winner, decision.runner_up
        if second is None or self.ps_per_byte is None:
            return ""
        demands = [self._parts(case, one) for one in (first, second)]
        gap_ps = second.time_ps - first.time_ps
        return explain.why(*demands, gap_ps=gap_ps, ps_per_byte=self.ps_per_byte)

    def _parts(self, case: Comparison, measured: Measurement) -> explain.Parts | None:
        sent = None
        if measured.messages is not None and measured.message_bytes is not None:
            sent = (measured.messages, measured.message_bytes)
        schedule = self._schedule(case, measured)
        if schedule is None:
            return None
        return explain.parts(schedule, measured.size_bytes, measured=sent)

    def _schedule(self, case: Comparison, measured: Measurement) -> Schedule | None:
        if self.plan is not None:
            return self.plan.schedule(measured.schedule, measured.ranks, measured.size_bytes)
        if _needs_graph(measured.schedule):  # The frame does not name the graph.
            return None
        try:
            return tutti.schedule(
                measured.schedule, collective=case.collective, ranks=measured.ranks
            )
        except TuttiError:  # A schedule that no algorithm generates.
            return None


def summary(
    case: Comparison, reasons: Reasons, colours: Mapping[str, str] | None = None
) -> list[Finding]:
    """Returns a finding per winning algorithm, the most frequent winner first.

    Args:
        case: The comparison.
        reasons: Why its schedules are faster than others.
        colours: Colours of the algorithms, by name.
    """
    return [
        Finding(name, *_finding(case, won, reasons), (colours or {}).get(name, ""))
        for name, won in _won(case)
    ]


def leads(
    case: Comparison, reasons: Reasons, colours: Mapping[str, str] | None = None
) -> list[Lead]:
    """Returns the regions of a comparison with the reasons, by rank count and size.

    Args:
        case: The comparison.
        reasons: Why its schedules are faster than others.
        colours: Colours of the algorithms, by name.
    """
    rows = []
    for region in case.regions():
        saved = reasons.saved(case, region.clearest)
        difference = saved or _sends(region.clearest)[0]
        rows.append(Lead(region, saved, difference, (colours or {}).get(region.winner, "")))
    return rows


def question(cases: Sequence[Comparison]) -> str:
    """Returns the question that a comparison answers."""
    collectives = sorted({case.collective for case in cases})
    platforms = ", ".join(sorted({case.platform for case in cases}))
    if len(collectives) == 1:
        return f"Which {collectives[0]} algorithm is fastest on {platforms}?"
    return f"Which {' and '.join(collectives)} algorithms are fastest on {platforms}?"


def answer(cases: Sequence[Comparison], most: int) -> list[str]:
    """Returns at most `most` sentences: the winners of one case, or one of each case."""
    if len(cases) == 1:
        return _winners(cases[0])
    shown = cases if len(cases) <= most else cases[: most - 1]
    lines = [f"{case.collective} of {case.datatype} on {case.platform}: {_most(case)}."
             for case in shown]  # fmt: skip
    rest = len(cases) - len(shown)
    return [*lines, f"The findings list {rest} more combinations."] if rest else lines


def _won(case: Comparison) -> list[tuple[str, list[Fastest]]]:
    """Returns the points of each winning algorithm, the most frequent winner first."""
    won: dict[str, list[Fastest]] = {}
    for one in case.decisions().values():
        won.setdefault(one.winner.algorithm, []).append(one)
    return sorted(won.items(), key=lambda item: (-len(item[1]), item[0]))


def _most(case: Comparison) -> str:
    name, won = _won(case)[0]
    return f"{name} is fastest {_where(len(won), len(case.decisions()))}"


def _where(won: int, points: int) -> str:
    return f"at all {points} points" if won == points else f"at {won} of {points} points"


def _winners(case: Comparison) -> list[str]:
    (_, won), *others = _won(case)
    spans = (
        f"{span([d.winner.ranks for d in won])} ranks, "
        f"{span([d.winner.size_bytes for d in won], format_size)}"
    )
    lines = [f"{_most(case)} ({spans})."]
    if others:
        named = [f"{name} at {len(points)}" for name, points in others]
        lines.append(f"Elsewhere: {shorten(named, 2, ', ')}.")
    led = [d for d in case.decisions().values() if d.margin is not None]
    if led:
        clearest = max(led, key=lambda d: d.margin or 0.0)
        lines.append(f"{example(clearest)[:-1]}, the largest lead.")
    return lines


def _finding(case: Comparison, won: list[Fastest], reasons: Reasons) -> tuple[str, str]:
    """Returns where and by how much an algorithm wins, and an example with the reason."""
    points = len(case.decisions())
    share = "everywhere" if len(won) == points else f"at {len(won)} of {points} points"
    where = (
        f"is fastest {share} ({span([d.winner.ranks for d in won])} ranks, "
        f"{span([d.winner.size_bytes for d in won], format_size)})"
    )
    if level := Counter(one.algorithm for d in won for one in d.level):
        others = [f"{other} (at {count})" for other, count in sorted(level.items())]
        where += f", tied with {shorten(others, 3, ', ')}"
    margins = [d.margin for d in won if d.margin is not None]
    if not margins:
        return f"{where}; no algorithm is slower.", ""
    clearest = max(won, key=lambda d: d.margin or 0.0)
    why = f"{example(clearest)} {_reason(case, clearest, reasons)}".strip()
    return f"{where}: the runner-up takes {_spread(margins)}.", why


def _spread(margins: list[float]) -> str:
    low, high = format_share(min(margins)), format_share(max(margins))
    if low == high:
        return f"{low} longer"
    return f"{low} to {high} longer (median {format_share(median(margins))})"


def example(decision: Fastest) -> str:
    """Returns the times of winner and runner-up at one point as a sentence."""
    first, second = decision.winner, decision.runner_up
    if second is None:
        return ""
    return (
        f"At {first.ranks:,} ranks and {format_size(first.size_bytes)}, {first.schedule} takes "
        f"{format_time(first.time_ps)} and {second.schedule} {format_time(second.time_ps)}."
    )


def _reason(case: Comparison, decision: Fastest, reasons: Reasons) -> str:
    """Returns why the winner is faster, from closed forms or else from message counts."""
    text = reasons.saved(case, decision)
    return f"It needs {text}." if text else _sends(decision)[1]


def _sends(decision: Fastest) -> tuple[str, str]:
    """Returns the messages in which winner and runner-up differ: for a cell, and as a sentence."""
    first, second = decision.winner, decision.runner_up
    if second is None or None in {
        first.messages, second.messages, first.message_bytes, second.message_bytes
    }:  # fmt: skip
        return "", ""
    (few, less), (many, more) = (
        ((one.messages or 0) / one.ranks, (one.message_bytes or 0) / one.ranks)
        for one in (first, second)
    )
    messages = f"{_digit(few)} messages per rank, not {_digit(many)}"
    data = f"{format_size(less)} per rank, not {format_size(more)}"
    differences = [messages] * (_digit(few) != _digit(many))
    differences += [data] * (format_size(less) != format_size(more))
    cell = "; ".join(differences) or "same messages and bytes per rank"
    if few < many and less < more:
        text = f"It sends less: {messages}, {data}."
    elif few < many and less == more:
        text = f"It sends the same bytes in fewer messages: {messages}."
    elif few < many:
        text = f"It sends fewer messages ({messages}), and the time per message {_DOMINATES}."
    elif less < more:
        text = f"It sends fewer bytes ({data}), and the time per byte {_DOMINATES}."
    elif few == many and less == more:
        both = f"Both send {_digit(few)} messages per rank with the same bytes"
        text = f"{both}; it waits less between sends."
    else:
        waits = "waits less: its sends overlap, or its ranks share them more evenly"
        text = f"It sends more on average ({messages}) but {waits}."
    return cell, text


def _digit(value: float) -> str:
    """Returns a number with one decimal, or without if it is an integer."""
    return f"{value:.0f}" if value == int(value) else f"{value:.1f}"


def _needs_graph(notation: str) -> bool:
    """Returns whether a notation needs a graph for its schedule and does not name one."""
    name, _, argument = notation.partition(":")
    for_graphs = {entry.name for entry in _core.algorithms() if entry.for_graphs}
    return name in for_graphs and ":" not in argument
