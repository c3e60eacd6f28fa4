"""The model equals NCCL's own functions.

``reference.csv`` holds the output of ncclTopoTuneModel, ncclTopoGetAlgoTime and topoGetAlgoInfo of
NVIDIA/nccl (src/graph/tuning.cc and src/enqueue.cc at the tag of each version) for the systems
below, a sum of float32 and one collective per group. The numbers of channels before the reduction
by size are those of ``channel_counts``. Times are in us.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tutti.nccl import Graph, NcclSystem, Settings, best, candidates, known_versions
from tutti.nccl.presets import system

_TEXT = Path(__file__).with_name("reference.csv").read_text("utf-8")
ROWS = list(csv.DictReader(_TEXT.splitlines()))

_PCI = {
    "ring": Graph(2, 12.0, 12.0, "PHB", "PHB"),
    "tree": Graph(2, 12.0, 12.0, "PHB", "PHB"),
}
_SHARP = {
    "ring": Graph(8, 48.0, 48.0, "NVL", "PXN", same_channels=False),
    "tree": Graph(8, 48.0, 48.0, pattern="tree", same_channels=False),
    "collnet_direct": Graph(8, 48.0, 48.0, pattern="collnet_direct"),
    "collnet_chain": Graph(8, 60.0, 48.0, pattern="tree"),
    "nvls": Graph(8, 40.0, 48.0, pattern="nvls"),
}
_ONE_GPU = {
    "ring": Graph(1, 24.0, 24.0, "LOC", "PXB", 2.5),
    "tree": Graph(1, 24.0, 24.0, "LOC", "PXB", 2.5, pattern="tree"),
}
SYSTEMS = {
    "dgx_h100 x 1": system("dgx_h100", 1),
    "dgx_h100 x 2": system("dgx_h100", 2),
    "dgx_h100 x 16": system("dgx_h100", 16),
    "dgx_a100 x 1": system("dgx_a100", 1),
    "dgx_a100 x 4": system("dgx_a100", 4),
    "mare_nostrum_5 x 2": system("mare_nostrum_5", 2),
    "mare_nostrum_5 x 32": system("mare_nostrum_5", 32),
    "gb200_nvl72 x 1": system("gb200_nvl72", 1),
    "SHARP x 4": NcclSystem(
        "SHARP", 4, 8, 90, "intel", _SHARP, nvls=True, nvswitch=True, collnet=True, collnet_heads=8
    ),
    "PCI x 3": NcclSystem("PCI", 3, 4, 70, "power", _PCI),
    "1 GPU x 64": NcclSystem("1 GPU", 64, 1, 80, "amd", _ONE_GPU),
}
_SETTINGS = {"NCCL_ALGO", "NCCL_PROTO", "NCCL_NTHREADS", "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS"}


@pytest.mark.parametrize("nccl", known_versions())
@pytest.mark.parametrize("name", SYSTEMS)
def test_equals_nccl(name: str, nccl: str) -> None:
    for row in ROWS:
        if (row["system"], row["nccl"]) == (name, nccl):
            _check(row)


def _check(row: dict[str, str]) -> None:
    settings = Settings.from_environment(dict(_pairs(row["settings"])))
    where, collective, size = SYSTEMS[row["system"]], row["collective"], int(row["bytes"])
    found = candidates(where, collective, size, row["nccl"], settings)
    chosen = best(found, collective)
    label = " ".join(list(row.values())[:5])
    choice = (f"{chosen.algorithm}/{chosen.protocol}", chosen.channels, chosen.threads)
    assert choice == (row["choice"], int(row["channels"]), int(row["threads"])), label
    times = {f"{c.algorithm}/{c.protocol}": c.time for c in found if c.considered}
    expected = {name: float(us) for name, us in _pairs(row["times"])}
    assert times == pytest.approx(expected, rel=1e-5), label


def test_covers_every_version_system_and_setting() -> None:
    assert {row["nccl"] for row in ROWS} == set(known_versions())
    assert {row["system"] for row in ROWS} == set(SYSTEMS)
    assert {name for row in ROWS for name, _ in _pairs(row["settings"])} == _SETTINGS


def _pairs(text: str) -> list[tuple[str, str]]:
    return [(name, value) for name, _, value in (p.partition("=") for p in text.split())]
