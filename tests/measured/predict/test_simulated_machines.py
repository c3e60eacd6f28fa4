"""Machines that the engine simulates, each with one mechanism, are recovered and extrapolated.

The times come from schedules on networks, not from the model that is fitted to them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

import tutti
from synthetic_machines import runs
from tutti.measured.predict.catalogue import execution
from tutti.measured.predict.curve import NAMES, CurveFit
from tutti.measured.predict.features import features
from tutti.measured.predict.hardware import Hardware
from tutti.measured.predict.model import calibrate
from tutti.platforms.files.builder import machine
from tutti.platforms.files.platform_file import RawPlatform

POSTAL = {"kind": "pipelining_postal", "alpha_p": "1.9 us", "alpha_r": "0.1 us"}
FAST = {**POSTAL, "beta": "12.5 GB/s"}
BLOCKS = {"all_gather": ("sparbit_over", "recursive_doubling_ompi", "ring_ompi")}
STEPS = {"all_gather": ("recursive_doubling_ompi", "ring_ompi")}
DISTANT = {"all_reduce": ("recursive_doubling_ompi", "rabenseifner_ompi")}


def platform_of(model: dict[str, str], row: dict[str, Any], network: str) -> tutti.Platform:
    """Returns the machine of a job; its network is a torus, nodes with one link each, or none."""
    links = [{"rate": "5 GB/s", "latency": "1 ns"}]
    build = f"torus:{row['shape']}"
    if network == "nodes":
        links = [{"rate": "100 GB/s", "latency": "1 ns"}, {"rate": "12.5 GB/s", "latency": "1 ns"}]
        build = f"hierarchical:switch:{row['ranks_per_node']}/switch:{row['nodes']}"
    table: dict[str, Any] = {"name": "made", "models": {"model": {**model, "gamma": "0.1 ns/B"}}}
    if network:
        table["topology"] = {"build": build, "links": links}
    return machine(RawPlatform.model_validate(table), "model", source="made")


def timed(frame: pl.DataFrame, model: dict[str, str], network: str = "") -> pl.DataFrame:
    """Returns the rows with the times of schedules on a machine."""
    times = []
    for row in frame.iter_rows(named=True):
        known = execution(row["collective"], row["library_algorithm"])
        assert known is not None
        assert known.algorithm.notation is not None
        laid_out = tutti.schedule(
            known.algorithm.notation, ranks=row["ranks"], collective=row["collective"]
        )
        size = f"{row['size_bytes']} B"
        run = tutti.simulate(laid_out, platform_of(model, row, network), size=size, verify=False)
        times.append(run.completion_time / 1e6)
    return frame.with_columns(pl.Series("time_us", times))


def recovered(
    small: pl.DataFrame, large: pl.DataFrame, *, factor: float, **hardware: Any
) -> CurveFit:
    """Fits small runs, checks the large ones, and returns the parameters of their environment."""
    model = calibrate(small, hardware={"made": Hardware(**hardware)})
    found, truth = model.predict(large), large["time_us"].to_numpy()
    inside = (found["low_us"].to_numpy() <= truth) & (truth <= found["high_us"].to_numpy())
    assert inside.mean() >= 0.9
    errors = np.abs(np.log(found["predicted_us"].to_numpy() / truth))
    assert np.exp(np.median(errors)) <= factor
    (environment,) = set(features(large).labels["environment"].tolist())
    return model.curves[environment]


def value(fit: CurveFit, name: str) -> float:
    return math.exp(fit.theta[NAMES.index(name)])


def test_message_rate() -> None:
    """A sender needs 1 us per message; sparbit sends up to half as many messages as ranks."""
    model = {**FAST, "alpha_p": "1 us", "alpha_r": "1 us"}
    small = timed(runs(BLOCKS, sizes=(4096, 65536), nodes=(4, 8, 16, 32)), model)
    large = timed(runs(BLOCKS, sizes=(4096, 65536), nodes=(256,)), model)
    fit = recovered(small, large, factor=1.25)
    assert fit.further(256) * fit.time_us(256) == pytest.approx(1.02, rel=0.2)


def test_handshake() -> None:
    """Messages above the eager limit wait for a round trip."""
    model = {**FAST, "kind": "protocols", "eager_limit": "16 KiB", "alpha_p_rendezvous": "7.9 us"}
    sizes = (4096, 65536, 262144, 1 << 20, 8 << 20)
    small = timed(runs(STEPS, sizes=sizes, nodes=(4, 8, 32)), model)
    fit = recovered(small, timed(runs(STEPS, sizes=sizes, nodes=(128,)), model), factor=1.25)
    assert fit.time_us(1024) == pytest.approx(2.1, rel=0.3)
    assert fit.time_us(65536) == pytest.approx(8 + 65536 / 12.5e3, rel=0.2)


def test_shared_interface() -> None:
    """Four ranks of a node share one link to the others."""
    sizes = (16384, 1 << 20, 8 << 20)
    alone = timed(runs(DISTANT, sizes=sizes, nodes=(4, 8)), FAST)
    shared = timed(runs(DISTANT, sizes=sizes, nodes=(2, 4, 8), ranks_per_node=4), FAST, "nodes")
    large = timed(runs(DISTANT, sizes=sizes, nodes=(32,), ranks_per_node=4), FAST, "nodes")
    fit = recovered(pl.concat([alone, shared]), large, factor=1.3)
    rate = 1 / value(fit, "further message on a link, per byte")
    assert rate == pytest.approx(12.5e3, rel=0.3)


def test_links_of_a_torus() -> None:
    """Distant partners of an exchange share the links of a dimension."""
    sizes = (16384, 1 << 20, 8 << 20)
    small = timed(runs(DISTANT, sizes=sizes, shapes=("2x2x2", "2x4x4", "4x4x4")), FAST, "torus")
    large = timed(runs(DISTANT, sizes=sizes, shapes=("8x8x8",)), FAST, "torus")
    fit = recovered(small, large, factor=1.3, link_bytes_per_us=5e3)
    rate = 1 / value(fit, "further message on a link, per byte")
    assert rate == pytest.approx(5e3, rel=0.3)
