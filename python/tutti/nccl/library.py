"""NCCL as the library of a platform: what it selects, and its algorithms as schedules."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tutti.base.files.mistakes import did_you_mean
from tutti.measured.errors import TuningError
from tutti.nccl.presets import preset_of, system
from tutti.nccl.schedules import CHAINED, MOST_PAIRED, Layout, schedule_of
from tutti.nccl.settings import COLLECTIVES, PROTOCOLS
from tutti.nccl.tuning import best, candidates
from tutti.nccl.versions import version
from tutti.platforms.library import LibrarySchedule, Prediction
from tutti.schedules.errors import AlgorithmError

if TYPE_CHECKING:
    from tutti.nccl.system import NcclSystem
    from tutti.nccl.tuning import Candidate
    from tutti.platforms.library import Library

NAME = "nccl"
WORDS = {
    "ring": "Ring",
    "tree": "Tree",
    "nvls": "NVLS",
    "nvls_tree": "NVLSTree",
    "pat": "PAT",
    "collnet_direct": "CollNetDirect",
    "collnet_chain": "CollNetChain",
}
"""NCCL's algorithms by their names in notations."""
_IN_SWITCHES = ("NVLS", "NVLSTree")
_PS = 10**6
"""Picoseconds in a microsecond."""


def model_of(library: Library) -> NcclLibrary:
    """Returns the model of NCCL on a platform.

    Raises:
        ConfigError: The version or the system is unknown.
    """
    if library.system:
        preset_of(library.system)
    return NcclLibrary(library.system, version(library.version).name)


@dataclass(frozen=True)
class NcclLibrary:
    """NCCL on the nodes of a platform.

    Attributes:
        system: The name of the NCCL system; empty if its graphs are not known.
        version: The version.
    """

    system: str
    version: str

    @property
    def title(self) -> str:
        """The name and the version."""
        return f"NCCL {self.version}"

    @property
    def ranks_per_node(self) -> int:
        """The GPUs of a node; 0 if they are not known."""
        return preset_of(self.system).gpus_per_node if self.system else 0

    def layout(self, ranks: int) -> Layout:
        """Returns the nodes of consecutive ranks.

        Raises:
            AlgorithmError: The ranks do not fill nodes, or the nodes are not known.
        """
        if not self.system:
            problem = f"the graphs of {self.title} on this platform are not known"
            raise AlgorithmError(problem, kind="wrong_ranks")
        gpus = self.ranks_per_node
        if ranks > gpus and ranks % gpus:
            problem = f"{ranks:,} ranks do not fill nodes of {gpus} GPUs"
            raise AlgorithmError(problem, kind="wrong_ranks", fields={"ranks": ranks})
        pairs = not preset_of(self.system).nvswitch and gpus <= MOST_PAIRED
        return Layout(min(ranks, gpus), max(1, ranks // gpus), pairs)

    def note(self, ranks: int) -> str:
        """Returns that the graphs of an incomplete node are inferred; empty for complete nodes."""
        if ranks >= self.ranks_per_node:
            return ""
        text = f"inferred: the graphs of {self.title} for {ranks} GPUs of a node"
        return f"{text} are those of the complete node"

    def on(self, layout: Layout) -> NcclSystem:
        """Returns NCCL's view of a communicator; incomplete nodes have the graphs of complete ones.

        Raises:
            AlgorithmError: The graphs of several nodes are not known.
        """
        preset = preset_of(self.system)
        if layout.nodes > 1 and not preset.several_nodes:
            problem = f"the graphs of {self.title} on several nodes of {self.system} are not known"
            raise AlgorithmError(problem, kind="wrong_ranks", fields={"nodes": layout.nodes})
        return replace(system(self.system, layout.nodes), gpus_per_node=layout.width)

    def candidates(self, collective: str, ranks: int, size: int) -> list[Candidate]:
        """Returns the candidates of NCCL.

        Raises:
            AlgorithmError: NCCL does not have the collective, or the nodes are not known.
        """
        if collective not in COLLECTIVES:
            raise AlgorithmError(f"NCCL has no {collective}", kind="wrong_collective")
        return candidates(self.on(self.layout(ranks)), collective, max(1, size), self.version)

    def default(self, collective: str, ranks: int, size: int) -> Prediction:
        """Returns the choice of NCCL for a size in bytes, and the time that it predicts.

        Raises:
            AlgorithmError: NCCL does not have the collective, or the nodes are not known.
        """
        return _prediction(_best(self.candidates(collective, ranks, size), collective))

    def notations(self, collective: str, ranks: int) -> list[str]:
        """Returns the notations of the algorithms that NCCL considers.

        Raises:
            AlgorithmError: NCCL does not have the collective, or the nodes are not known.
        """
        rows = self.candidates(collective, ranks, 1 << 20)
        names = {row.algorithm for row in rows if row.considered}
        return [f"{NAME}:{word}" for word, name in WORDS.items() if name in names]

    def schedule(self, notation: str, collective: str, ranks: int, size: int) -> LibrarySchedule:
        """Returns the schedule of `nccl`, `nccl:ALGORITHM` or `nccl:ALGORITHM,PROTOCOL`.

        Raises:
            AlgorithmError: The notation is invalid, NCCL does not consider the algorithm, or tutti
                has no schedule for it.
        """
        algorithm, protocol = _read(notation)
        rows = [
            row
            for row in self.candidates(collective, ranks, size)
            if algorithm in {"", row.algorithm} and protocol in {"", row.protocol}
        ]
        refused = next((row.refusal for row in rows if row.refusal), "")
        if not any(row.considered for row in rows):
            raise AlgorithmError(f"NCCL does not consider {notation}: {refused}")
        row, layout = _best(rows, collective), self.layout(ranks)
        laid_out = schedule_of(
            *(row.algorithm, row.protocol, collective, layout), size=size, channels=row.channels
        )
        word = next(word for word, name in WORDS.items() if name == row.algorithm)
        in_switches = row.algorithm in _IN_SWITCHES
        return LibrarySchedule(
            label=f"{NAME}:{word},{row.protocol.lower()}",
            schedule=laid_out,
            model=f"{NAME}_nvls" if in_switches else f"{NAME}_{row.protocol.lower()}",
            launch_ps=round(row.latency * _PS) if in_switches else None,
            predicted=_prediction(row),
            has_channels=collective not in CHAINED,
        )


def _best(rows: list[Candidate], collective: str) -> Candidate:
    try:
        return best(rows, collective)
    except TuningError as error:
        raise AlgorithmError(error.problem) from None


def _prediction(row: Candidate) -> Prediction:
    return Prediction(row.algorithm, row.protocol, round(row.latency * _PS), round(row.time * _PS))


def _read(notation: str) -> tuple[str, str]:
    """Returns the algorithm and the protocol of a notation in NCCL's names; empty without one.

    Raises:
        AlgorithmError: One of them is unknown.
    """
    argument = notation.partition(":")[2].strip()
    word, _, protocol = (part.strip() for part in argument.partition(","))
    protocols = {name.lower(): name for name in PROTOCOLS}
    for text, known in ((word, WORDS), (protocol, protocols)):
        if text and text not in known:
            raise AlgorithmError(
                f"`{text}` does not fit {NAME}: expected one of {', '.join(known)}",
                kind="argument",
                hint=did_you_mean(text, known),
            )
    return WORDS.get(word, ""), protocols.get(protocol, "")
