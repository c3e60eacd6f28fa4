"""Made-up results with the columns of real ones, to test drawings without the engine."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl
import pytest

from tutti.view.page import LIMIT, Page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SIZES = tuple(8 << 2 * power for power in range(10))
ALGORITHMS = (
    "ring",
    "recursive_doubling",
    "recursive_halving_doubling",
    "recursive_multiplying",
)
ALPHA_PS, OVERLAP_PS, BYTE_PS = 1_340_000, 340_000, 100

COMPARISON_SCHEMA = {
    "collective": pl.String,
    "algorithm": pl.String,
    "schedule": pl.String,
    "ranks": pl.Int64,
    "size_bytes": pl.Int64,
    "datatype": pl.String,
    "model": pl.String,
    "platform": pl.String,
    "repetition": pl.Int64,
    "seed": pl.Int64,
    "time_ps": pl.Int64,
    "algbw_bytes_per_s": pl.Float64,
    "busbw_bytes_per_s": pl.Float64,
    "messages": pl.Int64,
    "message_bytes": pl.Int64,
    "closed_form_ps": pl.Int64,
    "commit": pl.String,
    "config_hash": pl.String,
    "version": pl.String,
}


@pytest.fixture(autouse=True, scope="session")
def _charts_are_valid() -> Iterator[None]:
    """Validates the charts of each page: plotly.js ignores invalid options without an error."""
    import plotly.graph_objects as go

    write = Page.write

    def checked(self: Page, path: str | Path, limit: int = LIMIT) -> Path:
        for section in self.sections:
            for chart in section.drawn.values():
                go.Figure(chart.figure)
        return write(self, path, limit)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Page, "write", checked)
        yield


def costs(algorithm: str, ranks: int, size: int) -> tuple[str, int, int, int]:
    """Schedule, time, messages and bytes of an algorithm, roughly as a postal model has them."""
    log = math.ceil(math.log2(ranks))
    if algorithm == "ring":
        shard = max(size // ranks, 1)
        count = 2 * (ranks - 1)
        time = count * (ALPHA_PS + shard * BYTE_PS)
        return algorithm, time, count * ranks, count * shard * ranks
    if algorithm == "recursive_doubling":
        time = log * (ALPHA_PS + size * BYTE_PS)
        return algorithm, time, log * ranks, log * ranks * size
    if algorithm == "recursive_halving_doubling":
        data = 2 * (size - size // ranks)
        time = 2 * log * ALPHA_PS + data * BYTE_PS
        return algorithm, time, 2 * log * ranks, data * ranks
    stages = max(log // 2, 1)
    base = round(ranks ** (1 / stages))
    sends = stages * (base - 1)
    time = stages * (ALPHA_PS - OVERLAP_PS) + sends * (OVERLAP_PS + size * BYTE_PS)
    notation = ",".join([f"a{base}"] * stages)
    return f"recursive_multiplying:{notation}", time, sends * ranks, sends * ranks * size


def comparison_frame(
    ranks: tuple[int, ...] = (4, 16, 64),
    sizes: tuple[int, ...] = SIZES,
    repetitions: int = 1,
) -> pl.DataFrame:
    """A comparison of four algorithms."""
    rows = []
    for algorithm in ALGORITHMS:
        for count in ranks:
            for size in sizes:
                for repetition in range(repetitions):
                    schedule, time, messages, data = costs(algorithm, count, size)
                    time += repetition * time // 10
                    algbw = size / (time * 1e-12)
                    rows.append(
                        {
                            "collective": "all_reduce",
                            "algorithm": algorithm,
                            "schedule": schedule,
                            "ranks": count,
                            "size_bytes": size,
                            "datatype": "int64",
                            "model": "pipelining_postal",
                            "platform": "demo",
                            "repetition": repetition,
                            "seed": 1,
                            "time_ps": time,
                            "algbw_bytes_per_s": algbw,
                            "busbw_bytes_per_s": algbw * 2 * (count - 1) / count,
                            "messages": messages,
                            "message_bytes": data,
                            "closed_form_ps": time if repetition == 0 else None,
                            "commit": "0123abc",
                            "config_hash": "feedface",
                            "version": "0.1.0",
                        }
                    )
    return pl.DataFrame(rows, schema=COMPARISON_SCHEMA)


@dataclass(frozen=True)
class FakeOp:
    """An op like those of the core's schedules."""

    kind: str
    peer: int | None = None
    slot: int | None = None
    chunks: tuple[int, int] | None = None
    operands: list[int] | None = None
    duration_ps: int | None = None

    @property
    def peers(self) -> list[int]:
        """The peer of a send or receive, as a list."""
        return [] if self.peer is None else [self.peer]


