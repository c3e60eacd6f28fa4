"""Reads the files of a RapidChiplet design: chiplets, placement, topology, packaging and others.

A design file names the others relative to the folder of RapidChiplet, from which its commands are
run: they are searched in the folder of the design file, then in the two folders above it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import BaseModel

from tutti.base.files import limits
from tutti.base.files.mistakes import did_you_mean, mistake
from tutti.base.files.reader import parse_json, read_json, read_text
from tutti.base.files.validate import models_in, validated
from tutti.formats.rapidchiplet.tables import (
    NOT_HONOURED,
    Chiplet,
    Design,
    Packaging,
    Placement,
    Technology,
    Topology,
    Trace,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_M = TypeVar("_M", bound=BaseModel)
EXPECTED: Final = "a design file of RapidChiplet (JSON)"
_LISTED: Final = 20
_NONE: Final = "none"
"""The name of a file that a design does not have."""


@dataclass(kw_only=True)
class DesignFiles:
    """The content of the files of a design.

    Attributes:
        source: The design file.
        design: Its content.
        paths: The path of each file, by the key of the design.
        technologies: Technologies by name.
        chiplets: Types of chiplets by name.
        placement: Chiplets and interposer routers.
        topology: Links.
        packaging: The package.
        unknown: Keys that RapidChiplet does not have, with their places.
        not_honoured: Keys without effect on the network.
    """

    source: str
    design: Design
    paths: dict[str, Path]
    technologies: dict[str, Technology]
    chiplets: dict[str, Chiplet]
    placement: Placement
    topology: Topology
    packaging: Packaging
    unknown: list[str] = field(default_factory=list)
    not_honoured: set[str] = field(default_factory=set)

    def chiplet(self, number: int) -> Chiplet:
        """Returns the type of a placed chiplet."""
        return self.chiplets[self.placement.chiplets[number].name]

    def has(self, key: str) -> bool:
        """Returns whether the design names a file."""
        return key in self.paths

    def place(self, key: str) -> str:
        """Returns the file that a key of the design names."""
        return str(self.paths.get(key, self.source))

    def table(self, key: str) -> dict[str, Any]:
        """Returns the JSON object of a file.

        Raises:
            ConfigError: The design has no such file, or it cannot be read.
        """
        if key not in self.paths:
            raise mistake(f"`{key}` is missing", source=self.source, key=key,
                          expected="the name of a file")  # fmt: skip
        return _object(self.paths[key], key)

    def trace(self) -> Trace:
        """Returns the packets of the trace.

        Raises:
            ConfigError: The design has no trace, or it is invalid.
        """
        if not self.has("trace"):
            raise mistake("`trace` is missing", source=self.source, key="trace",
                          expected="the name of a file, for mode = trace")  # fmt: skip
        raw = _list(self.paths["trace"], "trace", "packets")
        return validated(Trace, raw, source=self.place("trace"))


def read_design(path: Path) -> DesignFiles:
    """Reads a design and the files that state its network.

    Args:
        path: The design file.

    Raises:
        ConfigError: A file is missing or invalid, or names what others do not define.
    """
    source = str(path)
    unknown: list[str] = []
    raw = _known(Design, read_json(path, EXPECTED), source, unknown)
    design = validated(Design, raw, source=source)
    paths = _paths(path, design)
    for key in ("technologies", "chiplets", "placement", "topology", "packaging", "routing_table"):
        if key not in paths:
            raise mistake("names no file", source=source, key=key,
                          expected="the name of a file")  # fmt: skip

    one = _Reader(paths, unknown)
    files = DesignFiles(
        source=source,
        design=design,
        paths=paths,
        technologies=one.each("technologies", Technology),
        chiplets=one.each("chiplets", Chiplet),
        placement=one.table("placement", Placement),
        topology=one.table("topology", Topology, items="links"),
        packaging=one.table("packaging", Packaging),
        unknown=unknown,
    )
    files.not_honoured.update(_not_honoured(files))
    _check_names(files)
    _check_ends(files)
    return files


@dataclass
class _Reader:
    """Reads files of a design, and appends unknown keys to a list."""

    paths: dict[str, Path]
    unknown: list[str]

    def table(self, key: str, model: type[_M], *, items: str = "") -> _M:
        """Returns an object; with `items`, a list as the only value of an object."""
        path = self.paths[key]
        raw = _list(path, key, items) if items else _object(path, key)
        return validated(model, _known(model, raw, str(path), self.unknown), source=str(path))

    def each(self, key: str, model: type[_M]) -> dict[str, _M]:
        """Returns objects by name."""
        found = {}
        for name, value in _object(self.paths[key], key).items():
            place = f"{self.paths[key]}: {name}"
            table = value if isinstance(value, dict) else {}
            found[name] = validated(model, _known(model, table, place, self.unknown), source=place)
        return found


def refuse_unknown(files: DesignFiles) -> None:
    """Rejects keys that RapidChiplet does not have, all at once.

    Raises:
        ConfigError: There are some.
    """
    if not files.unknown:
        return
    lines = files.unknown[:_LISTED]
    if len(files.unknown) > _LISTED:
        lines.append(f"and {len(files.unknown) - _LISTED} more")
    raise mistake(
        "has keys that RapidChiplet does not have:\n  " + "\n  ".join(lines),
        source=files.source, expected="the keys of RapidChiplet's examples",
        hint="--lenient skips them",
    )  # fmt: skip


def _paths(path: Path, design: Design) -> dict[str, Path]:
    """Returns the path of each file that a design names."""
    folders = (path.parent, path.parent.parent, path.parent.parent.parent)
    paths = {}
    for key, name in design.model_dump(exclude={"design_name"}).items():
        if not name or name == _NONE:
            continue
        candidates = [folder / name for folder in folders]
        try:
            found = next((each for each in candidates if each.is_file()), None)
        except (OSError, ValueError):
            found = None
        if found is None:
            raise mistake(
                f"there is no file `{name[:80]}`", source=str(path), key=key,
                expected="a file, relative to this folder or to one of the two folders above it",
            )  # fmt: skip
        paths[key] = found
    return paths


def _expected(key: str) -> str:
    return f"the {key.replace('_', ' ')} of RapidChiplet (JSON)"


def _object(path: Path, key: str) -> dict[str, Any]:
    return read_json(path, _expected(key), limits.Bytes.TABLE)


def _list(path: Path, key: str, name: str) -> dict[str, Any]:
    """Returns a JSON list as the only value of a table."""
    text = read_text(path, limits.Bytes.TABLE, _expected(key))

    def parse(text: str, **options: Any) -> dict[str, Any]:  # noqa: ANN401 - those of json.loads
        return {name: json.loads(text, **options)}

    return parse_json(text, source=str(path), expected=_expected(key), parse=parse)


def _known(
    model: type[BaseModel], raw: Mapping[str, Any], where: str, unknown: list[str]
) -> dict[str, Any]:
    """Returns a table without unknown keys, which are appended to a list with their places."""
    found: dict[str, Any] = {}
    for key, value in raw.items():
        info = model.model_fields.get(key)
        if info is None:
            close = did_you_mean(key, model.model_fields)
            unknown.append(f"{where}: {key}"[:120] + (f" ({close})" if close else ""))
            continue
        inner = models_in(info.annotation)
        if inner and isinstance(value, dict):
            value = _known(inner[0], value, f"{where}: {key}", unknown)  # noqa: PLW2901
        elif inner and isinstance(value, list):
            value = [_known(inner[0], each, f"{where}: {key}[{place}]", unknown)  # noqa: PLW2901
                     if isinstance(each, dict) else each
                     for place, each in enumerate(value)]  # fmt: skip
        found[key] = value
    return found


def _not_honoured(files: DesignFiles) -> set[str]:
    given = {key for each in files.technologies.values() for key in each.model_fields_set}
    unused = {key for key in NOT_HONOURED[Technology] if key in given}
    return unused | (files.packaging.model_fields_set & set(NOT_HONOURED[Packaging]))


def _check_names(files: DesignFiles) -> None:
    """Rejects chiplets and technologies that are not defined."""
    where = files.place("placement")
    for number, placed in enumerate(files.placement.chiplets):
        if placed.name not in files.chiplets:
            raise mistake(f"unknown chiplet `{placed.name[:60]}`", source=where,
                          key=f"chiplets[{number}].name",
                          expected=f"one of {', '.join(files.chiplets)}"[:200])  # fmt: skip
        technology = files.chiplet(number).technology
        if technology not in files.technologies:
            raise mistake(f"unknown technology `{technology[:60]}`", source=files.place("chiplets"),
                          key=f"{placed.name}.technology",
                          expected=f"one of {', '.join(files.technologies)}"[:200])  # fmt: skip


def _check_ends(files: DesignFiles) -> None:
    """Rejects links whose ends do not exist, or have another link."""
    counts = {"chiplet": len(files.placement.chiplets),
              "irouter": len(files.placement.interposer_routers)}  # fmt: skip
    used: set[tuple[str, int, int]] = set()
    for number, link in enumerate(files.topology.links):
        for name, end in (("ep1", link.ep1), ("ep2", link.ep2)):
            key, problem = f"[{number}].{name}", ""
            if end.outer_id >= counts[end.type]:
                problem = f"there is no {end.type} {end.outer_id}"
            elif end.inner_id >= (ports := _ports(files, end.type, end.outer_id)):
                problem = f"{end.type} {end.outer_id} has {ports} ends of links"
            elif (end.type, end.outer_id, end.inner_id) in used:
                problem = f"end {end.inner_id} of {end.type} {end.outer_id} has a second link"
            if problem:
                raise mistake(problem, source=files.place("topology"), key=key,
                              expected="a chiplet and its PHY, or an irouter and its port, "
                              "each of one link")  # fmt: skip
            used.add((end.type, end.outer_id, end.inner_id))


def _ports(files: DesignFiles, kind: str, number: int) -> int:
    if kind == "chiplet":
        return len(files.chiplet(number).phys)
    return files.placement.interposer_routers[number].ports
