"""Messages that an MPI really sends for a collective: per pair of ranks, counted by the MPI itself.

Open MPI counts them in its monitoring component (``pml_monitoring``). MPICH has no counters, but
libfabric writes down every message that it is given: for that, the ranks are taken for hosts of
their own (``MPIR_CVAR_NOLOCAL``) and talk over TCP, which no choice of algorithm looks at except
where it depends on who shares a host. libtutti_mpi reports what its schedules sent.

A run of no call is taken from a run of some calls: what is left is what the collective sent.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tutti.errors import ProofError, TuningError
from tutti.mpi.bench_job import Group
from tutti.mpi.launch import run_ranks
from tutti.mpi.library import built
from tutti.mpi.report import Report

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tutti.mpi.host import Host
    from tutti.schedule import Schedule

__all__ = ["Call", "Traffic", "sent_by_host", "sent_by_library", "sent_by_schedule"]

_SECONDS = 120.0
_TWICE = 2
_MONITORED = re.compile(r"^[EI]\t(\d+)\t(\d+)\t(\d+) bytes\t(\d+) msgs", re.MULTILINE)
_TRACED = re.compile(r"^\[(\d+)\].*trace_(?:t?inject|t?send)\w*\(\).*? len (\d+) addr (\d+)\b")


@dataclass(frozen=True)
class Call:
    """A call of a collective.

    Attributes:
        collective: which.
        ranks: how many take part.
        size: in bytes, by the convention of nccl-tests.
        datatype: of the elements.
        root: of a rooted one.
    """

    collective: str
    ranks: int
    size: int
    datatype: str = "float32"
    root: int = 0


Traffic = Counter[tuple[int, int, str]]
"""Messages and bytes by pair: ``traffic[source, destination, "messages"]``, and ``"bytes"``."""


def sent_by_schedule(schedule: Schedule, call: Call) -> Traffic:
    """What a schedule sends for a call; messages of no bytes are counted too."""
    from tutti.platform import Platform, Postal
    from tutti.simulate import simulate
    from tutti.units import Size

    machine = Platform(name="any", model=Postal(alpha="1 us"))
    run = simulate(schedule, machine, size=Size(bytes=call.size), datatype=call.datatype)
    found = Traffic()
    for row in run.messages_frame.iter_rows(named=True):
        _add(found, row["source"], row["destination"], row["bytes"])
    return found


def sent_by_library(
    host: Host, plan: Path, call: Call, *, timeout: float = _SECONDS
) -> tuple[Traffic, Report]:
    """What libtutti_mpi sends for a call under a plan, and its report.

    Raises:
        ProofError: the run failed.
        MpiError: the library cannot be compiled.
        LaunchError: the ranks cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="tutti-proof-") as name:
        prefix = Path(name) / "report"
        env = {
            "TUTTI_MPI_PLAN": str(plan.resolve()),
            "TUTTI_MPI_REPORT": str(prefix),
            "TUTTI_MPI_COUNTS": "1",
        }
        _run(host, call, 1, Path(name), env=env, timeout=timeout)
        report = Report.read(f"{prefix}.json")
    found = Traffic()
    for kind in ("messages", "bytes"):
        for source, row in enumerate(report.data[kind]):
            for destination, value in enumerate(row):
                if value:
                    found[source, destination, kind] += value
    return found, report


def sent_by_host(
    host: Host,
    call: Call,
    *,
    env: Mapping[str, str] | None = None,
    options: Sequence[str] = (),
    timeout: float = _SECONDS,
) -> Traffic:
    """What the MPI itself sends for a call.

    Args:
        host: the MPI.
        call: of what.
        env: variables of the ranks, such as those that name a file of rules.
        options: of the launcher.
        timeout: seconds until a run is ended.

    Raises:
        TuningError: an MPI that does not let itself be watched.
        ProofError: the run failed.
    """
    watched = {"openmpi": _monitored, "mpich": _traced}.get(host.kind)
    if watched is None:
        raise TuningError(f"{host} has no counters that are known here", kind="cannot_prove")
    none = watched(host, call, 0, dict(env or {}), options=list(options), timeout=timeout)
    some = watched(host, call, _TWICE, dict(env or {}), options=list(options), timeout=timeout)
    some.subtract(none)
    return Traffic({key: value // _TWICE for key, value in some.items() if value})


# --- one run --------------------------------------------------------------------------------------


def _run(
    host: Host,
    call: Call,
    times: int,
    folder: Path,
    *,
    env: Mapping[str, str],
    options: Sequence[str] = (),
    timeout: float,
) -> str:
    """Calls a collective so many times; what the ranks and the launcher said."""
    from tutti.datatypes import DATATYPES

    count = call.size // DATATYPES[call.datatype]
    group = Group(call.collective, count, call.datatype, "sum", call.root, [])
    job = folder / "job"
    job.write_text(
        "\n".join([f"out {folder / 'samples'}", "counting 1", f"once {times}", *group.lines(), ""])
    )
    made = built(host)
    done = run_ranks(host, call.ranks, [made.bench, job], env=env, timeout=timeout, extra=options)
    if done.code != 0:
        said = "\n".join((done.stderr or done.stdout).strip().splitlines()[-8:])
        message = (
            f"a run of {call.collective} on {call.ranks} ranks ended with {done.code}:\n{said}"
        )
        raise ProofError(message, kind="failed", fields={"code": done.code})
    return done.stdout + done.stderr


def _add(found: Traffic, source: int, destination: int, size: int) -> None:
    found[source, destination, "messages"] += 1
    found[source, destination, "bytes"] += size


def _monitored(
    host: Host, call: Call, times: int, env: dict[str, str], *, options: list[str], timeout: float
) -> Traffic:
    found = Traffic()
    with tempfile.TemporaryDirectory(prefix="tutti-proof-") as name:
        prefix = Path(name) / "sent"
        watch = {
            "OMPI_MCA_pml_monitoring_enable": "2",
            "OMPI_MCA_pml_monitoring_enable_output": "3",
            "OMPI_MCA_pml_monitoring_filename": str(prefix),
        }
        _run(host, call, times, Path(name), env=env | watch, options=options, timeout=timeout)
        for path in Path(name).glob("sent.*.prof"):
            text = path.read_text("utf-8").partition("# COLLECTIVES")[0]
            for source, destination, size, messages in _MONITORED.findall(text):
                found[int(source), int(destination), "messages"] += int(messages)
                found[int(source), int(destination), "bytes"] += int(size)
    return found


def _traced(
    host: Host, call: Call, times: int, env: dict[str, str], *, options: list[str], timeout: float
) -> Traffic:
    watch = {
        "MPIR_CVAR_NOLOCAL": "1",
        "MPIR_CVAR_CH4_NETMOD": "ofi",
        "FI_PROVIDER": "tcp",
        "FI_HOOK": "trace",
        "FI_LOG_LEVEL": "trace",
    }
    with tempfile.TemporaryDirectory(prefix="tutti-proof-") as name:
        said = _run(host, call, times, Path(name), env=env | watch,
                    options=["-prepend-rank", *options], timeout=timeout)  # fmt: skip
    if "Installing trace hook" not in said:
        message = f"{host} has no libfabric that writes down its messages"
        raise TuningError(message, kind="cannot_prove")
    found = Traffic()
    for line in said.splitlines():
        if sent := _TRACED.match(line):
            source, size, place = (int(part) for part in sent.groups())
            # A rank's table of addresses begins with its own; the others follow in order.
            _add(found, source, place if place > source else place - 1, size)
    return found
