"""Numbers of ranks and nodes that a job log states: in echoed commands of launchers, in headings.

Read are `mpirun` and `mpiexec` of Open MPI, MPICH and Intel MPI, `mpirun_rsh`, `srun`, `flux run`,
`jsrun`, `aprun` and `ibrun`. A number that is not written as digits, such as `-n $RANKS`, is
unknown.
"""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, NamedTuple

from tutti.base.files.limits import parse_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class _Options(NamedTuple):
    """The options of a launcher, by what they count."""

    ranks: frozenset[str]
    nodes: frozenset[str] = frozenset()
    per_node: frozenset[str] = frozenset()


_MPI: Final = _Options(
    ranks=frozenset({"-n", "-np", "--n", "--np", "-c"}),
    per_node=frozenset({"-N", "-npernode", "--npernode", "-ppn", "--ppn", "-perhost"}),
)
_SLURM: Final = _Options(
    ranks=frozenset({"-n", "--ntasks"}),
    nodes=frozenset({"-N", "--nodes"}),
    per_node=frozenset({"--ntasks-per-node", "--tasks-per-node"}),
)
_ALPS: Final = _Options(
    ranks=frozenset({"-n", "--pes"}), per_node=frozenset({"-N", "--pes-per-node"})
)
_JSRUN: Final = _Options(ranks=frozenset({"-p", "--np"}))
_SETS: Final = _Options(
    ranks=frozenset({"-n", "--nrs"}),
    nodes=frozenset({"-r", "--rs_per_host"}),
    per_node=frozenset({"-a", "--tasks_per_rs"}),
)
"""Resource sets of `jsrun`: how many, of each host, and ranks of each."""
_LAUNCHERS: Final = {
    **dict.fromkeys(("mpirun", "mpiexec", "orterun", "prun", "prterun", "mpiexec.hydra"), _MPI),
    **dict.fromkeys(("mpirun.openmpi", "mpirun.mpich", "mpiexec.openmpi", "mpiexec.mpich"), _MPI),
    **dict.fromkeys(("srun", "flux"), _SLURM),
    **dict.fromkeys(("mpirun_rsh", "mpiexec.mpirun_rsh"), _MPI),
    "aprun": _ALPS,
    "jsrun": _JSRUN,
    "ibrun": _Options(ranks=frozenset({"-n"})),
}
_ONE_PER_NODE: Final = frozenset({"-pernode", "--pernode"})
_PROGRAM: Final = re.compile(r"osu_\w+|IMB-\w+|\w+_perf(?:_mpi)?")
_PERF: Final = re.compile(r"_perf(?:_mpi)?$")
_PER_RESOURCE: Final = re.compile(r"ppr:(\d+):node\b")
_GLUED: Final = re.compile(r"(-[nN])(\d+)")


class Launch(NamedTuple):
    """An echoed command.

    Attributes:
        program: The benchmark, such as `osu_allreduce`.
        ranks: The number of ranks; None if the command does not state it as one number.
        nodes: The number of nodes, likewise.
    """

    program: str
    ranks: int | None
    nodes: int | None


def launch_of(line: str) -> Launch | None:
    """Returns the launch of a benchmark that a line echoes; None for other lines.

    Examples:
        >>> launch_of("+ srun -N 2 --ntasks-per-node=4 ./osu_allreduce -i 100")
        Launch(program='osu_allreduce', ranks=8, nodes=2)
        >>> launch_of("$ mpirun -np $RANKS osu_bcast")
        Launch(program='osu_bcast', ranks=None, nodes=None)
        >>> launch_of("$ ./build/all_reduce_perf -b 8 -e 128M -g 8")
        Launch(program='all_reduce_perf', ranks=None, nodes=None)
        >>> print(launch_of("mpirun was called on 4 nodes"))
        None
    """
    words = [word.strip("\"'`();") for word in line.split()]
    names = [word.rpartition("/")[2] for word in words]
    starts = [place for place, name in enumerate(names) if name in _LAUNCHERS]
    ends = [place for place, name in enumerate(names) if _PROGRAM.fullmatch(name)]
    if ends and not starts and _is_alone(words, ends[0]):
        return Launch(names[ends[0]].removesuffix("_mpi"), None, None)
    if not starts or not ends or ends[0] < starts[0]:
        return None
    program = names[ends[0]].removesuffix("_mpi")
    if sum(start < ends[0] for start in starts) > 1 or ":" in words[starts[0] :]:
        return Launch(program, None, None)  # nested launchers, or several programs
    options = _LAUNCHERS[names[starts[0]]]
    arguments = words[starts[0] + 1 : ends[0]]
    if options is _JSRUN:
        return Launch(program, *_of_sets(arguments))
    ranks, nodes, per_node = _numbers(arguments, options)
    if ranks is None and nodes is not None and per_node is not None:
        ranks = nodes * per_node
    if nodes is None and ranks and per_node and ranks % per_node == 0:
        nodes = ranks // per_node
    return Launch(program, ranks or None, nodes or None)


