"""The boundary of the command line: what no verb handles is an error of tutti itself.

`TUTTI_TRACEBACK=1` prints the traceback, too.
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

from tutti.errors import ExitCode
from tutti.errors.base import capped

VARIABLE = "TUTTI_TRACEBACK"
_FRAMES = 30
_LONGEST = 100_000


def report(error: BaseException) -> int:
    """Writes what a developer needs to a file and a message to stderr.

    Args:
        error: What no verb has handled.

    Returns:
        The exit code.
    """
    what = (
        f"{type(error).__name__}: {error}".splitlines()[0] if str(error) else type(error).__name__
    )
    call = shlex.join(["tutti", *sys.argv[1:]])
    text = _context(error, call)
    kept = _written(text)
    lines = [
        capped(f"internal error in `{call}`: {what}"),
        "hint: this is a fault of tutti, not of what was asked: please report it with its input"
        + (f" and {kept}" if kept else f", and with what {VARIABLE}=1 prints"),
        "see docs/reference/errors.md#exit-codes",
    ]
    typer.secho("error: ", err=True, nl=False, fg=typer.colors.RED, bold=True)
    typer.echo("\n".join(lines), err=True)
    if os.environ.get(VARIABLE):
        typer.echo(text, err=True)
    return int(ExitCode.INTERNAL)


def _context(error: BaseException, call: str) -> str:
    """Call, versions and the last frames."""
    from tutti import __version__
    from tutti.results import commit

    frames = "".join(traceback.format_exception(error, limit=-_FRAMES))[-_LONGEST:]
    version = f"tutti {__version__}, commit {commit()}, Python {sys.version.split()[0]}"
    return f"{version} on {sys.platform}\n{call}\n\n{frames}"


def _written(text: str) -> Path | None:
    """A new file with a text; None where there is no space for one."""
    with suppress(OSError):
        number, name = tempfile.mkstemp(prefix="tutti-internal-error-", suffix=".txt", text=True)
        with os.fdopen(number, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        return Path(name)
    return None
