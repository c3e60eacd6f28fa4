"""Compares captured PyTorch programs with published training steps.

`python validation/captured_steps.py path/to/measured` needs PyTorch (`make test-torch` installs
it). For rows of `steps_train.csv` that a plain PyTorch program can express, it captures the
program with the row's model, batch and sharding, runs the step on the row's system and precision,
and writes `validation/gpu/captured_steps.csv`. docs/machines/gpus.md shows the rows.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

import polars as pl
from predictors.recipe_rows import Recipe, read_recipes

from tutti.base.errors import TuttiError
from tutti.training.files.step_file import load_training

ROOT = Path(__file__).parent.parent
SCRIPTS = ROOT / "examples" / "30_capture"
FILE = ROOT / "validation" / "gpu" / "captured_steps.csv"
DIGITS: Final = 4

SHAPES: Final[dict[str, dict[str, int]]] = {
    "llama3_8b": {},
    "llama3_70b": {"layers": 80, "width": 8192, "heads": 64, "wide": 28672},
}
"""Arguments of llama_fsdp.py that differ from its defaults (Grattafiori et al. 2024, table 3)."""
PLATFORMS: Final = {
    "H100": "dgx_h100_cluster",
    "GB200": "gb200_nvl72_cluster",
    "GB300": "gb300_nvl72_cluster",
}


def is_plain(recipe: Recipe) -> bool:
    """Returns whether llama_fsdp.py expresses a recipe: a dense model with its shards on all GPUs.

    FSDP gathers weights in both passes of each micro-batch. Data parallelism with a distributed
    optimizer gathers them once in a step, as `--keep` does.
    """
    row = recipe.row
    is_sharded = row["fsdp"] in {"0", str(row["gpus"])}
    return row["model"] in SHAPES and is_sharded and row["tp"] == row["pp"] == row["cp"] == 1


def changes_of(recipe: Recipe) -> list[str]:
    """Returns the changes of the captured script for a recipe, each KEY=VALUE."""
    row = recipe.row
    micro_batches = row["global_batch"] // (row["gpus"] * row["micro_batch"])
    options = {**SHAPES[row["model"]], "tokens": row["sequence"], "batch": row["micro_batch"],
               "micro-batches": micro_batches}  # fmt: skip
    flags = ["compile", *(["keep"] if row["fsdp"] == "0" else [])]
    gpu, precision = row["system"].lower(), row["precision"]
    return [
        f"platform={PLATFORMS[row['system']]}",
        f"capture.world_size={row['gpus']}",
        *(f"capture.arguments.{name}={value}" for name, value in options.items()),
        *(f"capture.arguments.{name}=true" for name in flags),
        f'compute={{model="gpu", gpu="{gpu}", precision="{precision}", graph="{recipe.graph}"}}',
    ]


def predicted(recipe: Recipe) -> float:
    """Returns the tokens per second and GPU of a recipe as a captured program."""
    training = load_training(SCRIPTS / "llama_fsdp.py", changes_of(recipe))
    run = training.step.run(training.configurations[0])
    return recipe.tokens / (run.total.ps * 1e-12)


def main() -> None:
    """Reads the rows, and writes what was measured and predicted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="the folder with steps_train.csv")
    options = parser.parse_args()
    rows = []
    try:
        recipes, _ = read_recipes(options.data / "steps_train.csv")
        for recipe in filter(is_plain, recipes):
            speed, measured = predicted(recipe), recipe.tokens_per_s or 0.0
            names = ("model", "system", "precision", "gpus", "fsdp", "container")
            rows.append({**{name: recipe.row[name] for name in names}, "measured": measured,
                         "predicted": speed, "ratio": speed / measured})  # fmt: skip
            print(*rows[-1].values(), flush=True)
    except TuttiError as error:
        sys.exit(str(error))
    frame = pl.DataFrame(rows).sort("model", "system", "precision", "container")
    frame.with_columns(pl.col("predicted", "ratio").round_sig_figs(DIGITS)).write_csv(FILE)


if __name__ == "__main__":
    main()
