"""Compiles the C library for an MPI library, once, into a cache keyed by its sources.

Handles, constants and the size of a status differ between MPI libraries, so no binary fits all. The
sources are in `mpi/` of a checkout, and in the wheel.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tutti.mpi import wrapper_cache
from tutti.mpi.errors import MpiError
from tutti.mpi.wrapper_cache import cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from tutti.mpi.underneath import Mpi

LIBRARY: Final = "libtutti_mpi.so"
BENCH: Final = "tutti_mpi_bench"
_SOURCE_SUFFIXES: Final = {".c", ".h", ".inc"}
_LOG_LINES: Final = 12
_SEPARATORS: Final = {" ", ":"}
_PARTS: Final = ("include", "src", "bench")
"""Folders of the sources, without the tests."""


@dataclass(frozen=True)
class Built:
    """The files compiled for one MPI library.

    Attributes:
        library: The shared library, for LD_PRELOAD.
        bench: The benchmark program.
    """

    library: Path
    bench: Path


def sources() -> Path:
    """Returns the folder of the sources: in a checkout, or next to this file in a wheel.

    Raises:
        MpiError: Neither exists.
    """
    here = Path(__file__).resolve().parent
    places = [here / "source", here.parents[2] / "mpi"]
    for place in places:
        if (place / "include" / "tutti_mpi.h").is_file():
            return place
    message = f"no sources of the library: expected them in {places[0]} or {places[1]}"
    raise MpiError(message, kind="no_sources")


def is_built(mpi: Mpi, *, sanitize: str | None = None) -> bool:
    """Whether the library has been compiled for this MPI library."""
    return _found(cache_folder() / _key(mpi, sources(), sanitize)) is not None


def built(
    mpi: Mpi, *, sanitize: str | None = None, starting: Callable[[], object] | None = None
) -> Built:
    """Returns the library for an MPI library; compiles it if necessary.

    Args:
        mpi: The MPI library.
        sanitize: Sanitizers to compile with, such as ``"address,undefined"``.
        starting: Called before a compilation, which takes seconds.

    Raises:
        MpiError: It cannot be compiled or stored.
    """
    if not sys.platform.startswith("linux"):
        message = f"{sys.platform}: expected Linux, as the library is loaded with LD_PRELOAD"
        raise MpiError(message, kind="platform", fields={"system": sys.platform})
    source = sources()
    folder = cache_folder() / _key(mpi, source, sanitize)
    if _SEPARATORS & set(str(folder)):
        message = f"{folder}: contains a blank or a colon, which separate names in LD_PRELOAD"
        raise MpiError(message, kind="cache", fields={"folder": str(folder)})
    found = _found(folder)
    if found is not None:
        return found
    if starting is not None:
        starting()
    return _compiled(mpi, source, folder, sanitize)


def _found(folder: Path) -> Built | None:
    made = Built(folder / LIBRARY, folder / BENCH)
    return made if made.library.is_file() else None


def _key(mpi: Mpi, source: Path, sanitize: str | None) -> str:
    """Returns a hash of everything that the binary depends on."""
    digest = hashlib.sha256()
    chosen = [os.environ.get(name) for name in ("CFLAGS", "OMPI_CC", "MPICH_CC")]
    identity = (mpi.kind, mpi.version, *wrapper_cache.identity(mpi.mpicc))
    digest.update(repr((*identity, mpi.machine, mpi.compiler, sanitize, *chosen)).encode())
    for path in files():
        digest.update(f"{path.relative_to(source)}\0".encode())
        digest.update(path.read_bytes() + b"\0")
    parts = (mpi.kind, mpi.version or "unknown", mpi.machine or "any", digest.hexdigest()[:16])
    return "-".join(parts)


def files() -> list[Path]:
    """Returns the files that the library is compiled from."""
    source = sources()
    found = [source / "Makefile"]
    for part in _PARTS:
        found += [p for p in (source / part).rglob("*") if p.suffix in _SOURCE_SUFFIXES]
    return sorted(path for path in found if path.is_file())


def _compiled(mpi: Mpi, source: Path, folder: Path, sanitize: str | None) -> Built:
    """Compiles in a temporary folder and renames it, so that concurrent compilations are safe."""
    make = shutil.which("make") or shutil.which("gmake")
    if make is None:
        message = "no `make` on PATH: expected one, to compile the library"
        raise MpiError(message, kind="no_compiler", fields={"missing": "make"})
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    except OSError as error:
        message = f"{folder.parent}: cannot be written to: {error.strerror}"
        raise MpiError(message, kind="cache", fields={"folder": str(folder.parent)}) from None
    try:
        _make(make, mpi, source, aside, sanitize)
        shutil.rmtree(aside / "objects", ignore_errors=True)
        facts = [mpi.kind, mpi.version, mpi.standard, mpi.compiler, mpi.machine]
        wrapper_cache.remember(mpi.mpicc, facts, aside)
        try:
            aside.chmod(0o755)
            aside.rename(folder)
        except (
            OSError
        ):  # another process was faster, or an earlier attempt left it without a library
            if _found(folder) is None:
                shutil.rmtree(folder, ignore_errors=True)
                aside.rename(folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    found = _found(folder)
    if found is None:
        message = f"compiling for {mpi} produced no {LIBRARY} in {folder}"
        raise MpiError(message, kind="not_built", fields={"folder": str(folder)})
    return found


def _make(make: str, mpi: Mpi, source: Path, out: Path, sanitize: str | None) -> None:
    jobs = f"-j{os.cpu_count() or 1}"
    command = [make, "--no-print-directory", jobs, "-C", str(source)]
    command += [f"CC={mpi.mpicc}", f"OUT={out}"]
    command += [f"SANITIZE={sanitize}"] if sanitize else []
    # A parent `make` would pass on its options and job server.
    outside = {k: v for k, v in os.environ.items() if k not in {"MAKEFLAGS", "MFLAGS", "MAKELEVEL"}}
    done = subprocess.run(  # noqa: S603 - tutti's sources, with the user's compiler
        command, capture_output=True, text=True, errors="replace", env=outside, check=False
    )
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).strip().splitlines()
        errors = [line for line in lines if "error" in line.lower()] or lines
        log = "\n".join(errors[:_LOG_LINES])
        lacks = "Error 127" in log  # the shell's exit code for a missing command
        message = f"compiling the library for {mpi} with {mpi.mpicc} failed:\n{log}"
        raise MpiError(message, kind="no_compiler" if lacks else "not_built",
                       fields={"mpicc": str(mpi.mpicc), "output": "\n".join(lines)})  # fmt: skip
