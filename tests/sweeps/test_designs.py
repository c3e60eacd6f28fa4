"""Design spaces of networks: designs, their Pareto front, and designs that are not compared."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from typer.testing import CliRunner

import tutti
from tutti.base.errors import ConfigError, ExitCode
from tutti.cli.app import app
from tutti.networks.flit import capacity, run, saturation
from tutti.networks.flit.files.network_file import resolve_noc
from tutti.networks.flit.placement import placed
from tutti.sweeps.designs import DesignPlan
from tutti.sweeps.files import resolve_sweep
from tutti.sweeps.pareto import dominators
from tutti.sweeps.plan import plan_sweep
from tutti.topologies import Topology

if TYPE_CHECKING:
    from collections.abc import Mapping

RUNNER = CliRunner()
ENERGY = {"router": "dsent_45nm", "link": "dsent_45nm"}
NOC: dict[str, Any] = {
    "topology": {
        "build": "mesh:3x3",
        "links": [{"rate": "16 GB/s", "latency": "1 ns", "length": "1 mm"}],
    },
    "router": {"vcs": 2, "buffer": 4},
    "traffic": {"rate": 0.2, "packet": 2},
    "measure": {"warmup": 200, "measure": 800, "drain": 800},
}
FILE = """
[topology]
build = "mesh:3x3"
links = [{ rate = "16 GB/s", latency = "1 ns", length = "1 mm" }]
[router]
buffer = 4
[traffic]
rate = 0.2
packet = 2
[measure]
warmup = 200
measure = 800
drain = 800
[energy]
router = "dsent_45nm"
link = "dsent_45nm"
"""
SWEEP = """
noc = "noc.toml"
[sweep.grid]
"topology.build" = ["mesh:3x3", "torus:3x3", "ring:9"]
"router.vcs" = [1, 2]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "noc.toml").write_text(FILE, encoding="utf-8")
    path = tmp_path / "space.toml"
    path.write_text(SWEEP, encoding="utf-8")
    return path


def swept(grid: Mapping[str, Any], **noc: Any) -> dict[str, Any]:
    return {"noc": NOC | noc, "sweep": {"grid": dict(grid)}}


@pytest.fixture(scope="module")
def designs() -> pl.DataFrame:
    grid = {"router.vcs": [2, 4], "router.buffer": [3, 4, 8]}
    return tutti.sweep(swept(grid, energy=ENERGY), workers=1)


def test_a_design_has_the_results_of_single_runs(designs: pl.DataFrame) -> None:
    for row in designs.iter_rows(named=True):
        router = {"vcs": row["sweep.router.vcs"], "buffer": row["sweep.router.buffer"]}
        noc = resolve_noc(NOC | {"router": router, "energy": ENERGY}, source="n", folder=Path())
        found = run(noc.network, noc.scalable, noc.plan)
        assert noc.technology is not None
        assert row["latency"] == found.latency.mean
        assert row["area_mm2"] == found.area(noc.technology).total_um2.nominal / 1e6
        seconds = found.window * noc.network.cycle_ps * 1e-12
        joules = found.energy(noc.technology).total.nominal
        assert row["power_w"] == pytest.approx(joules / seconds)
        bits = found.accepted.mean * 9 * found.window * 128
        assert row["energy_pj_per_bit"] == pytest.approx(joules * 1e12 / bits)
        ideal = capacity(noc.network, noc.scalable)
        assert ideal is not None
        assert row["capacity"] == ideal.load
        tolerance = row["tolerance"]
        assert tolerance == pytest.approx(0.02 * ideal.load)
        # `tutti noc sweep` places other loads, and finds the same interval.
        other = saturation(noc.network, noc.scalable, noc.plan, tolerance=tolerance, threads=1)
        assert row["saturation"] == pytest.approx(other.load, abs=2 * tolerance)
        assert row["unstable_load"] - row["saturation"] <= tolerance * (1 + 1e-9)


