"""`tutti train plan`: the table, JSON, and errors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tutti.base.errors import ExitCode
from tutti.cli.app import app
from tutti.platforms.files.presets import platform_of
from tutti.platforms.files.scaled import scaled
from tutti.training.plan import FixedDegrees
from tutti.training.plan.explain import of_batch

RUNNER = CliRunner()
SMALL = ["llama3_8b", "--platform", "dgx_h100_cluster", "--gpus", "8"]


def plan(*arguments: str) -> str:
    done = RUNNER.invoke(app, ["train", "plan", *SMALL, *arguments], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_the_table_fits_80_columns_and_names_the_best() -> None:
    text = plan("--global-batch", "16", "--simulate", "1", "--top", "3", "--tensor", "2")
    lines = text.splitlines()
    assert lines[0] == "llama3_8b on 8 h100, 16 sequences of 8,192 tokens, bf16"
    assert lines[1].split()[:4] == ["TP", "CP", "PP", "EP"]
    assert len([line for line in lines[2:5] if line.split()[0] == "2"]) == 3
    assert "~" not in lines[2]
    assert "~" in lines[4]
    assert all(len(line) <= 80 for line in lines)
    assert "best: tensor 2" in text
    assert "[parallelism]\ntensor = 2\n" in text


def test_a_model_alone_has_a_plan_and_named_defaults() -> None:
    words = ["train", "plan", "llama3_70b", "--simulate", "0", "--top", "1"]
    done = RUNNER.invoke(app, words, catch_exceptions=False)
    assert "llama3_70b on 64 h100" in done.stdout
    named = "defaults: platform dgx_h100_cluster; 64 GPUs; global batch of 4,194,304 tokens"
    assert named in done.stderr
    done = RUNNER.invoke(app, [*words, "-p", "gb200_nvl72_cluster"], catch_exceptions=False)
    assert "llama3_70b on 72 gb200" in done.stdout


def test_json_has_the_plans() -> None:
    document = json.loads(plan("--global-batch", "16", "--simulate", "1", "--top", "2", "--json"))
    found = document["result"]
    assert (found["model"], found["gpus"], found["npu"]) == ("llama3_8b", 8, "h100")
    first, second = document["tables"]["plans"]
    assert (first["simulated"], second["simulated"]) == (True, False)
    total = first["compute_s"] + first["bubble_s"] + sum(first["exposed_s"].values())
    total += first["update_s"]
    assert first["tokens_per_s_per_gpu"] == pytest.approx(16 * 8192 / total / 8)
    assert first["flops_per_s_per_gpu"] == pytest.approx(first["mfu"] * 989.5e12, rel=1e-3)
    assert first["step_s"] == pytest.approx(total)
    assert first["memory_bytes"]["total"] < found["capacity_bytes"]


@pytest.mark.parametrize(("degrees", "names"), [("8", "CP"), ("4", "DP")])
def test_exposed_gradients_have_the_name_of_their_group(degrees: str, names: str) -> None:
    """With context parallelism alone, its groups reduce gradients."""
    fixed = ["--context", degrees, "--tensor", "1", "--pipeline", "1", "--simulate", "0"]
    text = plan(*fixed, "--global-batch", "16", "--top", "1")
    exposed = text.splitlines()[2].split("%")[1]
    assert f"{names} " in exposed
    assert ("DP" in exposed) is (names == "DP")
    assert ("with DP 1, groups of CP and EP reduce" in " ".join(text.split())) is (names == "CP")


def test_tokens_of_a_batch_are_sequences() -> None:
    short = plan("--batch-tokens", "131072", "--simulate", "0", "--tensor", "2", "--pipeline", "1")
    assert "16 sequences of 8,192 tokens" in short


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--batch-tokens", "10000"], "a multiple of 8,192 tokens"),
        (["--batch-tokens", "8192", "--global-batch", "4"], "conflicts with --global-batch"),
        (["--precision", "fp4"], "bf16, fp8, mxfp8 or nvfp4"),
        (["--gradients", "fp8"], "fp32 or bf16"),
        (["--dispatcher", "deepep"], "alltoall, flex or fused"),
        (["--cuda-graphs", "all"], "eager, partial or full"),
        (["--gpu", "h101"], "--gpu: unknown GPU `h101`"),
        (["--gpus", "12"], "full hosts, equally many in each pod, such as 8 or 16"),
        (["--gpus", "296"], "such as 288 or 304"),
        (["--platform", "dgx_h200", "--gpus", "64"], "such as dgx_h200_cluster"),
        (["--platform", "leonardo"], "does not name its GPU"),
        (
            ["--micro-batch", "3", "--global-batch", "64"],
            "expected --micro-batch 1, 2, 4 or 8, or --global-batch 63 or 66",
        ),
        (["--tensor", "3"], "tensor 3 = 3 GPUs: expected a divisor of 8"),
        (["--gpu", "a100", "--precision", "fp8"], "a100 has no fp8"),
        (["--memory-fraction", "0.05", "--tensor", "8"], "llama3_8b does not fit 8 GPUs"),
        (["resnet50"], "unexpected extra argument"),
    ],
)
def test_errors(arguments: list[str], words: str) -> None:
    given = ["train", "plan", *SMALL, "--simulate", "0", *arguments]
    done = RUNNER.invoke(app, given, env={"COLUMNS": "300"})
    assert done.exit_code == ExitCode.MISTAKE
    assert words in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        # Neither the batch nor the replicas exclude all plans.
        (
            "--pipeline 1 --chunks 4",
            "expected --pipeline 2, 4 or 8, or --chunks 1 hint: model chunks",
        ),
        # 8 replicas of 2 stages have 4 micro-batches of 2 sequences; ZeRO 2 needs 2.
        (
            "--pipeline 2 --chunks 3 --micro-batch 2 --zero 2",
            "expected --micro-batch 4 or 8, or --zero 0 or 1, or --global-batch 16",
        ),
        (
            "--pipeline 8 --chunks 8 --context 1",
            "expected --pipeline 2 or 4, or --chunks 1, 2 or 4",
        ),
        (
            "--pipeline 1 --chunks 4 --zero 2 --micro-batch 3",
            "expected --pipeline 2 with --micro-batch 4",
        ),
    ],
)
def test_options_that_exclude_all_plans_are_named(words: str, expected: str) -> None:
    given = ["train", "plan", *SMALL, "--simulate", "0", "--global-batch", "32", *words.split()]
    done = RUNNER.invoke(app, given, env={"COLUMNS": "400"})
    assert done.exit_code == ExitCode.MISTAKE
    shown = " ".join(done.output.split())
    assert "no plan of 32 sequences on 8 GPUs with " in shown
    assert expected in shown


def test_models_that_are_no_decoders_are_refused() -> None:
    done = RUNNER.invoke(app, ["train", "plan", "resnet50", "-p", "dgx_h100_cluster", "-g", "8"])
    assert done.exit_code == ExitCode.MISTAKE
    assert "expected a decoder" in done.output


def test_what_no_measured_run_has_is_a_remark() -> None:
    words = [
        "train",
        "plan",
        "mixtral_8x7b",
        "-p",
        "dgx_a100_cluster",
        "-g",
        "16",
        "--simulate",
        "0",
    ]
    done = RUNNER.invoke(app, [*words, "--global-batch", "16"], env={"COLUMNS": "300"})
    assert "no published run on a100 is fitted" in done.stderr
    assert "no published run of mixtral_8x7b is fitted" in done.stderr
    assert "no published run" not in plan(
        "--global-batch", "16", "--simulate", "0", "--tensor", "2"
    )


def test_a_platform_without_spines_has_one_pod() -> None:
    words = ["train", "plan", "llama3_8b", "-p", "h800_deepep", "-g", "512", "--simulate", "0"]
    done = RUNNER.invoke(app, words, env={"COLUMNS": "300"})
    assert done.exit_code == ExitCode.MISTAKE
    assert "h800_deepep, which has no spine switches" in done.output
    assert "at most 256" in done.output


@pytest.mark.parametrize(
    "words",
    [
        ["--zero", "3", "--micro-batch", "1", "--tensor", "1", "--context", "1", "--pipeline", "1"],
        ["--tensor", "4", "--context", "1", "--pipeline", "1", "--zero", "1"],
        ["--tensor", "2", "--context", "1", "--pipeline", "2"],
        ["--gpus", "16", "--tensor", "16", "--context", "1", "--pipeline", "1"],
    ],
    ids=["accumulation", "tensor", "pipeline", "hosts"],
)
def test_the_best_plan_runs_as_a_training_file(words: list[str], tmp_path: Path) -> None:
    """Without a pipeline, gradients of several micro-batches are accumulated."""
    file = tmp_path / "training.toml"
    given = [*words, "--global-batch", "64", "--simulate", "1", "--out", str(file), "--json"]
    done = RUNNER.invoke(app, ["train", "plan", *SMALL, *given], catch_exceptions=False)
    assert done.exit_code == 0
    best = json.loads(done.stdout)["tables"]["plans"][0]
    assert "micro_batches = " in file.read_text()
    given = [str(file), "--out", str(tmp_path / "o"), "--json"]
    done = RUNNER.invoke(app, ["train", "run", *given], catch_exceptions=False)
    found = json.loads(done.stdout)["result"]
    # The plan simulates few micro-batches, the run all of them.
    assert found["planned_step_s"] == pytest.approx(best["step_s"], rel=0.01)
    assert best["estimated_step_s"] == pytest.approx(best["step_s"], rel=0.05)


def _planned(tmp_path: Path, model: str, *words: str) -> Path:
    """Returns the training file of a plan on 16 GPUs."""
    file = tmp_path / "training.toml"
    given = ["train", "plan", model, "-p", "dgx_h100_cluster", "-g", "16", "--global-batch", "16"]
    more = ["--simulate", "0", "--top", "1", "--out", str(file)]
    done = RUNNER.invoke(app, [*given, *more, *words], catch_exceptions=False)
    assert done.exit_code == 0
    return file


_SMALL = "gpt:layers=4,hidden=1024,tokens=2048"


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (_SMALL, ["--tensor", "2", "--pipeline", "2", "--context", "1"]),
        (_SMALL, ["--tensor", "1", "--pipeline", "1", "--context", "2", "--zero", "3"]),
        (f"{_SMALL},experts=8", ["--tensor", "1", "--pipeline", "1", "--expert", "8"]),
    ],
    ids=["pipeline", "context", "experts"],
)
def test_a_plan_is_disturbed_and_searched(model: str, words: list[str], tmp_path: Path) -> None:
    file = str(_planned(tmp_path, model, *words))
    given = ["--slow", "0.3:1.5", "--down", "1", "--draws", "1", "--out", str(tmp_path / "o")]
    done = RUNNER.invoke(app, ["train", "disturb", file, *given, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    rows = {row["disturbance"]: row for row in json.loads(done.stdout)["tables"]["disturbances"]}
    assert set(rows) == {"none", "slow NPUs", "links down", "all"}
    # One question, one answer: the undisturbed time is that of `train run` as a plan.
    words = ["train", "run", file, "--json", "--no-report", "--out", str(tmp_path / "r")]
    run = json.loads(RUNNER.invoke(app, words, catch_exceptions=False).stdout)["result"]
    assert rows["none"]["planned_median_ps"] == pytest.approx(1e12 * run["planned_step_s"], abs=1)
    assert rows["none"]["planned_median_ps"] != rows["none"]["median_ps"]
    assert rows["slow NPUs"]["planned_slowdown"] > 0.04
    assert all(row["planned_slowdown"] > -1e-9 for row in rows.values())
    found = ["train", "search", file, "--limit", "2", "--out", str(tmp_path / "s"), "--json"]
    done = RUNNER.invoke(app, found, catch_exceptions=False)
    assert done.exit_code == 0, done.output


def test_what_does_not_fit_states_by_how_much_and_why() -> None:
    fixed = ["--tensor", "1", "--pipeline", "1", "--context", "1", "--zero", "0"]
    words = ["train", "plan", *SMALL, "--simulate", "0", "--global-batch", "64", *fixed]
    done = RUNNER.invoke(app, [*words, "--micro-batch", "1"], env={"COLUMNS": "400"})
    assert "needs 152.2 GB per GPU (96.4 GB optimizer states" in done.output
    assert "expected at most 77.0 GB, 75.2 GB less" in done.output
    assert "states use the most: --zero 1, --zero 3, a larger --tensor" in done.output
    more = ["--micro-batch", "8", "--recompute", "none"]
    done = RUNNER.invoke(app, [*words, *more], env={"COLUMNS": "400"})
    assert "activations use the most: --micro-batch 1, --recompute full" in done.output


def test_experts_that_do_not_divide_are_listed() -> None:
    words = ["train", "plan", "mixtral_8x7b", *SMALL[1:], "--simulate", "0", "--expert", "16"]
    done = RUNNER.invoke(app, [*words, "--gpus", "16"], env={"COLUMNS": "300"})
    assert "`expert = 16` does not divide 8 experts of a layer" in done.output
    assert "experts divide by 1, 2, 4, 8" in done.output
    done = RUNNER.invoke(app, ["train", "plan", *SMALL, "--expert", "2"], env={"COLUMNS": "300"})
    assert "`expert = 2` of a model without experts: expected 1" in done.output


def test_a_gpu_on_the_platform_of_another_is_remarked() -> None:
    words = ["train", "plan", "llama3_8b", "--gpu", "h800", "-g", "16", "--simulate", "0"]
    done = RUNNER.invoke(app, words, env={"COLUMNS": "300"})
    shown = " ".join(done.output.split())
    assert "h800 on dgx_h100_cluster: links and library are those of h100" in shown
    assert "--platform h800_deepep has its own" in shown


@pytest.mark.parametrize("gpus", [1000, 24])
def test_pods_have_equally_many_hosts(gpus: int) -> None:
    where = scaled(platform_of("dgx_h100_cluster", folder=Path(), source=""), gpus, source="--gpus")
    assert where.routes is not None
    assert where.routes.topology.ranks == gpus


def test_a_closed_pipe_does_not_lose_the_file(tmp_path: Path) -> None:
    given = ["train", "plan", "llama3_8b", "-g", "8", "--simulate", "0", "--out", "plan.toml"]
    command = [sys.executable, "-c", "from tutti.cli.app import main; main()", *given]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as process:  # fmt: skip
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait() == 0
    assert (tmp_path / "plan.toml").is_file()


def test_a_batch_without_an_odd_factor_of_the_gpus_is_remarked() -> None:
    free = FixedDegrees()
    text = of_batch(144, 512, free)
    assert text.startswith("512 sequences are not a multiple of 9, the odd factor of 144 GPUs")
    assert text.endswith("has the factor 9; --global-batch 432 or 576 permits others")
    assert "has the factor 3; --global-batch 96 or 120 permits" in of_batch(24, 100, free)
    assert "--global-batch 9 permits" in of_batch(72, 2, free)
    assert not of_batch(128, 3, free)
    assert not of_batch(24, 384, free)
    assert not of_batch(144, 512, FixedDegrees(pipeline=9))