def _is_alone(words: list[str], place: int) -> bool:
    """Returns whether a program of nccl-tests starts without launcher; others print their name."""
    options = words[place + 1 : place + 2]
    return bool(_PERF.search(words[place])) and bool(options) and options[0].startswith("-")


def _numbers(words: list[str], options: _Options) -> tuple[int | None, int | None, int | None]:
    """Returns ranks, nodes and ranks per node; None if absent, not a number or contradictory."""
    found: dict[int, set[int | None]] = {0: set(), 1: set(), 2: set()}
    for name, value in _pairs(words):
        for kind, names in enumerate(options):
            if name in names:
                found[kind].add(parse_count(value))
        if name in _ONE_PER_NODE:
            found[2].add(1)
        elif name in {"-map-by", "--map-by"} and (each := _PER_RESOURCE.match(value)):
            found[2].add(parse_count(each[1]))
    ranks, nodes, per_node = (
        next(iter(values)) if len(values) == 1 else None for values in found.values()
    )
    return ranks, nodes, per_node


def _of_sets(words: list[str]) -> tuple[int | None, int | None]:
    """Returns ranks and nodes of `jsrun`: resource sets have one rank by default."""
    sets, of_host, each = _numbers(words, _SETS)
    ranks, _, _ = _numbers(words, _JSRUN)
    if ranks is None and sets is not None:
        ranks = sets * (each or 1)
    return ranks or None, sets // of_host if sets and of_host and sets % of_host == 0 else None


def _pairs(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yields options with their values, whether separate, after `=` or glued (`-N2`)."""
    for word, following in zip_longest(words, words[1:], fillvalue=""):
        name, equals, value = word.partition("=")
        if glued := _GLUED.fullmatch(word):
            yield glued[1], glued[2]
        elif equals and name.startswith("-"):
            yield name, value
        elif word.startswith("-"):
            yield word, following


_STATED: Final = re.compile(
    r"[#*\s]*(?:total\s+)?(?:number\s+of\s+|num[\s_]|n(?=nodes|procs|ranks|tasks))?(?:mpi[\s_])?"
    r"(nodes|processes|procs|ranks|tasks)\s*[:=]?\s*(\d{1,8})",
    re.IGNORECASE,
)
_LONGEST_STATEMENT: Final = 80


class Size(NamedTuple):
    """The size of a run as a log states it before the run.

    Attributes:
        ranks: The number of ranks, None if unknown.
        nodes: The number of nodes, None if unknown.
        source: `launcher` or `file`: what states the ranks.
        contradictory: Whether the log states several numbers of ranks.
        stated: The numbers of ranks that it states.
    """

    ranks: int | None = None
    nodes: int | None = None
    source: str | None = None
    contradictory: bool = False
    stated: frozenset[int] = frozenset()


def size_of(launches: Iterable[Launch], lines: Iterable[str]) -> Size:
    """Returns the size of a run.

    Args:
        launches: Commands of the benchmark since the previous run.
        lines: Lines since the previous run, which may state the numbers, too.

    Examples:
        >>> size_of([Launch("osu_bcast", 8, None)], ["# Number of nodes: 2"])
        Size(ranks=8, nodes=2, source='launcher', contradictory=False, stated=frozenset({8}))
        >>> size_of([Launch("osu_bcast", 8, 2), Launch("osu_bcast", 4, 2)], []).contradictory
        True
    """
    launches = list(launches)
    stated: dict[bool, set[int]] = {True: set(), False: set()}
    for line in lines:
        found = _STATED.fullmatch(line.rstrip()) if len(line) <= _LONGEST_STATEMENT else None
        if found and int(found[2]):
            stated[found[1].lower() == "nodes"].add(int(found[2]))
    ranks, clear = _agreed({one.ranks for one in launches}, stated[False])
    nodes, _ = _agreed({one.nodes for one in launches}, stated[True])
    echoed = any(one.ranks is not None for one in launches)
    source = ("launcher" if echoed else "file") if ranks is not None else None
    numbers = {one.ranks for one in launches if one.ranks is not None} | stated[False]
    return Size(ranks, nodes, source, contradictory=not clear, stated=frozenset(numbers))


def _agreed(launched: set[int | None], stated: set[int]) -> tuple[int | None, bool]:
    """Returns the number on which all agree, and whether none disagree."""
    numbers = {one for one in launched if one is not None} | stated
    if len(launched) > 1 or len(numbers) > 1:
        return None, False
    return next(iter(numbers), None), True
