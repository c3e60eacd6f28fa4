"""The pipeline stages and model chunks into which the layers of a model are divided."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from tutti.workloads.errors import WorkloadError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.workloads.model import Model


def stage_ends(model: Model, costs: Sequence[int], count: int) -> list[int]:
    """Returns the ends of `count` pieces of the layers such that the longest is minimal.

    Raises:
        WorkloadError: The model has fewer pieces.
    """
    cuts = cuts_of(model, count)
    if count > len(cuts):
        what = "blocks and the classifier" if model.cuts else "layers"
        message = f"{count} model chunks: expected at most {len(cuts)}, the number of {what}"
        raise WorkloadError(message, kind="too_few_layers")
    units = tuple(sum(costs[start:stop]) for start, stop in pairwise((0, *cuts)))
    return [cuts[stop - 1] for _, stop in shortest_stages(units, count)]


def cuts_of(model: Model, chunks: int) -> tuple[int, ...]:
    """Returns the ends of the pieces of a model that stages keep together.

    The embedding of a decoder is a separate piece only if there are as many model chunks as
    blocks, embedding and classifier, as in Llama 3 405B with 128 chunks.
    """
    if model.cuts and model.cuts[0] > 1 and chunks == len(model.cuts) + 1:
        return (1, *model.cuts)
    return model.cuts or tuple(range(1, len(model.layers) + 1))


def units_of(model: Model) -> tuple[int, ...]:
    """Returns the number of the unit of each layer whose weights ZeRO 3 gathers together.

    Units are the blocks of a decoder, its embedding and its classifier, as PyTorch's FSDP wraps
    them (Zhao et al. 2023, section 3.2.1). Each layer of a model without blocks is a unit.
    """
    if not model.cuts:
        return tuple(range(len(model.layers)))
    ends = [0, *model.cuts]
    if model.layers[0].first and model.cuts[0] > 1:
        ends.insert(1, 1)
    return tuple(
        number for number, (start, stop) in enumerate(pairwise(ends)) for _ in range(start, stop)
    )


def longest(units: Sequence[int]) -> int:
    """Returns the layers of the largest unit; 1 without units."""
    return max((units.count(one) for one in set(units)), default=1)


@lru_cache(maxsize=64)
def shortest_stages(costs: tuple[int, ...], stages: int) -> list[tuple[int, int]]:
    """Divides layers into `stages` pieces with the minimal longest piece."""
    import numpy as np

    count = len(costs)
    total = np.concatenate(([0], np.cumsum(costs, dtype=np.int64)))
    # lengths[n, cut]: the cost of the layers from a cut to n; best[n]: the longest of k stages.
    lengths = total[:, None] - total[None, :]
    lengths[np.triu_indices(count + 1)] = np.iinfo(np.int64).max
    best, starts = total.copy(), []
    for k in range(2, stages + 1):
        longest = np.maximum(lengths, best[None, :])
        longest[:, : k - 1] = np.iinfo(np.int64).max
        starts.append(longest.argmin(axis=1))
        best = longest.min(axis=1)
    bounds, stop = [], count
    for row in reversed(starts):
        bounds.append((int(row[stop]), stop))
        stop = int(row[stop])
    return [(0, stop), *bounds[::-1]]
