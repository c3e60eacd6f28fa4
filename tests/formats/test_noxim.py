"""Configurations of Noxim: keys, routers, traffic, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tutti.base.errors import ConfigError
from tutti.formats.converted import write
from tutti.formats.formats import Options, head, recognised
from tutti.formats.noxim.network import load, read_topology
from tutti.networks import flit as noc
from tutti.networks.flit.files.network_file import load_noc, resolve_noc

FILE = Path(__file__).parents[2] / "examples/31_coming_from_garnet/noxim.yaml"


def refusal(path: Path, *changes: str) -> str:
    with pytest.raises(ConfigError) as error:
        load(path, changes)
    return str(error.value)


def test_a_mesh_gives_the_bits_of_a_native_mesh(tmp_path: Path) -> None:
    tables = {
        "cycle": "1 ns",
        "flit": "4 B",
        "topology": {
            "build": "mesh:4x4",
            "links": [{"rate": "2 GB/s", "latency": "1 ns"}],
            "routing": "dimension_order",
            "narrow_links": "serialize",
        },
        "router": {
            "vcs": 1,
            "buffer": 4,
            "traversal_delay": 0,
            "speculation": {},
            "injection": 0.5,
            "ejection": 0.5,
        },
        "traffic": {"pattern": "uniform_others", "rate": 0.08, "packet": 8},
        "measure": {"warmup": 1000, "measure": 9000},
    }
    same = resolve_noc(tables, source="native", folder=tmp_path)
    found = load(FILE)
    mine, other = (noc.run(each.network, each.traffic, each.plan) for each in (found.noc, same))
    assert (mine.latency, mine.accepted, mine.hops) == (other.latency, other.accepted, other.hops)


def test_zero_load_latency_is_that_of_noxim() -> None:
    """Two cycles to the first router and two for each one, then a flit every second cycle."""
    found = load(FILE, ("packet_injection_rate=0.0001", "probability_of_retransmission=0.0001",
                        "simulation_time=300000"))  # fmt: skip
    run = noc.run(found.noc.network, found.noc.traffic, found.noc.plan)
    assert run.latency is not None
    assert run.latency.mean == pytest.approx(2 + 2 * run.hops.mean + 2 * 7, abs=0.2)


def test_keys_become_tables() -> None:
    found = load(FILE, ("mesh_dim_x=8", "mesh_dim_y=2", "n_virtual_channels=2", "flit_size=64",
                        "min_packet_size=2", "max_packet_size=4", "buffer_depth=16",
                        "clock_period_ps=500"))  # fmt: skip
    network = found.noc.network
    assert (network.topology.name, network.routing) == ("mesh:8x2", "dimension_order")
    assert (network.router.vcs, network.router.buffer) == (2, 16)
    assert found.tables["topology"]["links"][0]["rate"] == "8000000000 B/s"
    assert [table["vcs"] for table in found.tables["traffic"]] == [[0, 0], [1, 1]]
    assert found.tables["traffic"][0]["packet"] == "2,3,4"
    assert found.tables["traffic"][0]["rate"] == pytest.approx(0.01 * 3 / 2)
    assert found.not_honoured == ("reset_time", "selection_strategy")


def test_bursts_have_the_mean_of_the_markov_chain() -> None:
    found = load(FILE, ("packet_injection_rate=0.01", "probability_of_retransmission=0.5"))
    table = found.tables["traffic"]
    assert table["process"] == "on_off:alpha=0.01,beta=0.5"
    assert table["rate"] == pytest.approx(8 * 0.01 / 0.51)


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("TRANSPOSE1", "15,11,7,3"),
        ("TRANSPOSE2", "0,4,8,12"),
        ("BIT_REVERSAL", "0,8,4,12"),
        ("SHUFFLE", "0,2,4,6"),
        ("BUTTERFLY", "0,8,2,10"),
    ],
)
def test_destinations(name: str, start: str) -> None:
    found = load(FILE, (f"traffic_distribution=TRAFFIC_{name}",))
    assert found.tables["traffic"]["pattern"].startswith(f"destinations:{start},")


def test_a_butterfly() -> None:
    found = load(FILE, ("topology=BUTTERFLY", "n_delta_tiles=8", "routing_algorithm=DELTA"))
    assert found.noc.network.topology.name == "butterfly:2:3"
    assert found.noc.remarks() == load(FILE).noc.remarks()


def test_a_written_file_gives_the_same_network(tmp_path: Path) -> None:
    found = load(FILE)
    write(tmp_path / "n.toml", found)
    assert load_noc(tmp_path / "n.toml").network == found.noc.network


def test_all_unsupported_values_are_listed_with_lines(tmp_path: Path) -> None:
    text = FILE.read_text().replace("XY", "ODD_EVEN").replace("winoc: false", "winoc: true")
    path = tmp_path / "n.yaml"
    path.write_text(text.replace("TRAFFIC_RANDOM", "TRAFFIC_LOCAL"))
    lines = {line.split(":")[0]: number
             for number, line in enumerate(text.splitlines(), start=1)}  # fmt: skip
    found = refusal(path)
    for key in ("routing_algorithm", "use_winoc", "traffic_distribution"):
        assert f"{path}:{lines[key]}: {key} = " in found


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("mesh_dim_x=1", "expected 2 or more"),
        ("mesh_dim_x=many", "mesh_dim_x"),
        ("flit_size=12", "multiple of 8"),
        ("max_packet_size=4", "below min_packet_size"),
        ("topology=OMEGA", "differ from a butterfly"),
        ("stats_warm_up_time=10000", "not below simulation_time"),
        ("traffic_distribution=TRAFFIC_TABLE_BASED", "matrix of tutti"),
        ("packet_injection_rate=0", "packet_injection_rate"),
        ("packet_injecton_rate=0.1", "did you mean `packet_injection_rate`?"),
        ("use_winoc=true", "wireless hubs"),
        ("x", "is not KEY=VALUE"),
        ("mesh_dim_x=[", "the value cannot be read"),
    ],
)
def test_values_that_are_refused(change: str, words: str) -> None:
    assert words in refusal(FILE, change)


def test_other_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "power.yaml").write_text("Energy:\n  Buffer: 1\n")
    assert "power.yaml" in refusal(tmp_path / "power.yaml")
    (tmp_path / "n.yaml").write_text("mesh_dim_x: 4\n")
    assert "buffer_depth" in refusal(tmp_path / "n.yaml")


def test_the_format_is_recognised() -> None:
    assert recognised(FILE, head(FILE), option="--from").name == "noxim"
    topology, lost = read_topology(FILE, Options(set=("mesh_dim_x=8",)))
    assert topology.ranks == 32
    assert lost
