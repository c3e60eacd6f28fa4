"""The example program of the crate `tutti-simulation` prints what Python computes."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import tutti
from tutti import _core
from tutti.base.units import Size
from tutti.collectives.case import make_case
from tutti.topologies import Topology

ROOT = Path(__file__).parents[2]

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


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("cargo") is None, reason="needs a Rust toolchain")
def test_the_rust_example_prints_them() -> None:
    command = ["cargo", "run", "--quiet", "--locked", "-p", "tutti-simulation"]
    run = subprocess.run(
        [*command, "--example", "simulate_ring"],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert re.findall(r"\((\d+) ps\)", run.stdout) == [str(COMPLETION_PS), str(BOUND_PS)]
