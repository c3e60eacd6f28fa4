"""Rules of Open MPI's tuned component, and of han, which is asked before it on several hosts.

A classic file of tuned has keys of communicator sizes. Up to 5.0 a size goes by the largest key
that is not above it, and sizes below the first key by that one; so each tuned number of ranks is
followed by a key that gives larger ones back to the fixed rules, and preceded by one for smaller
ones. JSON, which 6.0 reads, says both ends itself. In both, messages go by the largest size that is
not above theirs.

On a communicator of several hosts the component han comes first. It is not turned off, for then
whatever no rule speaks of would change too: a file of its own tells it to hand on to tuned just the
ranks and sizes that have rules.

Source: ``docs/tuning-apps/collectives/tuned.rst``, ``coll_tuned_dynamic_file.c`` and
``coll_han_dynamic_file.c`` of Open MPI 5.0 and 6.0.
"""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from tutti.errors import TuningError
from tutti.mpi.sizes import DEALT_OUT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.tune.decisions import TuningDecision

__all__ = ["classic", "han", "json_rules", "settings"]

_NUMBERS = {
    "all_gather": (0, "allgather"),
    "all_reduce": (2, "allreduce"),
    "all_to_all": (3, "alltoall"),
    "barrier": (6, "barrier"),
    "broadcast": (7, "bcast"),
    "reduce": (11, "reduce"),
    "reduce_scatter": (13, "reduce_scatter_block"),
}
"""What Open MPI calls a collective: in classic files and in JSON. Of its two kinds of
reduce_scatter, the one with equal blocks."""

_HANDED_ON = {
    "openmpi": frozenset({"all_gather", "all_reduce", "barrier", "broadcast", "reduce"}),
    "openmpi6": frozenset(
        {"all_gather", "all_reduce", "all_to_all", "barrier", "broadcast", "reduce"}
    ),
}
"""The collectives of which han asks its rules; others it leaves to tuned by itself."""


class _Choice(NamedTuple):
    """An algorithm by its number, and its fan-in and fan-out."""

    number: int
    fan: int = 0


_FIXED = _Choice(0)
"""What stands for the fixed rules."""

_Keys = list[tuple[int, list[tuple[int, _Choice]]]]


def settings(rules: str, of_han: str | None) -> dict[str, str]:
    """The variables under which Open MPI reads files of rules, and lets them decide.

    Args:
        rules: the path of tuned's.
        of_han: the path of han's; None where it needs none.
    """
    named = {
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
        "OMPI_MCA_coll_tuned_dynamic_rules_filename": rules,
    }
    if of_han is not None:
        named["OMPI_MCA_coll_han_use_dynamic_file_rules"] = "1"
        named["OMPI_MCA_coll_han_dynamic_rules_filename"] = of_han
    return named


def classic(decisions: Sequence[TuningDecision], *, second: bool = False) -> str:
    """The text of a classic file.

    Args:
        decisions: for the target `openmpi`; those without a schedule go by the fixed rules.
        second: whether to write the second version, which Open MPI reads from 5.0.7 on; all
            releases read the first.

    Raises:
        TuningError: no decision can be expressed.
    """
    told = _told(decisions, "openmpi")
    lines = ["rule-file-version-2"] if second else []
    lines += ["# Written by `tutti tune`. Bytes, algorithm, fan-in/out, segment size"
              + (", max requests." if second else ".")]  # fmt: skip
    lines.append(f"{len(told)}  # collectives")
    for collective, by_ranks in told.items():
        number, name = _NUMBERS[collective]
        keys = _keys(by_ranks, "openmpi")
        lines += [f"{number}  # {name}", f"{len(keys)}  # communicator sizes"]
        for ranks, rules in keys:
            lines += [f"{ranks}  # ranks and more", f"{len(rules)}  # sizes"]
            tail = " 0 0" if second else " 0"
            lines += [f"{first} {one.number} {one.fan}{tail}" for first, one in rules]
    return "\n".join(lines) + "\n"


