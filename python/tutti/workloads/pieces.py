"""The pieces of a decoder that pipeline stages keep together, and the distinct ones among them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tutti.workloads.bubble import waits
from tutti.workloads.errors import WorkloadError
from tutti.workloads.stages import stage_ends

if TYPE_CHECKING:
    from tutti.workloads.decoder import Decoder
    from tutti.workloads.model import Model, ModelLayer


class StagePieces(NamedTuple):
    """A pipeline stage: the number of each distinct piece.

    Attributes:
        pieces: Its pieces.
        awaited: Those of other stages whose passes it waits for.
        rounds: How often it waits for messages around all stages, as in
            :class:`tutti.workloads.bubble.Waits`.
    """

    pieces: tuple[int, ...]
    awaited: tuple[float, ...]
    rounds: int


@dataclass(frozen=True)
class Pieces:
    """The pieces of a decoder: the first block with the embedding, each block, the classifier.

    Attributes:
        model: The model.
    """

    model: Model
    _ends: dict[int, tuple[int, ...]] = field(default_factory=dict, init=False, repr=False)
    _stages: dict[tuple[int, int], list[StagePieces]] = field(
        default_factory=dict, init=False, repr=False
    )

    @property
    def decoder(self) -> Decoder:
        """The shape.

        Raises:
            WorkloadError: The model is not a decoder.
        """
        if self.model.decoder is None:
            message = f"the memory of {self.model.name} is not modelled: expected a decoder"
            raise WorkloadError(message, kind="no_decoder")
        return self.model.decoder

    @cached_property
    def layers(self) -> list[tuple[ModelLayer, ...]]:
        """The layers of each piece."""
        found: list[list[ModelLayer]] = [[]]
        for layer in self.model.layers:
            if len(found[-1]) > 1 and layer.name.endswith(("_attention", "classifier")):
                found.append([])
            found[-1].append(layer)
        return [tuple(piece) for piece in found]

    @cached_property
    def _numbered(self) -> tuple[list[int], list[tuple[int, int]]]:
        """The numbers of the first piece, its two parts, and the others; and layers of each number.

        The parts are the embedding and the first block. Layers are those of the last occurrence.
        """
        known: dict[tuple[object, ...], int] = {}
        found: list[int] = []
        places: dict[int, tuple[int, int]] = {}
        ends = list(accumulate(len(piece) for piece in self.layers))
        bounds = [(0, ends[0]), (0, 1), (1, ends[0]), *pairwise(ends)]
        for start, stop in bounds:
            key = tuple(replace(layer, name="") for layer in self.model.layers[start:stop])
            found.append(known.setdefault(key, len(known)))
            places[found[-1]] = (start, stop)
        return found, [places[number] for number in range(len(known))]

    @cached_property
    def numbers(self) -> list[int]:
        """The number of the distinct piece of each piece; the first one is like no other."""
        numbers, _ = self._numbered
        return [numbers[0], *numbers[3:]]

    @cached_property
    def distinct(self) -> list[tuple[ModelLayer, ...]]:
        """The layers of the distinct pieces, by number."""
        return [self.model.layers[start:stop] for start, stop in self.places]

    @property
    def places(self) -> list[tuple[int, int]]:
        """The first layer of the last occurrence of each distinct piece, and the one after it."""
        return self._numbered[1]

    def chunks(self, count: int) -> list[Counter[int]]:
        """Returns the numbers of the distinct pieces of each of `count` model chunks.

        With one more chunk than pieces, the embedding is a chunk.
        """
        if count == len(self.layers) + 1:
            return [Counter([number]) for number in self._numbered[0][1:]]
        ends = self.ends(count)
        bounds = zip((0, *ends[:-1]), ends, strict=True)
        return [Counter(self.numbers[start:stop]) for start, stop in bounds]

    def stages(self, stages: int, chunks: int) -> list[StagePieces]:
        """Returns the stages of a pipeline that differ in their pieces."""
        if (stages, chunks) not in self._stages:
            kinds = range(len(self.places))
            parts = self.chunks(stages * chunks)
            counts = np.array([[one[at] for at in kinds] for one in parts], dtype=np.int64)
            counts = counts.reshape(chunks, stages, len(kinds))
            lengths = np.array([sum(layer.macs for layer in one) for one in self.distinct], float)
            by_pieces: dict[tuple[int, ...], StagePieces] = {}
            for stage in range(stages):
                pieces = tuple(counts[:, stage].sum(axis=0).tolist())
                found = waits(counts, lengths, stage)
                by_pieces.setdefault(pieces, StagePieces(pieces, *found))
            self._stages[stages, chunks] = list(by_pieces.values())
        return self._stages[stages, chunks]

    def ends(self, count: int) -> tuple[int, ...]:
        """Returns the ends of `count` model chunks, in pieces, as in the simulation.

        Raises:
            WorkloadError: There are fewer pieces.
        """
        if count not in self._ends:
            if count > len(self.layers):
                message = (
                    f"{count} model chunks: expected at most {len(self.layers)}, the number of "
                    "blocks and the classifier"
                )
                raise WorkloadError(message, kind="too_few_layers")
            macs = [sum(layer.macs for layer in piece) for piece in self.layers]
            one = replace(self.model.layers[0], name="piece")
            model = replace(self.model, layers=(one,) * len(macs), cuts=())
            self._ends[count] = tuple(stage_ends(model, macs, count))
        return self._ends[count]
