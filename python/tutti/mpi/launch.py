"""Starting ranks: the command line and the environment of a run.

The library is for the ranks only. A launcher that preloaded it would load the MPI library twice, so
the variables are passed to the ranks by options of each launcher.
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

from tutti.mpi.errors import LaunchError

if TYPE_CHECKING:
    from tutti.mpi.underneath import Kind, Mpi

Preload = Path | Sequence[Path] | None
_GRACE_SECONDS: Final = 10.0
"""Between a request to end the ranks and killing the launcher."""

_ALLOW_OVERSUBSCRIPTION: Final[dict[str, str]] = {
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}
"""Open MPI rejects more ranks than cores by default; MPICH accepts them."""

_ON_CROWDED_CORES: Final[dict[str, str]] = {
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1",
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT": "16",
}
"""MPICH's waiting ranks spin by default. These make them sleep a microsecond after 16 polls without
progress: a barrier of 64 ranks on 2 cores then takes 30 ms, not 330 ms. Open MPI yields cores
itself if its launcher counts more ranks than cores."""

SHARED: Final = "TUTTI_SHARED"
"""Names a folder that all hosts share."""
_ALLOCATIONS: Final = (
    "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "PE_HOSTFILE", "COBALT_JOBID", "FLUX_JOB_ID",
    "OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile", "HYDRA_HOST_FILE",
)  # fmt: skip
"""Variables that list other hosts for launchers."""
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
"""If a rank cannot load the library, the loader only warns. The rank would then run without
schedules, and the others would wait for it forever."""

_LOADED: Final = 'export LD_PRELOAD="$0"; exec "$@"'
"""Launchers of batch systems pass on their environment, but must not load the library."""

_AS_ROOT: Final = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
"""Containers often have no other user; elsewhere Open MPI rightly refuses."""


_SESSION_FOLDER: Final = ("PRTE_MCA_prte_tmpdir_base", "OMPI_MCA_orte_tmpdir_base")
"""Variables that name the folder of the launcher's files, in Open MPI 5 and 4."""


@dataclass(frozen=True)
class Finished:
    """The outcome of a run.

    Attributes:
        stdout: Output of all ranks.
        stderr: Output of all ranks and of the launcher.
        code: The launcher's exit code: 0 if every rank exited with 0.
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
    """Runs a program on ranks of this machine, with more ranks than cores if necessary.

    Args:
        mpi: The MPI library.
        ranks: Number of ranks.
        argv: The program and its arguments.
        env: Additional environment variables of the ranks.
        preload: Libraries for LD_PRELOAD, in this order.
        timeout: Seconds after which all ranks are ended; None waits indefinitely.
        extra: Options of the launcher.

    Raises:
        LaunchError: The launcher was not found, or the ranks exceeded the timeout.
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
        around = _ALLOW_OVERSUBSCRIPTION | around | (_AS_ROOT if os.geteuid() == 0 else {})
        with session_folder() as folder:
            return _finished(command, folder | around, timeout)
    elif mpi.starts == "mpich" and ranks > len(os.sched_getaffinity(0)):
        around = _ON_CROWDED_CORES | around
    elif mpi.starts == "other":
        around |= variables
    return _finished(command, around, timeout)


def guard(preload: str, machine: str, sign: Path) -> list[str]:
    """Returns words before a program that make a rank check and load the library.

    Args:
        preload: The value of LD_PRELOAD; its first file is the library.
        machine: The machine of the library, as printed by ``uname -m``; "" if unknown.
        sign: A file that a rank writes if it cannot load the library.
    """
    return ["/bin/sh", "-c", _GUARD, "tutti", preload, machine, str(sign)]


@contextmanager
def session_folder() -> Iterator[dict[str, str]]:
    """Provides a temporary folder for the files of Open MPI's launcher, as environment variables.

    Without them the files are in ``/tmp/ompi.<process ID>``. A launcher that is killed leaves them
    behind, and a later launcher with the same process ID fails to start ("The PMIx server's
    listener thread failed to start", Open MPI 5.0.11).
    """
    with tempfile.TemporaryDirectory(prefix="tutti-", ignore_cleanup_errors=True) as folder:
        yield dict.fromkeys(_SESSION_FOLDER, folder)


