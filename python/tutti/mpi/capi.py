"""The C interface of the library (mpi/include/tutti_mpi.h), by ctypes.

Handles are a pointer in one MPI library and an integer in another: mpi4py provides their size and
value.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tutti.mpi.errors import MpiError

if TYPE_CHECKING:
    from mpi4py import MPI

NOT_COVERED: Final = -1
_MESSAGE_SIZE: Final = 512

Call = dict[str, Any]
"""Members of `tutti_call` by name; omitted members are unused."""


class Library:
    """The library, loaded into this process in addition to the MPI library."""

    def __init__(self, path: Path) -> None:
        """Loads the library.

        Raises:
            MpiError: It cannot be loaded, or was compiled for another MPI library.
        """
        from mpi4py import MPI

        _check_linked(path)
        try:
            self._c = ctypes.CDLL(str(path))
        except OSError as error:
            message = f"{path}: cannot be loaded: {error}"
            raise MpiError(message, kind="wrong_library", fields={"path": str(path)}) from None
        self._handle = {4: ctypes.c_int, 8: ctypes.c_void_p}[MPI._sizeof(MPI.Comm)]
        self._call = _call_type(self._handle)
        self._message = ctypes.create_string_buffer(_MESSAGE_SIZE)
        self._nothing = (MPI._handleof(MPI.DATATYPE_NULL), MPI._handleof(MPI.OP_NULL))
        self._declare()

    def _declare(self) -> None:
        pointer, text = ctypes.c_void_p, ctypes.c_char_p
        out = ctypes.POINTER(pointer)
        u32 = ctypes.c_uint32
        signatures: dict[str, tuple[Any, list[Any]]] = {
            "tutti_plan_read": (ctypes.c_int, [text, out, text]),
            "tutti_plan_free": (None, [pointer]),
            "tutti_plan_rule": (
                ctypes.c_int,
                [pointer, u32, u32, ctypes.c_uint64, ctypes.c_int, ctypes.POINTER(u32)],
            ),
            "tutti_program_compile": (ctypes.c_int, [pointer, u32, self._handle, out, text]),
            "tutti_program_free": (None, [pointer]),
            "tutti_execute": (ctypes.c_int, [pointer, ctypes.POINTER(self._call), text]),
        }
        for name, (result, arguments) in signatures.items():
            function = getattr(self._c, name)
            function.restype, function.argtypes = result, arguments

    @property
    def message(self) -> str:
        """The message of the last error."""
        return self._message.value.decode(errors="replace")

    def read(self, path: Path) -> tuple[int, int | None]:
        """Reads a plan; returns the error and the plan."""
        plan = ctypes.c_void_p()
        error = self._c.tutti_plan_read(str(path).encode(), ctypes.byref(plan), self._message)
        return error, plan.value

    def free_plan(self, plan: int) -> None:
        """Frees a plan."""
        self._c.tutti_plan_free(plan)

    def rule(
        self, plan: int, collective: int, ranks: int, size: int, first: int
    ) -> tuple[int, int]:
        """Returns the first rule at or after `first` that fits, and its schedule; -1 for none."""
        schedule = ctypes.c_uint32()
        found = self._c.tutti_plan_rule(
            plan, collective, ranks, size, first, ctypes.byref(schedule)
        )
        return found, schedule.value

    def compile(self, plan: int, schedule: int, comm: MPI.Comm) -> tuple[int, int | None]:
        """Compiles a schedule for this rank; returns the error and the program."""
        from mpi4py import MPI

        program = ctypes.c_void_p()
        error = self._c.tutti_program_compile(
            plan, schedule, MPI._handleof(comm), ctypes.byref(program), self._message
        )
        return error, program.value

    def free_program(self, program: int) -> None:
        """Frees a program."""
        self._c.tutti_program_free(program)

    def execute(self, program: int, call: Call) -> int:
        """Executes a program; returns the error."""
        members = dict(zip(("sendtype", "recvtype"), self._nothing[:1] * 2, strict=True))
        members["op"] = self._nothing[1]
        struct = self._call(**(members | call))
        error: int = self._c.tutti_execute(program, ctypes.byref(struct), self._message)
        return error


def _call_type(handle: type[Any]) -> Any:  # noqa: ANN401 - a class that is created here
    """Returns `tutti_call` with handles of this MPI library."""

    class TuttiCall(ctypes.Structure):
        _fields_ = (
            ("sendbuf", ctypes.c_void_p),
            ("recvbuf", ctypes.c_void_p),
            ("sendcount", ctypes.c_int64),
            ("recvcount", ctypes.c_int64),
            ("sendtype", handle),
            ("recvtype", handle),
            ("op", handle),
            ("root", ctypes.c_int),
            ("recvcounts", ctypes.POINTER(ctypes.c_int64)),
            ("recvdispls", ctypes.POINTER(ctypes.c_int64)),
        )

    return TuttiCall


def _running_kind() -> str:
    from mpi4py import MPI

    return {"Open MPI": "openmpi", "MPICH": "mpich"}.get(MPI.get_vendor()[0], "other")


def _check_linked(path: Path) -> None:
    """Rejects a library that would load a second MPI library into this process."""
    from mpi4py import MPI

    from tutti.mpi.program import ldd, linked_mpi

    linked = linked_mpi(ldd(path) or "")
    running = _running_kind()
    if linked is not None and "other" not in {linked[0], running} and linked[0] != running:
        name = MPI.get_vendor()[0]
        message = f"{path}: compiled for {linked[1]}: expected {name}, which this process runs"
        raise MpiError(message, kind="wrong_library", fields={"path": str(path)})


def running_library() -> Path:
    """Returns the library for the MPI library that this process runs; compiles it if necessary.

    Raises:
        MpiError: The MPI library cannot be identified, or the library cannot be compiled for it.
    """
    from mpi4py import MPI

    from tutti.mpi.library import built
    from tutti.mpi.underneath import find_mpi

    loaded = _loaded_mpi()
    wrapper = loaded.parent.parent / "bin" / "mpicc" if loaded else None
    mpi = find_mpi(wrapper if wrapper is not None and wrapper.is_file() else None)
    if _running_kind() != mpi.kind:
        message = (
            f"{mpi.mpicc} belongs to {mpi}: expected {MPI.get_vendor()[0]}, as in this process"
        )
        raise MpiError(message, kind="mixture", fields={"mpicc": str(mpi.mpicc)})
    return built(mpi).library


def _loaded_mpi() -> Path | None:
    """Returns the shared library of the MPI library in this process."""
    try:
        maps = Path("/proc/self/maps").read_text("utf-8", errors="replace")
    except OSError:
        return None
    names = {line.split(maxsplit=5)[-1] for line in maps.splitlines() if "/libmpi.so" in line}
    return Path(min(names)) if names else None
