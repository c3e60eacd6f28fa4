"""The predictor of training recipes, from synthetic throughputs of its own model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from predictors import recipes
from predictors.recipe_fit import PRIORS, fit
from predictors.recipe_rows import published, read_recipes

from tutti.base.errors import ConfigError
from tutti.base.files.reader import parse_toml
from tutti.training.plan.efficiency import NAMES, parameters_of
from tutti.training.plan.estimate import combined

if TYPE_CHECKING:
    from pathlib import Path

HEAD = (
    "container,system,model,notes,gpus,precision,global_batch,micro_batch,sequence,fsdp,tp,pp,cp,"
    "vp,ep"
)
DENSE = "llama3_8b,,8,{precision},128,{size},8192,0,1,1,1,1,1"
EXPERTS = "qwen3_235b_a22b,,256,mxfp8,8192,1,4096,0,{tp},8,1,1,{ep}"


def table(folder: Path, rows: list[str], values: list[float] | None = None) -> Path:
    """A table of recipes, with throughputs or as questions."""
    path = folder / ("train.csv" if values else "questions.csv")
    if values:
        lines = [f"{row},{value}" for row, value in zip(rows, values, strict=True)]
        path.write_text("\n".join([f"{HEAD},tokens_per_s_per_gpu", *lines]) + "\n")
    else:
        lines = [f"{number},{row}" for number, row in enumerate(rows)]
        path.write_text("\n".join([f"question,{HEAD}", *lines]) + "\n")
    return path


def rows() -> list[str]:
    return [
        f"26.04,{system},{DENSE.format(precision=precision, size=size)}"
        for system in ("H100", "B200", "GB200")
        for precision in ("bf16", "fp8")
        for size in (1, 2)
    ]


def throughputs(path: Path) -> list[float]:
    """The throughputs of the prior, with B200 10 % slower."""
    found = []
    for one in read_recipes(path)[0]:
        values = [
            1.0
            if name == "optimizer"
            else PRIORS[next(iter(parameters_of(name, one.setting)))].value
            for name in NAMES
        ]
        slower = 1.1 if one.row["system"] == "B200" else 1.0
        found.append(one.tokens / float(combined(one.amounts, np.array(values)).step) / slower)
    return found


def test_a_recipe_is_the_plan_of_megatron(tmp_path: Path) -> None:
    path = table(tmp_path, [f"26.04,H100,{EXPERTS.format(tp=2, ep=32)}"])
    one = read_recipes(path)[0][0]
    assert (one.plan.kinds.tensor, one.plan.kinds.expert, one.plan.expert_ranks) == (2, 16, 32)
    assert (one.plan.data, one.plan.kinds.micro_batches) == (1, 512)
    assert (one.dispatcher, one.overlapped, one.graph) == ("alltoall", True, "eager")
    assert one.cluster.domain == 8


def test_synthetic_throughputs_are_fitted(tmp_path: Path) -> None:
    questions = table(tmp_path, rows())
    train = table(tmp_path, rows(), throughputs(questions))
    found = recipes.predict(train, questions)
    measured = pl.read_csv(train)["tokens_per_s_per_gpu"]
    ratios = (found["predicted_tokens_per_s_per_gpu"] / measured).log().abs()
    assert ratios.max() < 0.05  # type: ignore[operator]
    assert (found["low_tokens_per_s_per_gpu"] < measured).all()
    assert (found["high_tokens_per_s_per_gpu"] > measured).all()
    held_out = recipes.cross_validated(train)
    assert held_out.height == len(rows())
    assert set(held_out["system"]) == {"H100", "B200", "GB200"}
    assert (held_out["predicted"] / held_out["measured"]).log().abs().max() < 0.3  # type: ignore[operator]
    tables = parse_toml(recipes.tables(train), source="test")
    assert set(tables["coefficients"]) == set(PRIORS)


def test_the_published_runs_are_near_the_prior() -> None:
    model = fit(published())
    logs, _ = model.predict(published())
    for one, seconds in zip(published(), np.exp(logs), strict=True):
        assert one.tokens / seconds == pytest.approx(one.tokens_per_s, rel=0.1)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("26.04,H900," + DENSE.format(precision="bf16", size=1), "unknown system"),
        ("26.04,H100," + DENSE.format(precision="bf16", size=3), "a multiple of 8 replicas x 3"),
        ("26.04,H100," + DENSE.format(precision="bf16", size="x"), "micro_batch is not valid"),
    ],
)
def test_a_damaged_row_is_named(row: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=words):
        read_recipes(table(tmp_path, [row]))
