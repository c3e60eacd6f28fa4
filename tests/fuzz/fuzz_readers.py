"""Fuzzes every reader of files: only documented errors, bounded memory, no hang.

Reader, seed and number, such as ``nccl-log:1:234``, determine a case: a valid input with one or two
damaged files. A case fails if the reader

- raises anything but a `TuttiError`, or an error of many screens,
- takes more processor time than `HANG_S`,
- allocates more than `MEMORY_FACTOR` times the size of its files, and `MEMORY_BASE`; Python's
  allocations are counted for one case in `SAMPLED`,
- ends the process.

Cases run in forks, each of many cases, so that a case costs a millisecond.
"""

from __future__ import annotations

import argparse
import faulthandler
import mmap
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import tracemalloc
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "shared"))

import format_readers
import mutations
import readers

if TYPE_CHECKING:
    from collections.abc import Callable

HANG_S = 10.0
MEMORY_FACTOR = 128
MEMORY_BASE = 16 << 20
SAMPLED = 40
ADDRESS_SPACE = 6 << 30
LONGEST_ERROR = 6_000
CHUNK = 2_000
"""Cases per fork."""
LINES = 40
"""Most failures that are printed per reader."""


class HangError(BaseException):
    """Raised when a case takes too much processor time; no reader catches it."""


def _hang(*_: object) -> NoReturn:
    raise HangError


