"""Ctrl-C ends the program at any moment: while it loads, computes, or starts workers."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tutti.base.child_processes import no_interrupts
from tutti.study.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterator


def program(code: str) -> subprocess.CompletedProcess[str]:
    default = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    command = [sys.executable, "-c", default + code]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def handler() -> Iterator[None]:
    """Python's handler of SIGINT: a shell ignores the signal in background jobs."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("handler")
def test_handler_of_ctrl_c_is_restored() -> None:
    with Progress("proving"):
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        with Progress("nested"):
            pass
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt), Progress("proving"):
        signal.raise_signal(signal.SIGINT)


def test_ctrl_c_ends_a_call_that_does_not_check_for_signals() -> None:
    done = program(
        "import ctypes, os, signal, threading\n"
        "from tutti.study import interrupts\n"
        "from tutti.study.progress import Progress\n"
        "interrupts._GRACE_SECONDS = 0.01\n"
        "with Progress('laying out'):\n"
        "    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # another thread gets it\n"
        "    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "    ctypes.CDLL(None).pause()\n"
    )
    assert done.returncode == 130
    assert done.stderr == "interrupted\n"


def test_ctrl_c_ends_the_program_while_it_loads() -> None:
    done = program(
        "import signal\n"
        "from tutti.study.interrupts import at_once\n"
        "with at_once():\n"
        "    try:\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "    except KeyboardInterrupt:\n"
        "        pass  # as some libraries do\n"
    )
    assert done.returncode == 130
    assert done.stderr == "interrupted\n"


def test_workers_ignore_ctrl_c() -> None:
    with no_interrupts():
        done = program("import signal; signal.raise_signal(signal.SIGINT); print('works')")
    assert done.stdout == "works\n"
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_ctrl_c_reaches_python_after_an_exact_mapping() -> None:
    done = program(
        "import signal, tutti\n"
        "from tutti.bypass import BypassMesh, flows_of, map_flows\n"
        "ring = tutti.schedule('ring:4x4', collective='all_reduce', ranks=16)\n"
        "map_flows(BypassMesh(side=4, muxes='any'), flows_of(ring))\n"
        "try:\n"
        "    signal.raise_signal(signal.SIGINT)\n"
        "except KeyboardInterrupt:\n"
        "    print('caught')\n"
    )
    assert (done.returncode, done.stdout) == (0, "caught\n"), done.stderr
