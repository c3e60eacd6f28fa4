"""A command line that starts an MPI program, as a person wrote it: where its launcher is, how many
ranks it asks for, which program they are, and how variables reach them.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tutti.errors import LaunchError
from tutti.mpi.host import launcher_kind
from tutti.mpi.launch import rank_options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tutti.mpi.host import Kind

__all__ = ["Command", "read_command"]

_OF_AN_MPI: Final = re.compile(r"(mpiexec|mpirun)([.-]\w+)*|orterun|prterun|mpiexec\.hydra")
_OF_A_SYSTEM: Final = re.compile(r"srun|aprun|jsrun|lrun|ibrun|palsrun|flux|pbsdsh")
_COUNTS: Final = {"-n", "-np", "--n", "--np", "--ntasks"}

_FLAGS: Final = """
--oversubscribe -oversubscribe --allow-run-as-root --tag-output --quiet -q --verbose -v --nolocal
--report-bindings --set-cwd-to-session-dir -genvall -genvnone -envall -envnone -l -prepend-rank
-profile -verbose -print-all-exitcodes -disable-auto-cleanup
"""
_ONE: Final = """
-c -x --host -host -H --hostfile -hostfile --machinefile -machinefile --map-by --rank-by --bind-to
--wdir -wdir --wd --path --prefix --output --timeout --tune -am --am --display --stdin -N --npernode
-npernode --ppr --rankfile --runtime-options --report-pid --report-uri --app -genvlist -envlist
-hosts -f -ppn -bind-to -map-by -iface -launcher -rmk -timeout -outfile-pattern -errfile-pattern
-prepend-pattern -usize
"""
_TWO: Final = "--mca -mca --gmca --prtemca --pmixmca -genv -env"
_ARGUMENTS: Final = {
    option: count
    for count, options in enumerate((_FLAGS, _ONE, _TWO))
    for option in options.split()
}
"""How many words follow an option of mpiexec, in both MPIs; after others nobody can tell."""


@dataclass(frozen=True)
class Command:
    """A command line, understood as far as it can be.

    Attributes:
        argv: Its words.
        launcher: The program that starts ranks; None where the command starts itself as one.
        place: Where it stands.
        kind: Whose launcher it is; ``other`` for one of a batch system, or none.
        ranks: How many ranks it asks for, where that can be told.
        programs: What they run, where that can be told.
    """

    argv: tuple[str, ...]
    launcher: Path | None
    place: int
    kind: Kind
    ranks: int | None
    programs: tuple[str, ...]

    def with_variables(self, variables: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
        """The command that gives these variables to the ranks, and what goes into its environment.

        A launcher of an MPI is told by its own options and does not get them itself; that of a
        batch system hands down its environment.
        """
        options = rank_options(self.kind, variables) if self.launcher else []
        if not options:
            return list(self.argv), dict(variables)
        # Both MPIs give them to every program of a command with several, between colons.
        argv = list(self.argv)
        argv[self.place + 1 : self.place + 1] = options
        return argv, {}


def read_command(argv: Sequence[str]) -> Command:
    """Looks for the launcher in a command line, and behind it.

    Raises:
        LaunchError: There is nothing to run, or the launcher is not there.
        MpiError: The launcher cannot be asked what it is.
    """
    if not argv:
        message = "no command: expected one that starts ranks, such as mpiexec -n 4 ./app"
        raise LaunchError(message, kind="no_command")
    for place, word in enumerate(argv):
        name = Path(word).name
        of_an_mpi = _OF_AN_MPI.fullmatch(name) is not None
        if of_an_mpi or _OF_A_SYSTEM.fullmatch(name):
            found = shutil.which(word)
            if found is None:
                message = f"{word}: is no program that can be run"
                raise LaunchError(message, kind="no_launcher", fields={"launcher": word})
            launcher = Path(found).absolute()
            kind: Kind = launcher_kind(launcher)[0] if of_an_mpi else "other"
            ranks, programs = _behind(list(argv[place + 1 :]))
            return Command(tuple(argv), launcher, place, kind, ranks, programs)
    return Command(tuple(argv), None, 0, "other", None, (argv[0],))


def _behind(words: list[str]) -> tuple[int | None, tuple[str, ...]]:
    """The ranks that are asked for and the programs, of each part between colons."""
    counts: list[int | None] = []
    programs: list[str] = []
    part: list[str] = []
    for word in [*words, ":"]:
        if word != ":":
            part.append(word)
            continue
        count, program = _part(part)
        counts.append(count)
        programs += [program] if program else []
        part = []
    known = [count for count in counts if count is not None]
    return (sum(known) if len(known) == len(counts) else None), tuple(programs)


def _part(words: list[str]) -> tuple[int | None, str | None]:
    count: int | None = None
    at = 0
    while at < len(words):
        word = words[at]
        name, equals, value = word.partition("=")
        if name in _COUNTS and (equals or at + 1 < len(words)):
            text = value if equals else words[at + 1]
            count = int(text) if text.isascii() and text.isdigit() else None
            at += 1 if equals else 2
        elif not word.startswith("-"):
            return count, word
        elif equals:
            at += 1
        elif name in _ARGUMENTS:
            at += 1 + _ARGUMENTS[name]
        else:
            # What follows may be its argument or the program: only a count is still worth finding.
            return count if count is not None else _count(words[at:]), None
    return count, None


def _count(words: list[str]) -> int | None:
    for option, value in pairwise(words):
        if option in {"-n", "-np", "--np"}:
            return int(value) if value.isascii() and value.isdigit() else None
    return None
