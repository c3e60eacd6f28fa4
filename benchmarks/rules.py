"""Repeats the comparison of an MPI library's default with the rules that `tutti tune` wrote for it.

For each collective and number of ranks in the folder, runs without the rules alternate with runs
with them, in separate processes, on all tuned sizes: those without a rule, too, since reading the
rules takes time. Each line is a size: the medians over the runs, their ratio, and in how many pairs
of runs the rules took longer, at all and by more than 3 %. The end states the geometric mean of the
ratios, and the sizes at which the rules took more than 3 % longer in 10 of 12 pairs or more.

`python benchmarks/rules.py out/tune --for openmpi` repeats a run of `tutti tune --by measurement
--for openmpi`. `--for plan` compares calls through `libtutti_mpi` with the bare MPI library.
`--between` adds a size between each tuned size and the next, `--out` writes the time of every run.
The benchmark has no pass criterion.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Final

import polars as pl

from tutti.base.errors import TuttiError
from tutti.measured.tune import Question
from tutti.measured.tune.confirm import Side, alternated, between
from tutti.measured.tune.times import mpi_of, speaks_for
from tutti.mpi import CollectivePlan, Mpi, find_mpi
from tutti.mpi.bench import BenchCandidate
from tutti.mpi.bench_job import Settings
from tutti.mpi.library import built
from tutti.view.quantity import exact_size, format_time, plural

TARGETS: Final = ("openmpi", "mpich", "plan")
SLOWER: Final = 1.03
"""Ratio above which a run with the rules counts as slower."""
HELD: Final = 10 / 12
"""Share of the pairs of runs in which a size has to be slower to be listed."""

Key = tuple[str, int, int]
"""Collective, number of ranks, and size in bytes."""


@dataclass(frozen=True)
class Compared:
    """The times of a size without and with the rules.

    Attributes:
        key: Collective, number of ranks, and size.
        rule: The algorithm of its rule; empty without one.
        pairs: The median times of each pair of runs in ps: the default's, and with the rules.
    """

    key: Key
    rule: str
    pairs: list[tuple[int, int]]

    @property
    def medians(self) -> tuple[float, float]:
        """The medians over the runs in ps: the default's, and with the rules."""
        return median(pair[0] for pair in self.pairs), median(pair[1] for pair in self.pairs)

    @property
    def ratio(self) -> float:
        """The time with the rules over that of the default."""
        default, ruled = self.medians
        return ruled / max(default, 1)

    def slower(self, by: float = 1.0) -> int:
        """Returns in how many pairs the rules took more than `by` times as long."""
        return sum(ruled > by * default for default, ruled in self.pairs)

    @property
    def is_slower(self) -> bool:
        """Whether nearly all pairs of runs show that the rules are slower."""
        return self.slower(SLOWER) >= HELD * len(self.pairs)


def variables(folder: Path, target: str) -> dict[str, str]:
    """Returns the variables of a library's .env file; paths are those of files in the folder."""
    text = (folder / f"{target}.env").read_text("utf-8")
    named = dict(re.findall(r"^export (\w+)='(.*)'$", text, re.MULTILINE))
    for name, value in named.items():
        if Path(value).is_absolute():
            named[name] = str((folder / Path(value).name).resolve(strict=True))
    if active := [name for name in named if name in os.environ]:
        sys.exit(f"{', '.join(active)} set in this shell: the default would run with rules, too")
    return named


def questions(folder: Path, target: str, options: argparse.Namespace) -> list[Question]:
    """Returns what was tuned, as far as it was selected."""
    file = folder / f"times_{target}.parquet"
    times = pl.read_parquet(file if file.exists() else folder / "times.parquet")
    found = []
    for (collective, ranks), rows in times.group_by("collective", "ranks", maintain_order=True):
        sizes = rows["size_bytes"].unique().sort().to_list()
        question = Question(str(collective), int(str(ranks)), sizes, rows["datatype"][0])
        if options.between:
            question = replace(question, sizes=sorted({*sizes, *between(question).values()}))
        if question.collective in (options.collectives or [collective]) and (
            question.ranks in (options.ranks or [ranks])
        ):
            found.append(question)
    return found


def rules(folder: Path, target: str, requested: list[Question]) -> dict[Key, str]:
    """Returns the algorithms of the rules, as far as the folder states them."""
    if target == "plan":
        plan = CollectivePlan.read(folder / "plan.tutti")
        keys = [(one.collective, one.ranks, size) for one in requested for size in one.sizes]
        return {key: rule.schedule.name for key in keys if (rule := plan.find(*key))}
    file = folder / f"comparisons_{target}.csv"
    rows = pl.read_csv(file).to_dicts() if file.exists() else []
    return {(row["collective"], row["ranks"], row["size_bytes"]): row["algorithm"]
            for row in rows if row["rule"] == "written"}  # fmt: skip


