"""The root command, which turns an error into a message and an exit code.

The module of a command is loaded when the command is used, so that `tutti --help` stays fast.
"""

from __future__ import annotations

import atexit
import errno
import functools
import gc
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperGroup

from tutti.base.errors import ExitCode, TuttiError
from tutti.cli.command_group import Commands
from tutti.study.console import fail, remark
from tutti.study.document import recording, started
from tutti.study.interrupts import at_once

_HELP = """Collective communication: generate, verify, time, draw and run schedules.

Exit codes: 0 success. 2 invalid input: the message names the file, key and value, what was
expected, and a fix. 3 a schedule that fails verification or a simulation that cannot finish.
70 an internal error of tutti: please report it. 130 interrupted: finished results are stored.

With `--json`, every command prints one JSON document instead of text.

`tutti --install-completion` sets up completion of commands and options for bash, zsh and fish.
"""

_COMPLETES = "_TUTTI_COMPLETE" in os.environ or not {
    "--install-completion",
    "--show-completion",
}.isdisjoint(sys.argv[1:])
"""Whether a shell completes a command line, or completion is installed: its import takes 40 ms."""


_VERBS = {
    "compare": "Rank algorithms by rank count and size, with reasons.",
    "search": "Find the fastest recursive multiplying schedule, with proof.",
    "run": "Simulate one schedule and show its timeline.",
    "init": "Write an experiment file with comments, to edit.",
    "explore": "Explore a collective in a browser: what if a link were faster?",
    "sweep": "Run an experiment over a grid of parameters; resumable.",
    "calibrate": "Fit the parameters of network models to measurements.",
    "tune": "Write the fastest schedules as rules for an MPI library.",
    "advise": "Choose algorithms for larger jobs from measurements of a few nodes.",
    "plot": "Plot the results of a comparison.",
    "paper": "Reproduce a paper's figures and tables.",
    "platforms": "List the built-in platforms and their sources.",
    "convert": "Convert schedules, traces and topologies between formats.",
    "schema": "Print the JSON Schema of a file, or of the output of --json.",
    "schedule": "List, show, verify and draw schedules.",
    "nccl": "Explain NCCL's choices, diagnose measured collectives, read topologies.",
    "noc": "Simulate on-chip networks cycle by cycle: latency, saturation.",
    "coherence": "Run parallel kernels on a chip with coherent caches.",
    "bypass": "Map collectives to chiplet networks with bypass links.",
    "train": "Simulate training steps: compute, exposed and hidden communication.",
    "moe": "Time dispatch and combine of mixture-of-experts layers.",
    "trace": "Simulate traces of applications, such as GOAL files.",
    "workload": "Convert PyTorch models to lists of layers.",
    "glossary": "Define a term, with its source.",
    "energy": "Report energy and area of routers, links and networks.",
    "mpi": "Run unmodified MPI programs on verified schedules.",
}
"""One line per command. Its module has the same name and holds a group `app` or a function."""

_IN_GROUPS = {
    "bypass": {"run": "bypass_run:run", "endpoints": "bypass_run:endpoints"},
    "mpi": {"exec": "mpi_exec:exec_", "bench": "mpi_bench:bench"},
    "nccl": {"doctor": "nccl_doctor:doctor", "topology": "nccl_topology:topology"},
    "noc": {
        "list": "noc_list:list_",
        "explore": "noc_explore:explore_",
        "watch": "noc_watch:watch_",
        "from-booksim": "noc_booksim:from_booksim",
        "from-garnet": "noc_garnet:from_garnet",
        "from-noxim": "noc_noxim:from_noxim",
        "from-netrace": "noc_netrace:from_netrace",
        "from-rapidchiplet": "noc_rapidchiplet:from_rapidchiplet",
    },
    "train": {
        "from-astrasim": "train_astrasim:from_astrasim",
        "overlap": "overlap:overlap",
        "search": "train_search:search",
        "disturb": "train_disturb:disturb",
        "endpoint": "train_endpoint:endpoint",
        "plan": "train_plan:plan",
        "calibrate": "train_calibrate:calibrate_",
        "capture": "train_capture:capture",
        "export": "train_export:export",
        "measure": "train_measure:measure_",
    },
}
"""Commands of groups that have separate modules, by the place of their function."""


