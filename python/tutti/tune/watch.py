"""Messages that an MPI really sends for a collective: per pair of ranks, counted by the MPI itself.

Open MPI counts them in its monitoring component (``pml_monitoring``). MPICH has no counters, but
libfabric writes down every message that it is given: for that, the ranks are taken for hosts of
their own (``MPIR_CVAR_NOLOCAL``) and talk over TCP, which no choice of algorithm looks at except
where it depends on who shares a host. libtutti_mpi reports what its schedules sent.

A run of no call is taken from a run of two calls: what is left is what two collectives sent, whose
counts are not halved: an odd one would be hidden by that.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tutti.errors import ProofError, TuningError
from tutti.mpi.bench_job import Group, said_of_its_end
from tutti.mpi.launch import common_folder, run_ranks, stay_here
from tutti.mpi.library import built
from tutti.mpi.report import Report

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from tutti.mpi.underneath import Mpi
    from tutti.schedule import Schedule

__all__ = ["CALLS", "Call", "Traffic", "sent_by_library", "sent_by_mpi", "sent_by_schedule"]

CALLS: Final = 2
"""How many are counted together."""
_SECONDS = 120.0
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
    """What a schedule sends for :data:`CALLS` calls; messages of no bytes are counted too."""
    from tutti.platform import Platform, Postal
    from tutti.simulate import simulate
    from tutti.units import Size

    machine = Platform(name="any", model=Postal(alpha="1 us"))
    run = simulate(schedule, machine, size=Size(bytes=call.size), datatype=call.datatype)
    found = Traffic()
    for row in run.messages_frame.iter_rows(named=True):
        _add(found, row["source"], row["destination"], row["bytes"])
    return Traffic({key: CALLS * value for key, value in found.items()})


def sent_by_library(
    mpi: Mpi,
    call: Call,
    env: Mapping[str, str],
    *,
    options: Sequence[str] = (),
    timeout: float = _SECONDS,
) -> tuple[Traffic, Report]:
    """What libtutti_mpi sends for :data:`CALLS` calls, and its report.

    Args:
        mpi: the MPI.
        call: of what.
        env: variables of the ranks: those that name a plan.
        options: of the launcher.
        timeout: seconds until the run is ended.

    Raises:
        ProofError: the run failed.
        MpiError: the library cannot be compiled.
        LaunchError: the ranks cannot be started.
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
    """What the MPI itself sends for :data:`CALLS` calls; what is not as often in both is seen.

    Args:
        mpi: the MPI.
        call: of what.
        env: variables of the ranks, such as those that name a file of rules.
        options: of the launcher.
        timeout: seconds until a run is ended.

    Raises:
        TuningError: an MPI that does not let itself be watched.
        ProofError: the run failed.
    """
    watched = {"openmpi": _monitored, "mpich": _traced}.get(mpi.kind)
    if watched is None:
        raise TuningError(f"{mpi} has no counters that are known here", kind="cannot_prove")
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
    """Calls a collective so many times; what the ranks and the launcher said."""
    from tutti.datatypes import DATATYPES

    count = call.size // DATATYPES[call.datatype]
    group = Group(call.collective, count, call.datatype, "sum", call.root, [])
    job = folder / "job"
    job.write_text(
        "\n".join([f"out {folder / 'samples'}", "counting 1", f"once {times}", *group.lines(), ""])
    )
    made = built(mpi)
    done = run_ranks(mpi, call.ranks, [made.bench, job], env=env, timeout=timeout, extra=options)
    if done.code != 0:
        said = said_of_its_end(done, folder / "samples")
        message = (
            f"a run of {call.collective} on {call.ranks} ranks ended with {done.code}:\n{said}"
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
        said = _run(mpi, call, times, folder, env=env | watch,
                    options=["-prepend-rank", *options], timeout=timeout)  # fmt: skip
    if "Installing trace hook" not in said:
        message = f"{mpi} has no libfabric that writes down its messages"
        raise TuningError(message, kind="cannot_prove")
    found = Traffic()
    for line in said.splitlines():
        if sent := _TRACED.match(line):
            source, size, place = (int(part) for part in sent.groups())
            # A rank's table of addresses begins with its own; the others follow in order.
            _add(found, source, place if place > source else place - 1, size)
    return found
