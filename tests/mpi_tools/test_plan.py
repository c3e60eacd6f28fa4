"""Plan files: written, read back, and refused if damaged."""

from __future__ import annotations

import contextlib
import struct
import zlib
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tutti import Schedule, ScheduleBuilder, algorithms, schedule
from tutti.mpi import code
from tutti.mpi.code import Copy, Fold, Message, PlannedStep
from tutti.mpi.errors import PlanError
from tutti.mpi.plan import COLLECTIVES, CollectivePlan, PlannedSchedule, Rule
from tutti.mpi.plan_file import VERSION
from tutti.schedules.errors import VerificationError

if TYPE_CHECKING:
    from pathlib import Path

EXCHANGE = schedule("recursive_doubling", ranks=2)
HEAD = 64
"""The size in bytes."""


def small() -> CollectivePlan:
    return CollectivePlan([Rule("all_reduce", 2, EXCHANGE, (8, 1024))], {"made": "here"})


def checked(body: bytes) -> bytes:
    """The body of a file, from byte 16 on, behind its head, with checksums that fit."""
    data = bytearray(struct.pack("<8sII", b"TUTTIPLN", VERSION, 0) + body)
    if len(data) >= HEAD:
        index, parts_end, rules, schedules = struct.unpack_from("<QQII", data, 24)
        index = min(index, len(data))
        for entry in range(
            HEAD + 32 * rules, min(HEAD + 32 * rules + 48 * schedules, index - 47), 48
        ):
            put_checksums(data, (index, parts_end), entry)
        struct.pack_into("<I", data, 12, zlib.crc32(data[16:index]))
    return bytes(data)


def put_checksums(data: bytearray, parts: tuple[int, int], entry: int) -> None:
    """Corrects the checksums of the code of one schedule, within the file."""
    index, parts_end = parts
    (ranks,) = struct.unpack_from("<I", data, entry + 4)
    (table,) = struct.unpack_from("<Q", data, entry + 40)
    if table + 12 * ranks + 8 > index:
        return
    offsets = struct.unpack_from(f"<{ranks + 1}Q", data, table)
    for rank, (start, end) in enumerate(pairwise(offsets)):
        place = table + 8 * (ranks + 1) + 4 * rank
        runs = bytes(data[start:end])
        checksum = zlib.crc32(runs)
        numbers = code.numbers(runs) or []
        for at, size in zip(numbers[::2], numbers[1::2], strict=False):
            checksum = zlib.crc32(data[index:parts_end][at : at + size], checksum)
        struct.pack_into("<I", data, place, checksum)


def test_the_bytes_of_a_small_plan() -> None:
    # One step: send slot 0 to the other, receive into slot 1, fold both into slot 0. Rank 0 has the
    # smaller contribution itself and folds (0, 1); rank 1 folds (1, 0). Peers are one rank further.
    name, output = b"recursive_doubling", b"{}"
    steps = [
        bytes([20, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 0, 1, 0, 0, 0, 1, 2, *operands])
        for operands in ((0, 1), (1, 0))
    ]
    parts = bytes([1, *steps[0], *steps[1]])
    runs = [bytes([0, 22]), bytes([0, 1, 22, 21])]
    text_at = HEAD + 32 + 48
    name_at = text_at + len(output)
    table_at = name_at + len(name)
    parts_at = table_at + 8 * 3 + 4 * 2
    start_at = parts_at + len(parts)
    middle, end = start_at + len(runs[0]), start_at + len(runs[0]) + len(runs[1])
    # Flags: rank order, writes the data slot, same bits on all ranks, same order on all ranks.
    flags = 1 + 4 + 8 + 32
    sums = [zlib.crc32(run + bytes([1, *step])) for run, step in zip(runs, steps, strict=True)]
    body = (
        struct.pack("<QQQIIQQ", end, parts_at, start_at, 1, 1, text_at, len(output))
        + struct.pack("<IIQQII", 0, 2, 8, 1024, 0, 0)
        + struct.pack("<IIIIIIQQQ", 0, 2, 1, 2, 0, flags, name_at, len(name), table_at)
        + output
        + name
        + struct.pack("<QQQII", start_at, middle, end, *sums)
        + parts
        + b"".join(runs)
    )
    assert CollectivePlan([Rule("all_reduce", 2, EXCHANGE, (8, 1024))]).to_bytes() == checked(body)


