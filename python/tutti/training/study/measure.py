"""The study that measures the operators of a captured step on a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.base.files.extras import check_extra
from tutti.base.files.mistakes import mistake, shown
from tutti.platforms.npus import npu_names
from tutti.study.console import remark
from tutti.study.study import Study
from tutti.training.capture.files import read_step
from tutti.training.capture.measured import MEASURED, write_times

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["measure_step", "named_gpu"]


def measure_step(folder: Path, gpu: str | None = None) -> None:
    """Measures the products and attentions of a step, and writes `times.csv` to its folder.

    Args:
        folder: The folder of the step.
        gpu: The name of the GPU; by default that of this machine.

    Raises:
        ConfigError: PyTorch is not installed, or the GPU has no name in tutti.
        CaptureError: The folder has no captured step, or the machine no GPU.
    """
    step = read_step(folder)
    check_extra("torch")
    from tutti.training.capture.measure import gpu_name, measure

    name = named_gpu(gpu or gpu_name())
    operators = (one for role in step.roles for one in role.operators)
    times, skipped = measure(operators, name)
    study = Study[int]()
    study.write(folder / MEASURED, lambda path: write_times(path, times))
    remark(f"{len(times.us):,} operators measured on {name}")
    if skipped:
        more = f" and {len(skipped) - 3:,} more" if len(skipped) > 3 else ""
        remark(f"not measured: {', '.join(skipped[:3])}{more}")
    study.end(1, 1)


def named_gpu(product: str) -> str:
    """Returns the name in tutti of a product, such as `h100` of "NVIDIA H100 80GB HBM3".

    Raises:
        ConfigError: There is none.
    """
    words = product.lower().replace("-", " ").split()
    named = [name for name in npu_names() if name in words]
    if not named:
        raise mistake("does not name a GPU of tutti", source="--gpu", value=shown(product),
                      expected=f"one of {', '.join(npu_names())}")  # fmt: skip
    return named[0]
