"""Scripts that are captured for a step or a sweep; the capture itself is in tests/torch."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import tutti
from tutti.base.errors import ConfigError, TuttiError
from tutti.training.capture.files import write_step
from tutti.training.capture.record import CapturedStep, Exchange, Group, Operator, Role
from tutti.training.errors import CaptureError
from tutti.training.files import scripts
from tutti.training.files.scripts import arguments_of
from tutti.training.files.step_file import load_training
from tutti.training.files.tables import CaptureTable
from tutti.training.view.captured import captured_remarks
from tutti.workloads.zoo.llm import DECODERS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@pytest.fixture
def captures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], int]]:
    """A folder with `train.py`, and the captures of it."""
    made: list[tuple[list[str], int]] = []

    def capture(script: Path, words: Sequence[str], world_size: int, **_: Any) -> CapturedStep:
        made.append((list(words), world_size))
        if "--broken" in words:
            raise CaptureError("line 3: NameError", kind="program")
        layers = int(words[words.index("--layers") + 1]) if "--layers" in words else 1
        group = Group("mesh_data", tuple(range(world_size)))
        product = Operator("aten.mm", "layers.0", "forward", 0, "product", flops=layers * 10**12,
                           bytes=10**6, weight=10**5, dtype="bfloat16")  # fmt: skip
        reduced = Operator("c10d.allreduce_", "", "backward", -1, "collective", (0,), bytes=1 << 20,
                           exchange=Exchange("all_reduce", 0, 1 << 20))  # fmt: skip
        role = Role(0, (product, reduced), (group,))
        return CapturedStep(script=script.name, world_size=world_size, torch="2.15", roles=(role,),
                            seconds=len(made))  # fmt: skip

    monkeypatch.setattr(scripts, "capture_script", capture)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("import torch\n")
    return made


def total(path: Path, *changes: str) -> int:
    training = load_training(path, ["platform=dgx_h100", *changes])
    return training.step.run(training.configurations[0]).total.ps


def test_arguments_are_options_of_the_script() -> None:
    arguments: dict[str, bool | float | str] = {
        "micro-batches": 4,
        "checkpoint": True,
        "compile": False,
        "lr": 0.5,
        "b": "x",
    }
    table = CaptureTable(world_size=8, words=["pretrain"], arguments=arguments)
    expected = ["pretrain", "--micro-batches", "4", "--checkpoint", "--lr", "0.5", "-b", "x"]
    assert arguments_of(table) == expected


def test_a_script_is_captured_once_until_it_changes(
    captures: list[tuple[list[str], int]], tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    size, layers = "capture.world_size=8", "capture.arguments.layers={}"
    first = total(script, size, layers.format(4))
    assert total(script, size, layers.format(4)) == first
    assert captures == [(["--layers", "4"], 8)]
    assert total(script, size, layers.format(8)) > 1.5 * first
    script.write_text("import torch  # changed\n")
    assert total(script, size, layers.format(4)) == first
    assert len(captures) == 3
    for sources in (tmp_path / "out/captures").glob("*/sources.json"):
        sources.write_text("[]")
    total(script, size, layers.format(4))
    assert len(captures) == 4


def test_a_sweep_captures_each_set_of_arguments_once(
    captures: list[tuple[list[str], int]], tmp_path: Path
) -> None:
    """2 captures at 4 points; a repeated sweep finds the captures."""
    tables = {
        "training": {"model": f"script:{tmp_path / 'train.py'}", "platform": "dgx_h100_cluster",
                     "capture": {"arguments": {"layers": 4}},
                     "compute": {"model": "gpu", "gpu": "h100"}},
        "sweep": {"grid": {"capture.world_size": [8, 16], "compute.precision": ["bf16", "fp8"]}},
    }  # fmt: skip
    with ThreadPoolExecutor(1) as pool:
        frame = tutti.sweep(tables, executor=pool)
        assert frame["sweep.capture.world_size"].to_list() == [8, 8, 16, 16]
        assert captures == [(["--layers", "4"], 8), (["--layers", "4"], 16)]
        assert tutti.sweep(tables, executor=pool).equals(frame)
    assert len(captures) == 2
    bf16, fp8 = (frame.filter(frame["sweep.compute.precision"] == one)["compute_ps"]
                 for one in ("bf16", "fp8"))  # fmt: skip
    assert (bf16 > fp8).all()


BAD: dict[str, tuple[str, list[str]]] = {
    "capture.*is missing": ("train.py", []),
    "no such file": ("none.py", ["capture.world_size=8"]),
    "world_size": ("train.py", ["capture.world_size=0"]),
    "argument": ("train.py", ["capture.world_size=8", "capture.arguments={'a b' = 1}"]),
    "batch.*does not apply": ("train.py", ["capture.world_size=8", "batch=2"]),
    "compute.model.*does not apply": ("train.py", ["capture.world_size=8",
                                                   'compute={model="roofline"}']),
    "train.py: line 3: NameError": ("train.py", ["capture.world_size=8",
                                                 "capture.arguments.broken=true"]),
    "h100 has no mxfp8": ("train.py", ["capture.world_size=8", "compute.model=gpu",
                                       "compute.gpu=h100", "compute.precision=mxfp8"]),
    "another number of NPUs": ("train.py", ["capture.world_size=9", "platform=dgx_h100"]),
}  # fmt: skip


@pytest.mark.usefixtures("captures")
@pytest.mark.parametrize("problem", BAD)
def test_bad_steps_of_scripts_are_refused(problem: str, tmp_path: Path) -> None:
    name, changes = BAD[problem]
    with pytest.raises(TuttiError, match=problem):
        load_training(tmp_path / name, changes)
    assert not list((tmp_path / "out").glob("captures/*.*"))


def test_captures_of_folders_and_models_are_refused(
    captures: list[tuple[list[str], int]], tmp_path: Path
) -> None:
    total(tmp_path / "train.py", "capture.world_size=8")
    (folder,) = (tmp_path / "out/captures").iterdir()
    with pytest.raises(ConfigError, match="captured already"):
        load_training(folder, ["capture.world_size=16"])
    file = tmp_path / "step.toml"
    file.write_text('model = "resnet50"\ncapture = { world_size = 8 }\n')
    with pytest.raises(ConfigError, match="is of a script"):
        load_training(file)
    assert len(captures) == 1


def test_programs_with_the_weights_of_a_measured_model_have_its_factors(tmp_path: Path) -> None:
    """Llama 3 8B has 65 norms of 4,096; a decoder with less weights is another model.

    Its factor on H100 is 1.114 * 0.9804 (efficiencies.toml).
    """
    product = Operator("aten.mm", "layers.0", "forward", 0, "product", flops=10**15, bytes=10**6,
                       weight=10**5, dtype="bfloat16")  # fmt: skip
    shape = DECODERS["llama3_8b"].shape
    seconds = []
    for weights in (shape.parameters + 65 * 4096, shape.parameters * 31 // 32):
        step = CapturedStep(script="train.py", world_size=8, torch="2.15",
                            roles=(Role(0, (product,), (), weights=weights),))  # fmt: skip
        write_step(tmp_path, step)
        work = load_training(tmp_path, ["platform=dgx_h100_cluster"]).step.captured
        assert work is not None
        seconds.append(
            work.kernels.times((product,), (10**18, work.kernels.peaks.memory_bandwidth))
        )
        stated = any("the weights of llama3_8b" in line for line in captured_remarks(work))
        assert stated == (len(seconds) == 1)
    assert seconds[0][0] / seconds[1][0] == pytest.approx(1.114 * 0.9804, rel=1e-3)
