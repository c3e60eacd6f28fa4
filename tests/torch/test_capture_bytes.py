"""Bytes of captured operators: those that the kernels of a GPU read and write."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import tutti

pytestmark = pytest.mark.filterwarnings("ignore")

ROWS, CLASSES = 256, 1000
LOGITS = 4 * ROWS * CLASSES


def test_operators_move_what_kernels_read_and_write() -> None:
    """The loss reads a score per row; its gradient is written, and the scores are not read.

    A fused step of Adam reads four tensors and writes three: gradients only if they are scaled.
    """
    with tutti.capture(world_size=8) as capturing:
        scores = nn.Parameter(torch.zeros(ROWS, CLASSES, device="cuda"))
        labels = torch.zeros(ROWS, device="cuda", dtype=torch.int64)
        rows = torch.zeros(ROWS, 8, device="cuda")
        optimizer = torch.optim.AdamW([scores], fused=True)
        nn.functional.cross_entropy(scores, labels).backward()
        scores.detach()[:, :8].index_add_(0, labels[:16], rows[:16])
        scores.detach() * scores.detach()
        rows * rows
        optimizer.step()
    moved: dict[str, list[int]] = {}
    for one in capturing.result.roles[0].operators:
        moved.setdefault(one.name.removeprefix("aten.").partition(".")[0], []).append(one.bytes)
    few = 8 * ROWS + 64
    assert moved["_log_softmax"] == [2 * LOGITS]
    assert moved["_log_softmax_backward_data"] == [3 * LOGITS]
    assert moved["nll_loss_forward"][0] < few
    assert LOGITS <= moved["nll_loss_backward"][0] < LOGITS + few
    # 16 rows of 8 are read, and changed in place; so are 16 numbers of rows.
    assert moved["index_add_"] == [3 * 4 * 16 * 8 + 8 * 16]
    assert moved["mul"] == [3 * LOGITS, 2 * 4 * ROWS * 8]
    assert 7 * LOGITS <= moved["_fused_adamw_"][0] < 7 * LOGITS + few


def test_kernels_move_sectors_and_read_operands_again() -> None:
    """A view with gaps takes the sectors in which its elements lie, and repeated ones once.

    Softmax reads rows that exceed the L2 cache three times, norms the operands of the gradients of
    their weights in a second kernel.
    """
    words = 1 << 16
    with tutti.capture(world_size=8) as capturing:
        pairs = torch.zeros(ROWS, 64, 2, device="cuda")
        pairs[..., 0].sin()
        pairs[:, 0, 0].sin()
        pairs[:, :4].expand(3, ROWS, 4, 2).sin()
        norm = nn.LayerNorm(128, device="cuda")
        norm(pairs.flatten(1).requires_grad_()).backward(pairs.flatten(1))
        scores = torch.zeros(ROWS, words, device="cuda", requires_grad=True)
        nn.functional.log_softmax(scores, -1).backward(scores.detach())
        inner = pairs.detach().flatten(1).requires_grad_()
        nn.functional.softmax(inner, -1).backward(inner.detach())
    moved: dict[str, list[int]] = {}
    for one in capturing.result.roles[0].operators:
        moved.setdefault(one.name.removeprefix("aten.").partition(".")[0], []).append(one.bytes)
    half, full = 4 * ROWS * 64, 4 * ROWS * 128
    assert moved["sin"] == [full + half, ROWS * (32 + 4), 32 * ROWS + 3 * 32 * ROWS]
    assert 5 * full <= moved["native_layer_norm_backward"][0] < 5 * full + 32 * ROWS
    assert moved["_log_softmax"] == [4 * 4 * ROWS * words]
    assert moved["_log_softmax_backward_data"] == [4 * 4 * ROWS * words]
    assert moved["_softmax_backward_data"] == [6 * full]
