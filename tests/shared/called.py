"""Calls the command line in this process; starting a program would take half a second."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from typing import TYPE_CHECKING
from unittest.mock import patch

from typer.testing import CliRunner

from tutti.cli.app import app
from tutti.study import console

if TYPE_CHECKING:
    from pathlib import Path


def call(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Calls `tutti` with these arguments in a folder; unhandled exceptions are raised.

    Programs that are killed, wait for a terminal or are timed are started as such instead.
    """
    words = [str(word) for word in arguments]
    # The state of a new process, 80 columns wide.
    console._consoles.cache_clear()
    with contextlib.chdir(cwd), patch.object(sys, "argv", ["tutti", *words]):
        done = CliRunner(env={"COLUMNS": "80"}).invoke(app, words, prog_name="tutti")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)
