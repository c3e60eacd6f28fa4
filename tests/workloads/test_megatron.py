"""Arguments of Megatron-LM: decoders, recipes, and what is not modelled."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from called import call
from tutti.base.errors import ConfigError, ExitCode
from tutti.training.files.step_file import find_model, load_training
from tutti.workloads import build
from tutti.workloads.megatron.arguments import read_arguments
from tutti.workloads.megatron.recipe import read_recipe

if TYPE_CHECKING:
    from pathlib import Path

LLAMA = """\
#!/bin/bash
# Llama 3 8B
TP=${TP:-2}
DISTRIBUTED_ARGS=(
    --nproc_per_node 8
    --nnodes 2
)
MODEL_ARGS=(
    --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336
    --num-attention-heads 32 --group-query-attention --num-query-groups 8
    --seq-length 8192 --swiglu --untie-embeddings-and-output-weights
    --vocab-size 128256)
TRAINING_ARGS="--micro-batch-size 1 --global-batch-size 128 --lr 0.00015 --bf16"
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py ${MODEL_ARGS[@]} $TRAINING_ARGS \\
    --tensor-model-parallel-size $TP --pipeline-model-parallel-size=2 \\
    --num-layers-per-virtual-pipeline-stage 4 --sequence-parallel --use-distributed-optimizer \\
    --overlap-grad-reduce --overlap-param-gather --fp8-format hybrid
