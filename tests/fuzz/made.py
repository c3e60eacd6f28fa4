"""Files to mutate that examples/ lacks: traces, results and a plan."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

from seeds import example

if TYPE_CHECKING:
    from pathlib import Path


def make(folder: Path) -> None:
    """Writes the files that examples/ lacks: traces, results, a plan."""
    from tutti.formats.chakra import reader as chakra

    folder.mkdir(parents=True, exist_ok=True)
    small = {"ranks": [2, 4], "sizes": ["8 B", "1 KiB", "1 MiB"], "algorithms": ["ring", "swing"]}
    (folder / "e.toml").write_bytes(example("01*/experiment.toml", **small))
    program = [sys.executable, "-c", "from tutti.cli import main; main()"]
    for words in (
        ("compare", "e.toml", "--no-report", "--out", "."),
        (
            "mpi",
            "plan",
            "--ranks",
            "4",
            "all_reduce=ring",
            "all_reduce:0-4K=swing",
            "--out",
            "plan.tutti",
        ),
    ):
        subprocess.run([*program, *words], cwd=folder, check=True, capture_output=True)
    for rank in range(2):
        chakra.write(folder / f"t.{rank}.et", trace(rank))
    _frames(folder)


def trace(rank: int) -> Any:
    from tutti.formats.chakra.reader import Attribute, ChakraTrace, Node

    collective = {
        "comm_type": Attribute("int64", 0),
        "comm_size": Attribute("uint64", 1 << 16),
        "pg_name": Attribute("string", "all"),
        "involved_dim": Attribute("bool_list", (True,)),
    }
    return ChakraTrace(
        nodes=(
            Node(
                id=1,
                name="a",
                type="COMP",
                duration_us=5 + rank,
                attributes={"is_cpu_op": Attribute("bool", value=False)},
            ),
            Node(id=2, name="b", type="COMM_COLL", data_deps=(1,), attributes=collective),
            Node(id=3, name="c", type="COMP", data_deps=(2,), duration_us=2),
        )
    )


def _frames(folder: Path) -> None:
    import polars as pl

    from tutti.mpi.bench import BLOCKS

    results = pl.read_parquet(folder / "results.parquet")
    swept = results.with_columns(
        **{
            "sweep.sizes": pl.col("size_bytes").cast(pl.String),
            "sweep.sizes_bytes": pl.col("size_bytes"),
        }
    )
    swept.filter(pl.col("ranks") == 4).write_parquet(folder / "swept.parquet")
    rows = [
        {
            "collective": "all_reduce",
            "schedule": "ring",
            "implementation": "schedule",
            "ranks": 4,
            "size_bytes": size,
            "count": size // 4,
            "datatype": "float32",
            "operation": "sum",
            "root": 0,
            "each": 1,
            "block": block,
            "time_ps": 10**6 + 500 * size + block * 1000,
            "wrong": 0,
            "emulated": False,
            "model": None,
        }
        for size in (64, 1024, 1 << 16, 1 << 20)
        for block in range(3)
    ]
    pl.DataFrame(rows, schema=BLOCKS).write_parquet(folder / "bench.parquet")
