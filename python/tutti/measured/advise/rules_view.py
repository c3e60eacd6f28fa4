"""What written rules show: what each gains, and what a library lacks."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from tutti.view.quantity import (
    count,
    exact_size,
    format_share,
    format_size,
    format_time,
    range_text,
    span,
)
from tutti.view.tables import Column, ReportTable, of_scope

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tutti.measured.advise import WrittenRules
    from tutti.measured.advise.rules import AdvisedRule, RuledSize

_CAPTION = "times and gain: at the size of each range with the smallest gain; predicted"
_PS_PER_US = 10**6
_NOTHING = 0.01
"""Slowdowns of rules below this share are not reported."""


def time_text(us: float) -> str:
    """Formats a predicted time with three digits."""
    return format_time(float(f"{us * _PS_PER_US:.3g}"))


def signed(gain: float) -> str:
    """Formats a share, which may be negative."""
    return format_share(gain) if gain >= 0 else f"-{format_share(-gain)}"


class Ruled(NamedTuple):
    """A range of sizes with a rule, in the files of a library."""

    target: str
    rule: AdvisedRule

    @property
    def least(self) -> RuledSize:
        """The predicted size at which the rule gains least; one with an unknown gain is last."""
        return min(self.rule.cells, key=lambda cell: (cell.gain is None, cell.gain or 0.0))


RULES: tuple[Column[Ruled], ...] = (
    Column("rules for", lambda row: row.target, key="target", scope="file"),
    Column("collective", lambda row: row.rule.collective, key="collective"),
    Column("ranks", lambda row: row.rule.ranks, count, key="ranks"),
    Column("sizes", lambda row: span([cell.size for cell in row.rule.cells], format_size),
           scope="run"),
    Column("first size", lambda row: row.rule.first, exact_size, key="from_bytes", scope="file"),
    Column("last size", lambda row: row.rule.last, exact_size, key="to_bytes", scope="file"),
    Column("algorithm", lambda row: row.rule.algorithm, kind="wrap", key="algorithm"),
    Column("default", lambda row: row.least.default_us, time_text, exported="us", key="default_us"),
    Column("with rules", lambda row: row.least.ruled_us, time_text, exported="us", key="ruled_us"),
    Column("gain", lambda row: row.least.gain, signed, exported="fraction", key="gain"),
)  # fmt: skip
"""The quantities of a rule, at the predicted size at which it gains least."""


def rule_tables(ruled: Sequence[Ruled]) -> list[ReportTable[Any]]:
    """Returns the written rules and what each gains: a table for libraries with the same rules."""
    targets = {one.target: [row for row in ruled if row.target == one.target] for one in ruled}
    same: dict[str, list[str]] = {}
    for target, rows in targets.items():
        shown = repr([(row.rule.algorithm, row.rule.ranks, row.rule.cells) for row in rows])
        same.setdefault(shown, []).append(target)
    tables = [
        ReportTable(of_scope(RULES, "run"), targets[names[0]],
                    heading=f"rules written for {' and '.join(names)}:")
        for names in same.values()
    ]  # fmt: skip
    if tables:
        tables[-1] = replace(tables[-1], caption=_CAPTION)
    return tables


def ruled_sizes(written: Sequence[WrittenRules]) -> list[Ruled]:
    """Returns the ranges of sizes with a rule in files that were written."""
    return [Ruled(files.target, rule) for files in written if files.shell is not None
            for rule in files.rules if rule.algorithm]  # fmt: skip


def rule_remarks(written: WrittenRules, before: Sequence[WrittenRules] = ()) -> Iterator[str]:
    """Yields the notes of written rules, and what the library lacks.

    Args:
        written: The rules.
        before: Rules whose remarks precede; what both releases of Open MPI lack is named once.
    """
    for note in written.notes:
        yield f"{written.target}: {note}"
    if written.target == "openmpi6":
        return  # it has the algorithms of 5.0, and more
    same = [one for one in before if (one.target, written.target) == ("openmpi", "openmpi4")]
    known = {text for one in same for text in _lacks(one)}
    yield from (f"{written.target}: {text}" for text in _lacks(written) if text not in known)


def _lacks(written: WrittenRules) -> Iterator[str]:
    for (collective, ranks), rules in groupby(
        written.rules, lambda rule: (rule.collective, rule.ranks)
    ):
        yield from _lacking(f"{collective} on {ranks:,} ranks", list(rules))


def _lacking(where: str, rules: Sequence[AdvisedRule]) -> Iterator[str]:
    """Names algorithms without a rule, the largest slowdown, and sizes that keep the default."""
    names = sorted({name for rule in rules for name in rule.unruled.split(", ") if name})
    worst = max((rule for rule in rules if rule.is_rule), key=lambda rule: rule.loss, default=None)
    if names:
        slower = ""
        if worst is not None and worst.loss >= _NOTHING:
            share, at = format_share(worst.loss), exact_size(worst.loss_size)
            slower = f"; instead, {worst.schedule} takes up to {share} longer, at {at}"
        yield f"{where}: no rule for {', '.join(names)}{slower}"
    kept = [range_text(rule.first, rule.last, exact_size) for rule in rules if not rule.is_rule]
    if kept:
        why = "; no algorithm is predicted to beat it by 10%" if any(r.stays for r in rules) else ""
        yield f"{where}: the default stays: {', '.join(kept)}{why}"
