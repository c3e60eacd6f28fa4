"""Trains ResNet-50 with DistributedDataParallel: an ordinary PyTorch program for torchrun."""

import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def convolved(inputs, outputs, kernel, stride=1):
    """A convolution with batch normalisation."""
    pad = kernel // 2
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, stride, pad, bias=False),
                         nn.BatchNorm2d(outputs))  # fmt: skip


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.one, self.three = convolved(inputs, width, 1), convolved(width, width, 3, stride)
        self.out = convolved(width, 4 * width, 1)
        changes = stride > 1 or inputs != 4 * width
        self.shortcut = convolved(inputs, 4 * width, 1, stride) if changes else nn.Identity()

    def forward(self, x):
        y = self.out(F.relu(self.three(F.relu(self.one(x)))))
        return F.relu(y + self.shortcut(x))


class ResNet50(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = convolved(3, 64, 7, 2)
        blocks, inputs = [], 64
        for width, count in ((64, 3), (128, 4), (256, 6), (512, 3)):
            for number in range(count):
                stride = 2 if number == 0 and width > 64 else 1
                blocks.append(Bottleneck(inputs, width, stride))
                inputs = 4 * width
        self.blocks = nn.Sequential(*blocks)
        self.classes = nn.Linear(inputs, 1000)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.first(x)), 3, 2, 1)
        return self.classes(self.blocks(x).mean((2, 3)))


def main(batch=32):
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    model = DistributedDataParallel(ResNet50().cuda(), device_ids=[local])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(10):
        images = torch.zeros(batch, 3, 224, 224, device="cuda")
        labels = torch.zeros(batch, dtype=torch.long, device="cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
