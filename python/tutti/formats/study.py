"""The studies of file formats: a conversion, and the list of formats."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from tutti.base.files.mistakes import mistake
from tutti.base.files.reader import missing
from tutti.formats.contents import as_content, reachable
from tutti.formats.formats import Content, Format, formats, head, named, recognised, stated
from tutti.schedules.text import find_schedule
from tutti.study.console import record, remark
from tutti.study.study import Study, read

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tutti.formats.formats import Options
    from tutti.schedules.ir import Schedule
    from tutti.workloads.operations import Trace


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
    reader = _source(source, source_format, layout)
    for name, value in layout.items():
        if value is not None and reader.name != "algorithm":
            raise mistake(
                "applies to algorithms only",
                source=f"--{name}",
                expected=f"no --{name}: the format of {source} is {reader.name}",
            )
    writer = _target(target, target_format, reader.content)
    write = writer.writer()

    def converted() -> tuple[Any, tuple[str, ...], tuple[str, ...]]:
        value, losses = reader.reader()(Path(source), options)
        if reader.content == "trace":
            from tutti.formats.matched_sizes import other_sizes

            losses = (*losses, *other_sizes(value))
            if options.algorithm is not None and not value.collectives:
                expected = f"no --algorithm: {source} has no collectives"
                raise mistake("has no effect", source="--algorithm", expected=expected)
        value, used, more = as_content(value, reader.content, writer.content, options)
        return value, (*losses, *more), used

    value, losses, used = read("reading", converted)
    for name in options.given():
        if name not in {*reader.read_options, *used, *writer.write_options}:
            raise mistake(
                f"has no effect from {reader.name} to {writer.name}",
                source=f"--{name}",
                expected=f"no --{name}",
            )
    record(source_format=reader.name, target_format=writer.name)
    lost: list[str] = []

    def run(path: Path) -> Sequence[Path]:
        lost.extend(write(value, path, options))
        return [path] if writer.files is None else writer.files(value, path)

    Study().write(target, run)
    for loss in (*losses, *lost):
        remark(stated(loss))


def read_trace(path: Path, name: str | None, options: Options) -> tuple[Trace, tuple[str, ...]]:
    """Reads a trace.

    Args:
        path: The file.
        name: The name of its format; None to recognise it.
        options: The options of the format.

    Returns:
        The trace, and a line per loss.

    Raises:
        ConfigError: The format is unknown, holds no trace, or an option has no effect.
        TuttiError: The file is invalid.
    """
    reader = named(name, option="--from") if name else _of_file(path, ("trace",))
    if reader.content != "trace":
        raise mistake(
            f"has the format {reader.name}, which holds a {reader.content.removesuffix('s')}",
            source=str(path),
            expected="a trace",
        )
    for given in options.given():
        if given not in reader.read_options:
            raise mistake(f"has no effect from {reader.name}", source=f"--{given}",
                          expected=f"no --{given}")  # fmt: skip
    from tutti.formats.matched_sizes import other_sizes

    trace, losses = reader.reader()(path, options)
    return trace, tuple(map(stated, (*losses, *other_sizes(trace))))


def show_formats() -> None:
    """Shows the formats."""
    from tutti.formats.view import format_view

    for each in formats():
        Study().present(format_view(each))


def _target(path: Path, name: str | None, content: Content) -> Format:
    """Returns the format of the output for an input of this content."""
    if path.is_dir():
        raise mistake("is a folder", source=str(path), expected="OUT is a file")
    if name is not None:
        return named(name, option="--to")
    return recognised(path, None, option="--to", contents=reachable(content))


def _source(source: str, name: str | None, layout: Mapping[str, Any]) -> Format:
    """Returns the format of the input, also of an algorithm or a Python function."""
    path = Path(source)
    if name == "python":
        return _of_schedules(name, lambda: _loaded(source))
    if name is not None:
        return named(name, option="--from")
    if path.is_dir() or path.is_file():
        return _of_file(path)
    if "/" in source or path.suffix:
        raise missing(path, "a file of a known format, or an algorithm as NAME[:ARG]")
    return _of_schedules("algorithm", lambda: find_schedule(source, **layout))


def _of_file(path: Path, contents: tuple[Content, ...] = get_args(Content)) -> Format:
    """Returns the format of a file; `contents` are those that errors name.

    Raises:
        ConfigError: It is a folder, cannot be read, or its format is unknown.
    """
    if path.is_dir():
        raise mistake(
            "is a folder, whose format cannot be recognised",
            source=str(path),
            expected="a file, or --from with a format",
        )
    return recognised(path, head(path), option="--from", contents=contents)


def _of_schedules(name: str, find: Callable[[], Schedule]) -> Format:
    return Format(name=name, content="schedule", endings=(), summary="", source="",
                  read=lambda *_: (find(), ()))  # fmt: skip


def _loaded(source: str) -> Schedule:
    from tutti.schedules.language import load

    return load(source, Path.cwd())
