"""Whether NCCL considers an algorithm and a protocol, and why not.

Source: the end of ncclTopoTuneModel in src/graph/tuning.cc, and the conditions before the choice in
src/enqueue.cc.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti.nccl.settings import ALGORITHMS, COLLECTIVES, PROTOCOLS, enabled
from tutti.nccl.system import PATHS

if TYPE_CHECKING:
    from tutti.nccl.model import Model

_IMPLEMENTED = {
    "all_reduce": {"Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree"},
    "all_gather": {"Ring", "CollNetDirect", "NVLS", "PAT"},
    "reduce_scatter": {"Ring", "CollNetDirect", "NVLS", "PAT"},
    "broadcast": {"Ring"},
    "reduce": {"Ring"},
}
_NEVER_ALONE = {"Ring", "Tree", "NVLS", "NVLSTree"}
"""Before NCCL 2.24, Ring and Tree replace a list that has none of these left."""


@dataclass(frozen=True)
class Availability:
    """The algorithms and protocols that NCCL considers for a model's collective.

    Attributes:
        model: The model.
        algorithms: The algorithms that the user's list enables.
        protocols: The protocols that the user's list enables; None without a list.
    """

    model: Model
    algorithms: frozenset[str]
    protocols: frozenset[str] | None

    @classmethod
    def of(cls, model: Model) -> Availability:
        """Reads the lists of a model's settings.

        Raises:
            ConfigError: A list is invalid.
        """
        settings, rules = model.settings, model.rules
        known = ALGORITHMS if rules.pat else ALGORITHMS[:-1]
        requested = enabled(settings.algo, "NCCL_ALGO", known, model.collective, rules)
        algorithms = frozenset(known) if requested is None else requested
        system = model.system
        if not rules.collectives_in_lists and not system.collnet:
            unusable = {"NVLSTree"} if system.nodes == 1 else {"NVLS"}
            if not (algorithms & _NEVER_ALONE) - unusable:
                algorithms |= {"Ring", "Tree"}
        protocols = enabled(settings.proto, "NCCL_PROTO", PROTOCOLS, model.collective, rules)
        return cls(model, algorithms, protocols)

    def refusal(self, algorithm: str, protocol: str) -> str:
        """Returns why NCCL does not consider an algorithm with a protocol; empty if it does."""
        return (
            self._not_implemented(algorithm, protocol)
            or self._not_enabled(algorithm)
            or self._not_supported(algorithm)
            or self.protocol_refusal(algorithm, protocol)
            or self._no_bandwidth(algorithm, protocol)
        )

    def _not_implemented(self, algorithm: str, protocol: str) -> str:
        model = self.model
        if algorithm == "PAT" and not model.rules.pat:
            return f"NCCL {model.rules.name} does not have PAT"
        if algorithm not in _IMPLEMENTED[model.collective]:
            return f"{COLLECTIVES[model.collective]} is not implemented with {algorithm}"
        if algorithm not in {"Tree", "Ring"} and protocol != "Simple":
            return f"{algorithm} supports Simple only"
        return ""

    def _not_enabled(self, algorithm: str) -> str:
        if algorithm not in self.algorithms:
            return f"NCCL_ALGO={self.model.settings.algo} excludes {algorithm}"
        return ""

    def _not_supported(self, algorithm: str) -> str:
        if algorithm in {"Tree", "Ring"}:
            return ""
        if algorithm == "PAT":
            return self._pat_refusal()
        if algorithm in {"NVLS", "NVLSTree"}:
            return self._nvls_refusal(algorithm)
        return self._collnet_refusal(algorithm)

    def _pat_refusal(self) -> str:
        system, settings = self.model.system, self.model.settings
        if settings.pat_enable == 0:
            return "NCCL_PAT_ENABLE=0 disables PAT"
        if settings.pat_enable == 2 and system.gpus_per_node > 1:
            return f"PAT needs one GPU per node; this system has {system.gpus_per_node}"
        return ""

    def _nvls_refusal(self, algorithm: str) -> str:
        model, system = self.model, self.model.system
        if not system.nvls or model.settings.nvls_enable == 0:
            off = "NCCL_NVLS_ENABLE=0 disables NVLink SHARP"
            return off if system.nvls else "the GPUs do not support NVLink SHARP"
        if system.gpus_per_node < 2:
            return f"{algorithm} needs 2 GPUs or more per node"
        if algorithm == "NVLSTree" and system.nodes == 1:
            return "NVLSTree needs 2 nodes or more"
        if algorithm == "NVLS" and system.nodes > 1:
            return self._nvls_between_nodes()
        return self._large_nvls()

    def _large_nvls(self) -> str:
        most = self.model.rules.nvls_gather_gpus
        if most and self.model.gathers and self.model.system.gpus_per_node > most:
            return f"NVLS supports up to {most} GPUs per node for this collective"
        return ""

    def _nvls_between_nodes(self) -> str:
        model = self.model
        if not model.system.collnet:
            return "NVLS between nodes needs CollNet, an in-network reduction plugin"
        if not model.gathers:
            return ""
        if not model.rules.nvls_gather_between_nodes:
            return "NVLS supports this collective on one node only"
        return self._large_nvls() or self._few_heads("NVLS")

    def _collnet_refusal(self, algorithm: str) -> str:
        model, system = self.model, self.model.system
        if not system.collnet:
            return "CollNet, an in-network reduction plugin, is not enabled"
        direct = algorithm == "CollNetDirect"
        if direct and not system.nvswitch:
            return "CollNetDirect needs NVLink switches"
        most = model.rules.collnet_direct_gpus if direct else model.rules.collnet_chain_gpus
        if most and system.gpus_per_node > most:
            return f"{algorithm} supports up to {most} GPUs per node"
        if model.gathers and system.nodes > 1:
            return self._few_heads(algorithm)
        return ""

    def _few_heads(self, algorithm: str) -> str:
        system = self.model.system
        if system.gpus_per_node > system.collnet_heads:
            return f"{algorithm} needs a network interface for each GPU for this collective"
        return ""

    def protocol_refusal(self, algorithm: str, protocol: str) -> str:
        """Returns why NCCL does not consider a protocol; empty if it does."""
        if self.protocols is not None:
            if protocol in self.protocols:
                return ""
            return f"NCCL_PROTO={self.model.settings.proto} excludes {protocol}"
        return self._ll128_refusal(algorithm) if protocol == "LL128" else ""

    def _ll128_refusal(self, algorithm: str) -> str:
        graph, rules = self.model.graph(algorithm), self.model.rules
        capability = self.model.system.compute_capability
        known = rules.ll128_compute_capabilities
        if capability not in known if known else capability < 70:
            return f"LL128 is disabled for compute capability {capability}"
        farthest = "PXN" if capability >= 90 else "PXB"
        if PATHS.index(graph.inter_path) > PATHS.index(farthest):
            return f"LL128 is disabled: paths to the network are {graph.inter_path}"
        if PATHS.index(graph.intra_path) > PATHS.index("NVB"):
            return f"LL128 is disabled: GPUs are not connected by NVLink but {graph.intra_path}"
        return ""

    def _no_bandwidth(self, algorithm: str, protocol: str) -> str:
        if self.model.bandwidth(algorithm, protocol) != 0:
            return ""
        return f"NCCL found no graph for {algorithm}"
