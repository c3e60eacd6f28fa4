"""Reads published throughputs of training recipes, and the steps that they describe."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl
from columns import read_columns

from tutti.base.files.mistakes import mistake
from tutti.base.units import TimePerByte
from tutti.platforms.files.builder import machine
from tutti.platforms.files.presets import chosen_model, platform_of
from tutti.platforms.npus import npu
from tutti.training.plan import Cluster, Plan, amounts
from tutti.training.plan.efficiency import Setting, family_of
from tutti.workloads import Parallelism, build
from tutti.workloads.pieces import Pieces

if TYPE_CHECKING:
    from tutti.platforms.files.platform_file import RawPlatform
    from tutti.platforms.machine import Platform
    from tutti.training.plan.estimate import StepAmounts

__all__ = ["Recipe", "published", "read_recipes"]

_TEXTS: Final = ("container", "system", "model", "notes", "precision", "fsdp")
_NUMBERS: Final = (
    "gpus", "global_batch", "micro_batch", "sequence", "tp", "pp", "cp", "vp", "ep",
)  # fmt: skip
COLUMNS: Final[dict[str, type[pl.DataType]]] = {
    **dict.fromkeys(_TEXTS, pl.String),
    **dict.fromkeys(_NUMBERS, pl.Int64),
}
"""The columns that describe a recipe: release, system, model, and parallelism as Megatron-Core
defines it."""

_PLATFORMS: Final = {
    "H100": "dgx_h100_cluster",
    "B200": "dgx_b200_cluster",
    "B300": "dgx_b200_cluster",
    "GB200": "gb200_nvl72_cluster",
    "GB300": "gb300_nvl72_cluster",
}
_BF16: Final = 2


_AMOUNTS: Final[dict[tuple[object, ...], StepAmounts]] = {}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A recipe on a system, and its throughput if measured.

    Attributes:
        row: The columns of :data:`COLUMNS`.
        dispatcher: The kernels of experts.
        overlapped: Whether dispatch and combine overlap.
        graph: What CUDA graphs launch.
        tokens_per_s: Tokens per second and GPU; None if unknown.
    """

    row: dict[str, Any]
    dispatcher: str
    overlapped: bool
    graph: str
    tokens_per_s: float | None = None

    @property
    def group(self) -> tuple[str, str]:
        """Model and system, which cross-validation leaves out together."""
        return self.row["model"], self.row["system"]

    @property
    def tokens(self) -> float:
        """Tokens of a step and GPU."""
        return float(self.row["global_batch"] * self.row["sequence"] / self.row["gpus"])

    @property
    def setting(self) -> Setting:
        """What the coefficients depend on."""
        return Setting(
            npu=self.row["system"].lower(),
            precision=self.row["precision"],
            model=self.row["model"],
            family=family_of(_pieces(self.notation).model),
            dispatcher=self.dispatcher,  # type: ignore[arg-type]
            overlapped=self.overlapped,
            graph=self.graph,  # type: ignore[arg-type]
            release=self.row["container"],
        )

    @property
    def notation(self) -> str:
        """The notation of the model."""
        row = self.row
        has_mtp = row["model"] == "deepseek_v3" and "without_mtp" not in row["notes"]
        return f"{row['model']}:tokens={row['sequence']}" + (",mtp=1" if has_mtp else "")

    @property
    def cluster(self) -> Cluster:
        """The GPUs."""
        row = self.row
        return Cluster(
            platform=_platform(row["system"]),
            npu=npu(row["system"].lower()),
            precision=row["precision"],
            gradients=_BF16,
            dispatcher=self.dispatcher,  # type: ignore[arg-type]
            overlapped=self.overlapped,
            count=row["gpus"],
        )

    @property
    def plan(self) -> Plan:
        """The parallelisation."""
        row = self.row
        tensor, pipeline, context = row["tp"], row["pp"], row["cp"]
        is_undivided = tensor > 1 and row["ep"] > 1
        # One published row states more GPUs with different experts than a stage has.
        ranks = min(row["ep"], row["gpus"] // (pipeline * context))
        expert = max(1, ranks // tensor) if is_undivided else ranks
        data = row["gpus"] // (tensor * pipeline * context * expert)
        kinds = Parallelism(
            tensor=tensor,
            context=context,
            expert=expert,
            pipeline=pipeline,
            interleaved=row["vp"],
            micro_batches=row["global_batch"] // (row["micro_batch"] * data * expert),
            sequence=tensor > 1,
            undivided_experts=is_undivided,
            expert_domain=self.cluster.domain if row["ep"] > 1 else 0,
            zero=3 if row["fsdp"] not in ("", "0") else 1,
            recompute="selective",
            cp_comm_type="all_gather" if "all_gather" in row["notes"] else "p2p",
        )
        return Plan(kinds=kinds, data=data, micro_batch=row["micro_batch"])

    @property
    def amounts(self) -> StepAmounts:
        """The amounts of the step."""
        if self.key not in _AMOUNTS:
            _AMOUNTS[self.key] = amounts(_pieces(self.notation), self.plan, self.cluster)
        return _AMOUNTS[self.key]

    @property
    def key(self) -> tuple[object, ...]:
        """All columns: equal for repeated rows."""
        return tuple(self.row[name] for name in COLUMNS)


def read_recipes(path: Path) -> tuple[list[Recipe], pl.DataFrame]:
    """Reads a table of recipes.

    Args:
        path: A CSV file with :data:`COLUMNS`, and `tokens_per_s_per_gpu` or `question`.

    Returns:
        The recipes, and their rows.

    Raises:
        ConfigError: The file cannot be read, a row is damaged, or a batch does not divide.
    """
    head = path.read_text("utf-8").partition("\n")[0].split(",")
    extra: dict[str, type[pl.DataType]] = (
        {"question": pl.Int64} if "question" in head else {"tokens_per_s_per_gpu": pl.Float64}
    )
    rows = read_columns(path, {**COLUMNS, **extra}, optional=("notes", "fsdp"))
    return [_recipe(row, str(path)) for row in rows.iter_rows(named=True)], rows


@cache
def published() -> tuple[Recipe, ...]:
    """Returns the three runs of Llama 3 405B on H100 in BF16 (Grattafiori et al. 2024, table 4).

    The table has TFLOP/s. 16 stages of 8 model chunks each, of which the first has the embedding.
    """
    path = Path(__file__).with_name("published.csv")
    columns: dict[str, Any] = {**COLUMNS, "tflops_per_gpu": pl.Float64}
    found = []
    for row in read_columns(path, columns, optional=("notes", "fsdp")).iter_rows(named=True):
        one = _recipe(row, str(path))
        flops = _pieces(one.notation).decoder.flops
        found.append(replace(one, tokens_per_s=1e12 * row["tflops_per_gpu"] / flops))
    return tuple(found)


def _recipe(row: dict[str, Any], source: str) -> Recipe:
    rule = next(one for one in _rules() if _matches(one, row))
    found = Recipe(
        row={name: row[name] for name in COLUMNS},
        dispatcher=rule["dispatcher"],
        overlapped=rule.get("overlapped", False),
        graph=rule.get("graph", "full" if rule["dispatcher"] == "fused" else "eager"),
        tokens_per_s=row.get("tokens_per_s_per_gpu"),
    )
    if row["system"] not in _PLATFORMS:
        raise mistake("unknown system", source=source, value=row["system"],
                      expected=", ".join(_PLATFORMS))  # fmt: skip
    replicas = row["gpus"] // (row["tp"] * row["pp"] * row["cp"])
    if row["global_batch"] % (row["micro_batch"] * replicas):
        raise mistake(
            f"a batch of {row['global_batch']} does not divide into micro-batches",
            source=f"{source}: {row['model']} on {row['system']}",
            expected=f"a multiple of {replicas} replicas x {row['micro_batch']} sequences",
        )
    return found


@cache
def _rules() -> list[dict[str, Any]]:
    text = Path(__file__).with_name("recipes.toml").read_text("utf-8")
    return list(tomllib.loads(text)["rules"])


def _matches(rule: dict[str, Any], row: dict[str, Any]) -> bool:
    return (
        row["system"] in rule.get("systems", [row["system"]])
        and rule.get("from", "") <= row["container"] <= rule.get("to", "99")
        and rule.get("notes", "") in row["notes"]
        and all(
            rule.get(key, row[key]) == row[key]
            for key in ("model", "precision", "micro_batch", "vp", "ep")
        )
    )


@cache
def _pieces(notation: str) -> Pieces:
    return Pieces(build(notation))


@cache
def _platform(system: str) -> Platform:
    raw = platform_of(_PLATFORMS[system], folder=Path(), source=system)
    if system == "B300":
        raw = _with_nics(raw, "98 GB/s")
    return machine(raw, chosen_model(raw, None, source=system), source=system)


def _with_nics(raw: RawPlatform, rate: str) -> RawPlatform:
    """Returns the platform with other adapters: those of HGX B300 have 800 Gb/s."""
    assert raw.topology is not None
    scale_up, *others = raw.topology.links
    faster = [link.model_copy(update={"rate": TimePerByte.parse(rate)}) for link in others]
    topology = raw.topology.model_copy(update={"links": [scale_up, *faster]})
    return raw.model_copy(update={"topology": topology})
