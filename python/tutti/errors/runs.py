"""What goes wrong with what could be read: proofs, simulations, sweeps, reports."""

from __future__ import annotations

from typing import ClassVar

from tutti.errors.base import ExitCode, Kind, TuttiError


class VerificationError(TuttiError):
    """A schedule that does not do what it is meant to do.

    Places are given as (rank, step), waits as (place, rank that is waited for), chunks as (start,
    end) and contributions as (rank, chunk).
    """

    exit_code: ClassVar[ExitCode] = ExitCode.FAILED
    kinds: ClassVar[dict[str, Kind]] = {
        "shape": Kind("The schedule's shape contradicts itself."),
        "part": Kind("One phase of a schedule by itself.", "verify the whole schedule"),
        "too_large": Kind("More than the verifier can hold.", "verify it on fewer ranks"),
        "peer_outside": Kind("An op names a peer that is no rank.", "ranks count from 0"),
        "own_peer": Kind("A rank sends to itself or receives from itself.", "use a copy"),
        "chunks_outside": Kind("An op touches chunks outside the payload.", "chunks count from 0"),
        "slot_outside": Kind("An op touches a slot that does not exist.", "slots count from 0"),
        "no_operands": Kind("A reduce folds nothing.", "name the slots to fold"),
        "named_twice": Kind(
            "A multicast to a rank, or a combine from one, twice.",
            "leave one out, or send the second by itself",
        ),
        "not_combined": Kind(
            "A rank contributes to a combine, and its peer takes the message with a recv.",
            "make it a `send`, or the recv a part of a `combine`",
        ),
        "not_contributed": Kind(
            "A combine takes a message that is sent by itself.", "make the `send` a `contribute`"
        ),
        "unlike_combine": Kind(
            "A member of a combine contributes other chunks than it is of.",
            "let all members contribute the chunks of the combine",
        ),
        "recv_into_send": Kind(
            "A receive writes what a send of the same step reads: MPI forbids it in any order.",
            "receive into another slot and copy it, or, if it answers the send, in the next step",
        ),
        "recvs_overlap": Kind(
            "Two receives of a step write the same place, in an order that nothing determines.",
            "receive into different slots, and copy the one that is to stay",
        ),
        "nothing_there": Kind("An op reads what nothing has written.", "receive or copy it first"),
        "length_mismatch": Kind(
            "A message has more or fewer chunks than its receive.",
            "the k-th send to a rank meets its k-th receive from there",
        ),
        "never_sent": Kind(
            "A receive waits for a message that nobody sends.", "add the send, or drop the receive"
        ),
        "never_received": Kind(
            "A message is sent that nobody receives.", "add the receive, or drop the send"
        ),
        "deadlock": Kind(
            "Ranks wait for each other, whatever is buffered.", "let one of them send first"
        ),
        "not_written": Kind(
            "A rank ends with nothing where a result belongs.", "is the result in another slot?"
        ),
        "wrong_chunk": Kind("A rank ends with another chunk than it should.", "follow the sends"),
        "missing": Kind("A contribution did not arrive.", "follow it from its rank"),
        "doubled": Kind("A contribution was folded in more than once.", "fold each piece once"),
        "foreign": Kind("A contribution is where it does not belong.", "follow it from its rank"),
        "miscounted": Kind(
            "The result holds the wrong contributions.", "verify it on fewer ranks for a place"
        ),
    }


