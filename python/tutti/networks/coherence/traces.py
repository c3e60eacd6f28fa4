r"""Reads traces of memory accesses, which a chip repeats instead of a kernel.

A line has a core, an operation and its number; `#` starts a comment. Addresses are decimal or
hexadecimal (`0x...`) multiples of 8.

| operation | number | effect |
|---|---|---|
| `compute` | cycles | computes on registers |
| `load`, `store` | address | loads or stores a word |
| `update` | address | adds 1 to a word, atomically |
| `barrier` | none | waits until all cores have come to as many barriers |

`barrier` without a core is a barrier of all cores. Cores without lines are idle.

Examples:
    >>> trace = parse_trace("0 compute 100\n0 store 0x40\nbarrier\n1 load 0x40\n", source="t.txt")
    >>> trace.cores
    2
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti import _core
from tutti.base.files import limits
from tutti.base.files.limits import parse_count
from tutti.base.files.mistakes import mistake, shown
from tutti.base.files.reader import read_text
from tutti.networks.errors import CoherenceError

if TYPE_CHECKING:
    from pathlib import Path

PREFIX = "trace:"
"""The start of kernel names that are traces."""
_MOST_CORES = 4096
"""Nodes of the largest mesh."""
_MOST_STEPS = 5_000_000
"""Steps of a trace, of all cores."""
_ADDRESSED = ("load", "store", "update")
_LINE = "a core, an operation and its number, such as `0 load 0x1000`"

Step = tuple[str, int]
"""An operation and its number; 0 for a barrier."""


def read_trace(path: Path) -> _core.CoherenceTrace:
    """Reads a trace file.

    Raises:
        ConfigError: The file cannot be read, or a line is invalid.
    """
    text = read_text(path, limits.Bytes.LOG, "a trace of accesses", line=limits.LOG_LINE)
    return parse_trace(text, source=str(path))


def parse_trace(text: str, *, source: str) -> _core.CoherenceTrace:
    """Reads a trace from text.

    Args:
        text: The text.
        source: The name of the file in errors.

    Raises:
        ConfigError: A line is invalid, or the cores have different numbers of barriers.
    """
    cores: dict[int, list[Step]] = {}
    common: list[dict[int, int]] = []
    steps = 0
    for number, line in enumerate(text.split("\n"), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        steps += 1
        if steps > _MOST_STEPS:
            raise mistake(f"more than {_MOST_STEPS:,} steps", source=source)
        if words == ["barrier"]:
            common.append({core: len(steps_of) for core, steps_of in cores.items()})
            continue
        core, step = _step(words, f"{source}:{number}")
        cores.setdefault(core, []).append(step)
    if not cores:
        raise mistake("no core has a step", source=source, expected=_LINE)
    lists = [_with_barriers(cores.get(core, []), core, common) for core in range(max(cores) + 1)]
    try:
        return _core.CoherenceTrace(lists)
    except CoherenceError as error:
        raise mistake(error.problem, source=source) from None


def _with_barriers(steps: list[Step], core: int, common: list[dict[int, int]]) -> list[Step]:
    """Returns the steps of a core with the barriers of all cores.

    Args:
        steps: Its steps.
        core: The core.
        common: For each barrier, the number of earlier steps by core.
    """
    found: list[Step] = []
    done = 0
    for barrier in common:
        place = barrier.get(core, 0)
        found += [*steps[done:place], ("barrier", 0)]
        done = place
    return [*found, *steps[done:]]


def _step(words: list[str], place: str) -> tuple[int, Step]:
    """Returns the core and the step of a line."""
    core = parse_count(words[0], _MOST_CORES - 1)
    if core is None:
        raise mistake("invalid core", source=place, value=shown(words[0]), expected=_LINE)
    operation = words[1] if len(words) > 1 else ""
    if operation == "barrier" and len(words) == 2:
        return core, ("barrier", 0)
    if operation not in {"compute", *_ADDRESSED} or len(words) != 3:
        raise mistake("invalid step", source=place, value=shown(" ".join(words)), expected=_LINE)
    number = _number(words[2])
    if number is None or (operation in _ADDRESSED and number % 8):
        expected = "a multiple of 8" if operation in _ADDRESSED else "a number of cycles"
        raise mistake("invalid number", source=place, value=shown(words[2]), expected=expected)
    return core, (operation, number)


def _number(text: str) -> int | None:
    """Returns the number that decimal or hexadecimal text represents."""
    if text.lower().startswith("0x") and len(text) <= limits.DIGITS:
        digits = text[2:]
        is_hex = bool(digits) and all(digit in "0123456789abcdefABCDEF" for digit in digits)
        value = int(digits, 16) if is_hex else -1
        return value if 0 <= value <= limits.MOST else None
    return parse_count(text)
