"""The pieces of a decoder that pipeline stages keep together, and the distinct ones among them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from tutti.workloads.errors import WorkloadError
from tutti.workloads.parallel import stage_ends

if TYPE_CHECKING:
    from tutti.workloads.decoder import Decoder
    from tutti.workloads.model import Model, ModelLayer


@dataclass(frozen=True)
class Pieces:
    """The pieces of a decoder: the first block with the embedding, each block, the classifier.

    Attributes:
        model: The model.
    """

    model: Model
    _ends: dict[int, tuple[int, ...]] = field(default_factory=dict, init=False, repr=False)

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
    def numbers(self) -> list[int]:
        """The number of the distinct piece of each piece; the first one is like no other."""
        known: dict[tuple[object, ...], int] = {}
        found = []
        for piece in self.layers:
            key = tuple(replace(layer, name="") for layer in piece)
            found.append(known.setdefault(key, len(known)))
        return found

    @cached_property
    def distinct(self) -> list[tuple[ModelLayer, ...]]:
        """The layers of the distinct pieces, by number."""
        found: dict[int, tuple[ModelLayer, ...]] = {}
        for number, piece in zip(self.numbers, self.layers, strict=True):
            found.setdefault(number, piece)
        return list(found.values())

    def chunks(self, count: int) -> list[Counter[int]]:
        """Returns the numbers of the distinct pieces of each of `count` model chunks."""
        ends = self.ends(count)
        bounds = zip((0, *ends[:-1]), ends, strict=True)
        return [Counter(self.numbers[start:stop]) for start, stop in bounds]

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
