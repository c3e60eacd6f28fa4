"""Options without effect are remarked, and change nothing; those with an effect are not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tutti.networks import mesh as smart
from tutti.networks.flit.files.network_file import resolve_noc
from tutti.networks.mesh.files import resolve_smart

NOC: dict[str, Any] = {
    "topology": {"build": "mesh:3x3", "links": [{"rate": "16 GB/s", "latency": "1 ns"}]},
    "router": {"vcs": 2, "buffer": 4},
    "traffic": {"rate": 0.3, "packet": 2},
    "measure": {"warmup": 50, "measure": 200, "drain": 400},
}
ENTRY = {"at": ["npu4"]}
SMART: dict[str, Any] = {
    "mesh": {"design": "sfo_greedy", "columns": 4, "rows": 4},
    "traffic": [{"kind": "broadcast", "rate": 0.01}, {"kind": "reduction", "rate": 0.1}],
    "measure": {"warmup": 50, "measure": 300, "drain": 300, "seeds": 1},
}


def merged(base: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    return {
        **base,
        **{
            name: base[name] | value
            if isinstance(value, dict) and isinstance(base.get(name), dict)
            else value
            for name, value in given.items()
        },
    }


@pytest.mark.parametrize(
    ("given", "remark"),
    [
        ({"traffic": {"queue": "nic"}}, 'traffic.queue = "nic" has no effect'),
        ({"traffic": {"priority": 3}}, "traffic.priority = 3 has no effect: router.priority is"),
        ({"routers": [ENTRY]}, "routers[0] has no effect"),
        ({"routers": [ENTRY | {"vcs": 2, "buffer": 4}]}, "routers[0] has no effect"),
        ({"routers": [ENTRY | {"vcs_per_class": 2}]}, "routers[0] has no effect"),
        ({"router": {"iterations": 3}}, "router.iterations = 3 has no effect"),
        (
            {"router": {"arbiter": "matrix", "vc_allocator": "wavefront",
                        "switch_allocator": "wavefront"}},
            "router.arbiter = matrix has no effect",
        ),
    ],
)  # fmt: skip
def test_options_of_routers_without_effect(given: dict[str, Any], remark: str) -> None:
    tables = merged(NOC, given)
    found = resolve_noc(tables, source="n", folder=Path())
    assert next(text for text in found.remarks() if "has no effect" in text).startswith(remark)
    plain = {key: value for key, value in tables.items() if key != "routers"}
    dropped = {"queue", "priority", "iterations", "arbiter"}
    for table in ("traffic", "router"):
        plain[table] = {key: plain[table][key] for key in plain[table] if key not in dropped}
    other = resolve_noc(plain, source="n", folder=Path())
    assert not [text for text in other.remarks() if "has no effect" in text]
    assert found.run().all == other.run().all


def test_options_of_routers_with_an_effect() -> None:
    queue = [{"rate": 0.1, "queue": "nic"}, {"rate": 0.1, "queue": "nic"}]
    for given in (
        {"traffic": queue},
        {"traffic": {"queue": "nic", "reply": {}}},
        {"traffic": {"priority": 3}, "router": {"priority": "ordered"}},
        {"routers": [ENTRY | {"vcs": 1}]},
        {"routers": [ENTRY | {"buffer": 3}]},
        {"router": {"iterations": 3, "vc_allocator": "islip"}},
        {"router": {"arbiter": "matrix"}},
    ):
        found = resolve_noc(merged(NOC, given), source="n", folder=Path())
        assert not [text for text in found.remarks() if "has no effect" in text], given


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"fan_in": "complete", "merge": "buffered"}, "merge"),
        ({"art_entries": 16}, "art_entries"),
        ({"fan_in": "unicasts", "reducer": True}, "reducer"),
        ({"design": "fully_connected", "vcs": 2}, "vcs"),
        ({"design": "fully_connected_narrow", "depth": 2}, "depth"),
    ],
)
def test_settings_of_meshes_without_effect(given: dict[str, Any], name: str) -> None:
    found = resolve_smart(merged(SMART, {"mesh": given}), source="m")
    assert any(text.startswith(f"mesh.{name} has no effect") for text in found.remarks())
    without: dict[str, Any] = {name: None}
    plain = replace(found.network, **without)
    runs = [
        smart.run(mesh, found.traffic, found.plan, threads=1) for mesh in (found.network, plain)
    ]
    assert repr(runs[0].loads) == repr(runs[1].loads)
    assert not resolve_smart(SMART, source="m").remarks()