def check(reader: readers.Reader, seed: int, number: int, folder: Path) -> tuple[str, str]:
    """Runs a case.

    Returns:
        What happened, "read", "rejected" or "failed", and the failure.
    """
    from tutti.base.errors import TuttiError

    rng = random.Random(f"{reader.name}:{seed}:{number}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    path, size = _damage(reader, rng, folder)
    sampled = number % SAMPLED == 0
    if sampled:
        tracemalloc.start()
    signal.setitimer(signal.ITIMER_VIRTUAL, HANG_S)
    found = "read", ""
    try:
        reader.read(path)
    except TuttiError as error:
        found = "rejected", ""
        if len(str(error)) > LONGEST_ERROR:
            found = "failed", f"an error of {len(str(error)):,} characters: {str(error)[:200]}"
    except HangError:
        found = "failed", "a hang"
    except BaseException as error:  # noqa: BLE001 - it is what is looked for
        found = "failed", f"{type(error).__name__}: {str(error)[:300]} {_where(error)}"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    if sampled:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        if peak > MEMORY_FACTOR * size + MEMORY_BASE:
            found = "failed", f"{peak:,} bytes of memory for files of {size:,}"
    return found


def _damage(reader: readers.Reader, rng: random.Random, folder: Path) -> tuple[Path, int]:
    """Writes an input, of which one or two files are damaged; returns its first file and size."""
    files = rng.choice(reader.files)
    lines = _lines(reader)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    for name in rng.sample(list(files), k=min(len(files), rng.choice((1, 1, 2)))):
        with suppress(RecursionError):
            mutations.mutated_file(folder / name, files[name], rng, lines)
    size = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
    return folder / next(iter(files)), size


def _lines(reader: readers.Reader) -> list[str]:
    data = b"\n".join(data for files in reader.files for data in files.values())
    return data.decode("utf-8", "replace").split("\n")


def _where(error: BaseException) -> str:
    places = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if "/tutti/" in code.co_filename:
            places.append(f"{Path(code.co_filename).name}:{trace.tb_lineno}")
        trace = trace.tb_next
    return "at " + " > ".join(places[-4:])


class Session:
    """Runs the cases of readers in forks.

    Attributes:
        counts: Numbers of cases by reader and outcome.
        failures: The failure of each failed case.
    """

    def __init__(self, seed: int, work: Path) -> None:
        self.seed, self._work = seed, work
        self.counts: Counter[tuple[str, str]] = Counter()
        self.failures: dict[str, str] = {}

    def run(self, reader: readers.Reader, first: int, count: int) -> None:
        """Runs the cases of a reader from a number on."""
        number, end = first, first + count
        while number < end:
            number = self._fork(reader, number, min(number + CHUNK, end))

    def _fork(self, reader: readers.Reader, first: int, end: int) -> int:
        """Runs cases in a fork; returns the number of the next case."""
        report = self._work / "report"
        report.write_bytes(b"")
        at = mmap.mmap(-1, 8)
        child = os.fork()
        if not child:
            self._in_child(reader, first, end, report, at)
        status = os.waitpid(child, 0)[1]
        for line in report.read_text("utf-8", "replace").splitlines():
            case, outcome, failure = line.split("\t", 2)
            self._count(reader, int(case), outcome, failure)
        if status == 0:
            return end
        number = int.from_bytes(at[:8], "little")
        how = f"exit code {os.WEXITSTATUS(status)}"
        if os.WIFSIGNALED(status):
            how = f"killed by {signal.Signals(os.WTERMSIG(status)).name}"
        self._count(reader, number, "failed", how)
        return number + 1

    def _count(self, reader: readers.Reader, number: int, outcome: str, failure: str) -> None:
        self.counts[reader.name, outcome] += 1
        if outcome == "failed":
            self.failures[f"{reader.name}:{self.seed}:{number}"] = failure

    def _in_child(
        self, reader: readers.Reader, first: int, end: int, report: Path, at: mmap.mmap
    ) -> NoReturn:
        code = 1
        try:
            signal.signal(signal.SIGVTALRM, _hang)
            resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            folder = Path(tempfile.mkdtemp(prefix="tutti-readers-"))
            with report.open("w", encoding="utf-8") as out:
                for number in range(first, end):
                    at[:8] = number.to_bytes(8, "little")
                    faulthandler.dump_traceback_later(30 * HANG_S, exit=True)
                    outcome, failure = check(reader, self.seed, number, folder / "case")
                    out.write(f"{number}\t{outcome}\t{' '.join(failure.split())}\n")
                    if outcome == "failed" or number % 100 == 0:
                        out.flush()
            shutil.rmtree(folder, ignore_errors=True)
            code = 0
        finally:
            sys.stderr.flush()
            os._exit(code)

    def summary(self, reader: readers.Reader) -> str:
        """Returns the counts of a reader, and its failures."""
        counts = {what: self.counts[reader.name, what] for what in ("read", "rejected", "failed")}
        text = ", ".join(f"{count:,} {what}" for what, count in counts.items())
        own = [item for item in self.failures.items() if item[0].startswith(f"{reader.name}:")]
        lines = [f"  {name}: {failure}" for name, failure in own[:LINES]]
        return "\n".join([f"{reader.name}: {text}", *lines])


def broken(found: list[readers.Reader], work: Path) -> list[str]:
    """Returns the readers that reject a valid input."""
    from tutti.base.errors import TuttiError

    problems = []
    for reader in found:
        for number, files in enumerate(reader.files):
            folder = work / "valid" / f"{reader.name}-{number}"
            folder.mkdir(parents=True)
            for name, data in files.items():
                (folder / name).write_bytes(data)
            try:
                reader.read(folder / next(iter(files)))
            except TuttiError as error:
                problems.append(f"{reader.name} rejects its valid input {number}: {error}")
    return problems


def _apart(call: Callable[[], list[str]]) -> list[str]:
    """Returns what a function returns in a fork: libraries must not start threads here."""
    source, target = os.pipe()
    child = os.fork()
    if not child:
        with suppress(BaseException):
            os.write(target, "\0".join(call()).encode()[:60_000])
            os._exit(0)
        os._exit(1)
    os.close(target)
    with os.fdopen(source, "rb") as pipe:
        text = pipe.read().decode()
    status = os.waitpid(child, 0)[1]
    lines = [line for line in text.split("\0") if line]
    return lines + [f"the check of valid inputs ended with status {status}"] * bool(status)


def main() -> int:
    """Runs a number of cases of each reader, or one by its name."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=1_000, help="cases per reader")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="readers whose name contains this")
    parser.add_argument("--jobs", type=int, default=1, help="readers at the same time")
    parser.add_argument("--case", help="one case, as READER:SEED:NUMBER; its files stay")
    given = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="tutti-fuzz-readers-"))
    found = readers.readers(work / "written")
    if given.case:
        name, seed, number = given.case.rsplit(":", 2)
        (reader,) = (each for each in found if each.name == name)
        signal.signal(signal.SIGVTALRM, _hang)
        print(*check(reader, int(seed), int(number), work / "case"), work / "case")
        return 0
    found = [each for each in found if given.only in each.name]
    problems = _apart(lambda: broken(found, work))
    problems += [
        f"format {name} has no valid input in readers.py"
        for name in format_readers.unseeded(work / "again")
    ]
    print("\n".join(problems), flush=True)
    failed = _in_parallel(found, work, given)
    shutil.rmtree(work, ignore_errors=True)
    return 1 if failed or problems else 0


def _in_parallel(found: list[readers.Reader], work: Path, given: argparse.Namespace) -> int:
    """Runs readers in `jobs` processes; returns how many of these had failures."""
    running: set[int] = set()
    failed = 0
    for reader in [*found, *[None] * given.jobs]:
        if len(running) == given.jobs or (reader is None and running):
            child, status = os.wait()
            running.discard(child)
            failed += bool(status)
        if reader is None:
            continue
        child = os.fork()
        if child:
            running.add(child)
            continue
        code = 1
        try:
            code = _run_one(reader, work / reader.name, given)
        finally:
            sys.stdout.flush()
            os._exit(code)
    return failed


def _run_one(reader: readers.Reader, work: Path, given: argparse.Namespace) -> int:
    work.mkdir()
    session = Session(given.seed, work)
    started = time.monotonic()
    session.run(reader, given.first, given.count)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = usage.ru_utime + usage.ru_stime
    took = time.monotonic() - started
    print(f"{session.summary(reader)}\n  {spent:.1f} CPU s, {took:.0f} s", flush=True)
    return 1 if session.failures else 0


if __name__ == "__main__":
    sys.exit(main())
