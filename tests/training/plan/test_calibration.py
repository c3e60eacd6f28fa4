"""Calibration of efficiencies: recovered factors, intervals, files, logs and the command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from called import call
from profiles import RankProfile
from tutti.base.errors import ConfigError, ExitCode
from tutti.formats.kineto.steps import read_step
from tutti.platforms.files.presets import platform_of
from tutti.platforms.files.scaled import scaled
from tutti.platforms.npus import npu
from tutti.training.files.calibration import read_calibration, write_calibration
from tutti.training.files.measured import read_measured
from tutti.training.files.planned import read_planned
from tutti.training.files.step_file import load_training
from tutti.training.plan import Cluster, Plan
from tutti.training.plan.calibration import Calibration, MeasuredStep, calibrate
from tutti.training.plan.efficiency import NAMES
from tutti.training.plan.view.calibration import unknown
from tutti.training.study.calibrate import measured_steps
from tutti.workloads import Parallelism, build
from tutti.workloads.errors import TraceError, WorkloadError

if TYPE_CHECKING:
    from collections.abc import Mapping

MODEL = build("llama3_8b:tokens=4096")
PLANS = (
    (Parallelism(zero=1, recompute="selective"), 16, 2),
    (Parallelism(tensor=8, sequence=True, recompute="selective"), 2, 4),
    (Parallelism(zero=3, recompute="full"), 16, 1),
    (Parallelism(tensor=2, sequence=True, zero=1, recompute="selective"), 8, 1),
)


def cluster(gpu: str = "h100") -> Cluster:
    raw = platform_of("dgx_h100_cluster", folder=Path(), source="test")
    return Cluster(platform=scaled(raw, 16, source="test"), npu=npu(gpu))


def steps(factors: Mapping[str, float], count: int = len(PLANS)) -> list[MeasuredStep]:
    """Returns steps that the model takes with factors on its coefficients."""
    found = []
    for number, (kinds, data, size) in enumerate(PLANS[:count]):
        plan = Plan(kinds=kinds, data=data, micro_batch=size)
        one = MeasuredStep(
            source=f"step {number}", model=MODEL, cluster=cluster(), plan=plan, seconds=1.0
        )
        found.append(replace(one, seconds=one.predicted(factors)))
    return found


def test_a_machine_as_fitted_keeps_the_coefficients() -> None:
    found = calibrate(steps({}))
    assert found.values == pytest.approx(dict.fromkeys(found.values, 1.0), abs=1e-6)


def test_slower_products_are_recovered() -> None:
    found = calibrate(steps({"products": 1.25}))
    by_name = {one.name: one for one in found.factors}
    assert by_name["products"].low < 1.25 < by_name["products"].high
    assert by_name["products"].determined > 0.5
    for one in found.steps:
        assert one.predicted(found.values) == pytest.approx(one.seconds, rel=0.03)


def test_exposed_tensor_parallelism_differs_from_slower_products() -> None:
    found = calibrate(steps({"tensor": 1.6}))
    assert found.values["tensor"] > 1.25
    assert found.values["products"] == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_every_interval_has_a_width(count: int) -> None:
    for _ in range(2):
        found = calibrate(steps({"products": 1.2}, count) * 3)
        assert len(found.steps) == count
        assert all(one.low < 0.98 * one.factor < one.factor < one.high for one in found.factors)


def test_one_time_states_what_it_does_not_determine() -> None:
    text = " ".join(unknown(calibrate(steps({}, 1))))
    assert "1 measured time determines at most 1 combination of" in text
    assert "does not separate slower kernels (products, attention, classifier) from exposed" in text
    assert "without effect on these steps, and unchanged: grouped, copies, routing" in text
    assert "does not separate" not in " ".join(unknown(calibrate(steps({}))))


def test_kernels_of_a_profile_exclude_communication() -> None:
    complete = steps({"tensor": 1.6}, 2)[1]
    kernels = replace(complete, observed="kernels")
    kernels = replace(kernels, seconds=kernels.predicted())
    alone, both = calibrate([complete]), calibrate([complete, kernels])
    assert both.values["tensor"] > alone.values["tensor"] > 1


def test_steps_of_two_gpus_are_refused() -> None:
    one = steps({}, 1)[0]
    with pytest.raises(WorkloadError, match="a100 and h100: expected one GPU"):
        calibrate([one, replace(one, cluster=cluster("a100"))])
    with pytest.raises(WorkloadError, match="at least one"):
        calibrate([])


def written(folder: Path, found: Calibration) -> Path:
    return write_calibration(folder / "calibration.toml", found)


def test_a_file_has_the_factors_and_their_gpu(tmp_path: Path) -> None:
    found = calibrate(steps({"products": 1.25}))
    read = read_calibration(written(tmp_path, found))
    assert dict(read.factors) == pytest.approx(found.values, abs=1e-4)
    before = cluster().coefficients(MODEL)
    after = replace(cluster(), calibrated=read).coefficients(MODEL)
    at = NAMES.index("products")
    assert after[at] / before[at] == pytest.approx(found.values["products"], abs=1e-4)
    with pytest.raises(WorkloadError, match="calibrates h100: expected a calibration of a100"):
        replace(cluster("a100"), calibrated=read).coefficients(MODEL)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[factors.products]", "[factors.product]", "unknown coefficient `product`"),
        ('gpu = "h100"', "", "gpu"),
        ("factor = ", "factor = -", "factor"),
    ],
)
def test_a_damaged_file_is_refused(old: str, new: str, words: str, tmp_path: Path) -> None:
    file = written(tmp_path, calibrate(steps({})))
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(ConfigError, match=words):
        read_calibration(file)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("plan,seconds\n", "has no measured steps"),
        ("plan,seconds\na.toml,0\n", "seconds"),
        ("plan,second\na.toml,1\n", "second"),
        ("plan\na.toml\n", "has no time"),
        ("plan,seconds,tokens_per_s_per_gpu\na.toml,1,2\n", "has two times"),
        ("plan,tensor,seconds\na.toml,2,1\n", "conflicts with `plan`"),
        ("model,seconds\nllama3_8b,1\n", "global_batch: is missing"),
        ("plan,seconds\na.toml\n", "has 1 cells"),
    ],
)
def test_a_row_without_plan_or_time_is_refused(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "steps.csv"
    file.write_text(text)
    with pytest.raises(ConfigError, match=words):
        read_measured(file)


def test_a_row_has_the_exchange_of_experts(tmp_path: Path) -> None:
    file = tmp_path / "steps.toml"
    row = {
        "model": "mixtral_8x7b",
        "platform": "dgx_h100_cluster",
        "gpus": 16,
        "global_batch": 64,
        "expert": 8,
        "dispatch_format": "fp8",
        "expert_imbalance": 1.5,
        "seconds": 2.0,
    }
    lines = (f"{key} = {json.dumps(value)}" for key, value in row.items())
    file.write_text("\n".join(("[[step]]", *lines)))
    (step,) = measured_steps(file)
    assert step.plan.kinds.dispatch_format == "fp8"
    assert step.plan.kinds.expert_imbalance == 1.5
    file.write_text(file.read_text().replace("mixtral_8x7b", "llama3_8b"))
    with pytest.raises(ConfigError, match="experts"):
        list(measured_steps(file))


def test_implausible_times_are_refused_and_the_assumed_plan_is_stated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A rate of all GPUs, milliseconds, and rows without `zero`."""
    file = tmp_path / "steps.csv"
    head = "model,platform,gpus,global_batch,"
    start = "llama3_8b,dgx_h100_cluster,16,64,"
    file.write_text(f"{head}tokens_per_s_per_gpu\n{start}141000000\n")
    done = call("train", "calibrate", "steps.csv", cwd=tmp_path)
    assert done.returncode == ExitCode.MISTAKE
    assert "steps.csv, line 2: tokens_per_s_per_gpu: the step takes 1 / 15," in done.stderr
    assert "expected: 1,807 to 45,185 tokens/s" in done.stderr
    assert "divide a total by its 16 GPUs" in done.stderr
    assert not (tmp_path / "calibration.toml").exists()
    file.write_text(f"{head}seconds\n{start}3600\n")
    with pytest.raises(ConfigError, match=r"takes 993 times the model's time[^$]*0.725 to 18.1 s"):
        list(measured_steps(file))
    file.write_text(f"{head}seconds\n{start}3.6\n{start}3.7\n")
    assert len(list(measured_steps(file))) == 2
    text = " ".join(capsys.readouterr().err.split())
    assert "line 2 and 1 more: `zero` is not given: the plan is assumed to be data 16, ZeRO" in text


