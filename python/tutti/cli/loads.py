"""The loads of `--loads`."""

from __future__ import annotations

import math

from tutti.base.files.mistakes import mistake, shown

_MOST_LOADS = 10_000


def load_values(text: str) -> list[float]:
    """Parses loads such as ``0.1,0.2`` or ``0.05:0.5:0.05``; returns sorted, distinct loads.

    Raises:
        ConfigError: The text is not a list of loads, or there are too many.
    """

    def refused(problem: str) -> Exception:
        return mistake(
            problem,
            source="--loads",
            value=shown(text),
            expected="loads above 0 in the unit of the traffic's rate: a list 0.1,0.2,0.4 or a "
            "range 0.05:0.5:0.05",
        )

    found: set[float] = set()
    for part in text.split(","):
        try:
            numbers = [float(number) for number in part.split(":")]
        except ValueError:
            raise refused("is not a list of loads") from None
        if any(not math.isfinite(number) or number < 0 for number in numbers):
            raise refused("has a load that is negative or infinite")
        if len(numbers) == 1:
            found.add(numbers[0])
            continue
        if len(numbers) != 3 or numbers[2] <= 0 or numbers[1] < numbers[0]:
            raise refused("is not a range FROM:TO:STEP with a step above 0")
        start, end, step = numbers
        count = math.floor((end - start) / step + 1e-9) + 1
        if count > _MOST_LOADS:
            raise refused(f"has {count:,} loads; the limit is {_MOST_LOADS:,}")
        if not math.isclose(start + (count - 1) * step, end, abs_tol=1e-9):
            last = f"{start + (count - 1) * step:.12g}"
            raise refused(f"has a range that misses its end: the last load is {last}")
        found |= {round(start + index * step, 12) for index in range(count)}
    if 0.0 in found:
        raise refused("has a load of 0, which injects no packets")
    return sorted(found)
