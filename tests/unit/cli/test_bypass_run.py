"""`tutti bypass run`."""

from __future__ import annotations

from typer.testing import CliRunner

from tutti.cli.app import app


def test_a_ring_is_twice_as_fast_with_two_links_side_by_side() -> None:
    done = CliRunner().invoke(app, ["bypass", "run", "ring:4x4", "-b", "2 MiB", "--copies", "2"])
    assert done.exit_code == 0, done.output
    rows = [line.split() for line in done.output.splitlines() if "MiB" in line]
    assert [row[-1] for row in rows] == ["1.00", "1.99"]


def test_phases_have_a_row_of_their_own() -> None:
    trees = "double_binary_tree:nccl,phased"
    done = CliRunner().invoke(app, ["bypass", "run", trees, "-b", "64 KiB"])
    assert done.exit_code == 0, done.output
    assert "for each phase" in done.output
