"""Network files: accepted values, resolved networks, and errors."""

from __future__ import annotations

from dataclasses import MISSING, fields
from pathlib import Path

import pytest

from tutti.base.errors import ConfigError
from tutti.base.files.reader import parse_toml
from tutti.networks import flit as noc
from tutti.networks.flit.files.network_file import load_noc, resolve_noc
from tutti.networks.flit.files.tables import MeasureTable, RawNoc, TrafficTable

GOOD = """
cycle = "1 ns"
flit = "16 B"
[topology]
build = "mesh:4x4"
links = [{ rate = "16 GB/s", latency = "1 ns", length = "1 mm" }]
routing = "dimension_order"
[router]
vcs = 4
[traffic]
rate = 0.1
packet = 4
"""


def refusal(text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        resolve_noc(parse_toml(text, source="n.toml"), source="n.toml", folder=Path())
    return caught.value


@pytest.mark.parametrize(
    ("table", "settings"),
    [
        (MeasureTable, noc.MeasurementPlan),
        (TrafficTable, noc.Traffic),
    ],
)
def test_files_and_classes_have_the_same_keys_and_defaults(table: type, settings: type) -> None:
    own = {one.name: one.default for one in fields(settings)}
    written = {
        name: info.default
        for name, info in table.model_fields.items()  # type: ignore[attr-defined]
        if name not in {"trace", "matrix"}
    }
    if settings is noc.Traffic:
        assert (own.pop("rate"), written.pop("rate")) == (MISSING, None)
    assert own == written


def test_a_good_file_becomes_a_network() -> None:
    found = resolve_noc(parse_toml(GOOD, source="n.toml"), source="n.toml", folder=Path())
    assert found.network.topology.name == "mesh:4x4"
    assert found.network.router == noc.Router(vcs=4)
    assert found.traffic == (noc.Traffic(rate=0.1, packet=4),)
    assert found.plan == noc.MeasurementPlan()


def test_several_classes_and_speculation(tmp_path: Path) -> None:
    text = GOOD.replace("[traffic]", "[[traffic]]\nvcs = [0, 1]")
    text += '[[traffic]]\nrate = 0.2\nvcs = [2, 3]\npattern = "transpose"\n'
    text = text.replace("vcs = 4\n", "vcs = 4\nspeculation = true\n")
    (tmp_path / "n.toml").write_text(text)
    found = load_noc(tmp_path / "n.toml", ["router.speculation={ check_credit = true }"])
    assert isinstance(found.traffic, tuple)
    assert [one.vcs for one in found.traffic] == [(0, 1), (2, 3)]
    assert found.network.router.speculation == noc.Speculation(check_credit=True)


def test_paths_of_traces_start_from_the_file(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("cycle,source,destination,flits\n0,0,5,3\n")
    (tmp_path / "n.toml").write_text(GOOD.replace("rate = 0.1\npacket = 4", 'trace = "t.csv"'))
    found = load_noc(tmp_path / "n.toml")
    assert isinstance(found.traffic, noc.Trace)
    assert noc.run(found.network, found.traffic).all.packets == 1


def test_changes_are_toml_values_or_text(tmp_path: Path) -> None:
    path = tmp_path / "n.toml"
    path.write_text(GOOD)
    changes = ["router.vcs=8", "topology.routing=o1_turn", "cycle=2 ns", "traffic.rate = 0.25"]
    found = load_noc(path, changes)
    assert found.network.router.vcs == 8
    assert found.network.routing == "o1_turn"
    assert found.network.cycle_ps == 2000
    assert found.traffic == (noc.Traffic(rate=0.25, packet=4),)


@pytest.mark.parametrize(
    ("old", "new", "fragment"),
    [
        ("vcs = 4", "vsc = 4", "router.vsc: unknown key `vsc`"),
        ("vcs = 4", "vcs = 0", "router.vcs: is out of range"),
        ("vcs = 4", 'vcs = "4"', "router.vcs"),
        ("vcs = 4", "buffer = 3\ncut_through = true", "router.buffer: a VC buffer of 3 flits"),
        ("vcs = 4", "vcs = 1", None),
        ("vcs = 4", 'vc_allocator = "best"', "router.vc_allocator"),
        ("vcs = 4", 'arbiter = "best"', "router.arbiter: unknown arbiter `best`"),
        ('"dimension_order"', '"d_mod_k"', "topology.routing"),
        ('"dimension_order"', '"o1_turn:x"', "topology.routing: `o1_turn:x` cannot be read"),
        ('"mesh:4x4"', '"mash:4x4"', "topology: unknown topology"),
        ('length = "1 mm"', "length = 1", "topology.links[0].length"),
        ("rate = 0.1", "", "traffic.rate: `rate` is missing"),
        ("rate = 0.1", "rate = -1", "traffic.rate"),
        ("rate = 0.1", "rate = 5.0", "traffic.rate: a rate of 1.25"),
        ("packet = 4", 'pattern = "hotspot:99"', "traffic.pattern: `hotspot:99` names node 99"),
        ("packet = 4", 'packet = "0"', "traffic.packet"),
        ("packet = 4", 'packet = "1,x"', "traffic.packet: `1,x` cannot be read"),
        ("packet = 4", 'process = "on_off:1:2"', "traffic.process: `on_off:1:2` cannot be read"),
        ("packet = 4", 'reply = { packet = "x" }', "traffic.reply.packet: `x` cannot be read"),
        ("packet = 4", 'trace = "t.csv"', "traffic: `rate` conflicts with `trace`"),
        ("packet = 4", "vcs = [3, 9]", "traffic.vcs: class 0 has the VCs 3 to 9"),
        ('cycle = "1 ns"', 'cycle = "1"', "cycle: `1` has no unit"),
        ('cycle = "1 ns"', 'cycle = "0 ns"', "cycle: a cycle of 0 s"),
        ('cycle = "1 ns"', "[measure]\nbatches = 1", "measure.batches: `batches` is 1"),
        ('cycle = "1 ns"', "cicle = 3", "did you mean `cycle`?"),
    ],
)
def test_mistake_names_its_key(old: str, new: str, fragment: str | None) -> None:
    text = GOOD.replace(old, new)
    if new.startswith("[measure]"):
        text = GOOD.replace(old, "") + new
    if fragment is None:
        resolve_noc(parse_toml(text, source="n.toml"), source="n.toml", folder=Path())
        return
    assert fragment in str(refusal(text))


@pytest.mark.parametrize(
    ("change", "fragment"),
    [
        ("router.vcs", "expected: KEY=VALUE"),
        ("ruter.vcs=3", "did you mean `router`?"),
        ("cycle.ps=3", "does not exist"),
        ("router.vcs=many", "router.vcs"),
        ("topology.routing=dimension_oder", "did you mean `dimension_order`?"),
        ("traffic.pattern=transpos", "did you mean `transpose`?"),
    ],
)
def test_invalid_change_is_refused(change: str, fragment: str, tmp_path: Path) -> None:
    path = tmp_path / "n.toml"
    path.write_text(GOOD)
    with pytest.raises(ConfigError) as caught:
        load_noc(path, [change])
    assert fragment in str(caught.value)


def test_every_key_is_explained() -> None:
    for model in (RawNoc, noc.Router, noc.Speculation, MeasureTable, TrafficTable):
        for name, info in model.model_fields.items():
            assert info.description, f"{model.__name__}.{name}"
