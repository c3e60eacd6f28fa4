"""Runs, sweeps or writes a converted configuration of another simulator of networks on chip."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tutti.base.files.mistakes import mistake
from tutti.cli import options
from tutti.cli.loads import load_values
from tutti.formats import converted as files
from tutti.networks.study import run_load, sweep_loads
from tutti.study.console import remark
from tutti.study.study import Study, read

if TYPE_CHECKING:
    from collections.abc import Callable

    from tutti.formats.converted import ConvertedNoc


@dataclass
class ConvertedOptions:
    """What to do with a converted configuration."""

    loads: Annotated[
        str | None,
        typer.Option("--loads", metavar="LOADS", help="Offered loads in flits per node and cycle, "
                     "as in `sweep`; replaces the rate."),
    ] = None  # fmt: skip
    write: Annotated[
        Path | None,
        typer.Option("--write", metavar="FILE",
                     help="Write a tutti file (TOML) instead of running."),
    ] = None  # fmt: skip
    search: Annotated[
        bool,
        typer.Option("--saturation/--no-saturation",
                     help="Search for the saturation load of --loads."),
    ] = True  # fmt: skip
    threads: options.Threads = 0
    to: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FOLDER", help="Output folder. Default: out/noc."),
    ] = None
    report: options.Report = True
    files: options.Files = True


def study_converted(path: Path, of: ConvertedOptions, convert: Callable[[], ConvertedNoc]) -> None:
    """Converts a configuration, and runs, sweeps or writes it.

    Raises:
        ConfigError: The configuration or an option is invalid.
    """
    values = None if of.loads is None else load_values(of.loads)
    found = read("reading", convert)
    if found.not_honoured:
        remark(f"ignored keys, without effect on results: {', '.join(found.not_honoured)}")
    for text in found.remarks:
        remark(text)
    if values is None and not of.search:
        remark("--no-saturation has no effect without --loads")
    if of.write is not None:
        for option, given in (("--loads", of.loads), ("--out", of.to)):
            if given is not None:
                raise mistake("excludes --write, which runs nothing", source=option,
                              expected="one of them")  # fmt: skip
        Study().write(of.write, lambda to: files.write(to, found))
        return
    if not of.files and of.to is not None:
        raise mistake("excludes --out", source="--no-files", expected="one of them")
    output = found.noc.output if of.to is None else of.to
    experiment = replace(found.noc, output=output if of.files else None)
    if values is None:
        run_load(experiment, path, found.remarks, report=of.report)
    else:
        sweep_loads(experiment, path, values, search=of.search, threads=of.threads,
                    notes=found.remarks, report=of.report)  # fmt: skip
