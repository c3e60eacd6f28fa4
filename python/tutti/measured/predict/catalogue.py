"""What the algorithms of MPI libraries are: from a library's name to stages.

The table is `libraries.toml`; the algorithms of Open MPI and MPICH, and their other names, are in
:mod:`tutti.measured.tune.library_algorithms`. Names carry parameters: `segmented_over_16384` has
segments of 16384 bytes, and Fujitsu's `BINE-L-UTOFU-4096-6` segments of 4096 bytes over six network
interfaces, past MPI.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from tutti.base.bundled import bundled
from tutti.measured.predict.forms import stages_of_form
from tutti.measured.predict.stages import Partners, Stage, closed_form, divided, segmented, striped
from tutti.measured.predict.torus import box_of
from tutti.measured.tune.library_algorithms import TITLES, every_algorithm

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULTS = frozenset({"default", "non_blocking"})
"""Names of what a library chooses by itself: any algorithm may run."""

_TOFU = re.compile(r"(?P<name>[A-Z]+-.+)-(?P<interface>UTOFU|MPI)-(?P<segment>\d+)-(?P<ports>\d+)")
_SEGMENTED = re.compile(r"(?P<name>.*segmented)_over(?:_(?P<segment>\d+))?")
_DEFAULT_SEGMENT = 4096
"""Segments in bytes of PICO's segmented algorithms without a number."""


@dataclass(frozen=True)
class KnownAlgorithm:
    """An algorithm that a library names.

    Attributes:
        collective: the collective.
        names: its names, normalised.
        libraries: the libraries that have an algorithm of that name.
        notation: the schedule in tutti's notation; None if tutti has none.
        form: its stages where the core has no closed form, of
            :data:`tutti.measured.predict.forms.FORMS`.
        torus_form: the same, on a torus only.
        partners: which ranks communicate.
        alternating: whether partners alternate between both sides.
        pieces: messages into which each message is divided.
        copied: fraction of the vector that is copied.
        folds: whether ranks beyond a power of two hand over their vector first.
        stages_of: the collective whose stages it has, if another.
        synchronous: whether each message waits for a request of the receiver.
        is_tree: whether few ranks send at a time, each within a separate range of ranks.
        sequential_ports: whether network interfaces carry parts of a message sequentially.
    """

    collective: str
    names: tuple[str, ...]
    libraries: tuple[str, ...]
    notation: str | None = None
    form: str | None = None
    torus_form: str | None = None
    partners: Partners = "doubling"
    alternating: bool = False
    pieces: int = 1
    copied: float = 0.0
    folds: bool = False
    stages_of: str | None = None
    synchronous: bool = False
    is_tree: bool = False
    sequential_ports: bool = False


@dataclass(frozen=True)
class Execution:
    """An algorithm as a library runs it.

    Attributes:
        algorithm: the algorithm.
        name: its name, without suffixes and parameters.
        segment_bytes: size of segments; 0 without segments.
        ports: network interfaces over which messages are striped.
        interface: `mpi`, or `utofu` for Fujitsu's low-level interface.
        wide: whether the name requests six network interfaces.
    """

    algorithm: KnownAlgorithm
    name: str
    segment_bytes: int = 0
    ports: int = 1
    interface: str = "mpi"
    wide: bool = False

    def stages(self, ranks: int, sides: Sequence[int], size: float) -> tuple[Stage, ...] | None:
        """Returns the stages of a run.

        Args:
            ranks: the number of ranks.
            sides: the sides that the job requested; one number on any other network.
            size: the vector in bytes.

        Returns:
            The stages; None if tutti cannot describe the algorithm there.
        """
        base = self._base(ranks, sides)
        if base is None:
            return None
        stages = striped(base, self.ports, sequential=self.algorithm.sequential_ports)
        if self.algorithm.pieces > 1:
            stages = divided(stages, self.algorithm.pieces)
        if self.segment_bytes:
            stages = segmented(stages, self.segment_bytes, size)
        in_turn = self.algorithm.alternating or self.interface == "utofu"
        if self.algorithm.is_tree or (in_turn and len(sides) > 1):
            tree = self.algorithm.is_tree
            stages = [replace(one, is_tree=tree, in_turn=in_turn) for one in stages]
        if self.algorithm.copied:
            stages.append(Stage(1, 0, 0.0, self.algorithm.copied))
        return tuple(stages)

    def _base(self, ranks: int, sides: Sequence[int]) -> Sequence[Stage] | None:
        known = self.algorithm
        form = known.form if len(sides) == 1 else (known.torus_form or known.form)
        if form is not None:
            # Fujitsu's algorithms use all dimensions of the torus, PICO's those of the job.
            used = sides if form == "rings" else box_of(sides)
            return stages_of_form(form, known.collective, ranks, used, wide=self.wide)
        if known.notation is None:
            return None
        if known.synchronous:
            return [Stage(2 * (ranks - 1), 1, 0.5 / ranks)]
        return closed_form(
            known.notation,
            known.stages_of or known.collective,
            ranks,
            known.partners,
            alternating=known.alternating,
            folds=known.folds,
        )


