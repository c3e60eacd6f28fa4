"""Python computes what the example program of the crate `tutti-simulation` prints."""

from __future__ import annotations

import tutti
from tutti import _core
from tutti.base.units import Size
from tutti.collectives.case import make_case
from tutti.topologies import Topology

COMPLETION_PS, BOUND_PS = 105236800, 21560790
"""The times that `crates/tutti-simulation/tests/example.rs` asserts."""


def test_python_has_the_times_of_the_rust_example() -> None:
    torus = Topology.build("torus:4x4", rate="50 GB/s", latency="500 ns")
    model = tutti.LogGP(L="1 us", o="200 ns", g="200 ns", G="100 GB/s", gamma="200 GB/s")
    platform = tutti.Platform(name="torus", model=model, routes=torus.routes("dimension_order"))
    schedule = tutti.schedule("ring", collective="all_reduce", ranks=16)
    case = make_case(schedule, platform, size=Size.parse("1 MiB"), datatype="float32")
    assert _core.simulate(case).completion_ps == COMPLETION_PS
    assert case.bound().at_least_ps == BOUND_PS