def test_zero_load_is_the_latency_of_a_packet_alone() -> None:
    noc = resolve_noc(NOC, source="n", folder=Path())
    neighbours = NOC | {"traffic": {"rate": 0.2, "packet": 2, "pattern": "neighbour"}}
    torus = {**NOC["topology"], "build": "torus:3x3"}
    alone = resolve_noc(neighbours | {"topology": torus}, source="n", folder=Path())
    found = placed(alone.network, alone.scalable, alone.plan)
    # All packets take two hops and hardly ever meet: the p50 is the time of each.
    low, _ = found.zero_load.all.latency_extremes
    assert found.zero_load.latency.mean == pytest.approx(low, rel=0.002)
    assert placed(noc.network, noc.scalable, noc.plan).zero_load.is_stable


def test_placed_loads_need_fewer_runs_than_quarters() -> None:
    noc = resolve_noc(NOC, source="n", folder=Path())
    found = placed(noc.network, noc.scalable, noc.plan)
    other = saturation(noc.network, noc.scalable, noc.plan, tolerance=found.tolerance, threads=1)
    assert len(found.saturation.runs) < len(other.runs)


def test_the_front_has_the_designs_that_no_other_dominates(designs: pl.DataFrame) -> None:
    rows = designs.to_dicts()
    signs = {
        "saturation": -1, "zero_load_latency": 1, "area_mm2": 1, "energy_pj_per_bit": 1,
    }  # fmt: skip
    points = [[sign * float(f"{row[key]:.3g}") for key, sign in signs.items()] for row in rows]
    for row, point in zip(rows, points, strict=True):
        better = [
            row["design"] for row, other in zip(rows, points, strict=True)
            if other != point and all(a <= b for a, b in zip(other, point, strict=True))
        ]  # fmt: skip
        assert row["on_front"] == (not better)
        assert row["dominated_by"] is None if not better else row["dominated_by"] in better
    assert 0 < sum(row["on_front"] for row in rows) < len(rows)


def test_dominators_of_random_points() -> None:
    points = [((7 * n) % 11 / 1.0, (5 * n) % 13 / 1.0, (3 * n) % 7 / 1.0) for n in range(80)]
    for point, dominator in zip(points, dominators(points), strict=True):
        better = {
            at for at, other in enumerate(points)
            if other != point and all(a <= b for a, b in zip(other, point, strict=True))
        }  # fmt: skip
        assert dominator in better if better else dominator is None


def test_designs_compete_under_equal_traffic() -> None:
    grid = {"router.buffer": [2, 8], "traffic.rate": [0.1, 0.2]}
    rows = tutti.sweep(swept(grid, energy=ENERGY), workers=1).to_dicts()
    for row in rows:
        if row["dominated_by"] is not None:
            other = rows[row["dominated_by"] - 1]
            assert other["sweep.traffic.rate"] == row["sweep.traffic.rate"]
    first, second = rows[:2]
    assert first["saturation"] == second["saturation"]  # one search for both loads
    assert first["latency"] < second["latency"]


def test_points_that_differ_in_load_share_a_search() -> None:
    grid = {"router.buffer": [2, 8], "traffic.rate": [0.1, 0.2, 0.3]}
    plan = plan_sweep(resolve_sweep(swept(grid), source="s", folder=Path()))
    assert len({item.key for item in plan.measurements}) == 2 + 6


