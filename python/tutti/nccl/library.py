"""NCCL or RCCL as the library of a platform: what it selects, and its algorithms as schedules."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti.base.files.mistakes import did_you_mean, mistake
from tutti.base.units import Size
from tutti.measured.errors import TuningError
from tutti.nccl.p2p import P2P, P2P_COLLECTIVES, simulated
from tutti.nccl.presets import partial_system, preset_of
from tutti.nccl.rccl import rccl_version
from tutti.nccl.schedules import (
    CHAINED,
    Layout,
    concurrent_channels,
    has_rings,
    schedule_of,
)
from tutti.nccl.settings import COLLECTIVES, PROTOCOLS
from tutti.nccl.tuning import best, candidates
from tutti.nccl.versions import known_versions, version
from tutti.platforms.library import Hops, LibrarySchedule, Prediction
from tutti.schedules.errors import AlgorithmError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.nccl.system import NcclSystem
    from tutti.nccl.tuned import Candidate
    from tutti.platforms.library import Library, Ranks
    from tutti.schedules.ir import Schedule

WORDS = {
    "ring": "Ring",
    "tree": "Tree",
    "nvls": "NVLS",
    "nvls_tree": "NVLSTree",
    "pat": "PAT",
    "collnet_direct": "CollNetDirect",
    "collnet_chain": "CollNetChain",
    "p2p": P2P,
}
"""NCCL's algorithms by their names in notations."""
RCCL = "rccl"
_IN_SWITCHES = ("NVLS", "NVLSTree")
_MOST_OF_NVLINK = 0.75
_PS = 10**6
"""Picoseconds in a microsecond."""


def model_of(library: Library) -> NcclLibrary:
    """Returns the model of NCCL or RCCL on a platform.

    Raises:
        ConfigError: The version or the system is unknown, or its library is another one.
    """
    gfx = preset_of(library.system).gfx if library.system else ""
    if library.system and (library.name == RCCL) != bool(gfx):
        problem = f"{library.system} has {'RCCL' if gfx else 'NCCL'}"
        raise mistake(problem, source="library", key="name", value=library.name)
    if not library.system:
        name = library.version if library.name == RCCL else version(library.version).name
        return NcclLibrary("", name, library.node_npus, library.name)
    return of_system(library.system, library.version, library.node_npus)


def of_system(system: str, release: str | None = None, node_npus: int = 0) -> NcclLibrary:
    """Returns the model of NCCL or RCCL on nodes of a system.

    Args:
        system: The name of the system.
        release: The version; None is the latest that tutti knows.
        node_npus: The GPUs of a node of the platform; 0 if they are those of the system.

    Raises:
        ConfigError: The version or the system is unknown.
    """
    if gfx := preset_of(system).gfx:
        return NcclLibrary(system, rccl_version(gfx, release), node_npus, RCCL)
    return NcclLibrary(system, version(release or known_versions()[-1]).name, node_npus)


