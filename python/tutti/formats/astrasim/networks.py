"""Reads network files of ASTRA-sim 2 (YAML): the dimensions of NPUs.

Source: ``NetworkParser.cpp`` of astra-sim/astra-network-analytical.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, cast, get_args

from pydantic import AfterValidator, Field

from tutti import _core
from tutti.base.errors import ConfigError
from tutti.base.files.mistakes import mistake
from tutti.base.files.reader import read_yaml
from tutti.base.files.tables import Table
from tutti.base.files.validate import validated
from tutti.base.units import TimePerByte
from tutti.formats.chakra.groups import MOST_NPUS
from tutti.view.quantity import plural

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Block = Literal["Ring", "FullyConnected", "Switch"]

MOST_DIMENSIONS = 8
_GIB = 1 << 30


@dataclass(frozen=True, kw_only=True)
class Dimension:
    """A dimension of a network.

    Attributes:
        block: The building block.
        npus: The number of NPUs.
        bandwidth: The bandwidth of a link per direction, in 2^30 B/s.
        latency: The latency of a hop, in ns.
    """

    block: Block
    npus: int
    bandwidth: float
    latency: float


@dataclass(frozen=True, kw_only=True)
class AstraSimNetwork:
    """A network, the innermost dimension first."""

    dimensions: tuple[Dimension, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """NPUs of each dimension."""
        return tuple(dimension.npus for dimension in self.dimensions)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Returns a line if links have no latency, which the simulation does not permit."""
        count = sum(round(one.latency * 1000) == 0 for one in self.dimensions)
        text = f"latency of 1 ps, the least, instead of 0 in {plural(count, 'dimension')}"
        return (text,) if count else ()

    def torus(self, *, aware: bool) -> _core.StepFabric:
        """Returns the rings, congestion-aware or not.

        Raises:
            TopologyError: The network has fewer than two NPUs, or a link takes no time.
        """
        rings, relays = [], []
        for one in self.dimensions:
            rate = TimePerByte.parse(f"{round(one.bandwidth * _GIB)} B/s").core
            hops = 2 if one.block == "Switch" else 1
            latency = max(1, round(hops * one.latency * 1000))
            if aware:
                rings.append(_core.TorusRing(one.npus, rate, latency))
                relays.append(rate if one.block == "Switch" else None)
            else:
                # No contention: messages do not queue for links.
                rings.append(_core.TorusRing(one.npus, _core.TimePerByte("0 ns/B"), latency))
                relays.append(rate)
        return _core.StepFabric.torus(rings, relays=relays)


_Npus = Annotated[int, Field(ge=1, le=1 << 20)]
_Bandwidth = Annotated[float, Field(ge=2**-30, le=2**30)]
_Latency = Annotated[float, Field(ge=0, le=1 << 40)]
_Each = Field(min_length=1, max_length=MOST_DIMENSIONS)


class _RawNetwork(Table):
    topology: Annotated[
        list[Annotated[str, AfterValidator(lambda block: modelled(block, get_args(Block)))]], _Each
    ]
    npus_count: Annotated[list[_Npus], _Each]
    bandwidth: Annotated[list[_Bandwidth], _Each]
    latency: Annotated[list[_Latency], _Each]


_VERSION_1 = (
    "`topology` replaces `topologies-per-dim`, and `npus_count`, `bandwidth` and `latency` replace "
    "`units-count`, `link-bandwidth` and `link-latency`"
)
_OTHERS = {
    "topologies-per-dim": ("is a network of ASTRA-sim 1", _VERSION_1),
    "logical-dims": (
        "states the logical dimensions for ns-3, which have no rates",
        "state them as `npus_count`, with the rates of the dimensions",
    ),
}
"""Keys of other files of ASTRA-sim, what these are, and what replaces them."""


def load_network(path: Path) -> AstraSimNetwork:
    """Loads a network file.

    Raises:
        ConfigError: The file is invalid.
    """
    source = str(path)
    table = read_yaml(path, "a network of ASTRA-sim 2")
    for key, (problem, hint) in _OTHERS.items():
        if key in table:
            expected = "a network of ASTRA-sim 2 (YAML): topology, npus_count, bandwidth, latency"
            raise mistake(problem, source=source, key=key, expected=expected, hint=hint)
    given = validated(_RawNetwork, table, source=source)
    for key in _RawNetwork.model_fields:
        values = getattr(given, key)
        if len(values) != len(given.topology):
            problem = f"has {len(values)} values, and `topology` {len(given.topology)}"
            raise mistake(problem, source=source, key=key)
    if math.prod(given.npus_count) > MOST_NPUS:
        problem, expected = "too many NPUs", f"at most {MOST_NPUS:,}"
        value = f"{math.prod(given.npus_count):,}"
        raise mistake(problem, source=source, key="npus_count", value=value, expected=expected)
    columns = (given.topology, given.npus_count, given.bandwidth, given.latency)
    return AstraSimNetwork(
        dimensions=tuple(
            Dimension(block=cast("Block", block), npus=npus, bandwidth=bandwidth, latency=latency)
            for block, npus, bandwidth, latency in zip(*columns, strict=True)
        )
    )


def modelled(word: str, known: Sequence[str]) -> str:
    """Returns a word of the supported ones.

    Raises:
        ConfigError: The word is not supported.
    """
    if word not in known:
        problem = f"`{word}` is not modelled: expected {' or '.join(known)}"
        raise ConfigError(problem, kind="invalid")
    return word
