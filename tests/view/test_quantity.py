"""How shares and counts are written for people."""

from __future__ import annotations

import pytest

from tutti.view.quantity import counted, format_shares, plural


@pytest.mark.parametrize(
    ("ratios", "shown"),
    [
        ((1 / 3, 1 / 3, 1 / 3), ["33.4 %", "33.3 %", "33.3 %"]),
        ((0.7256, 0.1374, 0.137), ["72.6 %", "13.7 %", "13.7 %"]),
        ((0.0, 1.0), ["0.0 %", "100.0 %"]),
        ((0.25, 0.25), ["25.0 %", "25.0 %"]),
        ((), []),
    ],
)
def test_shares_add_up_to_the_total(ratios: tuple[float, ...], shown: list[str]) -> None:
    assert format_shares(ratios) == shown
    tenths = sum(round(float(text.removesuffix(" %")) * 10) for text in shown)
    assert tenths == round(1000 * sum(ratios))


def test_one_is_singular() -> None:
    assert (plural(1, "seed"), plural(1000, "seed")) == ("1 seed", "1,000 seeds")
    assert (counted("1", "packet"), counted("1.0 ± 0.1", "cycle")) == (
        "1 packet",
        "1.0 ± 0.1 cycles",
    )
