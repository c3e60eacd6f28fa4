"""What plans, reports of runs with them, and the MPI implementation show."""

from __future__ import annotations

import shlex
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

import polars as pl
from rich.text import Text

from tutti.mpi.plan import PlannedSchedule, Rule
from tutti.mpi.underneath import named
from tutti.view.quantity import count, exact_size, flag, plural
from tutti.view.tables import Column, ReportTable, frame_of, of_scope
from tutti.view.view import Data, Fact, View

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from tutti.mpi.plan import CollectivePlan
    from tutti.mpi.report import Report
    from tutti.mpi.underneath import Mpi

_COLUMNS = 80
_MARKS = {
    "*": "commutative operations only",
    "+": "sends complete in later steps",
    "!": "exact operations only, such as sums of integers",
}


def _steps(rules: list[Rule]) -> str:
    counts = sorted({len(rule.schedule.steps(0)) for rule in rules})  # type: ignore[arg-type]
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]}-{counts[-1]}"


def _mark(rules: list[Rule]) -> str:
    """Returns the signs of `_MARKS` that apply to some of the schedules."""
    planned = [rule.schedule for rule in rules if isinstance(rule.schedule, PlannedSchedule)]
    reduces = "reduce" in rules[0].collective
    star = "*" * (reduces and not all(schedule.rank_order for schedule in planned))
    return (
        star
        + "+" * any(schedule.pending_sends for schedule in planned)
        + "!" * any(schedule.bits_differ for schedule in planned)
    )


def _sizes(rule: Rule) -> str:
    """Returns the sizes of a rule, such as ``from 4 KiB``."""
    first, last = rule.sizes
    start, before = exact_size(first), exact_size(max(first - 1, 0))
    if last is None and first == 0:
        return "all"
    if last is None:
        return f"over {before}" if len(before) < len(start) else f"from {start}"
    end, after = exact_size(last), f"below {exact_size(last + 1)}"
    if first == last:
        return end
    until = after if len(after) <= len(f"to {end}") else f"to {end}"
    return f"{start} {until}" if first else until


def rank_ranges(counts: Iterable[int]) -> str:
    """Formats rank counts as ``2-5, 8``."""
    ranges: list[list[int]] = []
    for ranks in sorted(set(counts)):
        if ranges and ranges[-1][-1] == ranks - 1:
            ranges[-1].append(ranks)
        else:
            ranges.append([ranks])
    return ", ".join(f"{r[0]}-{r[-1]}" if len(r) > 1 else str(r[0]) for r in ranges)


RULES: tuple[Column[list[Rule]], ...] = (
    Column("collective", lambda rules: rules[0].collective, key="collective"),
    Column("ranks", lambda rules: rank_ranges(rule.ranks for rule in rules), kind="wrap",
           scope="runs"),
    Column("ranks", lambda rules: rules[0].ranks, count, key="ranks", scope="file"),
    Column("first size", lambda rules: rules[0].sizes[0], exact_size, key="from_bytes",
           scope="file"),
    Column("last size", lambda rules: rules[0].sizes[1], exact_size, key="to_bytes", scope="file"),
    Column("sizes", lambda rules: _sizes(rules[0]), scope="runs"),
    Column("schedule", lambda rules: rules[0].schedule.name, kind="wrap", key="schedule"),
    Column("steps", _steps, kind="number", scope="runs"),
    Column("steps", lambda rules: int(_steps(rules)), count, key="steps", scope="file"),
    Column("", _mark, scope="runs"),
    Column("in rank order", lambda rules: "*" not in _mark(rules), flag, key="rank_order",
           scope="file"),
    Column("pending sends", lambda rules: "+" in _mark(rules), flag, key="pending_sends",
           scope="file"),
    Column("exact only", lambda rules: "!" in _mark(rules), flag, key="exact_only", scope="file"),
)  # fmt: skip
"""The quantities of a rule; in tables, of rules that differ only in ranks."""

CALLS: tuple[Column[tuple[int, str, str]], ...] = (
    Column("calls", lambda row: row[0], count),
    Column("collective", lambda row: row[1]),
    Column("performed by", lambda row: row[2], kind="wrap"),
)
"""The quantities of calls in a report."""


def plan_view(plan: CollectivePlan, heading: Sequence[str] = ()) -> View:
    """Returns the rules of a plan below a heading; those that differ only in ranks share a row."""
    marks = "".join(_mark([rule]) for rule in plan.rules)
    notes = [f"{sign} {meaning}" for sign, meaning in _MARKS.items() if sign in marks]
    table = ReportTable(of_scope(RULES, "runs"), _alike(plan), caption=", ".join(notes))
    return View(
        below=[*(Text(line, no_wrap=True) for line in heading), table],
        data=[Data("rules", lambda: frame_of(RULES, ([rule] for rule in plan.rules)))],
    )


