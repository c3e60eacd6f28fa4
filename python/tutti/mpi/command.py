"""A command line that starts an MPI program: its launcher, programs and number of ranks.

Only the options for the number of ranks are interpreted, and options that contain their value
(``--name=value``). After any other option a ``--`` marks the program
(docs/decisions/0013-the-user-marks-the-program.md).
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tutti.mpi.errors import LaunchError
from tutti.mpi.launch import rank_options, stay_here
from tutti.mpi.underneath import launcher_kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tutti.mpi.underneath import Kind

_OF_AN_MPI: Final = re.compile(r"(mpiexec|mpirun)([.-]\w+)*|orterun|prterun|mpiexec\.hydra")
_OF_A_SYSTEM: Final = re.compile(r"srun|aprun|jsrun|lrun|ibrun|palsrun|flux|pbsdsh")
_RANKS: Final = re.compile(r"(?:-n|--?np|--?ntasks)(?:=?(\d+))?")
"""The number of ranks, in this word or the next one."""
_NOT_RANKS: Final = {"jsrun"}
"""Launchers whose ``-n`` counts something else."""
_FLUX: Final = "flux"
_FLUX_WAITS: Final = ("run",)
_FLUX_LEAVES: Final = {"submit", "batch", "bulksubmit"}


@dataclass(frozen=True)
class Command:
    """A parsed command line.

    Attributes:
        argv: Its words, without a ``--`` that was meant for tutti.
        launcher: The program that starts ranks; None if the command is started as one rank.
        place: Index of the launcher's last word, such as the ``run`` of ``flux run``.
        kind: The MPI library of the launcher; ``other`` for a batch system, or none.
        ranks: Number of ranks, if known.
        places: Indices of the programs that ranks run; empty if a file names them.
    """

    argv: tuple[str, ...]
    launcher: Path | None
    place: int
    kind: Kind
    ranks: int | None
    places: tuple[int, ...]

    @property
    def programs(self) -> tuple[str, ...]:
        """The programs that ranks run, if known."""
        return tuple(self.argv[place] for place in self.places)

    @property
    def options(self) -> tuple[str, ...]:
        """The words between the launcher and the first program."""
        return self.argv[self.place + 1 : self.places[0] if self.places else None]

    @property
    def is_here(self) -> bool:
        """Whether the ranks are certainly on this host."""
        return self.launcher is None or stay_here(self.kind, self.options)

    def with_variables(
        self, variables: Mapping[str, str], *, before: Sequence[str] = ()
    ) -> tuple[list[str], dict[str, str]]:
        """Returns the command that sets variables in the ranks, and additions to its environment.

        The launcher of an MPI library gets them as options, and does not set them for itself. The
        launcher of a batch system passes its environment on.

        Args:
            variables: The variables.
            before: Words to insert before each program.
        """
        argv = list(self.argv)
        for place in reversed(self.places):
            argv[place:place] = before
        options = rank_options(self.kind, variables) if self.launcher else []
        if not options:
            return argv, dict(variables)
        # Both MPIs apply them to every program of a command with several, separated by colons.
        argv[self.place + 1 : self.place + 1] = options
        return argv, {}


def read_command(argv: Sequence[str]) -> Command:
    """Finds the launcher in a command line and parses the rest.

    Raises:
        LaunchError: The command is empty, the launcher does not exist, or one of its options is
            unknown.
        MpiError: The launcher cannot be run.
    """
    if not argv:
        message = "no command: expected one that starts ranks, such as mpiexec -n 4 ./app"
        raise LaunchError(message, kind="no_command")
    for place, word in enumerate(argv):
        name = Path(word).name
        of_an_mpi = _OF_AN_MPI.fullmatch(name) is not None
        if not of_an_mpi and not _OF_A_SYSTEM.fullmatch(name):
            continue
        last = place + 1 if name == _FLUX else place
        if name == _FLUX and not _flux_starts_ranks(argv[last : last + 1]):
            continue
        found = shutil.which(word)
        if found is None:
            message = f"{word}: not an executable program"
            raise LaunchError(message, kind="no_launcher", fields={"launcher": word})
        launcher = Path(found).absolute()
        kind: Kind = launcher_kind(launcher)[0] if of_an_mpi else "other"
        return _behind(list(argv), launcher, last, kind)
    return Command(tuple(argv), None, 0, "other", None, (0,))


def _flux_starts_ranks(verb: Sequence[str]) -> bool:
    """Whether `flux` is the launcher, and not a command that starts one, such as `flux alloc`.

    Raises:
        LaunchError: The command does not wait for its ranks.
    """
    if verb and verb[0] in _FLUX_LEAVES:
        message = f"flux {verb[0]} does not wait for its ranks: expected a command that does"
        raise LaunchError(message, kind="does_not_wait")
    return bool(verb) and verb[0] in _FLUX_WAITS


def _behind(argv: list[str], launcher: Path, last: int, kind: Kind) -> Command:
    """Parses each part between colons: options, a program, and its arguments."""
    ranks: list[int | None] = []
    places: list[int] = []
    first = last + 1
    while first <= len(argv):
        end = argv.index(":", first) if ":" in argv[first:] else len(argv)
        program = _program(argv[first:end], launcher.name)
        ranks.append(_rank_count(argv[first : first + program]))
        if argv[first + program : end][:1] == ["--"]:
            del argv[first + program]
            end -= 1
        if first + program < end:
            places.append(first + program)
        first = end + 1
    known = [count for count in ranks if count is not None]
    is_known = len(known) == len(ranks) and launcher.name not in _NOT_RANKS
    return Command(tuple(argv), launcher, last, kind, sum(known) if is_known else None,
                   tuple(places))  # fmt: skip


def _program(words: Sequence[str], launcher: str) -> int:
    """Returns the index of the program, or of the ``--`` before it.

    Raises:
        LaunchError: An option may take the next word, and ``--`` is missing.
    """
    unknown = ""
    at = 0
    while at < len(words) and words[at] != "--":
        word = words[at]
        ranks = _RANKS.fullmatch(word)
        if not word.startswith("-") and not unknown:
            return at
        if ranks is None and not (word.startswith("--") and "=" in word):
            unknown = unknown or word
        at += 2 if ranks and ranks[1] is None else 1
    if unknown and at >= len(words):
        message = (
            f"{launcher} {unknown}: the next word may be its value or the program: expected `--` "
            "before the program"
        )
        fields = {"launcher": launcher, "option": unknown}
        raise LaunchError(message, kind="option", fields=fields)
    return min(at, len(words))


def _rank_count(options: Sequence[str]) -> int | None:
    """Returns the number of ranks that the last option for it states."""
    count = None
    for at, word in enumerate(options):
        found = _RANKS.fullmatch(word)
        if found is not None:
            value = found[1] or "".join(options[at + 1 : at + 2])
            count = int(value) if value.isascii() and value.isdigit() else None
    return count
