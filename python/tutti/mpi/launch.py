"""Starting ranks: the command line and the environment of a run.

The library is for the ranks alone. A launcher that met it too would load the MPI twice over, so
each kind of launcher is told in its own words which variables its ranks get.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tutti.errors import LaunchError

if TYPE_CHECKING:
    from tutti.mpi.underneath import Kind, Mpi

__all__ = [
    "SHARED",
    "Finished",
    "common_folder",
    "ended_by_signals",
    "guard",
    "preloaded",
    "rank_options",
    "run_ranks",
    "stay_here",
]

Preload = Path | Sequence[Path] | None
_GRACE_SECONDS: Final = 10.0
"""Between asking a launcher to end its ranks and ending it."""

_ON_A_SMALL_MACHINE: Final[dict[str, str]] = {
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}
"""Open MPI refuses more ranks than cores unless it is told to; MPICH does not."""

_ON_CROWDED_CORES: Final[dict[str, str]] = {
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1",
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT": "16",
}
"""MPICH's waiting ranks keep their core from those that they wait for, unless they are told to
sleep a microsecond after so many looks in vain: a barrier of 64 ranks on 2 cores takes 30 ms then,
not 330. Open MPI gives cores up by itself where its launcher has counted more ranks than cores."""

SHARED: Final = "TUTTI_SHARED"
"""Names a folder that all hosts see."""
_ALLOCATIONS: Final = (
    "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "PE_HOSTFILE", "COBALT_JOBID", "FLUX_JOB_ID",
    "OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile", "HYDRA_HOST_FILE",
)  # fmt: skip
"""Variables by which launchers find other hosts."""
_HOSTS: Final = {
    "H", "host", "hosts", "f", "hostfile", "machinefile", "default-hostfile", "add-host",
    "add-hostfile", "machine", "rankfile",
}  # fmt: skip
"""Options that name other hosts."""

_GUARD: Final = "; ".join(
    [
        "library=${1%%:*} is=$(uname -m)",
        'if [ ! -r "$library" ]',
        'then why="cannot read $library"',
        'elif [ -n "$2" ] && [ "$is" != "$2" ]',
        'then why="is a machine of $is, and $library is for $2"',
        'else export LD_PRELOAD="$1"',
        "shift 3",
        'exec "$@"',
        "fi",
        'why="host $(uname -n) $why"',
        'echo "tutti: $why" >&2',
        'echo "$why" >>"$3"',
        "exit 2",
    ]
)
"""A rank that cannot load the library would go its own way, and the others wait for it for ever:
the loader itself only warns."""

_LOADED: Final = 'export LD_PRELOAD="$0"; exec "$@"'
"""Launchers of batch systems hand down their environment, and must not load the library."""

_AS_ROOT: Final = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
"""In a container there is often nobody else; outside of one Open MPI is right to refuse."""


@dataclass(frozen=True)
class Finished:
    """What a run left behind.

    Attributes:
        stdout: What all ranks wrote.
        stderr: What all ranks wrote, and the launcher.
        code: The launcher's exit code: 0 where every rank ended with 0.
    """

    stdout: str
    stderr: str
    code: int


def run_ranks(
    mpi: Mpi,
    ranks: int,
    argv: Sequence[str | os.PathLike[str]],
    *,
    env: Mapping[str, str] | None = None,
    preload: Preload = None,
    timeout: float | None = None,
    extra: Sequence[str] = (),
) -> Finished:
    """Runs a program on so many ranks of this machine, more than it has cores if need be.

    Args:
        mpi: The MPI.
        ranks: How many.
        argv: The program and its arguments.
        env: Variables that the ranks get beside those of this process.
        preload: What LD_PRELOAD brings in before the MPI, in this order.
        timeout: Seconds until all ranks are ended; None waits for ever.
        extra: Options of the launcher.

    Raises:
        LaunchError: There is no launcher, or the ranks had not ended in time.
    """
    if ranks < 1:
        message = f"{ranks} ranks: expected at least one"
        raise LaunchError(message, kind="no_ranks")
    variables = dict(env or {})
    before: list[str] = []
    if mpi.starts == "other" and preload is not None:
        before = ["/bin/sh", "-c", _LOADED, preloaded(preload)["LD_PRELOAD"]]
    else:
        variables |= preloaded(preload)
    options = rank_options(mpi.starts, variables)
    command = [
        str(mpi.mpiexec),
        *extra,
        "-n",
        str(ranks),
        *options,
        *before,
        *(os.fspath(part) for part in argv),
    ]
    around = dict(os.environ)
    if mpi.starts == "openmpi":
        around = _ON_A_SMALL_MACHINE | around | (_AS_ROOT if os.geteuid() == 0 else {})
    elif mpi.starts == "mpich" and ranks > len(os.sched_getaffinity(0)):
        around = _ON_CROWDED_CORES | around
    elif mpi.starts == "other":
        around |= variables
    return _finished(command, around, timeout)


def guard(preload: str, machine: str, sign: Path) -> list[str]:
    """Words before a program, with which a rank makes sure of the library and loads it.

    Args:
        preload: The value of LD_PRELOAD; its first file is the library.
        machine: What the library is compiled for, as ``uname -m`` says; "" where nobody knows.
        sign: A file that a rank writes which cannot load it.
    """
    return ["/bin/sh", "-c", _GUARD, "tutti", preload, machine, str(sign)]


@contextmanager
def common_folder(name: str, *, here: bool) -> Iterator[Path]:
    """A folder for what ranks read and write, which is removed in the end.

    Args:
        name: Part of its name.
        here: Whether all ranks are on this host: it then lies among the temporary files. Otherwise
            it lies in the working directory, as files of a job do that all its hosts see. Where
            TUTTI_SHARED names a folder it lies there.

    Raises:
        LaunchError: It cannot be made.
    """
    named = os.environ.get(SHARED)
    where: Path | None = Path(named).absolute() if named else Path.cwd()
    if not named and here:
        where = None
    prefix = f".tutti-{name}-" if where else f"tutti-{name}-"
    try:
        made = tempfile.TemporaryDirectory(prefix=prefix, dir=where, ignore_cleanup_errors=True)
    except OSError as error:
        message = f"{where or tempfile.gettempdir()}: no folder can be made in it: {error.strerror}"
        raise LaunchError(message, kind="folder", fields={"folder": str(where)}) from None
    with made as folder:
        yield Path(folder)


def stay_here(kind: Kind, options: Sequence[str]) -> bool:
    """Whether ranks are surely on this host.

    Nobody knows where the launcher is that of a batch system, where this process is part of a job
    of one, or where an option names hosts.
    """
    names = {word.lstrip("-").partition("=")[0] for word in options if word.startswith("-")}
    return kind != "other" and not _HOSTS & names and not set(_ALLOCATIONS) & set(os.environ)


def preloaded(preload: Preload) -> dict[str, str]:
    """LD_PRELOAD with these before what stands there already."""
    if preload is None:
        return {}
    first = [preload] if isinstance(preload, Path) else list(preload)
    there = [name for name in os.environ.get("LD_PRELOAD", "").split(":") if name]
    return {"LD_PRELOAD": ":".join([*map(str, first), *there])}


def rank_options(kind: Kind, variables: Mapping[str, str]) -> list[str]:
    """The launcher's options that give its ranks, and nobody else, these variables.

    None for a launcher of a batch system, whose ranks have the environment of their launcher.
    """
    if kind == "openmpi":
        return [part for name, value in variables.items() for part in ("-x", f"{name}={value}")]
    if kind == "mpich":
        return [part for name, value in variables.items() for part in ("-genv", name, value)]
    return []


def _finished(command: list[str], env: dict[str, str], timeout: float | None) -> Finished:
    try:
        process = subprocess.Popen(  # noqa: S603 - what the caller asks for
            command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        message = f"{command[0]}: cannot be started: {error.strerror}"
        raise LaunchError(message, kind="no_launcher", fields={"command": command}) from None
    try:
        with ended_by_signals(_leave):
            stdout, stderr = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        stdout, stderr = _ended(process)
        message = f"{' '.join(command)}: has not ended after {timeout:g} s"
        fields = {"stdout": stdout, "stderr": stderr, "command": command}
        raise LaunchError(message, kind="timeout", fields=fields) from None
    except BaseException:
        _ended(process)
        raise
    return Finished(stdout, stderr, process.returncode)


@contextmanager
def ended_by_signals(end: Callable[[], object]) -> Iterator[None]:
    """Calls a function on the signals that would end this process and leave the ranks running.

    Signals that this process ignores, as under nohup, stay ignored. Only the main thread can take
    signals: in others nothing changes.
    """
    taken: list[signal.Signals] = []
    is_main = threading.current_thread() is threading.main_thread()
    for one in (signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT) if is_main else ():
        if signal.getsignal(one) is signal.SIG_DFL:
            signal.signal(one, lambda *_: end())
            taken.append(one)
    try:
        yield
    finally:
        for one in taken:
            signal.signal(one, signal.SIG_DFL)


def _leave() -> None:
    """Leaves the wait for the ranks, which are then ended."""
    raise SystemExit(128 + signal.SIGTERM)


def _ended(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Ends a launcher, which ends its ranks, and takes what was said until then."""
    process.send_signal(signal.SIGTERM)
    try:
        return process.communicate(timeout=_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        process.kill()
    began = time.monotonic()
    while process.poll() is None and time.monotonic() - began < _GRACE_SECONDS:
        time.sleep(0.01)
    try:
        return process.communicate(timeout=_GRACE_SECONDS)
    except subprocess.TimeoutExpired:  # a rank that has left the group still holds the pipe
        return "", ""
