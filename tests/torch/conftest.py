"""Versions of PyTorch: names that older ones have elsewhere, and programs that they refuse."""

from __future__ import annotations

import pytest
import torch.distributed.fsdp

from tutti.training.errors import CaptureError

VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])

if not hasattr(torch.distributed.fsdp, "fully_shard"):
    from torch.distributed._composable import fsdp

    for name in ("MixedPrecisionPolicy", "fully_shard"):
        setattr(torch.distributed.fsdp, name, getattr(fsdp, name))

REFUSED = {
    "test_ring_attention_shifts_keys_and_values": ([(2, 5)], "no `context_parallel`"),
    "test_stages_ask_each_other_for_their_shapes": ([(2, 5)], "no `ScheduleZBVZeroBubble`"),
    "test_experts_exchange_the_copies_of_tokens": (
        [(2, 5), (2, 6)],
        "no `shard_placement_fn`, optimizers of one device mesh",
    ),
    "test_stages_of_a_pipeline_divide_their_tensors": (
        [(2, 6)],
        "stages detach outputs in place, which are views of DTensors",
    ),
}
"""Versions whose PyTorch cannot run a program, by test: an error of the program, with its line."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        versions, reason = REFUSED.get(item.name, ([], ""))
        if VERSION in versions:
            mark = pytest.mark.xfail(raises=CaptureError, strict=True, reason=reason)
            item.add_marker(mark)
