"""Plans are verified from their bytes: checksums do not detect wrong schedules."""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from tutti import algorithms, schedule
from tutti.mpi import code, proof
from tutti.mpi.errors import PlanError
from tutti.mpi.plan import COLLECTIVES, CollectivePlan, PlannedSchedule, Rule
from tutti.mpi.planned import MOVES_CHUNKS, SAME_ON_ALL, SAME_ORDER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RANKS = 3


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUTTI_CACHE", str(tmp_path / "cache"))


def plan_of(*planned: PlannedSchedule) -> CollectivePlan:
    return CollectivePlan([Rule(one.collective, one.ranks, one) for one in planned])


def every() -> Iterator[PlannedSchedule]:
    """Each algorithm for each of its collectives, on few ranks."""
    for algorithm in algorithms():
        for collective in algorithm.collectives:
            ranks = next((n for n in (3, 4, 6) if algorithm.claims(collective, n)), None)
            if ranks is not None and collective in COLLECTIVES:
                one = schedule(algorithm.name, collective=collective, ranks=ranks)
                yield PlannedSchedule.of(one)
    yield PlannedSchedule.of(schedule("forest:pieces=2", ranks=5))


def test_verified_plans_are_verified_from_their_bytes() -> None:
    plan = CollectivePlan.from_bytes(plan_of(*every()).to_bytes())
    proof.prove(plan)
    assert any(one.pending_sends for one in plan.schedules)


def changed(planned: PlannedSchedule, rank: int, at: int, byte: int) -> PlannedSchedule:
    codes = list(planned.codes)
    codes[rank] = codes[rank][:at] + bytes([byte]) + codes[rank][at + 1 :]
    return replace(planned, codes=tuple(codes))


@pytest.mark.parametrize(
    ("name", "collective"),
    [
        ("recursive_doubling", "all_reduce"),
        ("ring", "all_gather"),
        ("pairwise", "reduce_scatter"),
        ("bruck", "all_to_all"),
        ("forest:pieces=2", "all_reduce"),
    ],
)
def test_changed_code_is_refused_or_still_correct(name: str, collective: str) -> None:
    """All checksums are valid: those of the code and the index are computed again."""
    planned = PlannedSchedule.of(schedule(name, ranks=RANKS, collective=collective))
    counts = {"refused": 0, "right": 0}
    for rank in range(RANKS):
        for at, before in enumerate(planned.codes[rank]):
            for byte in {before ^ 1, before ^ 2, (before + 1) % 128, 0} - {before}:
                one = changed(planned, rank, at, byte)
                plan = CollectivePlan.from_bytes(plan_of(one).to_bytes())
                try:
                    proof.prove(plan)
                except PlanError:
                    counts["refused"] += 1
                else:
                    counts["right"] += 1
                    assert contributions(one) == contributions(planned), (rank, at, byte)
    # Rank 0 has the same peers and chunks in every form, and a send may complete later.
    assert counts["refused"] > 8 * counts["right"]


def contributions(planned: PlannedSchedule) -> list[object]:
    """Returns the final slots of each rank; executes all ranks step by step, without the core."""
    programs = [planned.steps(rank) for rank in range(planned.ranks)]
    chunks, each = planned.chunks, planned.chunks // planned.ranks
    holds: list[dict[tuple[int, int], tuple[object, ...]]] = []
    for rank in range(planned.ranks):
        mine = range(rank * each, (rank + 1) * each)
        given = mine if planned.collective == "all_gather" else range(chunks)
        holds.append({(0, chunk): ((rank, chunk),) for chunk in given})
    sent: dict[tuple[int, int], list[list[tuple[object, ...]]]] = {}
    at, started = [0] * planned.ranks, [False] * planned.ranks
    moved = True
    while moved:
        moved = False
        for rank, steps in enumerate(programs):
            if at[rank] == len(steps):
                continue
            step, slots = steps[at[rank]], holds[rank]
            if not started[rank]:
                for peer, slot, first, count in step.sends:
                    values = [slots[slot, c] for c in range(first, first + count)]
                    sent.setdefault((rank, peer), []).append(values)
                started[rank] = moved = True
            expected = [message.peer for message in step.receives]
            if any(len(sent.get((peer, rank), [])) < expected.count(peer) for peer in expected):
                continue
            for peer, slot, first, _ in step.receives:
                for chunk, value in enumerate(sent[peer, rank].pop(0), first):
                    slots[slot, chunk] = value
            for op in step.local:
                locally(slots, op)
            at[rank], started[rank], moved = at[rank] + 1, False, True
    assert at == [len(steps) for steps in programs], "it deadlocks"
    return [result(planned, rank, slots) for rank, slots in enumerate(holds)]


