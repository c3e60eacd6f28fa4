"""Reasons for a faster schedule: stages, bytes and messages of the closed forms."""

from __future__ import annotations

from tutti import schedule
from tutti.collectives.explanation import Parts, parts, why


def laid_out(notation: str, ranks: int) -> Parts:
    found = parts(schedule(notation, collective="all_reduce", ranks=ranks), 1024)
    assert found is not None
    return found


def test_parts_are_those_of_the_closed_form() -> None:
    # Ring on 4 ranks: 2 * 3 stages of a message of a quarter each.
    ring = laid_out("ring", 4)
    assert (ring.stages, ring.messages, ring.bytes) == (6, 6, 1536)
    # a4: one stage of three messages with the full payload.
    multiplying = laid_out("recursive_multiplying:a4", 4)
    assert (multiplying.stages, multiplying.messages, multiplying.bytes) == (1, 3, 3072)


def test_fewer_steps_win_short_messages_and_fewer_bytes_long_ones() -> None:
    ring, multiplying = laid_out("ring", 4), laid_out("recursive_multiplying:a4", 4)
    assert why(multiplying, ring, gap_ps=5_000_000, ps_per_byte=100) == "1 step, not 6"
    assert why(ring, multiplying) == "1.5 KiB per rank, not 3 KiB"


def test_bytes_are_no_reason_if_their_share_is_small() -> None:
    fewer = Parts(stages=2, steps=2, messages=2, bytes=8)
    more = Parts(stages=4, steps=4, messages=4, bytes=16)
    assert why(fewer, more, gap_ps=1_000_000, ps_per_byte=100) == "2 steps, not 4"
    assert "per rank" in why(fewer, more, gap_ps=1_000, ps_per_byte=100)


def test_no_reason_is_given_without_a_difference() -> None:
    same = Parts(stages=2, steps=2, messages=2, bytes=8)
    assert why(same, same) == ""
    assert why(None, same) == ""
