"""What is measured for the exhibits: real ranks of this machine, kept apart by a model.

The ratio alpha_p : alpha_r is 4 : 1, about that of Table 1 (1.34 : 0.34 us). The times are
thousands of times those of the paper's network: what a rank really does for a message (about 20 us
with a wake-up) has to be small beside alpha_r, as often as there are ranks to a core.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import tutti
from tutti.mpi.bench import Benchmark, Candidate, Settings, measure, summarise
from tutti.mpi.bench_multicast import measure_multicasts
from tutti.mpi.distance import Distance
from tutti.mpi.library import built
from tutti.mpi.underneath import find_mpi
from tutti.papers.recursive_multiplying.published import DATATYPE, TABLE_2, doubling
from tutti.units import Time

if TYPE_CHECKING:
    import polars as pl

    from tutti.mpi.underneath import Mpi
    from tutti.papers.recursive_multiplying.published import Table2Row

ALPHA_P, ALPHA_R = Time.parse("16 ms"), Time.parse("4 ms")

BLOCKS, EACH = 15, 10
"""The paper has 250 blocks of 10; times that a model sets differ little."""
FEW_BLOCKS = 5
PEERS = 16
SAMPLES = 20

BYTES_IN_ALPHA_R = 256
"""Of Fig. 10 bandwidth binds from 24 to 32 elements of 8 bytes on: beta is alpha_r for so many."""
LARGEST_RANKS = 64

EMULATED_ROWS = tuple(row for row in TABLE_2 if row.ranks <= LARGEST_RANKS)
"""Of Table 2."""


def multiplying(stages: str) -> str:
    """A schedule's name in full."""
    return f"recursive_multiplying:{stages}"


def distance(*, per_byte: bool = False) -> Distance:
    """What keeps the ranks apart; a byte takes time only in the figures that ask for it."""
    beta = f",beta={ALPHA_R.ps // BYTES_IN_ALPHA_R} ps/B" if per_byte else ""
    return Distance.parse(f"pipelining_postal:alpha_p={ALPHA_P},alpha_r={ALPHA_R}{beta}")


@functools.cache
def mpi() -> Mpi:
    """The MPI, with the library compiled for it."""
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
    """Blocks of recursive multiplying, with the columns of `tutti.mpi.bench.BLOCKS`."""
    settings = Settings(blocks=blocks, each=each, warmup=1, distance=distance(per_byte=per_byte))
    candidates = [
        Candidate("schedule", tutti.schedule(multiplying(stages), ranks=ranks))
        for stages in schedules
    ]
    asked = Benchmark("all_reduce", ranks, sizes, datatype=DATATYPE)
    return measure(mpi(), asked, candidates, settings)


@functools.cache
def multicasts() -> pl.DataFrame:
    """Multicasts to 1 to 16 peers, with the columns of `tutti.mpi.bench_multicast.MULTICASTS`."""
    settings = Settings(blocks=SAMPLES, warmup=1, distance=distance())
    return measure_multicasts(mpi(), PEERS, settings)


def row_of(row: Table2Row) -> dict[str, float]:
    """A row of Table 2 on this machine, in ms: of both schedules, measured and by the model."""
    summary = summarise(measured(row.ranks, (doubling(row.ranks), row.schedule)))
    doubled, multiplied = summary.rows(named=True)
    columns = {"minimum": "least_ps", "median": "median_ps", "model": "model_ps"}
    found = {}
    for name, one in (("rd", doubled), ("rm", multiplied)):
        for which, column in columns.items():
            found[f"{name}_{which}"] = one[column] / 1e9
    found["wrong"] = doubled["wrong"] + multiplied["wrong"]
    return found
