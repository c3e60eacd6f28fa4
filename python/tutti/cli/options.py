"""Options that several commands share, in the syntax of nccl-tests."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tutti.base import ranges
from tutti.base.datatypes import NCCL_NAMES
from tutti.base.files.mistakes import mistake
from tutti.base.ranges import RANK_NOTATION, SIZE, rank_counts, size
from tutti.cli.command_group import CommandGroup, Commands
from tutti.cli.keyed import Key, keyed
from tutti.study.console import remark

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.collectives.files.resolve import Experiment


def group(about: str) -> typer.Typer:
    """Returns a group of commands with the help text `about`."""
    return Commands(
        cls=CommandGroup,
        help=about,
        rich_markup_mode=None,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def refuse(context: typer.Context, *parameters: str, because: str) -> None:
    """Refuses options of the running command that have no effect.

    Args:
        context: The command line.
        parameters: Names of parameters of the command.
        because: What the command does instead.

    Raises:
        ConfigError: The command line contains an option of one of them.
    """
    for parameter in context.command.params:
        origin = context.get_parameter_source(parameter.name or "")
        if parameter.name in parameters and origin is not None and origin.name == "COMMANDLINE":
            raise mistake(f"has no effect: the command {because}",
                          source=max(parameter.opts, key=len),
                          expected="no such option")  # fmt: skip


def with_platform(platform: str | None, changes: Sequence[str] | None) -> list[str]:
    """Returns the changes of a training step's keys, with that of its platform first."""
    chosen = [f"platform={json.dumps(platform)}"] if platform else []
    return [*chosen, *(changes or ())]


def datatype(name: str | None) -> str | None:
    """Returns the tutti name of a datatype; nccl-tests' names are accepted."""
    return NCCL_NAMES.get(name, name) if name else name


ExperimentFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="The experiment file (TOML).", show_default=False)
]
OptionalExperiment = Annotated[
    str | None,
    typer.Argument(metavar="[FILE]", show_default=False,
                   help="The experiment file (TOML), an algorithm or a schedule file. Default: "
                   "options alone."),
]  # fmt: skip
Collective = Annotated[
    str | None, typer.Option("--collective", "-c", help="Collective. Default: all_reduce."),
    Key("collective"),
]  # fmt: skip
Size = Annotated[
    str | None, typer.Option("--size", "-s", metavar="SIZE", help="Size."),
    Key("sizes", read=partial(size, option="--size")),
]  # fmt: skip
Begin = Annotated[
    str | None, typer.Option("-b", "--begin", metavar="SIZE", help=f"Smallest size: {SIZE}."),
    Key("sizes.from", read=partial(size, option="-b")),
]  # fmt: skip
End = Annotated[
    str | None, typer.Option("-e", "--end", metavar="SIZE", help="Largest size."),
    Key("sizes.to", read=partial(size, option="-e")),
]  # fmt: skip
Factor = Annotated[
    int | None, typer.Option("-f", "--factor", help="Factor between consecutive sizes."),
    Key("sizes.factor"),
]  # fmt: skip
Repetitions = Annotated[
    int | None, typer.Option("-n", "--repetitions", help="Number of repetitions."),
    Key("repetitions"),
]  # fmt: skip
Datatype = Annotated[
    str | None, typer.Option("-d", "--datatype", help="Datatype, such as float32 or int64."),
    Key("datatype", read=datatype),
]  # fmt: skip
Ranks = Annotated[
    str | None,
    typer.Option("--ranks", "-r",
                 help=f"Rank counts: {RANK_NOTATION}."),
    Key("ranks", read=rank_counts),
]  # fmt: skip
RankCount = Annotated[
    int | None, typer.Option("--ranks", "-r", help="Rank count."),
    Key("ranks", read=lambda count: rank_counts(str(count))),
]  # fmt: skip
Algorithm = Annotated[
    str | None, typer.Option("--algorithm", "-a", metavar="NAME[:ARG]", help="Algorithm."),
    Key("algorithms", read=lambda name: [name]),
]  # fmt: skip
Algorithms = Annotated[
    list[str] | None,
    typer.Option("--algorithm", "-a", metavar="NAME[:ARG]",
                 help="Algorithm, or `all`; may be repeated."),
    Key("algorithms"),
]  # fmt: skip
Expansion = Annotated[
    str | None,
    typer.Option("--algorithm", "-a", metavar="NAME[:ARG]",
                 help="Algorithm that replaces collectives by messages."),
]  # fmt: skip
Groups = Annotated[
    Path | None,
    typer.Option("--groups", metavar="FILE", help="Process groups of Chakra traces and their ranks "
                 "(JSON). Default: PREFIX.comm_group.json, PREFIX.json or comm_group.json."),
]  # fmt: skip
Platform = Annotated[
    str | None,
    typer.Option("--platform", "-p", help="Name or file of a platform, or a topology such as "
                 "torus:4x4x4,rate=25GB/s."),
    Key("platform"),
]  # fmt: skip
Model = Annotated[
    str | None, typer.Option("--model", metavar="MODEL", help="Model of the platform."),
    Key("model"),
]  # fmt: skip
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override a key of the file, given by its path; may be repeated.",
    ),
]
Verify = Annotated[
    bool,
    typer.Option(
        "--verify/--no-verify", help="Verify schedules before timing them, or skip verification."
    ),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="FOLDER", help="Output folder, instead of the file's."),
]
ExperimentOut = Annotated[Out, Key("output", read=str)]
Report = Annotated[
    bool, typer.Option("--report/--no-report", help="Write report.html, or only the other files.")
]
Files = Annotated[bool, typer.Option("--files/--no-files", help="Write files, or print only.")]
Threads = Annotated[
    int, typer.Option("--threads", min=0, help="Number of threads; 0 is one per core.")
]


