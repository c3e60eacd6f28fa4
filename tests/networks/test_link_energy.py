"""Energy of networks whose links differ in kind: a technology per link class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tutti
from called import call
from flit_networks import SHORT
from tutti.base.errors import ConfigError
from tutti.energy.link_classes import ClassTechnologies
from tutti.energy.technology import Technology
from tutti.networks import flit as noc
from tutti.networks.flit.files.network_file import load_noc
from tutti.topologies.classes import class_of_links, differing_classes

if TYPE_CHECKING:
    from pathlib import Path

FILE = """
[topology]
build = "chiplet_mesh:chiplets=2x1,tiles=2x2"
links = [
    { rate = "16 GB/s", latency = "1 ns", length = "1 mm" },
    { rate = "16 GB/s", latency = "1 ns", length = "1 mm" },
]
[traffic]
rate = 0.1
[energy]
router = "dsent_45nm"
link = LINK
[measure]
warmup = 100
measure = 1000
"""
PER_CLASS = '{ on-chip = "dsent_45nm", die-to-die = "ucie_advanced" }'


def technology(link: str) -> Technology:
    return Technology(router="dsent_45nm", link=link)


def package() -> noc.NocRun:
    given = {"rate": "16 GB/s", "latency": "1 ns", "length": "1 mm"}
    topology = tutti.Topology.build("chiplet_mesh:chiplets=2x1,tiles=2x2", links=[given] * 2)
    return noc.run(noc.Network(topology=topology), noc.Traffic(rate=0.1), SHORT)


def test_each_link_has_the_class_of_its_family() -> None:
    topology = package().network.topology
    classes = class_of_links(topology)
    crossing = {ends for ends, name in classes.items() if name == "die-to-die"}
    assert crossing == {("npu1", "npu4"), ("npu4", "npu1"), ("npu3", "npu6"), ("npu6", "npu3")}
    assert set(classes.values()) == {"on-chip", "die-to-die"}
    ring = tutti.Topology.build("ring:4", rate="16 GB/s", latency="1 ns")
    assert class_of_links(ring) == {}


def test_classes_differ_in_packages_and_by_rate_or_speed() -> None:
    def differing(build: str, *links: tuple[str, str, str]) -> list[str]:
        tables = [dict(zip(("rate", "latency", "length"), link, strict=True)) for link in links]
        return differing_classes(tutti.Topology.build(build, links=tables))

    short, wide, long = (
        ("16 GB/s", "1 ns", "1 mm"), ("32 GB/s", "1 ns", "1 mm"), ("16 GB/s", "2 ns", "2 mm"),
    )  # fmt: skip
    assert differing("mesh:3x3", short, short) == []
    assert differing("mesh:3x3", short, long) == []
    assert differing("mesh:3x3", short, wide) == ["dimension 0", "dimension 1"]
    assert differing("chiplet_mesh:chiplets=2x1,tiles=2x2", short, short) == [
        "on-chip", "die-to-die",
    ]  # fmt: skip


def test_energy_per_class_is_that_of_its_technology() -> None:
    run = package()
    chip, bridge = technology("dsent_45nm"), technology("ucie_advanced")
    both = ClassTechnologies(chip, {"on-chip": chip, "die-to-die": bridge})
    report, same = run.energy(both), run.energy(chip)
    other = run.energy(bridge)
    classes = class_of_links(run.network.topology)
    crossing = sum(
        flits for source, target, flits in run.channels.select("source", "target", "flits").rows()
        if classes.get((source, target)) == "die-to-die"
    )  # fmt: skip
    share = crossing / run.events.link_flits
    parts = report.dynamic_by_component
    assert parts["die_to_die_links"].nominal == pytest.approx(
        share * other.dynamic_by_component["links"].nominal
    )
    assert parts["on_chip_links"].nominal == pytest.approx(
        (1 - share) * same.dynamic_by_component["links"].nominal
    )
    for name in ("buffers", "crossbar", "clock"):
        assert parts[name] == same.dynamic_by_component[name]
    assert "links" not in parts
    # The same technology for all classes is that technology.
    alike = run.energy(ClassTechnologies(chip, {"on-chip": chip, "die-to-die": chip}))
    assert alike.total.nominal == pytest.approx(same.total.nominal)
    areas = run.area(both).um2_by_component
    assert {"on_chip_links", "die_to_die_links"} <= areas.keys()


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ('"ucie_advanced"', "energy.link: `ucie_advanced` for all links, whose classes differ"),
        ('{ on-chip = "dsent_45nm" }', "energy.link: the classes are not those of the links"),
        ('{ on-chip = "dsent_45nm", die-to-die = "x" }', "`x`"),
        ("{}", "energy.link"),
    ],
)
def test_technologies_are_required_per_class(link: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "n.toml").write_text(FILE.replace("LINK", link))
    with pytest.raises(ConfigError, match=message):
        load_noc(tmp_path / "n.toml")


def test_the_report_has_the_energy_of_each_class(tmp_path: Path) -> None:
    (tmp_path / "n.toml").write_text(FILE.replace("LINK", PER_CLASS))
    done = call("noc", "run", "n.toml", "-o", "out", cwd=tmp_path)
    assert "on_chip_links" in done.stdout
    assert "die_to_die_links" in done.stdout
    page = (tmp_path / "out" / "report.html").read_text()
    assert "on-chip dsent_45nm, die-to-die ucie_advanced" in page


def test_constants_of_links_are_refused_for_several_technologies(tmp_path: Path) -> None:
    constant = '[energy.constants.{}]\nvalue = 0.5\nsource = "a datasheet"\n'
    text = FILE.replace("LINK", PER_CLASS)
    (tmp_path / "n.toml").write_text(text + constant.format("wire_pj_per_bit_mm"))
    with pytest.raises(ConfigError, match="`wire_pj_per_bit_mm` would apply to all link classes"):
        load_noc(tmp_path / "n.toml")
    (tmp_path / "n.toml").write_text(text + constant.format("buffer_write_pj_per_bit"))
    found = load_noc(tmp_path / "n.toml").technology
    assert isinstance(found, ClassTechnologies)
    assert found.routers.constants["buffer_write_pj_per_bit"].value == 0.5
