"""`tutti bypass run`."""

from __future__ import annotations

from typer.testing import CliRunner

from tutti.cli.app import app


def test_ring_is_twice_as_fast_on_two_parallel_links() -> None:
    done = CliRunner().invoke(app, ["bypass", "run", "ring:4x4", "-s", "2 MiB", "--copies", "2"])
    assert done.exit_code == 0, done.output
    rows = [line.split() for line in done.output.splitlines() if "MiB" in line]
    assert [row[-1] for row in rows] == ["1.00", "1.99"]


def test_phases_have_separate_rows() -> None:
    trees = "double_binary_tree:nccl,phased"
    done = CliRunner().invoke(app, ["bypass", "run", trees, "-s", "64 KiB"])
    assert done.exit_code == 0, done.output
    assert "for each phase" in done.output
