"""Long operations report progress, also without a terminal."""

from __future__ import annotations

import functools
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tutti import papers
from tutti.cli import paper, progress
from tutti.cli.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(autouse=True)
def lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The printed progress lines, at a short interval."""
    printed: list[str] = []
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.005)
    monkeypatch.setattr(progress, "remark", printed.append)
    return printed


def until(condition: Callable[[], bool]) -> None:
    """Waits until a condition holds; a machine may be slow."""
    for _ in range(2000):
        if condition():
            return
        time.sleep(0.005)
    pytest.fail("it never happened")


def test_line_is_printed_without_progress(lines: list[str]) -> None:
    with Progress("searching 96 ranks"):
        until(lambda: len(lines) > 1)
    assert lines[0].startswith("searching 96 ranks: 0 s so far")


def test_line_shows_finished_and_remaining_work(lines: list[str]) -> None:
    with Progress("proving", work=100, total=8) as shown:
        shown.advance(50, 4)
        until(lambda: any("left" in line for line in lines))
    assert next(line for line in lines if "left" in line).startswith("proving: 4/8, about ")


def test_no_line_is_printed_after_the_end(lines: list[str]) -> None:
    with Progress("proving", work=1, total=1) as shown:
        until(lambda: bool(lines))
        shown.advance(1, 1)
    time.sleep(0.02)  # for a line in progress
    count = len(lines)
    time.sleep(0.05)
    assert len(lines) == count


def test_exhibits_report_progress(lines: list[str]) -> None:
    def waited() -> list[int]:
        found = []
        for row in papers.watched("rows", (4, 6, 8)):
            found.append(row)
            count = len(lines)
            until(lambda count=count: len(lines) > count)  # type: ignore[misc]
        return found

    with ExitStack() as shown:
        shown.enter_context(Progress("figure 9"))
        until(lambda: any(line.startswith("figure 9: 0 s so far") for line in lines))
        with papers.watching(functools.partial(paper._progress, shown)):
            assert waited() == [4, 6, 8]
    assert any(line.startswith("rows: 1/3, about ") for line in lines)
    assert list(papers.watched("rows", (4, 6))) == [4, 6], "also without an observer"
