"""The driver of a command: reads, computes with progress, shows, writes and ends.

Ctrl-C ends a computation. The command then shows and writes what is finished, and exits with code
130.
"""

from __future__ import annotations

import time
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import typer

from tutti.base.errors import ExitCode, TuttiError
from tutti.base.files.mistakes import mistake
from tutti.study.console import out, record, record_table, remark, wrote
from tutti.study.document import record_legends, started
from tutti.study.files import Earlier, siblings
from tutti.study.files import folder as create
from tutti.study.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tutti.base.errors import ConfigError
    from tutti.view.view import View


Result = TypeVar("Result")
Found = TypeVar("Found")


def read(name: str, resolve: Callable[[], Found]) -> Found:
    """Returns what a function reads, with progress."""
    with Progress(name):
        return resolve()


def _plural(count: int, noun: str) -> str:
    from tutti.view.quantity import plural  # commands that show no view do not load it

    return plural(count, noun)


def _remark_replaced(paths: Sequence[Path]) -> None:
    """Names the files with other content that a command replaced."""
    if paths:
        names = ", ".join(path.name for path in paths)
        remark(f"the earlier content of {names} was replaced")


def _exists(path: Path) -> ConfigError:
    """Returns the error for a file that the command would replace."""
    return mistake(
        "the file exists, and has other content",
        source=str(path),
        expected="a file that does not exist, or has the same content",
        hint="--force replaces it",
    )


class Study(Generic[Result]):
    """One call of a command.

    Attributes:
        output: The folder for files, or None.
        is_interrupted: Whether Ctrl-C ended a computation.
    """

    def __init__(
        self,
        output: Path | None = None,
        noun: str = "",
        cycles: Callable[[Result], int] | None = None,
        *,
        extra: str | None = "reports",
    ) -> None:
        """Creates the output folder.

        Args:
            output: The folder for files; None to write none.
            noun: What a result is, in remarks; empty to omit the remark on the duration.
            cycles: Returns the simulated cycles of a result, for remarks; None to omit them.
            extra: The extra that the files require.

        Raises:
            ConfigError: The folder cannot be created, or the extra is not installed.
        """
        self.output = None if output is None else create(output, extra=extra)
        self.is_interrupted = False
        self._noun, self._cycles = noun, cycles

    def single(self, compute: Callable[[], Result], name: str = "running") -> Result:
        """Returns one result; Ctrl-C ends the command.

        Args:
            compute: Computes the result.
            name: The task, for the progress bar.
        """
        started = time.monotonic()
        with Progress(name):
            result = compute()
        self._remark("", [result], started)
        return result

    def several(
        self,
        name: str,
        compute: Callable[[Callable[[Result], None]], Found],
        *,
        planned: int,
        work: int = 0,
        work_of: Callable[[Result], int] = lambda _: 1,
        counts: Callable[[Result], bool] = lambda _: True,
        prefix: str = "",
        took: Callable[[float], str] | None = None,
    ) -> tuple[list[Result], Found | None]:
        """Computes several results; after Ctrl-C, those that are finished.

        Args:
            name: The task, for the progress bar.
            compute: Computes all results, and calls its argument with each.
            planned: The number of results.
            work: The total work in any unit; 0 for `planned`.
            work_of: Returns the work of a result.
            counts: Returns whether a result is one of the planned ones.
            prefix: The start of the remark on the duration.
            took: Returns the remark on a duration in seconds, if it is not on simulated cycles.

        Returns:
            The finished results in no particular order, and what `compute` returns, or None if it
            was interrupted.
        """
        results: list[Result] = []
        finished = 0
        started = time.monotonic()
        value = None
        with Progress(
            name, work=work or planned, total=planned, handles_interrupts=True
        ) as progress:

            def done(result: Result) -> None:
                nonlocal finished
                results.append(result)
                finished += counts(result)
                progress.advance(work_of(result), finished)

            try:
                value = compute(done)
            except KeyboardInterrupt:
                self.is_interrupted = True
        if results and not self.is_interrupted:
            if took is not None:
                remark(took(time.monotonic() - started))
            else:
                self._remark(f"{prefix}{_plural(len(results), self._noun)}", results, started)
        return results, value

    def measured(
        self, name: str, compute: Callable[[Callable[[int, int], None]], Found], work: int = 0
    ) -> Found:
        """Returns what processes measure; Ctrl-C ends them and the command.

        Args:
            name: The task, for the progress bar.
            compute: Measures, and calls its argument with the finished and the total number.
            work: The expected total number; 0 if it is unknown.
        """
        with Progress(name, work=work, total=work, handles_interrupts=True) as progress:
            return compute(lambda done, expected: progress.reach(done, expected, done))

    def _remark(self, count: str, results: Sequence[Result], started: float) -> None:
        """Prints the number of results, their simulated cycles, and the duration."""
        if not self._noun:
            return
        cycles = f"{sum(map(self._cycles, results)):,} cycles" if self._cycles else ""
        parts = ", ".join(filter(None, (count, cycles)))
        remark(f"{parts} in {time.monotonic() - started:.1f} s".strip())

    def present(self, view: View) -> None:
        """Prints and records a view, and writes its files."""
        from tutti.view import fields, terminal

        terminal.show(view, out())
        for text in view.log:
            remark(text)
        record(**fields.figures(view))
        record_legends(fields.legends(view))
        for name, rows in fields.tables(view).items():
            record_table(name, rows)
        if self.output is not None:
            from tutti.view import folder

            with Progress("writing", writes=True):
                earlier = Earlier(self.output / name for name in folder.names(view))
                paths = folder.write(view, self.output)
            wrote(*paths)
            _remark_replaced(earlier.differing(paths))

    def write(self, path: Path, write: Callable[[Path], Path | Sequence[Path]]) -> None:
        """Writes a file that the user named, and lists it with those that belong to it.

        A file that the user named and that has other content is replaced with `--force` only.

        Args:
            path: The file; its folder is created.
            write: Writes it, and returns the paths that it wrote.

        Raises:
            ConfigError: The folder cannot be created, the file cannot be written, or it exists with
                other content.
            ReportError: The function does not support the suffix or the data.
        """
        with Progress("writing", writes=True):
            create(path.parent)
            earlier = Earlier(siblings(path))
            document = started()
            may_replace = document is None or document.may_replace
            if not may_replace and path in earlier.too_large:
                raise _exists(path)
            try:
                paths = write(path)
                each = [paths] if isinstance(paths, Path) else list(paths)
                replaced = earlier.differing(each)
                if replaced and not may_replace:
                    earlier.restore(each)
                    raise _exists(replaced[0])
            except (ValueError, OSError) as error:
                earlier.restore()
                if isinstance(error, TuttiError):
                    raise  # already a complete message
                raise mistake(str(error), source=str(path)) from None
            except BaseException:
                earlier.restore()
                raise
        for _, group in groupby(each, attrgetter("suffix")):
            first, *others = group
            note = f" to {others[-1].name}, {len(others) + 1:,} files" if others else ""
            wrote(first, *others, note=note, first=True)
        _remark_replaced(replaced)

    def end(self, finished: int, planned: int) -> None:
        """Ends the command if it was interrupted.

        Args:
            finished: The number of finished results.
            planned: The number of results without an interruption.

        Raises:
            Exit: The computation was interrupted.
        """
        if self.is_interrupted:
            every = _plural(planned, self._noun or "result")
            remark(f"interrupted: {finished:,} of {every} finished")
            raise typer.Exit(int(ExitCode.INTERRUPTED))
