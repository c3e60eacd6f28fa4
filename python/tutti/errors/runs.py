"""Errors of verification, simulation, sweeps and reports."""

from __future__ import annotations

from typing import ClassVar

from tutti.errors.base import ExitCode, Kind, TuttiError


class VerificationError(TuttiError):
    """Raised for a schedule that is not correct.

    Places are (rank, step), waits are (place, awaited rank), chunks are (start, end) and
    contributions are (rank, chunk).
    """

    exit_code: ClassVar[ExitCode] = ExitCode.FAILED
    kinds: ClassVar[dict[str, Kind]] = {
        "shape": Kind("The schedule's shape is inconsistent."),
        "part": Kind("The schedule is a single phase of another.", "verify the complete schedule"),
        "too_large": Kind(
            "The schedule exceeds the memory of the verifier.",
            "verify it on fewer ranks",
        ),
        "peer_outside": Kind("The peer of an op is not a rank.", "ranks count from 0"),
        "own_peer": Kind("A rank sends to itself or receives from itself.", "use a copy"),
        "chunks_outside": Kind("An op accesses chunks outside the payload.", "chunks count from 0"),
        "slot_outside": Kind("An op accesses a slot that does not exist.", "slots count from 0"),
        "no_operands": Kind("A reduce has no operands.", "name the slots to reduce"),
        "named_twice": Kind(
            "A multicast names a destination twice, or a combine a source.",
            "remove one, or send the second separately",
        ),
        "not_combined": Kind(
            "A rank contributes to a combine, but its peer takes the message with a recv.",
            "make it a `send`, or the recv a part of a `combine`",
        ),
        "not_contributed": Kind(
            "A combine takes a message that is not a contribution.",
            "make the `send` a `contribute`",
        ),
        "unlike_combine": Kind(
            "A member of a combine contributes other chunks than those combined.",
            "contribute the chunks of the combine",
        ),
        "recv_into_send": Kind(
            "A receive writes what a send of the same step reads, which MPI forbids.",
            "receive into another slot and copy it, or receive in the next step if it depends"
            " on the send",
        ),
        "recvs_overlap": Kind(
            "Two receives of a step write the same chunks in undetermined order.",
            "receive into different slots, and copy the one to keep",
        ),
        "nothing_there": Kind(
            "An op reads chunks that nothing has written.",
            "receive or copy it first",
        ),
        "length_mismatch": Kind(
            "A message has more or fewer chunks than its receive.",
            "the k-th send to a rank matches its k-th receive from the sender",
        ),
        "block_moved": Kind(
            "A block of an all_to_all_v moves to the position of another, whose size may differ.",
            "receive and copy blocks at their positions",
        ),
        "never_sent": Kind(
            "A receive waits for a message that no rank sends.",
            "add the send, or remove the receive",
        ),
        "never_received": Kind(
            "A message is sent that no rank receives.",
            "add the receive, or remove the send",
        ),
        "deadlock": Kind(
            "Ranks wait for each other, independent of buffering.",
            "let one of them send first",
        ),
        "not_written": Kind(
            "A rank has no result where one is required.",
            "is the result in another slot?",
        ),
        "wrong_chunk": Kind(
            "A rank's result holds another chunk than required.",
            "follow the sends",
        ),
        "missing": Kind("A contribution did not arrive.", "follow it from its rank"),
        "doubled": Kind(
            "A contribution is reduced more than once.",
            "reduce each contribution once",
        ),
        "foreign": Kind(
            "A contribution appears where it does not belong.",
            "follow it from its rank",
        ),
        "miscounted": Kind(
            "The result holds the wrong contributions.",
            "verify the schedule on fewer ranks to locate the error",
        ),
    }


