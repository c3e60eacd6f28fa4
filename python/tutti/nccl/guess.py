"""Guesses the choices of NCCL by its tuning model, from the graphs that a job states."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tutti.base.errors import ConfigError
from tutti.formats.nccl import read_graphs
from tutti.measured.errors import TuningError
from tutti.nccl.evidence import Selected
from tutti.nccl.presets import preset_of, system
from tutti.nccl.settings import COLLECTIVES, Settings
from tutti.nccl.system import Cpu, Graph, NcclSystem
from tutti.nccl.tuning import choose
from tutti.nccl.versions import known_versions, version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from tutti.formats.nccl.debug import DebugLog
    from tutti.formats.nccl.graphs import ChannelGraph
    from tutti.formats.nccl.topology import Topology
    from tutti.nccl.doctor import Model
    from tutti.nccl.evidence import Evidence

_NAMES: Final = {
    "balanced_tree": "tree", "split_tree": "tree", "tree": "tree", "ring": "ring", "nvls": "nvls",
    "collnet_direct": "collnet_direct",
}  # fmt: skip
_CAPABILITIES: Final = (("B200", 100), ("H200", 90), ("H100", 90), ("H800", 90), ("A100", 80),
                        ("A800", 80), ("V100", 70))  # fmt: skip
_CPUS: Final[dict[str, Cpu]] = {"GenuineIntel": "intel", "AuthenticAMD": "amd"}
_OURS: Final = {
    "NVLSTree": "nvls_tree", "CollNetDirect": "collnet_direct", "CollNetChain": "collnet_chain",
}  # fmt: skip


def model_of(
    evidence: Evidence,
    *,
    nccl: str | None,
    graphs: Path | None,
    topology: Topology | None,
    preset: str | None,
) -> tuple[Model | None, str]:
    """Returns a model that guesses choices, and a remark; None without graphs and preset.

    Args:
        evidence: What the files of the job state.
        nccl: The version of NCCL that the user gave.
        graphs: A graph file.
        topology: The topology of a node.
        preset: The name of a system, for jobs without graphs.

    Raises:
        ConfigError: The version or the system is unknown, or the graph file is invalid.
    """
    stated = read_graphs(graphs) if graphs is not None else ()
    logs = evidence.logs
    number, about = version_of(nccl, logs.values())
    model = guess_model(logs, nccl=number, graphs=stated, topology=topology, gpus=evidence.gpus)
    if model is None and preset is not None:
        model = preset_model(preset, nccl=number, logs=logs.values())
    sources = "no log with NCCL_DEBUG_SUBSYS=GRAPH, no --graphs, no --system"
    return model, about if model else f"no guesses of choices: {sources}"


def version_of(given: str | None, logs: Iterable[DebugLog]) -> tuple[str, str]:
    """Returns the version of the model, and a remark if it is not that of the job.

    Args:
        given: The version that the user gave, such as ``2.28``.
        logs: Debug logs.

    Raises:
        ConfigError: The given version is unknown.
    """
    known = known_versions()
    if given is not None:
        return version(given).name, ""
    stated = {name for log in logs for name in log.versions}
    numbers = {found[1] for name in stated if (found := re.search(r"NCCL (\d+\.\d+)", name))}
    if len(numbers) == 1:
        number = numbers.pop()
        try:
            return version(number).name, ""
        except ConfigError:
            return known[-1], f"NCCL {number} is unknown: guesses are for {known[-1]}"
    return known[-1], f"the version of NCCL is unknown: guesses are for {known[-1]}"


def guess_model(
    logs: Mapping[str, DebugLog],
    *,
    nccl: str,
    graphs: Iterable[ChannelGraph] = (),
    topology: Topology | None = None,
    gpus: Iterable[str] = (),
) -> Model | None:
    """Returns a model that guesses the choice; None if graphs of rings and trees are unknown.

    Args:
        logs: Debug logs; those with the subsystem GRAPH state the graphs.
        nccl: The version of NCCL.
        graphs: Graphs of a graph file.
        topology: The topology of a node.
        gpus: Names of GPUs.
    """
    every = [*graphs, *(graph for log in logs.values() for graph in log.graphs.values())]
    try:
        found = {_NAMES[one.pattern]: _graph(one) for one in reversed(every)}
    except ConfigError:  # a path type of a version that the model does not know
        return None
    capability = _capability(topology, gpus)
    if not {"ring", "tree"} <= set(found) or capability is None:
        return None
    counts = {count for log in logs.values() for count in log.channels}
    channels = counts.pop() if len(counts) == 1 else None
    cpu = _cpu(topology)

    def system_of(ranks: int, nodes: int) -> NcclSystem:
        return NcclSystem(
            name="job",
            nodes=nodes,
            gpus_per_node=ranks // nodes,
            compute_capability=capability,
            cpu=cpu,
            graphs=found,
            nvls="nvls" in found,
            nvswitch="nvls" in found,
            channels=channels,
        )

    return _guess(system_of, nccl, _settings(logs.values()))


def preset_model(name: str, *, nccl: str, logs: Iterable[DebugLog] = ()) -> Model:
    """Returns a model that guesses the choice on a known system.

    Args:
        name: The name of the system, of `tutti.nccl.presets`.
        nccl: The version of NCCL.
        logs: Debug logs, which state environment variables.

    Raises:
        ConfigError: The system is unknown.
    """
    gpus = preset_of(name).gpus_per_node

    def system_of(ranks: int, nodes: int) -> NcclSystem | None:
        return system(name, nodes) if ranks == gpus * nodes else None

    return _guess(system_of, nccl, _settings(logs))


def _guess(
    system_of: Callable[[int, int], NcclSystem | None], nccl: str, settings: Settings
) -> Model:
    """Returns the model of systems by numbers of ranks and nodes."""

    def guess(collective: str, ranks: int, nodes: int, size_bytes: int) -> Selected | None:
        if collective not in COLLECTIVES or ranks % nodes:
            return None
        try:
            found = system_of(ranks, nodes)
            if found is None:
                return None
            best = choose(found, collective, size_bytes, nccl, settings)
        except (ConfigError, TuningError):  # the model does not cover the system
            return None
        algorithm = _OURS.get(best.algorithm, best.algorithm.lower())
        return Selected(algorithm, best.protocol.lower())

    return guess


def _settings(logs: Iterable[DebugLog]) -> Settings:
    """Returns the environment variables that logs state."""
    return Settings.from_environment(
        {name: value for log in logs for name, value in log.environment.items()}
    )


def _cpu(topology: Topology | None) -> Cpu:
    """Returns the vendor of the CPUs; Intel if it is unknown."""
    vendors = {cpu.vendor for cpu in topology.cpus} if topology is not None else set()
    return _CPUS.get(vendors.pop(), "other") if len(vendors) == 1 else "intel"


def _graph(one: ChannelGraph) -> Graph:
    return Graph(
        channels=one.count,
        intra=one.intra_bytes_per_s / 1e9,
        inter=one.inter_bytes_per_s / 1e9,
        intra_path=one.intra or "NVL",
        inter_path=one.inter or "PIX",
        same_channels=one.same,
        pattern=one.pattern,  # type: ignore[arg-type] # both have the names of NCCL's patterns
    )


def _capability(topology: Topology | None, gpus: Iterable[str]) -> int | None:
    """Returns the compute capability of the GPUs; None if it is unknown or they differ."""
    if topology is not None:
        found = {gpu.sm for _, _, gpu in topology.gpus}
    else:
        found = {
            next((number for part, number in _CAPABILITIES if part in name), 0) for name in gpus
        }
    return found.pop() or None if len(found) == 1 else None
