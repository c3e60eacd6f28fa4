"""UCC's tune string: ``UCC_TL_UCP_TUNE``, and the radix of its k-nomial algorithms.

A token is ``collective:sizes:memory:[team sizes]:score:@algorithm``; tokens are joined by ``#``.
UCC keeps sizes with both ends: a size at which two ranges meet goes to the one with the higher
score, which is that of a string, so a range ends with the last size that it is for. A range has
more than one size. A string of which UCC cannot read one token is not used at all.

A radix is a variable of a collective, whatever the team; of an all_reduce it may differ by sizes,
whose ends are included too. UCC is not installed here, so what it makes of this has not been
counted.

Source: ``src/coll_score``, ``src/utils/ucc_parser.c`` and ``src/components/tl/ucp`` of UCC 1.4 to
1.9.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tutti.errors import TuningError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.tune.decisions import TuningDecision
    from tutti.tune.targets import Counterpart

__all__ = ["settings"]

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
"""The largest radix with which each rank folds alike in UCC 1.4. From 1.5 on all do
(https://github.com/openucx/ucc/pull/1145)."""
_NEEDS_1_5 = (
    "needs UCC 1.5: in 1.4 ranks get different bits from a k-nomial all_reduce of a radix over 2"
)
_NO_END = 1 << 63


@dataclass
class _Radices:
    """What the variables of radices say so far: sizes and a radix for each of them."""

    of: dict[str, dict[tuple[int, int], int]] = field(default_factory=dict)

    def take(self, decision: TuningDecision, found: Counterpart) -> int | None:
        """Has a radix hold for a decision's sizes; the one in its way, if there is another."""
        key = (decision.collective, found.name)
        variable = _BY_SIZE.get(key) or _FOR_ALL.get(key)
        if variable is None or "k" not in found.parameters:
            return None
        span = (decision.first, _NO_END if decision.last is None else decision.last)
        span = span if key in _BY_SIZE else (0, _NO_END)
        radix, said = found.parameters["k"], self.of.setdefault(variable, {})
        for (first, last), other in said.items():
            if first <= span[1] and span[0] <= last and other != radix:
                return other
        said[span] = radix
        return None

    def variables(self) -> dict[str, str]:
        """Their values; sizes without a radix of ours keep UCC's own."""
        by_size = set(_BY_SIZE.values())
        named = {}
        for name, said in self.of.items():
            parts = [f"{first}-{_end(last)}:{radix}" for (first, last), radix in said.items()]
            one = str(next(iter(said.values())))
            named[name] = ",".join([*parts, "auto"]) if name in by_size else one
        return named


def settings(decisions: Sequence[TuningDecision]) -> tuple[dict[str, str], list[str]]:
    """The variables that tell UCC what to do, and what could not be told, in words.

    Where decisions for several numbers of ranks need different radices, that of the most ranks is
    written, and the others are left to UCC.

    Raises:
        TuningError: no decision can be expressed.
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
        left.append(f"{where}: UCC's own choice stays: radix {found.parameters['k']} cannot be had "
                    f"beside {other}, which more ranks need")  # fmt: skip
    if not tokens:
        message = "UCC has none of the schedules that are the fastest anywhere"
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
