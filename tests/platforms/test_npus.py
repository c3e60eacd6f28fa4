"""The published peaks of NPUs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tutti.base.errors import ConfigError
from tutti.base.units import OpRate, TimePerByte
from tutti.platforms.npus import npu, npu_names

NAMES = ["a100", "b200", "b300", "gb200", "gb300", "h100", "h200", "h800", "mi300x"]


def test_the_named_npus_exist() -> None:
    assert npu_names() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_rates_are_consistent(name: str) -> None:
    found = npu(name)
    assert found.name == name
    assert found.source.startswith(("NVIDIA", "AMD"))
    if found.fp8_flops is not None:
        assert found.fp8_flops.per_second == pytest.approx(
            2 * found.bf16_flops.per_second, rel=1e-3
        )
    if found.fp4_flops is not None:
        assert found.fp8_flops is not None
        assert found.fp4_flops >= found.fp8_flops
    memory, scale_up, network = (
        rate.core.bytes_per_second
        for rate in (found.memory_bandwidth, found.nvlink_bandwidth, found.nic_bandwidth)
    )
    assert memory > scale_up > network


def test_h200_differs_from_h100_in_memory_only() -> None:
    new, old = npu("h200"), npu("h100")
    assert new.bf16_flops == old.bf16_flops == OpRate.parse("989.5 TFLOP/s")
    assert new.nvlink_bandwidth == old.nvlink_bandwidth == TimePerByte.parse("450 GB/s")
    assert new.memory_bytes > old.memory_bytes


def test_unknown_npu_is_an_error_with_a_hint() -> None:
    with pytest.raises(ConfigError, match="unknown NPU `h10`") as caught:
        npu("h10")
    assert "h100" in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_the_page_has_the_peaks(name: str) -> None:
    page = (Path(__file__).parents[2] / "docs/machines/gpus.md").read_text(encoding="utf-8")
    found = npu(name)
    operations = [
        f"{rate.per_second / 1e12:g}" if rate else "none"
        for rate in (found.bf16_flops, found.fp8_flops, found.fp4_flops)
    ]
    rates = [
        f"{rate.core.bytes_per_second / 1e9:g}"
        for rate in (found.memory_bandwidth, found.nvlink_bandwidth, found.nic_bandwidth)
    ]
    memory = f"{found.memory_bytes.bytes / 1e9:g}"
    row = [f"`{name}`", str(found.sms), *operations, memory, *rates]
    assert f"| {' | '.join(row)} |" in page