def test_invalid_designs_and_deadlocks_are_listed(file: Path, tmp_path: Path) -> None:
    arguments = ["sweep", str(file), "--workers", "1", "--out", str(tmp_path / "out")]
    result = RUNNER.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    rows = pl.read_csv(tmp_path / "out" / "results.csv").to_dicts()
    assert [row["state"] for row in rows] == [
        "stable", "stable", "invalid", "stable", "can deadlock", "can deadlock",
    ]  # fmt: skip
    assert "needs at least 2 VCs" in rows[2]["reason"]
    assert "form a dependency cycle" in rows[4]["reason"]
    assert rows[4]["saturation"] is None
    text = " ".join(result.stdout.split())
    assert "5, 6 can deadlock" in text
    assert "not compared: 1 invalid, 2 can deadlock" in text
    table = result.stdout.partition("wrote")[0]
    assert max(map(len, table.splitlines())) <= 80
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Pareto front" in page
    assert "form a dependency cycle" in page
    again = RUNNER.invoke(app, arguments)
    assert "6 of them from" in again.stderr


def test_designs_that_do_not_carry_the_load_are_listed() -> None:
    grid = {"router.vcs": [1, 2]}
    noc = NOC | {"traffic": {"rate": 0.9, "packet": 2}}
    frame = tutti.sweep({"noc": noc, "sweep": {"grid": grid}}, workers=1)
    assert frame["state"].to_list() == ["saturated", "saturated"]
    assert frame["on_front"].null_count() == 2
    assert frame["latency"].null_count() == 2
    assert frame["saturation"].null_count() == 0


def test_json_has_the_front(file: Path, tmp_path: Path) -> None:
    arguments = ["sweep", str(file), "--workers", "1", "--out", str(tmp_path / "out"), "--json"]
    document = json.loads(RUNNER.invoke(app, arguments).stdout)
    rows = document["tables"]["results"]
    front = [row["design"] for row in rows if row["on_front"]]
    assert sorted(document["result"]["pareto_front"]) == front
    assert document["result"]["objectives"] == [
        "saturation_bytes_per_s", "zero_load_ps", "area_mm2", "energy_pj_per_bit",
    ]  # fmt: skip


def test_options_give_the_designs_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "noc.toml").write_text(FILE, encoding="utf-8")
    arguments = [
        *("noc", "explore", str(tmp_path / "noc.toml"), "--vary", "router.vcs=1,2"),
        *("--vary", 'topology.build=["mesh:3x3", "torus:3x3"]', "--no-report"),
        *("--workers", "1", "--out", str(tmp_path / "out")),
    ]
    result = RUNNER.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    frame = pl.read_parquet(tmp_path / "out" / "results.parquet")
    grid = {"router.vcs": [1, 2], "topology.build": ["mesh:3x3", "torus:3x3"]}
    assert frame.equals(tutti.sweep(swept(grid, energy=ENERGY), workers=1))
    assert not (tmp_path / "out" / "report.html").exists()


