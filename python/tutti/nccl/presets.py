"""Common systems by name: reads ``systems.toml``."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import replace
from importlib.resources import files

from pydantic import BaseModel, ConfigDict

from tutti.base.errors import TuttiError
from tutti.base.files.mistakes import known_name, mistake
from tutti.nccl.system import Cpu, Graph, NcclSystem, Pattern

_Row = tuple[int, float, float, str, str, Pattern, bool]


class Part(BaseModel):
    """The graphs of some GPUs of each node; those of one GPU on one node do not exist."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    one_node: dict[str, _Row] = {}
    several_nodes: dict[str, _Row] = {}


class Preset(BaseModel):
    """A system for any number of nodes; ``systems.toml`` explains the values.

    Attributes:
        summary: The GPUs and the network.
        source: The document or log with the facts.
        inferred: The facts that no document states.
        collnet_heads: The GPUs of a node that the CollNet graph connects to the network; 0 without
            CollNet, which NCCL disables on one node.
        gfx: The architecture of GPUs of AMD, whose library is RCCL; else empty.
        parts: The graphs of some GPUs of each node, by the least number of them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    summary: str
    gpus_per_node: int
    compute_capability: int
    cpu: Cpu
    nvls: bool
    nvswitch: bool
    gfx: str = ""
    collnet_heads: int = 0
    source: str
    inferred: str
    one_node: dict[str, _Row]
    several_nodes: dict[str, _Row]
    parts: dict[int, Part] = {}

    def part(self, width: int) -> Part | None:
        """Returns the graphs of some GPUs of each node; None if their search is not known."""
        least = max((each for each in self.parts if each <= width), default=0)
        return self.parts.get(least)


@functools.cache
def _presets() -> dict[str, Preset]:
    text = (files("tutti.nccl") / "systems.toml").read_text("utf-8")
    return {name: Preset.model_validate(table) for name, table in tomllib.loads(text).items()}


def preset_names() -> tuple[str, ...]:
    """Returns the names of the presets."""
    return tuple(_presets())


def preset_of(name: str) -> Preset:
    """Returns a preset by name.

    Raises:
        ConfigError: The name is unknown.
    """
    known = _presets()
    if name not in known and (of := _of_platform(name)):
        hint = f"nodes of the platform {name} have the system {of}"
        raise mistake("unknown system", source="NCCL system", value=name, hint=hint)
    return known[known_name(name, known, what="system", source="NCCL system")]


def _of_platform(name: str) -> str:
    """Returns the system of a built-in platform; empty if there is none."""
    from tutti.platforms import platform

    try:
        library = platform(name).library
    except TuttiError:
        return ""
    return library.system if library is not None and library.system in _presets() else ""


def system(name: str, nodes: int) -> NcclSystem:
    """Returns a preset with a number of nodes.

    Raises:
        ConfigError: The name is unknown.
    """
    preset = preset_of(name)
    rows = preset.one_node if nodes == 1 else preset.several_nodes
    one = preset.parts.get(1)
    return NcclSystem(
        name=name,
        nodes=nodes,
        gpus_per_node=preset.gpus_per_node,
        compute_capability=preset.compute_capability,
        cpu=preset.cpu,
        graphs={graph: _graph(row) for graph, row in rows.items()},
        nvls=preset.nvls,
        nvswitch=preset.nvswitch,
        collnet=nodes > 1 and preset.collnet_heads > 0,
        collnet_heads=preset.collnet_heads,
        nvlink=_rate(preset.one_node["ring"]),
        adapter=0.0 if one is None else _rate(one.several_nodes["ring"]),
        source=preset.source,
        gfx=preset.gfx,
    )


def partial_system(name: str, nodes: int, width: int) -> NcclSystem:
    """Returns a preset with the first GPUs of each node.

    Their graphs are those of the preset for a part of a node. Without them, graphs between nodes
    have the share of the channels that their network interfaces carry; on one node without an
    NVSwitch, the share that their NVLinks carry. Else they are those of the complete node.

    Raises:
        ConfigError: As :func:`system`.
    """
    found = system(name, nodes)
    complete = found.gpus_per_node
    part = preset_of(name).part(width)
    if width < complete and part is not None:
        rows = part.one_node if nodes == 1 else part.several_nodes
        graphs = {key: _graph(row) for key, row in rows.items()}
        return replace(found, gpus_per_node=width, graphs=graphs)
    share, links = (width, complete) if nodes > 1 else (max(1, width - 1), complete - 1)
    if width == complete or (nodes == 1 and found.nvswitch):
        return replace(found, gpus_per_node=width)
    graphs = {key: _part(graph, share, links) for key, graph in found.graphs.items()}
    heads = -(-found.collnet_heads * width // complete)
    # Without an NVSwitch, the NVLinks to the other GPUs are unused.
    nvlink = found.nvlink if found.nvswitch else found.nvlink * max(1, width - 1) / (complete - 1)
    return replace(found, gpus_per_node=width, graphs=graphs, collnet_heads=heads, nvlink=nvlink)


def _part(graph: Graph, share: int, of: int) -> Graph:
    """Returns a share of the channels of a graph; less than one channel has less bandwidth."""
    channels = max(1, graph.channels * share // of)
    rate = graph.channels * share / of / channels
    return replace(graph, channels=channels, intra=graph.intra * rate, inter=graph.inter * rate)


def _rate(row: _Row) -> float:
    return row[0] * row[1]


def _graph(row: _Row) -> Graph:
    channels, intra, inter, intra_path, inter_path, pattern, same = row
    return Graph(
        channels=channels,
        intra=intra,
        inter=inter,
        intra_path=intra_path,
        inter_path=inter_path,
        pattern=pattern,
        same_channels=same,
    )
