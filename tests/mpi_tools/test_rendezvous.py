"""Steps that wait for their messages never deadlock."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tutti import ScheduleBuilder, algorithms, schedule
from tutti.mpi import code
from tutti.mpi.code import Fold, Message, PlannedStep
from tutti.mpi.lowering import Lowering
from tutti.mpi.plan import CollectivePlan, PlannedSchedule, Rule
from tutti.mpi.rendezvous import deferred, joined, needs_buffers

if TYPE_CHECKING:
    from random import Random

    from tutti import Schedule

SEND = Message(1, 0, 0, 1)


def lowered(one: Schedule) -> list[list[PlannedStep]]:
    """The steps of all ranks, before any are joined or deferred."""
    shape = (one.ranks, one.slots, one.chunks, one.name)
    return [
        code.decoded(data, code.Bounds(rank, *shape, moves_chunks=True))
        for rank, data in enumerate(Lowering(one).codes)
    ]


def test_sends_alone_join_the_next_step() -> None:
    first, last = Message(1, 0, 0, 2), Message(1, 0, 2, 1)
    elsewhere = Message(1, 1, 0, 2)
    steps = [PlannedStep((first,), (), ()), PlannedStep((last,), (elsewhere,), ())]
    assert joined(steps) == [PlannedStep((first, last), (elsewhere,), ())]


def test_pending_send_is_not_overwritten() -> None:
    steps = [
        PlannedStep((Message(1, 0, 0, 2),), (), ()),
        PlannedStep((), (Message(1, 0, 1, 1),), ()),
    ]
    assert joined(steps) == steps


def test_mutual_sends_before_receives_need_buffers() -> None:
    steps = [PlannedStep((SEND,), (), ()), PlannedStep((), (SEND._replace(slot=1),), ())]
    send, recv = SEND._replace(peer=0), SEND._replace(peer=0, slot=1)
    mirrored = [PlannedStep((send,), (), ()), PlannedStep((), (recv,), ())]
    assert needs_buffers([steps, mirrored])
    assert not needs_buffers([joined(steps), joined(mirrored)])


@pytest.mark.parametrize("collective", ["reduce_scatter", "all_gather"])
@pytest.mark.parametrize("ranks", [2, 5, 17])
def test_plan_accepts_a_forest_with_pieces(collective: str, ranks: int) -> None:
    pieces = schedule("forest:pieces=2", collective=collective, ranks=ranks)
    assert not pieces.verify().rendezvous_safe
    planned = PlannedSchedule.of(pieces)
    assert not needs_buffers([planned.steps(rank) for rank in range(ranks)])


def test_sends_complete_once_their_receives_have_started() -> None:
    """Two ranks send to each other, receive a step later, and fold and send in between."""
    there, back = Message(1, 0, 0, 1), Message(0, 0, 0, 1)
    fold = Fold(1, 0, 1, (0,))
    programs = [
        [PlannedStep((m,), (), (fold,)), PlannedStep((m,), (m,), ()), PlannedStep((), (m,), ())]
        for m in (there, back)
    ]
    assert needs_buffers(programs)
    # Rounds end at 1, 2, 3. A step that starts in round 1 receives the first send, which cannot
    # complete in the step that ends then; a step that starts in round 2 receives the second.
    for steps in deferred(programs):
        assert [step.delays for step in steps] == [(1,), (1,), ()]


def test_sends_received_at_the_end_complete_after_all_steps() -> None:
    sender = [PlannedStep((SEND,), (), ())]
    receiver = [
        PlannedStep((), (), ()),
        PlannedStep((), (), ()),
        PlannedStep((), (SEND._replace(peer=0),), ()),
    ]
    assert [step.delays for step in deferred([sender, receiver])[0]] == [(1,)]


def test_delays_do_not_break_schedules_that_need_none() -> None:
    for name in ("ring", "recursive_doubling", "direct", "double_binary_tree"):
        one = schedule(name, ranks=6)
        assert ends_without_buffers(deferred(lowered(one)))


def test_check_detects_a_deadlock() -> None:
    """Sends that are waited for immediately, before any rank expects them."""
    steps = [PlannedStep((SEND,), (), ()), PlannedStep((), (SEND._replace(slot=1),), ())]
    other = [replace(step, sends=tuple(m._replace(peer=0) for m in step.sends),
                     receives=tuple(m._replace(peer=0) for m in step.receives))
             for step in steps]  # fmt: skip
    assert not ends_without_buffers([steps, other])
    assert ends_without_buffers(deferred([steps, other]))


def ends_without_buffers(programs: list[list[PlannedStep]]) -> bool:
    """Executes all ranks; every send completes only with its receive.

    It is independent of the method that finds delays: a rank enters steps one by one, and leaves
    one once all its receives have been sent and all due sends have been received.
    """
    sent: dict[tuple[int, int], int] = defaultdict(int)
    posted: dict[tuple[int, int], int] = defaultdict(int)
    due: list[dict[int, list[tuple[int, int]]]] = [defaultdict(list) for _ in programs]
    entered, left = [0] * len(programs), [0] * len(programs)

    def enter(rank: int) -> None:
        place, step = entered[rank], programs[rank][entered[rank]]
        entered[rank] += 1
        for message in step.receives:
            posted[message.peer, rank] += 1
        for send, delay in zip(step.sends, step.delays or (0,) * len(step.sends), strict=True):
            sent[rank, send.peer] += 1
            due[rank][place + delay].append((send.peer, sent[rank, send.peer]))

    def leave(rank: int) -> bool:
        place = left[rank]
        last = place == len(programs[rank])
        receives = () if last else programs[rank][place].receives
        there = all(sent[m.peer, rank] >= posted[m.peer, rank] for m in receives)
        gone = all(posted[rank, peer] >= number for peer, number in due[rank][place])
        left[rank] += there and gone
        return there and gone

    moved = True
    while moved:
        moved = False
        for rank, steps in enumerate(programs):
            while left[rank] <= len(steps):
                if entered[rank] == left[rank] < len(steps):
                    enter(rank)
                    moved = True
                if not leave(rank):
                    break
                moved = True
    return all(done == len(steps) + 1 for done, steps in zip(left, programs, strict=True))


@pytest.mark.parametrize("ranks", [2, 3, 4, 8, 13])
@pytest.mark.parametrize("pieces", [2, 3, 5])
def test_plan_accepts_an_all_reduce_with_pieces(ranks: int, pieces: int) -> None:
    planned = PlannedSchedule.of(schedule(f"forest:pieces={pieces}", ranks=ranks))
    programs = [planned.steps(rank) for rank in range(ranks)]
    at_once = [[replace(step, delays=()) for step in steps] for steps in programs]
    assert planned.pending_sends == needs_buffers(at_once)
    assert not needs_buffers(programs)
    assert ends_without_buffers(programs)


@settings(max_examples=60)
@given(random=st.randoms(use_true_random=False), ranks=st.integers(2, 6))
def test_delays_never_deadlock(random: Random, ranks: int) -> None:
    """Messages in any order that buffers permit, in steps of any size."""
    programs = random_programs(random, ranks)
    later = deferred(programs)
    assert ends_without_buffers(later)
    assert not needs_buffers(later)


def random_programs(random: Random, ranks: int) -> list[list[PlannedStep]]:
    """Random sends and receives, one by one; a receive takes a message sent before."""
    events: list[list[tuple[bool, Message]]] = [[] for _ in range(ranks)]
    flying: list[tuple[int, int]] = []
    for _ in range(random.randint(1, 40)):
        source, target = random.sample(range(ranks), 2)
        events[source].append((True, Message(target, 0, 0, 1)))
        flying.append((source, target))
        while flying and random.random() < 0.4:
            source, target = flying.pop(random.randrange(len(flying)))
            events[target].append((False, Message(source, 1, 0, 1)))
    for source, target in flying:
        events[target].append((False, Message(source, 1, 0, 1)))
    return [_in_steps(one, random) for one in events]


def _in_steps(events: list[tuple[bool, Message]], random: Random) -> list[PlannedStep]:
    steps: list[PlannedStep] = []
    while events:
        size = random.randint(1, 4)
        now, events = events[:size], events[size:]
        sends, receives = ([m for is_sent, m in now if is_sent == side] for side in (True, False))
        steps.append(PlannedStep(tuple(sends), tuple(receives), ()))
    return steps


def test_buffering_agrees_with_the_proof() -> None:
    for algorithm in algorithms():
        for collective in algorithm.collectives:
            if algorithm.claims(collective, 6):
                one = schedule(algorithm.name, collective=collective, ranks=6)
                programs = lowered(one)
                assert needs_buffers(programs) != one.verify().rendezvous_safe


def test_plan_accepts_a_schedule_that_needs_buffers() -> None:
    builder = ScheduleBuilder("all_reduce", ranks=2)
    for rank in range(2):  # the fold overwrites sent data before it is received
        program = builder.rank(rank).send(1 - rank).step().copy(0, 1)
        program.step().recv(1 - rank, slot=2).reduce(0, [1, 2])
    plan = CollectivePlan([Rule("all_reduce", 2, builder.build())])
    again = CollectivePlan.from_bytes(plan.to_bytes()).schedules[0]
    assert again == plan.schedules[0]
    assert again.pending_sends
    assert [step.delays for step in again.steps(0)] == [(1,), ()]
