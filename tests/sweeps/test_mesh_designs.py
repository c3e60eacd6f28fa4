"""Design spaces of meshes with single-cycle multi-hop links."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from typer.testing import CliRunner

import tutti
from called import call
from tutti.base.errors import ConfigError, ExitCode
from tutti.cli.app import app
from tutti.networks import mesh as smart
from tutti.networks.mesh.energy import mesh_energy
from tutti.networks.mesh.files import resolve_smart
from tutti.sweeps.files import resolve_sweep
from tutti.sweeps.plan import plan_sweep

if TYPE_CHECKING:
    from collections.abc import Mapping

MESH: dict[str, Any] = {
    "mesh": {"design": "smart_1d", "columns": 4, "rows": 4},
    "traffic": {"kind": "unicast", "rate": 0.1},
    "measure": {"warmup": 100, "measure": 400, "drain": 400, "seeds": 2},
}


def swept(grid: Mapping[str, Any], **mesh: Any) -> dict[str, Any]:
    return {"noc": MESH | mesh, "sweep": {"grid": dict(grid)}}


def planned(tables: dict[str, Any]) -> Any:
    return plan_sweep(resolve_sweep(tables, source="s", folder=Path()))


def test_a_design_has_the_results_of_single_runs() -> None:
    frame = tutti.sweep(swept({"mesh.hpc_max": [1, 3]}), workers=1)
    assert {"saturation_bytes_per_s", "area_mm2", "cycle_ps"}.isdisjoint(frame.columns)
    rows = frame.to_dicts()
    for row in rows:
        tables = MESH | {"mesh": MESH["mesh"] | {"hpc_max": row["sweep.mesh.hpc_max"]}}
        case = resolve_smart(tables, source="m")
        found = smart.run(case.network, case.traffic, case.plan, threads=1)
        assert row["latency"] == found.latency.mean
        assert row["accepted"] == pytest.approx(found.accepted.mean / 16)
        energy = mesh_energy(found.counts, case.network).total.nominal
        bits = found.accepted.mean * 400 * 2 * 128
        assert row["energy_pj_per_bit"] == pytest.approx(energy * 1e12 / bits)
        assert row["power_w"] == pytest.approx(energy / (2 * 400e-9))
        other = smart.saturation(case.network, case.traffic, case.plan, threads=1)
        bound = smart.ideal(case.network, case.traffic[0])
        assert bound is not None
        assert row["capacity"] == bound.load
        assert row["saturation"] == pytest.approx(other.by_throughput, abs=0.05 * bound.load)
        assert row["zero_load_latency"] == other.zero_load.mean
        assert row["unstable_load"] is None or row["unstable_load"] > row["saturation"]
    assert rows[1]["zero_load_latency"] < rows[0]["zero_load_latency"]
    assert rows[1]["on_front"]


def test_combinations_that_do_not_fit_are_listed(tmp_path: Path) -> None:
    arguments = [
        *("noc", "explore", "--design", "smart_2d", "--mesh", "4x4", "--traffic", "broadcast"),
        *("--rate", "0.01", "--set", "measure={measure=200,warmup=50,drain=200,seeds=1}"),
        *("--vary", "mesh.hpc_max=1,3", "--workers", "1", "--json"),
        *("--out", str(tmp_path)),
    ]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    first, second = document["tables"]["results"]
    assert first["state"] == "invalid"
    assert "a flit passes no router" in first["reason"]
    assert second["load_unit"] == "broadcasts per source and cycle"
    assert document["result"]["objectives"] == [
        "saturation", "zero_load_latency", "energy_pj_per_bit",
    ]  # fmt: skip
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Areas are not modelled" in page
    assert pl.read_csv(tmp_path / "results.csv").height == 2


def test_a_quantity_that_a_design_lacks_is_no_objective(tmp_path: Path) -> None:
    short = [f"measure.{each}" for each in ("measure=200", "warmup=50", "drain=200", "seeds=1")]
    words = [
        *("noc", "explore", "--design", "smart_1d", "--mesh", "4x4", "--traffic", "uniform"),
        *("--rate", "0.1", *(word for each in short for word in ("--set", each)), "--no-report"),
        *("--vary", "mesh.design=smart_1d,fully_connected", "--workers", "1", "--out", "out"),
    ]
    result = call(*words, cwd=tmp_path)
    assert "energy per bit: no objective: 1 design without, the first: 2" in result.stdout


def test_a_search_depends_on_proportions_of_rates_only() -> None:
    plan = planned(swept({"traffic.rate": [0.1, 0.2], "mesh.vcs": [2, 4]}))
    assert len({item.key for item in plan.measurements}) == 2 + 4
    for grid in ({"seed": [1, 2]}, {"mesh.bypass_turns": [True, False]}):
        assert len({item.key for item in planned(swept(grid)).measurements}) == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--vary", "mesh.vcs=2,4"), "`rate` is missing"),
        (("--vary", "mesh.vcs=2,4", "--rate", "0"), "the load is 0"),
        (("--vary", "vcs=2,4", "--rate", "0.1"), "did you mean `mesh.vcs`?"),
        (("--vary", "router.vcs=2,4", "--rate", "0.1"), "router"),
        (("--vary", "mesh.design=smart_3d,smart_2d", "--rate", "0.1"), "smart_3d"),
        (("--vary", "mesh.vcs=2,99", "--rate", "0.1"), "mesh.vcs"),
    ],
)
def test_refusals(options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    arguments = ["noc", "explore", "--design", "smart_1d", *options, "--out", str(tmp_path / "o")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == ExitCode.MISTAKE, result.output
    assert message in " ".join(result.stderr.split())
    assert not (tmp_path / "o").exists()


def test_a_space_is_of_one_kind() -> None:
    tables = swept({"topology.build": ["mesh:3x3"]})
    with pytest.raises(ConfigError, match="has no key `topology`"):
        planned(tables)
