"""Times of passes: systolic arrays, measured times and their tables."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tutti.base.errors import ConfigError, UnitError
from tutti.base.units import Frequency, Time, TimePerByte
from tutti.formats.scalesim import read_topology
from tutti.workloads import (
    Chiplet,
    MeasuredCompute,
    Roofline,
    Systolic,
    build,
    read_measured,
    recorded,
    recorded_models,
    timed,
)
from tutti.workloads.compute import roofline
from tutti.workloads.errors import WorkloadError
from tutti.workloads.model import PASSES, Gemm, Work, linear, lstm

if TYPE_CHECKING:
    from tutti.workloads.compute import Share
    from tutti.workloads.model import ModelLayer

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


def test_steps_of_a_recurrent_layer_are_sequential() -> None:
    layer = lstm("l", 64, 32, tokens=7)
    inputs, states = folds(64, 128, 7 * 2), 7 * folds(32, 128, 2)
    assert ARRAY.time(layer, "forward", 2, 2, LEFT) == 1000 * (inputs + states)


def test_invalid_array_is_refused() -> None:
    none = Systolic(rows=0, columns=4, dataflow="weight_stationary", clock=ARRAY.clock)
    with pytest.raises(WorkloadError, match="0 x 4"):
        none.cycles(Gemm(m=1, n=1, k=1))


TABLE = Path(__file__).parents[2] / "validation/scalesim/resnet50.csv"
ELEMENT = Chiplet().array
"""A processing element of ARIES's chiplets: 32 x 32, output stationary."""


def on_one_element(layers: tuple[ModelLayer, ...], samples: int = 1) -> tuple[int, ...]:
    """Cycles of the three passes, including the unused input gradient of the first layer."""
    layers = tuple(replace(layer, first=False) for layer in layers)
    return tuple(
        sum(ELEMENT.time(layer, which, samples, 4, LEFT) for layer in layers) // 1000
        for which in PASSES
    )


def split_in_three(layer: ModelLayer) -> ModelLayer:
    """Queries, keys and values as separate products, without scores and sums."""
    gemms: list[Gemm] = []
    for gemm in layer.gemms:
        third = gemm.n // 3 if gemm.n == 3 * gemm.k else 0
        gemms += [replace(gemm, n=third)] * 3 if third else [gemm] * gemm.weights
    return replace(layer, gemms=tuple(gemms))


def test_models_on_one_element_of_32_x_32() -> None:
    """Forward, input gradient, weight gradient: folds x (terms + 62), summed independently."""
    vgg16 = build("vgg16")
    assert (vgg16.parameters, vgg16.macs) == (138_344_128, 15_470_264_320)
    assert on_one_element(vgg16.layers) == (19_981_472, 24_215_040, 23_505_732)
    transformer = build("transformer")
    assert transformer.parameters == 62_984_192
    alone = tuple(split_in_three(layer) for layer in transformer.layers)
    assert on_one_element(alone) == (8_685_272, 8_400_768, 11_688_800)
    small = build("dlrm_small")
    assert on_one_element(small.layers, 128) == (224_568, 230_000, 300_960)