def every() -> list[tuple[str, str]]:
    return [
        (entry.name, collective)
        for entry in algorithms()
        for collective in entry.collectives
        if collective in COLLECTIVES
    ]


@pytest.mark.parametrize(("name", "collective"), every())
def test_every_algorithm_round_trips(name: str, collective: str) -> None:
    entry = next(one for one in algorithms() if one.name == name)
    counts = [n for n in range(2, 17) if entry.claims(collective, n)]
    assert counts
    laid_out = [schedule(name, ranks=n, collective=collective) for n in counts]
    plan = CollectivePlan([Rule(collective, one.ranks, one) for one in laid_out], {"n": counts})
    again = CollectivePlan.from_bytes(plan.to_bytes())
    assert again == plan
    for one, planned in zip(laid_out, again.schedules, strict=True):
        assert rebuilt(planned).verify() == one.verify() or carries_more(one)
        assert messages(planned) == one.verify().messages
        programs = [planned.steps(rank) for rank in range(planned.ranks)]
        assert planned.moves_chunks == (one.moves_chunks or code.shifted(programs))
        written = [step.writes_data for steps in programs for step in steps]
        assert planned.writes_data == any(written)


def carries_more(one: Schedule) -> bool:
    """Whether a plan replaces its ops by others: multicasts and combines."""
    proof = one.verify()
    return bool(proof.multicasts or proof.combines)


def messages(planned: PlannedSchedule) -> int:
    return sum(len(step.sends) for rank in range(planned.ranks) for step in planned.steps(rank))


def rebuilt(planned: PlannedSchedule) -> Schedule:
    """A schedule rebuilt from a plan's numbers, to be verified again."""
    builder = ScheduleBuilder(
        planned.collective, ranks=planned.ranks, chunks=planned.chunks, result=planned.result
    )
    for rank in range(planned.ranks):
        program = builder.rank(rank)
        for step in planned.steps(rank):
            program.step()
            for send in step.sends:
                program.send(send.peer, slot=send.slot, chunks=run(send))
            for recv in step.receives:
                program.recv(recv.peer, slot=recv.slot, chunks=run(recv))
            for op in step.local:
                if isinstance(op, Fold):
                    program.reduce(op.into, op.operands, chunks=run(op))
                else:
                    program.copy(op.slot, op.into, chunks=run(op), to=op.to)
    return builder.build()


def run(op: Message | Fold | Copy) -> tuple[int, int]:
    return op.first, op.first + op.chunks


def test_in_network_ops_are_lowered_to_messages() -> None:
    planned = PlannedSchedule.of(schedule("in_network", ranks=3))
    root, leaf = planned.steps(0), planned.steps(1)
    assert root[0].receives == (Message(1, 1, 0, 1), Message(2, 2, 0, 1))
    assert root[0].local == (Fold(0, 0, 1, (0, 1, 2)),)
    assert root[1].sends == (Message(1, 0, 0, 1), Message(2, 0, 0, 1))
    assert leaf[0].sends == (Message(0, 0, 0, 1),)
    assert leaf[1].receives == (Message(0, 0, 0, 1),)


@pytest.mark.parametrize(
    ("name", "collective", "known"),
    [
        ("recursive_doubling", "all_reduce", (True, False, True, True)),
        ("ring", "all_reduce", (False, False, True, True)),
        ("ring", "all_to_all", (False, True, False, False)),
        ("dissemination", "barrier", (False, False, None, False)),
    ],
)
def test_planned_schedule_has_the_proved_properties(
    name: str, collective: str, known: tuple[Any, ...]
) -> None:
    one = schedule(name, ranks=4, collective=collective)
    planned = PlannedSchedule.of(one)
    proof = one.verify()
    assert (planned.rank_order, planned.same_on_all_ranks) == (
        proof.rank_order,
        proof.same_on_all_ranks,
    )
    assert planned.moves_chunks == one.moves_chunks == known[1]
    if known[2] is not None:
        assert planned.writes_data == known[2]
    if collective == "all_reduce":
        assert (planned.rank_order, planned.same_on_all_ranks) == (known[0], known[3])


def test_a_wrong_schedule_is_not_planned() -> None:
    builder = ScheduleBuilder("all_reduce", ranks=2)
    for rank in range(2):
        builder.rank(rank).send(1 - rank).recv(1 - rank, slot=1)
    with pytest.raises(VerificationError):
        CollectivePlan([Rule("all_reduce", 2, builder.build())])


