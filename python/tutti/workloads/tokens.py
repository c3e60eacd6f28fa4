"""The bytes of tokens that are sent to experts."""

from __future__ import annotations

from typing import Literal, get_args

Format = Literal["fp8", "bf16"]
FORMATS: tuple[Format, ...] = get_args(Format)

_HEADER = 16
_SCALED = 128


def token_bytes(hidden: int, sent: Format) -> int:
    """Returns the bytes of a copy of a token of `hidden` elements.

    `fp8` has one byte per element, a scale of 4 B per 128 elements and a header of 16 B (DeepEP,
    csrc/config.hpp); `bf16` has two bytes per element.
    """
    if sent == "bf16":
        return 2 * hidden
    return hidden + 4 * -(-hidden // _SCALED) + _HEADER