_SETTINGS = {
    "exec": {"allow_interspersed_args": False},
    "capture": {"ignore_unknown_options": True},
}
"""Settings of commands that run a program with options."""


class _LazyCommands(Mapping[str, Any]):
    """Commands, each loaded on first use."""

    def __init__(self, loaders: Mapping[str, Callable[[], Any]]) -> None:
        self._loaders = loaders

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaders)

    def __len__(self) -> int:
        return len(self._loaders)

    def __contains__(self, name: object) -> bool:
        return name in self._loaders

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - typer's commands have no public type
        return self._loaders[name]()


@functools.cache
def _command(name: str) -> Any:  # noqa: ANN401 - as above
    """Returns a command whose help lists the glossary terms in its output."""
    with at_once():
        command = _loaded(name)
    format_epilog = command.format_epilog

    def format_terms(context: Any, formatter: Any) -> None:  # noqa: ANN401 - as above
        from tutti.base.glossary import glossary

        if terms := glossary().commands.get(name):
            command.epilog = f"Terms, defined by `tutti glossary TERM`: {', '.join(terms)}."
        format_epilog(context, formatter)

    command.format_epilog = format_terms
    return command


def _loaded(name: str) -> Any:  # noqa: ANN401 - as above
    module = import_module(f"tutti.cli.{name}")
    group = getattr(module, "app", None)
    if group is None:
        function = module.find_paper_command() if name == "paper" else getattr(module, name)
        return _alone(name, function)
    commands = typer.main.get_group(group)
    loaders = {name: functools.partial(_itself, each) for name, each in commands.commands.items()}
    for inner, place in _IN_GROUPS.get(name, {}).items():
        loaders[inner] = functools.partial(_in_group, inner, place)
    commands.commands = _LazyCommands(loaders)  # type: ignore[assignment] # as for the root
    return commands


def _itself(command: Any) -> Any:  # noqa: ANN401 - as above
    return command


@functools.cache
def _in_group(name: str, place: str) -> Any:  # noqa: ANN401 - as above
    module, _, function = place.partition(":")
    with at_once():
        return _alone(name, getattr(import_module(f"tutti.cli.{module}"), function))


def _alone(name: str, function: Any) -> Any:  # noqa: ANN401 - as above
    """Returns the command of a function; those behind the program of `exec` are the program's."""
    # The stdout of `exec` is that of the program, which leaves no place for a document.
    kind, settings = typer.Typer if name == "exec" else Commands, _SETTINGS.get(name)
    alone = kind(rich_markup_mode=None, add_completion=False)
    alone.command(name, context_settings=settings)(function)
    return typer.main.get_command(alone)


class _Root(TyperGroup):
    """Turns an exception of a command into one message and an exit code."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 - as its base has it
        super().__init__(**attributes)
        loaders = {name: functools.partial(_command, name) for name in _VERBS}
        self.commands = _LazyCommands(loaders)  # type: ignore[assignment] # nothing is added to it

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401, ARG002 - as its base has it
        return list(_VERBS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002 - as its base has it
        """Lists the commands without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl(_VERBS.items())

    def make_context(self, *arguments: Any, **extra: Any) -> Any:  # noqa: ANN401 - as its base has it
        try:
            return super().make_context(*arguments, **extra)
        except typer.TyperException as error:
            raise _reported(error) from None

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - as its base has it
        """Notes `--json` for usage errors, which end a command before it starts."""
        ctx.meta[_WORDS] = list(args)
        ctx.meta[_JSON] = "--json" in args[: args.index("--") if "--" in args else None]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - as its base has it
        with recording() as document:
            code = int(ExitCode.INTERNAL)
            try:
                result = self._invoke(ctx)
                code = int(ExitCode.OK)
            except typer.Exit as ended:
                code = ended.exit_code
                raise
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
                raise
            except BaseException as error:
                document.crash(error)
                raise
            finally:
                document.write(code)
        return result

    def _invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - as its base has it
        try:
            return super().invoke(ctx)
        except TuttiError as error:
            fail(_misplaced(error, ctx.meta[_WORDS]))
            raise typer.Exit(int(error.exit_code)) from None
        except typer.TyperException as error:
            raise _reported(error, is_json=ctx.meta[_JSON]) from None
        except (OSError, ModuleNotFoundError) as error:
            refusal = _refusal(error)
            if refusal is None:
                raise
            fail(refusal)
            raise typer.Exit(int(refusal.exit_code)) from None
        except KeyboardInterrupt:
            remark("interrupted")
            raise typer.Exit(int(ExitCode.INTERRUPTED)) from None


