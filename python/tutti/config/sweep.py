"""Sweep files: an experiment, and the keys of it that take several values.

Every point of a sweep is an experiment like any other, read and checked by the same code; an error
in one names the point. `[sweep.grid]` combines each value with each, `[sweep.zip]` walks lists of
one length side by side, `[[sweep.cases]]` lists cases one by one; a file that has several of the
three combines them as a grid does.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Discriminator, Field, Tag

from tutti.config import paths
from tutti.config.kinds import validated_file
from tutti.config.presets import platform_tables
from tutti.config.raw import RawExperiment
from tutti.config.resolver import Resolver
from tutti.files.mistakes import did_you_mean, mistake, shown
from tutti.files.reader import read_toml
from tutti.files.tables import Table, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tutti.config.resolve import Experiment

_MOST_POINTS = 100_000
"""Each is read and checked before the first one runs."""

_LONGEST_LABEL = 100

_HINT = "`tutti schema sweep` says what stands in one"

_NOT_SWEPT = {"title": "it is not part of the question", "output": "a sweep has one output"}

Values = Annotated[list[Any], Field(min_length=1)]


class SweptKeys(Table):
    """Which keys take which values; a key is a path in quotes, as `"platform.compute.gamma"`."""

    grid: Annotated[
        dict[str, Values],
        Field(default_factory=dict, description="A list for each key: every combination."),
    ]
    zip: Annotated[
        dict[str, Values],
        Field(
            default_factory=dict,
            description="Lists of one length: first values together, second values together, ...",
        ),
    ]
    cases: Annotated[
        list[Annotated[dict[str, Any], Field(min_length=1)]],
        Field(default_factory=list, description="Cases one by one, each with its keys."),
    ]


class RawSweep(Table):
    """An experiment asked many times over, with other values each time."""

    title: Annotated[str, Field(default="", description="What is asked, for reports.")]
    experiment: Annotated[
        Annotated[str, Tag("value")] | Annotated[dict[str, Any], Tag("table")],
        Discriminator(kind_of),
        Field(
            description="The path to an experiment file, or its keys as a table; those that are "
            "swept may be left out. Paths in it, and among the values, start from its file's "
            "folder."
        ),
    ]
    sweep: Annotated[SweptKeys, Field(description="The keys that take several values.")]
    output: Annotated[
        str,
        Field(
            default="out/sweep",
            min_length=1,
            description="The folder for results, from where the command is run.",
        ),
    ]


@dataclass(frozen=True)
class Template:
    """What makes an experiment of the values of a point; it travels to workers.

    Attributes:
        base: The keys that all points share.
        source: The file, for messages.
        folder: What relative paths start from.
        total: How many points there are.
    """

    base: Mapping[str, Any]
    source: str
    folder: str
    total: int

    def experiment(self, number: int, values: Mapping[str, Any]) -> Experiment:
        """The experiment of a point.

        Args:
            number: Which point it is, counted from 1.
            values: By key path.

        Raises:
            ConfigError: It is no experiment; the message names the point.
        """
        source = f"{self.source}, {point_label(number, self.total, values)}"
        tables: dict[str, Any] = dict(self.base)
        # A whole platform before its parts.
        for key in sorted(values, key=len):
            tables = self._put(tables, key, values[key], source)
        return self._resolver.resolve(tables, source=source)

    def _put(self, tables: dict[str, Any], key: str, value: object, source: str) -> dict[str, Any]:
        path = paths.parse(key) or ()
        platform = tables.get("platform")
        if path[0] == "platform" and len(path) > 1 and isinstance(platform, str):
            tables = {**tables, "platform": self._platform(platform, source)}
        if path[:2] == ("platform", "models"):
            _refuse_unknown_model(tables, path, source)
        try:
            changed: dict[str, Any] = paths.with_value(tables, path, value)
        except paths.NoSuchPlaceError as error:
            raise mistake(
                f"leads nowhere: {paths.written(error.at)} {error.problem}",
                source=source,
                key=key,
                expected="the path to a key of the experiment",
            ) from None
        return changed

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
        own = {"base", "source", "folder", "total"}
        return {name: value for name, value in self.__dict__.items() if name in own}


@dataclass(frozen=True)
class Sweep:
    """A sweep whose every point has been checked.

    Attributes:
        source: The file, for messages.
        title: What is asked.
        keys: The key paths that are swept.
        points: The values of each point, by key path; numbers of points count from 1.
        template: What makes an experiment of them.
        output: The folder for results.
    """

    source: str
    title: str
    keys: tuple[str, ...]
    points: tuple[Mapping[str, Any], ...]
    template: Template
    output: Path = field(default=Path("out/sweep"))

    def experiments(self) -> Iterator[Experiment]:
        """The experiment of each point, in order.

        Raises:
            ConfigError: One of them is none; the message names the point.
        """
        for number, values in enumerate(self.points, 1):
            yield self.template.experiment(number, values)

    def label(self, point: int) -> str:
        """What errors call a point; they count from 0 here, as in `points`."""
        return point_label(point + 1, len(self.points), self.points[point])


def load_sweep(path: Path, overrides: Mapping[str, Any] | None = None) -> Sweep:
    """Reads a sweep file; its points are checked when their experiments are made.

    Args:
        path: The file.
        overrides: Keys that the command line gives, as they would stand in the file.

    Raises:
        ConfigError: The file cannot be used.
    """
    tables = read_toml(path, "a sweep file (TOML)", hint=_HINT) | dict(overrides or {})
    return resolve_sweep(tables, source=str(path), folder=path.parent)


def resolve_sweep(tables: Mapping[str, Any], *, source: str, folder: Path) -> Sweep:
    """Reads the tables of a sweep; `folder` is what relative paths in it start from.

    Raises:
        ConfigError: The tables are no sweep.
    """
    if "collective" in tables and "experiment" not in tables:
        problem = "is an experiment, and no sweep: it does not say which keys take several values"
        hint = f'in a file of its own: experiment = "{Path(source).name}", and a table [sweep.grid]'
        raise mistake(problem, source=source, hint=hint)
    raw = validated_file(RawSweep, tables, source=source)
    base, where = raw.experiment, source
    if isinstance(base, str):
        named = folder / base
        base, folder, where = read_toml(named), named.parent, f"{source} ({base})"
    keys = _keys(raw.sweep, source)
    points = tuple(_points(raw.sweep, source))
    _refuse_twice(points, source)
    return Sweep(
        source=source,
        title=raw.title,
        keys=keys,
        points=points,
        template=Template(base, where, str(folder.absolute()), len(points)),
        output=Path(raw.output),
    )


def point_label(number: int, total: int, values: Mapping[str, Any]) -> str:
    """What errors call a point, such as ``point 3 of 12 (ranks = 4, sizes = "8 B")``."""
    text = ", ".join(f"{key} = {shown(value)}" for key, value in values.items())
    text = text if len(text) <= _LONGEST_LABEL else text[: _LONGEST_LABEL - 3] + "..."
    return f"point {number:,} of {total:,} ({text})"


def _keys(swept: SweptKeys, source: str) -> tuple[str, ...]:
    """Every key that is swept, each checked and swept in one place only."""
    in_cases = dict.fromkeys(key for case in swept.cases for key in case)
    known: dict[str, str] = {}
    for place, keys in (("cases", in_cases), ("zip", swept.zip), ("grid", swept.grid)):
        for key in keys:
            _check_key(key, f"sweep.{place}", source)
            if key in known:
                problem = f"`{key}` is swept in sweep.{known[key]} too"
                expected = "each key in one of grid, zip and cases"
                raise mistake(problem, source=source, key=f"sweep.{place}", expected=expected)
            known[key] = place
    if not known:
        raise mistake(
            "sweeps nothing",
            source=source,
            key="sweep",
            expected="at least one of grid, zip and cases",
            hint="such as [sweep.grid] with a line ranks = [4, 8, 16]",
        )
    return tuple(known)


def _check_key(key: str, place: str, source: str) -> None:
    path = paths.parse(key)
    if path is None:
        raise mistake(
            "is no key path",
            source=source,
            key=place,
            value=shown(key),
            expected='names with dots between them, such as "platform.compute.gamma"',
        )
    known = [info.alias or name for name, info in RawExperiment.model_fields.items()]
    first = str(path[0])
    if first in _NOT_SWEPT:
        raise mistake(f"`{key}` cannot be swept: {_NOT_SWEPT[first]}", source=source, key=place)
    if first not in known:
        inside = {"models", "compute", "topology"} & {first}
        hint = f'"platform.{key}"' if inside else did_you_mean(first, known)
        raise mistake(
            f"an experiment has no key `{first}`",
            source=source,
            key=f"{place}.{key}",
            expected=f"a path that starts with one of {', '.join(known)}",
            hint=hint,
        )


def _points(swept: SweptKeys, source: str) -> Iterator[Mapping[str, Any]]:
    """The values of each point: cases outermost, then zip, then grid, its last key innermost."""
    lengths = {key: len(values) for key, values in swept.zip.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{key} has {length}" for key, length in lengths.items())
        raise mistake(
            f"the lists differ in length: {told}",
            source=source,
            key="sweep.zip",
            expected="lists of one length",
            hint="[sweep.grid] combines each value with each",
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
        beside = {key: values[index] for key, values in swept.zip.items()}
        for chosen in itertools.product(*swept.grid.values()):
            yield {**case, **beside, **dict(zip(swept.grid, chosen, strict=True))}


def _refuse_twice(points: Sequence[Mapping[str, Any]], source: str) -> None:
    seen: dict[str, int] = {}
    for number, values in enumerate(points, 1):
        text = repr(sorted(values.items(), key=lambda item: item[0]))
        if text in seen:
            label = point_label(number, len(points), values)
            raise mistake(
                f"{label} is point {seen[text]:,} again",
                source=source,
                key="sweep",
                expected="each point once",
            )
        seen[text] = number


def _refuse_unknown_model(tables: Mapping[str, Any], path: paths.Path, source: str) -> None:
    """A misspelt model would become a new one, of which everything else is missing."""
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
