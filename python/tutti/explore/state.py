"""The state of a page: the keys of an experiment that the page sets, and changed parameters.

A state is a JSON object. Its keys replace those of the base experiment, so that the experiment of
a page passes the validation of experiment files, and `to_toml` writes it as one.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tutti.config import find_platform, numbers, paths, platform_names, resolve
from tutti.config.presets import platform_tables
from tutti.files.mistakes import did_you_mean, mistake, shown
from tutti.schedule import candidates
from tutti.schedule_file import SCHEDULE_SUFFIX

if TYPE_CHECKING:
    from tutti.config import Experiment

__all__ = ["Base", "default_tables", "parameters", "to_toml"]

SOURCE = "explore"
"""The name of a page's experiment in messages."""

DEFAULTS = "defaults"
"""The value of `algorithms` for every algorithm with its default arguments."""

_KEYS = ("model", "collective", "ranks", "sizes", "datatype", "algorithms")
_QUANTITY = re.compile(r"\d[\d.]*(?:e[+-]?\d+)? ?(?:[fpnum]?s(?:/B)?|[kMGT]?i?[Bb]/s|[kMGT]?op/s)")


def default_tables() -> dict[str, Any]:
    """Returns the experiment of a page that was started without an experiment file."""
    return {
        "title": "",
        "platform": "infiniband_hdr_fat_tree",
        "collective": "all_reduce",
        "ranks": [4, 8, 16, 32, 64],
        "sizes": {"from": "1 KiB", "to": "256 MiB", "factor": 4},
        "algorithms": DEFAULTS,
        "output": "out/explore",
    }


