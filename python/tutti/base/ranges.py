"""Sizes and rank counts on the command line, in the syntax of nccl-tests.

Sizes on the command line are the only quantities without a mandatory unit: as in nccl-tests, a bare
number is bytes, and K, M, G stand for KiB, MiB, GiB.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tutti import _core
from tutti.base.errors import UnitError
from tutti.base.files.mistakes import mistake, shown
from tutti.base.units import Size

if TYPE_CHECKING:
    from tutti.base.errors import ConfigError

SIZE = r"a size such as 8, 64K, 128MiB or '1.5 KB'"
_MOST_COUNTS = 4096
"""Limit on the rank counts of one command; a longer list is a typing error."""


def size(text: str, option: str) -> str:
    """Converts a size in the syntax of nccl-tests to text with a unit.

    Raises:
        ConfigError: The text is not a size.
    """
    bare = re.fullmatch(r"\s*([0-9.]+)\s*([kKmMgGtT]?)\s*", text)
    written = text
    if bare:
        number, prefix = bare.groups()
        written = f"{number} {prefix.upper() + 'i' if prefix else ''}B"
    try:
        _core.parse_size(written)
    except UnitError as error:
        raise mistake(error.problem, source=option, expected=SIZE) from None
    return written


def size_bytes(text: str | None, option: str, default: int = 0) -> int:
    """Returns a size in bytes, or the default of an option that is not given.

    Raises:
        ConfigError: The text is not a size.
    """
    return default if text is None else _core.parse_size(size(text, option))


def growing(first: int, last: int, factor: int) -> list[int]:
    """Returns numbers from the first to the last, each `factor` times the previous one.

    Examples:
        >>> growing(8, 100, 4), growing(0, 100, 2)
        ([8, 32], [0])
    """
    numbers = [first]
    while first and numbers[-1] * factor <= last:
        numbers.append(numbers[-1] * factor)
    return numbers


def unreached(numbers: list[int], last: int, factor: int, *, what: str = "size") -> str:
    """Returns a remark if growing numbers end before the last one; empty if they do not.

    Examples:
        >>> unreached(growing(8, 100, 4), 100, 4)
        'the last size is 32 B: 100 B is not 8 B times a power of 4'
        >>> unreached(growing(4, 6, 2), 6, 2, what="rank count")
        'the last rank count is 4: 6 is not 4 times a power of 2'
        >>> unreached(growing(8, 128, 4), 128, 4)
        ''
    """
    if numbers[-1] == last:
        return ""
    ends: list[object] = [numbers[-1], last, numbers[0]]
    if what == "size":
        ends = [Size(bytes=numbers[-1]), Size(bytes=last), Size(bytes=numbers[0])]
    return "the last {} is {}: {} is not {} times a power of {}".format(what, *ends, factor)


def growing_sizes(
    begin: str | None, end: str | None, factor: int | None, least: int = 1
) -> list[int]:
    """Returns the sizes of `-b`, `-e` and `-f` (default 2) in bytes, smallest first.

    Raises:
        ConfigError: They are no range of sizes.
    """
    first, last = size_bytes(begin, "-b"), size_bytes(end, "-e")
    if last < first or first < least:
        raise mistake("invalid range of sizes", source="-b and -e", value=f"{first} B to {last} B",
                      expected=f"{least} B or more, and the smaller size first")  # fmt: skip
    if factor is not None and factor < 2:
        raise mistake("does not grow", source="-f", value=str(factor), expected="2 or more")
    return growing(first, last, factor or 2)


RANK_NOTATION = "4,8,12, each of 4-12, or a range 4:1024 (doubling) or 4:1024:4 (factor 4)"
"""The notation of rank counts, for the help of options and errors."""


def rank_counts(text: str) -> list[Any]:
    """Parses rank counts to numbers and ranges, as in a file.

    Raises:
        ConfigError: A part is neither a number nor a range, or a range misses its end.
    """
    names = "from", "to", "factor"
    counts: list[Any] = []
    for part in text.split(","):
        numbers = _expanded(part)
        ends = _numbers(part) if ":" in part else ()
        counts += [dict(zip(names, ends, strict=True))] if ends else numbers
    return counts


def _numbers(part: str) -> list[int]:
    """Returns a number, or the limits and the factor of a range."""
    numbers = part.strip().split(":")
    is_valid = all(n.isascii() and n.isdigit() and len(n) < 12 for n in numbers)
    if not is_valid or len(numbers) > 3:
        raise _no_ranks(part, RANK_NOTATION)
    return [*map(int, numbers), *([2] if len(numbers) == 2 else [])]


def expanded_ranks(text: str) -> list[int]:
    """Parses rank counts to sorted, distinct numbers; ``2-16`` is each number from 2 to 16.

    Raises:
        ConfigError: The text is not a list of rank counts, or a range misses its end.
    """
    return sorted({count for part in text.split(",") for count in _expanded(part)})


def _expanded(part: str) -> list[int]:
    every = re.fullmatch(r"\s*([0-9]{1,7})-([0-9]{1,7})\s*", part)
    numbers = [*map(int, every.groups())] if every else _numbers(part)
    if len(numbers) == 1:
        return numbers
    first, last, *factor = numbers
    if first > last:
        raise _no_ranks(part, "the smaller number first")
    if not factor:
        if last - first >= _MOST_COUNTS:
            raise _no_ranks(part, f"at most {_MOST_COUNTS:,} of them")
        return [*range(first, last + 1)]
    if factor[0] < 2 or first < 1:
        raise _no_ranks(part, "a range that grows: a factor of 2 or more, from 1 on")
    counts = growing(first, last, factor[0])
    if missed := unreached(counts, last, factor[0], what="rank count"):
        next_ = counts[-1] * factor[0]
        expected = f"{first}-{last} for each, or {_range(first, counts[-1], factor[0])}"
        raise mistake(missed, source="--ranks", value=shown(part),
                      expected=f"{expected}, or {_range(first, next_, factor[0])}")  # fmt: skip
    return counts


def _range(first: int, last: int, factor: int) -> str:
    if first == last:
        return str(first)
    return f"{first}:{last}" + (f":{factor}" if factor != 2 else "")


def _no_ranks(text: str, expected: str) -> ConfigError:
    return mistake("is not a list of rank counts", source="--ranks", value=shown(text),
                   expected=expected)  # fmt: skip
