"""Strings for UCC, as interpreted by a reader that follows its sources.

``ucc_coll_score_parse_str``, ``coll_score_add_range``, ``ucc_coll_score_update_one``,
``ucc_coll_score_build_map`` and ``ucc_mrange_uint_get`` of UCC 1.4 to 1.9.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

import pytest

from tutti.measured.errors import TuningError
from tutti.measured.tune import TuningDecision, ucc

INFINITE = 1 << 64
ALGORITHMS = {
    "allreduce": {"knomial", "sra_knomial", "dbt", "sliding_window"},
    "bcast": {"knomial", "sag_knomial", "dbt"},
    "reduce": {"knomial", "dbt", "srg"},
    "allgather": {"knomial", "ring", "neighbor", "bruck", "sparbit"},
    "alltoall": {"pairwise", "bruck", "onesided"},
    "reduce_scatter": {"ring", "knomial"},
}
"""The collectives of UCC 1.4 with selectable algorithms."""
MEMORY = {"host", "cuda", "cuda_managed", "rocm", "rocm_managed"}


@dataclass
class Range:
    """Sizes of a collective, their score and algorithm."""

    start: int
    end: int
    score: int
    algorithm: str


def units(text: str) -> int:
    """A size as ``ucs_str_to_memunits`` reads it."""
    if text == "inf":
        return INFINITE
    found = re.fullmatch(r"(\d+)([kmgt]?)b?", text.lower())
    assert found, text
    return int(found[1]) << 10 * " kmgt".index(found[2] or " ")


def token(text: str, team: int) -> tuple[str, Range] | None:
    """Returns a token for a team, or None if it applies to other teams."""
    name = sizes = teams = algorithm = None
    score = 10
    for part in text.split(":"):
        if name is None and part in ALGORITHMS:
            name = part
        elif part in MEMORY:
            assert part == "host"
        elif part == "inf" or part.isdigit():
            score = INFINITE if part == "inf" else int(part)
        elif sizes is None and "-" in part and part[0] not in "[@":
            start, end = part.split("-")
            sizes = units(start), units(end)
        elif part.startswith("[") and part.endswith("]"):
            first, last = part[1:-1].split("-")
            teams = int(first), int(last)
        elif part.startswith("@"):
            algorithm = part[1:]
        else:
            raise AssertionError(part)
    assert name
    assert sizes
    assert teams
    assert algorithm in ALGORITHMS[name], text
    assert sizes[0] < sizes[1], "a range without a size is refused"
    inside = teams[0] <= team <= teams[1]
    return (name, Range(*sizes, score, algorithm)) if inside else None


def chosen(text: str, team: int, collective: str, size: int) -> str:
    """The algorithm for a call; `default` where UCC chooses by itself."""
    found = [read for part in text.split("#") if (read := token(part, team))]
    mine = sorted((one for name, one in found if name == collective), key=lambda one: one.start)
    ranges: list[Range] = []
    at = 0
    for one in mine:
        assert one.start >= at, "overlapping ranges are refused"
        if at < one.start:
            ranges.append(Range(at, one.start, 10, "default"))
        ranges.append(one)
        at = one.end
    if at < INFINITE:
        ranges.append(Range(at, INFINITE, 10, "default"))
    for one, after in itertools.pairwise(ranges):
        if one.score > after.score:
            after.start += 1
        else:
            one.end -= 1
    return next(one.algorithm for one in ranges if one.start <= size <= one.end)


def radix(text: str, size: int) -> str:
    """Returns the value of a variable for a size: the first range with it, or the default."""
    default = None
    for part in text.split(","):
        span, _, value = part.rpartition(":")
        if not span:
            default = value
            continue
        start, end = span.split("-")
        if units(start) <= size <= units(end):
            return value
    assert default is not None, "without it UCC reads uninitialised memory"
    return default


def decision(
    ranks: int, first: int, last: int | None, schedule: str, collective: str = "all_reduce"
) -> TuningDecision:
    return TuningDecision(collective, ranks, first, last, schedule, 1, "model")


TREES = [
    decision(4, 0, 4095, "recursive_multiplying:a4"),
    decision(4, 4096, None, "recursive_halving_doubling"),
    decision(6, 0, 64, "own"),
    decision(6, 65, 1023, "double_binary_tree"),
    decision(6, 1024, None, "own"),
]


def test_sizes_select_the_decided_algorithm() -> None:
    named, left = ucc.settings(TREES)
    text = named["UCC_TL_UCP_TUNE"]
    for size, algorithm in {
        0: "knomial", 8: "knomial", 4095: "knomial", 4096: "sra_knomial", 1 << 40: "sra_knomial",
    }.items():  # fmt: skip
        assert chosen(text, 4, "allreduce", size) == algorithm, size
    for size, algorithm in {64: "default", 65: "dbt", 1023: "dbt", 1024: "default"}.items():
        assert chosen(text, 6, "allreduce", size) == algorithm, size
    assert chosen(text, 8, "allreduce", 8) == "default"
    assert [one.partition(":")[0] for one in left] == ["needs UCC 1.5"]


def test_radices_apply_to_their_sizes() -> None:
    named, _ = ucc.settings(TREES)
    text = named["UCC_TL_UCP_ALLREDUCE_KN_RADIX"]
    assert [radix(text, size) for size in (0, 4095, 4096)] == ["4", "4", "auto"]
    text = named["UCC_TL_UCP_ALLREDUCE_SRA_KN_RADIX"]
    assert [radix(text, size) for size in (4095, 4096)] == ["auto", "2"]


def test_radix_follows_the_largest_rank_count() -> None:
    decisions = [decision(4, 0, None, "recursive_multiplying:a4"),
                 decision(9, 0, 99, "recursive_multiplying:a3,a3")]  # fmt: skip
    named, left = ucc.settings(decisions)
    assert radix(named["UCC_TL_UCP_ALLREDUCE_KN_RADIX"], 50) == "3"
    assert chosen(named["UCC_TL_UCP_TUNE"], 9, "allreduce", 50) == "knomial"
    assert chosen(named["UCC_TL_UCP_TUNE"], 4, "allreduce", 50) == "default"
    assert "all_reduce on 4 ranks" in left[0]


def test_a_radix_of_a_tree_is_one_number() -> None:
    named, left = ucc.settings([decision(8, 0, 99, "binomial", "broadcast")])
    assert named["UCC_TL_UCP_BCAST_KN_RADIX"] == "2"
    assert "every size" in left[0]


def test_one_size_alone_is_a_range() -> None:
    named, _ = ucc.settings([decision(4, 8, 8, "double_binary_tree")])
    assert chosen(named["UCC_TL_UCP_TUNE"], 4, "allreduce", 8) == "dbt"


def test_barriers_are_left_to_ucc() -> None:
    with pytest.raises(TuningError, match="UCC has none"):
        ucc.settings([decision(8, 0, None, "recursive_doubling", "barrier")])
