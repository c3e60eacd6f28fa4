"""Hardware of platform files: priors of the structural model, and the least time of a node."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

from tutti.base.errors import ConfigError
from tutti.base.files.sourced import written
from tutti.base.files.validate import validated
from tutti.measured.predict.curve import NAMES
from tutti.measured.predict.files import hardware_of, hardware_of_systems, platform_of_system
from tutti.measured.predict.hardware import Gamma, Hardware, least_us
from tutti.platforms.files.platform_file import RawPlatform
from tutti.platforms.files.presets import find_platform

OWN = """
name = "own"
[models.m]
kind = "pipelining_postal"
alpha_p = "1 us"
alpha_r = "0.25 us"
beta = "10 GB/s"
gamma = "0.1 ns/B"
gamma_memory = "0.4 ns/B"
cache = "2 MiB"
"""
NODE = """
[node]
latency = "2 us"
rate = "100 Gb/s"
[node.environments]
"open_mpi/mpi/one/host" = "m"
"""
NODES = """
[topology]
build = "hierarchical:switch:4/switch:8"
ranks_per_node = 4
links = [{ rate = "50 GB/s", latency = "100 ns" }, { rate = "5 GB/s", latency = "500 ns" }]
"""


def platform(text: str) -> RawPlatform:
    return validated(RawPlatform, tomllib.loads(text), source="own.toml")


def test_systems_of_measurements_have_the_hardware_of_their_platform() -> None:
    found = hardware_of_systems(["fugaku", "LUMI", "leonardo", "mare_nostrum", "elsewhere"])
    assert sorted(found) == ["LUMI", "fugaku", "leonardo", "mare_nostrum"]
    assert {one.node_bytes_per_us for one in found.values()} == {38100.0, 1e5, 5e4}
    assert found["fugaku"].link_bytes_per_us == found["fugaku"].bytes_per_us
    tapers = {name: one.taper for name, one in found.items()}
    assert tapers["mare_nostrum"] == 0.01
    assert tapers["leonardo"] == tapers["LUMI"] == 1
    assert not found["leonardo"].without_fits.gammas
    assert platform_of_system("") is None


@pytest.mark.parametrize(("name", "npus"), [("leonardo", 1), ("lumi", 4), ("mare_nostrum_5", 1)])
def test_interfaces_carry_what_the_links_of_a_node_carry(name: str, npus: int) -> None:
    """The topology and the table `node` are one answer."""
    bundled = find_platform(name, folder=Path())
    assert bundled.topology is not None
    link = written(bundled.topology.links[0].rate).core.bytes_per_second / 1e6
    assert hardware_of(bundled).node_bytes_per_us == pytest.approx(npus * link)


def test_a_platform_without_nodes_has_the_messages_of_its_default_model() -> None:
    alone = hardware_of(platform(OWN))
    assert alone.latency_us == pytest.approx(1.2508)
    assert alone.bytes_per_us == pytest.approx(1e4)
    assert alone.gap_us == pytest.approx(0.2508)
    assert alone.gamma("any library/mpi/many/host") == Gamma(1e-4, 4e-4, 2 << 20)
    assert alone.gamma("open_mpi/mpi/one/gpu") is None
    placed = hardware_of(platform(OWN + NODES))
    assert placed.latency_us == pytest.approx(1.2508 + 2 * 0.1 + 2 * 0.5)
    assert placed.bytes_per_us == pytest.approx(5e3)
    assert placed.interfaces == 1
    assert placed.taper == 0.01


def test_gamma_is_that_of_the_environment() -> None:
    known = hardware_of(platform(OWN + NODE))
    assert known.bytes_per_us == 12.5e3
    plain = known.prior()
    reductions = np.array([name.startswith("reduction") for name in NAMES])
    for stack in ("open_mpi/mpi/one/host", "open_mpi/mpi/several/host"):
        assert np.exp(known.prior(stack)[reductions]) == pytest.approx([1e-4, 1e-4, 4e-4, 4e-4])
        assert (known.prior(stack)[~reductions] == plain[~reductions]).all()
    for stack in ("open_mpi/mpi/one/gpu", "mpich/mpi/one/host"):
        assert (known.prior(stack) == plain).all()
    assert (Hardware().prior("open_mpi/mpi/one/host") == Hardware().prior()).all()


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"2 us"', '"0 us"', "has `latency` of 0"),
        ('rate = "100 Gb/s"', "", "`rate` is missing"),
        ('"100 Gb/s"', '"100 Gb/s"\ninterfaces = 0', "has `interfaces` of 0"),
        ("/one/host", "/host", "has the environment `open_mpi/mpi/host`: expected library"),
        ('host" = "m"', 'host" = "n"', "has no model `n`, which `node.environments` names"),
    ],
)
def test_mistakes(old: str, new: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=r"own\.toml") as caught:
        platform((OWN + NODE).replace(old, new))
    assert problem in str(caught.value)


def test_interfaces_limit_no_time_within_a_node() -> None:
    collectives = np.array(["all_reduce", "broadcast", "all_reduce"])
    nodes, sizes = np.array([2.0, 4.0, 1.0]), np.full(3, 1e6)
    assert least_us(collectives, nodes, sizes, np.full(3, 1e4)) == pytest.approx([100, 75, 0])
