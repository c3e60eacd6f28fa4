"""Long operations report progress in a terminal, and end soon after Ctrl-C."""

from __future__ import annotations

import functools
import io
import signal
import subprocess
import sys
from contextlib import ExitStack

import pytest
from rich.console import Console

from tutti import papers
from tutti.cli import paper, progress
from tutti.cli.progress import Progress


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


def test_exhibits_report_progress(terminal: io.StringIO) -> None:
    with ExitStack() as shown:
        shown.enter_context(Progress("figure 9"))
        with papers.watching(functools.partial(paper._progress, shown)):
            assert list(papers.watched("rows", (4, 6, 8))) == [4, 6, 8]
    assert "figure 9" in terminal.getvalue()
    assert "3/3" in terminal.getvalue()
    assert list(papers.watched("rows", (4, 6))) == [4, 6], "also without an observer"


def test_handler_of_ctrl_c_is_restored() -> None:
    with Progress("proving"):
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        with Progress("nested"):
            pass
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt), Progress("proving"):
        signal.raise_signal(signal.SIGINT)


def test_ctrl_c_ends_a_call_that_does_not_check_for_signals() -> None:
    code = (
        "import ctypes, os, signal, threading\n"
        "from tutti.cli import interrupts\n"
        "from tutti.cli.progress import Progress\n"
        "interrupts._GRACE_SECONDS = 0.01\n"
        "with Progress('laying out'):\n"
        "    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # another thread gets it\n"
        "    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "    ctypes.CDLL(None).pause()\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert done.stderr == "interrupted\n"
