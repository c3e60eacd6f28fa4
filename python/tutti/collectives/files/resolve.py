"""Resolves experiment files: looks up names, expands ranges and cross-checks values."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tutti import _core
from tutti.base.datatypes import DATATYPES
from tutti.base.errors import TuttiError
from tutti.base.files.kinds import validated_file
from tutti.base.files.mistakes import known_name, mistake, shown
from tutti.base.files.reader import read_toml
from tutti.base.files.sourced import written
from tutti.base.ranges import growing, unreached
from tutti.base.units import Size
from tutti.collectives.files import tables as as_written
from tutti.collectives.files.block_sizes import checked_blocks
from tutti.platforms.conditions import Background, Conditions, PerRank
from tutti.platforms.files.builder import machine
from tutti.platforms.files.platform_file import numbers
from tutti.platforms.files.presets import check_fits, chosen_model, platform_of
from tutti.platforms.library import is_library
from tutti.schedules.block_sizes import block_sizes
from tutti.schedules.errors import AlgorithmError
from tutti.schedules.mpi_names import algorithm_name, collective_name
from tutti.schedules.text import SCHEDULE_SUFFIX, content, read_schedule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tutti.platforms.conditions import Distribution, Noise
    from tutti.platforms.files.platform_file import RawPlatform
    from tutti.platforms.machine import Platform
    from tutti.topologies import Routes

_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"))

_MOST_VALUES = 10_000
"""Most values of a list of sizes or rank counts."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A resolved experiment.

    Attributes:
        source: The file, for messages.
        title: Title of reports.
        platform: The platform.
        model: The name of one of its models.
        collective: The name of the collective.
        root: The root of a rooted collective, else 0.
        blocks: The relative sizes of the blocks of an all_to_all_v, or None.
        algorithms: Notations, or None for every algorithm that performs the collective.
        ranks: Rank counts, ascending, without duplicates.
        sizes: Sizes, ascending, without duplicates.
        datatype: The name of the datatype.
        repetitions: Repetitions of each measurement.
        seed: The seed of the first repetition.
        noise: Random delays per step and per message.
        arrival: Delay of each rank before it enters the collective.
        background: Background traffic.
        speed: Relative speed of ranks, where it is not 1.
        wait_for_sends: Whether a step ends only when all its messages have arrived.
        messages_limit: Most messages of a measurement; larger ones are omitted and listed.
        output: The folder for results.
        remarks: Ranges of sizes that end before their last size.
    """

    source: str
    title: str
    platform: RawPlatform
    model: str
    collective: str
    root: int
    blocks: str | None
    algorithms: tuple[str, ...] | None
    ranks: tuple[int, ...]
    sizes: tuple[Size, ...]
    datatype: str
    repetitions: int
    seed: int
    noise: Noise
    arrival: Distribution | PerRank | None
    background: Background = field(default_factory=Background)
    speed: dict[int, float] = field(default_factory=dict)
    wait_for_sends: bool = False
    messages_limit: int | None = None
    output: Path = Path("out")
    remarks: tuple[str, ...] = field(default=(), compare=False)
    _shared: dict[str, Any] = field(default_factory=dict, init=False, compare=False, repr=False)
    """Cached values that do not depend on the platform; `on` shares them."""

    def machine(self) -> Platform:
        """Returns the platform with the chosen model, for `tutti.simulate`.

        Raises:
            ConfigError: The values of the platform contradict each other, or its topology is
                unknown.
        """
        return self._machine

    @cached_property
    def _machine(self) -> Platform:
        return machine(self.platform, self.model, source=self.source)

    def conditions(self) -> Conditions:
        """Returns noise, arrival, speed and background traffic, for `tutti.simulate`."""
        if "conditions" not in self._shared:
            self._shared["conditions"] = Conditions(
                noise=self.noise,
                arrival=self.arrival,
                speed=self.speed,
                background=self.background,
                wait_for_sends=self.wait_for_sends,
            )
        found: Conditions = self._shared["conditions"]
        return found

    def check_conditions(self, routes: Routes | None) -> None:
        """Checks the conditions and their compatibility with the routes.

        Raises:
            ConfigError: The conditions are invalid; the message names the table.
        """
        checked = self._shared.setdefault("checked", [])
        if not any(known is routes for known in checked):
            _check_conditions(self.conditions(), self.ranks, routes, self.source)
            checked[:] = [routes]

    def on(self, platform: RawPlatform, model: str, *, source: str) -> Experiment:
        """Returns the same experiment on another platform.

        Raises:
            ConfigError: The values of the platform contradict each other, or it is too small.
        """
        moved = replace(self, platform=platform, model=model, source=source)
        object.__setattr__(moved, "_shared", self._shared)
        _check_with_the_core(moved)
        return moved

    def facts(self) -> dict[str, Any]:
        """Returns the parameters of the platform and their sources, for reports."""
        prefix = f"models.{self.model}."
        known = {
            key.removeprefix(prefix): {
                "value": value,
                "source": f"inferred: {source}" if inferred else source,
            }
            for key, value, source, inferred in numbers(self.platform)
            if key.startswith((prefix, "compute.", "topology."))
        }
        kind: str = self.platform.models[self.model].kind
        if self.platform.topology is not None:
            table = self.platform.topology
            value = table.build or table.file or ""
            seed = "" if table.routing_seed is None else f", seed {table.routing_seed}"
            rule = self.machine().routing
            known["topology"] = {"value": value, "source": f"routes: {rule}{seed}"}
            kind = self.machine().network
        return {
            "name": self.platform.name,
            "model": f"{kind} ({self.model})",
            "source": self.platform.source,
            "parameters": known,
        }

    @property
    def ps_per_byte(self) -> float:
        """The time per byte of the model, in ps; 0 for a model without sizes."""
        model = self.platform.models[self.model]
        cost = getattr(model, "beta", None) or getattr(model, "G", None)
        return written(cost).core.ps_per_byte if cost is not None else 0.0

    @property
    def inputs(self) -> dict[str, Any]:
        """The inputs that determine results, for hashes; independent of how the file is written."""
        return self._platform_inputs() | self._inputs_without_platform()

    def _platform_inputs(self) -> dict[str, Any]:
        routes = self.machine().routes
        # The fingerprint covers the graph, whether built or read.
        unused: dict[str, Any] = {"topology": {"build", "file", "links"}}
        if self.platform.library is None:
            unused["library"] = True
        return {
            "platform": self.platform.model_dump(mode="json", exclude=unused),
            "routes": routes.fingerprint if routes else None,
            "model": self.model,
        }

    def _inputs_without_platform(self) -> dict[str, Any]:
        return {
            "collective": self.collective,
            "root": self.root,
            "blocks": self.blocks and [block_sizes(self.blocks, ranks) for ranks in self.ranks],
            "algorithms": [content(notation) for notation in self.algorithms or ("all",)],
            "ranks": self.ranks,
            "sizes": [size.bytes for size in self.sizes],
            "datatype": self.datatype,
            "repetitions": self.repetitions,
            "seed": self.seed,
            "noise": self.noise.model_dump(mode="json"),
            "arrival": self.arrival.model_dump(mode="json") if self.arrival else None,
            "background": self.background.model_dump(mode="json"),
            "speed": sorted(self.speed.items()),
            "wait_for_sends": self.wait_for_sends,
            "messages_limit": self.messages_limit,
        }

    @cached_property
    def inputs_as_json(self) -> dict[str, str]:
        """The values of `inputs` as JSON, by key."""
        if "json" not in self._shared:
            self._shared["json"] = _as_json(self._inputs_without_platform())
        shared: dict[str, str] = self._shared["json"]
        return _as_json(self._platform_inputs()) | shared

    @cached_property
    def config_hash(self) -> str:
        """A hash of `inputs`, as 16 hexadecimal digits."""
        texts = self.inputs_as_json
        text = ",".join(f'"{key}":{texts[key]}' for key in sorted(texts))
        return hashlib.sha256(f"{{{text}}}".encode()).hexdigest()[:16]


def _as_json(values: Mapping[str, Any]) -> dict[str, str]:
    return {key: _JSON.encode(value) for key, value in values.items()}


def load_experiment(path: Path, overrides: dict[str, Any] | None = None) -> Experiment:
    """Reads and resolves an experiment file.

    Args:
        path: The file.
        overrides: Values of the command line that replace keys of the file.

    Raises:
        ConfigError: The file is invalid.
    """
    tables = read_toml(path)
    tables.update(overrides or {})
    return resolve(tables, source=str(path), folder=path.parent)


def resolve(tables: dict[str, Any], *, source: str, folder: Path) -> Experiment:
    """Validates the tables of an experiment; relative paths in them start from `folder`.

    Raises:
        ConfigError: The tables are not a valid experiment.
    """
    if "sweep" in tables and "experiment" in tables:
        problem = "is a sweep, not a single experiment"
        raise mistake(problem, source=source, hint="tutti sweep FILE")
    raw = validated_file(as_written.RawExperiment, tables, source=source, folder=folder)
    platform = platform_of(raw.platform, folder=folder, source=source)
    collective = _collective(raw.collective, source)
    ranks = _ranks(raw.ranks, source)
    if not 0 <= raw.root < ranks[0]:
        raise mistake(
            "is not a rank of every run",
            source=source,
            key="root",
            value=str(raw.root),
            expected=f"0 to {ranks[0] - 1}, as the smallest run has {ranks[0]} ranks",
        )
    experiment = Experiment(
        source=source,
        title=raw.title,
        platform=platform,
        model=chosen_model(platform, raw.model, source=source),
        collective=collective,
        root=raw.root,
        blocks=checked_blocks(raw.blocks, collective, ranks, folder, source),
        algorithms=_algorithms(raw.algorithms, collective, folder, source),
        ranks=ranks,
        sizes=_sizes(raw.sizes, raw.datatype, collective, source),
        datatype=_datatype(raw.datatype, source),
        repetitions=raw.repetitions,
        seed=raw.seed,
        noise=raw.noise,
        arrival=raw.arrival,
        background=raw.background,
        speed=_speed(raw.speed, ranks[0], source),
        wait_for_sends=raw.wait_for_sends,
        messages_limit=raw.limits.messages,
        output=Path(raw.output),
        remarks=(*_unreached_ranks(raw.ranks), *_remarks(raw.sizes)),
    )
    _check_with_the_core(experiment)
    return experiment


def _check_with_the_core(experiment: Experiment) -> None:
    """Checks the platform, the rank counts and the conditions together."""
    routes = experiment.machine().routes
    if routes is not None:
        check_fits(
            experiment.platform, experiment.ranks[-1], routes, source=experiment.source, key="ranks"
        )
    experiment.check_conditions(routes)


def _check_conditions(
    conditions: Conditions, ranks: Sequence[int], routes: Routes | None, source: str
) -> None:
    """Checks conditions in the core; errors name the table."""
    key = "noise"
    try:
        conditions.core(ranks=ranks[0], seed=0)
        key = "arrival"
        if isinstance(conditions.arrival, PerRank):
            for seed in range(len(conditions.arrival.times)):
                conditions.arrival.of(ranks=ranks[-1], seed=seed)
        key = "background"
        conditions.background.core(routes)
    except TuttiError as error:
        key = "arrival" if error.kind == "too_few_arrivals" else key
        raise mistake(error.problem, source=source, key=key, hint=error.hint) from None


def _collective(name: str, source: str) -> str:
    own = collective_name(name)
    return known_name(own, _core.collectives(), key="collective", what="collective", source=source)


def _datatype(name: str, source: str) -> str:
    return known_name(name, list(DATATYPES), key="datatype", what="datatype", source=source)


def _algorithms(
    written: str | list[str], collective: str, folder: Path, source: str
) -> tuple[str, ...] | None:
    if written == "all":
        return None
    notations: list[str] = []
    for position, notation in enumerate([written] if isinstance(written, str) else written):
        key = f"algorithms[{position}]" if isinstance(written, list) else "algorithms"
        if notation in notations:
            raise mistake("appears twice", source=source, key=key, value=shown(notation))
        if notation.endswith(SCHEDULE_SUFFIX):
            notation = str(folder / notation)  # noqa: PLW2901 - resolved path
            read_schedule(Path(notation))
        else:
            notation = _checked_algorithm(notation, collective, key, source)  # noqa: PLW2901 - alias
        notations.append(notation)
    return tuple(notations)


def _checked_algorithm(notation: str, collective: str, key: str, source: str) -> str:
    """Returns the notation, with tutti's name for an alias."""
    if is_library(notation):
        return notation  # what fits depends on the platform, the rank count and the size
    try:
        notation = algorithm_name(notation, collective)
    except AlgorithmError as error:
        raise mistake(error.problem, source=source, key=key) from None
    entries = {entry.name: entry for entry in _core.algorithms()}
    performing = [name for name, entry in entries.items() if collective in entry.collectives]
    name = notation.split(":", 1)[0].strip()
    if name == "all":
        problem = '"all" cannot be part of a list'
        raise mistake(problem, source=source, key=key, expected='algorithms = "all"')
    known_name(name, list(entries), key=key, what="algorithm", source=source)
    if name not in performing:
        raise mistake(
            f"{name} does not perform {collective}",
            source=source,
            key=key,
            expected=f"one of {', '.join(performing)}",
            hint=f"it performs {', '.join(entries[name].collectives)}",
        )
    return notation


