"""Models: weights and operations compared with their papers and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tutti.workloads import WorkloadEntry, build, models
from tutti.workloads.errors import WorkloadError
from tutti.workloads.model import PASSES, linear, lstm

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: linear("up", -1, 4), "layer `up`: parameters is -4: expected 0 or more"),
        (
            lambda: linear("up", 4, 4, tokens=0),
            "layer `up`: m of a product is 0: expected at least 1",
        ),
    ],
)
def test_a_layer_of_negative_size_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        make()


def test_resnet50_has_the_published_weights() -> None:
    """54 layers and 25,502,912 weights: ASTRA-sim's public file has 102,011,648 B of 4 each."""
    for notation in ("resnet50", "resnet50:v1"):
        model = build(notation)
        assert len(model.layers) == 54
        assert model.parameters * 4 == 102_011_648


@pytest.mark.parametrize(
    ("layer", "parameters", "gflop"),
    [
        ("conv1", 9_408, 7.553),
        ("conv2_1_projection", 16_384, 3.288),
        ("conv2_1_1", 4_096, 0.822),
        ("conv2_2_2", 36_864, 7.399),
        ("conv3_1_projection", 131_072, 6.577),
        ("conv3_1_1", 32_768, 1.644),
        ("conv4_1_1", 131_072, 1.644),
        ("conv5_1_1", 524_288, 1.644),
        ("conv5_3_3", 1_048_576, 3.288),
        ("fc", 2_048_000, 0.131),
    ],
)
def test_resnet50_v1_layer_by_layer(layer: str, parameters: int, gflop: float) -> None:
    """Forward operations of 32 images, derived by hand from He et al. 2016, table 1."""
    found = next(one for one in build("resnet50:v1").layers if one.name == layer)
    assert found.parameters == parameters
    assert found.work("forward", 32, 2).flops / 1e9 == pytest.approx(gflop, abs=6e-4)


def test_resnet50_in_all() -> None:
    """v1: 246.9 GFLOP forward for 32 images. v1.5: three layers of four times the pixels more."""
    first, later = build("resnet50:v1"), build("resnet50")
    assert first.macs * 2 * 32 / 1e9 == pytest.approx(246.9, abs=0.05)
    assert (later.macs - first.macs) * 2 * 32 / 1e9 == pytest.approx(3 * 3 * 1.644, abs=0.01)


def test_vgg16_has_the_published_weights() -> None:
    model = build("vgg16")
    assert model.parameters == 138_344_128
    assert model.macs / 1e9 == pytest.approx(15.47, abs=0.005)


def test_transformer_base_has_the_published_weights() -> None:
    """44.0 M in blocks and 18.9 M for 37,000 words; scores share the embedding's weights."""
    model = build("transformer")
    words = 37_000 * 512
    assert model.parameters - words == 6 * (12 + 16) * 512 * 512


def test_gpt_of_any_size() -> None:
    """12 h^2 weights in a block, and the embedding."""
    model = build("gpt:layers=3,hidden=64,tokens=8,vocabulary=100")
    assert model.parameters == 3 * 12 * 64 * 64 + 100 * 64
    assert build("gpt").parameters == 24 * 12 * 2048 * 2048 + 50_257 * 2048


def test_dlrm_small_has_the_public_collectives() -> None:
    """Bytes of ASTRA-sim's public file at 2 B a weight."""
    sizes = [2 * layer.parameters for layer in build("dlrm_small").layers]
    assert sizes == [13_312, 524_288, 524_288, 16_384, 1_064_960, 524_288, 524_288]


def test_lstm_reads_its_recurrent_weights_in_every_step() -> None:
    layer = lstm("cell", 10, 20, tokens=5)
    assert layer.parameters == 4 * 20 * (10 + 20)
    assert layer.macs == 5 * layer.parameters
    activations = 3 * 5 * (10 + 20)
    forward = layer.work("forward", 3, 1)
    assert forward.bytes == 4 * 20 * 10 + 5 * 4 * 20 * 20 + activations
    gradient = layer.work("weight_gradient", 3, 1)
    assert gradient.bytes == layer.parameters + activations


def test_an_unrolled_lstm_reads_all_weights_in_every_step() -> None:
    """One product of inputs and state per step: the same operations, more traffic."""
    plain, unrolled = (
        lstm("cell", 10, 20, tokens=5, both=True, unrolled=one) for one in (False, True)
    )
    assert unrolled.parameters == plain.parameters == 8 * 20 * (10 + 20)
    assert unrolled.macs == plain.macs
    inputs = 8 * 20 * 10
    for which in ("forward", "input_gradient"):
        more = unrolled.work(which, 3, 2).bytes - plain.work(which, 3, 2).bytes
        assert more == 2 * 4 * inputs
    assert unrolled.work("weight_gradient", 3, 2) == plain.work("weight_gradient", 3, 2)
    assert build("gnmt:25,unrolled").parameters == build("gnmt").parameters
    assert build("gnmt:25,unrolled").name == "gnmt:25,unrolled"


def test_a_step_of_gnmt_is_bound_by_the_reads_of_its_weights() -> None:
    """8.39 M weights, 128 sentences: 17.9 us at 120 TFLOP/s, 18.6 us at 900 GB/s."""
    cell = next(one for one in build("gnmt:1,unrolled").layers if one.name == "encoder_3")
    work = cell.work("forward", 128, 2)
    assert cell.parameters == 8_388_608
    assert work.flops / 120e6 == pytest.approx(17.9, abs=0.05)
    assert 2 * cell.parameters / 900e3 == pytest.approx(18.6, abs=0.05)
    assert work.bytes / 900e3 > work.flops / 120e6


def test_the_first_layer_needs_no_input_gradient() -> None:
    layer = linear("first", 4, 8, first=True)
    assert layer.work("input_gradient", 2, 2).flops == 0
    assert layer.work("weight_gradient", 2, 2).flops == 2 * 2 * 4 * 8


@pytest.mark.parametrize("entry", models(), ids=lambda entry: entry.name)
def test_every_model_is_consistent(entry: WorkloadEntry) -> None:
    model = build(entry.name)
    assert model.name.split(":")[0] == entry.name
    assert model.source
    assert len({layer.name for layer in model.layers}) == len(model.layers)
    assert sum(layer.first for layer in model.layers) == 1
    assert model.layers[0].first
    for layer in model.layers:
        for which in PASSES:
            assert layer.work(which, 1, 2).bytes >= 0


@pytest.mark.parametrize(
    ("notation", "words"),
    [
        ("resnet51", ("resnet51", "resnet50")),
        ("resnet50:v2", ("v1.5 or v1",)),
        ("vgg16:large", ("`vgg16` alone",)),
        ("gpt:hidden=0", ("layers=N",)),
        ("gnmt:", ("TOKENS",)),
        ("gnmt:unrolled", ("TOKENS,unrolled",)),
    ],
)
def test_unknown_models_are_refused(notation: str, words: tuple[str, ...]) -> None:
    with pytest.raises(WorkloadError) as refused:
        build(notation)
    for word in words:
        assert word in str(refused.value)
