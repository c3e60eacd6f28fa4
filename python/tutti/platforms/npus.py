"""Published peaks of NPUs by name: dense operations, memory and links.

The numbers and their sources are in `npus.toml`; `docs/machines/gpus.md` shows them as a table.

Examples:
    >>> from tutti.platforms.npus import npu
    >>> npu("h100").bf16_flops
    OpRate('989.5 TFLOP/s')
    >>> npu("a100").fp8_flops or "without FP8"
    'without FP8'
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from importlib.resources import files
from typing import Annotated

from pydantic import Field, TypeAdapter

from tutti.base.files.mistakes import known_name
from tutti.base.files.reader import parse_toml
from tutti.base.units import OpRate, Size, TimePerByte  # noqa: TC001 - pydantic resolves them


@dataclass(frozen=True, kw_only=True)
class NpuPeaks:
    """Published peaks of an NPU, per NPU and direction.

    Attributes:
        name: The name in `npus.toml`.
        summary: The product.
        source: The vendor's documents.
        sms: SMs, or compute units.
        bf16_flops: Dense BF16 operations per second.
        fp8_flops: Dense FP8 operations per second; None without FP8.
        fp4_flops: Dense FP4 operations per second; None without FP4.
        memory_bytes: Capacity of the memory.
        memory_bandwidth: Bandwidth of the memory.
        nvlink_bandwidth: All scale-up links together: NVLink, or Infinity Fabric.
        nic_bandwidth: The network adapter of the vendor's usual system.
    """

    name: str
    summary: str
    source: str
    sms: Annotated[int, Field(gt=0)]
    bf16_flops: OpRate
    fp8_flops: OpRate | None = None
    fp4_flops: OpRate | None = None
    memory_bytes: Size
    memory_bandwidth: TimePerByte
    nvlink_bandwidth: TimePerByte
    nic_bandwidth: TimePerByte

    @property
    def vendor(self) -> str:
        """The vendor: the first word of the product."""
        return self.summary.split()[0]


def npu_names() -> list[str]:
    """Returns the names of the NPUs, in alphabetical order."""
    return sorted(_all())


def npu(name: str) -> NpuPeaks:
    """Returns the published peaks of an NPU by name.

    Raises:
        ConfigError: The name is unknown.
    """
    return _all()[known_name(name, npu_names(), what="NPU", source="tutti.platforms.npus")]


@functools.cache
def _all() -> dict[str, NpuPeaks]:
    text = (files("tutti.platforms") / "npus.toml").read_text(encoding="utf-8")
    reader = TypeAdapter(NpuPeaks)
    tables = parse_toml(text, source="npus.toml")
    return {name: reader.validate_python({"name": name, **table}) for name, table in tables.items()}