@contextmanager
def common_folder(name: str, *, here: bool) -> Iterator[Path]:
    """Provides a temporary folder for files that ranks read and write.

    Args:
        name: Part of its name.
        here: Whether all ranks are on this host: then the folder is among the temporary files.
            Otherwise it is in the working directory, which all hosts of a job usually share.
            TUTTI_SHARED overrides both.

    Raises:
        LaunchError: It cannot be created.
    """
    named = os.environ.get(SHARED)
    where: Path | None = Path(named).absolute() if named else Path.cwd()
    if not named and here:
        where = None
    prefix = f".tutti-{name}-" if where else f"tutti-{name}-"
    try:
        made = tempfile.TemporaryDirectory(prefix=prefix, dir=where, ignore_cleanup_errors=True)
    except OSError as error:
        message = f"{where or tempfile.gettempdir()}: cannot create a folder: {error.strerror}"
        raise LaunchError(message, kind="folder", fields={"folder": str(where)}) from None
    with made as folder:
        yield Path(folder)


def stay_here(kind: Kind, options: Sequence[str]) -> bool:
    """Whether ranks are certainly on this host.

    That is unknown for the launcher of a batch system, if this process is part of a batch job, or
    if an option names hosts.
    """
    names = {word.lstrip("-").partition("=")[0] for word in options if word.startswith("-")}
    return kind != "other" and not _HOSTS & names and not set(_ALLOCATIONS) & set(os.environ)


def preloaded(preload: Preload) -> dict[str, str]:
    """Returns LD_PRELOAD with these libraries before those already in it."""
    if preload is None:
        return {}
    first = [preload] if isinstance(preload, Path) else list(preload)
    there = [name for name in os.environ.get("LD_PRELOAD", "").split(":") if name]
    return {"LD_PRELOAD": ":".join([*map(str, first), *there])}


def rank_options(kind: Kind, variables: Mapping[str, str]) -> list[str]:
    """Returns the launcher's options that set these variables in its ranks only.

    Empty for a launcher of a batch system, whose ranks inherit the launcher's environment.
    """
    if kind == "openmpi":
        return [part for name, value in variables.items() for part in ("-x", f"{name}={value}")]
    if kind == "mpich":
        return [part for name, value in variables.items() for part in ("-genv", name, value)]
    return []


def _finished(command: list[str], env: dict[str, str], timeout: float | None) -> Finished:
    try:
        process = subprocess.Popen(  # noqa: S603 - the caller's command
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
        message = f"{' '.join(command)}: still running after {timeout:g} s"
        fields = {"stdout": stdout, "stderr": stderr, "command": command}
        raise LaunchError(message, kind="timeout", fields=fields) from None
    except BaseException:
        _ended(process)
        raise
    return Finished(stdout, stderr, process.returncode)


@contextmanager
def ended_by_signals(end: Callable[[], object]) -> Iterator[None]:
    """Calls a function on signals that would end this process and leave the ranks running.

    Signals that this process ignores, as under nohup, stay ignored. Only the main thread can handle
    signals: in other threads nothing changes.
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
    """Stops waiting for the ranks, which are then ended."""
    raise SystemExit(128 + signal.SIGTERM)


def _ended(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Ends a launcher, which ends its ranks, and returns their output."""
    process.send_signal(signal.SIGTERM)
    try:
        return process.communicate(timeout=_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        process.kill()
    start = time.monotonic()
    while process.poll() is None and time.monotonic() - start < _GRACE_SECONDS:
        time.sleep(0.01)
    try:
        return process.communicate(timeout=_GRACE_SECONDS)
    except subprocess.TimeoutExpired:  # a rank that has left the group still holds the pipe
        return "", ""
