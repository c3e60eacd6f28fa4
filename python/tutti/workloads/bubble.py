"""The pipeline bubble: the passes of other stages for which a stage waits.

Stage b of p waits for the first micro-batch, whose forward pass runs on the stages before it, and
for its return from those after it; likewise for the last backward pass. If those after it are
shorter, it works on the micro-batches in flight for a part of this time. With model chunks, it
waits between chunks, too: a micro-batch passes all other stages while the stage processes p - 1
others, of either chunk. Chunks of equal length do not wait (Narayanan et al. 2021, section 2.2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Counts = NDArray[np.int64]

__all__ = ["Waits", "waits"]


class Waits(NamedTuple):
    """What a stage waits for.

    Attributes:
        pieces: The number of each piece whose forward and backward pass it waits for.
        rounds: How often it waits for messages around all stages: between chunks, unless it works
            longer on a chunk than a micro-batch takes through all other stages.
    """

    pieces: tuple[float, ...]
    rounds: int


def waits(pieces: Counts, lengths: NDArray[np.float64], stage: int) -> Waits:
    """Returns what a stage waits for.

    Args:
        pieces: The number of each distinct piece in each model chunk, shape (chunks per stage,
            stages, pieces).
        lengths: The work of a forward pass of each piece; it decides which pass is awaited.
        stage: The stage.
    """
    chunks, stages, _ = pieces.shape
    before, after = pieces[:, :stage].sum(axis=1), pieces[:, stage + 1 :].sum(axis=1)
    own = (stages - 1) * pieces[:, stage]
    found, rounds = before[0] + _returning(pieces, lengths, stage), 0
    for chunk in range(chunks - 1):
        # Forward and backward passes of the last chunk alternate, so that only the first one waits.
        others = own[chunk : chunk + 2] if chunk + 2 < chunks else own[chunk : chunk + 1]
        during = min(others, key=lambda one: float(one @ lengths))
        more = after[chunk] + before[chunk + 1] - during
        length = float(more @ lengths)
        found = found + more if length > 0 else found
        rounds += length >= -_EQUAL * float(during @ lengths)
    return Waits(tuple(found.tolist()), rounds)


def _returning(pieces: Counts, lengths: NDArray[np.float64], stage: int) -> NDArray[np.float64]:
    """Returns the pieces of the stages after one whose passes it waits for.

    It waits for the return of the first micro-batch, and for the last backward pass. Meanwhile it
    processes the micro-batches in flight, of which there is one per stage after it: their forward
    passes, a third of their work, then their backward passes. Equal stages wait for all passes of
    the others once.
    """
    chunks, stages, _ = pieces.shape
    found: NDArray[np.float64]
    after, behind = pieces[-1, stage + 1 :].sum(axis=0), stages - 1 - stage
    during = behind * pieces[:, stage].mean(axis=0)
    awaited, work = float(after @ lengths), float(during @ lengths)
    if work <= awaited:
        found = after * 1.0
        return found
    waited = [max(0.0, awaited - share * work) for share in (1 / 3, 2 / 3)]
    if chunks == 1 and all(waited):
        found = 2.0 * after - during
    else:
        found = after * (sum(waited) / max(awaited, 1.0))
    return found


_EQUAL = 0.02
"""Relative difference below which chunks are equally long, such as that of the embedding."""