def han(decisions: Sequence[TuningDecision], target: str) -> str | None:
    """The text of han's file: it hands on to tuned what has a rule, and keeps the rest.

    Its sizes of all_gather and all_to_all are those of one rank's part.

    Args:
        decisions: for the target.
        target: `openmpi` or `openmpi6`.

    Returns:
        None where all rules are of collectives that han leaves to tuned by itself.
    """
    told = {
        collective: by_ranks
        for collective, by_ranks in _told(decisions, target).items()
        if collective in _HANDED_ON[target]
    }
    if not told:
        return None
    lines = ["# Written by `tutti tune`. Bytes of a message, component.",
             f"{len(told)}  # collectives"]  # fmt: skip
    for collective, by_ranks in told.items():
        keys = _keys(by_ranks, target)
        lines += [_NUMBERS[collective][1], "1  # topologic levels", "global_communicator"]
        lines += [f"{len(keys)}  # communicator sizes"]
        for ranks, rules in keys:
            lines += [f"{ranks}  # ranks and more", f"{len(rules)}  # sizes"]
            parts = ranks if collective in DEALT_OUT else 1
            lines += [f"{-(-first // parts)} {'han' if one == _FIXED else 'tuned'}"
                      for first, one in rules]  # fmt: skip
    return "\n".join(lines) + "\n"


def _told(
    decisions: Sequence[TuningDecision], target: str
) -> dict[str, dict[int, list[TuningDecision]]]:
    """Those that can be expressed: by collective, by ranks."""
    told: dict[str, dict[int, list[TuningDecision]]] = {}
    for (collective, ranks), some in groupby(decisions, lambda one: (one.collective, one.ranks)):
        listed = list(some)
        if collective in _NUMBERS and any(_choice(one, target) != _FIXED for one in listed):
            told.setdefault(collective, {})[ranks] = listed
    if not told:
        message = "Open MPI has none of the schedules that are the fastest anywhere"
        raise TuningError(message, kind="nothing")
    return told


def _choice(decision: TuningDecision, target: str) -> _Choice:
    found = decision.counterpart(target)
    return _Choice(found.number, found.parameters.get("faninout", 0)) if found else _FIXED


def _keys(by_ranks: dict[int, list[TuningDecision]], target: str) -> _Keys:
    """Keys with their rules, those in between that give sizes back to the fixed rules included."""
    fixed = [(0, _FIXED)]
    keys: _Keys = []
    for ranks in sorted(by_ranks):
        before = keys[-1][0] if keys else None
        if before is None and ranks > 1:
            keys.append((1, fixed))
        elif before is not None and before + 1 < ranks:
            keys.append((before + 1, fixed))
        keys.append((ranks, [(one.first, _choice(one, target)) for one in by_ranks[ranks]]))
    keys.append((keys[-1][0] + 1, fixed))
    return keys


def json_rules(decisions: Sequence[TuningDecision]) -> str:
    """The text of a JSON file of Open MPI 6; what is not in it goes by the fixed rules.

    Raises:
        TuningError: no decision can be expressed.
    """
    collectives: dict[str, list[dict[str, object]]] = {}
    for collective, by_ranks in _told(decisions, "openmpi6").items():
        collectives[_NUMBERS[collective][1]] = [
            {
                "comm_size_min": ranks,
                "comm_size_max": ranks,
                "comm_rank_distribution": "any",
                "rules": [
                    _json_rule(one, choice)
                    for one in by_ranks[ranks]
                    if (choice := _choice(one, "openmpi6")) != _FIXED
                ],
            }
            for ranks in sorted(by_ranks)
        ]
    rules = {"rule_file_version": 3, "module": "tuned", "collectives": collectives}
    return json.dumps(rules, indent=2) + "\n"


def _json_rule(decision: TuningDecision, choice: _Choice) -> dict[str, object]:
    rule: dict[str, object] = {
        "msg_size_min": decision.first,
        "msg_size_max": "inf" if decision.last is None else decision.last,
        "alg": choice.number,
    }
    return rule | ({"faninout": choice.fan} if choice.fan else {})
