"""What a captured step shows: operators, exchanges and memory of each captured rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.training.capture.record import MEMORY_KINDS, MemoryKind
from tutti.training.capture.summary import Amount, Held, Memory, Sent, amounts, modules, peak, sent
from tutti.view.quantity import count, format_size, plural
from tutti.view.tables import Column, ReportTable, records_of
from tutti.view.view import Data, Fact, View, json_facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tutti.training.capture.record import CapturedStep

__all__ = ["capture_view", "memory_tables"]

_AMOUNTS: tuple[Column[Amount], ...] = (
    Column("rank", lambda row: row.rank, key="rank"),
    Column("phase", lambda row: row.phase, key="phase"),
    Column("operators", lambda row: row.kind, key="kind"),
    Column("count", lambda row: row.count, count, key="count"),
    Column("FLOPs", lambda row: row.flops, lambda flops: f"{flops / 1e12:,.3f} TFLOP", key="flops"),
    Column("memory traffic", lambda row: row.bytes, format_size, key="bytes"),
)
_SENT: tuple[Column[Sent], ...] = (
    Column("rank", lambda row: row.rank, key="rank"),
    Column("exchange", lambda row: row.collective, key="collective"),
    Column("process group", lambda row: row.group, key="group"),
    Column("ranks", lambda row: row.ranks, count, key="ranks"),
    Column("count", lambda row: row.count, count, key="count"),
    Column("payload", lambda row: row.bytes, format_size, key="bytes"),
)


def _of_kind(kind: MemoryKind) -> Column[Memory]:
    return Column(kind, lambda row: row.kinds.get(kind, 0), format_size, key=f"{kind}_bytes")


_RANK: Column[Memory] = Column("rank", lambda row: row.rank, key="rank")
_PEAK: Column[Memory] = Column("peak", lambda row: row.bytes, format_size, key="bytes")
_MEMORY = (_RANK, _PEAK, *map(_of_kind, MEMORY_KINDS))
_STATES = 3
"""Kinds of the first table of memory: 80 columns of a terminal are too few for all of them."""
_MODULES: tuple[Column[Held], ...] = (
    Column("modules", lambda row: row.module, key="module"),
    Column("hold", lambda row: row.kind, key="kind"),
    Column("memory", lambda row: row.bytes, format_size, key="bytes"),
)
_MOST = 12


def memory_tables(step: CapturedStep) -> list[ReportTable[Memory] | ReportTable[Held]]:
    """Returns tables of the memory at its peak: of each captured rank, and of the first's modules.

    The last one has the largest parts.
    """
    first, *_ = step.roles
    caption = f"the largest parts, of rank {first.rank}; * is any number"
    peaks = [peak(role) for role in step.roles]
    states, others = MEMORY_KINDS[:_STATES], MEMORY_KINDS[_STATES:]
    return [
        ReportTable(
            (_RANK, _PEAK, *map(_of_kind, states)),
            peaks,
            caption="device memory when it is largest: states of the training",
        ),
        ReportTable(
            (_RANK, *map(_of_kind, others)), peaks, caption="the other memory at the same time"
        ),
        ReportTable(_MODULES, modules(first)[:_MOST], caption=caption),
    ]


def capture_view(step: CapturedStep) -> View:
    """Returns what a captured step shows."""
    rows = [row for role in step.roles for row in amounts(role)]
    exchanges = [row for role in step.roles for row in sent(role)]
    memory = [peak(role) for role in step.roles]
    roles = plural(len(step.roles), "captured rank")
    return View(
        headline=Fact("", f"{step.script}: {roles} of {step.world_size:,}, torch {step.torch}"),
        facts=json_facts(
            script=step.script, world_size=step.world_size, torch=step.torch,
            ranks=[role.rank for role in step.roles], seconds=round(step.seconds, 3),
        ),
        tables=[
            ReportTable(_AMOUNTS, rows),
            ReportTable(_SENT, exchanges),
            *memory_tables(step),
        ],
        data=[
            Data("operators", lambda: records_of(_AMOUNTS, rows)),
            Data("exchanges", lambda: records_of(_SENT, exchanges)),
            Data("memory", lambda: records_of(_MEMORY, memory)),
        ],
        log=list(_remarks(step)),
    )  # fmt: skip


def _remarks(step: CapturedStep) -> Iterator[str]:
    yield from dict.fromkeys(line for role in step.roles for line in role.remarks)
    if step.world_size > 1 and not any(one for role in step.roles for one in role.exchanges):
        yield (
            "the captured ranks exchange nothing: wrap the model in DDP or FSDP, or name ranks of "
            "the process groups with --only-ranks"
        )
    if step.compiled:
        yield "the program calls torch.compile: operators between products count as fused"
