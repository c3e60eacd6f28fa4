"""A live run of the probe: two ranks, and what they tell of the network between them.

The measuring program of the MPI library does it (mpi/bench/probe.c): round trips of several sizes,
with and without pauses between messages, bursts that an empty message answers, how long issuing a
message keeps its sender, and what a fold costs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tutti.errors import CalibrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tutti.mpi.underneath import Mpi

__all__ = ["probe"]

_SCHEMA: dict[str, type[pl.DataType]] = {
    "kind": pl.String,
    "what": pl.String,
    "bytes": pl.Int64,
    "messages": pl.Int64,
    "delay_ns": pl.Int64,
    "sample": pl.Int64,
    "time_ns": pl.Int64,
}
_WARM_UP = 20
_SECONDS = 600.0


def probe(
    mpi: Mpi,
    *,
    samples: int = 200,
    most_bytes: int = 1 << 18,
    options: Sequence[str] = (),
    starting: Callable[[], object] | None = None,
) -> pl.DataFrame:
    """Measures between two ranks of an MPI.

    Args:
        mpi: the MPI.
        samples: how often each configuration is measured; they take turns.
        most_bytes: the longest message.
        options: of the launcher, such as which hosts the two ranks are on.
        starting: called before something is compiled, which takes seconds.

    Returns:
        A row per sample: what, bytes, messages, delay_ns, sample, time_ns.

    Raises:
        MpiError: the measuring program cannot be compiled.
        LaunchError: the ranks cannot be started, or do not end.
        CalibrationError: the measuring program failed.
    """
    rows = _run(mpi, samples, most_bytes, options, starting)
    found = rows.filter(pl.col("kind") == "probe").drop("kind")
    if found.is_empty():
        raise CalibrationError("the measuring program wrote no samples", kind="probe")
    return found


def _run(
    mpi: Mpi,
    samples: int,
    most_bytes: int,
    options: Sequence[str],
    starting: Callable[[], object] | None,
) -> pl.DataFrame:
    """All that the measuring program wrote."""
    from tutti.mpi.bench_job import said_of_its_end
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
            said = said_of_its_end(done, out)
            message = f"the measuring program ended with {done.code}: {said}"
            raise CalibrationError(message, kind="probe", fields={"code": done.code})
        return pl.read_ndjson(out, schema=_SCHEMA, ignore_errors=True)
