"""Models in files of their own: the layers of a model that tutti does not know.

JSON, an object with `name`, `samples`, `source` and `layers`; each layer has `name`, `parameters`,
`inputs`, `outputs`, `gemms` (each with `m`, `n`, `k`, and where they differ from the usual
`weights` and `steps`) and `first`. What each means: :class:`tutti.workload.model.ModelLayer`.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tutti.errors import WorkloadError
from tutti.workload.model import Gemm, Model, ModelLayer

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_model", "write_model"]

_Count = Annotated[int, Field(strict=True, ge=0, lt=1 << 60)]
_Positive = Annotated[int, Field(strict=True, ge=1, lt=1 << 60)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Gemm(_Table):
    m: _Positive
    n: _Positive
    k: _Positive
    weights: bool = True
    steps: _Positive = 1


class _Layer(_Table):
    name: Annotated[str, Field(min_length=1)]
    gemms: tuple[_Gemm, ...] = ()
    parameters: _Count
    inputs: _Count
    outputs: _Count
    first: bool = False


class _Model(_Table):
    name: Annotated[str, Field(min_length=1)]
    samples: str = "samples"
    source: str = ""
    layers: Annotated[tuple[_Layer, ...], Field(min_length=1)]


def read_model(path: Path) -> Model:
    """The model of a file.

    Raises:
        WorkloadError: It cannot be read, or what stands in it is no model.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        message = f"cannot read the model {path}: {error}"
        raise WorkloadError(message, kind="model_file") from None
    try:
        given = _Model.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"]) or "the file"
        message = f"{path}: {key}: {first['msg']}"
        raise WorkloadError(message, kind="model_file", fields={"key": key}) from None
    layers = (
        ModelLayer(
            name=layer.name,
            gemms=tuple(Gemm(**gemm.model_dump()) for gemm in layer.gemms),
            parameters=layer.parameters,
            inputs=layer.inputs,
            outputs=layer.outputs,
            first=layer.first,
        )
        for layer in given.layers
    )
    source = given.source or str(path)
    return Model(name=given.name, source=source, layers=tuple(layers), samples=given.samples)


def write_model(path: Path, model: Model) -> Path:
    """Writes a model as a file that :func:`read_model` reads.

    Returns:
        The path written.
    """
    layers = tuple(_layer(layer) for layer in model.layers)
    table = _Model(name=model.name, samples=model.samples, source=model.source, layers=layers)
    path.write_text(table.model_dump_json(indent=1, exclude_defaults=True) + "\n", encoding="utf-8")
    return path


def _layer(layer: ModelLayer) -> _Layer:
    known = set(_Gemm.model_fields)
    return _Layer(
        name=layer.name,
        gemms=tuple(
            _Gemm(**{key: value for key, value in asdict(gemm).items() if key in known})
            for gemm in layer.gemms
        ),
        parameters=layer.parameters,
        inputs=layer.inputs,
        outputs=layer.outputs,
        first=layer.first,
    )
