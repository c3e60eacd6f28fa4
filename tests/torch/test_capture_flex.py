"""Attention whose mask is Python code: `flex_attention` in a capture."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.attention import flex_attention as flex

import tutti
from tutti.training.capture.record import Role

pytestmark = pytest.mark.filterwarnings("ignore")

HEADS, TOKENS, WIDTH = 4, 512, 64
SCORES = 2 * 2 * HEADS * TOKENS * TOKENS * WIDTH
"""FLOPs of the two products of the forward pass, of all scores."""
TRIANGLE = (TOKENS + 1) / (2 * TOKENS)


def causal(_b, _h, q, k):
    return q >= k


def window(_b, _h, q, k):
    return q - k < 128


def padded(_b, _h, q, k):
    """Is of another kind: it masks all tokens if lengths are zeros."""
    return k < q.new_zeros(())


def captured(*masks, **more) -> Role:
    with tutti.capture(world_size=8) as capturing:
        documents = torch.zeros(1, TOKENS, device="cuda", dtype=torch.int64)
        found = [
            (lambda b, _h, q, k: documents[b, q] == documents[b, k]) if one == "documents" else one
            for one in masks
        ]
        mask = None
        if found:
            mask = torch.compile(flex.create_block_mask)(
                flex.and_masks(*found), None, None, TOKENS, TOKENS, device="cuda"
            )
        x = nn.Parameter(torch.zeros(1, TOKENS, HEADS, WIDTH, device="cuda"))
        keys = nn.Parameter(torch.zeros(1, TOKENS, 2, WIDTH, device="cuda", dtype=torch.bfloat16))
        q, k = (one.to(torch.bfloat16).transpose(1, 2) for one in (x, keys))
        y = torch.compile(flex.flex_attention)(q, k, k, block_mask=mask, enable_gqa=True, **more)
        assert y.shape == q.shape
        assert y.stride() == q.stride()
        y.sum().backward()
        torch.optim.SGD([x, keys]).step()
        assert x.grad is not None
        assert keys.grad is not None
    return capturing.result.roles[0]


@pytest.mark.parametrize(
    ("masks", "share", "remark"),
    [
        ((), 1.0, ""),
        ((causal,), TRIANGLE, ""),
        ((causal, "documents"), TRIANGLE, "are causal, with zeros"),
        ((padded,), 1.0, "cannot be evaluated leave all scores"),
        (("documents",), 1.0, "are 100% of the scores"),
        # Rows that have less than the window in front of them: a triangle of 128 is missing.
        ((causal, window), (128 * TOKENS - 128 * 127 / 2) / TOKENS**2, ""),
    ],
)
def test_masks_decide_which_scores_are_computed(masks, share: float, remark: str) -> None:
    role = captured(*masks)
    forward, backward = (one for one in role.operators if one.kind == "attention")
    assert forward.flops == pytest.approx(share * SCORES, rel=0.01)
    assert backward.flops == pytest.approx(2.5 * share * SCORES, rel=0.01)
    queries = 2 * HEADS * TOKENS * WIDTH
    # Queries, output, keys and values of 2 of 4 heads, and log-sums of rows in FP32.
    assert forward.bytes == 2 * queries + queries // 2 + 4 * HEADS * TOKENS
    assert backward.phase == "backward"
    lines = [line for line in role.remarks if "flex_attention" in line]
    assert len(lines) == bool(remark)
    assert all(remark in line for line in lines)


def test_scores_that_code_changes_are_remarked() -> None:
    role = captured(score_mod=lambda score, *_: 2 * score)
    assert role.remarks == ("1 x `score_mod` of `flex_attention` takes no time",)
