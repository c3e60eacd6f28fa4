"""The page of algorithms of MPI libraries: those that can be forced, and those of benchmarks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tutti.measured.predict.catalogue import KnownAlgorithm, known_algorithms
from tutti.measured.tune.library_algorithms import (
    TITLES,
    every_algorithm,
    patterns,
    release_lines,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tutti.measured.tune.library_algorithms import Equivalent, LibraryAlgorithm

_HEAD = """# Algorithms of MPI libraries

The algorithms that you can force in Open MPI, MPICH and UCC, with the schedules that send the same
messages; then the names that benchmarks use. `make reference` writes this page from
`library_algorithms.toml` and `library_patterns.json` in `python/tutti/measured/tune/`, and from
`python/tutti/measured/predict/libraries.toml`.

## Algorithms that can be forced

- *reduce_scatter* is MPI_Reduce_scatter_block, *reduce_scatter_v* is MPI_Reduce_scatter.
- *4.1*, *5.0*, *6.0*: the algorithm's number in these release lines of Open MPI; main is as 6.0. An
  empty cell is a line that lacks the algorithm: rules with its number abort the job.
- *releases*: the release lines that have the algorithm.
- *segments*: it takes a segment size. *fan*: it takes a fan-out, fan-in or radix; the number is its
  default.
- *schedule*: in tutti's notation, for C segments, fan-out F and P ranks. A remark in parentheses
  limits it to some rank counts or fan-outs.
- *equal*: the rank counts at which the library's messages were counted and are those of the
  schedule: the same number and bytes between the same ranks. *alike*: equal up to renumbering of
  ranks. *other*: the messages differ. Counted on Open MPI 5.0.11 and MPICH 5.0.2 with 512 B per
  rank, without and with segments of 128 B, and with fan-outs of 2, 3 and 4
  (`validation/library_patterns.py`). UCC has no counters.
- *limits*: on other rank counts, or with fewer elements, the library executes another algorithm.
  *2^k elements* are the largest power of two up to P. *fan not in rules*: only a variable sets it.
- *none: reduce, broadcast*: it executes these collectives in turn, each with the default.
"""

_NAMES = """## Names in benchmarks

What the algorithms that libraries and benchmarks name are in tutti's notation, by collective.
`tutti advise` and `tutti calibrate --joint` accept these names, and those of tutti.

- Names are normalised: without `_ompi`, `_mpich`, `_over` (over point-to-point messages) and
  Fujitsu's `default-`, and with `_` for `-`.
- `segmented_over_16384` has segments of 16,384 bytes. `BINE-L-UTOFU-4096-6` has segments of 4,096
  bytes over six network interfaces, past MPI.
- Libraries: O is Open MPI, M MPICH, C Cray MPICH, F Fujitsu MPI, P PICO. Upper-case names are
  PICO's on Fugaku.
- *inferred*: stages inferred from names and measured times, since the library does not document
  the algorithm. tutti has no schedule for it.
