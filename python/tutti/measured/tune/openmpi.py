"""Rules of Open MPI's tuned component, and of han, which precedes it on several hosts.

A classic file of tuned has keys of communicator sizes. Up to 5.0 a communicator uses the largest
key not above its size, and smaller ones use the first key. Each tuned number of ranks is therefore
followed by a key that returns larger ones to the fixed rules, and preceded by one for smaller ones.
JSON, which 6.0 reads, has both limits. In both formats, a message uses the largest size not above
that of the message.

On a communicator of several hosts the component han comes first from 5.0 on; in 4.1 it is off by
default. It is not turned off, since that would change collectives without rules. A separate file
makes it forward only the ranks and sizes with rules to tuned.

Source: ``docs/tuning-apps/collectives/tuned.rst``, ``coll_tuned_dynamic_file.c`` and
``coll_han_dynamic_file.c`` of Open MPI 5.0 and 6.0; ``coll_tuned_dynamic_file.c`` of 4.0, and the
news of 4.1.0, which state that han is off by default.
"""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from tutti.collectives.sizes import DEALT_OUT
from tutti.measured.errors import TuningError
from tutti.measured.tune.decisions import complete
from tutti.measured.tune.targets import library_title
from tutti.view.quantity import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.measured.tune.decisions import TuningDecision

_NUMBERS = {
    "all_gather": (0, "allgather"),
    "all_reduce": (2, "allreduce"),
    "all_to_all": (3, "alltoall"),
    "barrier": (6, "barrier"),
    "broadcast": (7, "bcast"),
    "reduce": (11, "reduce"),
    "reduce_scatter": (13, "reduce_scatter_block"),
}
"""The names of a collective in classic files and in JSON; reduce_scatter is the one with equal
blocks."""

_HANDED_ON = {
    "openmpi": frozenset({"all_gather", "all_reduce", "barrier", "broadcast", "reduce"}),
    "openmpi4": frozenset[str](),
    "openmpi6": frozenset(
        {"all_gather", "all_reduce", "all_to_all", "barrier", "broadcast", "reduce"}
    ),
}
"""The collectives for which han reads rules; it leaves all others to tuned."""


class _Choice(NamedTuple):
    """An algorithm number, its fan-in and fan-out, its segment size in bytes, and its name."""

    number: int
    fan: int = 0
    segment: int = 0
    name: str = "default"


_FIXED = _Choice(0)
"""Denotes the fixed rules."""

_Keys = list[tuple[int, list[tuple[int, _Choice]]]]


def settings(rules: str, of_han: str | None) -> dict[str, str]:
    """Returns the variables that make Open MPI read and apply files of rules.

    Args:
        rules: the path of tuned's file.
        of_han: the path of han's file; None if it needs none.
    """
    named = {
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
        "OMPI_MCA_coll_tuned_dynamic_rules_filename": rules,
    }
    if of_han is not None:
        named["OMPI_MCA_coll_han_use_dynamic_file_rules"] = "1"
        named["OMPI_MCA_coll_han_dynamic_rules_filename"] = of_han
    return named


def classic(
    decisions: Sequence[TuningDecision], target: str = "openmpi", *, second: bool = False
) -> str:
    """Returns the text of a classic file.

    Args:
        decisions: for the target; those without a schedule use the fixed rules.
        target: `openmpi` or `openmpi4`.
        second: whether to write the second version, which Open MPI reads from 5.0.7 on; all
            releases read the first.

    Raises:
        TuningError: No decision can be expressed.
    """
    ruled = _ruled(decisions, target)
    lines = ["rule-file-version-2"] if second else []
    lines += [f"# Written by `tutti tune`. For {library_title(target)}. Bytes, algorithm, "
              "fan-in/out, segment size" + (", max requests." if second else ".")]  # fmt: skip
    lines.append(f"{len(ruled)}  # collectives")
    for collective, by_ranks in ruled.items():
        number, name = _NUMBERS[collective]
        keys = _keys(by_ranks, target)
        lines += [f"{number}  # {name}", f"{len(keys)}  # communicator sizes"]
        for ranks, rules in keys:
            lines += [f"{ranks}  # ranks and more", f"{len(rules)}  # sizes"]
            tail = " 0" if second else ""
            lines += [f"{first} {one.number} {one.fan} {one.segment}{tail}  # {one.name}"
                      for first, one in rules]  # fmt: skip
    return "\n".join(lines) + "\n"


