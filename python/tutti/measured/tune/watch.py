"""Counts the messages that an MPI library sends for a collective, per pair of ranks.

Open MPI counts them in its monitoring component (``pml_monitoring``). MPICH has no counters, but
libfabric can log every message. For that, ``MPIR_CVAR_NOLOCAL`` makes all ranks communicate over
TCP, which affects algorithms only if they depend on shared hosts. libtutti_mpi reports what its
schedules sent.

The counts of a run without calls are subtracted from those of a run with two calls. They are not
halved, which would hide an odd count.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tutti.measured.errors import ProofError, TuningError
from tutti.mpi.bench_job import Group, failure_text
from tutti.mpi.launch import common_folder, run_ranks, stay_here
from tutti.mpi.library import built
from tutti.mpi.report import Report

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from tutti.mpi.underneath import Mpi
    from tutti.schedules.ir import Schedule

CALLS: Final = 2
"""Number of calls that are counted together."""
_SECONDS = 120.0
_MONITORED = re.compile(r"^[EI]\t(\d+)\t(\d+)\t(\d+) bytes\t(\d+) msgs", re.MULTILINE)
_TRACED = re.compile(r"^\[(\d+)\].*trace_(?:t?inject|t?send)\w*\(\).*? len (\d+) addr (\d+)\b")


@dataclass(frozen=True)
class Call:
    """A call of a collective.

    Attributes:
        collective: name of the collective.
        ranks: number of ranks.
        size: in bytes, by the convention of nccl-tests.
        datatype: datatype of the elements.
        root: root of a rooted collective.
    """

    collective: str
    ranks: int
    size: int
    datatype: str = "float32"
    root: int = 0


Traffic = Counter[tuple[int, int, str]]
"""Messages and bytes by pair: ``traffic[source, destination, "messages"]``, and ``"bytes"``."""


def sent_by_schedule(schedule: Schedule, call: Call) -> Traffic:
    """Counts what a schedule sends in :data:`CALLS` calls, including empty messages."""
    from tutti.base.units import Size
    from tutti.collectives.simulation import simulate
    from tutti.platforms.machine import Platform, Postal

    machine = Platform(name="any", model=Postal(alpha="1 us"))
    run = simulate(schedule, machine, size=Size(bytes=call.size), datatype=call.datatype)
    found = Traffic()
    for row in run.messages_frame.iter_rows(named=True):
        _add(found, row["source"], row["destination"], row["bytes"])
    return Traffic({key: CALLS * value for key, value in found.items()})


def lengths(traffic: Traffic) -> tuple[int, list[int]]:
    """Returns the number of messages and the bytes of each rank, invariant under renumbering."""
    messages = sum(count for key, count in traffic.items() if key[2] == "messages")
    sent: dict[int, int] = {}
    for (source, _, kind), count in traffic.items():
        sent[source] = sent.get(source, 0) + (count if kind == "bytes" else 0)
    return messages, sorted(sent.values())


def sent_by_library(
    mpi: Mpi,
    call: Call,
    env: Mapping[str, str],
    *,
    options: Sequence[str] = (),
    timeout: float = _SECONDS,
) -> tuple[Traffic, Report]:
    """Counts what libtutti_mpi sends in :data:`CALLS` calls; returns the report as well.

    Args:
        mpi: the MPI library.
        call: the call.
        env: variables of the ranks, which name a plan.
        options: options of the launcher.
        timeout: seconds after which the run is ended.

    Raises:
        ProofError: The run failed.
        MpiError: The library cannot be compiled.
        LaunchError: The ranks cannot be started.
    """
    with _folder(mpi, options) as folder:
        prefix = folder / "report"
        watch = {"TUTTI_MPI_REPORT": str(prefix), "TUTTI_MPI_COUNTS": "1"}
        _run(mpi, call, CALLS, folder, env={**env, **watch}, options=options, timeout=timeout)
        report = Report.read(f"{prefix}.json")
    found = Traffic()
    for kind in ("messages", "bytes"):
        for source, row in enumerate(report.data[kind]):
            for destination, value in enumerate(row):
                if value:
                    found[source, destination, kind] += value
    return found, report


def sent_by_mpi(
    mpi: Mpi,
    call: Call,
    *,
    env: Mapping[str, str] | None = None,
    options: Sequence[str] = (),
    timeout: float = _SECONDS,
) -> Traffic:
    """Counts what the MPI library sends in :data:`CALLS` calls.

    Args:
        mpi: the MPI library.
        call: the call.
        env: variables of the ranks, such as those of rules.
        options: options of the launcher.
        timeout: seconds after which a run is ended.

    Raises:
        TuningError: The MPI library cannot count messages.
        ProofError: The run failed.
    """
    watched = {"openmpi": _monitored, "mpich": _traced}.get(mpi.kind)
    if watched is None:
        raise TuningError(f"{mpi} has no known message counters", kind="cannot_prove")
    none = watched(mpi, call, 0, dict(env or {}), options=list(options), timeout=timeout)
    some = watched(mpi, call, CALLS, dict(env or {}), options=list(options), timeout=timeout)
    some.subtract(none)
    return Traffic({key: value for key, value in some.items() if value})


# --- one run --------------------------------------------------------------------------------------


def _folder(mpi: Mpi, options: Sequence[str]) -> AbstractContextManager[Path]:
    return common_folder("proof", here=stay_here(mpi.starts, options))


def _run(
    mpi: Mpi,
    call: Call,
    times: int,
    folder: Path,
    *,
    env: Mapping[str, str],
    options: Sequence[str] = (),
    timeout: float,
) -> str:
    """Calls a collective repeatedly; returns the output of the ranks and the launcher."""
    from tutti.base.datatypes import DATATYPES

    count = call.size // DATATYPES[call.datatype]
    group = Group(call.collective, count, call.datatype, "sum", call.root, [])
    job = folder / "job"
    job.write_text(
        "\n".join([f"out {folder / 'samples'}", "counting 1", f"once {times}", *group.lines(), ""])
    )
    made = built(mpi)
    done = run_ranks(mpi, call.ranks, [made.bench, job], env=env, timeout=timeout, extra=options)
    if done.code != 0:
        problem = failure_text(done, folder / "samples")
        message = (
            f"a run of {call.collective} on {call.ranks} ranks exited with {done.code}:\n{problem}"
        )
        raise ProofError(message, kind="failed", fields={"code": done.code})
    return done.stdout + done.stderr


def _add(found: Traffic, source: int, destination: int, size: int) -> None:
    found[source, destination, "messages"] += 1
    found[source, destination, "bytes"] += size


def _monitored(
    mpi: Mpi, call: Call, times: int, env: dict[str, str], *, options: list[str], timeout: float
) -> Traffic:
    found = Traffic()
    with _folder(mpi, options) as folder:
        prefix = folder / "sent"
        watch = {
            "OMPI_MCA_pml_monitoring_enable": "2",
            "OMPI_MCA_pml_monitoring_enable_output": "3",
            "OMPI_MCA_pml_monitoring_filename": str(prefix),
        }
        _run(mpi, call, times, folder, env=env | watch, options=options, timeout=timeout)
        for path in folder.glob("sent.*.prof"):
            text = path.read_text("utf-8").partition("# COLLECTIVES")[0]
            for source, destination, size, messages in _MONITORED.findall(text):
                found[int(source), int(destination), "messages"] += int(messages)
                found[int(source), int(destination), "bytes"] += int(size)
    return found


def _traced(
    mpi: Mpi, call: Call, times: int, env: dict[str, str], *, options: list[str], timeout: float
) -> Traffic:
    watch = {
        "MPIR_CVAR_NOLOCAL": "1",
        "MPIR_CVAR_CH4_NETMOD": "ofi",
        "FI_PROVIDER": "tcp",
        "FI_HOOK": "trace",
        "FI_LOG_LEVEL": "trace",
    }
    with _folder(mpi, options) as folder:
        output = _run(mpi, call, times, folder, env=env | watch,
                      options=["-prepend-rank", *options], timeout=timeout)  # fmt: skip
    if "Installing trace hook" not in output:
        message = f"{mpi} has no libfabric that can log messages"
        raise TuningError(message, kind="cannot_prove")
    found = Traffic()
    for line in output.splitlines():
        if sent := _TRACED.match(line):
            source, size, place = (int(part) for part in sent.groups())
            # A rank's table of addresses starts with itself; the others follow in order.
            _add(found, source, place if place > source else place - 1, size)
    return found
