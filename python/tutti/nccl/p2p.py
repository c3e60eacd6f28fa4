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
    from tutti.nccl.system import NcclSystem

P2P = "P2P"
"""The name of the algorithm."""
P2P_COLLECTIVES = {"all_to_all": "AlltoAll", "gather": "Gather", "scatter": "Scatter"}
"""NCCL's names of the collectives."""
_LL_THRESHOLD = 16 << 10
_LL_RATE = 0.5


def simulated(collective: str) -> str:
    """Returns the hint at the algorithm that simulates the same messages, without NCCL's model."""
    return f"`direct` simulates its messages: `tutti run direct -c {collective} -p PLATFORM`"


def p2p_candidates(
    system: NcclSystem, collective: str, latencies: tuple[float, float], size: int
) -> list[Candidate]:
    """Returns sends and receives with LL and with Simple.

    Args:
        system: The system of the communicator.
        collective: The collective.
        latencies: The launch and a step of a ring in us, with LL and with Simple.
        size: The size in bytes by the convention of nccl-tests.
    """
    message = size // system.ranks
    short = message <= _LL_THRESHOLD
    rows = []
    for protocol, latency in zip(("LL", "Simple"), latencies, strict=True):
        if (protocol == "LL") != short:
            than = "at most" if short else "more than"
            why = f"messages have {message:,} B, {than} {_LL_THRESHOLD:,} B"
            rows.append(Candidate(P2P, protocol, refusal=why))
            continue
        transfer = _transfer(system, collective, size) / (_LL_RATE if short else 1)
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


def p2p_latencies(model: Model) -> tuple[float, float]:
    """Returns the launch and a step of a ring in us, with LL and with Simple."""
    link = "net" if model.system.nodes > 1 else "nvlink"
    launch, step = model.rules.base_latency["Ring"], model.rules.latency[link]["Ring"]
    return launch[0] + step[0], launch[2] + step[2]


def _transfer(system: NcclSystem, collective: str, size: int) -> float:
    """Returns the time of the bytes of the busiest GPU, in us.

    Where messages change rails in the sender's node, a scatter uses all network adapters of the
    root's node, and the port of the root limits it, as it limits simulated messages. A gather uses
    the adapter of the root alone.
    """
    width, ranks = system.gpus_per_node, system.ranks
    near, far = size * (width - 1) / ranks, size * (ranks - width) / ranks
    if far and width > 1 and system.nvswitch:
        is_spread = collective == "scatter"
        near += far if is_spread else far * (width - 1) / width
        far /= width if is_spread else 1
    ring = system.graph("ring")
    adapter = system.adapter or ring.channels * ring.inter / width
    within = near / (1000 * system.gpu_rate) if near else 0.0
    return max(within, far / (1000 * adapter) if far else 0.0)
