"""NCCL's constants, by version: reads ``versions.toml``."""

from __future__ import annotations

import functools
import tomllib
from importlib.resources import files
from typing import Literal

from pydantic import BaseModel, ConfigDict

from tutti.base.files.mistakes import mistake

Row = tuple[float, float, float]
"""Values for LL, LL128 and Simple, or for 1 node, 2 nodes and more nodes."""
Rows = dict[str, Row]


class Version(BaseModel):
    """The constants and rules of one version; ``versions.toml`` explains each."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    source: str
    max_channels: int
    ring_ll: Literal["half", "quarter"]
    ring_ll128_one_gpu_per_node: float
    ring_all_reduce_inter_steps: Literal["nodes", "nodes_minus_one"]
    one_gpu_per_node_tree_latency: bool
    nvls_bandwidth: Literal["minimum", "per_collective", "efficiency"]
    nvls_ratio_of_gather: bool
    collnet_gather: Literal["minimum", "interpolated"]
    nvls_gather_between_nodes: bool
    pat: bool
    pat_factor: float
    ll128_compute_capabilities: tuple[int, ...]
    mixed_cpus_are_amd: bool
    collectives_in_lists: bool
    without_candidate: Literal["ring", "ring_of_protocols", "error"]
    tree_correction_below_64_bytes: bool
    tree_threads: int
    channels_from_nvls: bool
    nvls_limited_by_channels: bool
    collnet_direct_gpus: int
    collnet_chain_gpus: int
    nvls_gather_gpus: int
    communicator_channels_from_nvls: bool
    nvls_channels: int
    nvls_channels_blackwell: tuple[int, int]
    base_latency: Rows
    latency: dict[str, Rows]
    ll_bandwidth: Rows
    ring_ll128_per_channel: Rows
    tree_ll128_per_channel: Rows
    tree_per_channel: Rows
    nvls_tree_per_channel: Rows = {}
    nvls_efficiency: dict[str, float] = {}


@functools.cache
def _tables() -> tuple[dict[str, Version], Rows]:
    text = (files("tutti.nccl") / "versions.toml").read_text("utf-8")
    tables = tomllib.loads(text)
    versions = {
        name: Version.model_validate({"name": name, **table})
        for name, table in tables["versions"].items()
    }
    return versions, tables["tree_correction"]


def known_versions() -> tuple[str, ...]:
    """Returns the versions of NCCL that tutti knows, oldest first."""
    return tuple(_tables()[0])


def tree_correction(protocol: str) -> tuple[float, ...]:
    """Returns the bandwidth factors of Tree, by floor(log2(bytes / 64))."""
    return tuple(_tables()[1][protocol])


def version(name: str) -> Version:
    """Returns a version by its number, such as ``2.28`` or ``2.28.9``.

    Raises:
        ConfigError: tutti does not know the version.
    """
    known = _tables()[0]
    for full, entry in known.items():
        if name in {full, full.rpartition(".")[0]}:
            return entry
    raise mistake(
        f"NCCL {name} is unknown",
        source="--nccl",
        expected=", ".join(known),
        hint="the model changes little between minor versions: take the closest",
    )