def test_compute_ops_are_refused() -> None:
    builder = ScheduleBuilder("all_reduce", ranks=2)
    for rank in range(2):
        builder.rank(rank).send(1 - rank).recv(1 - rank, slot=1).reduce(0, [0, 1]).compute("1 us")
    with pytest.raises(PlanError, match="compute op of rank 0") as caught:
        CollectivePlan([Rule("all_reduce", 2, builder.build())])
    assert caught.value.kind == "op"


def test_rooted_schedules_need_root_0() -> None:
    one = schedule("binomial", ranks=4, collective="broadcast", root=2)
    with pytest.raises(PlanError, match="root 2") as caught:
        CollectivePlan([Rule("broadcast", 4, one)])
    assert caught.value.kind == "root"


@pytest.mark.parametrize(
    ("collective", "ranks", "sizes", "output"),
    [
        ("allreduce", 2, (0, None), "unknown collective `allreduce`"),
        ("broadcast", 2, (0, None), "a rule for broadcast on 2 ranks with schedule"),
        ("all_reduce", 3, (0, None), "performs all_reduce on 2"),
        ("all_reduce", 2, (-1, None), "-1 to None bytes"),
        ("all_reduce", 2, (5, 4), "5 to 4 bytes"),
        ("all_reduce", 2, (0, 2**64), "below 2\\^64"),
    ],
)
def test_rules_without_matching_calls_are_refused(
    collective: str, ranks: int, sizes: tuple[int, int | None], output: str
) -> None:
    with pytest.raises(PlanError, match=output) as caught:
        Rule(collective, ranks, EXCHANGE, sizes)
    assert caught.value.kind == "rule"


def test_a_plan_has_rules() -> None:
    with pytest.raises(PlanError) as caught:
        CollectivePlan([])
    assert caught.value.kind == "empty"


def test_first_matching_rule_is_used() -> None:
    ring, direct = schedule("ring", ranks=4), schedule("direct", ranks=4)
    plan = CollectivePlan([Rule("all_reduce", 4, direct, (0, 4096)), Rule("all_reduce", 4, ring)])
    found = [plan.find("all_reduce", 4, size) for size in (0, 4096, 4097)]
    assert [rule and rule.schedule.name for rule in found] == ["direct", "direct", "ring"]
    assert plan.find("all_reduce", 5, 8) is None
    assert plan.find("broadcast", 4, 8) is None


def test_a_schedule_is_stored_once_in_its_file() -> None:
    ring = schedule("ring", ranks=4)
    once = CollectivePlan([Rule("all_reduce", 4, ring)])
    again = schedule("ring", ranks=4)
    twice = CollectivePlan(
        [Rule("all_reduce", 4, ring, (0, 10)), Rule("all_reduce", 4, again, (11, None))]
    )
    assert len(twice.schedules) == 1
    assert len(twice.to_bytes()) == len(once.to_bytes()) + 32


@pytest.mark.parametrize(
    ("name", "collective", "ranks", "distinct"),
    [
        ("ring", "all_reduce", 64, 1),
        ("ring", "all_gather", 33, 1),
        ("pairwise", "reduce_scatter", 64, 1),
        ("pairwise", "all_to_all", 33, 1),
        ("dissemination", "barrier", 33, 1),
        ("scatter_all_gather", "broadcast", 64, 7),
    ],
)
def test_ranks_share_code(name: str, collective: str, ranks: int, distinct: int) -> None:
    planned = PlannedSchedule.of(schedule(name, ranks=ranks, collective=collective))
    assert len(set(planned.codes)) == distinct


@pytest.mark.parametrize(
    ("one", "other", "most"),
    [
        (("ring", "all_gather"), ("scatter_all_gather", "broadcast"), 1_000),
        (("bruck", "all_to_all"), ("pairwise", "all_to_all"), 10_000),
    ],
)
def test_rules_share_code(one: tuple[str, str], other: tuple[str, str], most: int) -> None:
    """A plan of 64 ranks has parts of code that are not in a plan with one of its rules."""

    def size(*names: tuple[str, str]) -> int:
        rules = [Rule(c, 64, schedule(name, ranks=64, collective=c)) for name, c in names]
        index, parts_end = struct.unpack_from("<QQ", CollectivePlan(rules).to_bytes(), 24)
        return int(parts_end - index)

    assert size(one, other) - size(one) < most


