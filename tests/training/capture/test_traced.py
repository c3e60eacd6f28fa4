"""Times of captured operators from a profile of PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from called import call
from profiles import RankProfile
from tutti.base.errors import ConfigError, TuttiError
from tutti.training.capture.files import write_step
from tutti.training.capture.measured import read_times
from tutti.training.capture.record import CapturedStep, Operator, Role
from tutti.training.files.step_file import load_training
from tutti.training.study.measure import measure_step

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.training.capture.record import Kind

BF16 = "c10::BFloat16"


def operator(name: str, shapes: str, kind: Kind = "product", dtype: str = "bfloat16") -> Operator:
    return Operator(name, "layers.0", "forward", 0, kind, flops=10**9, bytes=10**6, dtype=dtype,
                    shapes=shapes)  # fmt: skip


FLASH = "aten._scaled_dot_product_flash_attention"
OPERATORS = (
    operator("aten.mm", "8x4 4x2"),
    operator("aten.mm", "8x4 4x2"),
    operator(FLASH, "1x2x8x4 1x2x8x4 1x2x8x4", "attention"),
    operator("aten.add.Tensor", "8x2 1", "memory"),
    operator("aten._foreach_copy_", "4 2x2 4 2x2 +1", "memory", "float32"),
    operator("aten.mm", "9x4 4x2"),
    operator("aten.silu", "damaged", "memory"),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    role = Role(0, OPERATORS, ())
    folder = tmp_path / "step"
    write_step(folder, CapturedStep(script="a.py", world_size=8, torch="2.15", roles=(role,)))
    return folder


def profiled(folder: Path) -> Path:
    """A profile: products of 5, 9 and 7 us, of which the last has its result as an argument."""
    profile = RankProfile(0, 1)
    pair = [[8, 4], [4, 2]]
    profile.operation("aten::linear", (0, 10), [[8, 4], [2, 4]], [BF16, BF16])
    for at, took in ((1, 5), (11, 9)):
        profile.operation("aten::mm", (at, 4), pair, [BF16, BF16])
        profile.kernel("gemm", 7, (at + 100, took), launch=at + 1)
    profile.operation("aten::mm", (21, 4), [*pair, [8, 2]], [BF16] * 3)
    profile.kernel("gemm", 7, (131, 7), launch=22)
    cudnn = "aten::_scaled_dot_product_cudnn_attention"
    profile.operation(cudnn, (31, 9), [[1, 2, 8, 4]] * 3 + [[], []], [BF16] * 3 + ["", "Scalar"])
    profile.operation("aten::mm", (32, 2), pair, [BF16, BF16])
    profile.kernel("attention", 7, (140, 20), launch=33)
    profile.kernel("copy", 7, (160, 1), launch=35)
    profile.operation("aten::add", (41, 3), [[8, 2], [], []], [BF16, "double", "Scalar"])
    profile.kernel("add", 7, (170, 2), launch=42)
    lists = [[[4], [2, 2], [4]], [[2, 2], [4]]]
    profile.operation("aten::_foreach_copy_", (51, 3), lists, ["TensorList"] * 2)
    profile.kernel("copies", 7, (180, 3), launch=52)
    profile.operation("aten::mm", (61, 3), pair, ["float", "float"])
    profile.kernel("sgemm", 7, (190, 40), launch=62)
    profile.kernel("other", 7, (240, 6), launch=70)
    return profile.write(folder)


def test_operators_have_the_time_of_their_name_datatype_and_shapes(
    folder: Path, tmp_path: Path
) -> None:
    """A median of 5, 9 and 7 us; attention with the product inside; a list without a datatype."""
    path = profiled(tmp_path)
    run = call("train", "measure", folder, "--profile", path, "--gpu", "h100", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    times = read_times(folder / "times.csv")
    us = {(name, shapes): time for (name, _, shapes), time in times.us.items()}
    assert us == {
        ("aten.mm", "8x4 4x2"): 7,
        (FLASH, OPERATORS[2].shapes): 21,
        ("aten.add.Tensor", "8x2 1"): 2,
        ("aten._foreach_copy_", OPERATORS[4].shapes): 3,
    }
    text = " ".join(run.stderr.split())
    assert "5 of 7 operators have the time of the profile: 4 distinct ones" in text
    assert "without a time: 1 x aten.mm, 1 x aten.silu" in text
    assert "other shapes than the step's: 40 us of aten::mm" in text
    assert "kernels of other operators of the profile: 6 us" in text
    step = load_training(folder, ["platform=dgx_h100_cluster"]).step
    assert step.captured is not None
    left = (10**16, step.captured.kernels.peaks.memory_bandwidth)
    found = step.captured.kernels.times(OPERATORS, left)
    assert found[:5] == [7_000_000, 7_000_000, 21_000_000, 2_000_000, 3_000_000]


def test_profiles_that_do_not_fit_are_refused(folder: Path, tmp_path: Path) -> None:
    path = profiled(tmp_path)
    path.write_text(path.read_text().replace("deviceProperties", "devices"))
    with pytest.raises(ConfigError, match="does not name its GPU"):
        measure_step(folder, profile=path)
    other = RankProfile(0, 1)
    other.operation("aten::mm", (1, 4), [[3, 3], [3, 3]], [BF16, BF16])
    other.kernel("gemm", 7, (100, 5), launch=2)
    other.write(tmp_path, "other{}.json")
    with pytest.raises(TuttiError, match="none of its operators") as error:
        measure_step(folder, "h100", tmp_path / "other0.json")
    assert error.value.kind == "other_profile"
    bare = RankProfile(0, 1)
    bare.kernel("gemm", 7, (100, 5), launch=2)
    bare.write(tmp_path, "bare{}.json")
    with pytest.raises(TuttiError, match="no shapes of operators") as error:
        measure_step(folder, "h100", tmp_path / "bare0.json")
    assert error.value.kind == "no_shapes"
    assert not (folder / "times.csv").exists()