def compare(
    question: Question, mpi: Mpi, target: str, named: dict[str, str], options: argparse.Namespace
) -> dict[int, list[tuple[int, int]]]:
    """Runs both sides in turn."""
    settings = Settings(blocks=options.blocks, each=options.each, options=options.launcher_option)
    # A plan's schedules run in calls of an application; the default is that of the bare library.
    candidate = BenchCandidate("call" if target == "plan" else "own")
    sides = Side(settings), Side(replace(settings, variables=named), candidate)

    def done(finished: int, expected: int) -> None:
        label = f"{question.collective} on {question.ranks} ranks"
        print(f"{label}: pair {finished} of {expected}", file=sys.stderr, flush=True)

    return alternated(question, question.sizes, mpi, sides, options.rounds, done=done)


def table(rows: list[Compared]) -> str:
    """Returns a line for each size."""
    names = ("size", "default", "with rules", "ratio", "slower", "by > 3 %")
    lines = ["{:>10} {:>10} {:>10} {:>6} {:>6} {:>8}  rule".format(*names)]
    for row in rows:
        default, ruled = map(format_time, row.medians)
        lines.append(
            f"{exact_size(row.key[2]):>10} {default:>10} {ruled:>10} {row.ratio:>6.3f} "
            f"{row.slower():>6} {row.slower(SLOWER):>8}  {row.rule}".rstrip()
        )
    return "\n".join(lines)


def geometric(rows: list[Compared]) -> str:
    """Returns the geometric mean of the ratios, and the number of sizes."""
    if not rows:
        return "no size"
    mean = math.exp(sum(math.log(row.ratio) for row in rows) / len(rows))
    return f"{mean:.3f} over {plural(len(rows), 'size')}"


def summary(rows: list[Compared], rounds: int) -> str:
    """Returns the geometric means, and the sizes at which the rules are slower."""
    ruled = [row for row in rows if row.rule]
    slower = [row for row in rows if row.is_slower]
    least = math.ceil(HELD * rounds)
    lines = [
        f"geometric mean of the ratios: {geometric(rows)}; with a rule: {geometric(ruled)}",
        f"sizes slower by more than 3 % in at least {least} of {rounds} pairs: {len(slower)}",
    ]
    for row in slower:
        collective, ranks, size = row.key
        lines.append(f"  {collective} on {ranks} ranks, {exact_size(size)}: ratio {row.ratio:.3f}")
    return "\n".join(lines)


def arguments() -> argparse.Namespace:
    """Returns the options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="written by `tutti tune`")
    parser.add_argument("--for", dest="target", choices=TARGETS, required=True)
    parser.add_argument("--mpicc", help="compiler wrapper of the MPI library")
    parser.add_argument("--launcher-option", action="append", default=[])
    parser.add_argument("--collectives", nargs="+", help="default: all that were tuned")
    parser.add_argument("--ranks", nargs="+", type=int, help="default: all that were tuned")
    parser.add_argument("--between", action="store_true", help="add sizes between the tuned ones")
    parser.add_argument("--rounds", type=int, default=12, help="pairs of runs")
    parser.add_argument("--blocks", type=int, default=10, help="per size and run")
    parser.add_argument(
        "--each", type=int, default=10, help="calls per block; 1 for rooted ones, and above 256 KiB"
    )
    parser.add_argument("--out", type=Path, help="CSV file of the times of every run")
    return parser.parse_args()


def run(options: argparse.Namespace) -> None:
    """Compares and prints."""
    folder, target = options.folder, options.target
    if not (folder / f"{target}.env").is_file():
        print(f"{folder} has no rules for {target}: nothing to compare")
        return
    mpi = find_mpi(options.mpicc)
    if not speaks_for(target, mpi_of(mpi)):
        sys.exit(f"{mpi} does not read rules for {target}: name another library with --mpicc")
    built(mpi)
    named, requested = variables(folder, target), questions(folder, target, options)
    ruled, rows = rules(folder, target, requested), list[Compared]()
    for question in requested:
        pairs = compare(question, mpi, target, named, options)
        keys = [(question.collective, question.ranks, size) for size in question.sizes]
        mine = [Compared(key, ruled.get(key, ""), pairs[key[2]]) for key in keys]
        print(f"{question.collective} on {question.ranks} ranks, {mpi}, {options.rounds} pairs")
        print(table(mine), "\n", sep="", flush=True)
        rows += mine
        if options.out is not None:
            times(rows).write_csv(options.out)
    print(summary(rows, options.rounds))


def times(rows: list[Compared]) -> pl.DataFrame:
    """Returns a row for each pair of runs."""
    names = ("collective", "ranks", "size_bytes")
    return pl.DataFrame([
        dict(zip(names, row.key, strict=True))
        | {"rule": row.rule, "pair": number, "default_ps": pair[0], "ruled_ps": pair[1]}
        for row in rows for number, pair in enumerate(row.pairs)
    ])  # fmt: skip


def main() -> None:
    """Runs the comparison; errors of tutti end it with their message."""
    try:
        run(arguments())
    except TuttiError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
