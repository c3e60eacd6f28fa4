"""Memory of captured steps against the tracker of PyTorch."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.distributed._tools.mem_tracker import MemTracker

import tutti
from tutti.training.capture.summary import by_module, peak

pytestmark = pytest.mark.filterwarnings("ignore")


def feed_forward() -> nn.Module:
    part = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512))
    return nn.Sequential(part, nn.LayerNorm(512), nn.Linear(512, 64))


def attention() -> nn.Module:
    return nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True)


@pytest.mark.parametrize(
    ("made", "shape"), [(feed_forward, (4096, 512)), (attention, (8, 256, 256))]
)
@pytest.mark.parametrize("optimizer", [torch.optim.AdamW, torch.optim.SGD])
def test_the_peak_is_that_of_the_tracker_of_pytorch(
    made: object, shape: tuple[int, ...], optimizer: type[torch.optim.Optimizer]
) -> None:
    """Within 1 %: the tracker, in the captured step, counts blocks of 512 B of the allocator."""
    tracker = MemTracker()
    with tutti.capture(world_size=1, step=2) as capturing:
        model = made().cuda()  # type: ignore[operator]
        steps = optimizer(model.parameters(), lr=0.1)

        def step() -> None:
            model(torch.zeros(shape, device="cuda")).sum().backward()
            steps.step()
            steps.zero_grad()

        step()
        tracker.track_external(model, steps)
        with tracker:
            step()
        step()
    (role,) = capturing.result.roles
    device, found = max(tracker.get_tracker_snapshot("peak").items(),
                        key=lambda each: each[1]["Total"])  # fmt: skip
    assert device.type == "cuda"
    kinds = {getattr(kind, "name", kind): size for kind, size in found.items()}
    largest = peak(role)
    assert largest.bytes == pytest.approx(kinds["Total"], rel=0.01)
    assert largest.kinds["parameters"] == pytest.approx(kinds["PARAM"], rel=0.001)
    assert sum(by_module(role).values()) == largest.bytes


def test_memory_of_modules_is_theirs() -> None:
    """The outputs of each block, (tokens, 1024) in FP32, are live when the backward pass starts."""
    with tutti.capture(world_size=1, step=2) as capturing:
        model = nn.Sequential(*(nn.Sequential(nn.Linear(1024, 1024), nn.Tanh()) for _ in range(4)))
        model = model.cuda()
        steps = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            model(torch.zeros(8192, 1024, device="cuda")).sum().backward()
            steps.step()
            steps.zero_grad()
    (role,) = capturing.result.roles
    found = by_module(role)
    for block in range(3):
        held = sum(size for (module, kind), size in found.items()
                   if kind == "activations" and module.startswith(f"{block}."))  # fmt: skip
        assert held >= 8192 * 1024 * 4
