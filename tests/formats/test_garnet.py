"""Networks of Garnet: scripts and runs, routes by weight, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tutti.base.errors import ConfigError
from tutti.formats.converted import ConvertedNoc, write
from tutti.formats.formats import Options, head, recognised
from tutti.formats.garnet.experiment import load, read, read_topology, topology_table
from tutti.formats.garnet.patterns import destinations
from tutti.formats.garnet.routes import routes_of
from tutti.networks import flit as noc
from tutti.networks.flit.files.network_file import load_noc, resolve_noc

EXAMPLES = Path(__file__).parents[2] / "examples/31_coming_from_garnet"
MESH, RUN = EXAMPLES / "mesh.py", EXAMPLES / "config.ini"
OPTIONS = ("num_cpus=16", "mesh_rows=4")
HEADER = """class Some(SimpleTopology):
    def makeTopology(self, options, network, IntLink, ExtLink, Router):
"""
RING = """        n = options.num_cpus
        network.routers = [Router(router_id=i) for i in range(n)]
        for i in range(n):
            network.ext_links.append(ExtLink(ext_node=self.nodes[i], int_node=network.routers[i]))
            for j in ((i + 1) % n, (i - 1) % n):
                network.int_links.append(IntLink(src_node=network.routers[i],
                                                 dst_node=network.routers[j], weight=1))
