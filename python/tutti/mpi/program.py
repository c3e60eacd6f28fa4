"""Whether a program can be reached by LD_PRELOAD, and which MPI it was linked to.

What cannot be told is let through: the library looks again, inside of each rank, before the first
collective.
"""

from __future__ import annotations

import re
import shutil
import stat
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tutti.errors import LaunchError, MpiError
from tutti.mpi.underneath import NAMES

if TYPE_CHECKING:
    from tutti.mpi.underneath import Kind, Mpi

__all__ = ["check_program", "ldd", "linked_mpi"]

_ELF: Final = b"\x7fELF"
_SONAMES: Final[dict[str, Kind]] = {
    "libmpi.so.40": "openmpi",
    "libmpi.so.20": "openmpi",
    "libmpi.so.12": "mpich",
    "libmpich.so.12": "mpich",
}
"""The names that each MPI keeps for the sake of binaries: Open MPI since 2.0, MPICH since 3.1."""
_STANDARD_ABI: Final = "libmpi_abi.so"
_SECONDS: Final = 30.0


def check_program(name: str, mpi: Mpi) -> None:
    """Refuses a program that the library cannot work in.

    Raises:
        LaunchError: It is not there, statically linked, or has rights of its own.
        MpiError: It is linked to another MPI than this.
    """
    found = shutil.which(name)
    if found is None:
        message = f"{name}: is no program that can be run"
        raise LaunchError(message, kind="no_program", fields={"program": name})
    path = Path(found)
    if _is_elf(path):
        _check_rights(path)
        _check_linked(path, mpi)


def _is_elf(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_ELF)) == _ELF
    except OSError:  # it can be run, but not read
        return False


def _check_rights(path: Path) -> None:
    if path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID):
        message = f"{path}: is setuid or setgid: the loader drops LD_PRELOAD for it"
        raise LaunchError(message, kind="setuid", fields={"program": str(path)})


def _check_linked(path: Path, mpi: Mpi) -> None:
    said = ldd(path)
    if said is None:
        return
    if "statically linked" in said or "not a dynamic executable" in said:
        message = f"{path}: is statically linked: LD_PRELOAD cannot bring anything into it"
        raise LaunchError(message, kind="static", fields={"program": str(path)})
    linked = linked_mpi(said)
    if linked is None:
        return
    kind, where = linked
    fields = {"program": str(path), "linked": where}
    if kind == "other" and mpi.kind != "other":
        message = f"{path}: is compiled for the standard ABI ({where}), and not for {mpi.mpicc}"
        hint = "name the compiler wrapper that it was compiled with: --mpicc"
        raise MpiError(message, kind="mixture", hint=hint, fields=fields)
    if mpi.kind not in {kind, "other"}:
        message = f"{path}: is linked to {NAMES[kind]} ({where}), and would be started by {mpi}"
        hint = f"start it with its own MPI's mpiexec, or compile it with {mpi.mpicc}"
        raise MpiError(message, kind="mixture", hint=hint, fields=fields)


def linked_mpi(ldd: str) -> tuple[Kind, str] | None:
    """Which MPI a program is linked to, and where that is, by what ldd says of it."""
    for name, where in re.findall(r"^\s*(\S+) => (.+?)(?: \(0x[0-9a-f]+\))?$", ldd, re.MULTILINE):
        if name.startswith(_STANDARD_ABI):
            return "other", where
        if name in _SONAMES:
            return _SONAMES[name], where
    return None


def ldd(path: Path) -> str | None:
    """What ldd says of a program or library; None where it cannot say anything."""
    tool = shutil.which("ldd")
    if tool is None:
        return None
    try:
        done = subprocess.run(  # noqa: S603 - the program is about to be run anyway
            [tool, str(path)], capture_output=True, text=True, errors="replace",
            timeout=_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout + done.stderr
