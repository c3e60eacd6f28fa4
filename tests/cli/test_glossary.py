"""`tutti glossary`, and the terms in the help of the commands."""

from __future__ import annotations

from typer.testing import CliRunner

from tutti.base.glossary import glossary
from tutti.cli.app import _VERBS, app

RUNNER = CliRunner()


def test_a_term_has_a_definition_and_a_source() -> None:
    done = RUNNER.invoke(app, ["glossary", "Lower Bound"])
    assert done.exit_code == 0
    assert done.stdout.startswith("lower bound")
    assert "source: " in done.stdout


def test_an_unknown_term_suggests_a_known_one() -> None:
    done = RUNNER.invoke(app, ["glossary", "bandwith"])
    assert done.exit_code == 2
    assert "did you mean `bandwidth`?" in done.output


def test_every_command_lists_its_terms() -> None:
    commands = set(_VERBS) - {"glossary", "schema"}
    assert set(glossary().commands) == commands
    for name in commands:
        shown = " ".join(RUNNER.invoke(app, [name, "--help"]).output.split())
        assert f"Terms, defined by `tutti glossary TERM`: {glossary().commands[name][0]}" in shown
