"""Platforms as one line of text: equal to the same platform in a file, and errors."""

from __future__ import annotations

from pathlib import Path

import pytest

import tutti
from tutti import platforms
from tutti.base.errors import ConfigError, TuttiError
from tutti.platforms.files.notation import defaults_of
from tutti.platforms.files.presets import find_platform
from tutti.topologies import families

FILE = """
name = "same"
[models.loggp]
kind = "loggp"
L = "10 ns"
o = "0.5 us"
g = "0.2 us"
G = "0.01 ns/B"
[compute]
gamma = "0.1 ns/B"
[topology]
build = "dragonfly:p=2,a=4,h=2,g=3"
routing = "minimal"
[[topology.links]]
rate = "50 GB/s"
latency = "100 ns"
[[topology.links]]
rate = "50 GB/s"
latency = "100 ns"
[[topology.links]]
rate = "12.5 GB/s"
latency = "2 us"
"""
NOTATION = (
    "dragonfly:p=2,a=4,h=2,g=3,kind=loggp,L=10ns,o=0.5us,g=0.2us,G=0.01ns/B,gamma=0.1ns/B,"
    "routing=minimal,rate=50GB/s,latency=100ns,links[2].rate=12.5GB/s,links[2].latency=2us"
)


@pytest.mark.parametrize(
    ("keys", "tables"),
    [
        ("", ""),
        (",packets.size=2KiB", '[topology.packets]\nsize = "2 KiB"'),
        (
            ",flits.flit=64B,flits.narrow_links=serialize,flits.router.vcs=8",
            '[topology.flits]\nflit = "64 B"\nnarrow_links = "serialize"\nrouter = { vcs = 8 }',
        ),
    ],
)
def test_a_notation_equals_the_file(tmp_path: Path, keys: str, tables: str) -> None:
    file = tmp_path / "same.toml"
    file.write_text(FILE + tables)
    written, short = platforms.platform(file), platforms.platform(NOTATION + keys)
    assert short.network == written.network
    ring = tutti.schedule("ring", ranks=24)
    runs = [tutti.simulate(ring, one, size="32 KiB", verify=False) for one in (written, short)]
    assert runs[0].completion_ps == runs[1].completion_ps


@pytest.mark.parametrize("example", [family.example for family in families()])
def test_every_family_is_a_platform(example: str) -> None:
    found = platforms.platform(f"{example},rate=25GB/s")
    assert found.routes is not None
    assert found.network == "pipelining_postal+flow"
    assert found.name == f"{example},rate=25GB/s"


def test_values_that_are_not_given_are_marked() -> None:
    found = find_platform("torus:4x4,rate=25GB/s", folder=Path())
    values = "alpha_p 400 ns; alpha_r 100 ns; latency 500 ns"
    assert defaults_of(found) == f"defaults of torus:4x4,rate=25GB/s: {values}"
    assert not defaults_of(find_platform(NOTATION, folder=Path()))


@pytest.mark.parametrize(
    ("notation", "problem", "hint"),
    [
        ("trous:4x4", "unknown family of topologies `trous`", "did you mean `torus`?"),
        ("torus", "unknown platform `torus`", "torus:SIZE[xSIZE...], such as torus:4x2x2"),
        ("torus:4x4,link=25GB/s", "unknown key `link`", "did you mean `rate`?"),
        ("torus:4x4,rate=1GB/s,2", "unknown key `2`", ""),
        ("torus:4x4,rate=25", "topology.links[0].rate: `25` is not a time per byte", "unit"),
        ("torus:4x4,rate=1GB/s,rate=2GB/s", "`rate` appears twice", ""),
        ("torus:4x4,links[2].rate=1GB/s", "links[0] dimension 0, links[1] dimension 1", ""),
        ("torus:4x4,L=1us", "`L` is a parameter of other network models", "kind=loggp"),
        ("torus:4x4,kind=logg", "unknown network model `logg`", "did you mean `loggp`?"),
        ("torus:4x4,packets.sizes=1KiB", "unknown key `sizes`", "did you mean `size`?"),
        ("torus:4x0", "`4x0` does not fit torus", "torus:SIZE"),
        ("fat_tree:k=2,levels=2,q=3", "unknown key `q`", ""),
        ("dgx_h100:8", "unknown family of topologies `dgx_h100`", "has no `:`"),
    ],
)
def test_wrong_notations_name_the_mistake(notation: str, problem: str, hint: str) -> None:
    with pytest.raises(ConfigError) as refused:
        platforms.platform(notation)
    error: TuttiError = refused.value
    assert problem in str(error)
    assert hint in error.hint
