"""PyTorch models as layers: shapes from an export on the meta device, nothing computed.

The model is exported by `torch.export` with tensors that have shapes and no data. Every matrix
product, convolution, attention, recurrent layer and table of the graph becomes a layer; what has
weights and no products (normalisation) becomes a layer of memory traffic alone; all else is taken
to be fused into its neighbours.
"""

from __future__ import annotations

import importlib
import math
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tutti.base.files.extras import check_extra
from tutti.workloads.errors import WorkloadError
from tutti.workloads.model import Gemm, Model, ModelLayer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def load_module(where: str, folder: Path) -> Any:  # noqa: ANN401 - torch is not there for types
    """Loads the module that `MODULE:CALLABLE` returns, on the meta device.

    Args:
        where: An importable Python module, a colon, and a callable that returns the model.
        folder: An additional folder to import modules from.

    Raises:
        ConfigError: torch is not installed.
        WorkloadError: The module or callable does not exist.
    """
    check_extra("torch")
    torch = importlib.import_module("torch")
    module, colon, name = where.partition(":")
    if not colon:
        message = f"`{where}` names no model: expected `module:callable`"
        raise WorkloadError(message, kind="torch_model")
    sys.path.insert(0, str(folder))
    try:
        made = getattr(importlib.import_module(module), name)
        with torch.device("meta"):
            return made()
    except (ImportError, AttributeError, TypeError) as error:
        message = f"`{where}` makes no model: {error}"
        raise WorkloadError(message, kind="torch_model") from None
    finally:
        sys.path.remove(str(folder))


def from_torch(
    module: Any,  # noqa: ANN401 - torch is not there for types
    inputs: Sequence[Sequence[int]],
    *,
    name: str,
    integers: bool = False,
) -> Model:
    """Returns the layers of a PyTorch module.

    Args:
        module: The module, small or on the meta device.
        inputs: The shape of each input; the first dimension is the batch.
        name: The name of the model.
        integers: Whether inputs are indices, such as words.

    Raises:
        WorkloadError: torch is missing, or the model cannot be exported or has no layers.
    """
    check_extra("torch")
    torch = importlib.import_module("torch")
    kind = torch.int64 if integers else torch.float32
    first = _shared(module)
    tensors = tuple(torch.zeros(*shape, dtype=kind, device="meta") for shape in inputs)
    try:
        exported = torch.export.export(module.to("meta").eval(), tensors)
    except Exception as error:  # noqa: BLE001 - torch raises many kinds
        message = f"{name} cannot be exported: {str(error).splitlines()[0]}"
        raise WorkloadError(message, kind="torch_model") from None
    buffers = frozenset(exported.graph_signature.inputs_to_buffers)
    reader = _Reader(batch=inputs[0][0], weights=_weights(exported, first), buffers=buffers)
    for node in exported.graph.nodes:
        reader.read(node)
    if not reader.layers:
        message = f"{name} has no layer that computes with matrices or has weights"
        raise WorkloadError(message, kind="torch_model")
    source = f"torch.export of {type(module).__name__}, torch {torch.__version__}"
    return Model(name=name, source=source, layers=tuple(reader.layers), samples="samples")


def _shared(module: Any) -> dict[str, str]:  # noqa: ANN401
    """The first name of each parameter: layers may share one."""
    names: dict[int, str] = {}
    every = module.named_parameters(remove_duplicate=False)
    return {name: names.setdefault(id(parameter), name) for name, parameter in every}


def _weights(
    exported: Any,  # noqa: ANN401
    first: dict[str, str],
) -> dict[str, tuple[str, int]]:
    """By the name of its node, which parameter it is and how many elements it has."""
    signature = exported.graph_signature
    sizes = {name: parameter.numel() for name, parameter in exported.named_parameters()}
    return {
        node: (first.get(parameter, parameter), sizes[parameter])
        for node, parameter in signature.inputs_to_parameters.items()
        if parameter in sizes
    }


def _shape(node: Any) -> tuple[int, ...]:  # noqa: ANN401
    return tuple(int(size) for size in node.meta["val"].shape)


def _tensors(node: Any) -> list[Any]:  # noqa: ANN401
    """The nodes that go into one and are tensors, those of lists too."""
    return [before for before in node.all_input_nodes if hasattr(before.meta.get("val"), "shape")]


