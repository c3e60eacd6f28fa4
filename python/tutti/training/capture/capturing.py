"""Captures programs: `tutti.capture` around code of this process, and scripts by file.

PyTorch is imported when a capture starts.
"""

from __future__ import annotations

import contextlib
import runpy
import sys
import time
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tutti.base.files.extras import check_extra
from tutti.training.capture.files import write_step
from tutti.training.capture.record import CapturedStep
from tutti.training.capture.rewritten import importing, rewritten
from tutti.training.capture.search import Search
from tutti.training.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import CodeType

    from tutti.training.capture.assignment import Totals
    from tutti.training.capture.objects import Awaited, Mailbox
    from tutti.training.capture.record import Role

__all__ = ["Capturing", "capture", "capture_script"]


@dataclass
class Capturing:
    """A step that is captured: its result, once the block has ended."""

    world_size: int
    _step: CapturedStep | None = field(default=None, repr=False)

    @property
    def result(self) -> CapturedStep:
        """The captured step.

        Raises:
            CaptureError: The block has not ended.
        """
        if self._step is None:
            message = "the step has not ended: expected its result after the `with` block"
            raise CaptureError(message, kind="no_step")
        return self._step

    def write(self, folder: str | Path) -> Path:
        """Writes the captured step to a folder, for `tutti train run FOLDER`."""
        return write_step(Path(folder), self.result)


@contextlib.contextmanager
def capture(
    world_size: int, rank: int = 0, *, step: int = 1, values: float | None = None
) -> Iterator[Capturing]:
    """Captures the training step of the code in a `with` block.

    Args:
        world_size: The number of ranks of the job.
        rank: The rank that the code runs as.
        step: The captured step, from 1. If the block has one step, this is it; of several, the
            second has the steady state.
        values: What values of tensors that the code reads are; None refuses to read them.

    Raises:
        ConfigError: PyTorch is not installed.
        CaptureError: The code cannot be captured.
    """
    check_extra("torch")
    import torch

    from tutti.training.capture.session import recording

    capturing = Capturing(world_size)
    start = time.monotonic()
    with recording(world_size, rank, step=step, value=values) as captured:
        yield capturing
    if captured.role is None:
        raise _without_step("the block")
    capturing._step = CapturedStep(
        script="tutti.capture",
        world_size=world_size,
        torch=torch.__version__,
        roles=(captured.role,),
        compiled=captured.compiled,
        seconds=time.monotonic() - start,
    )


def capture_script(
    script: Path,
    arguments: Sequence[str],
    world_size: int,
    *,
    ranks: Sequence[int] = (),
    step: int | None = None,
    values: float | None = None,
    node: int = 8,
) -> CapturedStep:
    """Captures a training step of a script: one rank of each role.

    Rank 0 is captured first, then the ranks with which captured ones exchange messages, and those
    of other process groups. The last rank is checked for doing the same in its first step.

    Args:
        script: The Python file.
        arguments: Its arguments.
        world_size: The number of ranks of the job.
        ranks: The captured ranks; by default one of each role.
        step: The captured step, from 1; by default 2, and 3 for programs with DDP.
        values: What values of tensors that the program reads are; None refuses to read them.
        node: The GPUs of a node.

    Raises:
        ConfigError: PyTorch is not installed, or the script cannot be read.
        CaptureError: The program cannot be captured.
    """
    check_extra("torch")
    import torch

    from tutti.training.capture.objects import Mailbox

    start = time.monotonic()
    program = _Program(script=script, arguments=arguments, world_size=world_size, step=step,
                       values=values, node=node, code=compiled_script(script),
                       mailbox=Mailbox())  # fmt: skip
    search = Search(world_size, program, lambda: program.mailbox.groups)
    return CapturedStep(
        script=" ".join([script.name, *arguments]),
        world_size=world_size,
        torch=torch.__version__,
        roles=search.named(ranks) if ranks else search.every(),
        compiled=program.compiled,
        seconds=time.monotonic() - start,
    )


