"""UCC's tune string: ``UCC_TL_UCP_TUNE``, and the radix of its k-nomial algorithms.

A token is ``collective:range:team size:score:@algorithm``; tokens are joined by ``#``. Ranges end
where the next begins. UCC is not installed here, so what it makes of a string has not been counted.

Source: the user guide of UCC 1.4 and ``ucc_info -A``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.errors import TuningError
from tutti.tune.decisions import HOST
from tutti.tune.targets import counterpart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.tune.decisions import Decision
    from tutti.tune.targets import Counterpart

__all__ = ["settings"]

_NAMES = {
    "all_reduce": "allreduce",
    "broadcast": "bcast",
    "reduce": "reduce",
    "all_gather": "allgather",
    "all_to_all": "alltoall",
    "reduce_scatter": "reduce_scatter",
    "barrier": "barrier",
}
_RADIX = {
    ("all_reduce", "knomial"): "UCC_TL_UCP_ALLREDUCE_KN_RADIX",
    ("all_reduce", "sra_knomial"): "UCC_TL_UCP_ALLREDUCE_SRA_KN_RADIX",
    ("broadcast", "knomial"): "UCC_TL_UCP_BCAST_KN_RADIX",
    ("reduce", "knomial"): "UCC_TL_UCP_REDUCE_KN_RADIX",
    ("barrier", "knomial"): "UCC_TL_UCP_BARRIER_KN_RADIX",
}


def settings(decisions: Sequence[Decision]) -> dict[str, str]:
    """The variables that tell UCC what to do.

    A radix holds for a whole collective and range of sizes, whatever the team: where decisions for
    several numbers of ranks differ, that of the most ranks is written.

    Raises:
        TuningError: no decision can be expressed.
    """
    tokens: list[str] = []
    radices: dict[str, dict[str, int]] = {}
    for one in sorted(decisions, key=lambda one: one.ranks):
        found = _algorithm(one)
        if found is None:
            continue
        span = f"{one.first}-{'inf' if one.last is None else one.last + 1}"
        name = _NAMES[one.collective]
        tokens.append(f"{name}:{span}:[{one.ranks}-{one.ranks}]:inf:@{found.name}")
        variable = _RADIX.get((one.collective, found.name))
        if variable is not None and "k" in found.parameters:
            radices.setdefault(variable, {})[span] = found.parameters["k"]
    if not tokens:
        message = "UCC has none of the schedules that are the fastest anywhere"
        raise TuningError(message, kind="nothing")
    named = {"UCC_TL_UCP_TUNE": "#".join(tokens)}
    for variable, spans in radices.items():
        named[variable] = ",".join(f"{span}:{k}" for span, k in spans.items())
    return named


def _algorithm(decision: Decision) -> Counterpart | None:
    if decision.schedule is None or decision.schedule == HOST:
        return None
    return counterpart("ucc", decision.collective, decision.ranks, decision.schedule)
