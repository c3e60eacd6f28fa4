"""A live run of the probe, between two ranks.

The benchmark program of the MPI library performs it (mpi/bench/probe.c): round trips of several
sizes, with and without pauses between messages, bursts that an empty message acknowledges, the time
to issue a message, and the cost of a fold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tutti.measured.errors import CalibrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tutti.mpi.underneath import Mpi

_SCHEMA: dict[str, type[pl.DataType]] = {
    "kind": pl.String,
    "what": pl.String,
    "bytes": pl.Int64,
    "messages": pl.Int64,
    "delay_ns": pl.Int64,
    "sample": pl.Int64,
    "time_ns": pl.Int64,
    "hosts": pl.Int64,
}
_APART = {"openmpi": ("--map-by", "ppr:1:node"), "mpich": ("-ppn", "1")}
_TWO_HOSTS = "this run has one rank on each of two hosts: start it in a job of two hosts"
_WARM_UP = 20
_SECONDS = 600.0


def one_rank_per_host(launcher: str) -> list[str]:
    """Returns the options of a launcher that put each rank on another host.

    Args:
        launcher: The implementation, as `Mpi.starts`.

    Raises:
        CalibrationError: They are unknown.
    """
    if launcher not in _APART:
        raise CalibrationError(
            "the launcher's options to put two ranks on two hosts are unknown",
            kind="probe",
            hint="measure in two runs, such as osu_latency, and name their files",
        )
    return list(_APART[launcher])


def probe(
    mpi: Mpi,
    *,
    samples: int = 200,
    most_bytes: int = 1 << 18,
    options: Sequence[str] = (),
    starting: Callable[[], object] | None = None,
) -> pl.DataFrame:
    """Measures the network between two ranks of an MPI library.

    Args:
        mpi: the MPI library.
        samples: samples of each configuration; configurations take turns.
        most_bytes: the longest message.
        options: options of the launcher, such as the hosts of the ranks.
        starting: called before a compilation, which takes seconds.

    Returns:
        A row per sample: what, bytes, messages, delay_ns, sample, time_ns, hosts (their number).

    Raises:
        MpiError: The benchmark program cannot be compiled.
        LaunchError: The ranks cannot be started, or exceed the timeout.
        CalibrationError: The benchmark program failed.
    """
    rows = _run(mpi, samples, most_bytes, options, starting)
    found = rows.filter(pl.col("kind") == "probe").drop("kind")
    if found.is_empty():
        raise CalibrationError("the benchmark program wrote no samples", kind="probe")
    hosts = rows.filter(pl.col("kind") == "run")["hosts"].drop_nulls()
    return found.with_columns(hosts=pl.lit(hosts[0] if len(hosts) else None, pl.Int64))


def _run(
    mpi: Mpi,
    samples: int,
    most_bytes: int,
    options: Sequence[str],
    starting: Callable[[], object] | None,
) -> pl.DataFrame:
    """Returns the samples of the benchmark program."""
    from tutti.mpi.bench_job import failure_text
    from tutti.mpi.launch import common_folder, run_ranks, stay_here
    from tutti.mpi.library import built

    made = built(mpi, starting=starting)
    with common_folder("probe", here=stay_here(mpi.starts, options)) as folder:
        out, job = folder / "samples.jsonl", folder / "job"
        settings = {"warmup": _WARM_UP, "probes": samples, "probe_bytes": most_bytes}
        lines = [f"out {out}", *(f"{key} {value}" for key, value in settings.items())]
        job.write_text("\n".join([*lines, ""]), "utf-8")
        done = run_ranks(mpi, 2, [made.bench, job], timeout=_SECONDS, extra=options)
        if done.code != 0 or not out.is_file():
            problem = failure_text(done, out)
            message = f"the benchmark program exited with {done.code}: {problem}"
            apart = _APART.get(mpi.starts)
            hint = _TWO_HOSTS if apart and set(apart) <= {*options} else None
            raise CalibrationError(message, kind="probe", hint=hint, fields={"code": done.code})
        return pl.read_ndjson(out, schema=_SCHEMA, ignore_errors=True)
