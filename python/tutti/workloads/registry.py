"""The registry of models, one line each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti.workloads.errors import WorkloadError
from tutti.workloads.zoo import dlrm, gnmt, llm, resnet50, transformer, vgg16

if TYPE_CHECKING:
    from collections.abc import Callable

    from tutti.workloads.model import Model


@dataclass(frozen=True)
class WorkloadEntry:
    """A line of the registry.

    Attributes:
        name: The name in the notation ``name`` or ``name:argument``.
        argument: A description of the argument; empty without one.
        pattern: A regular expression of valid arguments.
        summary: A sentence for lists.
        build: Builds the model from a valid argument or None.
    """

    name: str
    argument: str
    pattern: str
    summary: str
    build: Callable[[str | None], Model]


_NUMBER = r"[1-9][0-9]{0,8}"
_SIZES = rf"(layers|hidden|tokens|vocabulary|experts)={_NUMBER}"

_SHAPE = rf"(tokens={_NUMBER}|mtp=[0-4])"

_DECODERS = tuple(
    WorkloadEntry(name, "tokens=N,mtp=N", rf"{_SHAPE}(,{_SHAPE})*", found.summary, llm.build(name))
    for name, found in llm.DECODERS.items()
)

_REGISTRY = (
    WorkloadEntry("dlrm", "LOOKUPS", _NUMBER, "Recommendation (MLPerf).", dlrm.build_large),
    WorkloadEntry("dlrm_small", "", "", "Recommendation (ASTRA-sim).", dlrm.build_small),
    WorkloadEntry(
        "gnmt",
        "TOKENS or TOKENS,unrolled",
        rf"{_NUMBER}(,unrolled)?",
        "Recurrent translation (MLPerf).",
        gnmt.build,
    ),
    WorkloadEntry(
        "gpt",
        "layers=N,hidden=N,tokens=N,vocabulary=N,experts=N",
        rf"{_SIZES}(,{_SIZES})*",
        "Decoder of any size.",
        transformer.build_gpt,
    ),
    WorkloadEntry("resnet50", "v1.5 or v1", r"v1(\.5)?", "Images, 54 layers.", resnet50.build),
    WorkloadEntry(
        "transformer", "TOKENS", _NUMBER, "Translation, base model.", transformer.build_base
    ),
    WorkloadEntry("vgg16", "", "", "Images, 16 layers.", vgg16.build),
    *_DECODERS,
)


def models() -> tuple[WorkloadEntry, ...]:
    """Returns all models, sorted by name."""
    return tuple(sorted(_REGISTRY, key=lambda entry: entry.name))


def build(notation: str) -> Model:
    """Builds the model of a notation, ``name`` or ``name:argument``.

    Raises:
        WorkloadError: The model is unknown, or its argument is invalid.
    """
    name, colon, argument = notation.partition(":")
    entry = next((entry for entry in _REGISTRY if entry.name == name), None)
    if entry is None:
        known = ", ".join(entry.name for entry in _REGISTRY)
        message = f"unknown model `{name}`: expected one of {known}"
        fields = {"name": name, "known": known}
        raise WorkloadError(message, kind="unknown_model", fields=fields)
    if not colon:
        return entry.build(None)
    if not entry.argument or not re.fullmatch(entry.pattern, argument):
        expected = f"`{name}:{entry.argument}`" if entry.argument else f"`{name}` alone"
        message = f"invalid model `{notation}`: expected {expected}"
        raise WorkloadError(message, kind="model_argument", fields={"name": name})
    return entry.build(argument)
