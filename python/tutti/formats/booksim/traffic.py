"""Converts the traffic of a BookSim 2 configuration to tutti tables."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tutti.base.errors import ConfigError
from tutti.base.files.mistakes import did_you_mean, mistake, shown
from tutti.formats.booksim.equivalents import TABLES
from tutti.formats.booksim.reader import BookSimConfig, split
from tutti.formats.booksim.recorded import matrix_table, trace_table
from tutti.formats.booksim.requests import batch_keys, read_write_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_ALONG_A_GRID = {"tornado": "tornado", "neighbor": "neighbour", "badperm_yarc": "bad_yarc"}
_WITH_NODES = ("background", "hotspot", "randperm", "bad_dragon")
_NODES = {
    "background": "background({{NODE,...}})",
    "hotspot": "hotspot({{NODE,...},{WEIGHT,...}})",
}
"""The forms of patterns with several nodes: a list in the list of parameters."""
UNKNOWN_KEY = "BookSim stops, too: remove it, or --lenient"
"""The hint of a key that is close to none of BookSim."""
_OF_A_FILE = {"matrix": matrix_table, "trace": trace_table}

_Sizes = int | tuple[int, ...]
_Value = TypeVar("_Value")


@dataclass(frozen=True, kw_only=True)
class BookSimInput:
    """A configuration, its name in errors, and what its conversion adds to the tables.

    Attributes:
        config: The configuration.
        source: Its name in errors.
        folder: The base of relative paths of other files.
        changes: The arguments that assign keys outside the file, by key.
        remarks: Differences from BookSim.
        texts: Contents of matrices and traces, by name.
        window: Keys of the measurement that a trace sets.
        places: File and line of the packets of a trace, by the line in `texts`.
        lines: Lines of keys in the file.
        is_lenient: Whether to skip keys that BookSim does not have.
        errors: Keys that cannot be converted.
    """

    config: BookSimConfig
    source: str
    folder: Path = Path()
    changes: Mapping[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    window: dict[str, int] = field(default_factory=dict)
    places: dict[int, str] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)
    is_lenient: bool = False
    errors: list[ConfigError] = field(default_factory=list)

    def place(self, key: str) -> str:
        """Returns the argument that assigns a key, or the file with the line."""
        line = f":{self.lines[key]}" if key in self.lines else ""
        return self.changes.get(key, f"{self.source}{line}")

    def with_line(self, key: str) -> str:
        """Returns a key with its line in the file, or the argument that assigns it."""
        if key in self.changes:
            return f"`{key}` ({self.changes[key]})"
        if key in self.lines:
            return f"`{key}` (line {self.lines[key]})"
        return f"`{key}` (default)" if key in BookSimConfig.model_fields else f"`{key}`"

    def refused(self, key: str, expected: str, *, problem: str = "", hint: str = "") -> ConfigError:
        """Returns the error of a key with an unsupported value."""
        value = getattr(self.config, key)
        is_default = key not in self.config.given and value != ""
        default = " (the default: the key is not assigned)" if is_default else ""
        return mistake(
            f"{problem or 'is not supported'}{default}",
            source=self.place(key),
            key=key,
            value=shown(value),
            expected=expected,
            hint=hint,
        )

    def collect(self, convert: Callable[[], _Value], default: Any) -> _Value:  # noqa: ANN401
        """Returns what `convert` returns; if it refuses a key, collects the error.

        Args:
            convert: Converts keys.
            default: Returned for keys that are refused; any value, since `check` raises later.
        """
        try:
            return convert()
        except ConfigError as error:
            self.errors.append(error)
            return default  # type: ignore[no-any-return]

    def _line(self, key: str) -> float:
        """Returns the line of a key; keys outside the file follow."""
        return self.lines.get(key, math.inf)

    def check(self) -> None:
        """Raises all collected errors as one, with the line of each key.

        Raises:
            ConfigError: A key cannot be converted.
        """
        unique = {str(error): error for error in self.errors}.values()
        errors = sorted(unique, key=lambda error: self._line(str(error.fields.get("key", ""))))
        if len(errors) == 1:
            raise errors[0]
        if not errors:
            return
        known = {str(error.fields.get("key", "")): str(error.fields.get("expected", ""))
                 for error in errors}  # fmt: skip
        keys = [self.with_line(key) for key in known if key]
        others = [str(error).partition("\n")[0] for error in errors if not error.fields.get("key")]
        raise mistake(
            f"{len(keys) + len(others)} keys cannot be converted: {', '.join([*keys, *others])}",
            source=self.source,
            expected="; ".join(f"{key}: {text}" for key, text in known.items() if key and text),
            hint=self._hints(errors),
        )

    def _hints(self, errors: Sequence[ConfigError]) -> str:
        """Returns the hints of several keys, each with its key."""
        hints = {str(error.fields.get("key", "")): error.hint for error in errors if error.hint}
        texts = [f"{key}: {hint}" for key, hint in hints.items() if key and hint != UNKNOWN_KEY]
        if any(error.fields.get("key") in self.config.unknown for error in errors):
            texts.append("--lenient skips keys that BookSim does not have")
        return "; ".join(texts)


def traffic(given: BookSimInput, topology: dict[str, Any]) -> Any:  # noqa: ANN401 - a table or several
    """Returns a table, or a list of tables, and sets the grid that patterns require."""
    config = given.config
    tables = []
    keys = ("traffic", "injection_process", "injection_rate", "class_priority")
    columns = zip(*(config.per_class(key) for key in keys), strict=True)
    sizes = zip(config.per_class("packet_size"), config.per_class("packet_size_rate"), strict=True)
    requests = config.per_class("use_read_write")
    is_batch = config.sim_type == "batch"
    limits = given.collect(partial(batch_keys, given), {}) if is_batch else {}
    classes = enumerate(zip(columns, sizes, strict=True))
    for number, ((pattern, process, load, priority), (size, weight)) in classes:
        packet, mean = given.collect(partial(packet_of, given, size, weight), (1, 1.0))
        if load < 0:
            given.errors.append(
                given.refused("injection_rate", "0 or more", problem="is out of range")
            )
        keys_of_pattern = given.collect(partial(_pattern, given, pattern, topology), {})
        if "trace" in keys_of_pattern:
            return keys_of_pattern
        injection = "bernoulli"
        if not is_batch:
            injection = given.collect(partial(_process, given, process), process)
        table = {**keys_of_pattern, "process": injection, "priority": priority, **limits}
        if requests[number]:
            tables += given.collect(partial(read_write_tables, given, number, table, load), [])
            continue
        rate = load if config.injection_rate_uses_flits else load * mean
        # A batch is sent as fast as possible.
        tables.append(table | {"rate": mean if limits else rate, "packet": packet})
    return tables[0] if len(tables) == 1 else tables


def packet_of(given: BookSimInput, size: _Sizes, weight: _Sizes) -> tuple[int | str, float]:
    """Returns the packet sizes of a class, and their mean."""
    sizes = size if isinstance(size, tuple) else (size,)
    weights = weight if isinstance(weight, tuple) else (weight,)
    if not sizes or not weights or len(weights) > len(sizes):
        raise given.refused("packet_size_rate", "a weight for each size")
    weights += weights[-1:] * (len(sizes) - len(weights))
    if min(sizes) < 1 or min(weights) < 0 or sum(weights) <= 0:
        raise given.refused("packet_size", "sizes of 1 or more, and weights not all 0")
    mean = sum(a * b for a, b in zip(sizes, weights, strict=True)) / sum(weights)
    if len(sizes) == 1:
        return sizes[0], mean
    return f"{','.join(map(str, sizes))}/{','.join(map(str, weights))}", mean


def _process(given: BookSimInput, text: str) -> str:
    name, argument = call(text)
    if name == "bernoulli":
        return name
    if name != "on_off":
        raise given.refused("injection_process", "bernoulli or on_off")
    config = given.config
    values = [config.burst_alpha, config.burst_beta, config.burst_r1]
    try:
        explicit = [float(part) for part in argument.split(",")] if argument else []
        if len(explicit) > len(values):
            raise ValueError(explicit)
    except ValueError:
        raise given.refused("injection_process", "on_off(ALPHA,BETA,R1)") from None
    values[: len(explicit)] = explicit
    named = zip(("alpha", "beta", "r1"), values, strict=True)
    stated = [f"{name}={value!r}" for name, value in named if value >= 0]
    if len(stated) != 2:
        raise given.refused(
            "injection_process", "two of burst_alpha, burst_beta and burst_r1, and the third -1"
        )
    return f"on_off:{','.join(stated)}"


def _pattern(given: BookSimInput, text: str, topology: dict[str, Any]) -> dict[str, Any]:
    """Returns the keys that select destinations: `pattern`, `matrix` or `trace`."""
    name, argument = call(text)
    if name in _OF_A_FILE:
        return _OF_A_FILE[name](given, argument)
    return {"pattern": _named_pattern(given, name, text, topology)}


def _named_pattern(given: BookSimInput, name: str, text: str, topology: dict[str, Any]) -> str:
    if name in TABLES.patterns:
        return TABLES.patterns[name]
    if name in _ALONG_A_GRID:
        config = given.config
        k, n, xr = _numbers(given, text, (config.k, config.n, config.xr))
        if not 1 <= k * xr < 1 << 32 or not 1 <= n <= 20:
            raise given.refused("traffic", f"{name}(k,n,xr)", problem="has an invalid grid")
        grid = [k * xr] * n
        if topology.setdefault("grid", grid) != grid:
            raise given.refused("traffic", "the same grid in every class")
        return _ALONG_A_GRID[name]
    if name not in _WITH_NODES:
        known = (*TABLES.patterns, *_ALONG_A_GRID, *_WITH_NODES, *_OF_A_FILE)
        raise given.refused("traffic", ", ".join(known), hint=did_you_mean(name, known))
    return _pattern_with_nodes(given, name, text)


def _pattern_with_nodes(given: BookSimInput, name: str, text: str) -> str:
    config = given.config
    if name == "bad_dragon":
        k, n = _numbers(given, text, (config.k, config.n))
        return f"bad_dragonfly:{2 * k * k}" if n == 1 else _refuse_dragon(given)
    if name == "randperm":
        seed = config.perm_seed if isinstance(config.perm_seed, int) else -1
        (seed,) = _numbers(given, text, (seed,))
        if seed < 0:
            raise given.refused("perm_seed", "an integer, 0 or more")
        given.remarks.append("`randperm` differs from the permutation of BookSim for the same seed")
        return f"random_permutation:{seed}"
    lists = [_integers(part) for part in _parameters(given, text)]
    if not lists or not all(lists) or min(map(min, lists)) < 0:
        expected = f"{_NODES[name]} with explicit nodes"
        raise given.refused("traffic", expected, problem="has random nodes or none")
    nodes = lists[0]
    if len(nodes) == 1 and "," in text:
        given.remarks.append(
            f"`{text}` has one node, {nodes[0]}, as in BookSim 2; the form of several is "
            f"{_NODES[name]}"
        )
    shown_nodes = ",".join(map(str, nodes))
    if name == "background" or len(lists) == 1 or len(nodes) == 1:
        return f"{name}:{shown_nodes}"
    weights = (lists[1] + lists[1][-1:] * len(nodes))[: len(nodes)]
    if min(weights) < 1:
        raise given.refused("traffic", "weights of 1 or more, as BookSim 2 requires")
    return f"hotspot:{shown_nodes}/{','.join(map(str, weights))}"


def _refuse_dragon(given: BookSimInput) -> str:
    raise given.refused("traffic", "bad_dragon of one dimension, n = 1")


def _numbers(given: BookSimInput, text: str, default: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the parameters of a pattern; missing ones have the values of their keys."""
    parts = _parameters(given, text)
    if len(parts) > len(default) or not all(re.fullmatch(r"-?[0-9]{1,9}", one) for one in parts):
        form = f"NAME({{NUMBER,...}}) with at most {len(default)} integers"
        raise given.refused("traffic", form)
    explicit = [int(part) for part in parts]
    return (*explicit, *default[len(explicit) :])


