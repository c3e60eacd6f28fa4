"""Systolic arrays against SCALE-Sim 2: cycles of each layer of its ResNet-50, equal to the cycle.

`scalesim/resnet50.csv` has the layers in its format, `scalesim/cycles.csv` its results.
"""

from __future__ import annotations

import csv
import functools
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prose import bullets, paragraph

from tutti.base.units import Frequency
from tutti.formats.scalesim import read_topology
from tutti.workloads import Systolic

if TYPE_CHECKING:
    from tutti.workloads.model import Model

FOLDER = Path(__file__).parent / "scalesim"
CLOCK = Frequency.parse("1 GHz")


@functools.cache
def about() -> dict[str, Any]:
    return tomllib.loads((FOLDER / "case.toml").read_text("utf-8"))


@functools.cache
def topology() -> Model:
    return read_topology(FOLDER / "resnet50.csv")


@functools.cache
def theirs() -> dict[str, dict[str, int]]:
    """For each dataflow and array: the figure that it reports for each layer."""
    with (FOLDER / "cycles.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    arrays = [column for column in rows[0] if column != "layer"]
    return {array: {row["layer"]: int(row[array]) for row in rows} for array in arrays}


def ours(array: str) -> dict[str, int]:
    """The cycles of each layer on an array such as `weight_stationary 32x32`."""
    dataflow, _, shape = array.partition(" ")
    rows, columns = map(int, shape.split("x"))
    counted: Any = {"rows": rows, "columns": columns, "dataflow": dataflow, "clock": CLOCK}
    systolic = Systolic(**counted)
    return {
        layer.name: sum(systolic.cycles(gemm) for gemm in layer.gemms)
        for layer in topology().layers
    }


def section() -> str:
    """Returns the section of docs/validation.md."""
    given = about()
    case = "validation/scalesim/case.toml"
    facts = [
        f"Source: {given['source']}, run on {given['date']}; see `{case}`.",
        "Model: systolic arrays of [training](models/training.md), no memory.",
        f"Behaviour: {given['behaviour']}",
        "Tolerance: none; every layer is equal.",
    ]
    return "\n\n".join(["## scalesim", paragraph(given["summary"]), bullets(facts), _table()])


def _table() -> str:
    lines = ["| array | layers | SCALE-Sim cycles | tutti cycles |", "|---|--:|--:|--:|"]
    for array, reported in theirs().items():
        dataflow, _, shape = array.partition(" ")
        there, here = sum(reported.values()) + len(reported), sum(ours(array).values())
        name = f"{dataflow.replace('_', ' ')}, {shape.replace('x', ' x ')}"
        lines.append(f"| {name} | {len(reported)} | {there:,} | {here:,} |")
    return "\n".join(lines)