_JSON = "tutti.json"
_WORDS = "tutti.words"


def _misplaced(error: TuttiError, words: list[str]) -> TuttiError:
    """Returns the error to report: that of a file which another command reads, if it is one."""
    from tutti.formats.file_kinds import misplaced

    return misplaced(error, words) or error


def _reported(error: typer.TyperException, *, is_json: bool = False) -> Exception:
    """Reports a usage error; returns the exception that ends the program."""
    from tutti.cli.usage import as_mistake

    document, context = started(), getattr(error, "ctx", None)
    if is_json and document is not None and context is not None:
        document.activate(context.command_path)

    mistake = as_mistake(error)
    if mistake is None:
        return error
    fail(mistake)
    return typer.Exit(int(mistake.exit_code))


_OUTSIDE = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR),
    *(errno.ENOTDIR, errno.ENAMETOOLONG, errno.EFBIG, errno.ENOENT, errno.EIO),
}
"""Errors of the machine or of a path, such as a full disk, not of tutti."""


def _refusal(error: OSError | ModuleNotFoundError) -> TuttiError | None:
    """Returns the error to report if a file, a disk or a missing extra ended a command."""
    from tutti.base.files.extras import missing_extra
    from tutti.base.files.mistakes import mistake

    if isinstance(error, ModuleNotFoundError):
        return missing_extra(error)
    if error.errno not in _OUTSIDE:
        return None
    source = str(error.filename) if error.filename is not None else "the output"
    return mistake(f"cannot be used: {error.strerror}", source=source)


app = typer.Typer(
    cls=_Root,
    help=_HELP,
    no_args_is_help=True,
    add_completion=_COMPLETES,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(enabled: bool) -> None:
    if enabled:
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


_PLUGINS = "PYDANTIC_DISABLE_PLUGINS"
"""The variable that disables plugins of pydantic, the search for which takes 30 ms."""

_ALLOCATIONS = 500_000
"""New objects between searches for garbage cycles; Python's default is 700.

A command on 64 ranks creates fewer, and no garbage: a search takes 30 to 80 ms."""


def _leave_garbage() -> None:
    """Ends the process without a last search for garbage.

    Triton, which PyTorch imports in captures, would print what is left of it as leaks.
    """
    if "triton" not in sys.modules:
        gc.freeze()


def main() -> None:
    """Runs the command line and ends the process with its exit code."""
    # Imports create many objects and no garbage: searching them takes a fifth of a comparison.
    gc.set_threshold(_ALLOCATIONS, 50, 100)
    atexit.register(_leave_garbage)
    if "mpi" not in sys.argv[1:2]:  # its programs have the environment of this process
        os.environ.setdefault(_PLUGINS, "1")
    try:
        app(prog_name="tutti")  # also as `python -m tutti`
    except BrokenPipeError:  # the reader, such as `head`, has exited
        sys.stderr.close()
        sys.exit(ExitCode.OK)
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - a panic of the core is not an Exception
        # While pydantic builds a class, it turns Ctrl-C into a SchemaError.
        if KeyboardInterrupt.__name__ in f"{type(error).__name__} {error}":
            remark("interrupted")
            sys.exit(ExitCode.INTERRUPTED)
        from tutti.cli.internal import report

        sys.exit(report(error))
