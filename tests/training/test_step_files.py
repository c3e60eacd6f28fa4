"""Files of training steps: their meaning, and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tutti.base.errors import ConfigError
from tutti.base.units import Size, TimePerByte
from tutti.training.files.step_file import load_training, resolve_training
from tutti.workloads import Chiplet, Parallelism, Systolic

EXAMPLE = Path(__file__).parents[2] / "examples/10_training_step/training.toml"

RINGS = [{"name": "local", "nodes": 4, "rate": "200 GB/s", "latency": "72 ns"}]


def tables(**changes: Any) -> dict[str, Any]:
    return {"model": "vgg16", "batch": 8, "torus": {"rings": RINGS}} | changes


def test_example_is_read() -> None:
    read = load_training(EXAMPLE)
    names = [configuration.name for configuration in read.configurations]
    assert names == ["no_overlap", "comm_opt", "comp_opt", "ace", "ideal"]
    assert [ring.nodes for ring in read.step.rings] == [4, 4, 4]
    assert read.step.element == 2


def test_a_pipeline_in_flows_is_read() -> None:
    parallelism = {
        "tensor": 2,
        "pipeline": 4,
        "micro_batches": 8,
        "interleaved": 2,
        "order": ["pipeline", "data", "expert", "tensor"],
    }
    dimensions = [{"name": "a", "nodes": 4}, {"name": "b", "nodes": 2}]
    platform = {
        "name": "p",
        "models": {"m": {"kind": "postal", "alpha": "0 ns", "beta": "1 ps/B"}},
        "topology": {"build": "switch:8", "links": [{"rate": "25 GB/s", "latency": "1 us"}]},
    }
    changes = {
        "platform": platform,
        "dimensions": dimensions,
        "parallelism": parallelism,
        "detail": "flows",
    }
    read = resolve_training({"model": "vgg16", "batch": 8} | changes, source="x")
    assert read.step.numbers(read.configurations[0]) == [0, 1, 2, 3] * 2
    # Flows have no endpoints.
    assert [one.name for one in read.configurations] == ["ideal"]
    run = read.step.run(read.configurations[0])
    assert run.record.npus == 8
    assert run.bound.time <= run.total


def test_a_configuration_can_be_a_table() -> None:
    own = {"name": "mine", "kind": "ace", "memory": "200 GB/s", "ace": {"sram": "8 MiB"}}
    read = resolve_training(tables(configurations=["ace", own]), source="x")
    mine = read.configurations[1]
    assert mine.memory == TimePerByte.parse("200 GB/s")
    assert mine.ace.sram == Size.parse("8 MiB")
    assert mine.ace.fsms == 16


def test_paths_start_from_the_file(tmp_path: Path) -> None:
    (tmp_path / "net.csv").write_text("Layer, M, N, K,\none, 1, 2, 3,\n", encoding="utf-8")
    times = "layer,forward,input_gradient,weight_gradient\none,1 us,2 us,3 us\n"
    (tmp_path / "times.csv").write_text(times, encoding="utf-8")
    changes = {"model": "scalesim:net.csv", "compute": {"model": "measured", "file": "times.csv"}}
    read = resolve_training(tables(**changes), source=str(tmp_path / "step.toml"))
    tasks = read.step.programs(read.configurations[0])[0].tasks
    assert [task.amount for task in tasks if task.kind == "compute"][:2] == [1_000_000, 3_000_000]


def test_an_array_has_the_clock_of_the_npu() -> None:
    compute = {"model": "systolic", "rows": 128, "columns": 128}
    read = resolve_training(tables(compute=compute), source="x")
    systolic = read.step.compute
    assert isinstance(systolic, Systolic)
    assert systolic.clock == read.step.npu.clock
    assert systolic.dataflow == "weight_stationary"
    read = resolve_training(
        tables(compute=compute | {"elements": 16, "share": "folds"}), source="x"
    )
    assert read.step.compute == Chiplet(array=systolic, elements=16, share="folds")


def test_parallelism_is_read() -> None:
    read = resolve_training(tables(parallelism={"tensor": 4, "zero": 1}), source="x")
    assert read.step.parallelism == Parallelism(tensor=4, zero=1)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": "resnet5"}, ("model", "unknown model `resnet5`")),
        ({"batch": 0}, ("batch", "greater than or equal to 1")),
        ({"chunk": 65536}, ("chunk", "unit")),
        ({"configurations": ["acee"]}, ("configurations[0]", "did you mean `ace`?")),
        (
            {"configurations": ["ace", "ace"]},
            ("configurations[1]", "duplicates a name", "rename one"),
        ),
        ({"torus": {"rings": RINGS * 2}}, ("torus.rings", "two rings of the same name")),
        ({"torus": {"rings": []}}, ("torus.rings", "is empty")),
        ({"layers": 3}, ("layers", "unknown key")),
        ({"parallelism": {"tensor": 3}}, ("parallelism", "`tensor = 3` does not divide")),
        ({"parallelism": {"zero": 4}}, ("parallelism.zero", "4")),
        ({"parallelism": {"contexts": 4}}, ("parallelism.contexts", "unknown key")),
        ({"compute": {"model": "sistolic"}}, ("compute", "sistolic")),
        ({"compute": {"model": "systolic", "rows": 4}}, ("compute", "columns")),
        ({"compute": {"model": "measured", "file": "none.csv"}}, ("compute.file", "none.csv")),
        ({"model": "scalesim:none.csv"}, ("model", "none.csv: there is no such file")),
        ({"npu": {"arithmetic": "120 GB/s"}}, ("npu.arithmetic", "FLOP/s")),
    ],
)
def test_errors(changes: dict[str, Any], words: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as refused:
        resolve_training(tables(**changes), source="file.toml")
    assert "file.toml" in str(refused.value)
    for word in words:
        assert word in str(refused.value)
