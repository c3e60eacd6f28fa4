"""A structured fuzzer of the command line: all commands that read files, on mutated valid files.

Seed and number, such as ``1:234``, determine a case. It runs in a separate process, a fork of one
that has imported everything. It fails if a call

- ends in a traceback, an internal error (exit code 70) or a signal,
- has an undocumented exit code, or an error exit code without a line that starts with ``error: ``,
- prints an error of many screens,
- takes more processor time than `HANG_S` outside of a simulation; simulations take as long as the
  input requests.
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import os
import pkgutil
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import made
import mutations
import seeds

LOOK_S = 3.0
"""Processor seconds after which a case is inspected: simulations stop, other cases continue."""
HANG_S = 40.0
"""Processor seconds after which a reader counts as hung."""
MEMORY = 6 << 30
WRITTEN = 256 << 20
"""Bytes of the largest file that a case may write: a schedule of 10^6 ranks is long."""
LONGEST_ERROR = 6_000
DOCUMENTED = {0, 1, 2, 3}
SIMULATIONS = (
    *(
        "simulate.py",
        "experiment.py",
        "run.py",
        "search.py",
        "training.py",
        "overlap.py",
        "runs.py",
    ),
    *("measured.py", "astrasim.py", "schedule.py", "algorithms.py"),
)
"""Files of the package from which calls into the core take as long as the input requests."""


class Case:
    """A call with its files, drawn from a seed and a number."""

    def __init__(self, seed: int, number: int, targets: list[seeds.Target]) -> None:
        self.name = f"{seed}:{number}"
        self._rng = random.Random(self.name)
        self.target = self._rng.choice(targets)
        self._lines = [
            line
            for one in targets
            if one.name.split()[0] == self.target.name.split()[0]
            for data in one.files.values()
            for line in data.decode("utf-8", "replace").split("\n")
        ]

    def write(self, folder: Path) -> tuple[str, ...]:
        """Writes its files, of which one or two are mutated, or a word of the call.

        Returns:
            The call.
        """
        target, rng = self.target, self._rng
        call = target.call
        if not target.files or rng.random() < 0.1:
            call = mutations.mutated_call(call, tuple(target.files), rng)
        names = [name for name in target.files if name not in target.fixed]
        mutated = min(len(names), rng.choice((1, 1, 2))) if call == target.call else 0
        chosen = set(rng.sample(names, k=mutated))
        for name, data in target.files.items():
            path = folder / name
            path.write_bytes(data)
            if name in chosen:
                with suppress(RecursionError):
                    mutations.mutated_file(path, data, rng, self._lines)
        return call


# --- running -------------------------------------------------------------------------------------


def load_everything() -> None:
    """Imports all of tutti before the forks; computes nothing, which would start threads."""
    import tutti

    for module in pkgutil.walk_packages(tutti.__path__, "tutti."):
        if not any(
            part in module.name for part in ("communicator", "capi", "torch", "__main__", "dask")
        ):
            with suppress(ImportError):
                importlib.import_module(module.name)
    for name in (
        "matplotlib.figure",
        "matplotlib.backends.backend_svg",
        "networkx",
        "yaml",
        "rich.table",
        "google.protobuf.descriptor_pb2",
        "plotly.graph_objects",
        "scipy.optimize",
    ):
        with suppress(ImportError):
            importlib.import_module(name)


def run(case: Case, folder: Path, look: float = LOOK_S) -> str:
    """Runs a case in a fork; returns the failure, or "" or "long" if there is none."""
    child = os.fork()
    if not child:
        _in_child(case, folder)
    status = _watched(child, folder, look)
    if isinstance(status, str):
        return status
    if not (folder / "stderr").exists():
        return "the files of the case could not be written"
    output = (folder / "stderr").read_bytes().decode("utf-8", "replace")
    if os.WIFSIGNALED(status):
        return f"killed by {signal.Signals(os.WTERMSIG(status)).name}: {output[-300:]}"
    code = os.WEXITSTATUS(status)
    if code not in DOCUMENTED:
        return f"exit code {code}: {output[-600:]}"
    if "Traceback" in output or "panicked" in output:
        return f"a traceback: {output[-600:]}"
    if code and "error: " not in output:
        return f"exit code {code} without an error: {output[-300:]}"
    if code and len(output) > LONGEST_ERROR:
        return f"an error of {len(output):,} characters: {output[:300]}"
    return ""


def _in_child(case: Case, folder: Path) -> None:
    code = 70
    try:
        os.chdir(folder)
        call = case.write(folder)
        for number, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        faulthandler.register(signal.SIGUSR1, file=open("stack", "w"), all_threads=False)  # noqa: SIM115, PTH123
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (WRITTEN, WRITTEN))
        os.environ["COLUMNS"] = "80"
        sys.argv = ["tutti", *call]
        Path("call").write_text(repr(sys.argv), "utf-8")
        from tutti.cli import main

        main()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 0
    except BaseException:  # noqa: BLE001 - it is what is looked for
        import traceback

        with suppress(BaseException):
            traceback.print_exc()
    finally:
        with suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _watched(child: int, folder: Path, look: float) -> int | str:
    """Returns the exit status of a child, or the failure; limits are in processor time."""
    looked = False
    pause = 0.002
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(pause)
        pause = min(pause * 1.2, 0.05)
        spent = _processor_seconds(child)
        if spent > look and not looked:
            looked = True
            if _is_simulating(child, folder):
                _kill(child)
                return "long"
        if spent > HANG_S:
            stack = _stack(child, folder)
            _kill(child)
            return f"a hang: {stack[:1500]}"


def _processor_seconds(pid: int) -> float:
    try:
        cells = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(cells[11]) + int(cells[12])) / os.sysconf("SC_CLK_TCK")


def _is_simulating(child: int, folder: Path) -> bool:
    """Whether the innermost call of the package is one of a simulation."""
    lines = _stack(child, folder).splitlines()
    inner = next((line for line in lines if "/tutti/" in line), "")
    return any(f'{name}"' in inner for name in SIMULATIONS)


def _stack(child: int, folder: Path) -> str:
    """Returns the calls of a child, innermost first, or fewer if it ends meanwhile.

    The child writes line by line, and only once it is scheduled: the wait ends with the last line.
    """
    file = folder / "stack"
    before = file.stat().st_size if file.exists() else 0
    text = ""
    _kill(child, signal.SIGUSR1)
    while not text.endswith(("in <module>\n", "  ...\n")) and not _has_ended(child):
        time.sleep(0.01)
        text = file.read_bytes()[before:].decode("utf-8", "replace") if file.exists() else ""
    return text


def _has_ended(child: int) -> bool:
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, child, options) is not None


def _kill(child: int, number: signal.Signals = signal.SIGKILL) -> None:
    with suppress(ProcessLookupError):
        os.kill(child, number)
    if number == signal.SIGKILL:
        os.waitpid(child, 0)


class Session:
    """Runs cases sequentially, and collects the failures.

    Attributes:
        failures: The failure of each failed case.
        counts: Numbers of cases by outcome and by target.
    """

    def __init__(self, seed: int, work: Path, look: float = LOOK_S) -> None:
        self.seed, self._work, self._look = seed, work, look
        folder = work / "made"
        child = os.fork()
        if not child:
            code = 1
            try:
                made.make(folder)
                code = 0
            except BaseException:  # noqa: BLE001
                import traceback

                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        if os.waitpid(child, 0)[1]:
            raise SystemExit("the files to mutate could not be written")
        self.targets = seeds.targets(folder)
        self.failures: dict[str, str] = {}
        self.counts: Counter[str] = Counter()

    def run(self, number: int) -> None:
        """Runs a case; keeps the files of a failed one."""
        case = Case(self.seed, number, self.targets)
        folder = self._work / f"case-{self.seed}-{number}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        wrong = run(case, folder, self._look)
        self.counts["long" if wrong == "long" else "failed" if wrong else "passed"] += 1
        self.counts["cases"] += 1
        if wrong and wrong != "long":
            self.failures[case.name] = f"[{case.target.name}] {wrong}"
        else:
            shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    """Runs cases until a number of them or a time is reached, or one by its name."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60, help="for how long; 0: until --cases")
    parser.add_argument("--cases", type=int, default=0, help="at most so many")
    parser.add_argument("--seed", type=int, default=None, help="drawn, if not given")
    parser.add_argument("--case", help="one case alone, as SEED:NUMBER; its files stay")
    parser.add_argument("--only", default="", help="targets whose name holds this")
    parser.add_argument(
        "--out", type=Path, default=None, help="folder for the files of failing cases"
    )
    case_request = parser.parse_args()
    seed = (
        case_request.seed
        if case_request.seed is not None
        else random.SystemRandom().randrange(1 << 31)
    )
    numbers: Any = iter(range(case_request.cases or 1 << 60))
    if case_request.case:
        seed, _, number = case_request.case.partition(":")
        seed, numbers, case_request.seconds = int(seed), iter([int(number)]), 0
    load_everything()
    work = case_request.out or Path(tempfile.mkdtemp(prefix="tutti-fuzz-"))
    session = Session(seed, work.resolve())
    if case_request.only:
        session.targets = [one for one in session.targets if case_request.only in one.name]
    print(
        f"seed {seed}; {len(session.targets)} targets; files of failing cases go to {work}",
        flush=True,
    )
    started = time.monotonic()
    for number in numbers:
        if case_request.seconds and time.monotonic() - started > case_request.seconds:
            break
        before = len(session.failures)
        session.run(number)
        if len(session.failures) > before:
            name = f"{seed}:{number}"
            print(f"{name}: {session.failures[name]}\n", flush=True)
    took = time.monotonic() - started
    cases = session.counts["cases"]
    print(
        f"{cases:,} cases in {took:.0f} s ({cases / took:.1f} a second): "
        f"{len(session.failures)} failed, {session.counts['long']} stopped while simulating"
    )
    return 1 if session.failures else 0


if __name__ == "__main__":
    sys.exit(main())
