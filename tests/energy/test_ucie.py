"""UCIe links: rates, energies and errors."""

from __future__ import annotations

import pytest

from tutti.base.errors import ConfigError
from tutti.energy.ucie import RATES, UcieLink


@pytest.mark.parametrize("rate", RATES)
def test_rates_and_energies(rate: int) -> None:
    """16 or 64 lanes; 64 of 68 bytes are payload; 0.5 or 0.6, and 0.25 or 0.3 pJ/bit."""
    for package, lanes, pj in (("standard", 16, 0.5), ("advanced", 64, 0.25)):
        link = UcieLink(package=package, gt_per_s=rate, modules=2)  # type: ignore[arg-type]
        assert link.raw_rate == f"{2 * lanes * rate / 8:g} GB/s"
        assert float(link.rate.split()[0]) == pytest.approx(
            2 * lanes * rate / 8 * 64 / 68, abs=1e-3
        )
        crossing = link.technology("aries_45nm").constants["crossing_pj_per_bit"]
        assert crossing.value == pytest.approx(pj * (1.2 if rate > 16 else 1))
        assert link.retry == (rate >= 12)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"package": "3d"}, "UCIe has no package `3d`: expected one of standard, advanced"),
        ({"gt_per_s": 20}, "UCIe has no gt_per_s `20`"),
        ({"modules": 3}, "UCIe has no modules `3`: expected one of 1, 2, 4"),
    ],
)
def test_other_values_are_errors(changed: dict[str, object], message: str) -> None:
    given: dict[str, object] = {"package": "standard", "gt_per_s": 16} | changed
    with pytest.raises(ConfigError, match=message.replace("`", ".")):
        UcieLink(**given)  # type: ignore[arg-type]
