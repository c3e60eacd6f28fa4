"""`tutti platforms`: lists the built-in platforms; shows the numbers of one and their sources."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.padding import Padding
from rich.text import Text

from tutti.base.files.writer import document
from tutti.platforms.files.notation import notation_tables
from tutti.platforms.files.platform_file import numbers
from tutti.platforms.files.presets import find_platform, platform_names, platform_text
from tutti.study.console import echo, out, record, record_table, remark
from tutti.topologies import families
from tutti.topologies.notation import EXAMPLE, is_notation

if TYPE_CHECKING:
    from tutti.platforms.files.platform_file import RawPlatform


def platforms(
    name: Annotated[
        str | None,
        typer.Argument(help="Name or file of a platform, or a topology such as torus:4x4x4."),
    ] = None,
    toml: Annotated[
        bool, typer.Option("--toml", help="Print the file, as a template for your own.")
    ] = False,
) -> None:
    """List the built-in platforms, or show one with the source of each number.

    A platform can also be a topology and keys of its tables: torus:4x4x4,rate=25GB/s,latency=500ns.

    \b
    Examples:
      tutti platforms
      tutti platforms cray_xc30
      tutti platforms cray_xc30 --toml > mine.toml
      tutti platforms torus:4x4x4,rate=25GB/s --toml > mine.toml
    """
    if name is None:
        _list([find_platform(known, folder=Path()) for known in platform_names()])
        return
    platform = find_platform(name, folder=Path())
    if toml:
        echo(_file_of(name))
        return
    _show(platform)


def _file_of(name: str) -> str:
    """Returns the file of a platform; that of a notation is written here."""
    if is_notation(name):
        return document([f"The platform {name}."], notation_tables(name))
    return platform_text(name) if name in platform_names() else Path(name).read_text("utf-8")


def _list(known: list[RawPlatform]) -> None:
    console = out()
    for platform in known:
        models = list(platform.models)
        row = {"name": platform.name, "summary": platform.summary, "models": models}
        record_table("platforms", [row])
        console.print(Text(platform.name, style="bold"))
        console.print(_indented(platform.summary))
        label = "models" if len(platform.models) > 1 else "model"
        console.print(_indented(f"{label}: {', '.join(platform.models)}"))
    remark(f"a platform can also be a topology, such as {EXAMPLE}")
    remark(f"families: {', '.join(family.name for family in families())}")


def _indented(text: str) -> Padding:
    return Padding(Text(text), (0, 0, 0, 2))


def _show(platform: RawPlatform) -> None:
    default = platform.default_model or next(iter(platform.models))
    names = ("name", "summary", "source")
    record(**{name: getattr(platform, name) for name in names}, default_model=default)
    console = out()
    console.print(": ".join(filter(None, (platform.name, platform.summary))), markup=False)
    if platform.source:
        console.print(f"source: {platform.source}", markup=False)
    for name, model in platform.models.items():
        record_table("models", [{"name": name, "kind": model.kind, "summary": model.summary}])
        mark = " (default)" if name == default else ""
        what = ", ".join(filter(None, (model.kind, model.summary)))
        console.print(f"model {name}{mark}: {what}", markup=False)
    if platform.library is not None:
        library = platform.library
        record(library=library.model_dump())
        nodes = f"system {library.system}" if library.system else "system not known"
        console.print(f"library {library.name} {library.version}: {nodes}", markup=False)
        console.print(_indented(library.source or "no source"))
    for key, value, source, inferred in numbers(platform):
        row = {"key": key, "value": value, "source": source, "inferred": inferred}
        record_table("numbers", [row])
        console.print(Text.assemble((key, "bold"), f" = {value}"))
        where = source or "no source"
        console.print(_indented(f"inferred: {where}" if inferred else where))
