"""The table of `make bench`: a line for each case, of every engine, in 80 columns."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console

from script_modules import load

ROOT = Path(__file__).parents[2]
LONG = "engine, recursive_multiplying a4 x 10, 1048576 ranks, 8 B, pipelining postal, noise"
WRITTEN = {
    "spine": [f"{LONG}\t15 s, 6 GB\t{run}\t10485760\t9.1{run}\t5123.1" for run in range(3)],
    "flit": ["mesh 8x8, 8 hops per cycle, load 0.02\t1\t123456\t12.34"],
    "coherence": ["radix_like, ht on sfo_greedy\t1\t1000\t150000\t3.10\t12\t00ab"],
    "training": ["resnet50 on 64 NPUs\t1\t2.50\t3.123\t5.10"],
}


def benchmarks() -> Any:
    return load(ROOT / "benchmarks" / "run.py")


@pytest.mark.parametrize("width", [80, 120])
def test_each_case_is_a_line(width: int) -> None:
    run = benchmarks()
    assert set(run.BENCHES) == set(WRITTEN)
    frames = [run.rows_of(name, "\n".join(lines)) for name, lines in WRITTEN.items()]
    text = io.StringIO()
    Console(file=text, width=width).print(run.shown(pl.concat(frames), width))
    title, head, *lines = text.getvalue().splitlines()
    assert len(lines) == len(WRITTEN)
    assert "case" in head
    assert ("aim" in head) == (width >= run.WITH_AIMS)
    for words, line in zip(
        ("1.151 M/s", "12.34 M hops/s", "150 k cycles/s", "5.1 M pkts/s"), lines, strict=True
    ):
        assert words in line
    assert all(len(line) <= width for line in (title, head, *lines))


def test_shortened_names_differ() -> None:
    sources = [path.read_text("utf-8") for path in (ROOT / "crates").glob("*/benches/*.rs")]
    names = [name for text in sources for name in re.findall(r'name: "([^"]+)"', text)]
    run = benchmarks()
    table = run.rows_of("spine", "\n".join(f"{name}\taim\t0\t1\t1\t1" for name in names))
    shown = {run.shortened(name, 42) for name in table["case"]}
    assert len(shown) == len(names)
    assert max(map(len, shown)) == 42


def test_every_compiled_benchmark_is_in_the_table() -> None:
    files = (ROOT / "crates").glob("*/benches/*.rs")
    assert {file.stem for file in files} == set(benchmarks().BENCHES)
