"""The protocols model of a joint fit recovers the machine, and its platform file can be read."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import polars as pl
import pytest

from tutti.formats.measurements import MEASUREMENTS
from tutti.measured.calibrate.files import Provenance
from tutti.measured.calibrate.joint import JointFit, fit_jointly, joint_platform_text
from tutti.measured.predict import calibrate
from tutti.platforms import platform

if TYPE_CHECKING:
    from pathlib import Path

EAGER, GAMMA = 8192, 1e-4


def message_us(size: float) -> float:
    """1 us and 1 ns/B up to 8 KiB, then 9 us and 0.1 ns/B."""
    return 1 + 1e-3 * size if size <= EAGER else 9 + 1e-4 * size


def time_us(algorithm: str, ranks: int, size: int) -> float:
    if algorithm == "ring_ompi":
        shard = size / ranks
        return 2 * (ranks - 1) * message_us(shard) + (ranks - 1) * shard * GAMMA
    return math.log2(ranks) * (message_us(size) + size * GAMMA)


@cache
def fits(system: str = "m") -> list[JointFit]:
    rows = pl.DataFrame(
        [
            {"system": system, "library": "Open MPI", "collective": "all_reduce", "ranks": ranks,
             "nodes": ranks, "ranks_per_node": 1, "gpu": False, "emulated": False,
             "library_algorithm": name, "size_bytes": size, "time_us": time_us(name, ranks, size)}
            for name in ("ring_ompi", "recursive_doubling_ompi")
            for ranks in (4, 8, 16)
            for size in (64 << 2 * power for power in range(11))
        ],
        schema=MEASUREMENTS,
    )  # fmt: skip
    return fit_jointly(rows, calibrate(rows, with_discrepancy=False))


def test_the_fit_recovers_the_machine() -> None:
    (found,) = fits()
    values = found.parameters
    assert found.eager_limit in {4096, EAGER}  # no message has a size between them
    assert values["alpha_p"] + values["alpha_r"] == pytest.approx(1, rel=0.05)
    assert values["beta"] == pytest.approx(1e-3, rel=0.05)
    assert values["beta_rendezvous"] == pytest.approx(1e-4, rel=0.1)
    assert values["gamma"] == pytest.approx(GAMMA, rel=0.1)
    assert max(abs(found.errors)) < 0.1


def test_a_longer_message_never_takes_less_time() -> None:
    values, limit = fits()[0].parameters, fits()[0].eager_limit
    short = values["alpha_p"] + values["alpha_r"] + limit * values["beta"]
    later = values["alpha_p_rendezvous"] + values["alpha_r_rendezvous"]
    assert later + limit * values["beta_rendezvous"] >= short * (1 - 1e-9)
    assert values["beta_long"] >= values["beta_rendezvous"]


def test_the_platform_file_states_intervals_and_what_it_lacks(tmp_path: Path) -> None:
    text = joint_platform_text(fits("a/b"), Provenance("mine", "times.csv", "2026-01-01", "a/b"))
    path = tmp_path / "mine.toml"
    path.write_text(text)
    found = platform(path)
    assert (found.name, found.model.kind) == ("mine", "protocols")
    assert "90 % interval" in text
    assert "# The platform does not state:" in text
    assert "66 collectives on 4 to 16 nodes" in text
    assert "not determined by the data" in text  # one message in flight: alpha_r is unknown
