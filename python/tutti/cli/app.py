"""The verbs put together, and the one place where an error becomes a message and an exit code."""

from __future__ import annotations

import errno
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tutti.cli import (
    bypass,
    bypass_run,
    calibrate,
    coherence,
    compare,
    energy,
    mpi,
    mpi_bench,
    mpi_exec,
    noc,
    paper,
    platforms,
    plot,
    run,
    schedule,
    schema,
    search,
    sweep,
    train,
    tune,
    workload,
)
from tutti.cli.console import fail, remark
from tutti.errors import ExitCode, TuttiError

_HELP = """Collective communication: schedules that are proved, timed, drawn and run.

Exit codes: 0 success; 2 a mistake in what was asked, with one message that says where, what was
expected and how to mend it; 3 a schedule that cannot be proved or a simulation that cannot finish;
70 an internal error of tutti, which please report; 130 Ctrl-C, with everything that was finished
until then kept.
"""


class _Verbs(TyperGroup):
    """Turns what a verb raises into one message and an exit code."""

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
    cls=_Verbs,
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


app.command("compare", short_help="Which algorithm is fastest where, and why.")(compare.compare)
app.command("search", short_help="The fastest schedule of recursive multiplying, with proof.")(
    search.search
)
app.command("run", short_help="Run one schedule, with its timeline.")(run.run)
app.command("sweep", short_help="An experiment many times over; resumed if killed.")(sweep.sweep)
app.add_typer(schedule.app, name="schedule")
app.add_typer(noc.app, name="noc")
app.add_typer(coherence.app, name="coherence")
bypass.app.command("run")(bypass_run.run)
app.add_typer(bypass.app, name="bypass")
app.add_typer(train.app, name="train")
app.add_typer(workload.app, name="workload")
app.add_typer(energy.app, name="energy")
mpi.app.command("exec", context_settings={"allow_interspersed_args": False})(mpi_exec.exec_)
mpi.app.command("bench")(mpi_bench.bench)
app.add_typer(mpi.app, name="mpi")
app.command("calibrate", short_help="Parameters of network models from measurements.")(
    calibrate.calibrate
)
app.command("tune", short_help="The fastest schedules, written for the MPI that runs them.")(
    tune.tune
)
app.command("plot", short_help="Draw results of a comparison.")(plot.plot)
app.command("paper", short_help="Make a paper's figures and tables again.")(paper.paper)
app.command("platforms", short_help="The known machines and their sources.")(platforms.platforms)
app.command("schema", short_help="The JSON Schema of experiment files.")(schema.schema)


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
