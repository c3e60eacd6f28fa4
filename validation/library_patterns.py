"""Compares the messages of the libraries' algorithms with those of the schedules in their table.

``python validation/library_patterns.py MPICC [MPICC]`` forces every algorithm of an MPI library in
turn, counts its messages per pair of ranks, and stores them in ``build/patterns/``. Counts that
exist are not repeated, and verdicts on rank counts without any stay. It then writes the ranks at
which the messages of each schedule are equal to
``python/tutti/measured/tune/library_patterns.json``, from which `make reference` makes a column of
``docs/reference/library-algorithms.md``. ``--defaults`` compares what the library does without
tuning with `library_defaults.toml` instead.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tutti.base.errors import TuttiError
from tutti.measured.tune.library_algorithms import (
    FORCING,
    library_algorithms,
    variables,
)
from tutti.measured.tune.library_defaults import default_algorithm, default_schedules
from tutti.measured.tune.watch import Call, Traffic, lengths, sent_by_mpi, sent_by_schedule
from tutti.mpi.underneath import find_mpi
from tutti.schedules.ir import schedule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tutti.measured.tune.library_algorithms import LibraryAlgorithm
    from tutti.mpi.underneath import Mpi

Counted = list[list[Any]] | dict[str, str]
"""Counts by source, destination and kind, or why a run failed."""

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all",
               "barrier", "gather", "scatter")  # fmt: skip
RANKS = (2, 3, 4, 5, 6, 7, 8, 9, 12, 16)
PART = 512
"""Bytes per rank: no library divides messages of a few KiB by itself."""
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


def key_of(algorithm: LibraryAlgorithm, ranks: int, segment: int, fan: int) -> str:
    """Returns the name of a count in its file."""
    return f"{algorithm.collective}/{algorithm.label}/{ranks}/{segment}/{fan}"


def count(mpi: Mpi, ranks: Sequence[int]) -> None:
    """Counts the messages of every algorithm, and stores them."""
    COUNTS.mkdir(parents=True, exist_ok=True)
    path = COUNTS / f"{mpi.kind}.json"
    counted: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    for number in ranks:
        for algorithm in _algorithms(mpi.kind, mpi.version):
            for segment, fan in cases(algorithm) if algorithm.runs_on(number) else ():
                key = key_of(algorithm, number, segment, fan)
                if key not in counted:
                    counted[key] = _counted(mpi, algorithm, number, segment, fan)
                    path.write_text(json.dumps(counted), "utf-8")
        print(f"{mpi}: {number} ranks", file=sys.stderr, flush=True)


def _algorithms(kind: str, version: str) -> Iterator[LibraryAlgorithm]:
    for collective in COLLECTIVES:
        yield from library_algorithms(kind, version, collective)


def _counted(mpi: Mpi, algorithm: LibraryAlgorithm, ranks: int, segment: int, fan: int) -> Counted:
    prefix = "OMPI_MCA_" if algorithm.library == "openmpi" else ""
    named = {**FORCING[algorithm.library], **variables(algorithm, segment=segment, fan=fan)}
    env = {f"{prefix}{name}": value for name, value in named.items()}
    try:
        sent = sent_by_mpi(mpi, call_of(algorithm.collective, ranks), env=env, timeout=_SECONDS)
    except TuttiError as error:
        return {"failed": error.problem.splitlines()[0]}
    return [[*key, value] for key, value in sorted(sent.items())]


def compared(
    kind: str, version: str, counted: Mapping[str, Any], known: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns the ranks of each verdict, by collective, algorithm, and segment size and fan-out.

    Verdicts are `same`, `alike` (up to renumbering of ranks), `other`, `none` without a schedule,
    and `failed` if the run failed. Those of ranks that are not counted are `known` ones.
    """
    found: dict[str, Any] = {}
    for algorithm in _algorithms(kind, version):
        for segment, fan in cases(algorithm):
            earlier = known.get(algorithm.collective, {}).get(algorithm.label, {})
            verdicts = {
                ranks: verdict
                for verdict, every in earlier.get(f"{segment} {fan}", {}).items()
                for ranks in every
            }
            for ranks in RANKS:
                sent = counted.get(key_of(algorithm, ranks, segment, fan))
                if sent is not None:
                    verdicts[ranks] = _verdict(algorithm, ranks, segment, fan, sent)
                if verdict := verdicts.get(ranks):
                    of_case = found.setdefault(algorithm.collective, {}).setdefault(
                        algorithm.label, {}
                    ).setdefault(f"{segment} {fan}", {})  # fmt: skip
                    of_case.setdefault(verdict, []).append(ranks)
    return {"version": version, "algorithms": found}


def _verdict(algorithm: LibraryAlgorithm, ranks: int, segment: int, fan: int, sent: Counted) -> str:
    if isinstance(sent, dict):
        return "failed"
    call = call_of(algorithm.collective, ranks)
    notation = algorithm.notation(ranks, call.size, segment=segment, fan=fan)
    if notation is None:
        return "none"
    expected = _expected(notation, call)
    traffic = Traffic({(source, to, kind): number for source, to, kind, number in sent})
    if traffic == expected:
        return "same"
    return "alike" if lengths(traffic) == lengths(expected) else "other"


@functools.cache
def _expected(notation: str, call: Call) -> Traffic:
    laid_out = schedule(notation, collective=call.collective, ranks=call.ranks)
    return sent_by_schedule(laid_out, call)


def write(mpis: Sequence[Mpi]) -> None:
    """Writes the comparison of every counted library."""
    found = json.loads(WRITTEN.read_text("utf-8")) if WRITTEN.exists() else {}
    for mpi in mpis:
        counted = json.loads((COUNTS / f"{mpi.kind}.json").read_text("utf-8"))
        before = found.get(mpi.kind, {})
        known = before["algorithms"] if before.get("version") == mpi.version else {}
        found[mpi.kind] = compared(mpi.kind, mpi.version, counted, known)
    WRITTEN.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


def compare_defaults(mpi: Mpi) -> None:
    """Prints whether the library sends the messages of what it selects by itself in the table."""
    for ranks in (4, 5):
        for collective in COLLECTIVES[:-2]:
            seen = ""
            for count in (0,) if collective == "barrier" else (1, 16, 256, 1024, 4096, 16384):
                call = Call(collective, ranks, ranks * 4 * count)
                request = (mpi.kind, mpi.version, collective, ranks, call.size)
                name = default_algorithm(*request).algorithm.name
                if name != seen:
                    print(*request[2:], name, _same_as_default(mpi, call), flush=True)
                seen = name


def _same_as_default(mpi: Mpi, call: Call) -> str:
    schedules = default_schedules(mpi.kind, mpi.version, call.collective, call.ranks, call.size)
    if schedules is None:
        return "none"
    expected = Traffic()
    for part, notation in schedules:
        expected.update(_expected(notation, Call(part, call.ranks, call.size)))
    sent = sent_by_mpi(mpi, call)
    if sent == expected:
        return "same"
    return "alike" if lengths(sent) == lengths(expected) else "other"


def main() -> None:
    """Counts and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mpicc", nargs="+", help="the compiler wrappers of MPI libraries")
    parser.add_argument("--ranks", type=int, nargs="*", default=RANKS)
    parser.add_argument("--defaults", action="store_true", help="compare defaults instead")
    options = parser.parse_args()
    mpis = [find_mpi(path) for path in options.mpicc]
    for mpi in mpis:
        if options.defaults:
            compare_defaults(mpi)
        else:
            count(mpi, options.ranks)
    if not options.defaults:
        write(mpis)


if __name__ == "__main__":
    main()
