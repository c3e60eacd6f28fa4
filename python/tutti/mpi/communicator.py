"""Collectives of mpi4py programs, performed by the schedules of a plan.

Unlike LD_PRELOAD, which affects the entire program, this performs individual calls. If no rule of
the plan covers a call, it raises an error: nothing is forwarded to the MPI library.

    with Communicator(MPI.COMM_WORLD, "plan.tutti") as comm:
        comm.all_reduce(send, receive, op=MPI.SUM)
"""

from __future__ import annotations

import ctypes
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from tutti.base.errors import TuttiError
from tutti.mpi.errors import MpiCallError, PlanError
from tutti.mpi.plan import COLLECTIVES, CollectivePlan

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from mpi4py import MPI

    from tutti.mpi.capi import Call, Library

Array = np.ndarray[Any, np.dtype[Any]]
_NO_ERROR: Final = 0
_NUMBERS: Final = "biufc"
"""Kinds of numpy's dtypes: truth values, signed and unsigned integers, real and complex numbers."""


class Communicator:
    """A duplicate of a communicator whose collectives are the schedules of a plan.

    Arrays are contiguous, from numpy or anything that exports its memory. `send` may be
    ``MPI.IN_PLACE`` where MPI allows that. Every method is collective, as in mpi4py, and raises

    - MpiCallError: no rule covers the call, on every rank; an array is invalid; or the MPI library
      failed.
    """

    def __init__(
        self,
        comm: MPI.Comm,
        plan: CollectivePlan | str | os.PathLike[str],
        *,
        library: str | os.PathLike[str] | None = None,
    ) -> None:
        """Duplicates the communicator; collective.

        Args:
            comm: An intracommunicator.
            plan: A plan, or a plan file that every rank reads.
            library: libtutti_mpi.so for this MPI library; by default found, or compiled by rank 0.

        Raises:
            PlanError: The plan cannot be read.
            MpiError: The library cannot be loaded.
        """
        from tutti.mpi.capi import Library

        self._programs: dict[int, int] = {}
        self._plan: int | None = None
        self._comm: MPI.Comm | None = None
        self._library: Library = Library(_agreed(comm, library))
        _check_proved(comm, plan)
        self._plan = _loaded(self._library, plan)
        self._comm = comm.Dup()
        self.ranks: int = comm.Get_size()
        self.rank: int = comm.Get_rank()

    # --- collectives ------------------------------------------------------------------------------

    def all_reduce(self, send: Any, receive: Any, op: MPI.Op | None = None) -> None:  # noqa: ANN401
        """Combines the arrays of all ranks on every rank; `op` is MPI.SUM by default."""
        into = _Side(receive, "receive", written=True)
        data = _Side.of(send, into)
        self._run("all_reduce", into.bytes, {
            "sendbuf": data.address, "recvbuf": into.address, "recvcount": into.count,
            "sendcount": into.count, "recvtype": into.handle, "op": _op(op),
        })  # fmt: skip

    def reduce(
        self,
        send: Any,  # noqa: ANN401
        receive: Any = None,  # noqa: ANN401
        op: MPI.Op | None = None,
        root: int = 0,
    ) -> None:
        """Combines the arrays of all ranks on `root`; other ranks need no `receive`."""
        self._check_root(root)
        at_root = self.rank == root
        into = _Side(receive, "receive", written=True) if at_root else _Side(send, "send")
        data = _Side.of(send, into) if at_root else into
        self._run("reduce", into.bytes, {
            "sendbuf": data.address, "recvbuf": into.address if at_root else None,
            "recvcount": into.count, "sendcount": into.count, "recvtype": into.handle,
            "op": _op(op), "root": root,
        })  # fmt: skip

    def reduce_scatter(
        self,
        send: Any,  # noqa: ANN401
        receive: Any,  # noqa: ANN401
        op: MPI.Op | None = None,
        counts: Sequence[int] | None = None,
    ) -> None:
        """Combines the arrays of all ranks and scatters equal shards, or `counts` elements.

        In place, `receive` holds all elements, and the shard is written to its start.
        """
        into = _Side(receive, "receive", written=True)
        in_place = _is_in_place(send)
        elements = into.count if in_place else _Side(send, "send").count
        mine = list(counts) if counts is not None else [elements // self.ranks] * self.ranks
        if len(mine) != self.ranks or sum(mine) != elements:
            message = (
                f"{elements} elements are sent: expected {sum(mine)}, the sum of the shards {mine}"
            )
            raise MpiCallError(message, kind="buffer")
        if not in_place and mine[self.rank] > into.count:
            message = f"`receive` has {into.count} elements: expected at least {mine[self.rank]}"
            raise MpiCallError(message, kind="buffer")
        data = int(send) if in_place else _Side(send, "send").alike(into).address
        call: Call = {
            "sendbuf": data, "recvbuf": into.address, "recvcount": mine[self.rank],
            "recvtype": into.handle, "op": _op(op),
        }  # fmt: skip
        if counts is not None:
            call["recvcounts"] = (ctypes.c_int64 * self.ranks)(*mine)
        self._run("reduce_scatter", elements * into.item, call)

    def all_gather(self, send: Any, receive: Any) -> None:  # noqa: ANN401
        """Concatenates the arrays of all ranks on every rank.

        In place, each rank's part already is in `receive`.
        """
        into = _Side(receive, "receive", written=True)
        each = self._shard(into)
        self._run("all_gather", into.bytes, self._dealt(send, into, each, each))

    def all_to_all(self, send: Any, receive: Any) -> None:  # noqa: ANN401
        """Sends the i-th part of each rank's array to rank i."""
        into = _Side(receive, "receive", written=True)
        each = self._shard(into)
        self._run("all_to_all", into.bytes, self._dealt(send, into, each, into.count))

    def broadcast(self, array: Any, root: int = 0) -> None:  # noqa: ANN401
        """Copies the array of `root` into that of every rank."""
        self._check_root(root)
        data = _Side(array, "array", written=self.rank != root)
        self._run("broadcast", data.bytes, {
            "recvbuf": data.address, "recvcount": data.count, "recvtype": data.handle,
            "root": root,
        })  # fmt: skip

    def barrier(self) -> None:
        """Waits until all ranks have called it."""
        self._run("barrier", 0, {})

    # --- implementation ---------------------------------------------------------------------------

    def _run(self, collective: str, size: int, call: Call) -> None:
        """Executes the first rule with a schedule that can perform the call."""
        from tutti.mpi.capi import NOT_COVERED

        if self._plan is None:
            message = f"{collective} on a communicator that has been closed"
            raise MpiCallError(message, kind="closed")
        number = COLLECTIVES.index(collective)
        first, why = 0, ""
        while True:
            rule, schedule = self._library.rule(self._plan, number, self.ranks, size, first)
            if rule < 0:
                raise _uncovered(collective, self.ranks, size, why)
            error = self._library.execute(self._program(schedule), call)
            if error == _NO_ERROR:
                return
            if error != NOT_COVERED:
                message = f"{collective} of {size} bytes on {self.ranks} ranks failed: "
                raise MpiCallError(message + self._library.message, kind="failed",
                                   fields={"error": error})  # fmt: skip
            first, why = rule + 1, self._library.message

    def _program(self, schedule: int) -> int:
        if schedule not in self._programs:
            assert self._plan is not None  # noqa: S101 - checked by the caller
            assert self._comm is not None  # noqa: S101
            error, program = self._library.compile(self._plan, schedule, self._comm)
            if error != _NO_ERROR or program is None:
                raise PlanError(self._library.message, kind="corrupted")
            self._programs[schedule] = program
        return self._programs[schedule]

    def _dealt(self, send: Any, into: _Side, each: int, sent: int) -> Call:  # noqa: ANN401
        """Returns a call in which every rank has `each` elements, and sends `sent` in total."""
        call: Call = {"recvbuf": into.address, "recvcount": each, "recvtype": into.handle}
        if _is_in_place(send):
            return call | {"sendbuf": int(send), "sendcount": each, "sendtype": into.handle}
        data = _Side(send, "send")
        if data.count != sent:
            message = f"the array `send` has {data.count} elements: expected {sent}"
            raise MpiCallError(message, kind="buffer")
        data.alike(into)
        return call | {"sendbuf": data.address, "sendcount": each, "sendtype": data.handle}

    def _shard(self, side: _Side) -> int:
        if side.count % self.ranks:
            message = (
                f"the array `{side.name}` has {side.count} elements: expected a multiple of the "
                f"{self.ranks} ranks"
            )
            raise MpiCallError(message, kind="buffer")
        return side.count // self.ranks

    def _check_root(self, root: int) -> None:
        if not 0 <= root < self.ranks:
            message = f"root {root}: expected one of the ranks 0 to {self.ranks - 1}"
            raise MpiCallError(message, kind="buffer")

    # --- cleanup ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Frees programs, plan and the duplicate; collective. Further calls do nothing."""
        from mpi4py import MPI

        self._free()
        if self._comm is not None and not MPI.Is_finalized():
            self._comm.Free()
        self._comm = None

    def _free(self) -> None:
        for program in self._programs.values():
            self._library.free_program(program)
        self._programs = {}
        if self._plan is not None:
            self._library.free_plan(self._plan)
        self._plan = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:  # other ranks may not reach this point: skip the collective cleanup
            self._free()


class _Side:
    """The address, count and datatype of an array."""

    def __init__(self, array: Any, name: str, *, written: bool = False) -> None:  # noqa: ANN401
        from mpi4py import MPI

        self.name = name
        self._kept = found = _array(array, name, written=written)
        if found.dtype.kind not in _NUMBERS or not found.dtype.isnative:
            message = f"the array `{name}` has elements of {found.dtype}: expected plain numbers"
            raise MpiCallError(message, kind="buffer")
        self._type = MPI.Datatype.fromcode(found.dtype.char)
        self.count = found.size
        self.item = found.itemsize
        self.bytes = found.nbytes
        self.address = found.ctypes.data

    @classmethod
    def of(cls, send: Any, into: _Side) -> _Side | _InPlace:  # noqa: ANN401
        """Returns the data to send: an array that matches `into`, or ``MPI.IN_PLACE``."""
        if _is_in_place(send):
            return _InPlace(int(send))
        data = cls(send, "send")
        if data.count != into.count:
            message = f"the array `send` has {data.count} elements, and `receive` {into.count}"
            raise MpiCallError(message, kind="buffer")
        return data.alike(into)

    @property
    def handle(self) -> int:
        from mpi4py import MPI

        return MPI._handleof(self._type)

    def alike(self, other: _Side) -> _Side:
        """Returns itself if its elements have the other's datatype."""
        if self._kept.dtype != other._kept.dtype:
            message = (
                f"the array `{self.name}` has elements of {self._kept.dtype}, and "
                f"`{other.name}` of {other._kept.dtype}"
            )
            raise MpiCallError(message, kind="buffer")
        return self


class _InPlace:
    """Marks data that is in the receive buffer."""

    def __init__(self, address: int) -> None:
        self.address = address


def _array(array: Any, name: str, *, written: bool) -> Array:  # noqa: ANN401
    """Returns the memory itself, never a copy."""
    found = array if isinstance(array, np.ndarray) else None
    if found is None:
        try:
            found = np.asarray(memoryview(array))
        except (TypeError, ValueError):
            message = f"`{name}` is {type(array).__name__}: expected a numpy array or a buffer"
            raise MpiCallError(message, kind="buffer") from None
    if not found.flags.c_contiguous:
        message = f"the array `{name}` has gaps: expected a contiguous one"
        raise MpiCallError(message, kind="buffer", hint="numpy.ascontiguousarray makes one")
    if written and not found.flags.writeable:
        message = f"the array `{name}` cannot be written to"
        raise MpiCallError(message, kind="buffer")
    return found


def _is_in_place(send: Any) -> bool:  # noqa: ANN401
    from mpi4py import MPI

    return send is MPI.IN_PLACE


def _op(op: MPI.Op | None) -> int:
    from mpi4py import MPI

    return MPI._handleof(MPI.SUM if op is None else op)


def _uncovered(collective: str, ranks: int, size: int, why: str) -> MpiCallError:
    message = f"no rule of the plan covers {collective} of {size} bytes on {ranks} ranks"
    fields = {"collective": collective, "size": size, "ranks": ranks}
    return MpiCallError(f"{message}: {why}" if why else message, kind="no_rule", fields=fields)


def _agreed(comm: MPI.Comm, library: str | os.PathLike[str] | None) -> Path:
    """Returns the library that all ranks load: found, or compiled, by rank 0 only."""
    if library is not None:
        return Path(library)
    from tutti.mpi.capi import running_library

    found: Path | TuttiError
    try:
        found = running_library() if comm.Get_rank() == 0 else Path()
    except TuttiError as error:
        found = error
    found = comm.bcast(found, root=0)
    if isinstance(found, TuttiError):
        raise found
    # Another host may have another cache.
    return found if found.is_file() else running_library()


def _check_proved(comm: MPI.Comm, plan: CollectivePlan | str | os.PathLike[str]) -> None:
    """Verifies a plan from a file, on rank 0 only; an error is raised on every rank."""
    from tutti.mpi.proof import read_proved

    error: TuttiError | None = None
    if comm.Get_rank() == 0 and not isinstance(plan, CollectivePlan):
        try:
            read_proved(plan)
        except TuttiError as raised:
            error = raised
    error = comm.bcast(error, root=0)
    if error is not None:
        raise error


def _loaded(library: Library, plan: CollectivePlan | str | os.PathLike[str]) -> int:
    """Loads a plan into the library."""
    if not isinstance(plan, CollectivePlan):
        CollectivePlan.read(plan)  # its errors are more detailed
        error, loaded = library.read(Path(plan))
    else:
        with tempfile.TemporaryDirectory(prefix="tutti-") as folder:
            error, loaded = library.read(plan.write(Path(folder) / "plan.tutti"))
    if error != _NO_ERROR or loaded is None:
        raise PlanError(library.message, kind="corrupted")
    return loaded
