"""Writes GOAL traces for benchmarks: the same bytes on every run.

`python benchmarks/goal_traces.py dissemination 65536 OUT.goal` writes the rounds of a dissemination
barrier with messages of 8 B; a rank waits for the message of a round before the next.
`ring 512 OUT.goal` writes a ring all_reduce with blocks of 1 KiB. `--repeat N` repeats the pattern,
with a computation in between.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Step = tuple[int, int, int, int]
"""The destination, the source, the bytes and the tag of a rank's step."""


def dissemination(rank: int, ranks: int) -> Iterator[Step]:
    """Yields the rounds of a dissemination barrier."""
    for number in range((ranks - 1).bit_length()):
        yield (rank + (1 << number)) % ranks, (rank - (1 << number)) % ranks, 8, number


def ring(rank: int, ranks: int) -> Iterator[Step]:
    """Yields the steps of a ring all_reduce."""
    for _ in range(2 * (ranks - 1)):
        yield (rank + 1) % ranks, (rank - 1) % ranks, 1024, 0


PATTERNS: dict[str, Callable[[int, int], Iterator[Step]]] = {
    "dissemination": dissemination,
    "ring": ring,
}


def lines(pattern: str, rank: int, ranks: int, repeat: int) -> Iterator[str]:
    """Yields the block of a rank."""
    yield f"\nrank {rank} {{\n"
    label = 0
    for repetition in range(repeat):
        if repetition:
            yield f"l{label}: calc {1000 + rank % 7} cpu 0\nl{label} requires l{label - 1}\n"
            label += 1
        for to, source, size, tag in PATTERNS[pattern](rank, ranks):
            yield f"l{label}: send {size}b to {to} tag {tag} cpu 0\n"
            if label:
                yield f"l{label} requires l{label - 1}\n"
            yield f"l{label + 1}: recv {size}b from {source} tag {tag} cpu 0\n"
            yield f"l{label + 1} requires l{label}\n"
            label += 2
    yield "}\n"


def write(pattern: str, ranks: int, path: Path, repeat: int = 1) -> None:
    """Writes a trace as GOAL text."""
    with path.open("w", encoding="ascii") as file:
        file.write(f"num_ranks {ranks}\n")
        for rank in range(ranks):
            file.writelines(lines(pattern, rank, ranks, repeat))


def main() -> None:
    """Writes the trace that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pattern", choices=PATTERNS)
    parser.add_argument("ranks", type=int)
    parser.add_argument("out", type=Path)
    parser.add_argument("--repeat", type=int, default=1)
    given = parser.parse_args()
    write(given.pattern, given.ranks, given.out, given.repeat)


if __name__ == "__main__":
    main()