def locally(slots: dict[tuple[int, int], tuple[object, ...]], op: code.Fold | code.Copy) -> None:
    if isinstance(op, code.Copy):
        values = [slots[op.slot, op.first + i] for i in range(op.chunks)]
        slots.update({(op.into, op.to + i): value for i, value in enumerate(values)})
        return
    for chunk in range(op.first, op.first + op.chunks):
        folded = [part for slot in op.operands for part in slots[slot, chunk]]
        slots[op.into, chunk] = tuple(sorted(folded, key=str))


def result(
    planned: PlannedSchedule, rank: int, slots: dict[tuple[int, int], tuple[object, ...]]
) -> object:
    each = planned.chunks // planned.ranks
    scattered = planned.collective == "reduce_scatter"
    chunks = range(rank * each, (rank + 1) * each) if scattered else range(planned.chunks)
    return [slots[planned.result, chunk] for chunk in chunks]


@pytest.mark.parametrize(
    ("name", "collective", "flags"),
    [
        ("dissemination", "all_reduce", SAME_ON_ALL),
        ("ring", "all_reduce", 1),
        ("dissemination", "all_reduce", SAME_ORDER),
    ],
)
def test_too_strong_flags_are_refused(name: str, collective: str, flags: int) -> None:
    planned = PlannedSchedule.of(schedule(name, ranks=RANKS, collective=collective))
    proof.prove(plan_of(planned))
    with pytest.raises(PlanError, match="its flags are") as caught:
        proof.prove(plan_of(replace(planned, flags=planned.flags | flags)))
    assert caught.value.kind == "wrong"


def test_missing_moves_chunks_flag_is_refused() -> None:
    planned = PlannedSchedule.of(schedule("bruck", ranks=RANKS, collective="all_to_all"))
    without = replace(planned, flags=planned.flags & ~MOVES_CHUNKS)
    with pytest.raises(PlanError):
        proof.prove(plan_of(without))


def test_sends_that_complete_too_early_are_refused() -> None:
    planned = PlannedSchedule.of(schedule("forest:pieces=2", ranks=5))
    programs = [planned.steps(rank) for rank in range(planned.ranks)]
    hasty = [[replace(step, delays=(0,) * len(step.sends)) for step in steps] for steps in programs]
    codes = tuple(code.encoded(steps) for steps in hasty)
    with pytest.raises(PlanError, match="deadlock if messages are not buffered"):
        proof.prove(plan_of(replace(planned, codes=codes)))


def test_same_bytes_are_proved_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = plan_of(PlannedSchedule.of(schedule("ring", ranks=RANKS))).write(tmp_path / "a.tutti")
    seen: list[str] = []
    monkeypatch.setattr(proof, "prove", lambda _, source: seen.append(source))
    assert proof.read_proved(path) == CollectivePlan.read(path)
    assert proof.read_proved(path) == CollectivePlan.read(path)
    assert seen == [str(path)]
    data = bytearray(path.read_bytes())
    data[64 + 8] ^= 1  # the smallest size of the rule
    struct.pack_into("<I", data, 12, zlib.crc32(data[16 : int.from_bytes(data[24:32], "little")]))
    path.write_bytes(data)
    proof.read_proved(path)
    assert seen == [str(path)] * 2


def test_failed_proofs_are_not_cached(tmp_path: Path) -> None:
    planned = PlannedSchedule.of(schedule("dissemination", ranks=RANKS))
    lying = plan_of(replace(planned, flags=planned.flags | SAME_ON_ALL | SAME_ORDER))
    path = lying.write(tmp_path / "a.tutti")
    for _ in range(2):
        with pytest.raises(PlanError, match=f"{path}: a schedule fails verification"):
            proof.read_proved(path)


def test_code_sections_are_contiguous() -> None:
    """Contiguous sections leave no byte without a checksum."""
    data = plan_of(*every()).to_bytes()
    _, at, rules, schedules = struct.unpack_from("<QQII", data, 24)
    for number in range(schedules):
        entry = 64 + 32 * rules + 48 * number
        (ranks,) = struct.unpack_from("<I", data, entry + 4)
        (table,) = struct.unpack_from("<Q", data, entry + 40)
        offsets = struct.unpack_from(f"<{ranks + 1}Q", data, table)
        assert offsets[0] == at
        assert all(start <= end for start, end in pairwise(offsets))
        at = offsets[-1]
    assert at == len(data)