@dataclass
class _Reader:
    """Goes through a graph, and keeps its layers."""

    batch: int
    weights: dict[str, tuple[str, int]]
    buffers: frozenset[str]
    """Nodes that are neither weights nor computed: running means of normalisations."""
    layers: list[ModelLayer] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    computed: set[str] = field(default_factory=set)
    """Nodes that come after a layer: what goes into them needs a gradient."""

    def read(self, node: Any) -> None:  # noqa: ANN401
        """Reads a node, which may be a layer."""
        if node.op != "call_function" or not hasattr(node.meta.get("val"), "shape"):
            if any(before.name in self.computed for before in node.all_input_nodes):
                self.computed.add(node.name)
            if node.op != "call_function":
                return
        used = [before for before in _tensors(node) if before.name in self.weights]
        gemms = self._gemms(node)
        if gemms or used:
            self._add(node, gemms, used)
        if gemms or used or any(b.name in self.computed for b in node.all_input_nodes):
            self.computed.add(node.name)

    def _add(self, node: Any, gemms: tuple[Gemm, ...], used: list[Any]) -> None:  # noqa: ANN401
        stored = self.weights.keys() | self.buffers
        activations = [before for before in _tensors(node) if before.name not in stored]
        fresh = dict(self.weights[weight.name] for weight in used)
        fresh = {name: size for name, size in fresh.items() if name not in self.seen}
        self.seen.update(fresh)
        outputs = node.meta["val"]
        outputs = outputs if isinstance(outputs, tuple | list) else (outputs,)
        elements = sum(math.prod(one.shape) for one in outputs if hasattr(one, "shape"))
        self.layers.append(
            ModelLayer(
                name=self._name(node, used),
                gemms=gemms,
                parameters=sum(fresh.values()),
                inputs=sum(math.prod(_shape(one)) for one in activations) // self.batch,
                outputs=int(elements) // self.batch,
                first=not any(one.name in self.computed for one in activations),
            )
        )

    def _name(self, node: Any, used: list[Any]) -> str:  # noqa: ANN401
        stack = node.meta.get("nn_module_stack") or {}
        paths = [path for path, _ in stack.values() if path]
        name = paths[-1] if paths else (used[0].name if used else node.name)
        taken = sum(
            layer.name == name or layer.name.startswith(f"{name}#") for layer in self.layers
        )
        return f"{name}#{taken + 1}" if taken else name

    def _gemms(self, node: Any) -> tuple[Gemm, ...]:  # noqa: ANN401
        """Its products for one sample; none where it has none."""
        name = str(node.target).split(".")[1] if "." in str(node.target) else str(node.target)
        make = getattr(self, f"_{_KINDS.get(name, '')}", None) if name in _KINDS else None
        return make(node) if make else ()

    def _convolution(self, node: Any) -> tuple[Gemm, ...]:  # noqa: ANN401
        weight, out = _shape(node.args[1]), _shape(node)
        pixels = math.prod(out[2:]) * out[0] // self.batch
        return (Gemm(m=pixels, n=weight[0], k=math.prod(weight[1:])),)

    def _linear(self, node: Any) -> tuple[Gemm, ...]:  # noqa: ANN401
        inputs, weight = _shape(node.args[0]), _shape(node.args[1])
        rows = math.prod(inputs[:-1]) // self.batch
        return (Gemm(m=max(rows, 1), n=weight[0], k=weight[1]),)

    def _product(self, node: Any) -> tuple[Gemm, ...]:  # noqa: ANN401
        """mm, bmm, matmul; addmm has what is added first."""
        first, second = node.args[-2:] if "addmm" in str(node.target) else node.args[:2]
        out = _shape(node)
        rows = max(math.prod(out[:-1]) // self.batch, 1)
        known = second.name in self.weights or first.name in self.weights
        return (Gemm(m=rows, n=out[-1], k=_shape(first)[-1], weights=known),)

    def _attention(self, node: Any) -> tuple[Gemm, ...]:  # noqa: ANN401
        """Scores, and sums of values: for each head queries x keys."""
        query, key, value = (_shape(one) for one in node.args[:3])
        rows = math.prod(query[:-1]) // self.batch
        scores = Gemm(m=rows, n=key[-2], k=query[-1], weights=False)
        return (scores, Gemm(m=rows, n=value[-1], k=key[-2], weights=False))

    def _recurrent(self, node: Any) -> tuple[Gemm, ...]:  # noqa: ANN401
        """Each matrix of weights once in every time step."""
        inputs = _shape(node.args[0])
        steps = math.prod(inputs[:-1]) // self.batch
        matrices = [
            _shape(one)
            for one in _tensors(node)
            if one.name in self.weights and len(_shape(one)) == 2
        ]
        return tuple(Gemm(m=steps, n=rows, k=terms, steps=steps) for rows, terms in matrices)


_KINDS = {
    "conv1d": "convolution",
    "conv2d": "convolution",
    "conv3d": "convolution",
    "convolution": "convolution",
    "linear": "linear",
    "mm": "product",
    "addmm": "product",
    "bmm": "product",
    "matmul": "product",
    "scaled_dot_product_attention": "attention",
    "lstm": "recurrent",
    "gru": "recurrent",
    "rnn_tanh": "recurrent",
    "rnn_relu": "recurrent",
}
"""How the operations of a graph are read, by their names in aten."""
