"""One sentence for each candidate: why NCCL chooses it, or why not."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tutti.nccl.tuning import Candidate

__all__ = ["reason"]


def reason(row: Candidate, chosen: Candidate) -> str:
    """Returns the reason for a candidate's place, without a full stop.

    Args:
        row: The candidate.
        chosen: The candidate that NCCL chooses.
    """
    if not row.considered:
        return row.refusal
    terms = f"{row.latency:.1f} us + {row.transfer:.1f} us at {row.bandwidth:.4g} GB/s"
    if row.fallback:
        return f"{terms}; the settings leave no algorithm, so NCCL takes Ring"
    if row == chosen:
        return f"{terms}; the shortest time"
    if row.time == chosen.time:
        return f"{terms}; equal, and later in NCCL's order"
    if row.latency >= chosen.time:
        return f"{terms}; its latency alone takes longer"
    term = "bandwidth" if row.transfer > chosen.transfer else "latency"
    return f"{terms}; its {term} term is longer"