@dataclass(frozen=True)
class FakeSchedule:
    """An exchange in groups per step: `factors` (2, 4) is recursive multiplying a2,a4."""

    factors: tuple[int, ...]
    name: str = "recursive_multiplying:a2,a4"
    collective: str = "all_reduce"
    chunks: int = 1
    ranks: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ranks", math.prod(self.factors))

    def steps(self, rank: int) -> int:  # noqa: ARG002
        return len(self.factors)

    def step_name(self, rank: int, step: int) -> str:  # noqa: ARG002
        return f"a{self.factors[step]}"

    def peers(self, rank: int, step: int) -> list[int]:
        mask, factor = math.prod(self.factors[:step]), self.factors[step]
        block = rank - rank % (mask * factor)
        return [block + (rank - block + i * mask) % (mask * factor) for i in range(1, factor)]

    def ops(self, rank: int, step: int) -> list[FakeOp]:
        peers = self.peers(rank, step)
        sends = [FakeOp("send", peer=p, slot=0, chunks=(0, 1)) for p in peers]
        recvs = [FakeOp("recv", peer=p, slot=1 + i, chunks=(0, 1)) for i, p in enumerate(peers)]
        operands = list(range(len(peers) + 1))
        return [*sends, *recvs, FakeOp("reduce", slot=0, chunks=(0, 1), operands=operands)]


def run_frames(schedule: FakeSchedule, size: int = 8) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Timeline and messages of a run: sequential sends, then a wait, then the reduction."""
    ready = dict.fromkeys(range(schedule.ranks), 0)
    bars: list[tuple[object, ...]] = []
    sent: list[tuple[object, ...]] = []
    for step, factor in enumerate(schedule.factors):
        name = f"a{factor}"
        arrivals: dict[int, list[tuple[int, int]]] = {rank: [] for rank in ready}
        free = {}
        for rank, start in ready.items():
            now = start
            for peer in schedule.peers(rank, step):
                end = now + OVERLAP_PS + size * BYTE_PS
                bars.append((rank, step, name, "send", now, end, peer, size))
                arrival = end + ALPHA_PS - OVERLAP_PS
                sent.append((rank, peer, 0, size, now, arrival, arrival))
                arrivals[peer].append((arrival, rank))
                now = end
            free[rank] = now
        for rank, now in free.items():
            last, peer = max(arrivals[rank])
            bars.append((rank, step, name, "wait", now, last, peer, size))
            ready[rank] = last + 10_250 * (factor - 1)
            bars.append((rank, step, name, "reduce", last, ready[rank], None, size))
    timeline = pl.DataFrame(
        bars,
        orient="row",
        schema={
            "rank": pl.Int64,
            "step": pl.Int64,
            "name": pl.String,
            "kind": pl.String,
            "start_ps": pl.Int64,
            "end_ps": pl.Int64,
            "peer": pl.Int64,
            "bytes": pl.Int64,
        },
    )
    columns = ("source", "destination", "index", "bytes", "sent_ps", "arrival_ps", "received_ps")
    messages = pl.DataFrame(sent, orient="row", schema=dict.fromkeys(columns, pl.Int64))
    return timeline, messages


PLATFORM: dict[str, object] = {
    "name": "demo",
    "model": "pipelining_postal",
    "source": "Ruefenacht et al. 2017, Table 1",
    "parameters": {
        "alpha_p": "1.34 us",
        "alpha_r": "0.34 us",
        "beta": {"value": "0.1 ns/B", "source": "assumed"},
    },
}


@pytest.fixture
def comparison() -> pl.DataFrame:
    return comparison_frame()


@pytest.fixture
def schedule() -> FakeSchedule:
    return FakeSchedule((2, 4))


@pytest.fixture
def frames(schedule: FakeSchedule) -> tuple[pl.DataFrame, pl.DataFrame]:
    return run_frames(schedule)


@pytest.fixture
def platform() -> dict[str, object]:
    return PLATFORM
