"""Times of captured operators from a profile of PyTorch (Kineto), by name, datatype and shapes."""

from __future__ import annotations

import re
import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti.training.capture.measured import MeasuredTimes, key_of, shapes_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tutti.formats.kineto.operators import Timed
    from tutti.training.capture.measured import Key, Shapes
    from tutti.training.capture.record import Operator

__all__ = ["Match", "match", "profiled", "profiled_names"]

_ATTENTION = re.compile(r"_scaled_dot_product_(?:flash|cudnn|efficient)_attention")
_ANY_ATTENTION = "_scaled_dot_product_attention"
"""Kernels of attention that PyTorch chooses by the GPU: a step is captured with one of them."""
_FIRST = 4
"""Tensors of an operator whose shapes a captured step states."""


@dataclass(frozen=True)
class Match:
    """Captured operators with the times of a profile.

    Attributes:
        times: The median of each distinct operator that the profile has.
        matched: Operators of the step that have a time.
        total: Operators of the step.
        missing: Operators of the step without a time: their number by name, most first.
        unused: ns of kernels of operators that the step does not have, by name, longest first.
    """

    times: MeasuredTimes
    matched: int
    total: int
    missing: dict[str, int]
    unused: dict[str, int]


def profiled_names(operators: Iterable[Operator]) -> frozenset[str]:
    """Returns the names that operators have in a profile: see :func:`profiled`."""
    return frozenset(profiled(one.name) for one in operators if one.exchange is None)


def profiled(name: str) -> str:
    """Returns the name in a profile of a captured operator, such as `aten::add` of
    `aten.add.Tensor`; with one name for all kernels of attention.
    """
    parts = name.replace("::", ".").split(".")
    plain = "::".join(parts[:2])
    return _ATTENTION.sub(_ANY_ATTENTION, plain)


def match(operators: Iterable[Operator], timed: Sequence[Timed], gpu: str) -> Match:
    """Gives captured operators the times of a profile.

    An operator has the median of those of the same name, datatype and shapes. Products in compiled
    code have their result as a further tensor.

    Args:
        operators: The operators of a step.
        timed: The operators of the profile.
        gpu: The name of the GPU in tutti.
    """
    numbers = Counter(key_of(one) for one in operators if one.exchange is None)
    by_shapes = _by_shapes(timed)
    same = {key: _same(key, by_shapes, timed) for key in numbers}
    median = {key: statistics.median(timed[at].ns for at in found) / 1000
              for key, found in same.items() if found}  # fmt: skip
    us = {key: time for key, time in median.items() if time > 0}
    missing: Counter[str] = Counter()
    for key, number in numbers.items():
        missing[key[0]] += number if key not in us else 0
    used = {at for found in same.values() for at in found}
    unused: Counter[str] = Counter()
    for at, each in enumerate(timed):
        unused[each.name] += each.ns if at not in used else 0
    total = numbers.total()
    return Match(MeasuredTimes(gpu, us), total - missing.total(), total, _most(missing),
                 _most(unused))  # fmt: skip


def _by_shapes(timed: Sequence[Timed]) -> dict[tuple[str, Shapes], list[int]]:
    """Returns the places of operators by name and the shapes of their first tensors."""
    found: dict[tuple[str, Shapes], list[int]] = defaultdict(list)
    for at, each in enumerate(timed):
        shapes = tuple(shape or (1,) for shape in each.shapes[:_FIRST])
        for count in range(len(shapes) + 1):
            found[profiled(each.name), shapes[:count]].append(at)
    return found


def _same(
    key: Key, by_shapes: dict[tuple[str, Shapes], list[int]], timed: Sequence[Timed]
) -> list[int]:
    """Returns the places of the operators with the name, datatype and shapes of a captured one."""
    name, dtype, text = key
    parsed = shapes_of(text)
    if parsed is None:
        return []
    shapes, more = parsed
    count = len(shapes) + more
    counts = {count} if more else {count, count + 1}
    return [at for at in by_shapes.get((profiled(name), shapes), ())
            if timed[at].dtype in {dtype, ""} and len(timed[at].shapes) in counts]  # fmt: skip


def _most(numbers: Counter[str]) -> dict[str, int]:
    return {name: number for name, number in numbers.most_common() if number}
