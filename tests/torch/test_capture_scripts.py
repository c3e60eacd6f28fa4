"""Captures that steps and sweeps make themselves, and times of PyTorch's own profiler."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile

import tutti
from tutti.formats.kineto.operators import timed_operators
from tutti.training.capture.traced import match, profiled, profiled_names
from tutti.training.files.step_file import load_training

pytestmark = pytest.mark.filterwarnings("ignore")

SCRIPTS = Path(__file__).parents[2] / "examples" / "30_capture"
SHAPE = {"layers": 1, "width": 256, "heads": 8, "kv-heads": 8, "wide": 512, "vocabulary": 1024,
         "tokens": 128}  # fmt: skip


def test_a_sweep_captures_degrees_of_parallelism(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice the tensor group halves a rank's products, and each capture is stored."""
    monkeypatch.chdir(tmp_path)
    tables = {
        "training": {"model": f"script:{SCRIPTS / 'llama_tensor.py'}", "detail": "isolated",
                     "platform": "dgx_h100_cluster",
                     "capture": {"world_size": 16, "arguments": SHAPE}},
        "sweep": {"grid": {"capture.arguments.tensor": [4, 8]}},
    }  # fmt: skip
    with ThreadPoolExecutor(1) as pool:
        frame = tutti.sweep(tables, executor=pool)
    assert frame["sweep.capture.arguments.tensor"].to_list() == [4, 8]
    stored = sorted(tmp_path.glob("out/captures/llama_tensor-*/sources.json"))
    assert len(stored) == 2
    files = json.loads(stored[0].read_text())["files"]
    assert {Path(file).name for file in files} >= {"llama_tensor.py", "llama_fsdp.py"}
    changes = [f"capture.arguments.{name}={value}" for name, value in SHAPE.items()]
    flops = []
    for tensor in (4, 8):
        training = load_training(SCRIPTS / "llama_tensor.py", [
            "capture.world_size=16", *changes, f"capture.arguments.tensor={tensor}"])  # fmt: skip
        flops.append(training.step.captured.step.roles[0].flops("product"))
    assert flops[0] == 2 * flops[1]
    assert sorted(tmp_path.glob("out/captures/llama_tensor-*/sources.json")) == stored


def with_kernels(path: Path) -> Path:
    """Adds a kernel of 3 us to each operator of a profile that has no operator inside."""
    tables = json.loads(path.read_text())
    operators = [one for one in tables["traceEvents"] if one.get("cat") == "cpu_op"]
    for number, one in enumerate(operators):
        inside = [other for other in operators if other is not one and other["tid"] == one["tid"]
                  and one["ts"] <= other["ts"] < one["ts"] + one["dur"]
                  and other["dur"] < one["dur"]]  # fmt: skip
        if not inside:
            args = {"correlation": -1, "External id": one["args"]["External id"], "device": 0,
                    "stream": 7}  # fmt: skip
            tables["traceEvents"].append({"ph": "X", "cat": "kernel", "name": "k", "pid": 0,
                                          "tid": 7, "ts": 1e6 + 10 * number, "dur": 3,
                                          "args": args})  # fmt: skip
    path.write_text(json.dumps(tables))
    return path


def test_operators_of_a_capture_are_those_of_the_profiler(tmp_path: Path) -> None:
    """The same block on the CPU: names, datatypes and shapes of all operators agree."""

    def step(device: str) -> None:
        one = torch.nn.Linear(64, 64, device=device, dtype=torch.bfloat16)
        optimizer = torch.optim.SGD(one.parameters(), lr=0.1)
        x = torch.zeros(2, 4, 32, 64, device=device, dtype=torch.bfloat16)
        y = functional.scaled_dot_product_attention(one(x), x, x, is_causal=True)
        functional.silu(y + x).sum().backward()
        optimizer.step()

    with tutti.capture(world_size=8) as capturing:
        step("cuda")
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
        step("cpu")
    path = tmp_path / "rank0.json"
    profiler.export_chrome_trace(str(path))
    (role,) = capturing.result.roles
    names = profiled_names(role.operators)
    found = timed_operators(with_kernels(path), lambda name: profiled(name) in names)
    products = [one for one in role.operators if one.kind == "product"]
    matched = match(products, found.operators, "h100")
    assert matched.matched == matched.total == 2, matched.missing
    others = [one for one in role.operators if one.kind == "memory"]
    rest = match(others, found.operators, "h100")
    assert (rest.matched, rest.missing) == (rest.total, {})
