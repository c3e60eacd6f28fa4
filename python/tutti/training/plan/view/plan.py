"""What a search of parallelisations shows."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from tutti.training.plan.explain import explained, table_of
from tutti.training.plan.timing import KINDS
from tutti.view.quantity import format_share, format_time
from tutti.view.tables import Column, ReportTable, records_of
from tutti.view.view import Data, Fact, View, json_facts
from tutti.workloads.parallel import KINDS as ORDER
from tutti.workloads.pieces import Pieces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.training.plan import Plan, PlanSearch, Ranked
    from tutti.workloads.parallel import Kind

_SHORT = {"tensor": "TP", "context": "CP", "expert": "EP", "pipeline": "PP", "data": "DP"}
_DEGREES = ("tensor", "context", "pipeline", "expert", "data")
_CAPTION = (
    "TP tensor, CP context, PP pipeline stages x model chunks, EP expert, DP data parallelism; "
    "MB sequences of a micro-batch; Z ZeRO stage; F full recomputation; tok/s, TF/s per GPU; GB of "
    "the fullest GPU; exposed: largest shares of the step in % that compute does not hide (PB "
    "bubble, UP update, communication by kind); ~ closed form, not simulated"
)
_ISOLATED = "; ^ each collective simulated once, in all groups, and not with the others"
_REPLICAS = "; with DP 1, groups of CP and EP reduce gradients"
_EXPERTS = (
    "; EP GPUs with different experts, as Megatron-Core counts them: `expert` of the file x TP; DP "
    "copies of the experts: Megatron-Core's data parallelism is DP x EP / TP"
)
"""Of plans whose groups of experts span tensor groups."""


class Row(NamedTuple):
    """A plan of a search."""

    search: PlanSearch
    ranked: Ranked

    def interval(self) -> tuple[float, float] | None:
        """Returns the 90 % interval of the step in seconds, on a GPU without measured steps."""
        spread = self.search.spread(self.ranked)
        return spread and spread.interval(self.ranked.timing.step)


def _degree(kind: Any, row: Row) -> int:  # noqa: ANN401 - a literal
    return row.ranked.plan.degree(kind)


def _degree_text(kind: str, row: Row) -> str:
    chunks = row.ranked.plan.kinds.interleaved if kind == "pipeline" else 1
    if kind == "expert":
        return str(row.ranked.plan.expert_ranks)
    return f"{_degree(kind, row)}{f'x{chunks}' if chunks > 1 else ''}"


def _step(row: Row) -> str:
    ranked = row.ranked
    mark = "~" if ranked.simulated is None else "^" if ranked.simulated.isolated else ""
    return f"{mark}{format_time(ranked.timing.step * 1e12)}"


def _shares(row: Row) -> str:
    """Returns the largest shares of the step that compute does not hide, in per cent."""
    timing = row.ranked.timing
    parts = {"PB": timing.idle, "UP": timing.update}
    for kind in KINDS:
        name = _SHORT[kind] if kind != "data" else _replicas(row.ranked.plan)
        parts[name] = parts.get(name, 0.0) + timing.exposed.get(kind, 0.0)
    shares = {name: 100 * seconds / timing.step for name, seconds in parts.items()}
    ordered = sorted(shares.items(), key=lambda part: -part[1])
    return " ".join(f"{name} {share:.0f}" for name, share in ordered[:3] if share >= 0.5) or "-"


def _replicas(plan: Plan) -> str:
    """Returns the groups that reduce gradients, by the name that `tutti train run` has for them.

    Without data parallelism these are groups of context and expert parallelism.
    """
    if plan.data > 1:
        return _SHORT["data"]
    kinds: tuple[Kind, ...] = ("context", "expert")
    return "x".join(_SHORT[kind] for kind in kinds if plan.degree(kind) > 1) or _SHORT["data"]


def _memory(row: Row) -> dict[str, int]:
    memory = row.ranked.memory
    return {**asdict(memory), "total": memory.total}


PLANS: tuple[Column[Row], ...] = (
    *(Column(_SHORT[kind], partial(_degree_text, kind), kind="number") for kind in _DEGREES),
    *(Column(kind, partial(_degree, kind), key=kind, terminal=False) for kind in _DEGREES),
    Column("expert ranks", lambda row: row.ranked.plan.expert_ranks, key="expert_ranks",
           terminal=False),
    Column("order", lambda row: list(row.ranked.plan.kinds.order), key="order", terminal=False),
    Column("interleaved", lambda row: row.ranked.plan.kinds.interleaved, key="interleaved",
           terminal=False),
    Column("MB", lambda row: row.ranked.plan.micro_batch, key="micro_batch", kind="number"),
    Column("micro-batches", lambda row: row.ranked.plan.kinds.micro_batches, key="micro_batches",
           terminal=False),
    Column("Z", lambda row: row.ranked.plan.kinds.zero, key="zero", kind="number"),
    Column("", lambda row: row.ranked.plan.kinds.recompute, key="recompute", kind="number",
           terminal=lambda value: "F" if value == "full" else ""),
    Column("within domain", lambda row: row.ranked.plan.inside(row.search.cluster.domain),
           key="within_domain", terminal=False),
    Column("step", _step, kind="number"),
    Column("step", lambda row: row.ranked.timing.step, key="step_s", terminal=False),
    Column("90 % interval of the step", Row.interval, key="step_interval_s", terminal=False),
    Column("estimated step", lambda row: row.ranked.estimated.step, key="estimated_step_s",
           terminal=False),
    Column("simulated", lambda row: row.ranked.simulated is not None, key="simulated",
           terminal=False),
    Column("isolated", lambda row: row.ranked.timing.isolated, key="isolated", terminal=False),
    Column("tok/s", lambda row: f"{row.search.tokens_per_second(row.ranked.timing):,.0f}",
           kind="number"),
    Column("tokens/s/GPU", lambda row: row.search.tokens_per_second(row.ranked.timing),
           key="tokens_per_s_per_gpu", terminal=False),
    Column("TF/s", lambda row: f"{row.search.flops_per_second(row.ranked.timing) / 1e12:,.0f}",
           kind="number"),
    Column("FLOP/s/GPU", lambda row: row.search.flops_per_second(row.ranked.timing),
           key="flops_per_s_per_gpu", terminal=False),
    Column("MFU", lambda row: row.search.mfu(row.ranked.timing), format_share, key="mfu"),
    Column("compute", lambda row: row.ranked.timing.compute, key="compute_s", terminal=False),
    Column("GB", _memory, key="memory_bytes", kind="number",
           terminal=lambda memory: f"{memory['total'] / 1e9:.0f}"),
    Column("exposed", _shares),
    Column("bubble", lambda row: row.ranked.timing.idle, key="bubble_s", terminal=False),
    Column("update", lambda row: row.ranked.timing.update, key="update_s", terminal=False),
    Column("exposed", lambda row: dict(row.ranked.timing.exposed), key="exposed_s",
           terminal=False),
)  # fmt: skip
"""The quantities of a plan; times in seconds."""


def _distinct(plans: Sequence[Ranked]) -> list[Ranked]:
    """Returns the fastest of the plans that differ only in the order of their groups."""
    found: dict[object, Ranked] = {}
    for one in plans:
        same = replace(one.plan, kinds=replace(one.plan.kinds, order=ORDER))
        found.setdefault(same, one)
    return list(found.values())


def plan_view(search: PlanSearch, top: int) -> View:
    """Returns what a search of parallelisations shows.

    Args:
        search: The search.
        top: The number of plans to list.
    """
    cluster, model, batch = search.cluster, search.model, search.batch
    tokens = Pieces(model).decoder.tokens
    sequences = f"{batch:,} sequences of {tokens:,} tokens, {cluster.precision}"
    rows = [Row(search, ranked) for ranked in _distinct(search.fitting)[:top]]
    texts = list(explained(search))
    caption = _CAPTION + _ISOLATED * any(row.ranked.timing.isolated for row in rows)
    caption += _REPLICAS * any(_replicas(row.ranked.plan) != _SHORT["data"] for row in rows)
    caption += _EXPERTS * any(row.ranked.plan.kinds.undivided_experts for row in rows)
    return View(
        headline=Fact("", f"{model.name} on {cluster.gpus:,} {cluster.npu.name}, {sequences}"),
        facts=json_facts(
            model=model.name,
            gpus=cluster.gpus,
            npu=cluster.npu.name,
            precision=cluster.precision,
            batch_sequences=batch,
            capacity_bytes=cluster.capacity,
            exceeding_plans=len(search.exceeding),
            explanations=texts,
        ),
        tables=[ReportTable(PLANS, rows, caption=caption)],
        data=[Data("plans", lambda: records_of(PLANS, rows))],
        below=[*texts, f"\n{table_of(search.fitting[0])}"],
    )