def compiled_script(script: Path) -> CodeType:
    """Returns the code of a script.

    Raises:
        CaptureError: The file cannot be read, or is not Python.
    """
    try:
        return rewritten(script.read_bytes(), str(script))
    except (OSError, SyntaxError, ValueError) as error:
        message = f"{script}: {error}: expected a Python program"
        raise CaptureError(message, kind="program", hint="name the file of the program") from None


@dataclass(kw_only=True)
class _Program:
    """A script that is captured as one rank after the other.

    Attributes:
        script: The Python file.
        arguments: Its arguments.
        world_size: The number of ranks.
        step: The captured step; None for the steady state.
        values: What values that it reads are.
        node: The GPUs of a node.
        code: The code of the file.
        mailbox: What captured ranks leave for later ones.
        compiled: Whether the program compiles its model.
    """

    script: Path
    arguments: Sequence[str]
    world_size: int
    step: int | None
    values: float | None
    node: int
    code: CodeType
    mailbox: Mailbox
    compiled: bool = False

    def __call__(self, rank: int, *, only_first: bool) -> tuple[Role, Totals]:
        """Returns the role of a rank, and the totals of its first step.

        If it waits for objects of ranks that have not run, those run until they have sent them:
        stages of a pipeline ask the stage before for its shapes.
        """
        while True:
            try:
                return self._run(rank, only_first=only_first)
            except CaptureError as error:
                if error.kind != "peer" or not self._is_sent(rank):
                    raise

    def _is_sent(self, rank: int) -> bool:
        """Runs ranks until one has sent the objects for which a rank waits.

        Returns whether one has: ranks may wait for each other.
        """
        mailbox, goal = self.mailbox, self.mailbox.awaited
        waiting: dict[int, Awaited] = {}
        while goal is not None and not mailbox.has(goal):
            known = [other for other, one in waiting.items() if mailbox.has(one)]
            sources = [one.source for one in (goal, *waiting.values())]
            known += [source for source in sources if source not in {rank, *waiting}]
            if not known:
                return False
            mailbox.requested = (goal, *waiting.values())
            waiting.pop(known[0], None)
            try:
                self._run(known[0], only_first=True)
            except CaptureError as error:
                if error.kind == "peer" and mailbox.awaited is not None:
                    waiting[known[0]] = mailbox.awaited
                elif not any(map(mailbox.has, mailbox.requested)):
                    raise
            else:
                return mailbox.has(goal)
            finally:
                mailbox.requested = ()
        return goal is not None

    def _run(self, rank: int, *, only_first: bool) -> tuple[Role, Totals]:
        """Runs the program as a rank: see :meth:`__call__`."""
        from tutti.training.capture.followed import NAMES, Followed
        from tutti.training.capture.refusals import is_users
        from tutti.training.capture.session import recording

        script = str(self.script)
        of_program = partial(is_users, script=script)
        followed = Followed(rank, self.world_size, is_users=of_program)
        names = {"__name__": "__main__", "__file__": script, **NAMES}
        with (
            importing(NAMES, of_program),
            _arguments(self.script, self.arguments),
            recording(self.world_size, rank, script=script, step=1 if only_first else self.step,
                      value=self.values, leaves=True, node=self.node,
                      mailbox=self.mailbox, followed=followed) as captured,
        ):  # fmt: skip
            try:
                runpy._run_code(self.code, names, mod_name="__main__")  # type: ignore[attr-defined]
            except SystemExit as error:
                if error.code not in (None, 0):
                    message = f"{script} exits with {error.code}"
                    raise CaptureError(message, kind="program") from None
        if captured.role is None or captured.first is None:
            raise _without_step(script)
        self.compiled = self.compiled or captured.compiled
        followed.end(self.mailbox.groups)
        return captured.role, replace(captured.first, alike=followed.alike)


def _without_step(what: str) -> CaptureError:
    message = f"{what} ends without a training step: expected `optimizer.step()`"
    return CaptureError(message, kind="no_step")


@contextlib.contextmanager
def _arguments(script: Path, arguments: Sequence[str]) -> Iterator[None]:
    """Sets `sys.argv` and the folder of imports as Python does for a script."""
    argv, path = sys.argv, list(sys.path)
    sys.argv, sys.path[:] = [str(script), *arguments], [str(script.parent), *path]
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, path
