"""Buckets of DistributedDataParallel in captures: those of ResNet-50's parameters."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn

import tutti

pytestmark = pytest.mark.filterwarnings("ignore")

FIRST, CAP = 1 << 20, 25 << 20
"""DDP's limits of the first bucket and of others, in bytes."""


def resnet50() -> list[list[tuple[int, ...]]]:
    """Returns the shapes of ResNet-50's parameters by layer, in the order of the forward pass.

    Source: He et al. 2016, Table 1; torchvision's `resnet50` has 161 tensors, 25,557,032 elements.
    """

    def convolved(inputs: int, outputs: int, kernel: int) -> list[tuple[int, ...]]:
        return [(outputs, inputs, kernel, kernel), (outputs,), (outputs,)]

    layers, inputs = [convolved(3, 64, 7)], 64
    for width, count in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for number in range(count):
            layers += [convolved(inputs, width, 1), convolved(width, width, 3)]
            layers.append(convolved(width, 4 * width, 1))
            if number == 0:
                layers.append(convolved(inputs, 4 * width, 1))
            inputs = 4 * width
    return [*layers, [(1000, 2048), (1000,)]]


def buckets(sizes: list[int]) -> list[int]:
    """Returns the bytes of buckets: each takes gradients until it has reached its limit."""
    found = [0]
    for size in sizes:
        if found[-1] >= (FIRST if len(found) == 1 else CAP):
            found.append(0)
        found[-1] += size
    return found


class Layer(torch.autograd.Function):
    """A layer whose gradients have no values: they become ready, the last parameter first."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        ctx.shapes = [one.shape for one in parameters]
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return gradient, *(torch.empty(shape, device="cuda") for shape in ctx.shapes)


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.ParameterList(torch.empty(shape, device="cuda") for shape in shapes)
            for shapes in resnet50()
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for weight, *others in self.layers:
            # A weight is ready after what is added to its product, as in a convolution.
            x = Layer.apply(x, weight.view_as(weight), *others)
        return x


def test_buckets_of_ddp_are_those_of_resnet50() -> None:
    """DDP rebuilds them in the second step, in the order of the gradients, and logs in the third.

    A capture of `examples/30_capture/resnet_ddp.py` has the same five.
    """
    with tutti.capture(world_size=8, step=3) as capturing:
        dist.init_process_group("nccl")
        model = nn.parallel.DistributedDataParallel(Network())
        optimizer = torch.optim.SGD(list(model.parameters())[:1], lr=0.1)
        for _ in range(3):
            model(torch.zeros(1, device="cuda", requires_grad=True)).sum().backward()
            optimizer.step()
        logged = model._get_ddp_logging_data()["rebuilt_bucket_sizes"]
    sizes = [math.prod(shape) for layer in resnet50() for shape in layer]
    assert (len(sizes), sum(sizes)) == (161, 25_557_032)
    ready = [4 * math.prod(shape) for layer in reversed(resnet50()) for shape in reversed(layer)]
    (role,) = capturing.result.roles
    found = [to.bytes for _, to in role.exchanges if to.collective == "all_reduce"]
    assert found == buckets(ready) == [int(size) for size in logged.split(", ")]
    assert found == [8_196_000, 31_502_336, 26_255_360, 26_550_272, 9_724_160]