def test_resnet50_unpadded_on_one_element_of_32_x_32() -> None:
    """SCALE-Sim's table; a pixel left over by a stride gives no output: 3.41 GMAC."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = [[int(cell) for cell in row[1:8]] for row in list(csv.reader(file))[1:]]
    layers = tuple(
        convolved((height - size) // stride + 1, filters, channels * size * size)
        for height, _, size, _, channels, filters, stride in rows
    )
    assert sum(layer.macs for layer in layers) == 3_409_810_112
    assert on_one_element(layers) == (4_395_616, 4_946_624, 4_886_742)


def convolved(side: int, filters: int, terms: int) -> ModelLayer:
    return linear("l", terms, filters, tokens=side * side)


@pytest.mark.parametrize("share", ["samples", "folds"])
def test_elements_share_samples_or_folds(share: Share) -> None:
    """5 x 100 by 100 x 40 for each of 33 samples, on 16 elements."""
    layer, chiplet = linear("l", 100, 40, tokens=5), Chiplet(share=share)
    took = chiplet.time(layer, "forward", 33, 4, LEFT)
    # 3 samples at most, 15 rows: 1 x 2 folds. Or 165 rows: 6 x 2 folds, one for each element.
    assert took == 1000 * {"samples": 2 * 162, "folds": 162}[share]
    weights = chiplet.time(layer, "weight_gradient", 33, 4, LEFT)
    # 100 x 40: 4 x 2 folds of 3 samples' rows, or one for each of 8 elements of all rows.
    assert weights == 1000 * {"samples": 8 * (15 + 62), "folds": 165 + 62}[share]


def test_a_chiplet_of_one_element_is_that_element() -> None:
    for share in ("samples", "folds"):
        one = Chiplet(elements=1, share=share)
        for layer in build("resnet50").layers:
            for which in PASSES:
                alone = ELEMENT.time(layer, which, 3, 4, LEFT)
                assert one.time(layer, which, 3, 4, LEFT) == alone


@pytest.mark.parametrize("share", ["samples", "folds"])
def test_a_chiplet_of_no_elements_is_refused(share: Share) -> None:
    with pytest.raises(WorkloadError, match="the NPU has 0 systolic arrays"):
        Chiplet(elements=0, share=share).time(linear("l", 1, 1), "forward", 1, 4, LEFT)


def test_layers_of_a_model_are_timed() -> None:
    layers = timed(build("vgg16"), Chiplet(share="folds"), 1)
    assert [layer.name for layer in layers[-2:]] == ["fc7", "fc8"]
    # 128 folds on 16 elements, 8 each of 4096 + 62 cycles; 4 B for each of 16.8 M weights.
    assert layers[-2].forward.ps == 8 * 4158 * 1000
    assert layers[-2].gradients.bytes == 4 * 4096 * 4096
    assert layers[0].input_gradient.ps == 0
    assert sum(layer.gradients.bytes for layer in layers) == 4 * 138_344_128
    assert layers[1].compute.ps == sum(
        Chiplet(share="folds").time(build("vgg16").layers[1], which, 1, 4, LEFT) for which in PASSES
    )


def test_timing_needs_samples_and_something_to_compute_with() -> None:
    model = build("dlrm_small")
    with pytest.raises(WorkloadError, match="a batch of 0 samples"):
        timed(model, Chiplet(), 0)
    with pytest.raises(WorkloadError, match="a roofline requires"):
        timed(model, Roofline(), 1)
    assert timed(model, Roofline(), 1, left=LEFT)[0].forward.ps > 0


@pytest.mark.parametrize(
    ("name", "layers", "cycles", "size"),
    [
        ("resnet50", 54, (380_038, 377_463, 337_813), 102_011_648),
        ("dlrm_small", 8, (19_020, 19_014, 13_644), 3_191_808),
        ("transformer", 57, (199_371_180, 186_727_713, 162_843_649), 2_434_351_104),
    ],
)
def test_astrasims_cycles(name: str, layers: int, cycles: tuple[int, ...], size: int) -> None:
    """Sums of the columns of ASTRA-sim's files."""
    found = recorded(name)
    assert len({layer.name for layer in found}) == len(found) == layers
    sums = tuple(sum(getattr(layer, which).ps for layer in found) // 1000 for which in PASSES)
    assert sums == cycles
    assert sum(layer.gradients.bytes for layer in found) == size


def test_astrasims_layers_are_those_of_our_models() -> None:
    assert recorded_models() == ("resnet50", "dlrm_small", "transformer")
    for name, element in (("resnet50", 4), ("dlrm_small", 2)):
        theirs = {layer.name: layer.gradients.bytes for layer in recorded(name)}
        theirs.pop("embedding", None)
        assert theirs == {layer.name: layer.parameters * element for layer in build(name).layers}
    slow = recorded("dlrm_small", clock="500 MHz")[1]
    assert slow.forward.ps == 2 * 1_280_000
    with pytest.raises(WorkloadError, match=r"no recorded cycles of `vgg16`.*resnet50, dlrm_small"):
        recorded("vgg16")


TIMES = """layer,forward,input_gradient,weight_gradient
one, 1.5 ms, 0 s, 2 ms
two,3 us,4 us,5 us
"""


def test_measured_times_are_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "times.csv"
    file.write_text(TIMES, encoding="utf-8")
    measured = read_measured(file)
    assert measured.time(linear("one", 3, 3), "forward", 8, 2, LEFT) == 1_500_000_000
    assert measured.time(linear("two", 3, 3), "weight_gradient", 8, 2, LEFT) == 5_000_000
    with pytest.raises(WorkloadError, match="no times of layer `three`: expected one, two"):
        measured.time(linear("three", 3, 3), "forward", 8, 2, LEFT)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("has no times",)),
        ("layer,forward\na,1 us\n", ("no column `input_gradient`",)),
        (TIMES + "one,1 us,1 us,1 us\n", ("line 4", "duplicate layer `one`")),
        (TIMES.replace("3 us", "3"), ("line 3", "column `forward`", "unit")),
        (TIMES + "three,1 us\n", ("line 4", "column `input_gradient`")),
        (TIMES + ",1 us,1 us,1 us\n", ("line 4", "no layer name")),
    ],
)
def test_invalid_tables_of_times_are_refused(
    tmp_path: Path, text: str, words: tuple[str, ...]
) -> None:
    file = tmp_path / "times.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        read_measured(file)
    for word in ("times.csv", *words):
        assert word in str(refused.value)


