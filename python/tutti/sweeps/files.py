"""Sweep files: an experiment, a training step or a network, and the keys of several values.

Every point of a sweep is one of these files, validated by the same code; errors name the point.
`[sweep.grid]` combines all values of all keys, `[sweep.zip]` combines the values at equal positions
of lists of equal length, and `[[sweep.cases]]` lists cases. Several of the three are combined as in
a grid.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from tutti.base.files import key_paths as paths
from tutti.base.files.kinds import validated_file
from tutti.base.files.mistakes import did_you_mean, mistake, shown
from tutti.base.files.overrides import in_a_table
from tutti.base.files.reader import read_toml
from tutti.base.files.tables import Table, kind_of
from tutti.collectives.files.resolver import Resolver
from tutti.collectives.files.tables import RawExperiment
from tutti.platforms.files.presets import platform_tables
from tutti.topologies.table import with_link_tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pydantic import BaseModel

    from tutti.collectives.files.resolve import Experiment
    from tutti.training.files.step_file import Training

Kind = Literal["experiment", "training", "noc"]
"""What the points of a sweep are, by the key of the sweep file."""

_MOST_POINTS = 100_000
"""All points are validated before the first one runs."""

_LONGEST_LABEL = 100

_HINT = "`tutti schema sweep` prints the keys of sweep files"

_NAMES: dict[Kind, str] = {
    "experiment": "an experiment", "training": "a training step", "noc": "a network",
}  # fmt: skip
"""The kinds of points, for messages."""

_SIGNS: dict[str, Kind] = {
    "collective": "experiment", "configurations": "training", "router": "noc", "traffic": "noc",
}  # fmt: skip
"""Keys that only files of one kind have."""

_NOT_SWEPT = {"title": "it does not affect results", "output": "a sweep has one output folder"}

Values = Annotated[list[Any], Field(min_length=1)]


class SweptKeys(Table):
    """Keys and their values; a key is a quoted path, such as `"platform.compute.gamma"`."""

    grid: dict[str, Values] = Field(
        default_factory=dict, description="Lists of values by key; all combinations are run."
    )
    zip: dict[str, Values] = Field(
        default_factory=dict,
        description="Lists of equal length by key; values at equal positions are combined.",
    )
    cases: list[Annotated[dict[str, Any], Field(min_length=1)]] = Field(
        default_factory=list, description="A list of cases, each with values by key."
    )


_Base = Annotated[
    Annotated[str, Tag("value")] | Annotated[dict[str, Any], Tag("table")], Discriminator(kind_of)
]


class RawSweep(Table):
    """An experiment, a training step or a network, run for several values of its keys."""

    title: str = Field(default="", description="Title of reports.")
    experiment: _Base | None = Field(
        default=None,
        description="The path of an experiment file, or a table of its keys. Swept keys may be "
        "absent. Relative paths in the experiment, and among the swept values, start from the "
        "folder of its file.",
    )
    training: _Base | None = Field(
        default=None,
        description="A training step instead of an experiment: the path of its file, or a "
        "table of its keys.",
    )
    noc: _Base | None = Field(
        default=None,
        description="A network instead of an experiment: the path of its file, or a table of its "
        "keys. Each point is a design, with its saturation load, latency, area and energy. The "
        "network has routers (`[topology]`) or single-cycle multi-hop links (`[mesh]`).",
    )
    tolerance: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="Tolerance of the saturation loads of networks, in flits per node and cycle, "
        "or in the unit of the first rate of a mesh; 2 % of the ideal capacity of each if absent.",
    )
    sweep: SweptKeys = Field(description="The swept keys.")
    output: str = Field(
        default="out/sweep",
        min_length=1,
        description="The folder for results, relative to the working directory.",
    )


@dataclass(frozen=True)
class Template:
    """Builds the experiment, training step or network of a point; workers receive a copy.

    Attributes:
        base: The keys that all points share.
        source: The file, for messages.
        folder: The base of relative paths.
        total: The number of points.
        kind: What the points are.
        tolerance: Tolerance of the saturation loads of networks; None for the default.
    """

    base: Mapping[str, Any]
    source: str
    folder: str
    total: int
    kind: Kind = "experiment"
    tolerance: float | None = None

    def experiment(self, number: int, values: Mapping[str, Any]) -> Experiment:
        """Returns the experiment of a point.

        Args:
            number: The number of the point, from 1.
            values: The values of the point, by key path.

        Raises:
            ConfigError: The experiment is invalid; the message names the point.
        """
        tables, source = self.tables(number, values)
        return self._resolver.resolve(tables, source=source)

    def training(self, number: int, values: Mapping[str, Any]) -> Training:
        """Returns the training step of a point; see :meth:`experiment`.

        Raises:
            ConfigError: The training step is invalid; the message names the point.
        """
        from tutti.training.files.step_file import resolve_training

        tables, source = self.tables(number, values)
        return resolve_training(tables, source=source, folder=Path(self.folder))

    @property
    def is_smart(self) -> bool:
        """Whether the points are single-cycle multi-hop meshes."""
        return self.kind == "noc" and "mesh" in self.base

    def tables(self, number: int, values: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """Returns the tables of a point, and their name in messages.

        Raises:
            ConfigError: The path of a key does not exist; the message names the point.
        """
        source = f"{self.source}, {point_label(number, self.total, values)}"
        tables: dict[str, Any] = dict(self.base)
        # Set the platform before its keys.
        for key in sorted(values, key=len):
            tables = self._put(tables, key, values[key], source)
        return tables, source

    def _put(self, tables: dict[str, Any], key: str, value: object, source: str) -> dict[str, Any]:
        path = paths.parse(key) or ()
        platform = tables.get("platform")
        if path[0] == "platform" and len(path) > 1 and isinstance(platform, str):
            tables = {**tables, "platform": self._platform(platform, source)}
        if path[:2] == ("platform", "models"):
            _refuse_unknown_model(tables, path, source)
        try:
            tables = with_link_tables(tables, [key])
            changed: dict[str, Any] = paths.with_value(tables, path, value)
        except paths.NoSuchPlaceError as error:
            raise mistake(
                f"does not exist: {paths.written(error.at)} {error.problem}",
                source=source,
                key=key,
                expected=f"the path of a key of the {self.what}",
            ) from None
        return changed

    @property
    def what(self) -> str:
        """What the points are, for messages."""
        return _NAMES[self.kind].partition(" ")[2]

    def _platform(self, name: str, source: str) -> dict[str, Any]:
        if name not in self._platforms:
            self._platforms[name] = platform_tables(name, folder=Path(self.folder), source=source)
        return self._platforms[name]

    @cached_property
    def _platforms(self) -> dict[str, dict[str, Any]]:
        return {}

    @cached_property
    def _resolver(self) -> Resolver:
        return Resolver(Path(self.folder))

    def __getstate__(self) -> dict[str, Any]:
        names = {"base", "source", "folder", "total", "kind", "tolerance"}
        return {name: value for name, value in self.__dict__.items() if name in names}


@dataclass(frozen=True)
class Sweep:
    """A resolved sweep.

    Attributes:
        source: The file, for messages.
        title: Title of reports.
        keys: The swept key paths.
        points: The values of each point, by key path.
        template: Builds the experiment of a point.
        output: The folder for results.
    """

    source: str
    title: str
    keys: tuple[str, ...]
    points: tuple[Mapping[str, Any], ...]
    template: Template
    output: Path = field(default=Path("out/sweep"))

    def experiments(self) -> Iterator[Experiment]:
        """Yields the experiment of each point, in order.

        Raises:
            ConfigError: An experiment is invalid; the message names the point.
        """
        for number, values in enumerate(self.points, 1):
            yield self.template.experiment(number, values)

    def trainings(self) -> Iterator[Training]:
        """Yields the training step of each point, in order.

        Raises:
            ConfigError: A training step is invalid; the message names the point.
        """
        for number, values in enumerate(self.points, 1):
            yield self.template.training(number, values)

    def label(self, point: int) -> str:
        """Returns the name of a point in errors; `point` is an index of `points`."""
        return point_label(point + 1, len(self.points), self.points[point])


def load_sweep(path: Path, overrides: Mapping[str, Any] | None = None) -> Sweep:
    """Reads a sweep file; its points are validated when their experiments are built.

    Args:
        path: The file.
        overrides: Values of the command line that replace keys of the file.

    Raises:
        ConfigError: The file is invalid.
    """
    tables = read_toml(path, "a sweep file (TOML)", hint=_HINT) | dict(overrides or {})
    return resolve_sweep(tables, source=str(path), folder=path.parent)


def resolve_sweep(tables: Mapping[str, Any], *, source: str, folder: Path) -> Sweep:
    """Validates the tables of a sweep; relative paths in them start from `folder`.

    Raises:
        ConfigError: The tables are not a valid sweep.
    """
    _refuse_point(tables, source)
    raw = validated_file(RawSweep, tables, source=source)
    kind = _kind(raw, source)
    base, where = getattr(raw, kind), source
    if isinstance(base, str):
        named = folder / base
        base, folder, where = read_toml(named), named.parent, f"{source} ({base})"
    if raw.tolerance is not None and kind != "noc":
        problem = "only networks have a saturation load"
        raise mistake(problem, source=source, key="tolerance", expected="a sweep of a `noc`")
    keys = _keys(raw.sweep, source, kind, _model(kind, base))
    points = tuple(_points(raw.sweep, source))
    _refuse_twice(points, source)
    return Sweep(
        source=source,
        title=raw.title,
        keys=keys,
        points=points,
        template=Template(base, where, str(folder.absolute()), len(points), kind, raw.tolerance),
        output=Path(raw.output),
    )


def _refuse_point(tables: Mapping[str, Any], source: str) -> None:
    """Rejects the file of a point, which lists no swept keys."""
    for key, kind in _SIGNS.items():
        if key in tables and kind not in tables:
            problem = f"is {_NAMES[kind]}, not a sweep: it does not list the swept keys"
            hint = f'create a sweep file: {kind} = "{Path(source).name}", and a table [sweep.grid]'
            raise mistake(problem, source=source, hint=hint)


def _kind(raw: RawSweep, source: str) -> Kind:
    """Returns what the points are; a sweep has one kind."""
    given = [kind for kind in _NAMES if getattr(raw, kind) is not None]
    if len(given) == 1:
        return given[0]
    problem = "has no experiment"
    if given:
        *most, last = (_NAMES[kind] for kind in given)
        problem = f"has {'both ' if len(most) == 1 else ''}{', '.join(most)} and {last}"
    expected = "one of `experiment`, `training` and `noc`"
    raise mistake(problem, source=source, key="experiment", expected=expected)


def point_label(number: int, total: int, values: Mapping[str, Any]) -> str:
    """Returns the name of a point, such as ``point 3 of 12 (ranks = 4, sizes = "8 B")``."""
    text = ", ".join(f"{key} = {shown(value)}" for key, value in values.items())
    text = text if len(text) <= _LONGEST_LABEL else text[: _LONGEST_LABEL - 3] + "..."
    return f"point {number:,} of {total:,} ({text})"


def _keys(swept: SweptKeys, source: str, kind: Kind, model: type[BaseModel]) -> tuple[str, ...]:
    """Returns the swept keys, after checking that each appears in one table only."""
    in_cases = dict.fromkeys(key for case in swept.cases for key in case)
    known: dict[str, str] = {}
    for place, keys in (("cases", in_cases), ("zip", swept.zip), ("grid", swept.grid)):
        for key in keys:
            _check_key(key, f"sweep.{place}", source, kind, model)
            if key in known:
                problem = f"`{key}` is also swept in sweep.{known[key]}"
                expected = "each key in one of grid, zip and cases"
                raise mistake(problem, source=source, key=f"sweep.{place}", expected=expected)
            known[key] = place
    if not known:
        raise mistake(
            "has no swept keys",
            source=source,
            key="sweep",
            expected="at least one of grid, zip and cases",
            hint="for example [sweep.grid] with a line ranks = [4, 8, 16]",
        )
    return tuple(known)


def _check_key(key: str, place: str, source: str, kind: Kind, model: type[BaseModel]) -> None:
    path = paths.parse(key)
    if path is None:
        raise mistake(
            "is not a key path",
            source=source,
            key=place,
            value=shown(key),
            expected='names separated by dots, such as "platform.compute.gamma"',
        )
    known = [info.alias or name for name, info in model.model_fields.items()]
    first = str(path[0])
    if first in _NOT_SWEPT:
        raise mistake(f"`{key}` cannot be swept: {_NOT_SWEPT[first]}", source=source, key=place)
    if first not in known:
        raise mistake(
            f"{_NAMES[kind]} has no key `{first}`",
            source=source,
            key=f"{place}.{key}",
            expected=f"a path that starts with one of {', '.join(known)}",
            hint=_place_of(key, first, known, kind, model),
        )


def _place_of(
    key: str, first: str, known: Sequence[str], kind: Kind, model: type[BaseModel]
) -> str:
    """Returns a hint: the table that has a key, or the closest known key."""
    if kind != "noc" and first in {"models", "compute", "topology"}:
        return f'"platform.{key}"'
    return in_a_table(model, key) or did_you_mean(first, known)


def _model(kind: Kind, base: Mapping[str, Any]) -> type[BaseModel]:
    """Returns the model of the file of a point, which shares the keys of `base`."""
    if kind == "training":
        from tutti.training.files.tables import RawTraining

        return RawTraining
    if kind == "noc" and "mesh" in base:
        from tutti.networks.mesh.files import RawSmart

        return RawSmart
    if kind == "noc":
        from tutti.networks.flit.files.tables import RawNoc

        return RawNoc
    return RawExperiment


def _points(swept: SweptKeys, source: str) -> Iterator[Mapping[str, Any]]:
    """Yields the values of each point: cases outermost, then zip, then grid, last key innermost."""
    lengths = {key: len(values) for key, values in swept.zip.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{key} has {length}" for key, length in lengths.items())
        raise mistake(
            f"the lists differ in length: {listed}",
            source=source,
            key="sweep.zip",
            expected="lists of equal length",
            hint="[sweep.grid] runs all combinations",
        )
    zipped = min(lengths.values(), default=1)
    grid = math.prod(len(values) for values in swept.grid.values())
    total = max(len(swept.cases), 1) * zipped * grid
    if total > _MOST_POINTS:
        raise mistake(
            f"{total:,} points are too many",
            source=source,
            key="sweep",
            expected=f"at most {_MOST_POINTS:,}",
        )
    cases: Sequence[Mapping[str, Any]] = swept.cases or [{}]
    for case, index in itertools.product(cases, range(zipped)):
        paired = {key: values[index] for key, values in swept.zip.items()}
        for chosen in itertools.product(*swept.grid.values()):
            yield {**case, **paired, **dict(zip(swept.grid, chosen, strict=True))}


def _refuse_twice(points: Sequence[Mapping[str, Any]], source: str) -> None:
    seen: dict[str, int] = {}
    for number, values in enumerate(points, 1):
        text = repr(sorted(values.items(), key=lambda item: item[0]))
        if text in seen:
            label = point_label(number, len(points), values)
            raise mistake(
                f"{label} duplicates point {seen[text]:,}",
                source=source,
                key="sweep",
                expected="each point once",
            )
        seen[text] = number


def _refuse_unknown_model(tables: Mapping[str, Any], path: paths.Path, source: str) -> None:
    """Rejects an unknown model, which would otherwise become a new, incomplete model."""
    platform = tables.get("platform")
    models = platform.get("models") if isinstance(platform, dict) else None
    if len(path) > 3 and isinstance(models, dict) and path[2] not in models:
        raise mistake(
            f"the platform has no model `{path[2]}`",
            source=source,
            key=paths.written(path),
            expected=f"one of {', '.join(models)}",
            hint=did_you_mean(str(path[2]), models),
        )
