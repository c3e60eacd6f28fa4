"""What RCCL predicts for each algorithm and protocol on GPUs of AMD.

Source: ROCm/rccl, ncclTopoTuneModel and ncclTopoGetAlgoTime in src/graph/tuning.cc, and
topoGetAlgoInfo in src/enqueue.cc. RCCL scales the bandwidth of a graph by tables for the GPU.
"""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from tutti.base.files.mistakes import mistake
from tutti.nccl.p2p import P2P_COLLECTIVES, p2p_candidates
from tutti.nccl.settings import COLLECTIVES, PROTOCOLS, Settings
from tutti.nccl.tuned import Candidate, Corrections

if TYPE_CHECKING:
    from tutti.nccl.system import NcclSystem

_Protocols = tuple[float, float, float]
_THREADS = 256
_THRESHOLDS = {"LL": 8, "Simple": 64}
"""Bytes per thread below which RCCL reduces channels. Source: src/include/comm.h."""


class Algorithm(BaseModel):
    """The constants of an algorithm; ``rccl.toml`` explains the values."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    nvlink: _Protocols
    net: _Protocols
    ratio: tuple[_Protocols, _Protocols]
    correction: dict[str, tuple[float, ...]]


class Tuning(BaseModel):
    """The constants of RCCL for a GPU; ``rccl.toml`` explains the values."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: str
    source: str
    base_latency: _Protocols
    rooted_ll_factor: float
    Tree: Algorithm
    Ring: Algorithm


@functools.cache
def tuning_of(gfx: str) -> Tuning:
    """Returns the constants for an architecture of ``rccl.toml``."""
    text = (files("tutti.nccl") / "rccl.toml").read_text("utf-8")
    return Tuning.model_validate(tomllib.loads(text)[gfx])


def rccl_version(gfx: str, name: str | None) -> str:
    """Returns the version of RCCL whose constants are known.

    Raises:
        ConfigError: tutti does not know the version.
    """
    known = tuning_of(gfx).version
    if name not in {None, known, known.rpartition(".")[0]}:
        raise mistake(f"RCCL {name} is unknown", source="--nccl", expected=known)
    return known


def rccl_candidates(
    system: NcclSystem, collective: str, size: int, settings: Settings
) -> list[Candidate]:
    """Returns each algorithm with each protocol, in RCCL's order.

    Takes the arguments of :func:`tutti.nccl.candidates`.

    Raises:
        ConfigError: A setting is not the default.
    """
    if settings != Settings():
        problem = "is not modelled for RCCL, unlike its defaults"
        raise mistake(problem, source="NCCL's environment variables", expected="none",
                      hint="omit --algo, --proto and --env")  # fmt: skip
    model = _Model(system, tuning_of(system.gfx), collective)
    if collective in P2P_COLLECTIVES:
        return model.sends(size)
    return [
        model.candidate(algorithm, protocol, size)
        for algorithm in ("Tree", "Ring")
        for protocol in PROTOCOLS
    ]