def test_undetermined_coefficients_that_moved_are_not_near() -> None:
    found = calibrate(steps({"products": 2.0}, 1))
    near, moved = [text for text in unknown(found) if text.startswith("not determined")]
    assert near.endswith("near the fitted values")
    assert moved.endswith("measure plans that separate them")
    for one in found.factors:
        if one.name in found.undetermined:
            assert one.name in (near if 0.95 < one.factor < 1.05 else moved)


def test_a_plan_is_read_back(tmp_path: Path) -> None:
    words = ["train", "plan", "mixtral_8x7b", "-p", "dgx_h100_cluster", "-g", "16"]
    fixed = ["--global-batch", "64", "--expert", "8", "--tensor", "1", "--simulate", "0"]
    done = call(*words, *fixed, "--top", "1", "--out", "plan.toml", "--json", cwd=tmp_path)
    best = json.loads(done.stdout)["tables"]["plans"][0]
    model, plan, where = read_planned(tmp_path / "plan.toml")
    assert (plan.data, plan.micro_batch) == (best["data"], best["micro_batch"])
    assert plan.kinds.expert == best["expert"]
    one = MeasuredStep(source="", model=model, cluster=where, plan=plan, seconds=1)
    assert one.predicted() == pytest.approx(best["step_s"])


def test_the_command_calibrates_and_plans_accept_it(tmp_path: Path) -> None:
    words = ["train", "plan", "llama3_8b", "-p", "dgx_h100_cluster", "-g", "8", "--tensor", "2"]
    fixed = [*words, "--global-batch", "16", "--pipeline", "1", "--simulate", "0", "--top", "1"]
    call(*fixed, "--out", "plan.toml", cwd=tmp_path)
    (tmp_path / "steps.csv").write_text("plan,seconds\nplan.toml,2.5\n")
    recipe = '[[step]]\nmodel = "llama3_8b"\nplatform = "dgx_h100_cluster"\ngpus = 8\n'
    recipe += "global_batch = 16\ntensor = 4\nmicro_batch = 1\ntokens_per_s_per_gpu = 7000\n"
    (tmp_path / "recipes.toml").write_text(recipe)
    done = call("train", "calibrate", "steps.csv", "recipes.toml", "--json", cwd=tmp_path)
    document = json.loads(done.stdout)
    assert [row["source"] for row in document["tables"]["steps"]] == [
        "steps.csv, line 2",
        "recipes.toml, step 1",
    ]
    assert document["tables"]["factors"][0]["coefficient"] == "products"
    (tmp_path / "sub").mkdir()
    given = ["--calibration", "calibration.toml", "--out", "sub/plan.toml"]
    done = call(*fixed, *given, "--json", cwd=tmp_path)
    after = json.loads(done.stdout)["tables"]["plans"][0]
    assert after["step_s"] == pytest.approx(2.5, rel=0.15)
    assert 'calibration = "../calibration.toml"' in (tmp_path / "sub/plan.toml").read_text()
    plain = load_training(tmp_path / "plan.toml").step.compute
    assert load_training(tmp_path / "sub/plan.toml").step.compute != plain
    done = call(*fixed, *given[:2], "--efficiency", "0.5", cwd=tmp_path)
    assert done.returncode == ExitCode.MISTAKE
    assert "conflicts with --calibration" in done.stderr


def profile(folder: Path, *, annotated: bool = True) -> Path:
    """Two steps of 100 us: kernels in 70 us of each, communication that overlaps and after it."""
    of = RankProfile(0, 1)
    for start in (0, 100):
        of.kernel("gemm", 7, (start + 10, 50), launch=start)
        of.kernel("other", 7, (start + 70, 20), launch=start + 1)
        of.kernel("ncclDevKernel_AllReduce", 20, (start + 50, 45), launch=start + 2)
        if annotated:
            step = {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{start}"}
            of.events.append({**step, "ts": start, "dur": 100, "pid": 1, "tid": 1})
    of.write(folder, "rank{}.json")
    return folder / "rank0.json"


def test_a_profile_has_the_time_of_steps_and_kernels(tmp_path: Path) -> None:
    found = read_step(profile(tmp_path))
    assert found.seconds == pytest.approx(100e-6)
    assert found.kernels == pytest.approx(70e-6)
    assert found.steps == 2


def test_a_profile_without_steps_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no annotation `ProfilerStep#N`"):
        read_step(profile(tmp_path, annotated=False))
    done = call("train", "calibrate", "rank0.json", cwd=tmp_path)
    assert done.returncode == ExitCode.MISTAKE
    assert "has no plan" in done.stderr
