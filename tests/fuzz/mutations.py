"""Mutations of files: hostile values in trees, cells and columns, and damage of text and bytes.

Every mutation is drawn from a `random.Random`, so the seed of a case repeats it.
"""

from __future__ import annotations

import copy
import json
import math
import tomllib
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from random import Random

LONG = "x" * 10_000
DIGITS = "9" * 5_000
NUMBERS: tuple[Any, ...] = (
    *(0, 1, -1, 2, 3, 7, 255, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, 2**63, 2**64, 10**30),
    *(-(2**31), -(2**63), 0.0, -0.0, 0.5, 1e-300, 1e300, math.nan, math.inf, -math.inf),
)
TEXTS: tuple[str, ...] = (
    *("", " ", "a", "\0", "\u202e\u00e9\U0001f600", "{", '"', "%s", "../../x", LONG, DIGITS),
    *("nan", "inf", "-inf", "1e400", "-1", "0", "1.5", "true", "null", "None", "1_000", "0x10"),
    *("8 B", "0 B", "-8 B", "1 us", "0 us", "-1 us", "0 B/s", "1 GB/s", "9223372036854775807 ps"),
    *("9223372036854775808 ps", "18446744073709551615 B", "1e30 GB", "0.1 ps", "1 GHz", "1 mm"),
    *("ring", "all", "all_reduce", "all_to_all", "broadcast", "postal", "mesh:4x4", "mesh:1x1"),
    *("ring:8", "torus:0x0", "mesh:4x4x4x4x4x4x4x4", "file:none", "chakra:none", "scalesim:none"),
)


def hostile(rng: Random) -> Any:
    """A value that few readers expect."""
    nested: Any = 1
    for _ in range(rng.choice((1, 2, 50, 2000))):
        nested = [nested] if rng.random() < 0.5 else {"a": nested}
    others: tuple[Any, ...] = (
        None,
        True,
        False,
        [],
        {},
        [[]],
        [1],
        ["a"],
        [0, 0, 0],
        {"a": 1},
        {"kind": "x"},
        nested,
    )
    return rng.choice(rng.choice((NUMBERS, TEXTS, others)))


def hostile_text(rng: Random) -> str:
    """A hostile value as a word of a text."""
    value = hostile(rng)
    try:
        return value if isinstance(value, str) else str(value)[:20_000]
    except RecursionError:
        return "[" * 20_000


# --- trees ---------------------------------------------------------------------------------------


def mutated_tree(tree: Any, rng: Random) -> Any:
    """A tree of tables, lists and values with one to three mutations."""
    tree = copy.deepcopy(tree)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places = list(_places(tree))
        if places:
            _mutate_place(*rng.choice(places), places, rng)
    return tree


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Each container with each of its keys."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in list(items):
        yield tree, key
        if isinstance(value, dict | list):
            yield from _places(value)


def _mutate_place(owner: Any, key: Any, places: list[tuple[Any, Any]], rng: Random) -> None:
    value = owner[key]
    action = rng.randrange(9)
    if action < 3:
        owner[key] = hostile(rng)
    elif action == 3:
        del owner[key]
    elif action == 4:
        other, place = rng.choice(places)
        if isinstance(other, dict) and place not in other:
            return
        if isinstance(other, list) and place >= len(other):
            return
        owner[key] = copy.deepcopy(other[place])
    elif action == 5:
        owner[key] = [value] if rng.random() < 0.5 else {"value": value}
    elif action == 6 and isinstance(value, int | float) and not isinstance(value, bool):
        owner[key] = rng.choice((-value, value + 1, value * 1000, value / 2, str(value)))
    elif action == 7 and isinstance(value, str):
        owner[key] = mutated_bytes(value.encode(), rng).decode("utf-8", "replace")
    elif isinstance(owner, dict):
        owner[hostile_text(rng)[:100] or "unknown"] = value
    else:
        owner.append(copy.deepcopy(value))


def toml_of(tables: dict[str, Any]) -> str:
    """Returns TOML with inline tables; values that TOML does not support become text."""
    return "".join(f"{json.dumps(str(key))} = {_toml(value)}\n" for key, value in tables.items())


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(k))} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(one) for one in value) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return "''" if value is None else json.dumps(value)


# --- texts and bytes -----------------------------------------------------------------------------


