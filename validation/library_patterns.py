"""Compares the messages of the libraries' algorithms with those of the schedules in their table.

``python validation/library_patterns.py MPICC`` forces every algorithm of an MPI library in turn, counts
its messages per pair of ranks, and writes them to ``build/patterns/``; counts that exist are not
repeated. ``--write`` then writes the ranks at which each schedule's messages are equal to
``python/tutti/measured/tune/library_patterns.json``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tutti.base.errors import TuttiError
from tutti.measured.tune.library_algorithms import (
    FORCING,
    library_algorithms,
    release_line,
    variables,
)
from tutti.measured.tune.prove import verdict_of
from tutti.measured.tune.watch import CALLS, Call, Traffic, sent_by_mpi, sent_by_schedule
from tutti.mpi.underneath import find_mpi
from tutti.schedules.ir import schedule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tutti.measured.tune.library_algorithms import LibraryAlgorithm
    from tutti.mpi.underneath import Mpi

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all",
               "barrier", "gather", "scatter")  # fmt: skip
RANKS = (2, 3, 4, 5, 6, 7, 8, 9, 12, 16)
PART = 512
"""Bytes per rank: messages that no library divides by itself."""
SEGMENT = 128
COUNTS = Path("build/patterns")
WRITTEN = Path("python/tutti/measured/tune/library_patterns.json")
_SECONDS = 40.0


def cases(algorithm: LibraryAlgorithm) -> Iterator[tuple[int, int]]:
    """Yields segment sizes and fan-outs to count."""
    for fan in (2, 3, 4) if algorithm.fan else (0,):
        yield 0, fan
    if algorithm.segmented:
        yield SEGMENT, algorithm.fan_default


def call_of(collective: str, ranks: int) -> Call:
    """Returns the counted call."""
    return Call(collective, ranks, 0 if collective == "barrier" else ranks * PART)


def _count(mpi: Mpi, algorithm: LibraryAlgorithm, ranks: int, segment: int, fan: int) -> Any:
    prefix = "OMPI_MCA_" if algorithm.library == "openmpi" else ""
    named = {**FORCING[algorithm.library], **variables(algorithm, segment=segment, fan=fan)}
    env = {f"{prefix}{name}": value for name, value in named.items()}
    try:
        sent = sent_by_mpi(mpi, call_of(algorithm.collective, ranks), env=env, timeout=_SECONDS)
    except TuttiError as error:
        return {"failed": error.problem.splitlines()[0]}
    return [[*key, value] for key, value in sorted(sent.items())]


def count(mpi: Mpi) -> None:
    """Counts the messages of every algorithm, and stores them."""
    COUNTS.mkdir(parents=True, exist_ok=True)
    path = COUNTS / f"{mpi.kind}.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    for ranks in RANKS:
        for collective in COLLECTIVES:
            for algorithm in library_algorithms(mpi.kind, mpi.version, collective):
                for segment, fan in cases(algorithm) if algorithm.runs_on(ranks) else ():
                    key = f"{collective}/{algorithm.label}/{ranks}/{segment}/{fan}"
                    if key not in found:
                        found[key] = _count(mpi, algorithm, ranks, segment, fan)
                        path.write_text(json.dumps(found))
        print(f"{mpi}: {ranks} ranks", file=sys.stderr, flush=True)


def main() -> None:
    """Counts, or writes the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mpicc")
    count(find_mpi(parser.parse_args().mpicc))


if __name__ == "__main__":
    main()
