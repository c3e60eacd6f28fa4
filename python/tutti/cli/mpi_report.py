"""Prints the report of `tutti mpi exec` on stderr: stdout is the program's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.study.console import err

if TYPE_CHECKING:
    from tutti.mpi.report import Report


def show_report(report: Report) -> None:
    """Prints the calls that schedules performed, and the forwarded ones with the reason."""
    from rich.table import Table
    from rich.text import Text

    console = err()
    console.print(f"tutti: {_summary(report)}", markup=False)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("calls", justify="right")
    for name in ("collective", "performed by"):
        table.add_column(name, overflow="fold")
    for row in report.covered:
        table.add_row(
            f"{row.calls:,}", row.collective, Text(f"{row.schedule} on {row.ranks} ranks")
        )
    for passed in report.passed_on:
        reason = Text(f"MPI library: {passed.reason}")
        table.add_row(f"{passed.calls:,}", passed.call, reason)
    if table.row_count:
        console.print(table)


def _summary(report: Report) -> str:
    from tutti.mpi.underneath import named

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
