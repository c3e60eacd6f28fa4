"""Designs of RapidChiplet: latencies, widths, routes, traffic, traces, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tutti.base.errors import ConfigError
from tutti.formats.converted import write
from tutti.formats.rapidchiplet.functions import function_of
from tutti.formats.rapidchiplet.network import load
from tutti.networks import flit as noc
from tutti.networks.flit.capacity import capacity
from tutti.networks.flit.files.network_file import load_noc

FOLDER = Path(__file__).parents[2] / "examples/31_coming_from_garnet/rapidchiplet"
DESIGN = FOLDER / "design.json"
FIRST = (0, 2, 4, 6, 8)
"""The first unit of each chiplet of the example."""


def mean(network: noc.Network, pairs: list[tuple[int, int]]) -> float:
    """Returns the mean latency of single packets between chiplets, sequentially."""
    lines = [f"{100 * n},{FIRST[a]},{FIRST[b]},1" for n, (a, b) in enumerate(pairs)]
    trace = noc.Trace(text="\n".join(["cycle,source,destination,flits", *lines]))
    plan = noc.MeasurementPlan(warmup=0, measure=100 * len(pairs), batches=2)
    latency = noc.run(network, trace, plan).latency
    assert latency is not None
    return latency.mean


def copied(folder: Path, **changes: Any) -> Path:
    """Returns a copy of the example; a change replaces a file, or merges into its object."""
    for path in FOLDER.iterdir():
        shutil.copy(path, folder)
    for name, value in changes.items():
        path = folder / f"{name}.json"
        old = json.loads(path.read_text())
        path.write_text(json.dumps(old | value if isinstance(value, dict) else value))
    return folder / "design.json"


def test_latency_and_throughput_are_those_of_the_proxies_of_rapidchiplet() -> None:
    """RapidChiplet 66e63e5 prints these for the example: `rapidchiplet.py -l -t`."""
    found = load(DESIGN).noc
    weights = {(a, b): 16 if b == 4 else 5 if a == 4 else 8
               for a in range(5) for b in range(5) if a != b}  # fmt: skip
    every = [pair for pair, weight in weights.items() for _ in range(weight)]
    assert mean(found.network, every) == pytest.approx(26.666666666666668, rel=1e-12)
    assert mean(found.network, [(0, 1)]) == 18
    assert mean(found.network, [(4, 0)]) == mean(found.network, [(0, 4)]) == 38
    bound = capacity(found.network, found.traffic)
    assert bound is not None
    # Times of a flit are rounded up to picoseconds.
    assert bound.load * 9 * 1994 == pytest.approx(4201.875, rel=3e-4)


def test_files_become_tables() -> None:
    found = load(DESIGN, ("num_vcs=8", "injection_rate=0.05", "packet_size=4", "credit_delay=3"))
    network = found.noc.network
    assert (network.router.vcs, network.router.buffer, network.router.traversal_delay) == (8, 32, 0)
    assert (found.tables["flit"], found.tables["traffic"]["rate"]) == ("249 B", 0.05)
    links = {(link.source, link.target): link for link in network.topology.links}
    assert str(links["router0", "router1"].length) == "1.5 mm"
    # PHYs of 4 cycles each, 0.25 cycles per mm, and the third cycle of the router.
    assert str(links["router0", "router1"].latency) == "10 ns"
    assert str(links["router5", "router4"].latency) == "6 ns"
    assert {"wafer_cost", "precision"} <= set(found.not_honoured)
    text = " ".join(found.remarks)
    assert "sets credit_delay itself" in text
    assert "routers take 2 to 6 cycles" in text
    assert "power of chiplets 85 W" in text


def test_a_slower_latency_for_all_routers() -> None:
    found = load(DESIGN, ("router_latency=5",)).noc
    assert (found.network.router.traversal_delay, mean(found.network, [(0, 1)])) == (3, 22)
    one = load(DESIGN, ("router_latency=1",)).noc.network
    assert (one.router.speculation is not None, mean(one, [(0, 1)])) == (True, 14)


def test_a_trace_waits_for_reverse_dependencies(tmp_path: Path) -> None:
    found = load(DESIGN, ("mode=trace",))
    assert found.texts["design.trace.csv"].splitlines()[1:4] == [
        "0,0,8,1,0,1,,0", "1,8,0,9,0,2,1,0", "2,0,3,1,0,3,2,0",
    ]  # fmt: skip
    run = noc.run(found.noc.network, found.noc.traffic, found.noc.plan)
    # 18 cycles there, and back with 8 more flits at the rate of the narrow link.
    assert run.last_arrival > 100 + 2 * 18 + 8
    early = load(DESIGN, ("mode=trace", "ignore_cycles=1")).texts["design.trace.csv"]
    assert "\n0,7,8,1,0,6,,0\n" in early
    write(tmp_path / "n.toml", found)
    assert load_noc(tmp_path / "n.toml").network == found.noc.network


def test_extended_tables_route_by_the_previous_router(tmp_path: Path) -> None:
    table = json.loads((FOLDER / "routing_table.json").read_text())["table"]
    extended = {
        here: {end: None if hop is None else {"-1": hop, **dict.fromkeys(table, hop)}
               for end, hop in row.items()}
        for here, row in table.items()
    }  # fmt: skip
    path = copied(tmp_path, routing_table={"type": "extended", "table": extended})
    assert load(path).tables["topology"] == load(DESIGN).tables["topology"]


def test_traffic_between_chiplets_is_spread_over_units(tmp_path: Path) -> None:
    path = copied(tmp_path, design={"traffic_by_unit": "none"})
    found = load(path)
    assert found.texts["design.matrix.txt"] == load(DESIGN).texts["design.matrix.txt"]
    assert "spread evenly" in " ".join(found.remarks)


def test_unknown_keys_are_listed_at_once(tmp_path: Path) -> None:
    chiplets = json.loads((FOLDER / "chiplets.json").read_text())
    chiplets["cpu"]["phys"][1]["z"] = 1.0
    path = copied(tmp_path, chiplets=chiplets, packaging={"voltage": 1.1})
    with pytest.raises(ConfigError) as error:
        load(path)
    assert "cpu: phys[1]: z\n" in str(error.value)
    assert "packaging.json: voltage\n" in str(error.value)
    assert "--lenient" in error.value.hint
    remarks = load(path, ("no_such_key=1",), is_lenient=True).remarks
    assert sum("skipped" in remark for remark in remarks) == 3


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("design", {"topology": "no.json"}, "there is no file `no.json`"),
        ("design", {"routing_table": "none"}, "routing_table: names no file"),
        ("design", {"traffic_by_unit": "none", "traffic_by_chiplet": "none"}, "has neither"),
        ("packaging", {"link_latency": "lambda x: open(x)"}, "`open(x)` is not read"),
        ("packaging", {"link_latency_type": "constant"}, "is not a number from 0"),
        ("packaging", {"latency_irouter": 0}, "latency_irouter: is 0"),
        ("packaging", {"bump_pitch": 5.0}, "data wires"),
        ("packaging", {"bump_pitch": 1e-200}, "1e-05 to 100000.0"),
        ("placement", {"interposer_routers": []}, "there is no irouter 0"),
        ("technologies", {"logic": {"phy_latency": -1}}, "technologies.json: logic: phy_latency"),
        ("routing_table", {"table": {'__tuple__:["chiplet", true]': {}}}, "is not a node"),
        ("routing_table", {"table": {}}, "from chiplet 0 to chiplet 1: no next hop at chiplet 0"),
        ("routing_table", {"type": ["default"]}, "unknown type of routing table"),
        ("traffic_by_unit", {"__tuple__:[0]": 1.0}, "names chiplets or units that do not exist"),
        ("booksim_config", {"mode": ["trace"]}, "unknown mode"),
        ("booksim_config", {"vc_allocator": "magic"}, "vc_allocator"),
        ("booksim_config", {"subnets": 2, "buffer_policy": "shared"}, "subnets"),
        ("topology", [], "npu0 cannot reach npu2"),
        ("topology", {}, "is not a list"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, name: str, change: Any, words: str) -> None:
    if name == "topology" and change == {}:
        path = copied(tmp_path)
        (tmp_path / "topology.json").write_text("{}")
    else:
        path = copied(tmp_path, **{name: change})
    with pytest.raises(ConfigError) as error:
        load(path)
    assert words in str(error.value)


def test_routes_pass_no_chiplet_that_does_not_relay(tmp_path: Path) -> None:
    chiplets = json.loads((FOLDER / "chiplets.json").read_text())
    chiplets["cpu"]["relay"] = False
    with pytest.raises(ConfigError, match="chiplet 1 does not relay packets"):
        load(copied(tmp_path, chiplets=chiplets))


def test_functions_of_the_length() -> None:
    for text, value in [
        ("lambda x : 0.25 * x", 1.0), ("lambda mm: math.ceil(mm / 3) + 1", 3.0),
        ("lambda x: max(1, -x ** 2 + x // 3)", 1.0),
    ]:  # fmt: skip
        assert function_of(text, source="p", key="link_latency")(4.0) == value
    for text in ("0.25", "lambda: 1", "lambda x: y", "lambda x: x.real", "lambda x: 1 / (x - 1)",
                 "lambda x: 9 ** 9 ** 9", "lambda x: (" * 500, "lambda x=1: x"):  # fmt: skip
        with pytest.raises(ConfigError):
            function_of(text, source="p", key="link_latency")