def file_view(plan: CollectivePlan, file: Path, *, is_verified: bool) -> View:
    """Returns the rules of a plan file, whose schedules may be verified, with its origin."""
    lines = [f"{file}: {counted(plan, is_verified=is_verified)}"]
    for key, value in plan.provenance.items():
        lines.append(f"  {key}: {_folded(str(value)) if key == 'command' else value}")
    facts = {"verified": is_verified, "schedules": len(plan.schedules),
             "provenance": plan.provenance}  # fmt: skip
    return replace(
        plan_view(plan, lines), facts=[Fact("", "", name, value) for name, value in facts.items()]
    )


def counted(plan: CollectivePlan, *, is_verified: bool = True) -> str:
    """Returns the number of rules and schedules of a plan."""
    verified = "verified " * is_verified
    return (
        f"{plural(len(plan.rules), 'rule')}, {plural(len(plan.schedules), f'{verified}schedule')}"
    )


def _folded(command: str) -> str:
    """Folds a command line into lines that a shell reads as one."""
    try:
        words = [shlex.quote(word) for word in shlex.split(command)]
    except ValueError:  # written by another program
        return command
    lines = ["  command:"]
    for word in words:
        if len(lines[-1]) + len(f" {word} \\") > _COLUMNS:
            lines[-1] += " \\"
            lines.append("   ")
        lines[-1] += f" {word}"
    return "\n".join(lines).removeprefix("  command: ")


def _alike(plan: CollectivePlan) -> list[list[Rule]]:
    """Groups rules that differ only in ranks, unless that would hide their precedence."""
    groups: dict[tuple[str, ...], list[Rule]] = {}
    before: dict[tuple[str, ...], dict[tuple[str, ...], None]] = {}
    latest: dict[tuple[str, int], tuple[str, ...]] = {}
    for rule in plan.rules:
        key = (rule.collective, _sizes(rule), rule.schedule.name)
        groups.setdefault(key, []).append(rule)
        earlier = before.setdefault(key, {})
        last = latest.get((rule.collective, rule.ranks))
        if last is not None:
            earlier[last] = None
        latest[rule.collective, rule.ranks] = key
    try:
        order = list(TopologicalSorter(before).static_order())
    except CycleError:
        return [[rule] for rule in plan.rules]
    collectives = list(dict.fromkeys(rule.collective for rule in plan.rules))
    return [groups[key] for key in sorted(order, key=lambda key: collectives.index(key[0]))]


def info_view(mpi: Mpi, facts: Sequence[tuple[str, str]]) -> View:
    """Returns facts about an MPI implementation, a line each, so that paths can be copied."""
    values = {"mpi": mpi.kind, "standard": mpi.standard, "mpicc": mpi.mpicc,
              "mpiexec": mpi.mpiexec}  # fmt: skip
    return View(
        facts=[Fact("", "", name, value) for name, value in values.items()],
        below=[Text(f"{name + ':':<10}{text}", no_wrap=True) for name, text in facts],
        data=[Data("facts", lambda: pl.DataFrame(facts, ["name", "fact"], orient="row"))],
    )


def report_view(report: Report) -> View:
    """Returns the calls that schedules performed, and the forwarded ones with the reason."""
    rows = [
        *((row.calls, row.collective, f"{row.schedule} on {row.ranks} ranks")
          for row in report.covered),
        *((row.calls, row.call, f"MPI library: {row.reason}") for row in report.passed_on),
    ]  # fmt: skip
    return View(
        headline=Fact("", f"tutti: {_summary(report)}"),
        tables=[ReportTable(CALLS, rows)] if rows else [],
    )


def _summary(report: Report) -> str:
    performed = sum(row.calls for row in report.covered)
    passed = sum(row.calls for row in report.passed_on)
    if off := report.data.get("off"):
        return str(off)
    if not performed + passed:
        return "the program called no collective that a plan can cover"
    verified = "verified " if report.data.get("proved") else ""
    text = f"{verified}schedules performed {performed:,} of {performed + passed:,} collectives"
    mpi = report.data.get("mpi")
    text += f", over {named(str(mpi))}" if mpi else ""
    emulation = report.data.get("emulation")
    return f"{text}; distance is emulated: {_model(emulation)}" if emulation else text


def _model(emulation: object) -> str:
    """Formats the model's parameters, in seconds, as in the report."""
    if not isinstance(emulation, dict):
        return str(emulation)
    name = emulation.get("model", "")
    rest = ", ".join(
        f"{key} {value}" for key, value in emulation.items() if key not in {"model", "note"}
    )
    return f"{name} ({rest})"
