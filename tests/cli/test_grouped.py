"""Options in groups behave like any others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from tutti.cli.grouped import grouped


@dataclass
class Named:
    """Two options."""

    words: Annotated[list[str] | None, typer.Argument()] = None
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many.")] = 3


@dataclass
class Loud:
    """One more option."""

    loud: Annotated[bool, typer.Option("--loud")] = False


@grouped
def say(named: Named, loud: Loud) -> None:
    """Prints it."""
    text = " ".join(named.words or ["nothing"]) * named.count
    typer.echo(text.upper() if loud.loud else text)


def test_groups_are_filled_from_the_command_line() -> None:
    app = typer.Typer()
    app.command()(say)
    run = CliRunner()
    assert run.invoke(app, []).output == "nothing" * 3 + "\n"
    assert run.invoke(app, ["a", "b", "-n", "2", "--loud"]).output == "A BA B\n"
    assert run.invoke(app, ["-n", "0"]).exit_code == 2
    output = run.invoke(app, ["--help"]).output
    assert "Prints it." in output
    assert "How many." in output
