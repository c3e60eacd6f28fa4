"""Measurements for the exhibits, on real ranks of this machine with emulated distance.

The ratio alpha_p : alpha_r is 4 : 1, close to that of Table 1 (1.34 : 0.34 us). The times are
thousands of times those of the paper's network: the actual cost of a message (about 20 us with a
wake-up), times the ranks per core, must be small compared with alpha_r.
"""

from __future__ import annotations

import functools
import math
import time
from typing import TYPE_CHECKING

import polars as pl

import tutti
from tutti.base.units import Time
from tutti.mpi.bench import BenchCandidate, Benchmark, measure, summarise
from tutti.mpi.bench_job import Settings
from tutti.mpi.bench_multicast import measure_multicasts
from tutti.mpi.distance import Distance
from tutti.mpi.library import built
from tutti.mpi.underneath import find_mpi
from tutti_papers.recursive_multiplying.published import DATATYPE, TABLE_2, doubling

if TYPE_CHECKING:
    from tutti.mpi.underneath import Mpi
    from tutti_papers.recursive_multiplying.published import Table2Row

ALPHA_P, ALPHA_R = Time.parse("16 ms"), Time.parse("4 ms")

BLOCKS, EACH = 15, 10
"""Blocks, and all_reduces per block. The paper has 250 blocks of 10; emulated times vary less."""
FEW_BLOCKS = 5
PEERS = 16
SAMPLES = 20

BYTES_IN_ALPHA_R = 256
"""alpha_r / beta. In Fig. 10 bandwidth binds from 24 to 32 elements of 8 bytes on."""
LARGEST_RANKS = 64

NATIVE_RANKS = (4, 8)
"""Rank counts of Fig. 16, at real distance."""
NATIVE_BLOCKS = 40
"""Blocks of Fig. 16; fewer if `NATIVE_SECONDS` do not suffice."""
NATIVE_SECONDS = 15.0
"""The time after which no further round of a rank count starts."""
ROUND, NATIVE_EACH = 2, 4
"""Blocks of a round, and all_reduces of a block, in Fig. 16. Each round starts the ranks again."""

EMULATED_ROWS = tuple(row for row in TABLE_2 if row.ranks <= LARGEST_RANKS)
"""Emulated rows of Table 2."""


def multiplying(stages: str) -> str:
    """Returns the full notation of a schedule."""
    return f"recursive_multiplying:{stages}"


def distance(*, per_byte: bool = False) -> Distance:
    """Returns the emulated distance; `per_byte` adds a time per byte."""
    beta = f",beta={ALPHA_R.ps // BYTES_IN_ALPHA_R} ps/B" if per_byte else ""
    return Distance.parse(f"pipelining_postal:alpha_p={ALPHA_P},alpha_r={ALPHA_R}{beta}")


@functools.cache
def mpi() -> Mpi:
    """Returns the MPI, with the library compiled for it."""
    found = find_mpi()
    built(found)
    return found


@functools.cache
def measured(
    ranks: int,
    schedules: tuple[str, ...],
    *,
    sizes: tuple[int, ...] = (8,),
    blocks: int = BLOCKS,
    each: int = EACH,
    per_byte: bool = False,
) -> pl.DataFrame:
    """Measures blocks of recursive multiplying; columns as in `tutti.mpi.bench.BLOCKS`."""
    settings = Settings(blocks=blocks, each=each, warmup=1, distance=distance(per_byte=per_byte))
    candidates = [
        BenchCandidate("schedule", tutti.schedule(multiplying(stages), ranks=ranks))
        for stages in schedules
    ]
    benchmark = Benchmark("all_reduce", ranks, sizes, datatype=DATATYPE)
    return measure(mpi(), benchmark, candidates, settings)


def native(ranks: int, schedules: tuple[str, ...], blocks: int | None = None) -> pl.DataFrame:
    """Measures schedules and the MPI's all_reduce at real distance.

    The candidates take turns block by block, so that blocks of one number form a pair.

    Args:
        ranks: The number of ranks.
        schedules: The schedules.
        blocks: Blocks, however long they take; None: `NATIVE_BLOCKS` at most, in limited time.

    Returns:
        Columns as in `measured`; blocks are numbered over all rounds.
    """
    # Ranks that outnumber the cores rarely start a block together.
    settings = Settings(blocks=ROUND, each=NATIVE_EACH, warmup=1, aligned=False)
    candidates = [
        BenchCandidate("schedule", tutti.schedule(multiplying(stages), ranks=ranks))
        for stages in schedules
    ]
    benchmark = Benchmark("all_reduce", ranks, (8,), datatype=DATATYPE)
    every, most = [*candidates, BenchCandidate("own")], blocks or NATIVE_BLOCKS
    frames: list[pl.DataFrame] = []
    found, ends = mpi(), time.monotonic() + (math.inf if blocks else NATIVE_SECONDS)
    while not frames or (ROUND * len(frames) < most and time.monotonic() < ends):
        before = ROUND * len(frames)
        frame = measure(found, benchmark, every, settings)
        frames.append(frame.with_columns(pl.col("block") + before))
    return pl.concat(frames).filter(pl.col("block") < most)


@functools.cache
def multicasts() -> pl.DataFrame:
    """Measures multicasts to 1 to 16 peers; columns as in `bench_multicast.MULTICASTS`."""
    settings = Settings(blocks=SAMPLES, warmup=1, distance=distance())
    return measure_multicasts(mpi(), PEERS, settings)


def row_of(row: Table2Row) -> dict[str, float]:
    """Returns measured and model times in ms of both schedules of a row of Table 2."""
    summary = summarise(measured(row.ranks, (doubling(row.ranks), row.schedule)))
    doubled, multiplied = summary.rows(named=True)
    columns = {"minimum": "least_ps", "median": "median_ps", "model": "model_ps"}
    found = {}
    for name, one in (("rd", doubled), ("rm", multiplied)):
        for which, column in columns.items():
            found[f"{name}_{which}"] = one[column] / 1e9
    found["wrong"] = doubled["wrong"] + multiplied["wrong"]
    return found
