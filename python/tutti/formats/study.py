"""The studies of file formats: a conversion, and the list of formats."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tutti.base.files.mistakes import mistake
from tutti.base.files.reader import missing
from tutti.formats.contents import as_content, reachable
from tutti.formats.formats import INFERRED, Format, formats, head, named, recognised
from tutti.schedules.text import find_schedule
from tutti.study.console import record, remark
from tutti.study.study import Study, read

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tutti.formats.formats import Content, Options

    Source = Format | Literal["algorithm", "python"]


def convert_file(
    source: str,
    target: Path,
    options: Options,
    *,
    source_format: str | None = None,
    target_format: str | None = None,
    layout: Mapping[str, Any],
) -> None:
    """Converts a file or an algorithm to another format, and reports what is lost.

    Args:
        source: The file or the algorithm; with `source_format` "python", ``module:callable``.
        target: The output file.
        options: The options of the formats.
        source_format: The name of the format of the source; None to recognise it.
        target_format: The name of the format of the target; None to recognise it by its ending.
        layout: The arguments of :func:`tutti.schedules.text.find_schedule` for an algorithm.

    Raises:
        ConfigError: A format is unknown, an option has no effect, or the file is invalid.
        TuttiError: The content cannot be converted.
    """
    reader = _reader(source, source_format)
    content: Content = reader.content if isinstance(reader, Format) else "schedule"
    writer = _writer(target, target_format, content)
    write = writer.writer()

    def converted() -> tuple[Any, tuple[str, ...], set[str]]:
        value, losses, used = _read(source, reader, options, layout)
        value, also_used, more = as_content(value, content, writer.content, options)
        return value, (*losses, *more), {*used, *also_used}

    value, losses, used = read("reading", converted)
    _check_options(options, {*used, *writer.write_options}, _named(reader), writer.name)
    record(source_format=_named(reader), target_format=writer.name)
    lost: list[str] = []

    def run(path: Path) -> Sequence[Path]:
        lost.extend(write(value, path, options))
        return [path] if writer.files is None else writer.files(value, path)

    Study().write(target, run)
    for loss in (*losses, *lost):
        remark(loss if loss.startswith(INFERRED) else f"lost: {loss}")


def show_formats() -> None:
    """Shows the formats."""
    from tutti.formats.view import format_view

    for each in formats():
        Study().present(format_view(each))


def _writer(target: Path, name: str | None, content: Content) -> Format:
    """Returns the format of the output for an input of this content."""
    if target.is_dir():
        raise mistake("is a folder", source=str(target), expected="OUT is a file")
    if name is not None:
        return named(name, option="--to")
    return recognised(target, None, option="--to", contents=reachable(content))


def _reader(source: str, name: str | None) -> Source:
    """Returns the format of the input, or "algorithm" or "python" if it is not a file."""
    path = Path(source)
    if name == "python":
        return "python"
    if name is not None:
        return named(name, option="--from")
    if path.is_dir():
        raise mistake(
            "is a folder, whose format cannot be recognised",
            source=source,
            expected="a file, or --from with a format",
        )
    if path.is_file():
        return recognised(path, head(path), option="--from")
    if "/" in source or path.suffix:
        raise missing(path, "a file of a known format, or an algorithm as NAME[:ARG]")
    return "algorithm"


def _read(
    source: str, reader: Source, options: Options, layout: Mapping[str, Any]
) -> tuple[Any, tuple[str, ...], tuple[str, ...]]:
    """Returns the content, the losses, and the options that the reader honoured."""
    if reader == "algorithm":
        return find_schedule(source, **layout), (), ()
    for name, value in layout.items():
        if value is not None:
            raise mistake(
                "applies to algorithms only",
                source=f"--{name}",
                expected=f"no --{name}: the format of {source} is {_named(reader)}",
            )
    if not isinstance(reader, Format):
        from tutti.schedules.language import load

        return load(source, Path.cwd()), (), ()
    value, losses = reader.reader()(Path(source), options)
    return value, losses, reader.read_options


def _named(reader: Source) -> str:
    return reader.name if isinstance(reader, Format) else reader


def _check_options(options: Options, honoured: set[str], source: str, target: str) -> None:
    """Refuses options without effect on this conversion."""
    for name in options.given():
        if name not in honoured:
            raise mistake(
                f"has no effect from {source} to {target}",
                source=f"--{name}",
                expected=f"no --{name}",
            )
