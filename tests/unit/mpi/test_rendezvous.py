"""Steps that wait for their messages never wait for one another."""

from __future__ import annotations

import pytest

from tutti import ScheduleBuilder, algorithms, schedule
from tutti.errors import PlanError
from tutti.mpi import code
from tutti.mpi.code import Message, PlannedStep
from tutti.mpi.plan import PlannedSchedule
from tutti.mpi.rendezvous import joined, needs_buffers

SEND = Message(1, 0, 0, 1)


def test_sends_alone_join_the_next_step() -> None:
    first, last = Message(1, 0, 0, 2), Message(1, 0, 2, 1)
    elsewhere = Message(1, 1, 0, 2)
    steps = [PlannedStep((first,), (), ()), PlannedStep((last,), (elsewhere,), ())]
    assert joined(steps) == [PlannedStep((first, last), (elsewhere,), ())]


def test_what_was_sent_is_not_overwritten() -> None:
    steps = [
        PlannedStep((Message(1, 0, 0, 2),), (), ()),
        PlannedStep((), (Message(1, 0, 1, 1),), ()),
    ]
    assert joined(steps) == steps


def test_two_that_send_before_they_receive_need_buffers() -> None:
    steps = [PlannedStep((SEND,), (), ()), PlannedStep((), (SEND._replace(slot=1),), ())]
    send, recv = SEND._replace(peer=0), SEND._replace(peer=0, slot=1)
    mirrored = [PlannedStep((send,), (), ()), PlannedStep((), (recv,), ())]
    assert needs_buffers([steps, mirrored])
    assert not needs_buffers([joined(steps), joined(mirrored)])


@pytest.mark.parametrize("collective", ["reduce_scatter", "all_gather"])
@pytest.mark.parametrize("ranks", [2, 5, 17])
def test_a_forest_of_pieces_stands_in_a_plan(collective: str, ranks: int) -> None:
    pieces = schedule("forest:pieces=2", collective=collective, ranks=ranks)
    assert not pieces.verify().rendezvous_safe
    planned = PlannedSchedule.of(pieces)
    assert not needs_buffers([planned.steps(rank) for rank in range(ranks)])


def test_an_all_reduce_of_pieces_needs_buffers_nevertheless() -> None:
    with pytest.raises(PlanError, match="forest:pieces=2: ranks send what others do not expect"):
        PlannedSchedule.of(schedule("forest:pieces=2", ranks=4))


def test_it_agrees_with_the_proof() -> None:
    for algorithm in algorithms():
        for collective in algorithm.collectives:
            if algorithm.claims(collective, 6):
                one = schedule(algorithm.name, collective=collective, ranks=6)
                programs = [code.lowered(one, rank) for rank in range(6)]
                assert needs_buffers(programs) != one.verify().rendezvous_safe


def test_a_schedule_that_needs_buffers_is_refused() -> None:
    builder = ScheduleBuilder("all_reduce", ranks=2)
    for rank in range(2):  # what is sent is folded into before the other one looks for it
        program = builder.rank(rank).send(1 - rank).step().copy(0, 1)
        program.step().recv(1 - rank, slot=2).reduce(0, [1, 2])
    with pytest.raises(PlanError) as caught:
        PlannedSchedule.of(builder.build())
    assert caught.value.kind == "buffers"