"""


def script(folder: Path, body: str) -> Path:
    path = folder / "some.py"
    path.write_text(HEADER + body)
    return path


def run(found: ConvertedNoc) -> noc.NocRun:
    return noc.run(found.noc.network, found.noc.traffic, found.noc.plan)


def refusal(path: Path, *options: str) -> str:
    with pytest.raises(ConfigError) as error:
        load(path, options)
    return str(error.value)


# --- equal networks give equal results ------------------------------------------------------------


def native(**changes: Any) -> dict[str, Any]:
    """Returns the network that a user of tutti writes for the mesh of the example."""
    classes = [
        {"pattern": "uniform", "rate": flits * 0.05 / 3, "packet": flits, "vcs": vcs}
        for flits, vcs in ((1, [0, 3]), (1, [4, 7]), (5, [8, 11]))
    ]
    return {
        "cycle": "500 ps",
        "flit": "16 B",
        "topology": {
            "build": "mesh:4x4",
            "links": [{"rate": "32 GB/s", "latency": "500 ps"}],
            "routing": "dimension_order",
        },
        "router": {
            "vcs": 12,
            "buffer": 4,
            "traversal_delay": 0,
            "speculation": {},
            "wait_for_tail_credit": True,
        },
        "traffic": classes,
        **changes,
    }


def test_the_mesh_of_a_script_gives_the_bits_of_a_native_mesh() -> None:
    found = load(MESH, OPTIONS)
    same = resolve_noc(native(), source="native", folder=Path())
    other = noc.run(same.network, same.traffic, same.plan)
    mine = run(found)
    assert found.noc.network.topology.name == "mesh:4x4"
    assert (mine.latency, mine.accepted, mine.hops) == (other.latency, other.accepted, other.hops)


def test_a_run_gives_the_network_of_its_script(tmp_path: Path) -> None:
    script_tables = load(MESH, (*OPTIONS, "num_dirs=16")).tables
    assert load(RUN).tables == script_tables
    (tmp_path / "config.json").write_text(json.dumps(as_json(RUN.read_text())))
    assert load(tmp_path / "config.json").tables == script_tables


def as_json(text: str) -> dict[str, Any]:
    """Returns a configuration as gem5 writes it to config.json: objects with paths."""
    objects: list[dict[str, Any]] = []
    for line in text.splitlines():
        if line.startswith("["):
            objects.append({"path": line[1:-1]})
        elif line:
            key, _, value = line.partition("=")
            lists = {"int_links", "ext_links", "routers"}
            objects[-1][key] = value.split() if key in lists else value
    return {"type": "Root", "eventq_index": 0, "objects": objects}


def test_routes_from_tables_give_the_bits_of_dimension_order(tmp_path: Path) -> None:
    found = read(MESH, OPTIONS)
    table, graph = topology_table(found, routes_of(found.network), None, "m")
    assert table["file"] == "m.json"
    assert table["routing"].startswith("source_routed:0-0=2;0-1=0.3;0-2=0.1.3;")
    tables = {**load(MESH, OPTIONS).tables, "topology": table}
    same = resolve_noc(tables, source="m", folder=tmp_path, topology=graph)
    mine, other = noc.run(same.network, same.traffic, same.plan), run(load(MESH, OPTIONS))
    assert (mine.latency, mine.accepted, mine.hops) == (other.latency, other.accepted, other.hops)
    assert not [one for one in same.remarks() if "deadlock" in one]


def test_a_concentrated_mesh_has_the_latency_of_its_routes() -> None:
    found = load(MESH, ("num_cpus=4", "mesh_rows=2", "num_l2caches=4", "injectionrate=0.001",
                        "inj_vnet=0", "sys_clock=2GHz"))  # fmt: skip
    assert found.noc.network.topology.ranks == 8
    result = run(found)
    # A cycle to the source queue, one to the router, and two for each router: head and link.
    assert result.latency is not None
    assert result.latency.mean == pytest.approx(2 + 2 * result.hops.mean, abs=0.05)


def test_a_written_file_gives_the_same_result(tmp_path: Path) -> None:
    found = load(script(tmp_path, RING), ("num_cpus=5", "inj_vnet=0"))
    write(tmp_path / "w.toml", found)
    again = load_noc(tmp_path / "w.toml")
    other = noc.run(again.network, again.traffic, again.plan)
    assert (run(found).latency, run(found).accepted) == (other.latency, other.accepted)


# --- routers with own VCs -------------------------------------------------------------------------


OWN = {router: 1 + router % 4 for router in range(16)} | {5: 6}
"""VCs per vnet of each router of the mesh."""


def with_own_vcs(folder: Path) -> tuple[Path, Path]:
    """Returns a script and a run whose routers differ in VCs."""
    text = MESH.read_text().replace(
        "latency=options.router_latency", "latency=1, vcs_per_vnet=6 if i == 5 else 1 + i % 4"
    )
    (folder / "m.py").write_text(text)
    numbers = iter(OWN.values())
    head, routers = RUN.read_text().split("[system.ruby.network.routers00]")
    routers = re.sub("vcs_per_vnet=4", lambda _: f"vcs_per_vnet={next(numbers)}", routers)
    (folder / "config.ini").write_text(f"{head}[system.ruby.network.routers00]{routers}")
    return folder / "m.py", folder / "config.ini"


def test_routers_have_their_own_vcs(tmp_path: Path) -> None:
    path, config = with_own_vcs(tmp_path)
    found = load(path, (*OPTIONS, "num_dirs=16"))
    assert load(config).tables == found.tables
    # The option replaces the 4 VCs that routers have from the network, not what they state.
    entries = load(config, ("vcs_per_vnet=3",)).tables["routers"]
    assert {entry["vcs_per_class"]: len(entry["at"]) for entry in entries} == {1: 4, 2: 3, 3: 8}
    assert found.noc.network.topology.name == "mesh:4x4"
    assert [each["vcs"] for each in found.tables["traffic"]] == [[0, 5], [6, 11], [12, 17]]
    built = found.noc.network.core([(0, 5), (6, 11), (12, 17)])
    for channel in built.channels():
        router = channel.target.number
        each = OWN[router] if channel.target.is_router else 6
        expected = [6 * vnet + vc for vnet in range(3) for vc in range(each)]
        assert channel.vc_numbers == expected
    assert any("16 nodes at routers" in text or "15 nodes" in text for text in found.remarks)
    write(tmp_path / "w.toml", found)
    again = load_noc(tmp_path / "w.toml")
    other = noc.run(again.network, again.traffic, again.plan)
    assert (run(found).latency, run(found).accepted) == (other.latency, other.accepted)


def test_equal_own_vcs_are_those_of_the_network(tmp_path: Path) -> None:
    body = RING.replace("router_id=i", "router_id=i, vcs_per_vnet=2")
    options = ("num_cpus=5", "inj_vnet=2")
    found = load(script(tmp_path, body), options)
    assert found.tables == load(script(tmp_path, RING), (*options, "vcs_per_vnet=2")).tables
    fewer = load(script(tmp_path, body.replace("=2)", "=2 - i // 4)")), options)
    assert fewer.tables["routers"] == [{"at": ["router4"], "vcs_per_class": 1}]
    assert "vcs_per_vnet` is 0" in refusal(
        script(tmp_path, body.replace("=2)", "=2 - i)")), *options
    )


# --- routes and deadlock --------------------------------------------------------------------------


def test_weights_select_routes(tmp_path: Path) -> None:
    text = MESH.read_text().replace("router + 1, 1)", "router + 1, 3)")
    (tmp_path / "m.py").write_text(text)
    routes = routes_of(read(tmp_path / "m.py", OPTIONS).network)
    assert routes.path(0, 5) == [0, 4, 5]
    assert routes.equal == 0
    assert load(tmp_path / "m.py", OPTIONS).noc.network.routing == "dimension_order:yx"


def test_equal_weights_take_the_lowest_router_and_are_counted(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(MESH.read_text().replace("columns, 2)", "columns, 1)"))
    found = load(tmp_path / "m.py", OPTIONS)
    routes = routes_of(read(tmp_path / "m.py", OPTIONS).network)
    # 12 pairs of rows by 12 pairs of columns: wherever x and y differ, both links start a path.
    assert routes.equal == 12 * 12
    assert routes.path(5, 0) == [5, 1, 0]
    assert any(text.startswith("144 routes with several links") for text in found.remarks)


def test_a_ring_of_equal_weights_can_deadlock(tmp_path: Path) -> None:
    remarks = load(script(tmp_path, RING), ("num_cpus=5", "inj_vnet=2")).noc.remarks()
    assert any("deadlock" in text for text in remarks)
    assert not any("deadlock" in text for text in load(MESH, OPTIONS).noc.remarks())


def test_no_path_is_an_error(tmp_path: Path) -> None:
    body = RING.replace("((i + 1) % n, (i - 1) % n)", "((0,) if i == 1 else ())")
    assert "router 0 has no path to router 1" in refusal(script(tmp_path, body), "num_cpus=2")


# --- settings -------------------------------------------------------------------------------------


def test_options_become_keys() -> None:
    found = load(MESH, (*OPTIONS, "router_latency=3", "link_latency=2", "vcs_per_vnet=2",
                        "inj_vnet=2", "link_width_bits=64", "buffers_per_data_vc=5",
                        "ruby_clock=1GHz", "injectionrate=0.02", "sim_cycles=9"))  # fmt: skip
    router, tables = found.noc.network.router, found.tables
    assert (router.vcs, router.buffer, router.routing_delay, router.port_latency) == (2, 5, 2, 2)
    assert tables["traffic"] == {"pattern": "uniform", "rate": 0.18, "packet": 9, "vcs": [0, 1]}
    assert (tables["cycle"], tables["flit"]) == ("1000 ps", "8 B")
    assert tables["topology"]["links"] == [{"rate": "8000000000 B/s", "latency": "2000 ps"}]
    assert found.not_honoured == ("sim_cycles",)


def test_options_that_a_script_does_not_use_have_no_effect(tmp_path: Path) -> None:
    """Routers without a latency take one cycle, whatever `router_latency` is."""
    options = ("num_cpus=5", "inj_vnet=0", "router_latency=3", "link_latency=2", "mesh_rows=2")
    found = load(script(tmp_path, RING), options)
    assert found.noc.network.router.routing_delay == 0
    assert found.not_honoured == ("link_latency", "mesh_rows", "router_latency")
    assert any("router_latency = 3 has no effect: the script's" in text for text in found.remarks)
    body = RING.replace("range(n)]\n", "range(1, n)]\n", 1).replace(
        "router_id=i)", "router_id=i, latency=2)"
    )
    first = "[Router(router_id=0)] + [Router("
    mixed = script(tmp_path, body.replace("[Router(", first, 1))
    assert "router latency = 1" in refusal(mixed, "num_cpus=5")


def test_injection_rates_are_per_cycle_of_the_nodes() -> None:
    remarks = load(MESH, OPTIONS).remarks
    assert any("0.1 packets per cycle of a node are 0.05" in text for text in remarks)
    assert load(MESH, (*OPTIONS, "sys_clock=2GHz")).remarks == ()


def test_patterns_are_those_of_gem5() -> None:
    assert destinations("transpose", 16)[1] == 4
    assert destinations("tornado", 16)[:4] == [1, 2, 3, 0]
    assert destinations("neighbor", 16)[3] == 0
    assert destinations("bit_complement", 16)[1] == 14
    assert destinations("bit_reverse", 16)[1] == 8
    assert destinations("bit_rotation", 16)[:4] == [0, 8, 1, 9]
    assert destinations("shuffle", 16)[9] == 3
    for name in ("bit_complement", "bit_reverse", "bit_rotation", "shuffle", "tornado"):
        assert sorted(destinations(name, 16)) == list(range(16))


def test_testers_send_to_directories() -> None:
    found = load(MESH, ("num_cpus=4", "mesh_rows=2", "num_dirs=1", "inj_vnet=0"))
    assert found.tables["traffic"]["pattern"].startswith("matrix:0,0,0,0,1;")
    assert found.tables["traffic"]["pattern"].endswith(";0,0,0,0,0")


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("        open('/etc/passwd')\n", ("some.py:3", "the name `open` is unknown")),
        ("        import os\n        os.system('x')\n", ("some.py:4", "`os` of gem5")),
        ("        ().__class__\n", ("some.py:3", "no attribute `__class__`")),
        ("        with x: pass\n", ("some.py:3", "With are not read", "config.ini")),
        ("        lambda: 1\n", ("some.py:3", "Lambda")),
        ("        eval('1')\n", ("the name `eval` is unknown",)),
        ("        x = [0] * 10 ** 9\n", ("lists are too long",)),
        ("        x = 10 ** 60\n", ("a number is too large",)),
        ("        x = 'a' * 10 ** 9\n", ("a str is not a number",)),
        ("        while 1: pass\n", ("the script is too long",)),
        ("        self.makeTopology(options, network, IntLink, ExtLink, Router)\n",
         ("nested too deeply",)),
        ("        x = options.mesh_rows\n", ("needs the option `mesh_rows`", "mesh_rows=V")),
        ("        assert options.num_cpus == 7\n", ("some.py:3", "options.num_cpus == 7")),
        ("        fatal('no')\n", ("the script stops: fatal('no')",)),
        ("        x = 1 / 0\n", ("some.py:3", "division by zero")),
        ("        x = range(1 / 1)\n", ("not of integers", "`//`")),
        ("        pass\n", ("has no router",)),
        ("        network.routers = [1]\n", ("`network.routers` is not a list of Router",)),
        (RING.replace("weight=1", "weight=0"), ("some.py:8", "`weight` is 0")),
        (RING.replace("weight=1", "latency=0"), ("`latency` is 0",)),
        (RING.replace("router_id=i", "router_id=0"), ("router_id 0 appears twice",)),
        (RING.replace("(i - 1)", "(i + 1)"), ("a second link from router 0 to router 1",)),
        (RING.replace("(i - 1)", "(i + 0)"), ("router 0 is linked to itself",)),
        (RING.replace("self.nodes[i]", "self.nodes[0]"), ("controller 0 has a second",)),
        (RING.replace("src_node", "node_a"), ("`src_node` is not a router", "old gem5")),
    ],
)  # fmt: skip
def test_scripts_that_are_refused(tmp_path: Path, body: str, words: tuple[str, ...]) -> None:
    text = refusal(script(tmp_path, body), "num_cpus=4")
    for word in words:
        assert word in text


def test_all_settings_that_are_not_modelled_are_listed(tmp_path: Path) -> None:
    body = RING.replace("weight=1", "weight=1, src_cdc=(i == 0), width=32, src_serdes=False")
    body = body.replace("router_id=i", "router_id=i, latency=1 + i % 2, buffers_per_data_vc=2")
    text = refusal(script(tmp_path, body), "num_cpus=3")
    assert text.count("width = 32") == 6
    assert text.count("src_cdc = True") == 2
    assert text.count("some.py:4: buffers_per_data_vc = 2") == 3
    assert "some.py:4: router latency = 2" in text
    assert "src_serdes" not in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("num_cpu=16", "mesh_rows=4"), "has fewer than two controllers"),
        ((*OPTIONS, "mesh_row=4"), "`mesh_rows`"),
        ((*OPTIONS, "mesh_row=4", "zz=1"), "2 options are not read: `mesh_row`, `zz`"),
        ((*OPTIONS, "routing_algorithm=2"), "RoutingUnit.cc"),
        ((*OPTIONS, "synthetic=hotspot"), "uniform_random, bit_complement"),
        ((*OPTIONS, "single_dest_id=3"), "single_dest_id"),
        ((*OPTIONS, "network_fault_model=true"), "fault-free"),
        ((*OPTIONS, "ruby_clock=fast"), "is not a clock"),
        ((*OPTIONS, "vcs_per_vnet=0"), 'argument "vcs_per_vnet=0"'),
        ((*OPTIONS, "vcs_per_vnet=24"), 'argument "vcs_per_vnet=24": vcs_per_vnet: 3 vnets of 24'),
        ((*OPTIONS, "link_width_bits=16", "buffers_per_ctrl_vc=2"), "control messages"),
        (("num_cpus=8", "mesh_rows=2", "synthetic=tornado"), "a square number"),
        (("num_cpus=8", "mesh_rows=3"), "the assertion fails"),
        (("x",), "is not KEY=VALUE"),
    ],
)
def test_options_that_are_refused(options: tuple[str, ...], words: str) -> None:
    assert words in refusal(MESH, *options)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("type=GarnetNetwork", "type=SimpleNetwork", "--network=garnet"),
        ("weight=2", "weight=none", "`weight` is"),
        ("src_cdc=false", "src_cdc=true", "src_cdc = True"),
        ("supported_vnets=", "supported_vnets=1", "supported_vnets = 1"),
        ("ni_flit_size=16", "ni_flit_size=0", "`ni_flit_size`"),
        ("vcs_per_vnet=4\nvirt", "vcs_per_vnet=0\nvirt", "`vcs_per_vnet` is 0"),
        ("virt_nets=3", "virt_nets=2", "virt_nets = 2"),
        ("routing_algorithm=0", "routing_algorithm=2", "RoutingUnit.cc"),
        ("traffic_type=uniform_random", "traffic_type=other", "uniform_random"),
        ("[root]", "[root", "found"),
        ("vcs_per_vnet=4\nvirt", "vcs_per_vnet=\nvirt", "`vcs_per_vnet` is empty"),
        ("vcs_per_vnet=4\nvirt", "vcs_per_vnet=false\nvirt", "`vcs_per_vnet` is false"),
        ("vcs_per_vnet=4\nvirt", "vcs_per_vnet=24\nvirt", "router 0: 3 vnets of 24 VCs are 72"),
        ("vcs_per_vnet=4\n\n", "vcs_per_vnet=\n\n", "config.ini:339: vcs_per_vnet"),
        ("vcs_per_vnet=4\nvirt", "buffers_per_data_vc=9\nvirt", "buffers_per_data_vc = 9"),
        (
            "buffers_per_data_vc=4",
            "buffers_per_data_vc=4\nbuffers_per_data_vc=5",
            "config.ini:343: `buffers_per_data_vc` appears twice",
        ),
        (
            "weight=2",
            "weight=2\nclk_domain=system.clk_domain",
            "a clock of 1000 ps, and the network has one of 500 ps",
        ),
        ("clk_domain=system.ruby.clk_domain\nenable", "enable", "`clk_domain` is missing"),
        ("num_rows=4", "num_rows=4\ncontrol_msg_size=16", "control_msg_size = 16"),
        ("num_rows=4", "num_rows=4\nother=1", "other = 1"),
        ("num_dest=16", "num_dest=8", "num_dest = 8, and there are 16 directories"),
        (
            "[system.cpu15]\ntype=GarnetSyntheticTraffic",
            "[system.cpu15]\ntype=Other",
            "15 testers for 16 L1 caches",
        ),
        ("inj_rate=0.1", "inj_rate=", "config.ini:15: inj_rate"),
    ],
)
def test_runs_that_are_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    text = RUN.read_text()
    assert old in text
    (tmp_path / "config.ini").write_text(text.replace(old, new))
    assert words in refusal(tmp_path / "config.ini")


def test_the_cache_line_of_a_run_is_that_of_its_messages(tmp_path: Path) -> None:
    text = RUN.read_text().replace("num_rows=4", "num_rows=4\ndata_msg_size=120")
    (tmp_path / "config.ini").write_text(text)
    assert load(tmp_path / "config.ini").tables["traffic"][2]["packet"] == (120 + 8) // 16


def test_options_that_a_run_states_have_no_effect() -> None:
    assert "has no effect" in refusal(RUN, "num_cpus=4")
    assert load(RUN, ("injectionrate=0.2",)).tables["traffic"][0]["rate"] == pytest.approx(0.1 / 3)


def test_files_are_recognised_by_content(tmp_path: Path) -> None:
    for name in ("mesh.py", "config.ini"):
        path = EXAMPLES / name
        assert recognised(path, head(path), option="--from").name == "garnet"
    path = tmp_path / "config.json"
    path.write_text(json.dumps(as_json(RUN.read_text())))
    assert recognised(path, head(path), option="--from").name == "garnet"


def test_convert_reads_the_graph() -> None:
    topology, lost = read_topology(MESH, Options(set=OPTIONS))
    assert (topology.ranks, len(topology.links)) == (16, 48 + 32)
    assert "weights of links, which select routes" in lost