@dataclass(frozen=True)
class _Model:
    """The model of one collective on one system."""

    system: NcclSystem
    tuning: Tuning
    collective: str

    def candidate(self, algorithm: str, protocol: str, size: int) -> Candidate:
        if refusal := self._refusal(algorithm, protocol):
            return Candidate(algorithm, protocol, refusal=refusal)
        latency, bandwidth = self._latency(algorithm, protocol), self._rate(algorithm, protocol)
        factor = self._correction(algorithm, protocol, size)
        bandwidth *= factor
        return Candidate(
            algorithm,
            protocol,
            latency=latency,
            bandwidth=bandwidth,
            time=latency + size / (1000 * bandwidth),
            channels=self._channels(algorithm, protocol, size),
            threads=_THREADS,
            corrections=self._corrections(algorithm, protocol, factor),
        )

    def sends(self, size: int) -> list[Candidate]:
        """Returns sends and receives, all at once, within a node."""
        if self.system.nodes > 1:
            why = "RCCL's constants state no latency of sends and receives between nodes"
            return [Candidate("P2P", protocol, refusal=why) for protocol in ("LL", "Simple")]
        launch, step = self.tuning.base_latency, self.tuning.Ring.nvlink
        latencies = launch[0] + step[0], launch[2] + step[2]
        return p2p_candidates(self.system, self.collective, latencies, size)

    def _refusal(self, algorithm: str, protocol: str) -> str:
        if protocol == "LL128":
            return f"LL128 is disabled for {self.system.gfx}"
        if algorithm == "Tree" and self.collective != "all_reduce":
            return f"{COLLECTIVES[self.collective]} is not implemented with Tree"
        if (algorithm, protocol) == ("Tree", "Simple") and self.system.nodes == 1:
            return f"Tree with Simple is disabled on one node of {self.system.gfx}"
        return ""

    def _constants(self, algorithm: str) -> Algorithm:
        return self.tuning.Tree if algorithm == "Tree" else self.tuning.Ring

    @property
    def _rooted(self) -> bool:
        return self.collective in {"broadcast", "reduce"}

    @property
    def _steps(self) -> int:
        ranks = self.system.ranks
        if self._rooted:
            return ranks
        return (2 if self.collective == "all_reduce" else 1) * (ranks - 1)

    def _rate(self, algorithm: str, protocol: str) -> float:
        graph, nodes = self.system.graph(algorithm.lower()), self.system.nodes
        rate = graph.channels * (graph.intra if nodes <= 2 else graph.inter)
        rate *= self._constants(algorithm).ratio[nodes > 2][PROTOCOLS.index(protocol)]
        if algorithm == "Tree":
            return rate * 0.5
        if protocol == "LL" and self._rooted and nodes == 1:
            rate *= self.tuning.rooted_ll_factor
        return rate * self.system.ranks / self._steps

    def _latency(self, algorithm: str, protocol: str) -> float:
        at, nodes, constants = (
            PROTOCOLS.index(protocol),
            self.system.nodes,
            self._constants(algorithm),
        )
        base, within, between = (
            self.tuning.base_latency[at],
            constants.nvlink[at],
            constants.net[at],
        )
        if algorithm == "Tree":
            depth = nodes.bit_length() - 1
            return base + 2 * ((self.system.gpus_per_node - 1) * within + depth * between)
        if self._rooted:
            return base + (within if nodes == 1 else between)
        if nodes == 1:
            return base + self._steps * within
        # Each step between nodes posts to the network, also where data stay in a node.
        post = (2.0 if self.system.cpu == "amd" else 1.0) * (3 if protocol == "Simple" else 1)
        far = 2 * nodes if self.collective == "all_reduce" else nodes - 1
        return base + (self._steps - far) * max(within, post) + far * between

    def _corrections(self, algorithm: str, protocol: str, factor: float) -> Corrections:
        latency = rate = ""
        if factor != 1.0:
            rate = f"RCCL's table multiplies the rate by {factor:g} at this size"
        if self.system.nodes > 1:
            step = self._constants(algorithm).net[PROTOCOLS.index(protocol)]
            latency = f"RCCL's table has {step:g} us for a step between nodes"
        return Corrections(latency, rate)

    def _correction(self, algorithm: str, protocol: str, size: int) -> float:
        if algorithm == "Ring" and self.system.nodes == 1:
            return 1.0
        factors = self._constants(algorithm).correction[protocol]
        return factors[min(max(0, (size >> 6).bit_length() - 1), len(factors) - 1)]

    def _channels(self, algorithm: str, protocol: str, size: int) -> int:
        threshold = _THRESHOLDS[protocol]
        if (algorithm, protocol) == ("Ring", "LL"):
            threshold *= self.system.ranks
        count = self.system.graph("ring").channels
        return max(1, min(count, size // (_THREADS * threshold)))