class SimulationError(TuttiError):
    """A simulation that gives no result."""

    exit_code: ClassVar[ExitCode] = ExitCode.FAILED
    kinds: ClassVar[dict[str, Kind]] = {
        "unreceived": Kind(
            "Messages are sent that nobody receives.", "verify() names the schedule's mistake"
        ),
        "no_such_rank": Kind(
            "A message goes to a rank that does not exist.", "verify() names the schedule's mistake"
        ),
        "no_way": Kind(
            "A message between ranks of which no live links lead from one to the other.",
            "the configuration lacks a link: add it, fill idle ports with mesh links, or let the "
            "schedule go over ranks that are joined",
        ),
        "nothing_moved": Kind("The schedule sends no message.", "is it the schedule you meant?"),
        "wrong_layout": Kind(
            "The payload is divided into other chunks than the schedule's.",
            "lay the payload out for this schedule",
        ),
        "no_plan": Kind("A collective that has no plan on a torus of rings."),
        "too_many_chunks": Kind("More chunks than can be counted.", "make chunks larger"),
        "wrong_programs": Kind("Programs of other NPUs than are simulated.", "one for each"),
        "other_collectives": Kind(
            "NPUs that do not hand over the same collectives in the same order.",
            "they are matched by their number",
        ),
        "empty_chunk": Kind("Chunks of no bytes.", "give them at least 1 B"),
        "endpoint": Kind("The endpoint cannot carry it."),
        "stuck": Kind("Tasks of a program wait for ever."),
        "stopped": Kind("The run was stopped before it was done.", "run it again"),
        "saturated": Kind(
            "A network that does not carry its load, so that it has no latency.",
            "lower the rate, or measure longer: near saturation queues take long to fill",
        ),
        "deadlocked": Kind(
            "Packets of a network form a cyclic dependency, so that nothing is measured.",
            "a routing without cycles, or more VCs and buffers",
        ),
        "time_overflow": Kind("A run longer than time can count.", "check the units"),
    }


class DeadlockError(SimulationError):
    """A simulation that cannot finish; ``waiting`` lists rank, step and the ranks it waits for."""

    kinds: ClassVar[dict[str, Kind]] = {
        "deadlock": Kind(
            "Ranks wait for messages that nobody sends.", "verify() names the schedule's mistake"
        ),
        "network_deadlock": Kind(
            "Packets in the network form a cyclic dependency.",
            "a routing without cyclic dependencies, or more VCs and buffers",
        ),
    }


class CacheError(TuttiError):
    """A sweep's cache that cannot be used."""

    kinds: ClassVar[dict[str, Kind]] = {
        "folder": Kind("The folder cannot be made, read or written.", "name another with --cache"),
        "contradiction": Kind(
            "Two journals give different results for the same question: one of them is wrong.",
            "delete the cache's folder and run the sweep again",
        ),
    }


class ExecutorError(TuttiError):
    """What is to carry out a sweep is not there, or not as it should be."""

    kinds: ClassVar[dict[str, Kind]] = {
        "unknown": Kind("No executor has that name."),
        "option": Kind("An option that does not go with this executor."),
        "missing": Kind("A package that the executor needs is not installed."),
        "not_started": Kind("The program was not started in the way that the executor needs."),
        "unreachable": Kind(
            "The scheduler does not answer.", "is it running, and is that its address?"
        ),
        "other_version": Kind(
            "Workers run another version of tutti, whose results would be mixed with these.",
            "install the same version everywhere",
        ),
    }


class WorkerError(TuttiError, RuntimeError):
    """A worker of a sweep that has died, or that sees something else than the sweep does."""

    exit_code = ExitCode.FAILED
    kinds: ClassVar[dict[str, Kind]] = {
        "died": Kind(
            "A worker died twice at the same measurement; the others are kept.",
            "is there enough memory? Run the sweep again: only what is missing is simulated",
        ),
        "none_left": Kind(
            "Workers die before they have finished anything.",
            "is there enough memory, and can processes be started here?",
        ),
        "other_input": Kind(
            "A worker found another question than was asked: a file has changed, or is another one "
            "where the worker runs.",
            "let files be while a sweep runs; workers elsewhere need the same files",
        ),
        "other_version": Kind(
            "A worker runs another version of tutti.", "install the same version everywhere"
        ),
    }


class ReportError(TuttiError, ValueError):
    """Something that cannot be reported or drawn from what was given."""

    kinds: ClassVar[dict[str, Kind]] = {
        "frame": Kind(
            "A frame lacks columns or rows, or mixes what cannot be compared.",
            "give the frames of `simulate` and `compare`, filtered down to what is to be shown",
        ),
        "choice": Kind(
            "A kind of drawing, or a format, that does not exist.",
        ),
        "too_large": Kind(
            "More than can be drawn or held in a graph.", "fewer ranks, or an export as .dot"
        ),
        "unmatched": Kind("A receive without its send.", "verify() names the schedule's mistake"),
    }
