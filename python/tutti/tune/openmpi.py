"""Rules of Open MPI's tuned component: the classic file of all releases, and JSON of 6.0 on.

A classic file has keys of communicator sizes. Up to 5.0 a size goes by the largest key that is not
above it, and sizes below the first key by that one; so each tuned number of ranks is followed by a
key that gives larger ones back to the fixed rules, and preceded by one for smaller ones. JSON says
both ends itself. In both, messages go by the largest size that is not above theirs.

Source: ``docs/tuning-apps/collectives/tuned.rst`` and ``coll_tuned_dynamic_file.c`` of Open MPI.
"""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING

from tutti.errors import TuningError
from tutti.tune.decisions import HOST
from tutti.tune.targets import counterpart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.tune.decisions import Decision

__all__ = ["classic", "json_rules", "settings"]

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

_FIXED = 0
"""The algorithm that stands for the fixed rules."""


def settings(path: str) -> dict[str, str]:
    """The variables under which Open MPI reads a file of rules, and lets its rules decide.

    Without ``coll=^han`` the component han may decide on several hosts before tuned is asked.
    """
    return {
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
        "OMPI_MCA_coll_tuned_dynamic_rules_filename": path,
        "OMPI_MCA_coll": "^han",
    }


def classic(decisions: Sequence[Decision], *, second: bool = False) -> str:
    """The text of a classic file.

    Args:
        decisions: for the target `openmpi`; those without a schedule go by the fixed rules.
        second: whether to write the second version, which Open MPI reads from 5.0.7 on; all
            releases read the first.

    Raises:
        TuningError: no decision can be expressed.
    """
    told = _told(decisions)
    lines = ["rule-file-version-2"] if second else []
    lines += ["# Written by `tutti tune`. Bytes, algorithm, fan-in/out, segment size"
              + (", max requests." if second else ".")]  # fmt: skip
    lines.append(f"{len(told)}  # collectives")
    for collective, by_ranks in told.items():
        number, name = _NUMBERS[collective]
        keys = _keys(by_ranks)
        lines += [f"{number}  # {name}", f"{len(keys)}  # communicator sizes"]
        for ranks, rules in keys:
            lines += [f"{ranks}  # ranks and more", f"{len(rules)}  # sizes"]
            tail = " 0 0 0" if second else " 0 0"
            lines += [f"{first} {algorithm}{tail}" for first, algorithm in rules]
    return "\n".join(lines) + "\n"


def _told(decisions: Sequence[Decision]) -> dict[str, dict[int, list[Decision]]]:
    """Those that can be expressed: by collective, by ranks."""
    told: dict[str, dict[int, list[Decision]]] = {}
    for (collective, ranks), some in groupby(decisions, lambda one: (one.collective, one.ranks)):
        listed = list(some)
        if collective in _NUMBERS and any(_number(one) != _FIXED for one in listed):
            told.setdefault(collective, {})[ranks] = listed
    if not told:
        message = "Open MPI has none of the schedules that are the fastest anywhere"
        raise TuningError(message, kind="nothing")
    return told


def _number(decision: Decision) -> int:
    if decision.schedule is None or decision.schedule == HOST:
        return _FIXED
    found = counterpart("openmpi", decision.collective, decision.ranks, decision.schedule)
    return found.number if found else _FIXED


def _keys(by_ranks: dict[int, list[Decision]]) -> list[tuple[int, list[tuple[int, int]]]]:
    """Keys with their rules, those in between that give sizes back to the fixed rules included."""
    fixed = [(0, _FIXED)]
    keys: list[tuple[int, list[tuple[int, int]]]] = []
    for ranks in sorted(by_ranks):
        before = keys[-1][0] if keys else None
        if before is None and ranks > 1:
            keys.append((1, fixed))
        elif before is not None and before + 1 < ranks:
            keys.append((before + 1, fixed))
        keys.append((ranks, [(one.first, _number(one)) for one in by_ranks[ranks]]))
    keys.append((keys[-1][0] + 1, fixed))
    return keys


def json_rules(decisions: Sequence[Decision]) -> str:
    """The text of a JSON file of Open MPI 6; what is not in it goes by the fixed rules.

    Raises:
        TuningError: no decision can be expressed.
    """
    collectives: dict[str, list[dict[str, object]]] = {}
    for collective, by_ranks in _told(decisions).items():
        collectives[_NUMBERS[collective][1]] = [
            {
                "comm_size_min": ranks,
                "comm_size_max": ranks,
                "rules": [
                    {
                        "msg_size_min": one.first,
                        "msg_size_max": "inf" if one.last is None else one.last,
                        "alg": _number(one),
                    }
                    for one in by_ranks[ranks]
                    if _number(one) != _FIXED
                ],
            }
            for ranks in sorted(by_ranks)
        ]
    rules = {"rule_file_version": 3, "module": "tuned", "collectives": collectives}
    return json.dumps(rules, indent=2) + "\n"
