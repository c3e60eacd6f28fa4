"""Files to mutate that examples/ lacks: traces, results and a plan."""

from __future__ import annotations

import gzip
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


def profiles(work: Path) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Returns profiles of PyTorch with every kind of event, plain and compressed."""
    from profiles import RankProfile, communication

    files: dict[str, bytes] = {}
    for rank in range(2):
        profile = RankProfile(rank, 2)
        other = {"Dst Rank": 1 - rank, "Src Rank": 1 - rank}
        splits = {"In split size": "[2, 2]", "Out split size": "[2, 2]", "Seq": 3}
        described = communication("all_to_allv", 400, (0, 1), **splits)
        profile.record((0, 3), 9, {**described, "Rank": 0})
        recorded = profile.call("cudaEventRecord", 1)
        profile.wait_event(20, 7, recorded, 2)
        profile.kernel("ncclKernel", 20, (5, 9), 2.5, **{"External id": 9}, **described)
        for name in ("send", "recv"):
            profile.record((10, 1), 20, communication(name, 100, (0, 1), **other))
        profile.kernel("ncclDevKernel_SendRecv", 20, (20, 5), 12)
        profile.kernel("A", 7, (20, 9), 14)
        profile.kernel("B", 7, (24, 9), 16)
        profile.record((17, 2), 21, {"Collective name": "wait", "Seq": 3})
        profile.call("cudaStreamWaitEvent", 18)
        copy = profile.call("cudaMemcpyAsync", 30, 40)
        span = (35.0, 5.0)
        name = "Memcpy DtoH (Device -> Pageable)"
        profile.activity(name, 7, span, copy, category="gpu_memcpy")
        profile.call("cudaDeviceSynchronize", 80)
        profile.kernel("ncclDevKernel", 7, (90, 5), 85, **communication("broadcast", 9, (1, 0)))
        path = profile.write(work, "p-rank{}.json")
        files[path.name] = path.read_bytes()
    packed = {f"{name}.gz": gzip.compress(data, mtime=0) for name, data in files.items()}
    return files, packed