"""
DEEPSEEK = """\
--num-layers 61 --hidden-size 7168 --ffn-hidden-size 18432 --num-attention-heads 128
--multi-latent-attention --q-lora-rank 1536 --kv-lora-rank 512 --qk-head-dim 128
--qk-pos-emb-head-dim 64 --v-head-dim 128 --seq-length 4096 --vocab-size 129280 --swiglu
--untie-embeddings-and-output-weights
--num-experts 256 --moe-router-topk 8 --moe-ffn-hidden-size 2048
--moe-shared-expert-intermediate-size 2048 --moe-layer-freq ([0]*3+[1]*58)
--moe-router-num-groups 8 --moe-router-group-topk 4 --expert-model-parallel-size 64
--micro-batch-size 1 --moe-enable-deepep --overlap-moe-expert-parallel-comm
"""
SMALL = "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 16 --vocab-size 100"


def script(folder: Path, text: str = LLAMA) -> Path:
    (folder / "train.sh").write_text(text)
    return folder


@pytest.mark.parametrize(
    ("text", "preset"), [(LLAMA, "llama3_8b:tokens=8192"), (DEEPSEEK, "deepseek_v3")]
)
def test_a_script_is_the_preset(text: str, preset: str, tmp_path: Path) -> None:
    read = find_model("megatron:train.sh", script(tmp_path, text))
    expected = build(preset)
    assert read.layers == expected.layers
    assert read.decoder is not None
    assert expected.decoder is not None
    assert read.decoder.experts == expected.decoder.experts


def test_arguments_may_be_a_text(tmp_path: Path) -> None:
    shape = find_model(f"megatron:{SMALL} --tensor-model-parallel-size 2", tmp_path).decoder
    assert shape is not None
    assert (shape.layers, shape.kv_heads, shape.wide) == (2, 4, 256)
    assert shape.tied
    assert not shape.gated
    # The vocabulary is a multiple of 128 x 2.
    assert shape.vocabulary == 256


def test_the_recipe_of_a_script(tmp_path: Path) -> None:
    recipe = read_recipe("train.sh", script(tmp_path))
    assert recipe.options == {
        "tensor": 2,
        "pipeline": 2,
        "context": 1,
        "expert": 1,
        "micro_batch": 1,
        "batch": 128,
        "chunks": 4,
        "zero": 1,
        "recompute": "selective",
        "cp_comm_type": "p2p",
        "precision": "fp8",
        "gradients": "fp32",
        "gpus": 16,
    }
    assert recipe.remarks == ["without effect on the time: --lr"]


def test_the_recipe_of_experts(tmp_path: Path) -> None:
    recipe = read_recipe("train.sh", script(tmp_path, DEEPSEEK))
    assert recipe.options["expert"] == 64
    assert recipe.options["dispatcher"] == "flex"
    assert recipe.options["overlapped"] is True


@pytest.mark.parametrize(
    ("more", "key", "value"),
    [
        ("--use-torch-fsdp2", "zero", 3),
        ("--data-parallel-sharding-strategy optim_grads", "zero", 2),
        ("--recompute-granularity full --recompute-method uniform", "recompute", "full"),
        ("--fp8-format e4m3 --fp8-recipe mxfp8", "precision", "mxfp8"),
        ("--fp4-format e2m1", "precision", "nvfp4"),
        ("--grad-reduce-in-bf16", "gradients", "bf16"),
        ("--cp-comm-type allgather", "cp_comm_type", "all_gather"),
        ("--cuda-graph-impl local", "graph", "full"),
        ("--num-virtual-stages-per-pipeline-rank 2", "chunks", 2),
    ],
)
def test_an_argument_is_an_option(more: str, key: str, value: object, tmp_path: Path) -> None:
    recipe = read_recipe(f"{SMALL} --micro-batch-size 1 {more}", tmp_path)
    assert recipe.options[key] == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("--hidden-size 64", "--num-attention-heads: is missing"),
        (f"{SMALL} --window-size 4096", "--window-size: changes the model, and is not modelled"),
        (f"{SMALL} --kv-channels", "--kv-channels: has no value"),
        (SMALL.replace("--num-layers 2", "--num-layers $N"), "is a variable of the shell"),
        (SMALL.replace("--num-layers 2", "--num-layers 99999"), "an integer from 1 to 4,096"),
        (
            "--num-layers 2 --hidden-size 8 --num-attention-heads 8 --swiglu --num-experts 8",
            "--ffn-hidden-size: is missing",
        ),
        (f"{SMALL}\nA={'x' * 5000}\n" + "$A " * 500, "variables of the shell grow the text"),
        (f"{SMALL} --num-experts 8 --moe-layer-freq 2", "--moe-layer-freq: is not modelled"),
        (
            f"{SMALL} --num-experts 8 --moe-shared-expert-intermediate-size 100",
            "a multiple of the width of an expert, 256",
        ),
        (f"{SMALL} --kv-channels 'x", "not a command line"),
    ],
)
def test_a_model_that_is_not_modelled_is_refused(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        find_model(f"megatron:{text}", tmp_path)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("--cp-comm-type a2a", "--cp-comm-type: is not modelled"),
        ("--fp8-format e4m3 --fp8-recipe blockwise", "--fp8-recipe: is not modelled"),
        ("--recompute-granularity full --recompute-method block", "--recompute-method"),
        ("--num-layers-per-virtual-pipeline-stage 3", "does not divide the layers of a stage"),
        (
            "--num-experts 4 --tensor-model-parallel-size 2",
            "--expert-tensor-parallel-size: of 2 is not modelled",
        ),
        ("--num-experts 4 --moe-token-dispatcher-type allgather", "is not modelled"),
    ],
)
def test_a_recipe_that_is_not_modelled_is_refused(more: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        read_recipe(f"{SMALL} --micro-batch-size 1 {more}", tmp_path)
    assert words in str(refused.value)


def test_arguments_that_are_not_modelled_are_named(tmp_path: Path) -> None:
    recipe = read_recipe(f"{SMALL} --micro-batch-size 1 --tp-comm-overlap --seed 1", tmp_path)
    assumed, unmodelled, idle = recipe.remarks
    assert "the overlap of gradients with the backward pass (--overlap-grad-reduce)" in assumed
    assert unmodelled == "not modelled: --tp-comm-overlap"
    assert idle == "without effect on the time: --seed"


def test_a_misspelt_argument_is_named(tmp_path: Path) -> None:
    text = f"{SMALL} --micro-batch-size 1 --tensor-model-paralel-size 2 --no-such-option 3"
    (sentence,) = [one for one in read_recipe(text, tmp_path).remarks if "not modelled" in one]
    assert "paralel-size (did you mean --tensor-model-parallel-size?)" in sentence
    assert sentence.endswith("--no-such-option")


def test_a_file_without_arguments_is_refused(tmp_path: Path) -> None:
    script(tmp_path, "echo nothing\n")
    with pytest.raises(ConfigError, match="has no arguments"):
        read_arguments("train.sh", tmp_path)


def test_train_plan_prices_the_recipe(tmp_path: Path) -> None:
    script(tmp_path)
    words = ["train", "plan", "megatron:train.sh", "--simulate", "0", "--out", "out/plan.toml"]
    (tmp_path / "out").mkdir()
    done = call(*words, "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    best = found["tables"]["plans"][0]
    assert (best["tensor"], best["pipeline"], best["interleaved"], best["data"]) == (2, 2, 4, 4)
    assert (found["result"]["gpus"], found["result"]["precision"]) == (16, "fp8")
    assert "no published run" not in done.stderr
    assert 'model = "megatron:../train.sh"' in (tmp_path / "out/plan.toml").read_text()
    assert load_training(tmp_path / "out/plan.toml").step.batch == best["micro_batches"]


def test_options_replace_arguments(tmp_path: Path) -> None:
    script(tmp_path)
    words = ["train", "plan", "megatron:train.sh", "--simulate", "0", "--tensor", "4"]
    done = call(*words, "--precision", "bf16", cwd=tmp_path)
    assert done.returncode == ExitCode.OK
    assert "tensor 4 replaces --tensor-model-parallel-size 2" in done.stderr
    assert "precision bf16 replaces --fp8-recipe fp8" in done.stderr