@dataclass(frozen=True)
class NcclLibrary:
    """NCCL on the nodes of a platform.

    Attributes:
        system: The name of the NCCL system; empty if its graphs are not known.
        version: The version.
        node_npus: The GPUs of a node of the platform; 0 if they are those of the system.
        name: The notation of the library's choice, `nccl` or `rccl`.
    """

    system: str
    version: str
    node_npus: int = 0
    name: str = "nccl"

    @property
    def title(self) -> str:
        """The name and the version."""
        return f"{self.name.upper()} {self.version}"

    @property
    def ranks_per_node(self) -> int:
        """The GPUs of a node that the platform has; 0 if they are not known."""
        gpus = preset_of(self.system).gpus_per_node if self.system else 0
        return min(gpus, self.node_npus or gpus)

    def layout(self, ranks: Ranks) -> Layout:
        """Returns the nodes of a group.

        Raises:
            AlgorithmError: The ranks do not fill nodes, or the nodes are not known.
        """
        if not self.system:
            problem = f"the graphs of {self.title} on this platform are not known"
            raise AlgorithmError(problem, kind="wrong_ranks")
        gpus, group = self.ranks_per_node, _group(ranks)
        if self.node_npus > gpus and max(group) >= self.node_npus:
            problem = f"nodes of the platform have {self.node_npus} GPUs, those of {self.system} "
            raise AlgorithmError(f"{problem}{gpus}", kind="wrong_ranks")
        widths = Counter(rank // gpus for rank in group)
        if len(set(widths.values())) > 1:
            problem = f"{len(group):,} ranks do not fill nodes of {gpus} GPUs equally"
            hint = _equal_nodes(len(group), len(widths))
            raise AlgorithmError(
                problem, kind="wrong_ranks", fields={"ranks": len(group)}, hint=hint
            )
        pairs = not preset_of(self.system).nvswitch
        return Layout(next(iter(widths.values())), len(widths), pairs)

    def note(self, ranks: Ranks) -> str:
        """Returns that the graphs of an incomplete node are inferred; empty for complete nodes."""
        layout, preset = self.layout(ranks), preset_of(self.system)
        part, text = preset.part(layout.width), f"inferred: the graphs of {self.title}"
        complete = preset.one_node, preset.several_nodes
        if layout.width in {preset.gpus_per_node, *preset.parts}:
            return ""
        text += f" for {layout.width} GPU{'s' if layout.width > 1 else ''} of a node"
        if part is not None:
            least = max(each for each in preset.parts if each <= layout.width)
            is_complete = (part.one_node, part.several_nodes) == complete
            return "" if is_complete else f"{text} are those for {least}"
        if layout.nodes == 1 and not layout.pairs:
            return f"{text} are those of the complete node"
        share = "NVLinks" if layout.nodes == 1 else "network adapters"
        return f"{text} are those of the complete node, with the channels of the used {share}"

    def on(self, layout: Layout) -> NcclSystem:
        """Returns NCCL's view of a communicator."""
        return partial_system(self.system, layout.nodes, layout.width)

    def candidates(self, collective: str, ranks: Ranks, size: int) -> list[Candidate]:
        """Returns the candidates of NCCL.

        Raises:
            AlgorithmError: NCCL does not have the collective, or the nodes are not known.
        """
        if collective not in {**COLLECTIVES, **P2P_COLLECTIVES}:
            problem = f"{self.name.upper()} has no {collective}"
            hint = "PyTorch's is an all_reduce of 4 B" if collective == "barrier" else None
            raise AlgorithmError(problem, kind="wrong_collective", hint=hint)
        return candidates(self.on(self.layout(ranks)), collective, max(1, size), self.version)

    def default(self, collective: str, ranks: Ranks, size: int) -> Prediction:
        """Returns the choice of NCCL for a size in bytes, and the time that it predicts.

        A group of one rank takes no time. A barrier is an all_reduce of 4 B, as in PyTorch.

        Raises:
            AlgorithmError: NCCL does not have the collective, or the nodes are not known.
        """
        return self.predict(self.name, collective, ranks, size)

    def predict(self, notation: str, collective: str, ranks: Ranks, size: int) -> Prediction:
        """Returns the choice of NCCL among the algorithms of `nccl`, `nccl:ALGORITHM` and so on.

        Raises:
            AlgorithmError: As :meth:`default`, or NCCL does not consider the algorithm.
        """
        if len(_group(ranks)) == 1:
            return Prediction("none", "", 0, 0)
        if collective == "barrier":
            collective, size = "all_reduce", 4
        return _prediction(self._row(notation, collective, ranks, size))

    def _row(self, notation: str, collective: str, ranks: Ranks, size: int) -> Candidate:
        """Returns the candidate that NCCL chooses among those of a notation."""
        algorithm, protocol = _read(notation, self.name)
        rows = [
            row
            for row in self.candidates(collective, ranks, size)
            if algorithm in {"", row.algorithm} and protocol in {"", row.protocol}
        ]
        if not any(row.considered for row in rows):
            # The last protocol is Simple, the only one of most algorithms.
            refused = next((row.refusal for row in reversed(rows) if row.refusal), "")
            if refused and rows[0].algorithm == P2P:
                problem = f"no prediction of {self.name.upper()} for {collective}: {refused}"
                raise AlgorithmError(problem, hint=simulated(collective))
            why = refused or f"it does not perform {collective}"
            names = ", ".join(self.notations(collective, ranks))
            hint = f"it considers {names}" if names else None
            problem = f"{self.name.upper()} does not consider {notation}: {why}"
            raise AlgorithmError(problem, hint=hint)
        return _best(rows, collective)

    def notations(self, collective: str, ranks: Ranks) -> list[str]:
        """Returns the notations of the algorithms that NCCL considers; none for a barrier.

        Raises:
            AlgorithmError: NCCL does not have the collective, or the nodes are not known.
        """
        if collective == "barrier":
            return []
        rows = self.candidates(collective, ranks, 1 << 20)
        names = {row.algorithm for row in rows if row.considered}
        return [f"{self.name}:{word}" for word, name in WORDS.items() if name in names]

    def reason(self, predicted: Prediction, ranks: Ranks, part: str) -> str:
        """Returns what NCCL counts in a part and links do not; empty if nothing.

        It is half of a tree, a part of the NVLinks, or the factors and constants of its tables.
        """
        of_latency, of_rate = predicted.corrections
        if part != "transfer":
            return of_latency if part == "latency" else ""
        found = (self._rate_reason(predicted.algorithm, ranks), of_rate)
        return ". ".join(filter(None, found))

    def notation(self, row: Candidate) -> str:
        """Returns the notation of a candidate, such as `nccl:tree,ll128`."""
        word = next(word for word, name in WORDS.items() if name == row.algorithm)
        return f"{self.name}:{word},{row.protocol.lower()}"

    def _rate_reason(self, algorithm: str, ranks: Ranks) -> str:
        layout = self.layout(ranks)
        if algorithm == "Tree" and layout.nodes == 2:
            return (
                f"{self.name.upper()} halves the rate of trees on any number of nodes, but the "
                "adapters of two nodes carry each byte once per direction; no measurement here "
                "decides"
            )
        found = self.on(layout)
        graph = found.graph("nvls")
        used = graph.channels * graph.intra
        if algorithm not in _IN_SWITCHES or used > _MOST_OF_NVLINK * found.gpu_rate:
            return ""
        return (
            f"NCCL's search starts with the rate of a network adapter: {graph.channels} channels "
            f"of {graph.intra:g} GB/s, of the {found.gpu_rate:g} GB/s of a GPU's NVLinks"
        )

    def _explanation(self, collective: str, layout: Layout, size: int) -> str:
        """Returns the command that prints the predictions of the library's own model."""
        is_complete = layout.width == preset_of(self.system).gpus_per_node
        options = (
            f"--system {self.system}",
            f"-c {collective}",
            f"--nodes {layout.nodes}",
            "" if is_complete else f"--gpus-per-node {layout.width}",
            f"-s {str(Size(bytes=size)).replace(' ', '')}",
            f"--nccl {self.version}",
        )
        command = " ".join(filter(None, ("tutti nccl explain", *options)))
        return f"`{command}` predicts its time"

    def schedule(
        self, notation: str, collective: str, ranks: Ranks, size: int, root: int = 0
    ) -> LibrarySchedule:
        """Returns the schedule of `nccl`, `nccl:ALGORITHM` or `nccl:ALGORITHM,PROTOCOL`.

        Raises:
            AlgorithmError: The notation is invalid, NCCL does not consider the algorithm, or tutti
                has no schedule for it.
        """
        row, layout = self._row(notation, collective, ranks, size), self.layout(ranks)
        layout = layout._replace(rings=self.on(layout).graph("ring").channels)
        try:
            known = row.algorithm, row.protocol, collective, layout
            laid_out = schedule_of(*known, size=size, channels=row.channels, root=root)
        except AlgorithmError as error:
            if "ranks" in error.fields or error.kind not in {"wrong_ranks", "wrong_collective"}:
                raise
            # No rank count helps, but the model of the library has the time.
            is_tree = row.algorithm == "Tree" and error.kind == "wrong_ranks"
            ring = f"`{self.name}:ring`, which has a schedule"
            other = ring if is_tree and has_rings(layout) else "another algorithm"
            hint = f"{self._explanation(collective, layout, size)}, or name {other}"
            raise AlgorithmError(error.problem, kind=error.kind, hint=hint) from None
        in_switches = row.algorithm in _IN_SWITCHES
        count = concurrent_channels(row.algorithm, collective, layout, laid_out)
        is_relayed = collective == "scatter" and not isinstance(laid_out, str)
        is_in_turn = is_relayed or collective in CHAINED
        return LibrarySchedule(
            label=self.notation(row),
            schedule=laid_out,
            model=f"{self.name}_nvls" if in_switches else f"{self.name}_{row.protocol.lower()}",
            launch_ps=round(row.latency * _PS) if in_switches else None,
            links=_links(row.algorithm, layout),
            predicted=_prediction(row),
            interval=_interval(laid_out, size, count) if is_in_turn else None,
            concurrent=count,
            hops=_relayed(row) if is_relayed else self._hops(row, collective, layout),
        )

    def _hops(self, row: Candidate, collective: str, layout: Layout) -> Hops | None:
        """Returns the messages on the longest path of a chain, or of a ring on several nodes.

        RCCL's table ranks algorithms: its latency of a step of a ring is not that of messages.
        """
        ranks, nodes = layout.width * layout.nodes, layout.nodes
        is_chain = collective in CHAINED
        if row.algorithm != "Ring" or (not is_chain and (nodes == 1 or self.name == RCCL)):
            return None
        both = 2 if collective == "all_reduce" else 1
        count, between = both * (ranks - 1), both * (nodes - 1)
        if is_chain and nodes > 1:
            between = nodes  # the chain of most channels returns to the node of the root
        rate = 1e9 * row.bandwidth * (1 if is_chain else count / ranks)
        return Hops(round(row.latency * _PS), count, between, rate)


def _relayed(row: Candidate) -> Hops:
    """Returns the two messages of a block that changes rails; the ports limit the rate."""
    return Hops(round(row.latency * _PS), count=2, between=1, rate=1e9 * row.bandwidth)


def _equal_nodes(ranks: int, nodes: int) -> str | None:
    """Returns how to use equal parts of nodes; None if the ranks do not divide."""
    if ranks % nodes:
        return None
    build = f"rail_optimized:npus={ranks // nodes},hosts={nodes}"
    return f"--set platform.topology.build={build} has {nodes} equal nodes"


def _links(algorithm: str, layout: Layout) -> tuple[int, int]:
    """Returns the messages of NVLSTree on the longest path, within nodes and between them.

    A sum rises to the root of a node, up and down the tree, and reaches all GPUs of a node.
    """
    return (2, 2 * (layout.nodes.bit_length() - 1)) if algorithm == "NVLSTree" else (0, 0)


def _interval(laid_out: str | Schedule, size: int, channels: int) -> int:
    """Returns the bytes of other channels between two messages of a channel."""
    return 0 if isinstance(laid_out, str) else (channels - 1) * size // laid_out.chunks


def _group(ranks: Ranks) -> Sequence[int]:
    return range(ranks) if isinstance(ranks, int) else ranks


def _best(rows: list[Candidate], collective: str) -> Candidate:
    try:
        return best(rows, collective)
    except TuningError as error:
        raise AlgorithmError(error.problem) from None


def _prediction(row: Candidate) -> Prediction:
    latency, time = round(row.latency * _PS), round(row.time * _PS)
    return Prediction(row.algorithm, row.protocol, latency, time, row.corrections)


def _read(notation: str, name: str) -> tuple[str, str]:
    """Returns the algorithm and the protocol of a notation in NCCL's names; empty without one.

    Raises:
        AlgorithmError: One of them is unknown, or the notation is that of another library.
    """
    own, _, argument = (part.strip() for part in notation.partition(":"))
    if own != name:
        problem = f"`{own}` is not the library of the platform, which is `{name}`"
        hint = f"use {':'.join(filter(None, (name, argument)))}"
        raise AlgorithmError(problem, kind="argument", hint=hint)
    word, _, protocol = (part.strip() for part in argument.partition(","))
    protocols = {each.lower(): each for each in PROTOCOLS}
    for text, known in ((word, WORDS), (protocol, protocols)):
        if text and text not in known:
            raise AlgorithmError(
                f"`{text}` does not fit {name}: expected one of {', '.join(known)}",
                kind="argument",
                hint=did_you_mean(text, known),
            )
    return WORDS.get(word, ""), protocols.get(protocol, "")
