"""PyTorch models as layers: weights and operations as torch counts them; `make test-torch`."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from tutti.formats.torch import from_torch, load_module
from tutti.workloads.errors import WorkloadError
from tutti.workloads.files import read_model, write_model

pytestmark = pytest.mark.filterwarnings("ignore")


class Pixels(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.last = nn.Linear(8 * 8 * 8, 10)

    def forward(self, x):
        x = torch.relu(self.norm(self.depthwise(self.first(x))))
        return self.last(x.flatten(1))


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(100, 32)
        self.block = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        self.scores = nn.Linear(32, 100, bias=False)
        self.scores.weight = self.table.weight

    def forward(self, x):
        return self.scores(self.block(self.table(x)))


class Memory(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.LSTM(16, 32, 2, batch_first=True)

    def forward(self, x):
        return self.cells(x)[0]


CASES = [
    (Pixels, (4, 3, 16, 16), False),
    (Words, (3, 7), True),
]


@pytest.mark.parametrize(("make", "shape", "integers"), CASES)
def test_weights_and_operations_match_torch(make, shape, integers) -> None:
    """The counter of torch observes the model; the layers come from its graph."""
    module = make().eval()
    model = from_torch(make(), [shape], name="m", integers=integers)
    assert model.parameters == sum(parameter.numel() for parameter in module.parameters())
    inputs = torch.zeros(*shape, dtype=torch.int64) if integers else torch.randn(*shape)
    # Versions of torch do not count all kernels of attention on the CPU.
    math = sdpa_kernel(SDPBackend.MATH)
    with FlopCounterMode(display=False) as counter, math, torch.no_grad():
        torch.backends.mha.set_fastpath_enabled(False)
        module(inputs)
    assert 2 * model.macs * shape[0] == counter.get_total_flops()


def test_layers_have_their_paths_in_the_model() -> None:
    model = from_torch(Pixels(), [(4, 3, 16, 16)], name="pixels")
    assert [layer.name for layer in model.layers] == ["first", "depthwise", "norm", "last"]
    assert [layer.first for layer in model.layers] == [True, False, False, False]
    assert (model.layers[0].inputs, model.layers[0].outputs) == (3 * 16 * 16, 8 * 8 * 8)


def test_a_weight_that_two_layers_share_counts_once() -> None:
    model = from_torch(Words(), [(3, 7)], name="words", integers=True)
    assert model.layers[0].parameters == 3200
    assert model.layers[-1].parameters == 0


def test_recurrent_layers_read_their_weights_in_every_step() -> None:
    """4 x 32 gates from 16 inputs and 32 states, then from 32 and 32, 9 steps each."""
    model = from_torch(Memory(), [(2, 9, 16)], name="memory")
    (layer,) = model.layers
    assert layer.parameters == sum(p.numel() for p in Memory().parameters())
    assert layer.macs == 9 * 128 * (16 + 32 + 32 + 32)
    assert {gemm.steps for gemm in layer.gemms} == {9}


def test_a_model_is_written_and_read_back(tmp_path: Path) -> None:
    model = from_torch(Pixels(), [(4, 3, 16, 16)], name="pixels")
    assert read_model(write_model(tmp_path / "m.json", model)) == model


def test_modules_that_torch_cannot_export_are_refused(tmp_path: Path) -> None:
    class Branches(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    with pytest.raises(WorkloadError, match="b cannot be exported"):
        from_torch(Branches(), [(2, 2)], name="b")
    with pytest.raises(WorkloadError, match="no layer"):
        from_torch(nn.ReLU(), [(2, 2)], name="r")
    with pytest.raises(WorkloadError, match="makes no model"):
        load_module("torch.nn:Nothing", tmp_path)
