"""The command line: `tutti VERB ...`, one file per verb.

Every verb ends in one of the exit codes of `tutti.base.errors.ExitCode`. Its file is loaded when it
is used, so that `tutti --help` stays quick; a file imports drawings where it writes them.
"""

from __future__ import annotations

from tutti.study.interrupts import at_once

with at_once():
    from tutti.cli.app import app, main

__all__ = ["app", "main"]
