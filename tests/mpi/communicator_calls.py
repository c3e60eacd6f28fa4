"""The program of every rank in the tests of `tutti.mpi.Communicator`.

Argument 1 is a plan, argument 2 the library for the other MPI library.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from tutti.mpi import CollectivePlan, Communicator
from tutti.mpi.errors import MpiCallError, MpiError

if TYPE_CHECKING:
    from collections.abc import Callable

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.rank, WORLD.size
ELEMENTS = 12 * RANKS


def data(rank: int, dtype: str = "int64") -> np.ndarray:
    return (np.arange(ELEMENTS) * 7 + rank * 1000 + 1).astype(dtype)


def data_of_all(dtype: str = "int64") -> list[np.ndarray]:
    return [data(rank, dtype) for rank in range(RANKS)]


def refused(call: Callable[[], None], words: str) -> None:
    output = ""
    try:
        call()
    except MpiCallError as error:
        output = str(error)
    assert words in output, f"expected {words!r}, not {output!r}"


def reductions(comm: Communicator) -> None:
    for dtype in ("int64", "float32", "complex128"):
        total = np.sum(data_of_all(dtype), axis=0)
        received = np.zeros_like(total)
        comm.all_reduce(data(RANK, dtype), received)
        np.testing.assert_array_equal(received, total)
    mine = data(RANK)
    comm.all_reduce(MPI.IN_PLACE, mine, op=MPI.MAX)
    np.testing.assert_array_equal(mine, np.max(data_of_all(), axis=0))
    for root in range(RANKS):
        received = np.zeros(ELEMENTS, "int64") if root == RANK else None
        comm.reduce(data(RANK), received, op=MPI.MIN, root=root)
        if received is not None:
            np.testing.assert_array_equal(received, np.min(data_of_all(), axis=0))
    mine = data(RANK)
    if RANK == 1:
        comm.reduce(MPI.IN_PLACE, mine, root=1)
        np.testing.assert_array_equal(mine, np.sum(data_of_all(), axis=0))
    else:
        comm.reduce(mine, root=1)


def own_operation(comm: Communicator) -> None:
    # Returns the left operand. It does not commute, so results show the order of the ranks.
    def left(inbuf: Any, inoutbuf: Any, _datatype: MPI.Datatype) -> None:
        inoutbuf[:] = inbuf[:]

    op = MPI.Op.Create(left, commute=False)
    received = np.zeros(ELEMENTS, "int64")
    comm.all_reduce(data(RANK), received, op=op)
    np.testing.assert_array_equal(received, data(0))
    op.Free()


def shards(comm: Communicator) -> None:
    part = ELEMENTS // RANKS
    total = np.sum(data_of_all(), axis=0)
    received = np.zeros(part, "int64")
    comm.reduce_scatter(data(RANK), received)
    np.testing.assert_array_equal(received, total[RANK * part : (RANK + 1) * part])
    counts = [part] * RANKS
    counts[0], counts[1] = part + 2, part - 2
    received = np.zeros(counts[RANK], "int64")
    comm.reduce_scatter(data(RANK), received, counts=counts)
    start = sum(counts[:RANK])
    np.testing.assert_array_equal(received, total[start : start + counts[RANK]])
    mine = data(RANK)
    comm.reduce_scatter(MPI.IN_PLACE, mine)
    np.testing.assert_array_equal(mine[:part], total[RANK * part : (RANK + 1) * part])

    complete = np.zeros(ELEMENTS * RANKS, "int64")
    comm.all_gather(data(RANK), complete)
    np.testing.assert_array_equal(complete, np.concatenate(data_of_all()))
    complete = np.zeros(ELEMENTS * RANKS, "int64")
    complete[RANK * ELEMENTS : (RANK + 1) * ELEMENTS] = data(RANK)
    comm.all_gather(MPI.IN_PLACE, complete)
    np.testing.assert_array_equal(complete, np.concatenate(data_of_all()))

    received = np.zeros(ELEMENTS, "int64")
    comm.all_to_all(data(RANK), received)
    exchanged = np.concatenate([one[RANK * part : (RANK + 1) * part] for one in data_of_all()])
    np.testing.assert_array_equal(received, exchanged)


def broadcasts(comm: Communicator) -> None:
    for root in range(RANKS):
        array = data(root) if root == RANK else np.zeros(ELEMENTS, "int64")
        comm.broadcast(array, root=root)
        np.testing.assert_array_equal(array, data(root))
    buffer = bytearray(b"tutti" if RANK == 0 else b"-----")
    comm.broadcast(buffer)
    assert bytes(buffer) == b"tutti"
    comm.barrier()


def mistakes(comm: Communicator) -> None:
    good = np.zeros(4)
    refused(lambda: comm.all_reduce(np.zeros(3), good), "has 3 elements, and `receive` 4")
    refused(lambda: comm.all_reduce(np.zeros(4, "f4"), good), "elements of float32")
    refused(lambda: comm.all_reduce(good, np.zeros((4, 2))[:, 0]), "has gaps")
    refused(lambda: comm.all_reduce([1, 2], good), "`send` is list")
    refused(lambda: comm.all_gather(good, np.zeros(4 * RANKS + 1)), "a multiple of the")
    refused(lambda: comm.broadcast(good, root=RANKS), f"root {RANKS}")
    for odd in (np.zeros(2, kind) for kind in ("M8[s]", ">f8", "U2", "O")):
        refused(partial(comm.broadcast, odd), "expected plain numbers")
    frozen = np.zeros(4)
    frozen.flags.writeable = False
    refused(lambda: comm.all_reduce(good, frozen), "cannot be written to")
    refused(
        lambda: comm.reduce_scatter(np.zeros(2 * RANKS), np.zeros(2), counts=[1] * RANKS),
        "the sum of the shards",
    )


def other_mpi(library: str) -> None:
    try:
        Communicator(WORLD, sys.argv[1], library=library)
    except MpiError as error:
        kind = error.kind
    assert kind == "wrong_library"


def main() -> None:
    path = sys.argv[1]
    with Communicator(WORLD, path) as comm:
        for part in (reductions, own_operation, shards, broadcasts, mistakes):
            part(comm)
    refused(comm.barrier, "has been closed")
    comm.close()

    plan = CollectivePlan.read(path)
    small = CollectivePlan([rule for rule in plan.rules if rule.collective == "barrier"])
    with Communicator(WORLD, small) as comm:
        comm.barrier()
        refused(
            lambda: comm.all_reduce(np.zeros(1), np.zeros(1)),
            f"no rule of the plan covers all_reduce of 8 bytes on {RANKS} ranks",
        )
    other_mpi(sys.argv[2])
    sys.stdout.write(f"rank {RANK} of {RANKS} done\n")


if __name__ == "__main__":
    main()
