"""Reports exceptions that no command handles: internal errors of tutti.

`TUTTI_TRACEBACK=1` also prints the traceback.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import traceback
from contextlib import suppress
from pathlib import Path

import typer

from tutti.base.errors import ExitCode, capped
from tutti.study.console import echo_error

VARIABLE = "TUTTI_TRACEBACK"
_FRAMES = 30
_LONGEST = 100_000


def report(error: BaseException) -> int:
    """Writes a report to a file and a message to stderr.

    Args:
        error: The exception that no command handled.

    Returns:
        The exit code.
    """
    what = (
        f"{type(error).__name__}: {error}".splitlines()[0] if str(error) else type(error).__name__
    )
    call = shlex.join(["tutti", *sys.argv[1:]])
    text = _context(error, call)
    file = _written(text)
    lines = [
        capped(f"internal error in `{call}`: {what}"),
        "hint: this is a bug in tutti, not in your input: please report it with the input"
        + (f" and {file}" if file else f" and the output of {VARIABLE}=1"),
        "see docs/reference/errors.md#exit-codes",
    ]
    echo_error("\n".join(lines))
    if os.environ.get(VARIABLE):
        typer.echo(text, err=True)
    return int(ExitCode.INTERNAL)


def _context(error: BaseException, call: str) -> str:
    """Returns the call, versions and the last stack frames."""
    from tutti import __version__
    from tutti.collectives.frames import commit

    frames = "".join(traceback.format_exception(error, limit=-_FRAMES))[-_LONGEST:]
    version = f"tutti {__version__}, commit {commit()}, Python {sys.version.split()[0]}"
    return f"{version} on {sys.platform}\n{call}\n\n{frames}"


def _written(text: str) -> Path | None:
    """Writes a temporary file; returns its path, or None if that fails."""
    with suppress(OSError):
        number, name = tempfile.mkstemp(prefix="tutti-internal-error-", suffix=".txt", text=True)
        with os.fdopen(number, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        return Path(name)
    return None
