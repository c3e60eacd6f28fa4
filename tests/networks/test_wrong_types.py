"""Wrong types in Python are refused with parameter, value and expectation, not by the core."""

from __future__ import annotations

import inspect
from dataclasses import fields, is_dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tutti.base.errors import TuttiError
from tutti.networks import coherence, mesh
from tutti.networks import flit as noc
from tutti.topologies import Topology

if TYPE_CHECKING:
    from collections.abc import Iterator

MESH = Topology.build("mesh:2x2", rate="16 GB/s", latency="1 ns")
NETWORK = noc.Network(topology=MESH)
SMART = mesh.SmartMesh(columns=2, rows=2)
LOAD = noc.Traffic(rate=0.1)
CAST = mesh.Traffic(rate=0.01)
NEEDED: dict[Any, dict[str, Any]] = {
    noc.Network: {"topology": MESH},
    noc.Traffic: {"rate": 0.1},
    noc.Trace: {"text": ""},
    noc.RouterBuffers: {"at": ("npu0",)},
    noc.RouterClock: {"at": ("npu0",), "period": "2 ns"},
    mesh.Traffic: {"rate": 0.1},
    coherence.Case: {"kernel": "fft"},
    noc.run: {"network": NETWORK, "traffic": LOAD},
    noc.sweep: {"network": NETWORK, "traffic": LOAD, "loads": ()},
    noc.saturation: {"network": NETWORK, "traffic": LOAD},
    noc.at_load: {"traffic": LOAD, "load": 0.1},
    noc.capacity: {"network": NETWORK, "traffic": LOAD},
    noc.frame: {"runs": ()},
    mesh.run: {"mesh": SMART, "traffic": CAST},
    mesh.check: {"mesh": SMART, "traffic": (CAST,), "plan": mesh.ReplicationPlan()},
    mesh.sweep: {"mesh": SMART, "traffic": CAST, "loads": ()},
    mesh.saturation: {"mesh": SMART, "traffic": CAST},
    mesh.at_load: {"traffic": CAST, "load": 0.1},
    mesh.ideal: {"mesh": SMART, "traffic": CAST},
    mesh.watch: {"mesh": SMART, "traffic": CAST, "cycles": 10},
    mesh.frame: {"runs": ()},
    coherence.run: {"kernel": "fft"},
    coherence.run_all: {"cases": ()},
    coherence.check: {"case": coherence.Case(kernel="fft")},
    coherence.frame: {"runs": ()},
    coherence.miss_frame: {"runs": ()},
    coherence.flow_frame: {"runs": ()},
}
"""The parameters without a default, with valid values."""
RESULTS = ("Capacity", "Events", "Estimate", "FlitMeasurement", "NocRun", "RoundTrips", "Stalls",
           "Saturation", "Watched", "MeshMeasurement", "MeshRun", "Ideal", "CoherenceRun",
           "FlowCount", "Mean", "Misses")  # fmt: skip
"""Classes that only tutti builds."""


def public() -> Iterator[tuple[str, Any]]:
    """Yields all constructors and functions of `tutti.networks` that users call."""
    for module in (noc, mesh, coherence):
        for name in module.__all__:
            found = getattr(module, name)
            is_called = inspect.isclass(found) or inspect.isfunction(found)
            if is_called and name not in RESULTS and inspect.signature(found).parameters:
                yield f"{module.__name__}.{name}", found


def test_every_parameter_refuses_a_wrong_type() -> None:
    wrong = SimpleNamespace()
    checked = 0
    for place, call in public():
        names = inspect.signature(call).parameters
        if is_dataclass(call):
            names = {one.name: None for one in fields(call)}  # type: ignore[assignment]
        elif "values" in names:  # a class of pydantic
            names = call.model_fields
        for name in names:
            with pytest.raises(TuttiError) as caught:
                call(**{**NEEDED.get(call, {}), name: wrong})
            text = str(caught.value)
            assert f"`{name}`" in text, (place, text)
            assert "SimpleNamespace" in text or "namespace()" in text, (place, text)
            assert caught.value.kind in {"wrong_type", "out_of_range", "invalid"}, (place, name)
            checked += 1
    assert checked > 150


@pytest.mark.parametrize(
    ("call", "given", "text"),
    [
        (noc.Traffic, {"queue": 0}, "Traffic: `queue` is 0: expected non-empty text or None"),
        (noc.Traffic, {"queue": ""}, "Traffic: `queue` is '': expected non-empty text or None"),
        (noc.Traffic, {"outstanding": -1}, "`outstanding` is -1: expected an integer from 1 to"),
        (noc.Traffic, {"priority": 1 << 70}, "`priority` is 1180591620717411303424: expected"),
        (noc.Traffic, {"vcs": (0, 1, 2)}, "expected a tuple (an integer, an integer) or None"),
        (mesh.SmartMesh, {"collective_turns": 1}, "is 1: expected True, False or None"),
        (noc.RouterBuffers, {"at": "npu5"}, "`at` is 'npu5': expected a tuple (each text)"),
        (noc.Network, {"deadlock": "warm"}, "'warm': expected 'warn', 'refuse' or 'ignore'"),
        (noc.saturation, {"divisions": 1}, "`divisions` is 1: expected an integer from 2 to 1024"),
        (noc.saturation, {"threads": -1}, "saturation(): `threads` is -1: expected"),
        (noc.sweep, {"loads": "ab"}, "`load` is 'a': expected a number"),
        (noc.frame, {"runs": [1]}, "frame(): `runs` is (1,): expected a tuple (each a NocRun)"),
    ],
)
def test_refusals_name_value_and_expectation(call: Any, given: dict[str, Any], text: str) -> None:
    with pytest.raises(TuttiError) as caught:
        call(**NEEDED.get(call, {}) | given)
    assert text in str(caught.value)
    if caught.value.kind == "wrong_type":
        assert "states the type" in caught.value.hint


def test_numbers_of_numpy_and_lists_are_accepted() -> None:
    load = noc.Traffic(rate=np.float64(0.1), vcs=[0, np.int64(1)], packet=2)  # type: ignore[arg-type]
    network = noc.Network(topology=MESH, grid=[2, 2])  # type: ignore[arg-type]
    plan = noc.MeasurementPlan(warmup=0, measure=100)
    assert noc.run(network, [load], plan).cycles > 0
