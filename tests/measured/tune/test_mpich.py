"""The device's selections of MPICH, and the conditions that it supports."""

from __future__ import annotations

import json
from typing import Any

import pytest

from csel import Call, selected
from tutti.measured.tune import TuningDecision, mpich

NAMES = (
    "allreduce", "bcast", "reduce", "allgather", "alltoall", "reduce_scatter_block", "barrier",
)  # fmt: skip
STOCK: dict[str, Any] = {
    f"collective={name}": {
        "comm_type=intra": {
            "comm_size=node_comm_size": {"composition=alone": {}},
            "comm_size<8": {"composition=small": {}},
            "comm_size=pow2": {"composition=pow2": {}},
            "comm_size=any": {"composition=stock": {}},
        }
    }
    for name in NAMES
}


def decision(
    collective: str, ranks: int, schedule: str | None, first: int = 0, last: int | None = None
) -> TuningDecision:
    return TuningDecision(collective, ranks, first, last, schedule, 1, "model")


def conditions(tree: object) -> set[str]:
    """Every condition in a tree, by its name."""
    if not isinstance(tree, dict):
        return set()
    names = {key.partition("=")[0].rstrip("<") for key in tree}
    return names.union(*(conditions(below) for below in tree.values()))


def leaf(tree: dict[str, Any], ranks: int, size: int, **facts: Any) -> str:
    """Returns the name in the leaf that MPICH selects; by default on several nodes."""
    found = selected(tree, Call(ranks, size, size * ranks, **{"is_parent": False, **facts}))
    return next(iter(found)).partition("=")[2]


RULES = [
    decision("all_reduce", 4, "ring", 0, 1023),
    decision("all_reduce", 4, "own", 1024),
    decision("all_reduce", 8, "own", 0, 63),
    decision("all_reduce", 8, "recursive_doubling", 64),
    decision("all_gather", 4, "ring"),
    decision("reduce_scatter", 4, "recursive_halving_doubling"),
]


def test_device_delegates_only_cases_with_rules() -> None:
    written = json.loads(mpich.merged_device(STOCK, RULES))
    tree = written["collective=allreduce"]["comm_type=intra"]
    flat = "MPIDI_Allreduce_intra_composition_beta"
    assert leaf(tree, ranks=4, size=1023) == flat
    assert leaf(tree, ranks=4, size=1024) == "small"
    assert leaf(tree, ranks=4, size=8, flags=frozenset()) == "small"
    assert leaf(tree, ranks=4, size=8, count=3) == "small"
    assert leaf(tree, ranks=4, size=1024, is_parent=True) == "alone"
    assert leaf(tree, ranks=8, size=64) == flat
    assert leaf(tree, ranks=8, size=8) == "pow2"
    assert leaf(tree, ranks=9, size=64) == "stock"
    assert leaf(tree, ranks=5, size=64) == "small"
    unchanged = {key for key in STOCK if written[key] == STOCK[key]}
    assert len(unchanged) == len(STOCK) - 1


def test_no_condition_on_ranks_is_below_one_on_sizes() -> None:
    # There, MPICH reads `comm_size<8` as `comm_size<=8`.
    tree = json.loads(mpich.merged_device(STOCK, RULES))["collective=allreduce"]["comm_type=intra"]
    for key, below in tree.items():
        if any(name.startswith("avg_msg_size") for name in below):
            assert "<8" not in json.dumps(below), key


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({"comm_size<8": "few", "comm_size=any": "many"}, "many"),
        # From the first condition on a call on, csel.c compares with <=.
        ({"is_sendbuf_inplace=no": {"comm_size<8": "few", "comm_size=any": "many"}}, "few"),
        ({"avg_msg_size<=0": "empty", "comm_size<8": "few", "comm_size=any": "many"}, "few"),
        ({"comm_hierarchy=any": {"comm_size<8": "few", "comm_size=any": "many"}}, "many"),
    ],
)
def test_8_ranks_are_less_than_8_once_a_call_was_tested(conditions: Any, expected: str) -> None:
    def named(tree: Any) -> Any:
        if isinstance(tree, str):
            return {f"algorithm={tree}": {}}
        return {key: named(below) for key, below in tree.items()}

    stock = STOCK | {"collective=alltoall": {"comm_type=intra": named(conditions)}}
    rules = [decision("all_to_all", 8, "own", 0, 63), decision("all_to_all", 8, "pairwise", 64)]
    written = json.loads(mpich.merged(stock, rules))["collective=alltoall"]["comm_type=intra"]
    small = json.dumps(written["comm_size<=8"]["total_msg_size<=63"])
    assert f"algorithm={expected}" in small
    assert ("many" if expected == "few" else "few") not in small


def test_no_condition_aborts_mpich() -> None:
    # csel.c knows the operation's kind of all_reduce and reduce, and ends the job for others.
    written = json.loads(mpich.merged(STOCK, RULES))
    assert "is_op_built_in" in conditions(written["collective=allreduce"])
    for name in ("allgather", "reduce_scatter_block"):
        assert not conditions(written[f"collective={name}"]) & {"is_op_built_in", "count"}
    assert "is_commutative" in conditions(written["collective=reduce_scatter_block"])


def test_settings_name_both_files() -> None:
    named = mpich.settings("/x/mpich.json", "/x/mpich_device.json", RULES)
    assert named == {
        "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE": "/x/mpich.json",
        "MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE": "/x/mpich_device.json",
    }


def test_an_unknown_device_is_turned_off() -> None:
    named = mpich.settings("/x/mpich.json", None, RULES)
    assert named["MPIR_CVAR_ALLREDUCE_DEVICE_COLLECTIVE"] == "0"
    assert "MPIR_CVAR_BCAST_DEVICE_COLLECTIVE" not in named
