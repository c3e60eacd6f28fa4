"""`tutti convert`: converts schedules, traces and topologies between formats."""

from __future__ import annotations

import itertools
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from tutti.base.files.mistakes import mistake
from tutti.base.files.reader import missing
from tutti.base.units import Size
from tutti.cli import options
from tutti.cli.grouped import grouped
from tutti.cli.schedule import Layout, find
from tutti.formats.contents import as_content, reachable
from tutti.formats.formats import (
    INFERRED,
    Content,
    Format,
    Options,
    formats,
    head,
    named,
    recognised,
)
from tutti.study.console import record, remark, wrote
from tutti.study.files import one_of, written
from tutti.study.progress import Progress

From = Annotated[
    str | None,
    typer.Option(
        "--from",
        help="Format of IN. Default: recognised. With python, IN is MODULE:CALLABLE, which is "
        "executed.",
    ),
]
To = Annotated[str | None, typer.Option("--to", help="Format of OUT. Default: from its ending.")]


@grouped
def convert(
    given: Annotated[
        str | None,
        typer.Argument(
            metavar="IN", help="A file, or an algorithm as NAME[:ARG].", show_default=False
        ),
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
        typer.Option(
            "--size",
            "-s",
            metavar="SIZE",
            help="Size of the payload, for formats with sizes. For an all_gather: of all ranks.",
        ),
    ] = None,
    algorithm: options.Expansion = None,
    option: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Output file, instead of OUT."),
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Repair faults of IN with a known repair.")
    ] = False,
) -> None:
    """Convert schedules, traces and topologies between formats; report what is lost.

    \b
    Examples:
      tutti convert --list
      tutti convert ring ring.schedule --ranks 8
      tutti convert ring ring.goal --ranks 8 --size 1MiB
      tutti convert --from python mine:build mine.schedule  # exit code 2
    """
    if list_:
        _print_formats()
        return
    target = one_of(target, option, "OUT")
    if given is None or target is None:
        raise mistake("IN or OUT is missing", source="convert", expected="tutti convert IN OUT")
    chosen = Options(
        size=None if size is None else Size.parse(options.size(size, "--size")),
        algorithm=algorithm,
        repair=repair,
    )
    reader = _reader(given, from_)
    content: Content = reader.content if isinstance(reader, Format) else "schedule"
    writer = _writer(target, to, content)
    write = writer.writer()
    with Progress("reading"):
        value, losses, used = _read(given, reader, chosen, layout)
        value, converted, more = as_content(value, content, writer.content, chosen)
    _check_options(chosen, {*used, *converted, *writer.write_options}, _named(reader), writer.name)
    record(source_format=_named(reader), target_format=writer.name)
    lost: list[str] = []

    def run(path: Path) -> Path:
        lost.extend(write(value, path, chosen))
        return path

    with Progress("writing", writes=True):
        written(run, target)
    _show_written([target] if writer.files is None else writer.files(value, target))
    for loss in (*losses, *more, *lost):
        remark(loss if loss.startswith(INFERRED) else f"lost: {loss}")


def _show_written(files: list[Path]) -> None:
    """Lists the written files; those of one format only by the first and the last."""
    for suffix, each in itertools.groupby(files, lambda file: file.suffix):
        of_format = list(each)
        if suffix and len(of_format) > 1:
            note = f" to {of_format[-1].name}, {len(of_format):,} files"
            wrote(*of_format, note=note, first=True)
        else:
            wrote(*of_format, wrap=True)


def _writer(target: Path, name: str | None, content: Content) -> Format:
    """Returns the format of the output for an input of this content."""
    if target.is_dir():
        raise mistake("is a folder", source=str(target), expected="OUT is a file")
    if name is not None:
        return named(name, option="--to")
    return recognised(target, None, option="--to", contents=reachable(content))


def _reader(given: str, name: str | None) -> Format | Literal["algorithm", "python"]:
    """Returns the format of the input, or "algorithm" or "python" if it is not a file."""
    path = Path(given)
    if name == "python":
        return "python"
    if name is not None:
        return named(name, option="--from")
    if path.is_dir():
        raise mistake(
            "is a folder, whose format cannot be recognised",
            source=given,
            expected="a file, or --from with a format",
        )
    if path.is_file():
        return recognised(path, head(path), option="--from")
    if "/" in given or path.suffix:
        raise missing(path, "a file of a known format, or an algorithm as NAME[:ARG]")
    return "algorithm"


def _read(
    given: str,
    reader: Format | Literal["algorithm", "python"],
    chosen: Options,
    layout: Layout,
) -> tuple[Any, tuple[str, ...], tuple[str, ...]]:
    """Returns the content, the losses, and the options that the reader honoured."""
    if reader == "algorithm":
        return find(given, layout), (), ()
    for name, value in asdict(layout).items():
        if value is not None:
            raise mistake(
                "applies to algorithms only",
                source=f"--{name}",
                expected=f"no --{name}: the format of {given} is {_named(reader)}",
            )
    if not isinstance(reader, Format):
        from tutti.schedules.language import load

        return load(given, Path.cwd()), (), ()
    value, losses = reader.reader()(Path(given), chosen)
    return value, losses, reader.read_options


def _named(reader: Format | Literal["algorithm", "python"]) -> str:
    return reader.name if isinstance(reader, Format) else reader


def _check_options(chosen: Options, honoured: set[str], source: str, target: str) -> None:
    """Refuses options without effect on this conversion."""
    for name in chosen.given():
        if name not in honoured:
            raise mistake(
                f"has no effect from {source} to {target}",
                source=f"--{name}",
                expected=f"no --{name}",
            )


def _print_formats() -> None:
    """Prints the formats as paragraphs: a table would not fit a terminal."""
    from tutti.study.study import present
    from tutti.view.terminal import indented
    from tutti.view.view import Data, Fact, View

    for each in formats():
        row = {name: getattr(each, name) for name in ("name", "content", "summary", "endings")}
        row |= {"reads": bool(each.read), "writes": bool(each.write)}
        directions = " and ".join(name for name in ("read", "write") if getattr(each, name))
        files = indented(f"files: *{', *'.join(each.endings)}", "dim")
        present(View(
            headline=Fact("name", f"{each.name}: {each.content}, {directions}"),
            below=[indented(each.summary), files],
            data=[Data("formats", partial(list, [row]))],
        ))  # fmt: skip
