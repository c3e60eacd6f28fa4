"""Prints the advice of `tutti advise`: rows used, decisions, rules, and what to measure next."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from rich.table import Table

from tutti.base.errors import capped
from tutti.base.units import Size
from tutti.measured.advise import FARTHEST, FEWEST_RANK_COUNTS, UNDECIDED, decision_frame
from tutti.study.console import out, record, record_table, remark, wrote
from tutti.view.breakable import Breakable, unbroken
from tutti.view.quantity import count, format_share, format_time, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tutti.formats.measurements import Measurements
    from tutti.measured.advise import (
        Advice,
        Decision,
        Extrapolation,
        NextMeasurement,
        SizeRange,
        WrittenRules,
    )
    from tutti.measured.advise.rules import AdvisedRule

__all__ = ["remarks_of_files", "show", "show_rules", "show_usage"]

_PS_PER_US = 10**6
_MOST_REASONS = 8
_NOTHING = 0.01
"""Slowdowns of rules below this share are not reported."""


def remarks_of_files(found: Measurements) -> None:
    """Reports rows that the readers left out, by file and reason."""
    for line in found.remarks():
        remark(capped(line.replace("use --ranks N", "use --measured-ranks N")))


def show_usage(found: Measurements, advice: Advice) -> None:
    """Prints how many rows were used, and reports those of no use with the reasons."""
    usage = advice.usage
    of_default = f", {usage.defaults:,} of the library's default" if usage.defaults else ""
    unused = sum(usage.unused.values())
    record(
        rows=len(found.rows),
        rows_used=usage.used,
        rows_of_default=usage.defaults,
        rows_unused=usage.unused,
        rows_left_out=len(found.omitted),
    )
    parts = f"{usage.used:,} used{of_default}, {unused:,} not used"
    out().print(
        f"{plural(len(found.rows), 'row')} read: {parts}; {len(found.omitted):,} left out",
        markup=False,
    )
    reasons = sorted(usage.unused.items(), key=lambda one: (-one[1], one[0]))
    for why, rows in reasons[:_MOST_REASONS]:
        remark(capped(f"not used: {plural(rows, 'row')}: {why}"))
    others = sum(rows for _, rows in reasons[_MOST_REASONS:])
    if others:
        remark(f"not used: {plural(others, 'row')} for other reasons")
    if usage.assumed:
        assumed = plural(usage.assumed, "row")
        remark(f"{assumed} without a number of nodes: --ranks-per-node, or else 1, is assumed")
    if found.rows["emulated"].any():
        remark("distance was emulated: no network was measured")


def show(advice: Advice) -> None:
    """Prints the decisions of each collective, warnings, and what to measure next."""
    scope = advice.scope
    record(scope=scope.description)
    record_table("decisions", lambda: decision_frame(advice.ranges))
    record_table("measure_next", advice.next)
    out().print(capped(f"advice for {scope.description}"), markup=False)
    for text in scope.remarks:
        remark(capped(text))
    out().print(
        "figures are for the size with the lowest confidence; times with 90 % intervals",
        style="dim",
    )
    for collective, some in groupby(advice.ranges, lambda one: one.first.collective):
        mine = [one for one in advice.extrapolations if one.collective == collective]
        _show_collective(collective, list(some), mine)
    _show_gain(advice)
    _remark_missing(advice)
    _show_next(advice.next, advice.decisions)


def _show_collective(collective: str, found: list[SizeRange], farther: list[Extrapolation]) -> None:
    measured = ", ".join(count(one) for one in farther[0].measured)
    factors = ", ".join(f"{one.ranks:,} ({one.factor:.3g}x)" for one in farther)
    out().print(f"\n[bold]{collective}[/]: measured on {measured} ranks; predicted on {factors}")
    out().print(_table(found))
    if all(one.runner_up is None for each in found for one in each.decisions):
        remark(f"warning: {collective}: only one algorithm was measured: nothing to choose among")
    for text in _warnings(collective, farther):
        remark(text)


def _warnings(collective: str, farther: Sequence[Extrapolation]) -> Iterator[str]:
    """Yields a warning where predictions have little basis."""
    counts = farther[0].measured
    if len(counts) < FEWEST_RANK_COUNTS:
        yield (
            f"warning: {collective}: only {plural(len(counts), 'rank count')} measured: the growth "
            f"with the rank count is uncertain; measure {FEWEST_RANK_COUNTS} or more"
        )
    for one in farther:
        if one.factor > FARTHEST:
            yield (
                f"warning: {collective} on {one.ranks:,} ranks: {one.factor:.3g} times the largest "
                f"measured rank count: decisions beyond {FARTHEST} times are a hypothesis"
            )
        elif one.factor <= 1:
            yield (
                f"{collective} on {one.ranks:,} ranks: not larger than the measured {counts[-1]:,} "
                "ranks: a measurement there is better than this prediction"
            )


def _table(found: Sequence[SizeRange]) -> Table:
    with_gain = any(one.least_certain.gain is not None for one in found)
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), expand=True)
    table.add_column("ranks\n", justify="right", no_wrap=True)
    table.add_column("sizes\n[dim]size[/]", no_wrap=True)
    table.add_column("fastest algorithm\n[dim]runner-up[/]", ratio=1)
    table.add_column("time\n[dim]interval[/]", justify="right", no_wrap=True)
    if with_gain:
        table.add_column("gain\n", justify="right", no_wrap=True)
    table.add_column("confi-\ndence", justify="right", no_wrap=True)
    for one in found:
        for row in _rows(one):
            cells = row if with_gain else (*row[:4], row[5])
            table.add_row(*cells)
    return table


def _rows(one: SizeRange) -> Iterator[tuple[str | Breakable, ...]]:
    shown = one.least_certain
    first, last = (str(Size(bytes=end.size_bytes)) for end in (one.first, one.last))
    yield (
        f"{shown.ranks:,}",
        first if first == last else f"{first} to {last}",
        Breakable(shown.algorithm),
        _time(shown.predicted_us),
        "-" if shown.gain is None else _signed(shown.gain),
        f"{100 * shown.confidence:.0f} %",
    )
    at = "" if first == last else f"[dim]at {Size(bytes=shown.size_bytes)}[/]"
    interval = f"[dim]{_interval(shown)}[/]"
    second = "" if shown.runner_up_us is None else f", {_time(shown.runner_up_us)}"
    name = Breakable(unbroken(f"{shown.runner_up or 'no other'}{second}"), styles=("dim",))
    yield shown.shape or "", at, name, interval, "", ""


def _interval(one: Decision) -> str:
    low, high = _time(one.low_us), _time(one.high_us)
    if low.split()[1:] == high.split()[1:]:
        low = low.split()[0]
    return f"{low} to {high}"


def _time(us: float) -> str:
    return format_time(float(f"{us * _PS_PER_US:.3g}"))


def _signed(gain: float) -> str:
    return format_share(gain) if gain >= 0 else f"-{format_share(-gain)}"


def _show_gain(advice: Advice) -> None:
    """States how the times of the default were predicted, and where it is the fastest."""
    known = [one for one in advice.decisions if one.gain is not None]
    if not known:
        return
    listed = ", ".join(count(one) for one in sorted({one.ranks for one in advice.ratios.values()}))
    out().print(
        "\ngain: how much longer the library's default takes. Its ratio to the fastest algorithm "
        f"measured, on {listed} ranks, is carried over.",
        markup=False,
    )
    slower = [one for one in known if one.gain is not None and one.gain < 0]
    if slower:
        decisions = plural(len(slower), "decision")
        remark(f"{decisions} with a negative gain: the default is predicted to be faster")


def _remark_missing(advice: Advice) -> None:
    """Names candidates that do not exist on a number of ranks."""
    found: dict[tuple[str, int], list[str]] = {}
    for collective, name, ranks in advice.missing:
        found.setdefault((collective, ranks), []).append(name)
    same: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for (collective, ranks), names in found.items():
        same.setdefault((collective, tuple(names)), []).append(ranks)
    for (collective, left), counts in same.items():
        listed = ", ".join(count(one) for one in counts)
        remark(
            f"{collective} on {listed} ranks: without candidates that may not exist there, as they "
            f"were not measured on such a rank count: {', '.join(left)}"
        )


def _has(decisions: int) -> str:
    return "has" if decisions == 1 else "have"


def _show_next(found: Sequence[NextMeasurement], decisions: Sequence[Decision]) -> None:
    undecided = sum(one.confidence < UNDECIDED for one in decisions)
    total = plural(len(decisions), "decision")
    out().print(f"\n{undecided:,} of {total} {_has(undecided)} less than "
                f"{format_share(UNDECIDED)} confidence",
                markup=False)  # fmt: skip
    if not found:
        return
    out().print("measure next:", markup=False)
    for place, one in enumerate(found, 1):
        ranks = "a larger shape" if one.ranks is None else f"{one.ranks:,} ranks"
        what = f"{one.collective}, {one.algorithm}, {ranks}, {Size(bytes=one.size_bytes)}"
        why = f"predicted within a factor of {one.factor:.2g}"
        out().print(f"  {place}. {what}", markup=False)
        out().print(f"     {plural(one.cells, 'undecided choice')}; {why}", markup=False)


# --- rules ----------------------------------------------------------------------------------------


def show_rules(found: Sequence[WrittenRules]) -> None:
    """Prints the files of rules, and what the library lacks."""
    for one in found:
        if one.path is not None:
            wrote(one.path, note=f"; use it with `. {one.shell}`", wrap=True)
        for note in one.notes:
            remark(f"{one.target}: {note}")
        if one.target == "openmpi6":
            continue  # it has the same algorithms
        for (collective, ranks), some in groupby(
            one.rules, lambda rule: (rule.collective, rule.ranks)
        ):
            _remark_rules(f"{one.target}: {collective} on {ranks:,} ranks", list(some))


def _remark_rules(where: str, rules: Sequence[AdvisedRule]) -> None:
    """Names algorithms without a rule, the largest slowdown, and sizes that keep the default."""
    names = sorted({name for one in rules for name in one.unruled.split(", ") if name})
    ruled = [one for one in rules if one.is_rule]
    if names:
        worst = max(ruled, key=lambda one: one.loss, default=None)
        slower = ""
        if worst is not None and worst.loss >= _NOTHING:
            share, at = format_share(worst.loss), Size(bytes=worst.loss_size)
            slower = f"; instead, {worst.schedule} takes up to {share} longer, at {at}"
        remark(f"{where}: no rule for {', '.join(names)}{slower}")
    kept = [_span(one) for one in rules if not one.is_rule]
    if kept:
        remark(f"{where}: the default stays: {', '.join(kept)}")


def _span(rule: AdvisedRule) -> str:
    first = Size(bytes=rule.first)
    return f"from {first}" if rule.last is None else f"{first} to {Size(bytes=rule.last)}"
