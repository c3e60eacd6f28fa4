"""The passes and messages that pipeline stages wait for."""

from __future__ import annotations

import numpy as np

from tutti.workloads.bubble import waits
from tutti.workloads.pieces import Pieces
from tutti.workloads.zoo.llm import DECODERS, model_of

LENGTHS = np.array([1.0, 2.5])
"""A block, and the classifier."""


def chunks(*blocks: tuple[int, ...], classifier: int = 0) -> np.ndarray:
    """Returns pieces by chunk and stage; the last stage of the last chunk has the classifier."""
    found = np.array([[(count, 0) for count in row] for row in blocks])
    found[-1, -1, 1] = classifier
    return found


def test_without_chunks_a_stage_waits_for_every_other_stage() -> None:
    given = chunks((4, 4, 5, 3), classifier=1)
    assert waits(given, LENGTHS, 3) == ((13, 0), 0)
    assert waits(given, LENGTHS, 0) == ((12, 1), 0)


def test_a_longer_stage_works_while_it_waits() -> None:
    """In units of a forward pass of a block, with backward passes of two: stage 0 waits until 15
    for the return from stage 1, processes a forward pass of 6, and at the end a backward pass."""
    given = chunks((6, 5))
    assert waits(given, LENGTHS, 0) == ((2 * 5 - 6, 0), 0)
    assert waits(chunks((6, 1)), LENGTHS, 0) == ((0, 0), 0)
    # Only the forward pass is shorter than the wait: (3 - 6 / 3) of three blocks.
    assert waits(chunks((6, 3)), LENGTHS, 0) == ((1, 0), 0)


def test_equal_chunks_wait_for_messages_only() -> None:
    """Narayanan et al. 2021, section 2.2: (p - 1) / v of the passes of a stage."""
    given = chunks((2, 2), (2, 2), (2, 2))
    assert waits(given, LENGTHS, 1) == ((2, 0), 2)


def test_a_longer_chunk_of_another_stage_is_awaited() -> None:
    """Stage 1 processes one block while a micro-batch passes the three blocks of stage 0."""
    given = chunks((1, 1), (3, 1), classifier=0)
    assert waits(given, LENGTHS, 1) == ((1 + 2, 0), 1)


def test_a_longer_own_chunk_hides_messages() -> None:
    given = chunks((1, 3), (1, 3))
    assert waits(given, LENGTHS, 1) == ((1, 0), 0)


def test_stages_that_differ_are_listed_once() -> None:
    pieces = Pieces(model_of("llama", "test", DECODERS["llama3_8b"].shape))
    found = pieces.stages(4, 1)
    assert sum(sum(one.pieces) for one in found) >= 3 * 8
    assert len(found) <= 4
    total = sum(pieces.chunks(4)[0].values()) + sum(found[0].awaited)
    assert total == 33
