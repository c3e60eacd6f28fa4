"""Times of the operators of a profile: the kernels that each CPU operation of PyTorch launched.

Source: `InputOutputEncoder` of ``torch/csrc/profiler/collection.cpp`` (PyTorch 2.5 to 2.15), which
writes `Input Dims` and `Input type`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from tutti.formats.kineto.profile import load_profile
from tutti.workloads.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from tutti.formats.kineto.profile import Operation, Profile

__all__ = ["Timed", "TimedProfile", "timed_operators"]

_DTYPES = {
    "float": "float32", "double": "float64", "c10::half": "float16", "c10::bfloat16": "bfloat16",
    "int": "int32", "long": "int64", "long int": "int64", "short": "int16", "bool": "bool",
    "signed char": "int8", "unsigned char": "uint8", "c10::complex<float>": "complex64",
    "c10::float8_e4m3fn": "float8_e4m3fn", "c10::float8_e5m2": "float8_e5m2",
}  # fmt: skip
"""Datatypes of PyTorch by their name in profiles, in lower case."""
_LIST = "TensorList"
_MOST_SHAPES = 1 << 16


class Timed(NamedTuple):
    """An operator of a profile.

    Attributes:
        name: The name, such as `aten::mm`.
        dtype: The datatype of its first tensor; empty if that is in a list.
        shapes: The shapes of its tensors.
        ns: The time of its kernels in ns.
    """

    name: str
    dtype: str
    shapes: tuple[tuple[int, ...], ...]
    ns: int


class TimedProfile(NamedTuple):
    """The operators of a profile.

    Attributes:
        gpu: The product name of the GPU; empty if the profile does not state it.
        operators: The operators that launched kernels, in order.
        other: ns of kernels of computations that no operator launched.
    """

    gpu: str
    operators: list[Timed]
    other: int


def timed_operators(path: Path, selects: Callable[[str], bool]) -> TimedProfile:
    """Reads operators and the times of their kernels.

    The kernels of an operator are those that it launched, itself or by an operator inside. Of
    nested operators, the outermost selected one counts.

    Args:
        path: The profile of a rank.
        selects: Whether operators of a name are read.

    Raises:
        ConfigError: The file cannot be read.
        TraceError: It is not a profile of PyTorch, or has no shapes.
    """
    profile = load_profile(path, operations=True)
    if not any("Input Dims" in one.arguments for one in profile.operations):
        message = f"{path}: the profile has no shapes of operators: expected `Input Dims`"
        raise TraceError(message, kind="no_shapes")
    outer = _outermost([one for one in profile.operations if selects(one.name)])
    times: dict[int, int] = defaultdict(int)
    other = 0
    for ns, thread, start in _launched(profile):
        found = _enclosing(outer.get(thread, ()), start)
        if found is None:
            other += ns
        else:
            times[found.number] += ns
    operators = [Timed(one.name, *_tensors(one), times[one.number])
                 for one in profile.operations if one.number in times]  # fmt: skip
    return TimedProfile(profile.gpu, operators, other)


def _outermost(operations: Iterable[Operation]) -> dict[tuple[object, object], list[Operation]]:
    """Returns operations that are in no other one, by thread and in order of start."""
    found: dict[tuple[object, object], list[Operation]] = {}
    for one in sorted(operations, key=lambda one: (one.start, -one.end)):
        own = found.setdefault(one.thread, [])
        if not own or one.start >= own[-1].end:
            own.append(one)
    return found


def _launched(profile: Profile) -> Iterable[tuple[int, tuple[object, object], int]]:
    """Yields the ns of each kernel that is not a communication, and the thread and time of its
    launch.

    A kernel without a recorded call is of the operation with its external number.
    """
    calls = {one.correlation: one for one in profile.calls if one.correlation >= 0}
    external = {one.external: one for one in profile.operations if one.external >= 0}
    for one in profile.activities:
        if one.communicates:
            continue
        call = calls.get(one.correlation) or external.get(one.external)
        thread, start = (call.thread, call.start) if call else (("", ""), 0)
        yield one.end - one.start, thread, start


def _enclosing(operations: list[Operation] | tuple[()], time: int) -> Operation | None:
    at = bisect_right(operations, time, key=lambda one: one.start)
    found = operations[at - 1] if at else None
    return found if found is not None and time <= found.end else None


def _tensors(one: Operation) -> tuple[str, tuple[tuple[int, ...], ...]]:
    """Returns the datatype of the first tensor of an operation, and the shapes of its tensors."""
    dims, types = one.arguments.get("Input Dims"), one.arguments.get("Input type")
    if not isinstance(dims, list) or not isinstance(types, list) or len(dims) != len(types):
        return "", ()
    dtype, shapes = None, []
    for shape, name in zip(dims, types, strict=True):
        if name == _LIST and isinstance(shape, list):
            shapes += [_shape(inner) for inner in shape[:_MOST_SHAPES]]
            dtype = "" if dtype is None else dtype
        elif (known := _DTYPES.get(str(name).lower())) is not None:
            shapes.append(_shape(shape))
            dtype = known if dtype is None else dtype
    return dtype or "", tuple(shapes)


def _shape(given: Any) -> tuple[int, ...]:  # noqa: ANN401 - of a file
    """Returns a shape; that of a scalar if it is not one."""
    sizes = given if isinstance(given, list) else []
    return tuple(size for size in sizes if type(size) is int and size >= 0)