def _parameters(given: BookSimInput, text: str) -> list[str]:
    """Returns the parameters of a pattern as BookSim 2 reads them.

    They are what is between the first `(` and the last `)`: a single parameter unless it starts
    with `{`, and otherwise the elements of all braces (`tokenize_str` in `config_utils.cpp`).
    """
    start, end = text.find("("), text.rfind(")")
    data = "" if start < 0 else text[start + 1 : end if end > start else len(text)]
    if not data.startswith("{"):
        return [data] if data else []
    values, start, nested = [], 1, 0
    for at, mark in enumerate(data):
        if at == 0 or mark not in "{,}":
            continue
        if mark == "{":
            nested += 1
        elif mark == "}" and nested:
            nested -= 1
        elif not nested:
            values += [data[start:at]] if at > start else []
            start = at + 1
    if nested:
        raise given.refused("traffic", "matching braces")
    return values


def _integers(text: str) -> list[int]:
    """Returns the integers of a parameter; a number ends at the first mark that is not a digit."""
    parts = split(text) if text.startswith("{") and text.endswith("}") else (text,)
    numbers = (re.match(r"-?[0-9]{1,9}", part) for part in parts)
    return [int(number[0]) for number in numbers if number]


def call(text: str) -> tuple[str, str]:
    """Splits `name(argument)`, without the braces around a single list of arguments."""
    name, _, rest = text.partition("(")
    argument = rest.removesuffix(")")
    if argument.startswith("{") and argument.endswith("}"):
        depth = 0
        for at, one in enumerate(argument):
            depth += (one == "{") - (one == "}")
            if depth == 0:
                return name, argument[1:-1] if at == len(argument) - 1 else argument
    return name, argument
