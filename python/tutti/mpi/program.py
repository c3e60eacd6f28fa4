"""Checks whether LD_PRELOAD reaches a program, and which MPI it is linked to.

Unknown cases pass: the library checks again inside each rank, before the first collective.
"""

from __future__ import annotations

import re
import shutil
import stat
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tutti.mpi.errors import LaunchError, MpiError
from tutti.mpi.underneath import NAMES

if TYPE_CHECKING:
    from tutti.mpi.underneath import Kind, Mpi

_ELF: Final = b"\x7fELF"
_SONAMES: Final[dict[str, Kind]] = {
    "libmpi.so.40": "openmpi",
    "libmpi.so.20": "openmpi",
    "libmpi.so.12": "mpich",
    "libmpich.so.12": "mpich",
}
"""Sonames that stay the same for binary compatibility: Open MPI since 2.0, MPICH since 3.1."""
_STANDARD_ABI: Final = "libmpi_abi.so"
_SECONDS: Final = 30.0


def check_program(name: str, mpi: Mpi) -> None:
    """Rejects a program that the library cannot work in.

    Raises:
        LaunchError: It does not exist, is statically linked, or is setuid or setgid.
        MpiError: It is linked to another MPI library.
    """
    found = shutil.which(name)
    if found is None:
        message = f"{name}: not an executable program"
        raise LaunchError(message, kind="no_program", fields={"program": name})
    path = Path(found)
    if _is_elf(path):
        _check_rights(path)
        _check_linked(path, mpi)


def _is_elf(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_ELF)) == _ELF
    except OSError:  # executable, but not readable
        return False


def _check_rights(path: Path) -> None:
    if path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID):
        message = f"{path}: setuid or setgid: the loader ignores LD_PRELOAD for it"
        raise LaunchError(message, kind="setuid", fields={"program": str(path)})


def _check_linked(path: Path, mpi: Mpi) -> None:
    output = ldd(path)
    if output is None:
        return
    if "statically linked" in output or "not a dynamic executable" in output:
        message = f"{path}: statically linked: LD_PRELOAD has no effect on it"
        raise LaunchError(message, kind="static", fields={"program": str(path)})
    linked = linked_mpi(output)
    if linked is None:
        return
    kind, where = linked
    fields = {"program": str(path), "linked": where}
    if kind == "other" and mpi.kind != "other":
        message = f"{path}: compiled for the standard ABI ({where}), but not for {mpi.mpicc}"
        hint = "name the compiler wrapper that it was compiled with: --mpicc"
        raise MpiError(message, kind="mixture", hint=hint, fields=fields)
    if mpi.kind not in {kind, "other"}:
        message = f"{path}: linked to {NAMES[kind]} ({where}), but would be started by {mpi}"
        hint = f"start it with the mpiexec of {NAMES[kind]}, or compile it with {mpi.mpicc}"
        raise MpiError(message, kind="mixture", hint=hint, fields=fields)


def linked_mpi(ldd: str) -> tuple[Kind, str] | None:
    """Returns the MPI library that a program is linked to and its path, from the output of ldd."""
    for name, where in re.findall(r"^\s*(\S+) => (.+?)(?: \(0x[0-9a-f]+\))?$", ldd, re.MULTILINE):
        if name.startswith(_STANDARD_ABI):
            return "other", where
        if name in _SONAMES:
            return _SONAMES[name], where
    return None


def ldd(path: Path) -> str | None:
    """Returns the output of ldd for a program or library; None if it fails."""
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