def test_plan_can_be_built_from_another() -> None:
    first = CollectivePlan.from_bytes(small().to_bytes())
    assert CollectivePlan(first.rules, first.provenance).to_bytes() == first.to_bytes()


# --- files ----------------------------------------------------------------------------------------


def test_a_file_is_written_and_read(tmp_path: Path) -> None:
    path = small().write(tmp_path / "plan.tutti")
    assert CollectivePlan.read(path) == small()
    assert [p.name for p in tmp_path.iterdir()] == ["plan.tutti"]


def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="cannot be read") as caught:
        CollectivePlan.read(tmp_path / "none.tutti")
    assert caught.value.kind == "unreadable"
    with pytest.raises(PlanError, match="cannot be written") as caught:
        small().write(tmp_path / "no folder" / "plan.tutti")
    assert caught.value.kind == "unwritable"


@pytest.mark.parametrize(
    ("data", "kind", "output"),
    [
        (b"", "no_plan", "starts with TUTTIPLN"),
        (b"[package]\n", "no_plan", "starts with TUTTIPLN"),
        (small().to_bytes()[:5], "truncated", "truncated after 5 bytes"),
        (small().to_bytes()[:40], "truncated", "truncated after 40 bytes"),
        (small().to_bytes()[:-1], "truncated", "expected"),
        (small().to_bytes() + b"\0", "corrupted", "1 bytes follow its end"),
        (small().to_bytes()[:8] + b"\5\0\0\0" + small().to_bytes()[12:], "version", "version 5"),
        (small().to_bytes()[:8] + b"\3\0\0\0" + small().to_bytes()[12:], "version", "version 3"),
        (small().to_bytes()[:-1] + b"\7", "corrupted", "checksum"),
    ],
)
def test_damaged_files_are_distinguished(data: bytes, kind: str, output: str) -> None:
    with pytest.raises(PlanError, match=output) as caught:
        CollectivePlan.from_bytes(data, source="a.tutti")
    assert caught.value.kind == kind
    assert str(caught.value).startswith("a.tutti: ")


def read_through(data: bytes) -> None:
    """Reads the complete content of a file."""
    plan = CollectivePlan.from_bytes(data)
    for one in plan.schedules:
        for rank in range(one.ranks):
            one.steps(rank)


DATA = CollectivePlan(
    [
        Rule("all_reduce", 3, schedule("ring", ranks=3)),
        Rule("all_to_all", 2, schedule("bruck", ranks=2, collective="all_to_all"), (1, 99)),
    ],
    {"name": "\u00e9"},
).to_bytes()


def test_every_changed_byte_is_detected() -> None:
    for place in range(len(DATA)):
        for bit in (1, 128):
            damaged = bytearray(DATA)
            damaged[place] ^= bit
            with pytest.raises(PlanError):
                CollectivePlan.from_bytes(bytes(damaged))


def test_every_truncation_is_detected() -> None:
    for length in range(len(DATA)):
        with pytest.raises(PlanError):
            CollectivePlan.from_bytes(DATA[:length])


@settings(max_examples=500)
@given(
    st.lists(
        st.tuples(st.integers(16, len(DATA) - 1), st.integers(0, 255)), min_size=1, max_size=6
    ),
    st.integers(0, 3),
)
def test_invalid_numbers_with_valid_checksums_are_refused(
    changes: list[tuple[int, int]], cut: int
) -> None:
    damaged = bytearray(DATA)
    for place, byte in changes:
        damaged[place] = byte
    body = bytes(damaged[16 : len(damaged) - cut])
    with contextlib.suppress(PlanError):
        read_through(checked(body))


@settings(max_examples=300)
@given(st.binary(max_size=400))
def test_random_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(PlanError):
        CollectivePlan.from_bytes(data)
    with pytest.raises(PlanError):
        CollectivePlan.from_bytes(checked(data))


