"""`tutti convert`: converts schedules, traces and topologies between formats."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tutti.base import ranges
from tutti.base.files.mistakes import mistake
from tutti.base.units import Size
from tutti.cli import options
from tutti.cli.grouped import grouped
from tutti.cli.schedule import Layout
from tutti.formats.formats import Options
from tutti.formats.study import convert_file, show_formats
from tutti.study.files import one_of

From = Annotated[
    str | None,
    typer.Option("--from", help="Format of IN. Default: recognised. With python, IN is "
                 "MODULE:CALLABLE, which is executed."),
]  # fmt: skip
To = Annotated[str | None, typer.Option("--to", help="Format of OUT. Default: from its ending.")]


@grouped
def convert(
    given: Annotated[
        str | None, typer.Argument(metavar="IN", show_default=False,
                                   help="A file, or an algorithm as NAME[:ARG]."),
    ] = None,
    target: Annotated[
        Path | None, typer.Argument(metavar="OUT", help="Output file.", show_default=False)
    ] = None,
    *,
    from_: From = None,
    to: To = None,
    list_: Annotated[bool, typer.Option("--list", help="List the formats.", is_eager=True)] = False,
    layout: Layout,
    size: Annotated[
        str | None,
        typer.Option("--size", "-s", metavar="SIZE", help="Size of the payload, for formats with "
                     "sizes. For an all_gather: of all ranks."),
    ] = None,
    algorithm: options.Expansion = None,
    option: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Output file, instead of OUT."),
    ] = None,
    groups: options.Groups = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Repair faults of IN with a known repair.")
    ] = False,
    changes: options.Changes = None,
) -> None:  # fmt: skip
    """Convert schedules, traces and topologies between formats; report what is lost.

    \b
    Examples:
      tutti convert --list
      tutti convert ring ring.schedule --ranks 8
      tutti convert ring ring.goal --ranks 8 --size 1MiB
      tutti convert --from python mine:build mine.schedule  # exit code 2
    """
    if list_:
        show_formats()
        return
    target = one_of(target, option, "OUT")
    if given is None or target is None:
        raise mistake("IN or OUT is missing", source="convert", expected="tutti convert IN OUT")
    payload = None if size is None else Size.parse(ranges.size(size, "--size"))
    convert_file(
        given,
        target,
        Options(
            size=payload,
            algorithm=algorithm,
            repair=repair,
            groups=groups,
            set=tuple(changes or ()),
        ),
        source_format=from_,
        target_format=to,
        layout=asdict(layout),
    )
