"""DLRM: recommendation from dense features and embedding tables."""

from __future__ import annotations

from itertools import pairwise

from tutti.workloads.model import Model, ModelLayer, Tables, linear

SMALL_SOURCE = (
    "ASTRA-sim's public DLRM workload: bottom 13-512-512-512-16, top 1040-512-512-512, 64 tables "
    "of dimension 16 (1040 = 65 x 16); one lookup in each table: inferred"
)
LARGE_SOURCE = (
    "MLPerf training v0.7's DLRM on Criteo 1TB: bottom 13-512-256-128, top "
    "479-1024-1024-512-256-1, 26 tables of dimension 128, one lookup in each; the production model "
    "of Rashidi et al. 2021 is not published"
)


def build_small(argument: str | None) -> Model:
    """Builds the small model, which has no argument."""
    del argument
    return _model(
        "dlrm_small",
        SMALL_SOURCE,
        bottom=(13, 512, 512, 512, 16),
        top=(1040, 512, 512, 512),
        tables=(64, 16, 1),
    )


def build_large(argument: str | None) -> Model:
    """Builds the model; the argument is the number of lookups per table."""
    lookups = int(argument) if argument else 1
    return _model(
        "dlrm" if lookups == 1 else f"dlrm:{lookups}",
        LARGE_SOURCE,
        bottom=(13, 512, 256, 128),
        top=(479, 1024, 1024, 512, 256, 1),
        tables=(26, 128, lookups),
    )


def _model(
    name: str,
    source: str,
    *,
    bottom: tuple[int, ...],
    top: tuple[int, ...],
    tables: tuple[int, int, int],
) -> Model:
    layers: list[ModelLayer] = []
    for which, widths in (("bottom", bottom), ("top", top)):
        for index, (inputs, outputs) in enumerate(pairwise(widths), start=1):
            layers.append(linear(f"{which}_{index}", inputs, outputs, first=not layers))
    count, dimension, lookups = tables
    return Model(
        name=name,
        source=source,
        layers=tuple(layers),
        samples="samples",
        tables=Tables(tables=count, dimension=dimension, lookups=lookups, bottom=len(bottom) - 1),
    )