@settings(max_examples=300)
@given(st.binary(max_size=40))
def test_random_code_is_refused_or_within_bounds(data: bytes) -> None:
    one = PlannedSchedule("x", "all_reduce", 4, 3, 2, 0, 0, (data,) * 4)
    steps: list[PlannedStep] = []
    with contextlib.suppress(PlanError):
        steps = one.steps(0)
    for step in steps:
        for message in (*step.sends, *step.receives):
            assert message.peer in {1, 2, 3}
            assert message.slot < 2
            assert 0 < message.chunks <= 3 - message.first
        for op in step.local:
            slots = op.operands if isinstance(op, Fold) else (op.slot,)
            assert {op.into, *slots} <= {0, 1}
            assert 0 < op.chunks <= 3 - op.first


@pytest.mark.parametrize(("at", "value"), [(8, 2**28 + 1), (12, 2**20 + 1), (12, 2**32 - 1)])
def test_more_chunks_or_slots_than_a_plan_has_are_refused(at: int, value: int) -> None:
    data = bytearray(small().to_bytes())
    struct.pack_into("<I", data, HEAD + 32 + at, value)
    with pytest.raises(PlanError, match="schedule 0 has an invalid"):
        CollectivePlan.from_bytes(checked(bytes(data[16:])))


def test_a_schedule_with_more_slots_than_a_plan_has_is_not_planned() -> None:
    builder = ScheduleBuilder("all_reduce", ranks=2)
    for rank in range(2):
        builder.rank(rank).send(1 - rank).recv(1 - rank, slot=2**20).reduce(0, [0, 2**20])
    with pytest.raises(PlanError, match="1048577 slots: expected at most 1048576") as caught:
        PlannedSchedule.of(builder.build())
    assert caught.value.kind == "too_large"


def test_copies_between_chunks_need_the_moves_chunks_flag() -> None:
    # One step with one local op: a copy of chunk 0 of slot 0 to chunk 1 of slot 1.
    moving = bytes([1, 9, 0, 0, 1, 1, 0, 1, 0, 1, 1])
    for flags in (0, 2):
        one = PlannedSchedule("x", "all_reduce", 2, 2, 2, 0, flags, (moving,) * 2)
        if flags:
            assert one.steps(0)[0].local == (Copy(0, 1, 0, 1, 1),)
        else:
            with pytest.raises(PlanError, match="copies chunk 0 to 1, but"):
                one.steps(0)


def test_receiving_as_another_chunk_sets_moves_chunks() -> None:
    """Rank 1 stores a chunk in place of another, which may be longer, and forwards it."""
    builder = ScheduleBuilder("broadcast", ranks=3, chunks=2)
    builder.rank(0).send(1, chunk=0).send(1, chunks=(0, 2)).send(2, chunk=1)
    builder.rank(1).recv(0, chunk=1, slot=1).recv(0, chunks=(0, 2)).send(2, chunk=1, slot=1)
    builder.rank(2).recv(0, chunk=1).recv(1, chunk=0)
    assert PlannedSchedule.of(builder.build()).moves_chunks


def test_an_unknown_flag_is_refused() -> None:
    data = bytearray(small().to_bytes())
    struct.pack_into("<I", data, HEAD + 32 + 20, 64)
    with pytest.raises(PlanError, match="schedule 0 has an invalid"):
        CollectivePlan.from_bytes(checked(bytes(data[16:])))


@pytest.mark.parametrize(("delay", "good"), [(0, True), (1, True), (2, False), (200, False)])
def test_send_completes_at_the_end_at_the_latest(delay: int, good: bool) -> None:
    # One step, one send of chunk 0 of slot 0 to rank 1.
    number = code.leb128([delay])
    data = bytes([1, 8 + len(number), 1, 0, 0, 0, 1, 0, 0, 1, *number])
    one = PlannedSchedule("x", "all_reduce", 2, 1, 1, 0, 16, (data,) * 2)
    if good:
        assert one.steps(0)[0].delays == (delay,)
    else:
        with pytest.raises(PlanError, match=f"names step {delay} of 2"):
            one.steps(0)


def test_collectives_keep_their_numbers() -> None:
    assert COLLECTIVES == (
        "all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce",
        "gather", "scatter", "all_to_all", "barrier",
    )  # fmt: skip


@pytest.mark.parametrize("name", ["ring", "direct", "recursive_multiplying"])
def test_plans_of_many_ranks_round_trip(name: str) -> None:
    plan = CollectivePlan([Rule("all_reduce", 64, schedule(name, ranks=64))])
    again = CollectivePlan.from_bytes(plan.to_bytes())
    assert messages(again.schedules[0]) == schedule(name, ranks=64).verify().messages
