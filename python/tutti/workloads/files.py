"""Model files: the layers of user-defined models.

A file is a JSON object with `name`, `samples`, `source` and `layers`. Layers have `name`,
`parameters`, `inputs`, `outputs`, `gemms`, `first` and `experts`; gemms have `m`, `n`, `k` and
optionally `weights` and `steps`. :class:`tutti.workloads.model.ModelLayer` documents the keys.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from pydantic import Field

from tutti.base.files import limits
from tutti.base.files.mistakes import mistake
from tutti.base.files.reader import read_json
from tutti.base.files.tables import Count, Positive, Table
from tutti.base.files.validate import validated
from tutti.workloads.model import Gemm, Model, ModelLayer

if TYPE_CHECKING:
    from pathlib import Path


class _Gemm(Table):
    m: Positive
    n: Positive
    k: Positive
    weights: bool = True
    steps: Positive = 1


class _Layer(Table):
    name: str = Field(min_length=1)
    gemms: list[_Gemm] = Field(default_factory=list)
    parameters: Count
    inputs: Count
    outputs: Count
    first: bool = False
    experts: Positive = 1


class _Model(Table):
    name: str = Field(min_length=1)
    samples: str = "samples"
    source: str = ""
    layers: list[_Layer] = Field(min_length=1)


def read_model(path: Path) -> Model:
    """Reads a model file.

    Raises:
        ConfigError: The file cannot be read, or is not a model.
    """
    expected = "a model, as `tutti workload from-torch` writes it (JSON)"
    tables = read_json(path, expected, limits.Bytes.LOG)
    if "architectures" in tables and "layers" not in tables:
        raise mistake("is a config.json of Hugging Face", source=str(path), expected=expected,
                      hint=f"hf:{path} reads it")  # fmt: skip
    given = validated(_Model, tables, source=str(path))
    layers = (
        ModelLayer(
            name=layer.name,
            gemms=tuple(Gemm(**gemm.model_dump()) for gemm in layer.gemms),
            parameters=layer.parameters,
            inputs=layer.inputs,
            outputs=layer.outputs,
            first=layer.first,
            experts=layer.experts,
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
    layers = [_layer(layer) for layer in model.layers]
    table = _Model(name=model.name, samples=model.samples, source=model.source, layers=layers)
    path.write_text(table.model_dump_json(indent=1, exclude_defaults=True) + "\n", encoding="utf-8")
    return path


def _layer(layer: ModelLayer) -> _Layer:
    known = set(_Gemm.model_fields)
    return _Layer(
        name=layer.name,
        gemms=[
            _Gemm(**{key: value for key, value in asdict(gemm).items() if key in known})
            for gemm in layer.gemms
        ],
        parameters=layer.parameters,
        inputs=layer.inputs,
        outputs=layer.outputs,
        first=layer.first,
        experts=layer.experts,
    )
