"""Long operations report progress in a terminal."""

from __future__ import annotations

import functools
import io
import time
from contextlib import ExitStack

import pytest
from rich.console import Console

from tutti.base.progress import watched, watching
from tutti.study import progress
from tutti.study.progress import Progress
from tutti_papers import command as paper


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What is printed to a terminal."""
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=80)
    monkeypatch.setattr(progress, "err", lambda: console)
    return text


def test_bar_shows_task_and_finished_work(terminal: io.StringIO) -> None:
    with Progress("proving", work=100, total=8) as shown:
        shown.advance(50, 4)
    assert "proving" in terminal.getvalue()
    assert "4/8" in terminal.getvalue()


def test_nothing_is_printed_without_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    with Progress("proving", work=100, total=8) as shown:
        shown.advance(50, 4)
    assert capfd.readouterr() == ("", "")


def test_without_a_terminal_a_line_is_printed_every_ten_seconds(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert progress._EVERY_SECONDS == 10
    monkeypatch.setattr(progress, "_EVERY_SECONDS", 0.02)
    for shown in (Progress("proving", work=100, total=8), Progress("fitting", work=4),
                  Progress("reading"), Progress("laying out", work=400)):  # fmt: skip
        with shown:
            if shown._work == 400:
                shown.name("ring")
                shown.advance(0)
            else:
                shown.advance(1, 1)
            time.sleep(0.1)
    lines = capfd.readouterr().err.splitlines()
    assert set(lines) == {
        *("proving: 1/8, 0 s", "fitting: 25 %, 0 s", "reading: 0 s", "laying out ring: 0 s")
    }


def test_exhibits_report_progress(terminal: io.StringIO) -> None:
    with ExitStack() as shown:
        shown.enter_context(Progress("figure 9"))
        with watching(functools.partial(paper._progress, shown)):
            assert list(watched("rows", (4, 6, 8))) == [4, 6, 8]
    assert "figure 9" in terminal.getvalue()
    assert "3/3" in terminal.getvalue()
    assert list(watched("rows", (4, 6))) == [4, 6], "also without an observer"