def growing_sizes(
    begin: str | None, end: str | None, factor: int | None, least: int = 1
) -> list[int]:
    """Returns the sizes of `-b`, `-e` and `-f`, and remarks if they end before `-e`.

    Raises:
        ConfigError: They are no range of sizes.
    """
    sizes = ranges.growing_sizes(begin, end, factor, least)
    if text := ranges.unreached(sizes, ranges.size_bytes(end, "-e"), factor or 2):
        remark(text)
    return sizes


def _refuse_captured(file: Path | str | None) -> None:
    """Refuses the folder of a captured training step, which other commands run."""
    if file is None or not Path(file).is_dir():
        return
    from tutti.training.capture.files import is_captured

    if is_captured(Path(file)):
        hint = (f"`tutti train run {file} --platform NAME` prices it on a platform, and a sweep "
                f'with `model = "captured:{file}"` and `platform` in its grid compares '
                "platforms")  # fmt: skip
        raise mistake("is a captured training step", source=str(file),
                      expected="an experiment of collectives", hint=hint)  # fmt: skip


def experiment(
    of: object, file: Path | str | None, changes: Sequence[str] | None = None
) -> Experiment:
    """Returns the experiment that a file and options define.

    Args:
        of: A dataclass whose fields are options with a `Key`.
        file: The file. An algorithm, a schedule file, or None, means the defaults of `DEFAULTS`.
        changes: Key paths and values, each ``KEY=VALUE``.

    Raises:
        ConfigError: The file or an option is invalid.
    """
    from tutti.collectives.files.definition import define
    from tutti.collectives.files.source import tables_of

    values = keyed(of)
    _refuse_captured(file)
    option, algorithms = values.get("algorithms", ("", []))
    path, tables, stated = tables_of(file, algorithms)
    if file is None and not values and not changes:
        raise mistake(
            "missing argument: neither a file nor an option defines the experiment",
            source="FILE",
            expected="an experiment file, or options such as --platform dgx_h100 --ranks 8",
        )
    if path is None and file is not None and algorithms:
        values["algorithms"] = option, [*tables["algorithms"], *algorithms]
    return define(path, tables, values, changes or (), stated)