- *on a torus*: Fujitsu MPI runs another algorithm of that name, whose stages are inferred.
- *copies*: bytes copied in addition to the messages, as a fraction of the vector.
- *folds*: ranks beyond a power of two hand over their vector first.
"""


_RANKS: Final = {
    "power_of_two": "2^k ranks",
    "not_power_of_two": "other ranks",
    "power_of_fan": "F^k ranks",
    "two": "2 ranks",
    "even": "even ranks",
}
_COLUMNS: Final = 100
PART: Final = 512
"""Bytes per rank of the counted calls."""
_SYMBOLS: Final = {"segments": "C", "fan": "F", "ports": "F-1", "stages": "aF,...", "ranks": "P"}


def libraries_page() -> str:
    """Returns the page, in Markdown."""
    parts = [_HEAD]
    for library, title in TITLES.items():
        parts.append(f"### {title}\n")
        listed = every_algorithm(library)
        for collective in dict.fromkeys(one.collective for one in listed):
            same = [one for one in listed if one.collective == collective]
            parts.append(_forced(collective, same))
    return "\n".join([*parts, _benchmarks()])


def _forced(collective: str, listed: list[LibraryAlgorithm]) -> str:
    library = listed[0].library
    lines = release_lines(library) if library == "openmpi" else ("releases",)
    names = [collective, *lines, "segments", "fan", "schedule", "equal", "limits"]
    rows = [row for one in listed for row in _rows(one)]
    return "\n".join([f"| {' | '.join(names)} |", "|---" * len(names) + "|", *rows, ""])


def _rows(one: LibraryAlgorithm) -> Iterator[str]:
    """Yields a line per schedule; a line that would be too long is two lines."""
    if one.library == "openmpi":
        mine = [f"`{one.label}`"]
        mine += [str(one.numbers.get(line, "")) for line in release_lines("openmpi")]
    else:
        first, last = one.versions[0], one.versions[-1]
        mine = [f"`{one.label}`", first if first == last else f"{first}-{last}"]
    mine += ["yes" if one.segmented else "", str(one.fan_default) if one.fan else ""]
    for row in one.schedules or (None,):
        cells = [_schedule(one, row), _equal(one, row) if row else "", "" if row else _limits(one)]
        cells[2] = _limits(one) if row is None or row == one.schedules[0] else ""
        text = f"| {' | '.join([*mine, *cells])} |"
        if len(text) > _COLUMNS:
            yield f"| {' | '.join([*mine, '', '', ''])} |"
            text = f"| {' | '.join([*[''] * len(mine), *cells])} |"
        yield text
        mine = [""] * len(mine)


def _limits(one: LibraryAlgorithm) -> str:
    limits = [
        _RANKS[one.ranks] if one.ranks else "",
        {"ranks": "P elements", "power_of_two": "2^k elements", "": ""}[one.elements],
        "fan not in rules" if one.fan and not one.fan_in_rules else "",
    ]
    return "; ".join(filter(None, limits))


def _schedule(one: LibraryAlgorithm, row: Equivalent | None) -> str:
    if row is None:
        return f"none: {', '.join(one.composed)}" if one.composed else "none"
    fan = f"F = {row.fan}" if row.fan and one.fan else ""
    limits = [_RANKS[row.ranks] if row.ranks else "", fan]
    limit = ", ".join(filter(None, limits))
    return f"`{row.notation.format(**_SYMBOLS)}`" + (f" ({limit})" if limit else "")


def _equal(one: LibraryAlgorithm, row: Equivalent) -> str:
    """Returns the ranks at which all counted cases are equal, alike, or at which one differs."""
    found: dict[int, set[str]] = {}
    for case, verdicts in patterns(one).items():
        segment, fan = (int(part) for part in case.split())
        for verdict, counted in verdicts.items():
            for ranks in counted:
                if one.row(ranks, ranks * PART, segment=segment, fan=fan) == row:
                    found.setdefault(ranks, set()).add(verdict)
    words = []
    for verdict, above in (("same", {"alike", "other"}), ("alike", {"other"}), ("other", set())):
        at = [
            ranks for ranks, here in sorted(found.items()) if verdict in here and not above & here
        ]
        if at:
            words.append(("" if verdict == "same" else f"{verdict}: ") + _range(at))
    return "; ".join(words) or "not counted"


def _range(ranks: list[int]) -> str:
    """Returns ranks as ranges, such as ``2-9, 12``."""
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def _benchmarks() -> str:
    known = list({id(one): one for one in known_algorithms().values()}.values())
    parts = [_NAMES]
    for collective in dict.fromkeys(one.collective for one in known):
        same = [one for one in known if one.collective == collective]
        rows = [_row(name, one) for one in same for name in one.names]
        table = ["| name | in | tutti | remarks |", "|---|---|---|---|", *rows]
        parts.append(f"### {collective}\n\n" + "\n".join(table) + "\n")
    return "\n".join(parts)


def _row(name: str, known: KnownAlgorithm) -> str:
    libraries = " ".join(library[0] for library in known.libraries)
    notation = f"`{known.notation}`" if known.notation else "none"
    remarks = [
        "inferred" if known.notation is None else "",
        "on a torus" if known.notation and known.torus_form else "",
        f"copies {known.copied:g}" if known.copied else "",
        f"{known.pieces} messages per step" if known.pieces > 1 else "",
        "folds" if known.folds else "",
        "waits for requests" if known.synchronous else "",
        f"stages of {known.stages_of}" if known.stages_of else "",
    ]
    remark = "; ".join(filter(None, remarks))
    return f"| `{name}` | {libraries} | {notation} | {remark} |"
