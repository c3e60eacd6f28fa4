"""What a diagnosis shows: a table of sizes for each series, and the findings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from tutti.base.errors import capped
from tutti.base.units import Size
from tutti.view.quantity import number
from tutti.view.tables import Column, ReportTable, records_of
from tutti.view.terminal import indented
from tutti.view.view import Data, View

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from tutti.nccl.doctor import Diagnosis, Sized, Subject

_MOST = 5
"""Files and reasons of lines that were left out, each with a remark."""
_MARKS = {"problem": "red", "warning": "yellow", "note": "dim"}


def _share(ratio: float) -> str:
    return f"{100 * ratio:.0f} %" if ratio >= 0.01 else "< 1 %"


def _choice(sized: Sized) -> str | None:
    if sized.choice is not None:
        return f"{sized.choice}{'?' if sized.basis == 'guess' else ''}"
    return "not ring" if sized.beyond_rings else None


def _better(sized: Sized) -> str:
    better = sized.better
    return f"{better.choice}, {-100 * better.saves:.0f} %" if better else ""


def _better_figures(sized: Sized) -> dict[str, Any] | None:
    better = sized.better
    return better and better._asdict() | {"choice": str(better.choice)}


SIZES: tuple[Column[Sized], ...] = (
    Column("size", lambda sized: sized.point.size_bytes, lambda value: str(Size(bytes=value)),
           key="size_bytes"),
    Column("time", lambda sized: sized.point.time_us, "{:,.1f}".format, "us", key="time_us",
           short="time us"),
    Column("time in place", lambda sized: sized.point.in_place_us, "{:,.1f}".format, "us",
           key="in_place_us", terminal=False),
    Column("busbw", lambda sized: sized.bus_bytes_per_s, lambda value: number(value / 1e9, 3),
           "GB/s", key="bus_bytes_per_s", short="busbw\nGB/s"),
    Column("of rings", lambda sized: sized.of_ring, _share, key="of_ring", short="of\nrings"),
    Column("of bound", lambda sized: sized.of_bound, _share, key="of_bound", short="of\nbound"),
    Column("choice", _choice, kind="wrap"),
    Column("choice", lambda sized: sized.choice and str(sized.choice), key="choice",
           terminal=False),
    Column("basis", lambda sized: sized.basis, key="basis", terminal=False),
    Column("channels", lambda sized: sized.channels, str, key="channels", terminal=False),
    Column("better", _better, kind="wrap"),
    Column("better", _better_figures, key="better", terminal=False),
)  # fmt: skip
"""The quantities of a size."""

SUBJECTS: tuple[Column[Subject], ...] = (
    Column("collective", lambda subject: subject.series.collective, key="collective"),
    Column("ranks", lambda subject: subject.series.ranks, key="ranks"),
    Column("nodes", lambda subject: subject.series.nodes, key="nodes"),
    Column("forced", lambda subject: subject.series.forced and str(subject.series.forced),
           key="forced"),
    Column("files", lambda subject: subject.series.files, key="files"),
    Column("ring", lambda subject: subject.ring, key="ring_bytes_per_s"),
    Column("limits", lambda subject: subject.limits, key="limits"),
    Column("sizes", lambda subject: records_of(SIZES, subject.sizes), key="sizes"),
)  # fmt: skip
"""The quantities of a series, for `--json`."""


def diagnosis_view(diagnosis: Diagnosis, about: str = "") -> View:
    """Returns the sizes of each series with their choices, and the findings.

    Args:
        diagnosis: The diagnosis.
        about: A remark on guesses, for diagnoses with guessed or unknown choices.
    """
    names = ("file", "line", "reason")
    bases = {sized.basis for subject in diagnosis.subjects for sized in subject.sizes}
    omitted = list(_omitted(diagnosis))
    more = f"left out: lines for {len(omitted) - _MOST:,} other reasons"
    return View(
        data=[
            Data("subjects", lambda: records_of(SUBJECTS, diagnosis.subjects)),
            Data("findings", lambda: diagnosis.findings),
            Data("omitted", lambda: (dict(zip(names, each, strict=True))
                                     for each in diagnosis.omitted)),
        ],
        below=list(_parts(diagnosis)),
        log=[*([about] if about and bases & {"", "guess"} else []), *omitted[:_MOST],
             *([more] if len(omitted) > _MOST else []), *diagnosis.remarks],
    )  # fmt: skip


def _omitted(diagnosis: Diagnosis) -> Iterator[str]:
    """Yields a line for each file and reason: the first line that was left out, and how many."""
    grouped: dict[tuple[str, str], list[int]] = {}
    for file, line, reason in diagnosis.omitted:
        grouped.setdefault((file, reason), []).append(line)
    for (file, reason), lines in grouped.items():
        count = f" {len(lines):,} lines" if len(lines) > 1 else ""
        yield capped(f"{file}, line {lines[0]}: left out{count}: {reason}")


def _parts(diagnosis: Diagnosis) -> Iterator[RenderableType]:
    for subject in diagnosis.subjects:
        yield Text(f"\n{subject.series.title}", "bold")
        if subject.ring is not None:
            text = f"rings can achieve {subject.ring / 1e9:.4g} GB/s busbw ({subject.limits})"
            yield Text(text, "dim")
        yield ReportTable(SIZES, subject.sizes)
    yield Text("\nfindings", "bold") if diagnosis.findings else "\nno findings"
    for finding in diagnosis.findings:
        text = f": {finding.subject}: {finding.seen}"
        yield Text.assemble((finding.level, _MARKS[finding.level]), text)
        if finding.do:
            yield indented(finding.do)
