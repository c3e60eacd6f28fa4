"""Reads a file of the PyTorch profiler (Kineto): what the GPU executed, and the calls behind it.

Source: ``output_json.cpp``, ``CuptiActivity.h`` and ``MetadataFieldCatalog.h`` of pytorch/kineto
114171d; ``torch/csrc/profiler/util.cpp`` (``saveNcclMeta``) of PyTorch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from tutti.base.files.json_stream import members
from tutti.base.files.limits import RANKS, Bytes, parse_count
from tutti.base.files.reader import read_pieces
from tutti.workloads.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

EXPECTED = "a profile of PyTorch: JSON of torch.profiler.profile.export_chrome_trace"
RECORD = "record_param_comms"
"""The name of CPU operations that describe a communication."""
_EVENTS = "traceEvents"
_GPU = {
    "kernel": "kernel",
    "gpu_memcpy": "memcpy",
    "memcpy": "memcpy",
    "gpu_memset": "memset",
    "memset": "memset",
}
_CALLS = ("cuda_runtime", "cuda_driver", "runtime")
_SYNC = "cuda_sync"
_STEP = "ProfilerStep#"
_OTHERS = ("cpu_op", "user_annotation", "gpu_user_annotation", "python_function", "operator")
"""Categories of other events of the PyTorch profiler; names of old versions are upper case."""
_OPERATIONS = ("cpu_op", "operator")
_COMMUNICATION = (
    "Collective name",
    "In msg nelems",
    "Out msg nelems",
    "dtype",
    "Group size",
    "In split size",
    "Out split size",
    "Process Group Name",
    "Process Group Ranks",
    "Rank",
    "Src Rank",
    "Dst Rank",
    "Seq",
)
_TEXTS = ("Collective name", "dtype", "Process Group Name")
_MOST_NS = 1 << 52
"""The largest time in ns: 52 days, or a date that is far away."""

Stream = tuple[int, int]
"""A GPU and a stream of it."""


class Activity(NamedTuple):
    """What a GPU executed: a kernel, a copy or a fill. Times are in ns.

    Attributes:
        kind: ``"kernel"``, ``"memcpy"`` or ``"memset"``.
        correlation: The number that the call of the launch has too, or -1.
        external: The number of the CPU operation behind it, or -1.
        communication: The arguments that describe a communication; empty if there are none.
    """

    name: str
    kind: str
    start: int
    end: int
    stream: Stream
    correlation: int
    external: int
    communication: Mapping[str, Any]

    @property
    def communicates(self) -> bool:
        """Whether it is a kernel of a communication library."""
        return bool(self.communication) or (self.kind == "kernel" and "nccl" in self.name.lower())


class Call(NamedTuple):
    """A call of the CUDA or HIP interface by a CPU thread. Times are in ns."""

    name: str
    start: int
    end: int
    thread: tuple[object, object]
    correlation: int


class Record(NamedTuple):
    """A CPU operation that describes a communication. Times are in ns."""

    start: int
    end: int
    thread: tuple[object, object]
    external: int
    communication: Mapping[str, Any]


class Operation(NamedTuple):
    """A CPU operation of PyTorch. Times are in ns.

    Attributes:
        number: Its place among the operations of the file.
        external: The number that its kernels refer to, or -1.
        arguments: The arguments of the event, such as `Input Dims`.
    """

    name: str
    number: int
    start: int
    end: int
    thread: tuple[object, object]
    external: int
    arguments: Mapping[str, Any]


class Sync(NamedTuple):
    """A wait of a stream or of the CPU.

    Attributes:
        kind: Such as ``"Stream Wait Event"``.
        stream: The stream that waits, or that the CPU waits for; -1 if there is none.
        on_stream: The stream in which the event was recorded, or -1.
        recorded: The correlation of the call that recorded the event, or -1.
        correlation: The correlation of the call.
        start: When it was recorded, in ns.
    """

    kind: str
    stream: Stream
    on_stream: Stream
    recorded: int
    correlation: int
    start: int


@dataclass
class Profile:
    """The contents of a file.

    Attributes:
        source: The file.
        activities: What the GPUs executed, in file order.
        calls: Calls of CPU threads.
        syncs: Waits.
        records: Descriptions of communications.
        operations: CPU operations, if requested.
        steps: Starts and ends in ns of the annotations `ProfilerStep#N` of the CPU.
        distributed: The member `distributedInfo`, or an empty table.
        base: The start of the clock in ns since 1970, or 0.
        gpu: The product name of the first GPU, or an empty text.
    """

    source: Path
    activities: list[Activity] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    syncs: list[Sync] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    steps: list[tuple[int, int]] = field(default_factory=list)
    distributed: dict[str, Any] = field(default_factory=dict)
    base: int = 0
    gpu: str = ""

    @property
    def world_size(self) -> int | None:
        """The number of ranks of the job, if the file states it."""
        return _rank_count(self.distributed.get("world_size"))

    @property
    def rank(self) -> int | None:
        """The rank, if the file states it."""
        given = self.distributed.get("rank")
        return given if type(given) is int and 0 <= given < RANKS else None

    def groups(self) -> dict[str, tuple[int, ...]]:
        """Returns the ranks of process groups by name, where `distributedInfo` has them."""
        found = {}
        configured = self.distributed.get("pg_config")
        for group in configured if isinstance(configured, list) else ():
            name = group.get("pg_name") if isinstance(group, dict) else None
            ranks = ranks_of(group.get("ranks")) if isinstance(name, str) else None
            if ranks:
                found[str(name)] = ranks
        return found


def ranks_of(given: object) -> tuple[int, ...] | None:
    """Returns a list of ranks, or of its text; None if it is abbreviated (`...`) or invalid."""
    return integers_of(given, RANKS - 1)


def integers_of(given: object, most: int) -> tuple[int, ...] | None:
    """Returns a list of integers up to `most`, or of its text; None for another list or text."""
    if isinstance(given, str):
        inside = given.strip("[] ")
        given = [parse_count(word.strip(), most) for word in inside.split(",")] if inside else []
    if not isinstance(given, list):
        return None
    is_valid = all(type(each) is int and 0 <= each <= most for each in given)
    return tuple(given) if is_valid else None


def _rank_count(given: object) -> int | None:
    return given if type(given) is int and 0 < given <= RANKS else None


def load_profile(path: Path, *, operations: bool = False) -> Profile:
    """Reads the profile of a rank.

    Args:
        path: The file.
        operations: Whether to store all CPU operations.

    Raises:
        ConfigError: The file cannot be read, is truncated or not a JSON object.
        TraceError: It is not a profile of PyTorch, has no GPU activity, or an event is invalid.
    """
    loader = _Loader(path, operations=operations)
    pieces = read_pieces(path, Bytes.TRACE, EXPECTED)
    for name, value in members(pieces, _EVENTS, source=str(path), expected=EXPECTED):
        if name == _EVENTS:
            loader.add(value)
        elif name == "distributedInfo" and isinstance(value, dict):
            loader.profile.distributed = value
        elif name == "baseTimeNanoseconds" and type(value) is int and 0 <= value < 1 << 62:
            loader.profile.base = value
        elif name == "deviceProperties" and isinstance(value, list) and value:
            loader.profile.gpu = _product(value[0])
    return loader.finished()


class _Loader:
    """Collects the events of a file."""

    def __init__(self, path: Path, *, operations: bool) -> None:
        self.profile = Profile(path)
        self._stores_operations = operations
        self._number = -1
        self._categories: dict[str, None] = {}
        self._is_pytorch = False
        self._names: dict[str, str] = {}

    def add(self, event: object) -> None:
        """Adds an event; the first call, with None, starts the list."""
        if event is None:
            self._number = 0
            return
        self._number += 1
        if not isinstance(event, dict) or event.get("ph") != "X":
            return
        category = event.get("cat")
        if not isinstance(category, str):
            return
        category = category.lower()
        kind = _GPU.get(category)
        if kind is not None:
            self._add_activity(event, kind)
        elif category in _CALLS:
            self._add_call(event)
        elif category == _SYNC:
            self._add_sync(event)
        elif event.get("name") == RECORD:
            self._add_record(event)
        elif category == "user_annotation" and str(event.get("name", "")).startswith(_STEP):
            self._is_pytorch = True
            self.profile.steps.append(self._times(event))
        elif category in _OTHERS:
            self._is_pytorch = True
            if self._stores_operations and category in _OPERATIONS:
                self._add_operation(event)
        elif len(self._categories) < 8:
            self._categories.setdefault(category[:40])

    def finished(self) -> Profile:
        """Returns the profile.

        Raises:
            TraceError: The file is not a profile of PyTorch, or has no GPU activity.
        """
        profile = self.profile
        if self._number < 0:
            message = f"{profile.source}: no member `{_EVENTS}`: expected {EXPECTED}"
            raise TraceError(message, kind="not_a_profile")
        if not profile.activities:
            if self._is_pytorch or profile.calls or profile.records:
                message = f"{profile.source}: the profile has no GPU activity: expected kernels"
                raise TraceError(message, kind="no_gpu_activity")
            events = ", ".join(self._categories) or "none with a category"
            message = f"{profile.source}: its events ({events}) are not of the PyTorch profiler: "
            raise TraceError(message + f"expected {EXPECTED}", kind="not_a_profile")
        return profile

    def _add_activity(self, event: dict[str, Any], kind: str) -> None:
        arguments = _arguments(event)
        start, end = self._times(event)
        device = self._integer(arguments.get("device", event.get("pid", 0)), "device")
        named = arguments.get("stream")
        stream = self._integer(named if type(named) is int else event.get("tid", 0), "stream")
        self.profile.activities.append(
            Activity(
                name=self._name(event),
                kind=kind,
                start=start,
                end=end,
                stream=(device, stream),
                correlation=self._integer(arguments.get("correlation", -1), "correlation"),
                external=self._integer(arguments.get("External id", -1), "External id"),
                communication=_communication(arguments) if kind == "kernel" else {},
            )
        )

    def _add_call(self, event: dict[str, Any]) -> None:
        start, end = self._times(event)
        correlation = self._integer(_arguments(event).get("correlation", -1), "correlation")
        self.profile.calls.append(Call(self._name(event), start, end, _thread(event), correlation))

    def _add_record(self, event: dict[str, Any]) -> None:
        arguments = _arguments(event)
        start, end = self._times(event)
        external = self._integer(arguments.get("External id", -1), "External id")
        self.profile.records.append(
            Record(start, end, _thread(event), external, _communication(arguments))
        )

    def _add_operation(self, event: dict[str, Any]) -> None:
        arguments = _arguments(event)
        start, end = self._times(event)
        external = self._integer(arguments.get("External id", -1), "External id")
        found = self.profile.operations
        found.append(Operation(self._name(event), len(found), start, end, _thread(event), external,
                               arguments))  # fmt: skip

    def _add_sync(self, event: dict[str, Any]) -> None:
        arguments = _arguments(event)
        device = self._integer(arguments.get("device", event.get("pid", 0)), "device")

        def number(name: str) -> int:
            return self._integer(arguments.get(name, -1), name)

        self.profile.syncs.append(
            Sync(
                kind=self._name(event),
                stream=(device, number("stream")),
                on_stream=(device, number("wait_on_stream")),
                recorded=number("wait_on_cuda_event_record_corr_id"),
                correlation=number("correlation"),
                start=self._times(event)[0],
            )
        )

    def _name(self, event: dict[str, Any]) -> str:
        name = event.get("name")
        if not isinstance(name, str):
            raise self._invalid("name", name, "text")
        return self._names.setdefault(name[:_LONGEST_NAME], name[:_LONGEST_NAME])

    def _times(self, event: dict[str, Any]) -> tuple[int, int]:
        """Returns start and end in ns; files have microseconds."""
        start = self._nanoseconds(event, "ts", -_MOST_NS * 1000)
        return start, start + self._nanoseconds(event, "dur", 0)

    def _nanoseconds(self, event: dict[str, Any], name: str, least: int) -> int:
        given = event.get(name)
        if type(given) is float and math.isfinite(given):
            given = round(given * 1000)
        elif type(given) is int:
            given *= 1000
        else:
            raise self._invalid(name, given, "a number of microseconds")
        most = _MOST_NS * 1000 if least else _MOST_NS
        if not least <= given <= most:
            raise self._invalid(name, given / 1000, f"from {least // 1000} to {most // 1000}")
        return int(given)

    def _integer(self, given: object, name: str) -> int:
        if type(given) is float and math.isfinite(given) and given == int(given):
            given = int(given)
        if type(given) is not int or not -1 <= given < 1 << 62:
            raise self._invalid(name, given, "an integer, 0 or more")
        return given

    def _invalid(self, name: str, given: object, expected: str) -> TraceError:
        shown = "missing" if given is None else repr(given)[:40]
        message = f"{self.profile.source}, event {self._number}: `{name}` is {shown}: "
        fields = {"event": self._number, "attribute": name}
        return TraceError(message + f"expected {expected}", kind="attribute_type", fields=fields)


_LONGEST_NAME = 120
"""Characters of a name that are stored: names of templates have thousands."""


def _product(device: object) -> str:
    name = device.get("name") if isinstance(device, dict) else None
    return name[:_LONGEST_NAME] if isinstance(name, str) else ""


def _arguments(event: dict[str, Any]) -> dict[str, Any]:
    found = event.get("args")
    return found if isinstance(found, dict) else {}


def _thread(event: dict[str, Any]) -> tuple[object, object]:
    pid, tid = event.get("pid"), event.get("tid")
    return str(pid), str(tid)


def _communication(arguments: dict[str, Any]) -> dict[str, Any]:
    if "Collective name" not in arguments:
        return {}
    found = {name: arguments[name] for name in _COMMUNICATION if name in arguments}
    return found | {name: str(found[name])[:_LONGEST_NAME] for name in _TEXTS if name in found}