def _ranks(written: Any, source: str) -> tuple[int, ...]:  # noqa: ANN401 - the union of raw.Ranks
    values: set[int] = set()
    items = written if isinstance(written, list) else [written]
    for item in items:
        if isinstance(item, int):
            values.add(item)
        else:
            values.update(_range(item.start, item.to, item.factor, key="ranks", source=source))
    return _bounded(sorted(values), "ranks", source)


def _sizes(
    written: Any,  # noqa: ANN401 - the union of raw.Sizes
    datatype: str,
    collective: str,
    source: str,
) -> tuple[Size, ...]:
    values: set[int] = set()
    items = written if isinstance(written, list) else [written]
    for item in items:
        if isinstance(item, Size):
            values.add(item.bytes)
        else:
            start, to = item.start.bytes, item.to.bytes
            values.update(_range(start, to, item.factor, key="sizes", source=source))
    element = DATATYPES[_datatype(datatype, source)]
    for size in sorted(values):
        if size % element:
            lower, upper = size - size % element, size - size % element + element
            near = (
                f"{Size(bytes=lower)} or {Size(bytes=upper)}" if lower else f"{Size(bytes=upper)}"
            )
            raise mistake(
                f"{Size(bytes=size)} is not a multiple of the size of {datatype}",
                source=source,
                key="sizes",
                expected=f"a multiple of {element} B",
                hint=f"{near}; sizes are never rounded",
            )
        if (collective == "barrier") != (size == 0):
            barrier = collective == "barrier"
            raise mistake(
                "a barrier has no payload" if barrier else f"the payload of {collective} is empty",
                source=source,
                key="sizes",
                value=f'"{Size(bytes=size)}"',
                expected='"0 B"' if barrier else "a size above zero",
            )
    return tuple(Size(bytes=size) for size in _bounded(sorted(values), "sizes", source))


