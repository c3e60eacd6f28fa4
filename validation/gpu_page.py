"""The page docs/machines/measured-gpus.md, from what `score_gpu.py` computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl
from prose import paragraph

if TYPE_CHECKING:
    from score_gpu import Part

TITLES: Final = {
    "nccl": "NCCL: ring or tree",
    "mlperf": "MLPerf: training steps",
    "deepep": "DeepEP: dispatch and combine",
    "steps": "Recipes: training throughput",
    "a3_mega": "nccl-tests: every second size",
}
TEXTS: Final = {
    "nccl": "all_reduce on MareNostrum 5, four H100 per node, forced to a ring or a tree. Each "
    "node count but the smallest is predicted from the smaller ones "
    "([model](../models/measured-nccl.md)). Times are in us.",
    "mlperf": "Median step times of MLPerf Training 5.1. The largest runs of each benchmark and "
    "GPU are predicted from the others ([model](../models/measured-steps.md)). Times are in s.",
    "deepep": "Low-latency kernels of DeepEP on H800, 128 tokens per rank. Each number of ranks "
    "is predicted from the others ([model](../models/moe.md)). Times are in "
    "us.",
    "steps": "Throughput of published recipes of Megatron-Bridge, in tokens per second and GPU. "
    "The recipes of each model and system are predicted from those of other models and systems "
    "([model](../models/measured-steps.md#recipes)).",
    "a3_mega": "all_reduce on two nodes of eight H100 with a network of 8 x 200 Gb/s per node. "
    "Each second size is interpolated from the others. Times are in us.",
}
AIMS: Final = {
    "nccl": {"factor": 1.20, "factor_p90": 1.5, "winner": 0.85, "regret_p90": 0.05},
    "mlperf": {"factor": 1.10, "worst": 1.25},
    "deepep": {"worst": 1.20},
    "steps": {"factor": 1.08, "factor_p90": 1.25},
    "a3_mega": {"factor": 1.15},
}
"""The most of each figure; of `winner`, the least."""
NAMES: Final = {
    "factor": "factor, median",
    "factor_p90": "factor, 90 % quantile",
    "worst": "factor, worst",
    "winner": "fastest algorithm chosen (%)",
    "regret": "regret, median (%)",
    "regret_p90": "regret, 90 % quantile (%)",
    "inside": "inside the 90 % interval (%)",
}
_SHOWN: Final = 10

HEAD = """# Measured GPU clusters

How well tutti predicts collectives and training steps of GPU clusters that others measured.
`make gpu DATA=path/to/measured` writes this page and `validation/gpu/*_predictions.csv`. The
figures are of cross-validation on the given runs: each prediction is of a run that its model has
not seen. Measured times of the larger runs, which the predictions are about, are not used."""

DEFINITIONS = """## Definitions

- **Factor**: the larger of predicted / measured and measured / predicted. 1.20 is 20 % off.
- **Regret**: measured time of the algorithm predicted fastest over the fastest measured, less one.
- **Inside**: share of measured times within the 90 % interval.
- A figure in bold misses its aim."""

SOURCES = """## Sources

- NCCL on MareNostrum 5: [PICO](https://github.com/HLC-Lab/pico) (HLC-Lab).
- Training steps: [MLPerf Training 5.1](https://github.com/mlcommons/training_results_v5.1).
- Dispatch and combine: [DeepEP](https://github.com/deepseek-ai/DeepEP).
- Recipes: [Megatron-Bridge](https://github.com/NVIDIA-NeMo/Megatron-Bridge), seven releases.
- nccl-tests on two nodes of eight H100: lessizzmore/create-a3mega-ztan-fork on GitHub."""


def figures(part: Part) -> dict[str, float]:
    """Returns the figures of a kind of measurement.

    Args:
        part: What was computed.

    Returns:
        `factor`, `factor_p90`, `worst`; `winner`, `regret`, `regret_p90` if an algorithm is chosen;
        `inside` if intervals are claimed.
    """
    rows = part.validated
    factor = (pl.col("predicted") / pl.col("measured")).log().abs().exp()
    found = rows.select(
        factor.median().alias("factor"),
        factor.quantile(0.9, "linear").alias("factor_p90"),
        factor.max().alias("worst"),
    ).row(0, named=True)
    if part.choices is not None:
        found |= _of_choices(part.choices)
    if "low" in rows.columns:
        inside = pl.col("measured").is_between(pl.col("low"), pl.col("high"))
        found["inside"] = rows.select(inside.mean()).item()
    return found


def _of_choices(rows: pl.DataFrame) -> dict[str, float]:
    best, chosen = pl.col("measured").min(), pl.col("measured").sort_by("predicted").first()
    groups = rows.group_by("cell", maintain_order=True).agg((chosen / best - 1).alias("regret"))
    return groups.select(
        (pl.col("regret") == 0).mean().alias("winner"),
        pl.col("regret").median(),
        pl.col("regret").quantile(0.9, "linear").alias("regret_p90"),
    ).row(0, named=True)


def page(parts: list[Part]) -> str:
    """Returns the page.

    Args:
        parts: What was computed.
    """
    sections = [HEAD, _overview(parts), *map(_section, parts), DEFINITIONS, SOURCES]
    return "\n\n".join(sections) + "\n"


def summary(parts: list[Part]) -> str:
    """Returns the figures as text for the terminal."""
    return _overview(parts).split("\n\n", 1)[1]


def _overview(parts: list[Part]) -> str:
    rows = []
    for part in parts:
        aims = AIMS[part.name]
        for name, value in figures(part).items():
            aim = aims.get(name)
            shown = _number(name, value)
            missed = aim is not None and (value < aim if name == "winner" else value > aim)
            limit = "least" if name == "winner" else "most"
            rows.append(
                f"| {TITLES[part.name]} | {NAMES[name]} | {f'**{shown}**' if missed else shown} | "
                f"{f'{limit} {_number(name, aim)}' if aim is not None else ''} |"
            )
    head = "| measurements | figure | reached | aim |\n|---|---|--:|--:|"
    return "## Figures\n\n" + "\n".join([head, *rows])


def _number(name: str, value: float) -> str:
    return f"{value:.2f}" if name.startswith(("factor", "worst")) else f"{value * 100:.1f}"


def _section(part: Part) -> str:
    """The text of a kind of measurement, and its worst rows."""
    off = (pl.col("predicted") / pl.col("measured")).log().abs()
    worst = part.validated.sort(off, descending=True, maintain_order=True).head(_SHOWN)
    rows = [
        f"| {one['run']} | {one['measured']:.4g} | {one['predicted']:.4g} | "
        f"{one['predicted'] / one['measured']:.2f} |"
        for one in worst.iter_rows(named=True)
    ]
    count = part.validated.height
    requested = "" if part.predictions is None else f" and {part.predictions.height:,} questions"
    rest = f"{count:,} runs{requested} were predicted. The worst:"
    head = "| run | measured | predicted | ratio |\n|---|--:|--:|--:|"
    text = paragraph(TEXTS[part.name] + " " + rest)
    return f"## {TITLES[part.name]}\n\n{text}\n\n" + "\n".join([head, *rows])