class SimulationError(TuttiError):
    """Raised for a simulation that gives no result."""

    exit_code: ClassVar[ExitCode] = ExitCode.FAILED
    kinds: ClassVar[dict[str, Kind]] = {
        "trace_unreceived": Kind(
            "A message of a trace is never received.",
            "add a receive with its source and tag to the destination",
        ),
        "unreceived": Kind(
            "Messages are sent that no rank receives.",
            "verify() names the schedule's error",
        ),
        "in_network": Kind(
            "A training step with packets has a schedule that the network performs.",
            'detail = "flows" performs multicasts and combines in the network',
        ),
        "no_such_rank": Kind(
            "A message is sent to a rank that does not exist.",
            "verify() names the schedule's error",
        ),
        "no_path": Kind(
            "No path of live links connects the sender and the receiver of a message.",
            "the configuration lacks a link: add it, fill idle ports with mesh links, or use "
            "a schedule between ranks that are connected",
        ),
        "nothing_moved": Kind("The schedule sends no message.", "is this the intended schedule?"),
        "wrong_layout": Kind(
            "The chunks of the payload differ from those of the schedule.",
            "compute the layout of the payload for this schedule",
        ),
        "no_plan": Kind(
            "The collective has no default schedule in a training step.", "choose an algorithm"
        ),
        "wrong_group": Kind("The schedule is for groups of another size."),
        "wrong_sizes": Kind("The dimensions do not have as many NPUs as the network."),
        "no_link": Kind(
            "NPUs of a torus that are not neighbours exchange messages.",
            "use rings along each dimension, or a platform with a topology",
        ),
        "dataflow": Kind("A schedule of a training step has no data flow.", "verify the schedule"),
        "not_symmetric": Kind("One NPU cannot represent all.", "simulate every NPU"),
        "too_many_packets": Kind("The number of packets exceeds the limit.", "make them larger"),
        "too_many_chunks": Kind("The number of chunks exceeds the limit.", "make chunks larger"),
        "wrong_programs": Kind(
            "The programs do not match the NPUs.",
            "give one program for each NPU",
        ),
        "no_flows": Kind(
            "The network has no flows for a step in flows.",
            "use a platform with a topology",
        ),
        "no_windows": Kind("Utilisation over time is recorded with packets only."),
        "no_time": Kind("The time of a transfer is missing."),
        "other_messages": Kind(
            "A message is sent and not received, or received and not sent.",
            "messages from one NPU to another are matched in order, by tag",
        ),
        "self_message": Kind("An NPU sends a message to itself."),
        "other_collectives": Kind(
            "NPUs issue different collectives, or in a different order.",
            "collectives are matched by their number",
        ),
        "empty_chunk": Kind("The chunk size is zero.", "use chunks of at least 1 B"),
        "endpoint": Kind("The endpoint model does not support the collective."),
        "stuck": Kind("Tasks of a program wait forever."),
        "stopped": Kind("The run was interrupted before it finished.", "run it again"),
        "saturated": Kind(
            "The network saturates at this load, so its latency is unbounded.",
            "lower the rate, or measure longer: near saturation queues fill slowly",
        ),
        "deadlocked": Kind(
            "Packets form a cyclic dependency, so nothing is measured.",
            "use a deadlock-free routing, or more VCs and buffers",
        ),
        "time_overflow": Kind("The run is longer than the largest time.", "check the units"),
    }


class DeadlockError(SimulationError):
    """Raised for a simulation that deadlocks; ``waiting`` lists rank, step and awaited ranks."""

    kinds: ClassVar[dict[str, Kind]] = {
        "deadlock": Kind(
            "Ranks wait for messages that no rank sends.",
            "verify() names the schedule's error",
        ),
        "trace_deadlock": Kind(
            "Ranks of a trace wait for messages that no rank sends.",
            "compare the sources and tags of the receives with those of the sends",
        ),
        "network_deadlock": Kind(
            "Packets in the network form a cyclic dependency.",
            "use a deadlock-free routing, or more VCs and buffers",
        ),
    }


class CacheError(TuttiError):
    """Raised for a sweep cache that cannot be used."""

    kinds: ClassVar[dict[str, Kind]] = {
        "folder": Kind(
            "The folder cannot be created, read or written.",
            "name another with --cache",
        ),
        "contradiction": Kind(
            "Two journals contain different results for the same point, so one is wrong.",
            "delete the cache folder and run the sweep again",
        ),
    }


class ExecutorError(TuttiError):
    """Raised if the executor of a sweep is missing or misconfigured."""

    kinds: ClassVar[dict[str, Kind]] = {
        "unknown": Kind("The executor is unknown."),
        "option": Kind("The option does not apply to this executor."),
        "not_started": Kind("The program was not started as the executor requires."),
        "unreachable": Kind(
            "The scheduler does not respond.",
            "is it running, and is that its address?",
        ),
        "other_version": Kind(
            "Workers run another version of tutti, so their results would differ.",
            "install the same version everywhere",
        ),
    }


class ExploreError(TuttiError):
    """Raised if the web application of `tutti explore` cannot start."""

    kinds: ClassVar[dict[str, Kind]] = {
        "address": Kind(
            "The server cannot listen on the address.",
            "select another port with --port; 0 selects a free one",
        ),
        "ended": Kind(
            "The process that runs the jobs of a page has ended.",
            "is there enough memory? The next request starts another process",
        ),
    }


class WorkerError(TuttiError, RuntimeError):
    """Raised for a worker that died, or whose input differs from that of the sweep."""

    exit_code = ExitCode.FAILED
    kinds: ClassVar[dict[str, Kind]] = {
        "died": Kind(
            "A worker died twice at the same point; the results of other points are stored.",
            "is there enough memory? Run the sweep again: only missing points are simulated",
        ),
        "none_left": Kind(
            "Workers die before they finish any point.",
            "is there enough memory, and can processes be started here?",
        ),
        "other_input": Kind(
            "A worker computed another point than requested: a file has changed, or differs "
            "on the worker's host.",
            "do not change files during a sweep; workers on other hosts need the same files",
        ),
        "other_version": Kind(
            "A worker runs another version of tutti.", "install the same version everywhere"
        ),
    }


class ReportError(TuttiError, ValueError):
    """Raised for input that cannot be reported or drawn."""

    kinds: ClassVar[dict[str, Kind]] = {
        "frame": Kind(
            "The frame lacks columns or rows, or its rows are not comparable.",
            "pass frames of `simulate` or `compare`, filtered to the rows to be shown",
        ),
        "choice": Kind("The drawing or the format is unknown."),
        "too_large": Kind(
            "The drawing or graph is too large.",
            "use fewer ranks, or export as .dot",
        ),
        "npus": Kind(
            "An NPU of a timeline was not simulated, is repeated, or there are too many.",
            "select up to 8 simulated NPUs; on a torus, one NPU may represent all",
        ),
        "unmatched": Kind("A receive has no matching send.", "verify() names the schedule's error"),
    }
