"""Measured times of kernels of captured steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tutti.base.errors import ConfigError
from tutti.base.units import TimePerByte
from tutti.training.capture.files import write_step
from tutti.training.capture.measured import (
    MeasuredTimes,
    key_of,
    operators_of,
    read_times,
    write_times,
)
from tutti.training.capture.record import CapturedStep, Operator, Role
from tutti.training.errors import CaptureError
from tutti.training.files.step_file import load_training
from tutti.training.study.measure import named_gpu
from tutti.training.view.captured import captured_remarks

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.training.capture.programs import CapturedWork

LEFT = (10**15, TimePerByte.parse("3 TB/s"))
PRODUCT = Operator("aten.mm", "layers.0", "forward", 0, "product", flops=2 * 512**3,
                   bytes=3 * 2 * 512**2, dtype="bfloat16", shapes="512x512 512x512")  # fmt: skip
OTHER = Operator("aten.mm", "layers.1", "forward", 0, "product", (0,), flops=2 * 256**3,
                 bytes=3 * 2 * 256**2, dtype="bfloat16", shapes="256x256 256x256")  # fmt: skip
ADDED = Operator("aten.add", "layers.1", "forward", 0, "memory", (1,), bytes=1 << 20)


def work_of(folder: Path, *changes: str) -> CapturedWork:
    step = load_training(folder, ["platform=dgx_h100_cluster", *changes]).step
    assert step.captured is not None
    return step.captured


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    role = Role(0, (PRODUCT, OTHER, ADDED), ())
    step = CapturedStep(script="train.py", world_size=8, torch="2.9", roles=(role,))
    write_step(tmp_path, step)
    return tmp_path


def test_distinct_products_and_attentions_are_measured() -> None:
    assert operators_of([PRODUCT, PRODUCT, ADDED, OTHER]) == [PRODUCT, OTHER]


def test_measured_times_replace_those_of_the_model(folder: Path) -> None:
    left = (10**15, work_of(folder).kernels.peaks.memory_bandwidth)
    before = work_of(folder).kernels.times((PRODUCT, OTHER, ADDED), left)
    write_times(folder / "times.csv", MeasuredTimes("h100", {key_of(PRODUCT): 123.0}))
    work = work_of(folder)
    # 1 PFLOP/s is more than the peak, so that nothing is reserved.
    assert work.kernels.times((PRODUCT, OTHER, ADDED), left) == [123_000_000, *before[1:]]
    assert any("1 of 2 products and attentions have the time measured on h100" in line
               for line in captured_remarks(work))  # fmt: skip


@pytest.mark.parametrize(
    ("change", "reason"),
    [("platform=dgx_b200_cluster", "not of b200"), ("compute.efficiency=0.5", "an efficiency")],
)
def test_times_that_do_not_apply_are_not_used(folder: Path, change: str, reason: str) -> None:
    changes = [change]
    if change.startswith("compute"):
        changes = ["compute.model=gpu", "compute.gpu=h100", change]
    before = work_of(folder, *changes).kernels.times((PRODUCT,), LEFT)
    write_times(folder / "times.csv", MeasuredTimes("h100", {key_of(PRODUCT): 123.0}))
    work = work_of(folder, *changes)
    assert work.kernels.times((PRODUCT,), LEFT) == before
    assert any(reason in line and "not used" in line for line in captured_remarks(work))


def test_times_are_stored_and_read_back(tmp_path: Path) -> None:
    times = MeasuredTimes("h100", {key_of(PRODUCT): 12.5, key_of(OTHER): 3.25})
    assert read_times(write_times(tmp_path / "times.csv", times)) == times


HEAD = "# tutti.kernel_times/1 gpu=h100\nname,dtype,shapes,us\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "line 1"),
        ("name,dtype,shapes,us\n", "line 1"),
        ("# tutti.kernel_times/1 gpu=h100\nname,us\n", "the columns"),
        (HEAD + "aten.mm,bfloat16\n", "line 3: 2 values"),
        (HEAD + "aten.mm,bfloat16,4x4 4x4,fast\n", "`us` is `fast`"),
        (HEAD + "aten.mm,bfloat16,4x4 4x4,0\n", "`us` is `0`"),
        (HEAD + "aten.mm,bfloat16,4x4 4x4,nan\n", "`us` is `nan`"),
        (HEAD + "aten.mm,bfloat16,4x4 4x4,1\n" * 2, "line 4: a second time"),
    ],
)
def test_damaged_tables_are_refused(text: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "times.csv"
    path.write_text(text)
    with pytest.raises(CaptureError, match=problem):
        read_times(path)


def test_gpus_are_named_by_their_product() -> None:
    assert named_gpu("NVIDIA H100 80GB HBM3") == "h100"
    assert named_gpu("h200") == "h200"
    with pytest.raises(ConfigError, match="does not name a GPU"):
        named_gpu("NVIDIA GeForce RTX 3060")