def mutated_bytes(data: bytes, rng: Random) -> bytes:
    """Bytes with a flipped bit, a cut, a repetition or hostile bytes."""
    at = rng.randrange(len(data) + 1)
    end = min(len(data), at + rng.choice((1, 2, 8, 64)))
    action = rng.randrange(7)
    if action == 0 and data:
        at = rng.randrange(len(data))
        return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
    if action == 1:
        return data[:at]
    if action == 2:
        return data[:at] + data[end:]
    if action == 3:
        return data[:at] + rng.randbytes(rng.choice((1, 4, 16))) + data[end:]
    if action == 4:
        return data[:at] + data[at:end] * rng.choice((2, 100, 20_000)) + data[end:]
    if action == 5:
        strange = (b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\r\n", b"\n" * 1000, b"", b" " * 300_000)
        return data[:at] + rng.choice(strange) + data[at:]
    return data[:at] + hostile_text(rng).encode("utf-8", "replace") + data[end:]


def mutated_text(text: str, rng: Random, lines: list[str]) -> bytes:
    """A text with mutated lines and words; `lines` are lines of other files."""
    rows = text.split("\n")
    for _ in range(rng.choice((1, 1, 2, 3))):
        _mutate_line(rows, rng, lines)
    data = "\n".join(rows).encode("utf-8", "replace")
    return mutated_bytes(data, rng) if rng.random() < 0.2 else data


def _mutate_line(rows: list[str], rng: Random, lines: list[str]) -> None:
    at = rng.randrange(len(rows)) if rows else 0
    action = rng.randrange(8)
    if not rows or action == 0:
        rows.insert(at, rng.choice(lines) if lines else hostile_text(rng))
    elif action == 1:
        del rows[at]
    elif action == 2:
        rows[at] = rng.choice(lines) if lines else ""
    elif action == 3:
        rows[at : at + 1] = [rows[at]] * rng.choice((2, 3, 500))
    else:
        rows[at] = _mutated_line(rows[at], rng)


def _mutated_line(line: str, rng: Random) -> str:
    """A line in which one word between blanks, commas or quotes is replaced."""
    starts = [i for i, c in enumerate(line) if c.isalnum() and (not i or not line[i - 1].isalnum())]
    if not starts:
        return hostile_text(rng)
    start = rng.choice(starts)
    end = start
    while end < len(line) and (line[end].isalnum() or line[end] in "._"):
        end += 1
    return line[:start] + hostile_text(rng) + line[end:]


_GROUPS = {"schedule", "noc", "train", "mpi", "bypass", "energy", "coherence"}
_WRITES = {"-o", "--out", "--write", "--cache", "--draw"}


def mutated_call(call: tuple[str, ...], files: tuple[str, ...], rng: Random) -> tuple[str, ...]:
    """A call in which one word is replaced, but not the verb, a file name or an output folder."""
    first = 2 if call[0] in _GROUPS else 1
    places = [
        at
        for at in range(first, len(call))
        if call[at] not in {*files, *_WRITES} and call[at - 1] not in _WRITES
    ]
    if not places:
        return call
    at = rng.choice(places)
    word = call[at]
    action = rng.randrange(5)
    if action == 0:
        return call[:at] + call[at + 1 :]
    if action == 1 and not word.startswith("-"):
        word = mutated_bytes(word.encode(), rng)[:20_000].decode("utf-8", "replace")
    elif action == 2:
        return (*call[:at], word, *call[at:])
    else:
        word = hostile_text(rng)
    # The operating system rejects NUL in arguments.
    return (*call[:at], word.replace("\0", ""), *call[at + 1 :])


# --- frames --------------------------------------------------------------------------------------


def mutated_frame(source: Path, target: Path, rng: Random) -> None:
    """A Parquet or CSV file in which a column is missing, of another type, or holds others."""
    import polars as pl

    read = pl.read_csv if source.suffix == ".csv" else pl.read_parquet
    frame = read(source)
    for _ in range(rng.choice((1, 1, 2))):
        if frame.width:
            frame = _mutated_column(frame, rng)
    if source.suffix == ".csv":
        nested = [
            name for name, dtype in frame.schema.items() if dtype.is_nested() or dtype == pl.Binary
        ]
        frame.drop(nested).write_csv(target)
    else:
        frame.write_parquet(target)


def _mutated_column(frame: Any, rng: Random) -> Any:
    import polars as pl

    name, rows = rng.choice(frame.columns), frame.height
    makers: tuple[Callable[[], Any], ...] = (
        lambda: pl.Series(name, [hostile_text(rng)] * rows),
        lambda: pl.Series(name, [None] * rows),
        lambda: pl.Series(
            name, [rng.choice((2**63 - 1, 2**62, 2**53 + 1, 2**31, 0, -1, -(2**62)))] * rows
        ),
        lambda: pl.Series(name, [rng.choice((math.nan, math.inf, -1.5, 1e300))] * rows),
        lambda: pl.Series(name, [b"\xff"] * rows),
        lambda: pl.Series(name, [[1, 2]] * rows),
        lambda: pl.Series(name, [{"a": 1}] * rows),
        lambda: pl.Series(name, [True] * rows),
    )
    action = rng.randrange(12)
    if action < len(makers):
        return frame.with_columns(makers[action]())
    if action == 8:
        return frame.drop(name)
    if action == 9:
        return frame.clear() if rng.random() < 0.3 else frame.head(1)
    if action == 10:
        return frame.rename({name: f"{name}x"})
    mixed = [None if rng.random() < 0.5 else value for value in frame[name].to_list()]
    return frame.with_columns(pl.Series(name, mixed, dtype=frame.schema[name]))


def mutated_file(path: Path, data: bytes, rng: Random, lines: list[str]) -> None:
    """Replaces a file with a mutation of its data, or with a folder or nothing.

    Args:
        path: The file; its suffix selects the mutations.
        data: The valid content.
        rng: Determines the mutation.
        lines: Lines of other files, which may be inserted.
    """
    suffix = path.suffix
    if rng.random() < 0.02:
        path.unlink()
        if rng.random() < 0.5:
            path.mkdir()
        return
    if rng.random() < 0.03:
        path.write_bytes(rng.choice((b"", b"\n", b"\0" * 100, rng.randbytes(300), b"{}", b"[]")))
        return
    if suffix in {".parquet", ".csv"} and rng.random() < 0.6 and data[:4] in {b"PAR1", b"coll"}:
        mutated_frame(path, path, rng)
    elif suffix == ".et" and rng.random() < 0.7:
        _mutate_trace(path, rng)
    elif suffix == ".toml" and rng.random() < 0.7:
        tree = mutated_tree(tomllib.loads(data.decode()), rng)
        path.write_text(toml_of(tree), "utf-8", "replace")
    elif suffix == ".json" and rng.random() < 0.7:
        path.write_text(json.dumps(mutated_tree(json.loads(data), rng)), "utf-8")
    elif suffix == ".yml" and rng.random() < 0.7:
        import yaml

        tree = mutated_tree(yaml.safe_load(data), rng)
        path.write_text(yaml.safe_dump(tree), "utf-8", "replace")
    elif suffix in {".parquet", ".et", ".tutti"} or not _is_text(data):
        path.write_bytes(mutated_bytes(data, rng))
    else:
        path.write_bytes(mutated_text(data.decode(), rng, lines))


def _is_text(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _mutate_trace(path: Path, rng: Random) -> None:
    from dataclasses import replace

    from tutti.formats.chakra import reader as chakra
    from tutti.formats.chakra.schema import NODE_TYPES, SCALARS

    kinds = [name for name, _ in SCALARS]
    trace = chakra.read(path)
    nodes = list(trace.nodes)
    at = rng.randrange(len(nodes))
    node = nodes[at]
    action = rng.randrange(6)
    if action < 3:
        attributes = dict(node.attributes)
        name = rng.choice(
            (*attributes, "comm_type", "comm_size", "num_ops", "tensor_size", "is_cpu_op")
        )
        attributes[name] = chakra.Attribute(rng.choice(kinds) + rng.choice(("", "_list")), None)
        value = hostile(rng)
        value = (value, value) if attributes[name].kind.endswith("_list") else value
        attributes[name] = chakra.Attribute(attributes[name].kind, value)
        nodes[at] = replace(node, attributes=attributes)
    elif action == 3:
        nodes[at] = replace(node, duration_us=rng.choice((2**63, 2**64 - 1, 2**53, 0)))
    elif action == 4:
        nodes[at] = replace(node, data_deps=(rng.choice((1, 2, 3, 9, 2**64 - 1)),))
    else:
        nodes[at] = replace(node, type=rng.choice(NODE_TYPES[1:]), id=rng.choice((1, 2**64 - 1)))
    with suppress(ValueError, TypeError, OverflowError):
        chakra.write(path, replace(trace, nodes=tuple(nodes)))
