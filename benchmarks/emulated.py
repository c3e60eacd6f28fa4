"""Compares the gains that `tutti tune` predicts with those on emulated distance.

For each platform, the model chooses a schedule at every size, and `libtutti_mpi` executes it and
the MPICH default in turn. The parameters of the platform are multiplied by `--slower`, so that the
ranks of one host, which sleep while they wait, add little; gains do not depend on the unit of time.
Each line is a size: the gain that the model predicts, the measured one, and the difference in
points. The end states how many sizes are within 10 points.

`python benchmarks/emulated.py --ranks 4 8`. The benchmark has no pass criterion.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

import polars as pl

from tutti.base.units import Time, TimePerByte
from tutti.measured.tune import Question, by_model, decide
from tutti.mpi import find_mpi
from tutti.mpi.bench import BenchCandidate, Benchmark, measure
from tutti.mpi.bench_job import Settings
from tutti.mpi.distance import Distance
from tutti.mpi.usual import untuned
from tutti.platforms import platform
from tutti.platforms.machine import LogGP, PipeliningPostal, Platform
from tutti.schedules.ir import schedule
from tutti.view.quantity import exact_size

if TYPE_CHECKING:
    from tutti.mpi import Mpi
    from tutti.schedules.ir import Schedule

PLATFORMS: Final = ("cray_xc30", "paper_simulator", "loggp_cluster")
COLLECTIVES: Final = ("all_reduce", "broadcast", "all_gather", "reduce_scatter", "reduce")
SIZES: Final = (64, 4 << 10, 64 << 10)
POINTS: Final = 10.0
"""The difference of gains, in percentage points, up to which a size counts as predicted."""


def emulated(name: str, slower: int) -> Distance:
    """Returns the model of a platform whose times are `slower` times as long.

    Local work is left out, as the ranks perform it.
    """
    model = platform(name).model
    kind = PipeliningPostal if isinstance(model, PipeliningPostal) else LogGP
    names = ("alpha_p", "alpha_r", "beta") if kind is PipeliningPostal else ("L", "o", "g", "G")
    given = {one: value for one in names if (value := getattr(model, one)) is not None}
    longer = {
        one: Time(ps=value.ps * slower)
        if isinstance(value, Time)
        else TimePerByte.parse(f"{value.core.ps_per_byte * slower / 1000:g} ns/B")
        for one, value in given.items()
    }
    return Distance(kind(**longer))


def pairs(question: Question, machine: Platform) -> dict[int, list[BenchCandidate]]:
    """Returns the MPICH default and the rule's schedule of each size with a rule."""
    found = {}
    rules = [one for one in decide(by_model(question, machine), "plan") if one.is_rule]
    for size in question.sizes:
        rule = next((one for one in rules if one.first <= size <= (one.last or size)), None)
        default = next(
            name
            for name, (first, last) in untuned(question.collective, question.ranks)
            if first <= size <= (size if last is None else last)
        )
        if rule is not None and rule.schedule is not None:
            found[size] = [
                BenchCandidate("schedule", laid_out(question, one))
                for one in (default, rule.schedule)
            ]
    return found


def laid_out(question: Question, notation: str) -> Schedule:
    """Returns the schedule of an algorithm."""
    return schedule(notation, collective=question.collective, ranks=question.ranks)


def gains(question: Question, mpi: Mpi, distance: Distance, blocks: int) -> pl.DataFrame:
    """Returns a row per size with a rule: the predicted and the measured gain in per cent."""
    listed = pairs(question, distance.platform)
    if not listed:
        return pl.DataFrame()
    benchmark = Benchmark(question.collective, question.ranks, list(listed))
    settings = Settings(blocks=blocks, each=1, distance=distance)
    times = measure(mpi, benchmark, listed, settings)
    rows = []
    for size, (default, rule) in listed.items():
        of_size = times.filter(size_bytes=size)
        sides = [of_size.filter(schedule=one.name) for one in (default, rule)]
        medians = [(side["model_ps"].median(), side["time_ps"].median()) for side in sides]
        predicted, measured = (100 * (1 - b / a) for a, b in zip(*medians, strict=True))
        rows.append({"size": size, "default": default.name, "rule": rule.name,
                     "predicted": predicted, "measured": measured})  # fmt: skip
    return pl.DataFrame(rows)


def main() -> None:
    """Compares and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mpicc", help="compiler wrapper of the MPI library")
    parser.add_argument("--ranks", nargs="+", type=int, default=[4, 8])
    parser.add_argument("--platforms", nargs="+", default=list(PLATFORMS))
    parser.add_argument("--collectives", nargs="+", default=list(COLLECTIVES))
    parser.add_argument("--slower", type=int, default=10_000, help="factor of all times")
    parser.add_argument("--blocks", type=int, default=7, help="per schedule and size")
    options = parser.parse_args()
    mpi, near, all_sizes = find_mpi(options.mpicc), 0, 0
    print(f"{'size':>8} {'predicted':>9} {'measured':>9} {'points':>6}  default -> rule")
    for name in options.platforms:
        distance = emulated(name, options.slower)
        for ranks in options.ranks:
            for collective in options.collectives:
                question = Question(collective, ranks, list(SIZES))
                print(f"{name}, {collective} on {ranks} ranks, {mpi}, {distance}", flush=True)
                for row in gains(question, mpi, distance, options.blocks).iter_rows(named=True):
                    points = row["measured"] - row["predicted"]
                    near, all_sizes = near + (abs(points) <= POINTS), all_sizes + 1
                    print(f"{exact_size(row['size']):>8} {row['predicted']:>8.1f}% "
                          f"{row['measured']:>8.1f}% {points:>+6.1f}  "
                          f"{row['default']} -> {row['rule']}", flush=True)  # fmt: skip
    print(f"{near} of {all_sizes} sizes with a rule are within {POINTS:g} points")


if __name__ == "__main__":
    main()
