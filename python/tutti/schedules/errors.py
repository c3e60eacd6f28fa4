"""Errors of algorithms, schedules and chunk programs."""

from __future__ import annotations

from typing import ClassVar

from tutti.base.errors import ExitCode, Kind, TuttiError


class LayoutError(TuttiError, ValueError):
    """Raised for a payload that cannot be divided into chunks."""

    kinds: ClassVar[dict[str, Kind]] = {
        "partial_element": Kind(
            "The size is not a multiple of the datatype's size.",
            "choose a size that is a multiple of the datatype's size; sizes are never rounded",
        ),
        "unequal_parts": Kind(
            "Parts would differ in size, although the schedule exchanges them: in any "
            "all_to_all, in a schedule that stores shards in another slot than its data, and "
            "where chunks are reordered.",
            "choose a size that is a multiple of chunks x datatype, or another algorithm",
        ),
        "barrier_with_data": Kind("The payload of a barrier is not empty.", 'its size is "0 B"'),
        "unknown_datatype": Kind("The datatype is unknown.", "names are those of numpy"),
        "empty_element": Kind("The datatype has no bytes.", "give a datatype of at least one byte"),
        "no_chunks": Kind("The payload is divided into zero chunks.", "give at least one chunk"),
        "popularity": Kind(
            "The popularity of destinations or experts is unknown.",
            "`uniform`, or `zipf:S` with S from 0 to 10",
        ),
        "not_square": Kind("The blocks are not ranks x ranks.", "give a row per source"),
        "block_size": Kind("The size of a block is invalid.", "sizes are integers from 0"),
        "too_many_ranks": Kind("Blocks exist for up to 4,096 ranks.", "use fewer ranks"),
        "too_large": Kind("The blocks sum to more than 2^64 - 1.", "use smaller relative sizes"),
        "all_empty": Kind("All blocks are empty.", "give at least one block a size above zero"),
    }

    @property
    def _meant(self) -> str:
        """The nearest sizes with equal parts."""
        given = [self.fields.get(name) for name in ("size", "chunks", "element")]
        if self.kind != "unequal_parts" or not all(isinstance(one, int) for one in given):
            return super()._meant
        size, chunks, element = (int(str(one)) for one in given)
        unit = chunks * element
        sizes = [one for one in (size // unit * unit, -(-size // unit) * unit) if one]
        return f"nearest: {' and '.join(f'{one:,} B' for one in sizes)};"


class AlgorithmError(TuttiError, ValueError):
    """Raised for an unknown algorithm, or one that does not support the request."""

    kinds: ClassVar[dict[str, Kind]] = {
        "unknown": Kind("The algorithm is unknown.", "`tutti schedule list` shows every algorithm"),
        "unknown_collective": Kind(
            "The collective is unknown.",
            "names are in snake case, such as all_reduce",
        ),
        "too_few_ranks": Kind("The number of ranks is less than two.", "use two ranks or more"),
        "too_many_ranks": Kind(
            "The number of ranks exceeds the largest rank id.",
            "use fewer ranks",
        ),
        "wrong_collective": Kind(
            "The algorithm does not perform this collective.",
            "`tutti schedule list` shows what each algorithm performs",
        ),
        "wrong_ranks": Kind(
            "The algorithm does not support this number of ranks.",
            "choose another rank count, or another algorithm; tutti substitutes none",
        ),
        "wrong_root": Kind("The root is not one of the ranks.", "ranks count from 0"),
        "argument": Kind(
            "The argument after the colon cannot be parsed or does not fit; `at` is the byte "
            "offset.",
            "`tutti schedule list` shows what may follow the colon",
        ),
    }


class ScheduleError(TuttiError, ValueError):
    """Raised for an invalid schedule, or a rank or step that a schedule does not have."""

    kinds: ClassVar[dict[str, Kind]] = {
        "no_such_rank": Kind("The schedule has no such rank.", "ranks count from 0"),
        "out_of_range": Kind("A count or an index is negative or too large.", "count from 0"),
        "no_such_step": Kind("The rank has no such step.", "steps count from 0"),
        "no_such_phase": Kind("The schedule has no such phase.", "phases count from 0"),
        "no_ranks": Kind("The schedule has no ranks.", "give at least one rank"),
        "unmatched": Kind("A send has no receive.", "verify the schedule"),
        "no_value": Kind("A rank sends a chunk that it does not have.", "verify the schedule"),
        "computes": Kind(
            "A collective contains compute ops.",
            "move them into tasks of the training step",
        ),
        "too_many_ranks": Kind(
            "The number of ranks exceeds the largest rank id.",
            "use fewer ranks",
        ),
        "no_chunks": Kind("The payload is divided into zero chunks.", "give at least one chunk"),
        "blocks": Kind(
            "The blocks of an all_to_all_v do not fit, or the collective has none.",
            "give a size per source and destination",
        ),
        "rank_outside": Kind(
            "An op belongs to a rank that the schedule does not have.",
            "ranks count from 0",
        ),
        "backward_chunks": Kind(
            "A range of chunks ends before it starts.",
            "chunks are given as start and end",
        ),
        "slot_outside": Kind(
            "The slot number exceeds the largest that can be stored.",
            "number slots from 0",
        ),
        "bad_name": Kind(
            "The name cannot be written to a file and read back.",
            "use one line without leading or trailing spaces",
        ),
        "wrong_root": Kind("The root is not one of the ranks.", "ranks count from 0"),
        "not_repeated": Kind(
            "The schedule cannot be repeated.",
            "repeat it at least once; its result must be in the data slot",
        ),
        "not_a_program": Kind("No chunk program is equivalent to the schedule.", "report it"),
        "no_such_chunks": Kind(
            "The chunks are neither a number nor a range.",
            "chunk=2 is one chunk, chunks=(0, 4) the run 0, 1, 2, 3",
        ),
    }


class TextError(ScheduleError):
    """Raised for text that is not a schedule; ``line`` counts from 1."""

    kinds: ClassVar[dict[str, Kind]] = {
        "malformed": Kind("The line cannot be parsed."),
        "duration": Kind("The duration cannot be parsed.", 'write it like "1.5 us"'),
        "refused": Kind("The schedule cannot contain this op."),
        "missing_header": Kind("A header line is missing.", "it comes before the first rank"),
        "second_header": Kind("A header line appears twice.", "remove one of them"),
        "rank_order": Kind("A rank appears after a higher one.", "put ranks in ascending order"),
        "outside_step": Kind(
            "An op appears before the first step.",
            "start with `rank` and `step` lines",
        ),
        "op_order": Kind(
            "An op appears too late in its step.",
            "start a new step, or put sends first, then recvs, then local ops",
        ),
    }


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


class ProgramError(ScheduleError):
    """Raised for a statement of a chunk program; ``file`` and ``line`` are those of the statement.

    ``overwritten`` is the file and line of the statement that overwrote a stale chunk.
    """

    kinds: ClassVar[dict[str, Kind]] = {
        "stale": Kind(
            "A statement reads chunks that a later statement has overwritten.",
            "use the reference that `copy`, `reduce` or `fold` returned, or call `chunk` again",
        ),
        "uninitialised": Kind(
            "A statement reads a chunk that no statement has written.",
            "copy data to it first; the collective defines which ranks start with data",
        ),
        "in_exchange": Kind(
            "A statement of an exchange reads a chunk that the exchange writes.",
            "read it after the `with` block of the exchange",
        ),
        "written_twice": Kind(
            "Two statements of an exchange write the same chunk.",
            "reduce both values with one `fold`, or use two exchanges",
        ),
        "nested": Kind("A step or an exchange starts within an exchange.", "end the first one"),
        "no_such_rank": Kind("The group has no such rank.", "ranks count from 0 in each group"),
        "no_such_chunks": Kind("The group has no such chunks.", "chunks count from 0"),
        "no_operands": Kind("A fold has no operands.", "name the chunks to reduce"),
        "counts": Kind("Operands have different numbers of chunks.", "give the same `count`"),
        "in_network": Kind(
            "Operands of a fold in the network start at different chunks.",
            "copy them to the index of the result first",
        ),
        "multicast": Kind(
            "The destinations of a message are invalid.",
            "name each other rank at most once; use a plain copy within a rank",
        ),
        "order": Kind(
            "Messages between two ranks are not received in the order in which they are sent.",
            "receive each message before later ones of the same pair of ranks",
        ),
        "not_received": Kind("A message is never received.", "call `receive`, or use it in a fold"),
        "group": Kind(
            "The ranks are not distinct, or the chunks do not divide equally.",
            "choose a number of chunks that divides the range",
        ),
        "shape": Kind(
            "The number of chunks or instances is invalid.",
            "use at least one of each, and one instance for all_to_all_v",
        ),
        "closed": Kind(
            "A statement is not within the `with` block of its program.",
            "indent it into the block; a program cannot be reopened",
        ),
        "not_finished": Kind(
            "The schedule is not available before the `with` block has ended.",
            "read `schedule` after the block",
        ),
        "does_not_fit": Kind(
            "A schedule cannot be performed on the ranks and chunks of the group.",
            "give it the ranks of the group, and chunks that divide those of the group",
        ),
        "load": Kind(
            "The text does not name a function that returns a program or a schedule.",
            "write `module:function`",
        ),
    }
