"""The assumptions of a report: each number of the platform with its value and source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tutti import _core
from tutti.base.errors import UnitError

NOT_STATED = "not stated"
_GROUPS = ("model", "models", "parameters", "compute")


def platform_facts(platform: object) -> list[dict[str, str]]:
    """Returns the platform as rows of name, value and source.

    A number is a plain value or a mapping with `value`, `source` and `inferred`. Numbers are nested
    to any depth in `model`, `models`, `parameters` or `compute`.

    Args:
        platform: An object with `describe()`, a pydantic model, or a mapping.
    """
    described = _mapping(platform)
    source = str(described.get("source") or NOT_STATED)
    rows = [
        {"name": key, "value": str(described[key]), "source": source}
        for key in ("name", "model", "summary")
        if isinstance(described.get(key), str) and described[key]
    ]
    for group in _GROUPS:
        if isinstance(described.get(group), Mapping):
            rows += _numbers("compute" if group == "compute" else "", described[group], source)
    return rows or [{"name": "platform", "value": str(platform), "source": NOT_STATED}]


def ps_per_byte(platform: object) -> float | None:
    """Returns the time per byte of a message in picoseconds; None if the platform has none."""
    for row in platform_facts(platform):
        if row["name"].split()[-1] in ("beta", "G"):
            try:
                return _core.TimePerByte(row["value"]).ps_per_byte
            except UnitError:
                return None
    return None


def _numbers(name: str, value: object, source: str) -> Iterator[dict[str, str]]:
    if value is None or value == "":
        return
    if not isinstance(value, Mapping):
        yield {"name": name, "value": str(value), "source": source}
    elif "value" in value:
        stated = str(value.get("source") or source)
        mark = "Inferred. " if value.get("inferred") else ""
        yield {"name": name, "value": str(value["value"]), "source": mark + stated}
    else:
        for key, part in value.items():
            shown = "model" if key == "kind" else key
            yield from _numbers(f"{name} {shown}".strip(), part, source)


def _mapping(platform: object) -> Mapping[str, Any]:
    if callable(describe := getattr(platform, "describe", None)):
        platform = describe()
    elif callable(dump := getattr(platform, "model_dump", None)):
        platform = dump(by_alias=True)
    return platform if isinstance(platform, Mapping) else {}
