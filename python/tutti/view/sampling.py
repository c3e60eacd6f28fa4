"""Reduces the points of a chart, so that a page with it does not exceed its maximum size."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

_FEWEST = 16
"""Traces up to this number of points stay complete."""


def fewer_points(figure: dict[str, Any], keep: float) -> tuple[dict[str, Any], int, int]:
    """Returns a figure with a share of its points, and the numbers of points shown and in total.

    Bars and messages are taken at equal intervals. A line keeps the smallest and the largest value
    of each interval, so that peaks remain. Heat maps lose rows and columns at equal intervals.

    Args:
        figure: A figure of plotly as plain data.
        keep: The share of points that remains, above 0.
    """
    traces, shown, total = [], 0, 0
    for trace in figure["data"]:
        less, few, many = _matrix(trace, keep) if "z" in trace else _points(trace, keep)
        traces.append(less)
        shown, total = shown + few, total + many
    return figure | {"data": traces}, shown, total


def _points(trace: dict[str, Any], keep: float) -> tuple[dict[str, Any], int, int]:
    groups = _groups(trace)
    if len(groups) <= _FEWEST:
        return trace, len(groups), len(groups)
    goal = max(int(len(groups) * keep), _FEWEST)
    is_line = trace.get("type") == "scatter" and all(len(group) == 1 for group in groups)
    chosen = _peaks(trace["y"], goal) if is_line else _spaced(len(groups), goal)
    places = [place for index in chosen for place in groups[index]]
    return _taken(trace, len(trace["x"]), places), len(chosen), len(groups)


def _groups(trace: dict[str, Any]) -> list[range]:
    """Returns the places of each point, or of each part of a line between gaps with its gap."""
    xs = trace.get("x") or []
    gaps = [place for place, x in enumerate(xs) if x is None]
    if not gaps or gaps == [0]:
        return [range(place, place + 1) for place in range(len(xs))]
    starts = [0, *(gap + 1 for gap in gaps)]
    ends = [*(gap + 1 for gap in gaps), len(xs)]
    return [range(start, end) for start, end in zip(starts, ends, strict=True) if start < end]


def _spaced(count: int, goal: int) -> list[int]:
    """Returns `goal` of `count` indices at equal intervals, with the first and the last."""
    if goal >= count:
        return list(range(count))
    return sorted({round(place * (count - 1) / (goal - 1)) for place in range(goal)})


def _peaks(values: list[Any], goal: int) -> list[int]:
    """Returns the indices of the smallest and the largest value of each of `goal` / 2 intervals."""
    if goal >= len(values):
        return list(range(len(values)))
    ends = [round(part * 2 * len(values) / goal) for part in range(goal // 2)] + [len(values)]
    chosen = {0, len(values) - 1}
    for start, end in pairwise(ends):
        known = [place for place in range(start, end) if values[place] is not None]
        if known:
            chosen |= {min(known, key=values.__getitem__), max(known, key=values.__getitem__)}
    return sorted(chosen)


def _taken(value: Any, length: int, places: list[int]) -> Any:  # noqa: ANN401 - plain data
    """Returns plain data, in which every list of `length` items has only those of `places`."""
    if isinstance(value, dict):
        return {name: _taken(one, length, places) for name, one in value.items()}
    if isinstance(value, list) and len(value) == length:
        return [value[place] for place in places]
    return value


def _matrix(trace: dict[str, Any], keep: float) -> tuple[dict[str, Any], int, int]:
    rows, columns = len(trace["z"]), len(trace["z"][0]) if trace["z"] else 0
    side = keep**0.5
    down = _spaced(rows, max(int(rows * side), min(rows, _FEWEST)))
    across = _spaced(columns, max(int(columns * side), min(columns, _FEWEST)))
    less = dict(trace)
    for name in ("z", "text", "customdata"):
        if isinstance(trace.get(name), list):
            less[name] = [[trace[name][row][column] for column in across] for row in down]
    for name, places in (("x", across), ("y", down)):
        if isinstance(trace.get(name), list):
            less[name] = [trace[name][place] for place in places]
    return less, len(down) * len(across), rows * columns