def _unreached_ranks(written: Any) -> tuple[str, ...]:  # noqa: ANN401 - the union of raw.Ranks
    items = written if isinstance(written, list) else [written]
    spans = ((item.start, item.to, item.factor) for item in items if not isinstance(item, int))
    texts = (unreached(growing(*span), *span[1:], what="rank count") for span in spans)
    return tuple(filter(None, texts))


def _remarks(written: Any) -> tuple[str, ...]:  # noqa: ANN401 - the union of raw.Sizes
    items = written if isinstance(written, list) else [written]
    spans = ((item.start.bytes, item.to.bytes, item.factor)
             for item in items if not isinstance(item, Size))  # fmt: skip
    texts = (unreached(growing(*span), *span[1:]) for span in spans)
    return tuple(filter(None, texts))


def _range(start: int, to: int, factor: int, *, key: str, source: str) -> list[int]:
    if start > to:
        raise mistake(
            "the range is empty: `from` exceeds `to`",
            source=source,
            key=key,
            value=f"from {start} to {to}",
            expected="`from` at most `to`",
        )
    if start == 0:
        raise mistake(
            "a geometric range cannot start at zero",
            source=source,
            key=f"{key}.from",
            expected="a start above zero",
            hint='a list can hold both: ["0 B", { from = "8 B", to = "1 KiB" }]',
        )
    return growing(start, to, factor)


def _bounded(values: list[int], key: str, source: str) -> tuple[int, ...]:
    if len(values) > _MOST_VALUES:
        raise mistake(
            f"{len(values)} values are too many",
            source=source,
            key=key,
            expected=f"at most {_MOST_VALUES}",
        )
    return tuple(values)


def _speed(written: dict[str, float], fewest: int, source: str) -> dict[int, float]:
    speed: dict[int, float] = {}
    for key, value in written.items():
        if not (key.isascii() and key.isdigit() and len(key) < 9 and int(key) < fewest):
            raise mistake(
                "is not a rank of every run",
                source=source,
                key=f"speed.{key}",
                expected=f"a rank from 0 to {fewest - 1}, as the smallest run has {fewest} ranks",
            )
        speed[int(key)] = value
    return speed
