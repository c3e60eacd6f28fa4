"""The models of bundled platforms that were fitted to measured machines."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import machine_models
import numpy as np
import polars as pl
import pytest
import score_machines
from machine_models import PRESETS, Preset

import tutti
from tutti.measured.predict.catalogue import Execution, execution
from tutti.measured.predict.curve import Curve
from tutti.measured.predict.features import features
from tutti.platforms.files.builder import machine
from tutti.platforms.files.platform_file import RawPlatform
from tutti.platforms.files.presets import find_platform

KEY = ("collective", "library_algorithm", "ranks", "size_bytes")
SAMPLED = [one for one in PRESETS if one.platform == one.system and "gpu" not in one.environment]
"""Presets of whose schedules the committed sample has rows."""


@pytest.mark.parametrize("preset", PRESETS, ids=lambda one: f"{one.platform}-{one.name}")
def test_platforms_contain_the_calibrated_models(preset: Preset) -> None:
    """A platform file and the calibration are one answer, gamma included."""
    text = machine_models.model(preset).toml(preset)
    expected = RawPlatform.model_validate({"name": "made", **tomllib.loads(text)})
    found = find_platform(preset.platform, folder=Path())
    assert found.models[preset.name] == expected.models[preset.name]
    assert found.models[found.default_model or ""].kind == "protocols"
    assert found.node is not None
    assert preset.system in found.node.systems or preset.platform != preset.system
    assert found.node.environments["/".join(preset.environment)] == preset.name


@pytest.mark.parametrize("preset", SAMPLED, ids=lambda one: f"{one.platform}-{one.name}")
def test_platforms_predict_the_measured_rows(preset: Preset) -> None:
    """Simulated schedules agree with the measured times, and with the structural model."""
    rows = runnable(preset)
    assert rows.height >= 10
    table = machine_models.environments(preset.system)[preset.environment]
    structural = Curve(features(rows))(machine_models.theta_of(table))
    simulated = np.array([simulated_us(preset, row) for row in rows.iter_rows(named=True)])
    for other in (rows["time_us"].to_numpy(), structural):
        assert np.exp(np.median(np.abs(np.log(simulated / other)))) <= 1.25


def runnable(preset: Preset) -> pl.DataFrame:
    """Returns the rows of a preset's environment whose algorithm has a schedule."""
    rows, _ = score_machines.sampled()
    # How a job of 64 nodes is folded into the six dimensions of Tofu-D is not known.
    most = 8 if preset.system == "fugaku" else 64
    rows = rows.filter(pl.col("ranks_per_node") == 1, pl.col("ranks") <= most)
    every = features(rows)
    label = "/".join((preset.system, *preset.environment))
    rows = rows[every.index[every.where("environment", label)]]
    scheduled = [
        notation_of(row) is not None
        and not (known_of(row).algorithm.torus_form and preset.system == "fugaku")
        for row in rows.iter_rows(named=True)
    ]
    return rows.filter(scheduled).unique(KEY, keep="first", maintain_order=True)


def known_of(row: dict[str, Any]) -> Execution:
    known = execution(row["collective"], row["library_algorithm"])
    assert known is not None
    return known


def notation_of(row: dict[str, Any]) -> str | None:
    """Returns the schedule of a row; None if tutti has none that runs in the same manner."""
    known = known_of(row)
    differs = known.segment_bytes or known.ports > 1 or known.algorithm.synchronous
    return None if differs else known.algorithm.notation


def simulated_us(preset: Preset, row: dict[str, Any]) -> float:
    """Returns the time of a row on the platform, in us."""
    platform = find_platform(preset.platform, folder=Path())
    if preset.system == "fugaku":
        assert platform.topology is not None
        job = platform.topology.model_copy(update={"build": f"torus:{row['shape']}"})
        platform = platform.model_copy(update={"topology": job})
    laid_out = tutti.schedule(
        notation_of(row) or "", ranks=row["ranks"], collective=row["collective"]
    )
    run = tutti.simulate(
        laid_out,
        machine(platform, preset.name, source=preset.platform),
        size=f"{row['size_bytes']} B",
        verify=False,
    )
    return run.completion_time / 1e6
