"""`tutti explore`: a local web application that answers "what if" questions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tutti.base.files.reader import read_toml
from tutti.cli import options
from tutti.collectives.files.definition import from_here
from tutti.explore.server import serve
from tutti.explore.state import Base, default_tables
from tutti.platforms.files.notation import defaults_of
from tutti.platforms.files.presets import default_ranks
from tutti.study.console import out, record, remark
from tutti.study.document import publish

if TYPE_CHECKING:
    from tutti.explore.guard import Access


def explore(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="An experiment file (TOML).", show_default=False),
    ] = None,
    platform: options.Platform = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="The port; 0 selects a free one.")
    ] = 0,
    host: Annotated[
        str,
        typer.Option("--host", help="The address to listen on; other machines need the token."),
    ] = "127.0.0.1",
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
    threads: options.Threads = 0,
) -> None:
    """Explore a collective in a browser: decision map, curves, timeline, links and causes.

    Starts a server on this machine and prints the address of its page, which contains a random
    token. The page selects platform, collective, algorithms, ranks and sizes, changes the rate of
    links, and exports experiment files. Ctrl-C stops the server. Requires tutti[explore].

    \b
    Examples:
      tutti explore
      tutti explore --platform torus:4x4x4,rate=25GB/s
      tutti explore experiment.toml --no-browser --port 8000
    """
    base = _base(file, platform)
    if text := defaults_of(base.experiment({}).platform):
        remark(text)

    def started(access: Access) -> None:
        record(url=access.url)
        publish()
        out().print(access.url, soft_wrap=True, highlight=False)
        remark("Ctrl-C stops the server")

    serve(base, threads=threads, host=host, port=port, browser=browser, started=started)


def _base(file: Path | None, platform: str | None) -> Base:
    """Returns the experiment that the page starts from.

    Args:
        file: The experiment file, if given.
        platform: Replaces the platform of the experiment, if given.
    """
    if file is not None:
        tables = read_toml(file, "an experiment file (TOML)")
        folder = file.parent.absolute()
    else:
        tables = default_tables()
        folder = Path.cwd()
    if platform is not None:
        tables["platform"] = from_here(platform)
        tables.pop("model", None)
        if file is None:
            tables["ranks"] = default_ranks(platform, tables["ranks"], source="--platform")
    return Base(tables, folder)