@dataclass(frozen=True)
class Base:
    """The experiment that a page starts from.

    Attributes:
        tables: Its keys.
        folder: The base of relative paths in them.
    """

    tables: Mapping[str, Any]
    folder: Path

    def experiment(self, state: Mapping[str, Any]) -> Experiment:
        """Returns the experiment of a state.

        Raises:
            ConfigError: The state is not a valid experiment.
        """
        return self._with_algorithms(self.written(state))

    def written(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the keys of a state's experiment; `algorithms` may be :data:`DEFAULTS`.

        Raises:
            ConfigError: A key of the state is unknown, or it names a file.
        """
        known = (*_KEYS, "platform", "changes")
        for key in state:
            if key not in known:
                expected = f"one of {', '.join(known)}"
                raise mistake(f"unknown key {shown(key)}", source=SOURCE, expected=expected)
        tables = {**self.tables}
        if state.get("platform"):
            tables["platform"] = _bundled(state["platform"])
            tables.pop("model", None)
        tables |= {key: state[key] for key in _KEYS if state.get(key)}
        self._refuse_files(tables.get("algorithms"))
        changes = state.get("changes") or {}
        if not isinstance(changes, Mapping):
            raise mistake("is not a table", source=SOURCE, key="changes")
        for key, value in sorted(changes.items()):
            tables["platform"] = self._changed(tables["platform"], key, value)
        return tables

    def platform(self, written: object) -> dict[str, Any]:
        """Returns the tables of a platform, given by name, path or table."""
        if isinstance(written, str):
            return platform_tables(written, folder=self.folder, source=SOURCE)
        return dict(written) if isinstance(written, Mapping) else {}

    def _refuse_files(self, algorithms: object) -> None:
        """Rejects schedule files that the base experiment does not name."""
        own = self.tables.get("algorithms")
        for one in algorithms if isinstance(algorithms, list) else [algorithms]:
            is_file = isinstance(one, str) and one.endswith(SCHEDULE_SUFFIX)
            if is_file and one not in (own if isinstance(own, list) else [own]):
                raise mistake(
                    f"{shown(one)} is a file",
                    source=SOURCE,
                    key="algorithms",
                    expected="algorithms, or schedule files of the experiment file",
                )

    def _changed(self, written: object, key: str, value: object) -> dict[str, Any]:
        """Returns the tables of a platform with a parameter set."""
        tables = self.platform(written)
        path = paths.parse(key)
        if path is None or not isinstance(value, str):
            problem = f"{shown(value)} is not a value"
            raise mistake(problem, source=SOURCE, key=key, expected='such as "25 GB/s"')
        known = [name for name, _, _ in _numbers(tables, self.folder)]
        if key not in known:
            raise mistake(
                f"unknown parameter {shown(key)}",
                source=SOURCE,
                expected=f"one of {', '.join(known)}",
                hint=did_you_mean(key, known),
            )
        changed: dict[str, Any] = paths.with_value(tables, path, value)
        return changed

    def _with_algorithms(self, tables: dict[str, Any]) -> Experiment:
        if tables.get("algorithms") != DEFAULTS:
            return resolve(tables, source=SOURCE, folder=self.folder)
        every = resolve({**tables, "algorithms": "all"}, source=SOURCE, folder=self.folder)
        names = default_algorithms(every)
        return resolve({**tables, "algorithms": names}, source=SOURCE, folder=self.folder)


def default_algorithms(experiment: Experiment) -> list[str]:
    """Returns every algorithm that supports one of the rank counts, with default arguments."""
    routes = experiment.machine().routes
    found: dict[str, None] = {}
    for ranks in experiment.ranks:
        named = candidates(experiment.collective, ranks, root=experiment.root, routes=routes)
        found |= dict.fromkeys(named)
    return sorted(found)


def _bundled(name: object) -> str:
    """Returns the name of a bundled platform; a page cannot name files."""
    known = platform_names()
    if not isinstance(name, str) or name not in known:
        raise mistake(
            f"unknown platform {shown(name)}",
            source=SOURCE,
            key="platform",
            expected=f"one of {', '.join(known)}",
            hint=did_you_mean(str(name), known),
        )
    return name


def parameters(base: Base, state: Mapping[str, Any], model: str) -> list[dict[str, str]]:
    """Returns the times and rates of the state's platform before its changes.

    Args:
        base: The base experiment.
        state: The state.
        model: The model whose parameters are listed.

    Returns:
        A row per parameter: its `key`, `value`, `source`, and `group`: link, model or endpoint.
    """
    tables = base.platform(base.written({**state, "changes": {}})["platform"])
    rows = []
    for key, value, source in _numbers(tables, base.folder):
        group = _group(key, model)
        if group:
            rows.append({"key": key, "value": value, "source": source, "group": group})
    return rows


def _group(key: str, model: str) -> str:
    """Returns the group of a parameter; empty for another model's."""
    if key.startswith("topology.links["):
        return "link"
    if key.startswith("models."):
        return "model" if key.startswith(f"models.{model}.") else ""
    return "endpoint"


def _numbers(tables: Mapping[str, Any], folder: Path) -> list[tuple[str, str, str]]:
    """Returns key, value and source of the times and rates of a platform."""
    from tutti.config.kinds import validated_file
    from tutti.config.platform import RawPlatform

    name = tables.get("name")
    if isinstance(name, str) and name in platform_names() and tables is _tables_of(name):
        return list(_bundled_numbers(name))
    raw = validated_file(RawPlatform, dict(tables), source=SOURCE, folder=folder)
    return _quantities(raw)


def _tables_of(name: str) -> Mapping[str, Any]:
    return platform_tables(name, folder=Path(), source=SOURCE)


@functools.cache
def _bundled_numbers(name: str) -> tuple[tuple[str, str, str], ...]:
    return tuple(_quantities(find_platform(name, folder=Path(), source=SOURCE)))


def _quantities(raw: Any) -> list[tuple[str, str, str]]:  # noqa: ANN401 - a RawPlatform
    found = [(key, value, source) for key, value, source, _ in numbers(raw)]
    return [one for one in found if _QUANTITY.fullmatch(one[1])]


def to_toml(base: Base, state: Mapping[str, Any]) -> str:
    """Returns the experiment file of a state; `tutti compare` on it gives the same numbers.

    Raises:
        ConfigError: The state is not a valid experiment.
    """
    import tomlkit

    experiment = base.experiment(state)
    tables = base.written(state)
    tables["algorithms"] = list(experiment.algorithms) if experiment.algorithms else "all"
    if experiment.blocks is not None:
        tables["blocks"] = experiment.blocks
    tables = {key: value for key, value in tables.items() if value not in ("", None)}
    simple = {key: one for key, one in tables.items() if not isinstance(one, Mapping)}
    nested = {key: one for key, one in tables.items() if isinstance(one, Mapping)}
    return tomlkit.dumps(simple | nested)
