"""`tutti platforms`: lists the built-in platforms and the sources of their numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from tutti.cli.console import out
from tutti.config import find_platform, numbers, platform_names, platform_text

if TYPE_CHECKING:
    from tutti.config import RawPlatform


def platforms(
    name: Annotated[str | None, typer.Argument(help="Name or file of a platform.")] = None,
    toml: Annotated[
        bool, typer.Option("--toml", help="Print the file, as a template for your own.")
    ] = False,
) -> None:
    """List the built-in platforms, or show one with the source of each number.

    \b
    Examples:
      tutti platforms
      tutti platforms cray_xc30
      tutti platforms cray_xc30 --toml > mine.toml
    """
    if name is None:
        _list([find_platform(known, folder=Path()) for known in platform_names()])
        return
    platform = find_platform(name, folder=Path())
    if toml:
        known = name in platform_names()
        typer.echo(platform_text(name) if known else Path(name).read_text("utf-8"), nl=False)
        return
    _show(platform)


def _list(known: list[RawPlatform]) -> None:
    table = Table("platform", "models", "summary", box=None, pad_edge=False)
    for platform in known:
        table.add_row(platform.name, ", ".join(platform.models), platform.summary)
    out().print(table)


def _show(platform: RawPlatform) -> None:
    default = platform.default_model or next(iter(platform.models))
    console = out()
    console.print(": ".join(filter(None, (platform.name, platform.summary))), markup=False)
    if platform.source:
        console.print(f"source: {platform.source}", markup=False)
    for name, model in platform.models.items():
        mark = " (default)" if name == default else ""
        what = ", ".join(filter(None, (model.kind, model.summary)))
        console.print(f"model {name}{mark}: {what}", markup=False)
    table = Table("parameter", "value", "source", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for key, value, source, inferred in numbers(platform):
        where = source or "none given"
        table.add_row(key, value, f"[yellow]inferred[/]: {where}" if inferred else where)
    console.print(table)
