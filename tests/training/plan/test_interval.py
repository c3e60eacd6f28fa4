"""Intervals of plans on GPUs without measured steps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from called import call
from tutti.platforms.files.presets import platform_of
from tutti.platforms.files.scaled import scaled
from tutti.platforms.npus import npu
from tutti.training.plan import Cluster, Plan, estimate
from tutti.training.plan.interval import OTHER_VENDOR, spread_of
from tutti.workloads import Parallelism, build
from tutti.workloads.pieces import Pieces

if TYPE_CHECKING:
    from tutti.platforms.npus import NpuPeaks


def cluster(gpu: NpuPeaks) -> Cluster:
    raw = platform_of("mi300x", folder=Path(), source="test")
    return Cluster(platform=scaled(raw, 8, source="test"), npu=gpu)


def test_a_public_run_on_mi300x_is_slower_than_the_interval() -> None:
    """Llama 3.1 8B in BF16 with Primus on 8 MI300X: 2.43 s, the mean of 500 steps.

    TP 1, PP 2, DP 4, 64 sequences of 2,048 tokens in micro-batches of one, ROCm 7.1. Source:
    DmitriiNikolaevAtAmd/tprimat, output_prev/train_amd_prim_llama.json at 516b3426.
    """
    pieces = Pieces(build("llama3_8b:tokens=2048"))
    kinds = Parallelism(pipeline=2, micro_batches=16, zero=1)
    plan, gpus = Plan(kinds=kinds, data=4, micro_batch=1), cluster(npu("mi300x"))
    spread, step = spread_of(pieces, plan, gpus), estimate(pieces, plan, gpus).step
    assert spread is not None
    low, high = spread.interval(step)
    assert low < high < 2.4298 < 1.1 * high
    # It is far from the mean of the measured GPUs, and farther than any of them.
    assert 1.6 < 2.4298 / step < 1.8
    assert 2.4298 / step > max(spread.by_gpu.values())
    assert spread.foreign
    assert set(spread.by_gpu) == {"b200", "b300", "gb200", "gb300", "h100"}


@pytest.mark.parametrize(("name", "foreign"), [("a100", False), ("mi300x", True)])
def test_the_interval_contains_every_measured_gpu(name: str, foreign: bool) -> None:
    pieces = Pieces(build("llama3_8b"))
    plan = Plan(kinds=Parallelism(tensor=2, micro_batches=4, zero=1), data=4, micro_batch=1)
    spread = spread_of(pieces, plan, cluster(npu(name)))
    assert spread is not None
    low, high = spread.interval(1.0)
    assert low < min(spread.by_gpu.values()) < 1 < max(spread.by_gpu.values()) < high
    assert low * high == pytest.approx(1)
    assert spread.foreign == foreign
    # 1.21 is the error of steps left out of the fit, which is there at least.
    assert high > (1.21 if not foreign else 2.718**OTHER_VENDOR)


def test_measured_and_calibrated_gpus_have_none() -> None:
    from tutti.training.plan.calibrated import Calibrated

    pieces = Pieces(build("llama3_8b"))
    plan = Plan(kinds=Parallelism(micro_batches=4), data=8, micro_batch=1)
    measured = [spread_of(pieces, plan, cluster(npu(name))) for name in ("h100", "h200", "h800")]
    assert measured == [None] * 3
    given = Calibrated(source="c.toml", gpu="mi300x", precisions=("bf16",), models=("llama3_8b",),
                       factors=(("products", 1.2),))  # fmt: skip
    calibrated = Cluster(platform=cluster(npu("mi300x")).platform, npu=npu("mi300x"),
                         calibrated=given)  # fmt: skip
    assert spread_of(pieces, plan, calibrated) is None


def test_commands_print_and_store_the_interval(tmp_path: Path) -> None:
    model = "gpt:layers=4,hidden=1024,tokens=2048"
    words = ["-p", "mi300x", "-g", "8", "--global-batch", "8", "--simulate", "0", "--top", "1"]
    file = tmp_path / "training.toml"
    done = call("train", "plan", model, *words, "--out", str(file), "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    (row,) = found["tables"]["plans"]
    low, high = row["step_interval_s"]
    assert low < row["step_s"] < high
    (text,) = [one for one in found["result"]["explanations"] if one.startswith("90 % interval")]
    assert f"{low:.2f} to {high:.2f} s" in text
    assert "another vendor" in text
    assert f"90 % interval {low:.3f} to {high:.3f} s." in file.read_text(encoding="utf-8")
    done = call("train", "run", str(file), "--json", "--out", str(tmp_path / "o"), cwd=tmp_path)
    result = json.loads(done.stdout)["result"]
    assert result["planned_step_interval_s"] == pytest.approx([low, high], rel=0.05)
