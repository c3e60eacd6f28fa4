"""The root of the verbs, where an error becomes a message and an exit code.

The module of a verb is loaded when the verb is used, so that `tutti --help` stays quick.
"""

from __future__ import annotations

import errno
import functools
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from tutti.cli.console import fail, remark
from tutti.errors import ExitCode, TuttiError

_HELP = """Collective communication: schedules that are proved, timed, drawn and run.

Exit codes: 0 success; 2 a mistake in what was asked, with one message that says where, what was
expected and how to mend it; 3 a schedule that cannot be proved or a simulation that cannot finish;
70 an internal error of tutti, which please report; 130 Ctrl-C, with everything that was finished
until then kept.
"""


_VERBS = {
    "compare": "Which algorithm is fastest where, and why.",
    "search": "The fastest schedule of recursive multiplying, with proof.",
    "run": "Run one schedule, with its timeline.",
    "sweep": "An experiment many times over; resumed if killed.",
    "calibrate": "Parameters of network models from measurements.",
    "tune": "The fastest schedules, written for the MPI that runs them.",
    "plot": "Draw results of a comparison.",
    "paper": "Make a paper's figures and tables again.",
    "platforms": "The known machines and their sources.",
    "schema": "The JSON Schema of experiment files.",
    "schedule": "List, show, verify and draw schedules.",
    "noc": "Networks of routers, flit by flit: latency under load, and saturation.",
    "coherence": "Small parallel kernels on chips with coherent caches, over meshes that "
    "broadcast.",
    "bypass": "Package networks whose links are chosen: the links that an algorithm needs.",
    "train": "Training steps: computing, communicating, and what of that is hidden.",
    "workload": "Workloads: models of PyTorch as lists of layers.",
    "energy": "Energy and area: technologies of routers and links, and networks of packages.",
    "mpi": "Run schedules with real ranks, under unmodified MPI programs.",
}
"""A line on each verb. Its module has the same name, and in it a group `app` or a function."""


class _LazyVerbs(Mapping[str, Any]):
    """The commands of the verbs, each loaded when it is asked for."""

    def __iter__(self) -> Iterator[str]:
        return iter(_VERBS)

    def __len__(self) -> int:
        return len(_VERBS)

    def __contains__(self, name: object) -> bool:
        return name in _VERBS

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - typer's commands have no public type
        if name not in _VERBS:
            raise KeyError(name)
        return _command(name)


@functools.cache
def _command(name: str) -> Any:  # noqa: ANN401 - as above
    module = import_module(f"tutti.cli.{name}")
    group = getattr(module, "app", None)
    if group is None:
        alone = typer.Typer(rich_markup_mode=None, add_completion=False)
        alone.command(name)(getattr(module, name))
        return typer.main.get_command(alone)
    if name == "mpi":
        from tutti.cli import mpi_bench, mpi_exec

        settings = {"allow_interspersed_args": False}
        group.command("exec", context_settings=settings)(mpi_exec.exec_)
        group.command("bench")(mpi_bench.bench)
    return typer.main.get_group(group)


class _Root(TyperGroup):
    """Turns what a verb raises into one message and an exit code."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 - as its base has it
        super().__init__(**attributes)
        self.commands = _LazyVerbs()  # type: ignore[assignment] # nothing is added to it

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401, ARG002 - as its base has it
        return list(_VERBS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002 - as its base has it
        """Lists the verbs without loading them."""
        limit = formatter.width - 6 - max(map(len, _VERBS))
        verbs = {name: TyperCommand(name, help=text) for name, text in _VERBS.items()}
        with formatter.section("Commands"):
            formatter.write_dl(
                (name, verb.get_short_help_str(limit)) for name, verb in verbs.items()
            )

    def make_context(self, *arguments: Any, **extra: Any) -> Any:  # noqa: ANN401 - as its base has it
        try:
            return super().make_context(*arguments, **extra)
        except typer.TyperException as error:
            raise _told(error) from None

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - as its base has it
        try:
            return super().invoke(ctx)
        except TuttiError as error:
            fail(error)
            raise typer.Exit(int(error.exit_code)) from None
        except typer.TyperException as error:
            raise _told(error) from None
        except OSError as error:
            refusal = _unwritten(error)
            if refusal is None:
                raise
            fail(refusal)
            raise typer.Exit(int(refusal.exit_code)) from None
        except KeyboardInterrupt:
            remark("interrupted")
            raise typer.Exit(int(ExitCode.INTERRUPTED)) from None


def _told(error: typer.TyperException) -> Exception:
    """What ends the program: a mistake in how it was called has been told by then."""
    from tutti.cli.usage import as_mistake

    mistake = as_mistake(error)
    if mistake is None:
        return error
    fail(mistake)
    return typer.Exit(int(mistake.exit_code))


_OUTSIDE = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR),
    *(errno.ENOTDIR, errno.ENAMETOOLONG, errno.EFBIG, errno.ENOENT, errno.EIO),
}
"""Where the machine or a path is at fault, such as a disk that is full, and not tutti."""


def _unwritten(error: OSError) -> TuttiError | None:
    """What is wrong with a file or a disk, where that is what ended a verb."""
    from tutti.files.mistakes import mistake

    if error.errno not in _OUTSIDE:
        return None
    source = str(error.filename) if error.filename is not None else "the output"
    return mistake(f"cannot be used: {error.strerror}", source=source)


app = typer.Typer(
    cls=_Root,
    help=_HELP,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:
    if asked:
        from tutti import __version__

        typer.echo(f"tutti {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    del version


def main() -> None:
    """Runs the command line and ends the process with its exit code."""
    try:
        app()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        sys.stderr.close()
        sys.exit(ExitCode.OK)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - a panic of the core is no Exception
        from tutti.cli.internal import report

        sys.exit(report(error))
