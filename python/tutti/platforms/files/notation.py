"""Platforms as one line of text: a family of topologies, then keys of the platform's tables.

``torus:4x4x4,rate=25GB/s,latency=500ns`` is the platform with this topology and these links. Keys
have the names of platform files. Absent values get a default, whose source is `DEFAULT`.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from tutti.base.declared.groups import LocalCosts
from tutti.base.declared.models import MODELS
from tutti.base.errors import TuttiError
from tutti.base.files import key_paths as paths
from tutti.base.files.mistakes import known_name, mistake
from tutti.base.files.overrides import value_of
from tutti.networks.flit.files.tables import LinksTable
from tutti.platforms.files.platform_file import TopologyTable, numbers
from tutti.topologies import link_classes
from tutti.topologies.notation import split

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tutti.platforms.files.platform_file import RawPlatform

DEFAULT = "default of the notation"
"""The source of values that the notation does not give."""

_LINK = {"rate": "50 GB/s", "latency": "500 ns"}
_MODEL = {"kind": "pipelining_postal", "alpha_p": "400 ns", "alpha_r": "100 ns"}


def notation_tables(text: str) -> dict[str, Any]:
    """Returns the tables of the platform that a notation describes.

    Raises:
        ConfigError: The family or a key is unknown, or a key has no value.
    """
    listed = f"{', '.join(_shared())}, links[CLASS].KEY, kind, or a parameter of that network model"
    build, given = split(text, _first_parts(), source=text, listed=listed)
    values = {key: value_of(value) for key, value in given.items()}
    kind = str(values.pop("kind", _MODEL["kind"]))
    known = _places(kind, source=text)
    tables = _base(text, build, kind, per_class=any(key.startswith("links[") for key in values))
    for key, value in values.items():
        tables = _with_value(tables, key, value, known, build, source=text)
    return tables


def defaults_of(platform: RawPlatform) -> str:
    """Returns the remark on the values that a notation does not give; "" if there are none."""
    several = platform.topology is not None and len(platform.topology.links) > 1
    cut = "topology." if several else "topology.links[0]."
    found = [
        f"{key.removeprefix(cut).removeprefix(f'models.{next(iter(platform.models))}.')} {value}"
        for key, value, source, _ in numbers(platform)
        if source == DEFAULT
    ]
    return f"defaults of {platform.name}: {'; '.join(found)}" if found else ""


@functools.cache
def _models() -> dict[str, list[str]]:
    """Returns the parameters of each network model, without local costs."""
    local = LocalCosts.model_fields.keys() | {"kind"}
    return {
        str(model.model_fields["kind"].default): [
            info.alias or name for name, info in model.model_fields.items() if name not in local
        ]
        for model in MODELS
    }


@functools.cache
def _first_parts() -> tuple[str, ...]:
    """Returns the keys of a notation, of all network models."""
    of_models = dict.fromkeys(name for names in _models().values() for name in names)
    return (*_shared(), "links", "kind", *of_models)


@functools.cache
def _shared() -> dict[str, paths.Path]:
    """Returns the places of keys that every network model has."""
    local = [info.alias or name for name, info in LocalCosts.model_fields.items()]
    topology = TopologyTable.model_fields.keys() - {"build", "file", "links", "paths"}
    return (
        {key: ("topology", "links", key) for key in LinksTable.model_fields}
        | {key: ("topology", key) for key in TopologyTable.model_fields if key in topology}
        | {key: ("compute", key) for key in local}
        | {"name": ("name",)}
    )


def _places(kind: str, *, source: str) -> dict[str, paths.Path]:
    """Returns the place of each key in the tables of a platform.

    Raises:
        ConfigError: There is no such network model.
    """
    models = _models()
    known_name(kind, models, what="network model", source=source, key="kind")
    return _shared() | {key: ("models", kind, key) for key in models[kind]}


def _base(text: str, build: str, kind: str, *, per_class: bool) -> dict[str, Any]:
    """Returns the tables without the keys of the notation.

    Args:
        text: The notation, which is the name.
        build: The topology.
        kind: The network model.
        per_class: Whether each link class has a table.
    """
    model = {"kind": kind}
    if kind == _MODEL["kind"]:
        model = {key: value if key == "kind" else _default(value) for key, value in _MODEL.items()}
    try:
        classes = len(link_classes(build)) if per_class else 1
    except TuttiError as error:
        raise mistake(error.problem, source=text, hint=error.hint) from None
    link = {key: _default(value) for key, value in _LINK.items()}
    return {
        "name": text,
        "models": {kind: model},
        "topology": {"build": build, "links": [dict(link) for _ in range(classes)]},
    }


def _default(value: str) -> Any:  # noqa: ANN401 - a table of a file
    return {"value": value, "source": DEFAULT, "inferred": True}


def _with_value(
    tables: dict[str, Any],
    key: str,
    value: object,
    known: Mapping[str, paths.Path],
    build: str,
    *,
    source: str,
) -> dict[str, Any]:
    """Returns the tables with the value of a key; a key of links without index sets all links."""
    path = paths.parse(key) or (key,)
    head, rest = str(path[0]), path[1:]
    if head == "links":
        places: list[paths.Path] = [("topology", *path)]
    elif head in known:
        place = known[head]
        of_links = place[:2] == ("topology", "links")
        count = len(tables["topology"]["links"]) if of_links else 1
        places = [
            (*place[:2], index, head, *rest) if of_links else (*place, *rest)
            for index in range(count)
        ]
    else:
        kinds = [kind for kind, names in _models().items() if head in names]
        problem = f"`{head}` is a parameter of other network models"
        hint = f"give the model, too, such as kind={kinds[-1]}"
        raise mistake(problem, source=source, key=key, expected="kind=MODEL", hint=hint)
    try:
        for place in places:
            tables = paths.with_value(tables, place, value)
    except paths.NoSuchPlaceError as error:
        classes = ", ".join(f"links[{n}] {name}" for n, name in enumerate(link_classes(build)))
        raise mistake(
            f"does not exist: {paths.written(error.at)} {error.problem}",
            source=source,
            key=key,
            expected=classes if head == "links" else "",
        ) from None
    return tables
