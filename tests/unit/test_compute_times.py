"""How long passes take: systolic arrays, measured times, and the tables they are read from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tutti.errors import WorkloadError
from tutti.interop.scalesim import read_topology
from tutti.units import Frequency, Time, TimePerByte
from tutti.workload import Measured, Systolic, read_measured
from tutti.workload.model import PASSES, Gemm, linear, lstm

if TYPE_CHECKING:
    from pathlib import Path

LEFT = (10**12, TimePerByte.parse("1 GB/s"))
ARRAY = Systolic(rows=32, columns=32, dataflow="weight_stationary", clock=Frequency.parse("1 GHz"))


def folds(down: int, across: int, stream: int) -> int:
    """Weight stationary on 32 x 32: 32 cycles to load, the stream, 62 of skew."""
    return -(-down // 32) * -(-across // 32) * (32 + stream + 62)


def test_each_pass_of_a_layer_is_a_product() -> None:
    layer = linear("l", 100, 40, tokens=5)
    cycles = {which: ARRAY.time(layer, which, 3, 2, LEFT) // 1000 for which in PASSES}
    assert cycles["forward"] == folds(100, 40, 15)
    assert cycles["input_gradient"] == folds(40, 100, 15)
    assert cycles["weight_gradient"] == folds(15, 40, 100)
    first = linear("l", 100, 40, first=True)
    assert ARRAY.time(first, "input_gradient", 3, 2, LEFT) == 0


def test_steps_of_a_recurrent_layer_follow_one_another() -> None:
    layer = lstm("l", 64, 32, tokens=7)
    inputs, states = folds(64, 128, 7 * 2), 7 * folds(32, 128, 2)
    assert ARRAY.time(layer, "forward", 2, 2, LEFT) == 1000 * (inputs + states)


def test_an_array_that_is_none_is_refused() -> None:
    none = Systolic(rows=0, columns=4, dataflow="weight_stationary", clock=ARRAY.clock)
    with pytest.raises(WorkloadError, match="0 x 4"):
        none.cycles(Gemm(m=1, n=1, k=1))


TIMES = """layer,forward,input_gradient,weight_gradient
one, 1.5 ms, 0 s, 2 ms
two,3 us,4 us,5 us
"""


def test_measured_times_are_as_they_were(tmp_path: Path) -> None:
    file = tmp_path / "times.csv"
    file.write_text(TIMES, encoding="utf-8")
    measured = read_measured(file)
    assert measured.time(linear("one", 3, 3), "forward", 8, 2, LEFT) == 1_500_000_000
    assert measured.time(linear("two", 3, 3), "weight_gradient", 8, 2, LEFT) == 5_000_000
    with pytest.raises(WorkloadError, match="no times of layer `three`: it has one, two"):
        measured.time(linear("three", 3, 3), "forward", 8, 2, LEFT)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("no line of times",)),
        ("layer,forward\na,1 us\n", ("no column `input_gradient`",)),
        (TIMES + "one,1 us,1 us,1 us\n", ("line 4", "`one` twice")),
        (TIMES.replace("3 us", "3"), ("line 3", "column `forward`", "unit")),
        (TIMES + "three,1 us\n", ("line 4", "column `input_gradient`")),
        (TIMES + ",1 us,1 us,1 us\n", ("line 4", "names no layer")),
    ],
)
def test_tables_of_times_that_are_none_are_refused(
    tmp_path: Path, text: str, words: tuple[str, ...]
) -> None:
    file = tmp_path / "times.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(WorkloadError) as refused:
        read_measured(file)
    for word in ("times.csv", *words):
        assert word in str(refused.value)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    for read in (read_measured, read_topology):
        with pytest.raises(WorkloadError, match="cannot be read: No such file"):
            read(tmp_path / "none.csv")


def test_measured_times_need_no_file() -> None:
    times = Measured({"l": dict.fromkeys(PASSES, Time(ps=7))})
    assert times.time(linear("l", 1, 1), "input_gradient", 1, 2, LEFT) == 7


TOPOLOGY = """Layer name, Height, Width, Filter Height, Filter Width, Channels, Filters, Strides,

Conv1, 224, 224, 7, 7, 3, 64, 2,
Wide, 20, 30, 3, 5, 2, 8, 1, 2,
FC, 1, 1, 1, 1, 2048, 1000, 1,
Conv2_DP, 112, 112, 3, 3, 32, 1, 1,
"""


def test_a_topology_is_read_as_it_is_counted_there(tmp_path: Path) -> None:
    file = tmp_path / "net.csv"
    file.write_text(TOPOLOGY, encoding="utf-8")
    model = read_topology(file)
    gemms = {layer.name: layer.gemms[0] for layer in model.layers}
    assert gemms["Conv1"] == Gemm(m=110 * 110, n=64, k=147)
    assert gemms["Wide"] == Gemm(m=18 * 14, n=8, k=30)
    assert gemms["FC"] == Gemm(m=1, n=1000, k=2048)
    assert gemms["Conv2_DP"] == Gemm(m=32 * 110 * 110, n=1, k=9, steps=32)
    assert [layer.first for layer in model.layers] == [True, False, False, False]
    sizes = {layer.name: (layer.parameters, layer.inputs, layer.outputs) for layer in model.layers}
    assert sizes["Conv2_DP"] == (9 * 32, 112 * 112 * 32, 110 * 110 * 32)


def test_products_are_read(tmp_path: Path) -> None:
    file = tmp_path / "gemm.csv"
    file.write_text("Layer, M, N, K,\nGEMM0, 10, 20, 30,\n", encoding="utf-8")
    (layer,) = read_topology(file).layers
    assert layer.gemms == (Gemm(m=10, n=20, k=30),)
    assert (layer.inputs, layer.outputs, layer.parameters) == (300, 200, 600)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([], ("no layers",)),
        (["a, 1, 2,"], ("line 2", "this has 2")),
        (["a, 1, 2, x,"], ("line 2", "`x` is no whole number")),
        (["a, 1, 2, 0,"], ("line 2", "`0`")),
        (["a, 1, 2, 3,", "a, 1, 2, 3,"], ("names layer `a` twice",)),
        (["a, 5, 5, 7, 3, 3, 3, 1,"], ("line 2", "7 x 3", "5 x 5")),
    ],
)
def test_topologies_that_are_none_are_refused(
    tmp_path: Path, lines: list[str], words: tuple[str, ...]
) -> None:
    file = tmp_path / "net.csv"
    file.write_text("\n".join(["Layer, M, N, K,", *lines]), encoding="utf-8")
    with pytest.raises(WorkloadError) as refused:
        read_topology(file)
    for word in ("net.csv", *words):
        assert word in str(refused.value)