def test_each_topology_has_its_default_routing(tmp_path: Path) -> None:
    result = RUNNER.invoke(app, [
        *("noc", "explore", "--vary", 'topology.build=["mesh:2x2", "fat_tree:k=2,n=2"]'),
        *("--set", "measure.measure=400", "--set", "measure.warmup=100", "--workers", "1"),
        *("--rate", "0.1", "-o", str(tmp_path)),
    ])  # fmt: skip
    assert result.exit_code == 0, result.output
    frame = pl.read_parquet(tmp_path / "results.parquet")
    assert frame["routing"].to_list() == ["dimension_order", "nca"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--vary", "vcs=2,4"), "did you mean `router.vcs`?"),
        (("--vary", "router.vcz=2,4"), "did you mean `vcs`?"),
        (("--vary", "topology.routing=dimension_ordr,romm"), "did you mean `dimension_order`?"),
        (("--vary", "traffic.pattern=uniforn,uniform"), "did you mean `uniform`?"),
        (("--vary", "topology.build=mehs:2x2,mesh:2x2"), "did you mean `mesh`?"),
        (("--vary", "router.vcs=2,two"), "is not an integer"),
        (("--vary", "router.vcs"), "KEY=VALUES"),
        (("--vary", "router.vcs=[2"), "KEY=VALUES"),
        ((), "no key varies"),
        (("--vary", "router.vcs=2", "--vary", "router.vcs=4"), "given twice"),
        (("--vary", "router.vcs=2,2"), "duplicates point 1"),
        (("--vary", "router.vcs=2,4", "--tolerance", "0"), "tolerance"),
        (("--vary", "router.vcs=2,4", "--rate", "0"), "the load is 0"),
        (("--vary", "traffic.outstanding=1,2"), "closed loops and batches"),
        (("--vary", "output=a,b"), "cannot be swept"),
        (("--vary", "energy.router=dsent_45nm"), "energy"),
    ],
)
def test_refusals(options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    arguments = ["noc", "explore", "--mesh", "2x2", *options, "--out", str(tmp_path / "out")]
    result = RUNNER.invoke(app, arguments)
    assert result.exit_code == ExitCode.MISTAKE, result.output
    assert message in " ".join(result.stderr.split())
    assert not (tmp_path / "out").exists()


def test_options_of_varied_keys_are_remarked(tmp_path: Path) -> None:
    rates = ["--vary", "traffic.rate=0.1,0.2", "--rate", "0.3", "--set", "traffic.rate=0.4"]
    varied = ["--vary", "router.vcs=2", "--vcs", "3", "--vary", "topology.build=mesh:2x2"]
    short = ["--set", "measure.measure=100", "--out", str(tmp_path / "out"), "--no-report"]
    result = RUNNER.invoke(app, ["noc", "explore", "--mesh", "4x4", *varied, *rates, *short])
    found = re.findall("^(.*) has no effect", result.stderr, re.MULTILINE)
    assert found == ["--vcs", "--set traffic.rate"], result.stderr


def test_a_space_without_a_valid_design_is_an_error() -> None:
    topology = {**NOC["topology"], "build": "ring:8"}
    plan = resolve_sweep(swept({"router.vcs": [1, 2]}, topology=topology), source="s",
                         folder=Path())  # fmt: skip
    with pytest.raises(ConfigError, match=re.compile("no design of 2 .* dependency cycle", re.S)):
        plan_sweep(plan)


def test_any_invalid_design_is_listed_and_the_others_run() -> None:
    entry = {"at": ["npu4"], "buffer": 4}
    clock = {"at": ["npu4"], "period": "2 ns"}
    cases: tuple[tuple[dict[str, Any], str, list[Any], dict[int, str]], ...] = (
        ({"routers": [entry]}, "router.buffer", [2, 4, 8], {0: "`buffer` is 4"}),
        ({"routers": [entry]}, "routers[0].vcs_per_class", [1, 2, 3], {2: "`vcs_per_class` is 3"}),
        ({"routers": [entry | {"vcs": 1}]}, "routers[0].vcs_per_class", [1], {}),
        ({"clocks": [clock]}, "cycle", ["1 ns", "4 ns"], {1: "`period` is 2 ns"}),
        ({"routers": [entry]}, "topology.build", ["mesh:2x2", "mesh:3x3"], {0: "named `npu4`"}),
        ({}, "traffic.rate", [0, 0.1], {0: "the load is 0"}),
        (
            {"energy": ENERGY},
            "topology.build",
            ["mesh:3x3", "chiplet_mesh:chiplets=2x1,tiles=2x2"],
            {1: "links"},
        ),
    )
    for given, key, values, refused in cases:
        sweep = resolve_sweep(swept({key: values}, **given), source="s", folder=Path())
        if not refused:
            with pytest.raises(ConfigError, match=r"no design of 1 .* both given"):
                plan_sweep(sweep)
            continue
        plan = plan_sweep(sweep)
        assert isinstance(plan, DesignPlan)
        assert plan.refused.keys() == refused.keys(), (key, plan.refused)
        for point, text in refused.items():
            assert plan.refused[point].state == "invalid"
            assert text in plan.refused[point].reason
        assert len(plan.measurements) == 2 * (len(values) - len(refused))


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        (NOC, "is a network, not a sweep"),
        (swept({"router.vcs": [1, 2]}) | {"training": "step.toml"}, "a training step and a netwo"),
        ({"sweep": {"grid": {"ranks": [2]}}}, "one of `experiment`, `training` and `noc`"),
        ({"experiment": {}, "tolerance": 0.1, "sweep": {"grid": {"ranks": [2]}}},
         "only networks have a saturation load"),
    ],
)  # fmt: skip
def test_files_that_are_no_sweep_of_networks(tables: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        resolve_sweep(tables, source="s", folder=Path())


def test_traces_and_verification_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("cycle,source,destination,flits\n0,0,1,1\n", encoding="utf-8")
    noc = NOC | {"traffic": {"trace": "t.csv"}}
    sweep = resolve_sweep({"noc": noc, "sweep": {"grid": {"router.vcs": [1, 2]}}}, source="s",
                          folder=tmp_path)  # fmt: skip
    with pytest.raises(ConfigError, match="a trace has a fixed load"):
        plan_sweep(sweep)
    with pytest.raises(ConfigError, match="no schedules to verify"):
        plan_sweep(sweep, verify=False)


def keys(grid: Mapping[str, Any], **noc: Any) -> set[str]:
    plan = plan_sweep(resolve_sweep(swept(grid, **noc), source="s", folder=Path()))
    return {item.key for item in plan.measurements}


@pytest.mark.parametrize(
    "grid",
    [
        {"router.vcs": [2, 3]},
        {"router.speculation": [True, False]},
        {"topology.build": ["mesh:3x3", "mesh:3x4"]},
        {"topology.links[0].latency": ["1 ns", "2 ns"]},
        {"topology.links[0].length": ["1 mm", "2 mm"]},
        {"topology.routing": ["dimension_order", "o1_turn"]},
        {"traffic.pattern": ["uniform", "tornado"]},
        {"traffic.packet": [1, 2]},
        {"measure.warmup": [100, 200]},
        {"seed": [1, 2]},
        {"cycle": ["1 ns", "1.1 ns"]},
        {"flit": ["16 B", "8 B"]},
        {"energy.router": ["dsent_45nm", "dsent_32nm"]},
    ],
)
def test_every_input_is_part_of_the_cache_key(grid: Mapping[str, Any]) -> None:
    assert len(keys(grid, energy=ENERGY)) == 4
    assert keys(grid, energy=ENERGY) == keys(grid, energy=ENERGY, title="other", output="there")


def test_the_graph_of_a_file_is_part_of_the_cache_key(tmp_path: Path) -> None:
    noc = NOC | {"topology": {"file": "graph.json", "routing": "shortest_path"}}
    found = []
    for build in ("mesh:2x2", "mesh:2x3"):
        graph = Topology.build(build, rate="16 GB/s", latency="1 ns")
        graph.write(tmp_path / "graph.json")
        sweep = resolve_sweep({"noc": noc, "sweep": {"grid": {"router.vcs": [1]}}}, source="s",
                              folder=tmp_path)  # fmt: skip
        found.append({item.key for item in plan_sweep(sweep).measurements})
    assert not found[0] & found[1]


def test_designs_with_other_clocks_compete_in_time() -> None:
    grid = {"cycle": ["1 ns", "2 ns"]}
    links = [{"rate": "16 GB/s", "latency": "1 ns", "length": "1 mm"}]
    topology = {"build": "mesh:3x3", "links": links}
    fast, slow = tutti.sweep(swept(grid, topology=topology), workers=1).to_dicts()
    assert fast["zero_load_ps"] < slow["zero_load_ps"]
    assert slow["dominated_by"] == fast["design"]


def test_dask_gives_the_same_designs() -> None:
    pytest.importorskip("distributed")
    tables = swept({"router.vcs": [1, 2]}, energy=ENERGY)
    assert tutti.sweep(tables, executor="dask", workers=1).equals(tutti.sweep(tables, workers=1))
