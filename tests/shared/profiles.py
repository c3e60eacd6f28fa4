"""Small profiles of PyTorch (Kineto), as torch.profiler writes them."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MAIN = 4242
"""The process and the thread of the CPU."""


@dataclass
class RankProfile:
    """The profile of a rank. Times are in microseconds.

    Attributes:
        rank: The rank.
        world: The number of ranks.
        events: The events.
        correlation: The last correlation id.
        thread: The CPU thread of further calls.
    """

    rank: int
    world: int
    events: list[dict[str, Any]] = field(default_factory=list)
    correlation: int = 100
    thread: int = MAIN

    def call(self, name: str, at: float, took: float = 2) -> int:
        """Adds a call of the CUDA runtime; returns its correlation id."""
        self.correlation += 1
        arguments = {"cbid": 211, "correlation": self.correlation}
        self._event("cuda_runtime", name, (MAIN, self.thread), (at, took), arguments)
        return self.correlation

    def activity(
        self,
        name: str,
        stream: int,
        span: tuple[float, float],
        correlation: int,
        *,
        category: str = "kernel",
        **arguments: Any,
    ) -> None:
        """Adds what the GPU executed from a time, for a time."""
        given = {"device": 0, "stream": stream, "correlation": correlation, **arguments}
        self._event(category, name, (0, stream), span, given)

    def kernel(
        self, name: str, stream: int, span: tuple[float, float], launch: float, **arguments: Any
    ) -> None:
        """Adds a kernel and the call that launched it."""
        correlation = self.call("cudaLaunchKernel", launch)
        self.activity(name, stream, span, correlation, **arguments)

    def operation(
        self, name: str, span: tuple[float, float], dims: list[Any], types: list[str], at: int = -1
    ) -> None:
        """Adds a CPU operation with the shapes and datatypes of its arguments."""
        arguments = {"External id": at, "Input Dims": dims, "Input type": types}
        self._event("cpu_op", name, (MAIN, self.thread), span, arguments)

    def record(
        self, span: tuple[float, float], external: int, communication: dict[str, Any]
    ) -> None:
        """Adds a CPU operation that describes a communication."""
        arguments = {"External id": external, **communication}
        self._event("cpu_op", "record_param_comms", (MAIN, self.thread), span, arguments)

    def wait_event(self, stream: int, on_stream: int, recorded: int, at: float) -> None:
        """Makes a stream wait for an event that a call recorded in another one."""
        correlation = self.call("cudaStreamWaitEvent", at, 1)
        arguments = {
            "cuda_sync_kind": "Stream Wait Event",
            "wait_on_stream": on_stream,
            "wait_on_cuda_event_record_corr_id": recorded,
            "wait_on_cuda_event_id": 7,
            "stream": stream,
            "correlation": correlation,
            "device": 0,
        }
        self._event("cuda_sync", "Stream Wait Event", (0, stream), (at, 1), arguments)

    def _event(
        self,
        category: str,
        name: str,
        thread: tuple[int, int],
        span: tuple[float, float],
        arguments: dict[str, Any],
    ) -> None:
        pid, tid = thread
        self.events.append(
            {
                "ph": "X",
                "cat": category,
                "name": name,
                "pid": pid,
                "tid": tid,
                "ts": span[0],
                "dur": span[1],
                "args": arguments,
            }
        )

    def tables(self) -> dict[str, Any]:
        """Returns the contents of the file."""
        return {
            "schemaVersion": 1,
            "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}],
            "distributedInfo": {
                "backend": "nccl",
                "rank": self.rank,
                "world_size": self.world,
            },
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": 1_700_000_000_000_000_000,
            "traceEvents": self.events,
            "traceName": f"rank{self.rank}.json",
        }

    def write(self, folder: Path, name: str = "rank{}.json") -> Path:
        """Writes the file; one whose name ends in ``.gz`` is compressed."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / name.format(self.rank)
        data = json.dumps(self.tables(), indent=1).encode()
        path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
        return path


def communication(
    name: str, elements: int, group: tuple[int, ...], **further: Any
) -> dict[str, Any]:
    """Returns the arguments of a communication of FP32; `further` replaces and adds some."""
    return {
        "Collective name": name,
        "In msg nelems": elements,
        "Out msg nelems": elements,
        "Group size": len(group),
        "dtype": "Float",
        "In split size": "[]",
        "Out split size": "[]",
        "Process Group Name": "0",
        "Process Group Description": "default_pg",
        "Process Group Ranks": str(list(group)),
        **further,
    }


def written(
    folder: Path, build: Callable[[RankProfile], object], ranks: int = 2, name: str = "rank{}.json"
) -> Path:
    """Writes the profiles of all ranks; returns the path of rank 0."""
    for rank in range(ranks):
        profile = RankProfile(rank, ranks)
        build(profile)
        profile.write(folder, name)
    return folder / name.format(0)


def overlapped(profile: RankProfile, *, events: bool = True) -> None:
    """A, then B during an all-reduce of 16,000 B, then C, which waits for both."""
    profile.kernel("A", 7, (10, 20), launch=0)
    recorded = profile.call("cudaEventRecord", 4, 0.5)
    wait(profile, (20, 7, recorded), 5, events=events)
    arguments = communication("allreduce", 4000, (0, 1))
    profile.kernel("ncclDevKernel_AllReduce", 20, (31, 49), 7, **{"External id": 9}, **arguments)
    profile.record((3, 6.5), 9, arguments)
    profile.kernel("B", 7, (30, 30), launch=10)
    recorded = profile.call("cudaEventRecord", 13, 0.5)
    wait(profile, (7, 20, recorded), 14, events=events)
    profile.record((12.5, 3), 10, {"Collective name": "wait", "Process Group Name": "0"})
    profile.kernel("C", 7, (81, 10), launch=16)


def wait(profile: RankProfile, streams: tuple[int, int, int], at: float, *, events: bool) -> None:
    """A stream waits for another one, as an event or only as a call."""
    if events:
        profile.wait_event(*streams, at)
    else:
        profile.call("cudaStreamWaitEvent", at, 1)
