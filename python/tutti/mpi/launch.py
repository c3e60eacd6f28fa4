"""Starting ranks: the command line and the environment of a run.

The library is for the ranks alone. A launcher that met it too would load the MPI twice over, so
each kind of launcher is told in its own words which variables its ranks get.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tutti.errors import LaunchError

if TYPE_CHECKING:
    from tutti.mpi.host import Host, Kind

__all__ = ["Finished", "preloaded", "rank_options", "run_ranks"]

Preload = Path | Sequence[Path] | None
_GRACE_SECONDS: Final = 10.0
"""Between asking a launcher to end its ranks and ending it."""

_ON_A_SMALL_MACHINE: Final[dict[str, str]] = {
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}
"""Open MPI refuses more ranks than cores unless it is told to; MPICH does not."""

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
    host: Host,
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
        host: The MPI.
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
    variables = dict(env or {}) | preloaded(preload)
    options = rank_options(host.kind, variables)
    command = [
        str(host.mpiexec),
        *extra,
        "-n",
        str(ranks),
        *options,
        *(os.fspath(part) for part in argv),
    ]
    around = dict(os.environ)
    if host.kind == "openmpi":
        around |= _ON_A_SMALL_MACHINE | (_AS_ROOT if os.geteuid() == 0 else {})
    elif host.kind == "other":
        around |= variables
    return _finished(command, around, timeout)


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
