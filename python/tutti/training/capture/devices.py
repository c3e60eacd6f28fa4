"""A GPU that is only named: `torch.cuda` answers, and records streams and events."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch

from tutti.training.capture.streams import Order

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Devices"]


class _Stream:
    """A stream of the named GPU."""

    def __init__(self, devices: Devices, number: int) -> None:
        self.devices, self.number = devices, number
        self.stream_id, self.cuda_stream, self.device_index = number, number, devices.local
        self.device_type = 1
        self.device = torch.device("cuda", devices.local)
        self.priority = 0

    def wait_event(self, event: _Event) -> None:
        """Lets later operators wait for an event."""
        self.devices.order.wait(self.number, event.point)

    def wait_stream(self, other: _Stream) -> None:
        """Lets later operators wait for those of another stream."""
        self.devices.order.wait(self.number, self.devices.order.point(other.number))

    def record_event(self, event: _Event | None = None) -> _Event:
        """Returns an event after the operators of the stream."""
        event = event or _Event(self.devices)
        event.record(self)
        return event

    def synchronize(self) -> None:
        """Does nothing: the host never waits."""

    def query(self) -> bool:
        """Returns True: the host never waits."""
        return True

    def is_capturing(self) -> bool:
        """Returns False: no CUDA graph is recorded."""
        return False

    def __enter__(self) -> _Stream:
        """Makes the stream the current one."""
        self.devices.pushed.append(self.devices.stream)
        self.devices.stream = self.number
        return self

    def __exit__(self, *error: object) -> None:
        """Makes the stream before the current one."""
        self.devices.stream = self.devices.pushed.pop()

    def __eq__(self, other: object) -> bool:
        """Returns whether both have the same number."""
        return isinstance(other, _Stream) and other.number == self.number

    def __hash__(self) -> int:
        """Returns the number."""
        return self.number


class _Event:
    """An event of the named GPU."""

    def __init__(self, devices: Devices) -> None:
        self.devices = devices
        self.point: frozenset[int] = frozenset()
        self.device = torch.device("cuda", devices.local)

    def record(self, stream: _Stream | None = None) -> None:
        """Completes after the operators of a stream, by default the current one."""
        number = self.devices.stream if stream is None else stream.number
        self.point = self.devices.order.point(number)

    def wait(self, stream: _Stream | None = None) -> None:
        """Lets later operators of a stream wait for the event."""
        number = self.devices.stream if stream is None else stream.number
        self.devices.order.wait(number, self.point)

    def synchronize(self) -> None:
        """Does nothing: the host never waits."""

    def query(self) -> bool:
        """Returns True: the host never waits."""
        return True

    def elapsed_time(self, _end: object) -> float:
        """Returns 1 ms: nothing runs."""
        return 1.0


class Devices:
    """The named GPU of a rank.

    Attributes:
        local: Its index on its node.
        count: The GPUs of a node.
        device: The GPU.
        stream: The number of the current stream.
        pushed: The streams to which `with` statements return.
        order: The order of operators.
    """

    def __init__(self, local: int, count: int, memory: int = 80 << 30) -> None:
        """Names a GPU with some bytes of memory."""
        self.local, self.count, self.memory = local, count, memory
        self.device = torch.device("cuda", local)
        self.stream = 0
        self.pushed: list[int] = []
        self.order = Order()
        self._streams = 0

    def _classes(self) -> tuple[type[_Stream], type[_Event]]:
        """Returns the classes of new streams and events of this GPU."""
        devices = self

        class Stream(_Stream):
            def __init__(self, *_: object, **__: object) -> None:
                devices._streams += 1
                super().__init__(devices, devices._streams)

        class Event(_Event):
            def __init__(self, *_: object, **__: object) -> None:
                super().__init__(devices)

        return Stream, Event

    @contextlib.contextmanager
    def _within(self, stream: _Stream | None) -> Iterator[None]:
        if stream is None:
            yield
            return
        with stream:
            yield

    def _set_device(self, device: Any) -> None:  # noqa: ANN401 - torch is optional
        """Does nothing: a rank has one GPU."""

    def replacements(self) -> dict[str, Any]:
        """Returns what replaces names of `torch.cuda`."""
        properties = SimpleNamespace(
            name="named GPU", major=9, minor=0, total_memory=self.memory,
            multi_processor_count=132, max_threads_per_multi_processor=2048, warp_size=32,
            L2_cache_size=50 << 20, shared_memory_per_block_optin=227 << 10,
            regs_per_multiprocessor=65536, gcnArchName="",
        )  # fmt: skip
        none, zero = _returns(None), _returns(0)
        stream, event = self._classes()
        return {
            **{name: _returns(True) for name in ("is_available", "is_bf16_supported",
                                                 "is_initialized")},
            "is_current_stream_capturing": _returns(False),
            "device_count": _returns(self.count),
            "current_device": _returns(self.local),
            "set_device": self._set_device,
            "get_device_properties": _returns(properties),
            "get_device_name": _returns(properties.name),
            "get_device_capability": _returns((9, 0)),
            "mem_get_info": _returns((self.memory, self.memory)),
            "memory_stats": lambda *_, **__: _Zeros(),
            **dict.fromkeys(("memory_allocated", "max_memory_allocated", "memory_reserved",
                             "max_memory_reserved"), zero),
            **dict.fromkeys(("synchronize", "empty_cache", "reset_peak_memory_stats", "_lazy_init",
                             "init", "manual_seed", "manual_seed_all", "set_rng_state",
                             "reset_max_memory_allocated", "ipc_collect",
                             "set_per_process_memory_fraction"), none),
            "memory_summary": _returns(""),
            **dict.fromkeys(("device", "device_of"), lambda *_: contextlib.nullcontext()),
            "get_rng_state": lambda *_, **__: torch.zeros(16, dtype=torch.uint8),
            **dict.fromkeys(("CUDAGraph", "graph", "graph_pool_handle",
                             "make_graphed_callables"), _Graphs),
            "Stream": stream,
            "Event": event,
            "current_stream": lambda *_, **__: _Stream(self, self.stream),
            "default_stream": lambda *_, **__: _Stream(self, 0),
            "stream": self._within,
            "set_stream": self._set_stream,
        }  # fmt: skip

    def of_memory(self) -> dict[str, Any]:
        """Returns what replaces names of `torch.cuda.memory`: those of `torch.cuda`, and others.

        Its history of allocations is that of a driver, and empty.
        """
        nothing = dict.fromkeys(("_record_memory_history", "_dump_snapshot"), _returns(None))
        return {**self.replacements(), **nothing, "_snapshot": _returns({"segments": []})}

    def of_accelerator(self) -> dict[str, Any]:
        """Returns what replaces names of `torch.accelerator`."""
        return {
            "is_available": _returns(True),
            "current_accelerator": _returns(torch.device("cuda")),
            "device_count": _returns(self.count),
            **dict.fromkeys(("current_device_index", "current_device_idx"), _returns(self.local)),
            **dict.fromkeys(("set_device_index", "set_device_idx"), self._set_device),
            **dict.fromkeys(("synchronize", "empty_cache", "reset_peak_memory_stats"),
                            _returns(None)),
            "current_stream": lambda *_, **__: _Stream(self, self.stream),
            "set_stream": self._set_stream,
            **dict.fromkeys(("memory_allocated", "max_memory_allocated", "memory_reserved",
                             "max_memory_reserved"), _returns(0)),
            "memory_stats": lambda *_, **__: _Zeros(),
        }  # fmt: skip

    def _set_stream(self, stream: _Stream) -> None:
        self.stream = stream.number


class _Graphs:
    """CUDA graphs, which a capture refuses."""

    def __init__(self, *_: object, **__: object) -> None:
        """Refuses graphs.

        Raises:
            RuntimeError: Always.
        """
        message = "only a GPU records CUDA graphs: turn them off for the capture"
        raise RuntimeError(message)


class _Zeros(dict[str, int]):
    """Statistics that are all 0."""

    def __missing__(self, key: str) -> int:
        return 0


def _returns(value: Any) -> Any:  # noqa: ANN401
    return lambda *_, **__: value
