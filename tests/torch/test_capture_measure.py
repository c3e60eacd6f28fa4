"""Measures operators of captured steps; here on the CPU, which takes the same calls."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tutti.training.capture.capturing import capture_script
from tutti.training.capture.files import write_step
from tutti.training.capture.measure import measure
from tutti.training.capture.measured import operators_of
from tutti.training.errors import CaptureError
from tutti.training.study.measure import measure_step

SCRIPT = Path(__file__).parents[2] / "examples" / "30_capture" / "llama_fsdp.py"
OPTIONS = [
    *("--layers", "1", "--width", "128", "--heads", "4", "--kv-heads", "2", "--wide", "256"),
    *("--vocabulary", "512", "--tokens", "64"),
]


@pytest.mark.filterwarnings("ignore")
def test_each_product_and_attention_is_measured(tmp_path: Path) -> None:
    step = capture_script(SCRIPT, OPTIONS, 8)
    operators = step.roles[0].operators
    times, skipped = measure(operators, "h100", device="cpu")
    assert not skipped
    assert len(times.us) == len(operators_of(operators))
    assert any("attention_backward" in name for name, *_ in times.us)
    assert all(us > 0 for us in times.us.values())
    write_step(tmp_path, step)
    if not torch.cuda.is_available():
        with pytest.raises(CaptureError, match="no GPU"):
            measure_step(tmp_path)
