"""The study of the times of a captured step's operators: measured on a GPU, or of a profile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.base.files.extras import check_extra
from tutti.base.files.mistakes import mistake, shown
from tutti.platforms.npus import npu_names
from tutti.study.console import remark
from tutti.study.study import Study
from tutti.training.capture.files import read_step
from tutti.training.capture.measured import MEASURED, write_times
from tutti.training.errors import CaptureError

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.training.capture.measured import MeasuredTimes
    from tutti.training.capture.record import Operator

__all__ = ["measure_step", "named_gpu"]

_MOST_NAMES = 6


def measure_step(folder: Path, gpu: str | None = None, profile: Path | None = None) -> None:
    """Writes `times.csv` to the folder of a step: the times of its operators on a GPU.

    Args:
        folder: The folder of the step.
        gpu: The name of the GPU; by default that of this machine or of the profile.
        profile: A profile of PyTorch with the times; by default, products and attentions are
            measured on this machine.

    Raises:
        ConfigError: PyTorch is not installed, or the GPU has no name in tutti.
        CaptureError: The folder has no captured step, the machine no GPU, or the profile no
            operator of the step.
        TraceError: The profile is damaged, or has no shapes.
    """
    step = read_step(folder)
    operators = [one for role in step.roles for one in role.operators]
    times, lines = (
        _measured(operators, gpu) if profile is None else _profiled(operators, gpu, profile)
    )
    study = Study[int]()
    study.write(folder / MEASURED, lambda path: write_times(path, times))
    for line in lines:
        remark(line)
    study.end(1, 1)


def _measured(operators: list[Operator], gpu: str | None) -> tuple[MeasuredTimes, list[str]]:
    """Returns times that are measured on this machine, and remarks."""
    check_extra("torch")
    from tutti.training.capture.measure import gpu_name, measure

    name = named_gpu(gpu or gpu_name())
    times, skipped = measure(operators, name)
    lines = [f"{len(times.us):,} operators measured on {name}"]
    if skipped:
        more = f" and {len(skipped) - 3:,} more" if len(skipped) > 3 else ""
        lines.append(f"not measured: {', '.join(skipped[:3])}{more}")
    return times, lines


def _profiled(
    operators: list[Operator], gpu: str | None, profile: Path
) -> tuple[MeasuredTimes, list[str]]:
    """Returns times of a profile, and remarks on what it and the step do not share."""
    from tutti.formats.kineto.operators import timed_operators
    from tutti.training.capture.traced import match, profiled, profiled_names

    names = profiled_names(operators)
    found = timed_operators(profile, lambda name: profiled(name) in names)
    named = gpu or found.gpu
    if not named:
        raise mistake("is missing: the profile does not name its GPU", source="--gpu",
                      expected=f"one of {', '.join(npu_names())}")  # fmt: skip
    matched = match(operators, found.operators, named_gpu(named))
    if not matched.matched:
        message = f"{profile}: none of its operators has a name, datatype and shapes of the step"
        raise CaptureError(message, kind="other_profile")
    distinct = f"{len(matched.times.us):,} distinct ones"
    of = f"{matched.matched:,} of {matched.total:,}"
    lines = [f"{of} operators have the time of the profile: {distinct}"]
    if matched.missing:
        lines.append(f"without a time: {_listed(matched.missing, '{:,} x {}')}")
    if matched.unused:
        lines.append("operators of the profile with other shapes than the step's: "
                     + _listed(matched.unused, "{:,.0f} us of {}", 1000))  # fmt: skip
    if found.other:
        lines.append(f"kernels of other operators of the profile: {found.other / 1e3:,.0f} us")
    return matched.times, lines


def _listed(numbers: dict[str, int], text: str, divisor: int = 1) -> str:
    """Returns numbers and names, most first, with the number of those that are left out."""
    shown = [text.format(number / divisor if divisor > 1 else number, name)
             for name, number in list(numbers.items())[:_MOST_NAMES]]  # fmt: skip
    rest = len(numbers) - len(shown)
    return ", ".join(shown) + (f" and {rest:,} more names" if rest else "")


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