def han(decisions: Sequence[TuningDecision], target: str) -> str | None:
    """Returns the text of han's file: it forwards sizes with rules to tuned, and keeps the rest.

    Its sizes of all_gather and all_to_all are those of one rank's part.

    Args:
        decisions: for the target.
        target: `openmpi`, `openmpi4` or `openmpi6`.

    Returns:
        None if han leaves all collectives with rules to tuned anyway.
    """
    ruled = {
        collective: by_ranks
        for collective, by_ranks in _ruled(decisions, target).items()
        if collective in _HANDED_ON[target]
    }
    if not ruled:
        return None
    lines = ["# Written by `tutti tune`. Bytes of a message, component.",
             f"{len(ruled)}  # collectives"]  # fmt: skip
    for collective, by_ranks in ruled.items():
        keys = _keys(by_ranks, target)
        lines += [_NUMBERS[collective][1], "1  # topologic levels", "global_communicator"]
        lines += [f"{len(keys)}  # communicator sizes"]
        for ranks, rules in keys:
            lines += [f"{ranks}  # ranks and more", f"{len(rules)}  # sizes"]
            parts = ranks if collective in DEALT_OUT else 1
            lines += [f"{-(-first // parts)} {'han' if one == _FIXED else 'tuned'}"
                      for first, one in rules]  # fmt: skip
    return "\n".join(lines) + "\n"


def _ruled(
    decisions: Sequence[TuningDecision], target: str
) -> dict[str, dict[int, list[TuningDecision]]]:
    """Returns the decisions that can be expressed, by collective and ranks, without gaps."""
    ruled: dict[str, dict[int, list[TuningDecision]]] = {}
    every = complete(decisions)
    for (collective, ranks), some in groupby(every, lambda one: (one.collective, one.ranks)):
        listed = list(some)
        if collective in _NUMBERS and any(_choice(one, target) != _FIXED for one in listed):
            ruled.setdefault(collective, {})[ranks] = listed
    if not ruled:
        message = "Open MPI has none of the fastest schedules"
        raise TuningError(message, kind="nothing")
    return ruled


def _choice(decision: TuningDecision, target: str) -> _Choice:
    found = decision.counterpart(target)
    return _Choice(found.number, found.fan, found.segment, found.name) if found else _FIXED


def _keys(by_ranks: dict[int, list[TuningDecision]], target: str) -> _Keys:
    """Returns keys with their rules, and keys in between that return to the fixed rules."""
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
    """Returns the text of a JSON file of Open MPI 6; all other calls use the fixed rules.

    Raises:
        TuningError: No decision can be expressed.
    """
    collectives: dict[str, list[dict[str, object]]] = {}
    for collective, by_ranks in _ruled(decisions, "openmpi6").items():
        collectives[_NUMBERS[collective][1]] = [
            {
                "comm_size_min": ranks,
                "comm_size_max": ranks,
                "comm_rank_distribution": _distribution(by_ranks[ranks][0]),
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


def _distribution(decision: TuningDecision) -> str:
    """Returns the distribution of ranks in JSON, which has no number of ranks per node."""
    each = decision.ranks_per_node
    if each == 1:
        return "one-per-node"
    return "single-node" if each is not None and each >= decision.ranks else "any"


def unstated(target: str, decisions: Sequence[TuningDecision]) -> list[str]:
    """Reports rules that also hold for other numbers of ranks per node.

    Args:
        target: `openmpi`, `openmpi4` or `openmpi6`.
        decisions: the written decisions.
    """
    wide = {
        one.ranks_per_node
        for one in decisions
        if one.ranks_per_node and (target != "openmpi6" or _distribution(one) == "any")
        if one.counterpart(target) is not None
    }
    return [
        f"rules are for {plural(each, 'rank')} per node, which the format of "
        f"{library_title(target)} cannot state: they hold for every placement of these ranks"
        for each in sorted(wide)
    ]


def _json_rule(decision: TuningDecision, choice: _Choice) -> dict[str, object]:
    rule: dict[str, object] = {
        "msg_size_min": decision.first,
        "msg_size_max": "inf" if decision.last is None else decision.last,
        "alg": choice.number,
    }
    rule |= {"faninout": choice.fan} if choice.fan else {}
    return rule | ({"segsize": choice.segment} if choice.segment else {})