def test_missing_file_is_reported(tmp_path: Path) -> None:
    for read in (read_measured, read_topology):
        with pytest.raises(ConfigError, match="there is no such file"):
            read(tmp_path / "none.csv")


def test_measured_times_need_no_file() -> None:
    times = MeasuredCompute({"l": dict.fromkeys(PASSES, Time(ps=7))})
    assert times.time(linear("l", 1, 1), "input_gradient", 1, 2, LEFT) == 7


TOPOLOGY = """Layer name, Height, Width, Filter Height, Filter Width, Channels, Filters, Strides,

Conv1, 224, 224, 7, 7, 3, 64, 2,
Wide, 20, 30, 3, 5, 2, 8, 1, 2,
FC, 1, 1, 1, 1, 2048, 1000, 1,
Conv2_DP, 112, 112, 3, 3, 32, 1, 1,
"""


def test_topology_has_the_counts_of_scalesim(tmp_path: Path) -> None:
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
        (["a, 1, 2,"], ("line 2", "has 2 numbers")),
        (["a, 1, 2," + "9" * 5000], ("line 2", "5,000 characters", "at most 4,096")),
        (['a, 1, 2, "' + "9" * 200_000 + '"'], ("line 2", "field larger than field limit")),
        (["a, 1, 2, x,"], ("line 2", "is not an integer", 'given: "x"')),
        (["a, 1, 2, 0,"], ("line 2", 'given: "0"')),
        (["a, 1, 2, 3,", "a, 1, 2, 3,"], ("has two layers named `a`",)),
        (["a, 4294967295, 4294967295, 3,"], ("line 2", "a tensor of", "elements")),
        (["a, 4294967296, 2, 3,"], ("line 2", "is not an integer")),
        (["a, 5, 5, 7, 3, 3, 3, 1,"], ("line 2", "7 x 3", "5 x 5")),
    ],
)
def test_invalid_topologies_are_refused(
    tmp_path: Path, lines: list[str], words: tuple[str, ...]
) -> None:
    file = tmp_path / "net.csv"
    file.write_text("\n".join(["Layer, M, N, K,", *lines]), encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        read_topology(file)
    for word in ("net.csv", *words):
        assert word in str(refused.value)


def test_work_beyond_64_bits_is_refused() -> None:
    """The core stops counting at 2^64 - 1, which would be a time of 213 days."""
    with pytest.raises(WorkloadError, match="expected at most 9,223,372,036,854,775,807"):
        roofline(Work(flops=2**90, bytes=1), LEFT)
    with pytest.raises(WorkloadError, match="picoseconds"):
        roofline(Work(flops=1, bytes=2**62), (10**12, TimePerByte.parse("1 us/B")))
    with pytest.raises(WorkloadError, match="expected at most"):
        ARRAY.cycles(Gemm(m=2**30, n=2**30, k=2**30))
    with pytest.raises(UnitError, match="too many for a time"):
        Frequency.parse("1 GHz").cycles(2**62)