@cache
def known_algorithms() -> dict[tuple[str, str], KnownAlgorithm]:
    """Returns all algorithms, by collective and normalised name."""
    entries: list[dict[str, Any]] = bundled("measured/predict/libraries.toml")["algorithm"]
    listed = {(entry["collective"], name) for entry in entries for name in entry["names"]}
    found: dict[tuple[str, str], KnownAlgorithm] = {}
    for entry in entries:
        collective, names = entry["collective"], entry.pop("names")
        same = [(title, others) for title, others in _names_of_libraries(collective)
                if not others.isdisjoint(names)]  # fmt: skip
        added = {name for _, others in same for name in others} - set(names)
        names += sorted(name for name in added if (collective, name) not in {*listed, *found})
        libraries = [*(title for title, _ in same), *entry.pop("libraries", ())]
        known = KnownAlgorithm(
            names=tuple(names), libraries=tuple(dict.fromkeys(libraries)), **entry
        )
        found |= {(collective, name): known for name in names}
    return found


@cache
def _names_of_libraries(collective: str) -> tuple[tuple[str, frozenset[str]], ...]:
    """Returns the library and the normalised names of each algorithm of Open MPI and MPICH."""
    return tuple(
        (TITLES[library], frozenset(_base_name(name) for name in (one.name, *one.aliases)))
        for library in ("openmpi", "mpich")
        for one in every_algorithm(library)
        if one.collective.removesuffix("_v") == collective
    )


@cache
def execution(collective: str, library_algorithm: str) -> Execution | None:
    """Returns what a library's name means.

    Args:
        collective: the collective.
        library_algorithm: the name as the library or the benchmark writes it, or an algorithm in
            tutti's notation.

    Returns:
        The execution; None for an unknown name, or for what the library chooses by itself.
    """
    parameters: dict[str, Any] = {}
    name = library_algorithm
    if match := _TOFU.fullmatch(name):
        name = match["name"].replace("-", "_")
        parameters = {
            "segment_bytes": int(match["segment"]),
            "ports": max(1, int(match["ports"])),
            "interface": "utofu" if match["interface"] == "UTOFU" else "mpi",
        }
    elif match := _SEGMENTED.fullmatch(name):
        name = match["name"]
        parameters = {"segment_bytes": int(match["segment"] or _DEFAULT_SEGMENT)}
    name = _base_name(name)
    known = known_algorithms().get((collective, name))
    if known is None:
        return _of_notation(collective, library_algorithm)
    return Execution(known, name, wide=name.endswith(("6", "6d")) or name in _WIDE, **parameters)


_WIDE = frozenset({"crp", "doublespread"})


def _base_name(name: str) -> str:
    name = name.removeprefix("default-").replace("-", "_")
    name = re.sub(r"_(ompi|mpich)$", "", name)
    return re.sub(r"_over(?=_any|$)", "", name)


def is_default(library_algorithm: str | None) -> bool:
    """Returns whether a name stands for the library's own choice."""
    if library_algorithm is None:
        return True
    return _base_name(library_algorithm) in DEFAULTS or library_algorithm == "default-default"


def _of_notation(collective: str, notation: str) -> Execution | None:
    """An algorithm of tutti, under its own name."""
    from tutti import _core
    from tutti.schedules.errors import AlgorithmError

    name, *_ = notation.split(":")
    if name not in {one.name for one in _core.algorithms()}:
        return None
    same = [known for known in known_algorithms().values() if known.notation == notation]
    same = [known for known in same if known.collective == collective]
    if same:
        return Execution(same[0], notation)
    try:
        _core.critical_path(notation, collective, 4)
    except AlgorithmError:
        return None
    return Execution(KnownAlgorithm(collective, (notation,), ("tutti",), notation), notation)
