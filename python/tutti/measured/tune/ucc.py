"""UCC's tune string: ``UCC_TL_UCP_TUNE``, and the radix of its k-nomial algorithms.

A token is ``collective:sizes:memory:[team sizes]:score:@algorithm``; tokens are joined by ``#``.
UCC's ranges are inclusive: a size at which two ranges meet uses the one with the higher score,
which is that of a string. A range therefore ends with its last size. A range has more than one
size. UCC discards the complete string if it cannot parse one token.

A radix is a variable of a collective, whatever the team; for an all_reduce it may differ by size,
with inclusive limits. UCC is not available here, so its messages have not been counted.

Source: ``src/coll_score``, ``src/utils/ucc_parser.c`` and ``src/components/tl/ucp`` of UCC 1.4 to
1.9.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tutti.measured.errors import TuningError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.measured.tune.decisions import TuningDecision
    from tutti.measured.tune.targets import Counterpart

_NAMES = {
    "all_reduce": "allreduce",
    "broadcast": "bcast",
    "reduce": "reduce",
    "all_gather": "allgather",
    "all_to_all": "alltoall",
    "reduce_scatter": "reduce_scatter",
}
_BY_SIZE = {
    ("all_reduce", "knomial"): "UCC_TL_UCP_ALLREDUCE_KN_RADIX",
    ("all_reduce", "sra_knomial"): "UCC_TL_UCP_ALLREDUCE_SRA_KN_RADIX",
}
_FOR_ALL = {
    ("broadcast", "knomial"): "UCC_TL_UCP_BCAST_KN_RADIX",
    ("reduce", "knomial"): "UCC_TL_UCP_REDUCE_KN_RADIX",
}
_KNOMIAL = "UCC_TL_UCP_ALLREDUCE_KN_RADIX"
_SAME_BITS_IN_ALL = 2
"""The largest radix with which all ranks reduce identically in UCC 1.4; from 1.5 on all radices do
(https://github.com/openucx/ucc/pull/1145)."""
_NEEDS_1_5 = (
    "needs UCC 1.5: in 1.4 a k-nomial all_reduce with a radix above 2 has different bits per rank"
)
_NO_END = 1 << 63


@dataclass
class _Radices:
    """The variables of radices: a radix for each range of sizes."""

    of: dict[str, dict[tuple[int, int], int]] = field(default_factory=dict)

    def take(self, decision: TuningDecision, found: Counterpart) -> int | None:
        """Sets a radix for a decision's sizes; returns a conflicting one, or None."""
        key = (decision.collective, found.name)
        variable = _BY_SIZE.get(key) or _FOR_ALL.get(key)
        if variable is None or not found.fan:
            return None
        span = (decision.first, _NO_END if decision.last is None else decision.last)
        span = span if key in _BY_SIZE else (0, _NO_END)
        radix, ranges = found.fan, self.of.setdefault(variable, {})
        for (first, last), other in ranges.items():
            if first <= span[1] and span[0] <= last and other != radix:
                return other
        ranges[span] = radix
        return None

    def variables(self) -> dict[str, str]:
        """Returns their values; sizes without a radix retain UCC's default."""
        by_size = set(_BY_SIZE.values())
        named = {}
        for name, ranges in self.of.items():
            parts = [f"{first}-{_end(last)}:{radix}" for (first, last), radix in ranges.items()]
            one = str(next(iter(ranges.values())))
            named[name] = ",".join([*parts, "auto"]) if name in by_size else one
        return named


def settings(decisions: Sequence[TuningDecision]) -> tuple[dict[str, str], list[str]]:
    """Returns the variables for UCC, and remarks about decisions that cannot be expressed.

    If decisions for several numbers of ranks need different radices, that of the most ranks is
    written, and the others keep UCC's default.

    Raises:
        TuningError: No decision can be expressed.
    """
    tokens: list[str] = []
    left: list[str] = []
    radices = _Radices()
    for one in sorted(decisions, key=lambda one: -one.ranks):
        found = one.counterpart("ucc")
        if found is None:
            continue
        other = radices.take(one, found)
        if other is None:
            tokens.append(_token(one, found))
            continue
        where = f"{one.collective} on {one.ranks} ranks from {one.first} B"
        left.append(f"{where}: keeps UCC's default: radix {found.fan} conflicts with "
                    f"{other}, which more ranks need")  # fmt: skip
    if not tokens:
        message = "UCC has none of the fastest schedules"
        raise TuningError(message, kind="nothing")
    named = {"UCC_TL_UCP_TUNE": "#".join(tokens)} | radices.variables()
    for_all = sorted(set(radices.of) & set(_FOR_ALL.values()))
    left += [f"{variable} holds for teams of every size" for variable in for_all]
    if any(radix > _SAME_BITS_IN_ALL for radix in radices.of.get(_KNOMIAL, {}).values()):
        left.append(_NEEDS_1_5)
    return named, left


def _token(decision: TuningDecision, found: Counterpart) -> str:
    last = decision.last
    if last is not None:
        last = max(last, decision.first + 1)
    span = f"{decision.first}-{'inf' if last is None else last}"
    team = f"[{decision.ranks}-{decision.ranks}]"
    return f"{_NAMES[decision.collective]}:{span}:host:{team}:inf:@{found.name}"


def _end(last: int) -> str:
    return "inf" if last == _NO_END else str(last)
