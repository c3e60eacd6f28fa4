"""How a model is divided among NPUs, and the collectives that follow from it.

NPUs stand on a torus of named rings. **Data** parallel: each NPU has all weights and samples of its
own; gradients are all-reduced among the NPUs that have the same weights.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LayerTransfers", "Parallelism", "Transfer"]


@dataclass(frozen=True)
class Transfer:
    """A collective of a pass.

    Attributes:
        collective: Its name.
        bytes: Its size, by the convention of that collective.
        rings: The rings whose NPUs take part; none for all.
    """

    collective: str
    bytes: int
    rings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LayerTransfers:
    """The collectives of a layer.

    Attributes:
        after_forward: What leaves the forward pass; the next layer waits for it.
        after_input_gradient: What leaves the input gradient; the layer before waits for it.
        after_weight_gradient: The gradients of the weights; the layer's next forward pass waits.
    """

    after_forward: Transfer | None = None
    after_input_gradient: Transfer | None = None
    after_weight_gradient: Transfer | None = None


@dataclass(frozen=True)
class Parallelism:
    """Which rings do what.

    Attributes:
        data: The rings whose NPUs have the same weights; none for all.
    """

    data: tuple[str, ...] = ()

    def transfers(self, parameters: int, element: int) -> LayerTransfers:
        """The collectives of a layer of `parameters` weights of `element` bytes."""
        if parameters == 0:
            return LayerTransfers()
        gradients = Transfer("all_reduce", parameters * element, self.data)
        return LayerTransfers(after_weight_gradient=gradients)
