"""Experiments that a file and options define; options alone add defaults."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tutti.base.files.overrides import with_changes, with_values
from tutti.collectives.files.resolve import resolve
from tutti.collectives.files.tables import RawExperiment
from tutti.platforms.files.notation import defaults_of
from tutti.platforms.files.presets import default_ranks, platform_tables
from tutti.study.console import remark
from tutti.topologies.table import with_link_tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tutti.collectives.files.resolve import Experiment

    Values = Mapping[str, tuple[str, Any]]

DEFAULTS: dict[str, Any] = {
    "platform": "loggp_cluster",
    "collective": "all_reduce",
    "algorithms": "all",
    "ranks": [16],
    "sizes": {"from": "1 KiB", "to": "64 MiB", "factor": 2},
    "datatype": "float32",
    "output": "out/tutti",
}
"""The experiment without a file."""

_NO_PAYLOAD = ["0 B"]
"""The sizes of a barrier without a file."""

_NAMED = ("repetitions", "datatype", "collective", "platform", "model", "output", "ranks",
          "algorithms", "sizes")  # fmt: skip
"""The order in which messages name options, by their keys."""


def define(
    path: Path | None,
    tables: dict[str, Any],
    values: Values,
    changes: Sequence[str] = (),
    stated: Iterable[str] = (),
) -> Experiment:
    """Returns the experiment that a file and options define; prints the defaults.

    Args:
        path: The file; None if `tables` start from `DEFAULTS`.
        tables: The tables of the file.
        values: Option and value by key path.
        changes: Key paths and values, each ``KEY=VALUE``, which options override.
        stated: Keys of `tables` that are no defaults.

    Raises:
        ConfigError: The file, an option or a change is invalid.
    """
    example = "seed=2 or platform.mesh.fan_in=greedy"
    tables, options = _with_tables_of_platform(path, tables, values, changes)
    for change in changes:
        tables = with_link_tables(tables, [change.partition("=")[0]])
        tables = with_changes(tables, [change], RawExperiment, example=example)
    tables = _with_values(tables, options)
    ordered = sorted(values, key=lambda key: _NAMED.index(key.partition(".")[0]))
    named = [*(["--set"] if changes else []), *(values[key][0] for key in ordered)]
    source = "options" if path is None else str(path)
    source = f"{source} with {' '.join(named)}" if named else source
    if path is None:
        defaults = DEFAULTS
        if tables["ranks"] is DEFAULTS["ranks"]:
            ranks = default_ranks(tables["platform"], DEFAULTS["ranks"], source=source)
            tables, defaults = tables | {"ranks": ranks}, defaults | {"ranks": ranks}
        if tables["collective"] == "barrier" and tables["sizes"] is DEFAULTS["sizes"]:
            tables, defaults = tables | {"sizes": _NO_PAYLOAD}, defaults | {"sizes": _NO_PAYLOAD}
        given_keys = {*stated, *(key.partition(".")[0] for key in values)}
        _remark_defaults({key: value for key, value in tables.items()
                          if key not in given_keys and value == defaults.get(key)},
                         None if "sizes.factor" in values else tables["sizes"])  # fmt: skip
    folder = Path() if path is None or "platform" in values else path.parent
    experiment = resolve(tables, source=source, folder=folder)
    if text := defaults_of(experiment.platform):
        remark(text)
    return experiment


def _with_tables_of_platform(
    path: Path | None, tables: dict[str, Any], values: Values, changes: Sequence[str]
) -> tuple[dict[str, Any], Values]:
    """Returns the tables and the options with the platform's tables if a change is one of its keys.

    Raises:
        ConfigError: The platform is unknown, or its file cannot be read.
    """
    if not any(change.lstrip().startswith("platform.") for change in changes):
        return tables, values
    source, name = values.get("platform", ("platform", tables.get("platform")))
    if not isinstance(name, str):
        return tables, values
    folder = Path() if path is None or "platform" in values else path.parent
    found = platform_tables(name, folder=folder, source=source)
    if "platform" in values and "model" not in values:
        tables = {key: value for key, value in tables.items() if key != "model"}
    options = {key: value for key, value in values.items() if key != "platform"}
    return {**tables, "platform": found}, options


def _with_values(tables: dict[str, Any], values: Values) -> dict[str, Any]:
    if any(key.startswith("sizes.") for key in values):
        tables = {**tables, "sizes": _range_of(tables.get("sizes"))}
    tables = with_values(tables, values)
    if "algorithms" in values:
        names = [from_here(notation) for notation in tables["algorithms"]]
        tables["algorithms"] = "all" if names == ["all"] else names
    if "platform" in values and "model" not in values:
        tables.pop("model", None)  # it is a model of the file's platform
    return tables


def _range_of(sizes: object) -> dict[str, Any]:
    """Returns the range from the first to the last of the file's `sizes`."""
    items = sizes if isinstance(sizes, list) and sizes else [sizes]
    first, last = (item if isinstance(item, dict) else {"from": item, "to": item}
                   for item in (items[0], items[-1]))  # fmt: skip
    return {"from": first.get("from"), "to": last.get("to"), "factor": last.get("factor", 2)}


def from_here(notation: str) -> str:
    """Returns the absolute path of a file, or a name or notation unchanged."""
    path = Path(notation)
    return str(path.resolve()) if path.suffix and path.is_file() else notation


def _remark_defaults(defaults: Mapping[str, Any], sizes: object) -> None:
    """Names the defaults of an experiment without a file, and the factor if it is one."""
    named = []
    for key, value in defaults.items():
        text = f"{value['from']} to {value['to']}" if isinstance(value, dict) else value
        named.append(f"{key} {', '.join(map(str, text)) if isinstance(text, list) else text}")
    if isinstance(sizes, dict):
        named.append(f"factor {sizes['factor']}")
    if named:
        remark(f"defaults: {'; '.join(named)}")
