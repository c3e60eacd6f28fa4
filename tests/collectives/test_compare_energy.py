"""Energy in comparisons: one row per schedule, equal to the energy of single runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from typer.testing import CliRunner

import tutti
from tutti.base.errors import SimulationError
from tutti.cli.app import app
from tutti.collectives import energy as energy_of_comparisons
from tutti.collectives.case import has_energy
from tutti.collectives.experiment import Rows, measure, plan
from tutti.collectives.files.resolve import load_experiment

if TYPE_CHECKING:
    from pathlib import Path

RUNNER = CliRunner()
MODEL = """
[platform]
name = "tiles"
[platform.models.ends]
kind = "loggp"
L = "1 ns"
o = "5 ns"
g = "1 ns"
G = "0.001 ns/B"
"""
FLITS = f"""
collective = "all_reduce"
algorithms = ["ring", "recursive_doubling"]
ranks = [4]
sizes = ["64 B", "1 KiB"]
{MODEL}
[platform.topology]
build = "mesh:2x2"
links = [{{ rate = "64 GB/s", latency = "1 ns", length = "1 mm" }}]
[platform.topology.flits]
cycle = "1 ns"
flit = "64 B"
packet = 5
[platform.topology.flits.energy]
router = "dsent_45nm"
link = "dsent_45nm"
"""
MESH = f"""
collective = "all_reduce"
algorithms = ["ring", "in_network"]
ranks = [16]
sizes = ["64 B", "1 KiB"]
{MODEL}
[platform.mesh]
design = "sfo_greedy"
columns = 4
rows = 4
fan_in = "complete"
cycle = "1 ns"
flit = "16 B"
[platform.mesh.energy]
router = "smart_45nm"
link = "smart_45nm"
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "experiment.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("text", [FLITS, MESH], ids=["flits", "mesh"])
def test_rows_are_those_of_single_runs(text: str, tmp_path: Path) -> None:
    experiment = load_experiment(written(tmp_path, text))
    platform = experiment.machine()
    assert has_energy(platform)
    laid_out = plan(experiment)
    rows = Rows(laid_out)
    measure(laid_out, rows, threads=2)
    found = rows.energies()
    assert len(found) == 4
    for one in found:
        schedule = tutti.schedule(one.schedule, ranks=one.ranks)
        run = tutti.simulate(schedule, platform, size=f"{one.size_bytes} B")
        assert one.time_ps == run.completion_ps
        assert one.total == run.energy().total
        assert one.dynamic_j == run.energy().dynamic.nominal
        assert one.power_w == pytest.approx(run.energy().total.nominal / run.completion_ps * 1e12)
    by_size = [(one.size_bytes, one.total.nominal) for one in found]
    assert by_size == sorted(by_size)


@pytest.mark.parametrize("text", [FLITS, MESH], ids=["flits", "mesh"])
def test_times_do_not_depend_on_the_energy(text: str, tmp_path: Path) -> None:
    columns = ["schedule", "size_bytes", "time_ps", "messages", "message_bytes", "verified"]
    frames: list[pl.DataFrame] = []
    without = "\n".join(
        line for line in text.splitlines() if "energy]" not in line and "_45nm" not in line
    )
    for content in (text, without):
        experiment = load_experiment(written(tmp_path, content))
        laid_out = plan(experiment)
        rows = Rows(laid_out)
        measure(laid_out, rows, threads=1)
        frames.append(rows.frame().select(columns))
        assert bool(rows.energies()) == (content is text)
    assert frames[0].equals(frames[1])


def test_the_command_shows_and_writes_energy(tmp_path: Path) -> None:
    arguments = ["compare", str(written(tmp_path, MESH)), "--out", str(tmp_path / "out")]
    result = RUNNER.invoke(app, [*arguments, "--report"])
    assert result.exit_code == 0, result.output
    shown = result.stdout.partition("wrote")[0]
    assert "energy by schedule" in shown
    assert max(map(len, shown.splitlines())) <= 80
    frame = pl.read_csv(tmp_path / "out" / "energy.csv")
    assert frame["schedule"].n_unique() == 2
    assert frame.columns[:5] == ["ranks", "size_bytes", "schedule", "time_ps", "total_j"]
    assert (frame["low_j"] <= frame["total_j"]).all()
    assert frame["total_j"].to_list() == pytest.approx(
        (frame["dynamic_j"] + frame["leakage_j"]).to_list()
    )
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Energy of routers and links until the last rank ends" in page
    limited = RUNNER.invoke(app, [*arguments, "--top", "1", "--no-report"])
    assert "3 more rows in energy.csv" in " ".join(limited.stdout.split())


def test_json_has_energy_only_with_a_technology(tmp_path: Path) -> None:
    def tables(text: str) -> dict[str, Any]:
        arguments = ["compare", str(written(tmp_path, text)), "--no-report", "--json"]
        done = RUNNER.invoke(app, [*arguments, "--out", str(tmp_path / "out")])
        found: dict[str, Any] = json.loads(done.stdout)["tables"]
        return found

    assert len(tables(FLITS)["energy"]) == 4
    without = FLITS.partition("[platform.topology.flits.energy]")[0]
    assert "energy" not in tables(without)


def test_repetitions_are_averaged(tmp_path: Path) -> None:
    noisy = FLITS.replace("ranks = [4]", 'ranks = [4]\nrepetitions = 3\narrival = "5 ns"')
    noisy = noisy.replace('arrival = "5 ns"', 'arrival = { kind = "uniform", high = "50 ns" }')
    experiment = load_experiment(written(tmp_path, noisy))
    laid_out = plan(experiment)
    rows = Rows(laid_out)
    measure(laid_out, rows, threads=2)
    found = rows.energies()
    assert len(found) == 4
    times = rows.frame().group_by("schedule", "size_bytes").agg(pl.col("time_ps").mean())
    means = {(row[0], row[1]): row[2] for row in times.iter_rows()}
    for one in found:
        assert one.time_ps == pytest.approx(means[one.schedule, one.size_bytes])


def test_the_first_failure_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = load_experiment(written(tmp_path, FLITS))
    laid_out = plan(experiment)

    def failing(*_: object, size: tutti.Size, **__: object) -> object:
        raise SimulationError(f"no result for {size}", kind="deadlock")

    monkeypatch.setattr(energy_of_comparisons, "Run", failing)
    with pytest.raises(SimulationError, match="no result for 64 B"):
        measure(laid_out, Rows(laid_out), threads=2)
