"""Collectives that NCCL executes as sends and receives, all at once.

NCCL has no tuning model for them. The prediction has the launch and the latency of a step of a
ring, and the rates that NCCL's search finds: a GPU's NVLinks, and its share of the network
interfaces of the node. With NVLink switches, messages change rails within the sender's node (PXN).
A message of up to 16 KiB uses LL (src/enqueue.cc, NCCL_P2P_LL_THRESHOLD), at half the rate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.nccl.tuned import Candidate

if TYPE_CHECKING:
    from tutti.nccl.model import Model

P2P = "P2P"
"""The name of the algorithm."""
P2P_COLLECTIVES = {"all_to_all": "AlltoAll", "gather": "Gather", "scatter": "Scatter"}
"""NCCL's names of the collectives."""
_LL_THRESHOLD = 16 << 10
_LL_RATE = 0.5


def p2p_candidates(model: Model, size: int) -> list[Candidate]:
    """Returns sends and receives with LL and with Simple.

    Args:
        model: The model of the collective.
        size: The size in bytes by the convention of nccl-tests.
    """
    ranks = model.system.ranks
    message = size // ranks
    short = message <= _LL_THRESHOLD
    rows = []
    for protocol in ("LL", "Simple"):
        if (protocol == "LL") != short:
            than = "at most" if short else "more than"
            why = f"messages have {message:,} B, {than} {_LL_THRESHOLD:,} B"
            rows.append(Candidate(P2P, protocol, refusal=why))
            continue
        latency = _latency(model, protocol)
        transfer = _transfer(model, size) / (_LL_RATE if short else 1)
        rows.append(
            Candidate(
                P2P,
                protocol,
                latency=latency,
                bandwidth=size / (1000 * transfer) if transfer else float("inf"),
                time=latency + transfer,
            )
        )
    return rows


def _latency(model: Model, protocol: str) -> float:
    """Returns the launch and a step of a ring in us."""
    at = ("LL", "LL128", "Simple").index(protocol)
    link = "net" if model.system.nodes > 1 else "nvlink"
    return model.rules.base_latency["Ring"][at] + model.rules.latency[link]["Ring"][at]


def _transfer(model: Model, size: int) -> float:
    """Returns the time of the bytes of the busiest GPU, in us."""
    system = model.system
    width, ranks = system.gpus_per_node, system.ranks
    near, far = size * (width - 1) / ranks, size * (ranks - width) / ranks
    if far and width > 1 and system.nvswitch:
        near += far * (width - 1) / width
    ring = system.graph("ring")
    adapter = ring.channels * ring.inter / width
    within = near / (1000 * system.gpu_rate) if near else 0.0
    return max(within, far / (1000 * adapter) if far else 0.0)
