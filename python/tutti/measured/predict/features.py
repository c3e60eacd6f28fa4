"""Measurements as arrays: the stages of each row, and what rows have in common."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tutti.measured.predict.catalogue import Execution, execution, is_default
from tutti.measured.predict.forms import replaced
from tutti.measured.predict.sharing import crossing, node_load
from tutti.measured.predict.torus import link_load, mean_hops

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl
    from numpy.typing import NDArray

    from tutti.measured.predict.stages import Stage

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]
    Strings = NDArray[np.str_]

_SHORT_ON_NODE, _LONG_ON_NODE, _SHORT_BYTES = 0.2, 0.8, 65536.0
"""Time of a message between ranks of a node, relative to one between nodes: short messages save the
adapter's latency, long ones are copied at about its rate. Assumed; on Leonardo a step of a ring on
64 nodes takes 1.55 us with one rank per node, 0.53 us with 4 and 0.43 us with 32."""

_NODES_OF_LINKS = 18.0
"""Nodes whose ranks fill the links between two groups at the rate of one interface: 450 GB/s on
Leonardo, 500 GB/s on LUMI (docs/machines/facts.md)."""

GROUPS = "rank_groups"
"""Optional column of rows: a byte per rank, the group of the network that its node is in."""
_SEVERAL = 8
"""Ranks per node up to which cores do not share much: beyond, memory and adapters are the limit."""

LABELS = (
    "system",
    "environment",
    "stack",
    "collective",
    "algorithm",
    "family",
    "job",
    "library",
    "placement",
    "parity",
)
"""What rows can have in common."""
_BY_STAGE = ("count", "messages", "size", "load", "crossing", "pair", "hops", "port")
_BY_ROW = ("folded", "memory", "ports", "log_ranks", "log_nodes", "log_size", "log_message")


@dataclass(frozen=True)
class Features:
    """Rows that the structural model predicts, as arrays.

    Attributes:
        row: by stage, its row.
        count: by stage, how many follow each other.
        messages: by stage, concurrent messages of a rank.
        size: by stage, bytes of a message.
        load: by stage, messages on its most loaded link.
        crossing: by stage, share of its messages between groups of the network.
        pair: by stage, further messages that the links between two groups carry, by their load.
        hops: by stage, hops of a message on a torus beyond the first.
        port: by stage, bytes that pass one network interface of a rank sequentially.
        folded: by row, bytes reduced or copied.
        memory: by row, bytes that the other ranks of a node move through memory meanwhile.
        ports: by row, additional network interfaces over all stages.
        log_ranks: by row, binary logarithm of the number of ranks.
        log_nodes: by row, binary logarithm of the number of nodes.
        log_size: by row, natural logarithm of the vector in bytes.
        log_message: by row, mean natural logarithm of the messages' bytes.
        labels: by name, what rows have in common.
        index: by row, its index in the frame.
    """

    row: Integers
    count: Floats
    messages: Floats
    size: Floats
    load: Floats
    crossing: Floats
    pair: Floats
    hops: Floats
    port: Floats
    folded: Floats
    memory: Floats
    ports: Floats
    log_ranks: Floats
    log_nodes: Floats
    log_size: Floats
    log_message: Floats
    labels: dict[str, Strings] = field(repr=False)
    index: Integers = field(repr=False)

    def __len__(self) -> int:
        return len(self.log_size)

    def take(self, rows: Integers) -> Features:
        """Returns some rows, in the given order."""
        position = np.full(len(self), -1)
        position[rows] = np.arange(len(rows))
        kept = position[self.row] >= 0
        return Features(
            row=position[self.row][kept],
            labels={name: values[rows] for name, values in self.labels.items()},
            index=self.index[rows],
            **{name: getattr(self, name)[kept] for name in _BY_STAGE},
            **{name: getattr(self, name)[rows] for name in _BY_ROW},
        )

    def where(self, label: str, value: str) -> Integers:
        """Returns the rows with a label."""
        return np.flatnonzero(self.labels[label] == value)


def sides_of(shape: str | None, nodes: int) -> tuple[int, ...]:
    """Returns the sides of the torus that a job requested; one side if the network is another.

    Args:
        shape: the sides as text, such as `4x4x4`; None for other networks.
        nodes: the number of nodes.
    """
    return (
        tuple(int(side) for side in (shape or "").split("x"))
        if shape and "x" in shape
        else (nodes,)
    )


def features(frame: pl.DataFrame) -> Features:
    """Returns the features of measurements, or of questions.

    Rows of unknown algorithms, of a library's own choice, and of algorithms that tutti cannot
    describe on that network are left out.

    Args:
        frame: rows with the columns of :data:`tutti.formats.measurements.MEASUREMENTS`; times may
            be absent. :data:`GROUPS` is optional.
    """
    parts = _Parts()
    for index, row in enumerate(frame.iter_rows(named=True)):
        known = _execution(row)
        if known is not None:
            parts.add(index, row, known)
    return parts.features()


def _execution(row: dict[str, Any]) -> Execution | None:
    name = row["library_algorithm"]
    if is_default(name) or not row["ranks"] or row["ranks"] < 2 or not row["size_bytes"]:
        return None
    return execution(row["collective"], name)


@dataclass
class _Parts:
    stages: list[tuple[float, ...]] = field(default_factory=list)
    rows: list[tuple[float, ...]] = field(default_factory=list)
    labels: list[tuple[str, ...]] = field(default_factory=list)

    def add(self, index: int, row: dict[str, Any], known: Execution) -> None:
        """Adds a row, unless its algorithm has no stages there."""
        nodes = row["nodes"] or row["ranks"]
        sides = sides_of(row["shape"], nodes)
        size = float(row["size_bytes"])
        stages = known.stages(row["ranks"], sides, size)
        if stages is None:
            return
        per_node = row["ranks_per_node"] or math.ceil(row["ranks"] / nodes)
        position = len(self.rows)
        shared, on_node = _shared_stages(row, stages, sides, per_node)
        self.stages += [(position, *one) for one in shared]
        folded = size * sum(one.count * one.folded for one in stages)
        memory = (per_node - 1) * (folded + on_node)
        ports = sum(one.count * one.messages * (one.ports - 1) for one in stages)
        message = _mean_log(shared)
        counts = (math.log2(row["ranks"]), math.log2(nodes))
        self.rows.append((folded, memory, ports, *counts, math.log(size), message, float(index)))
        short = replaced(known.algorithm.torus_form, sides)
        self.labels.append(_labels(row, known, per_node, " on short sides" if short else ""))

    def features(self) -> Features:
        """Returns the arrays."""
        stages = np.array(self.stages, dtype=np.float64).reshape(-1, 1 + len(_BY_STAGE))
        rows = np.array(self.rows, dtype=np.float64).reshape(-1, 1 + len(_BY_ROW))
        labels = np.array(self.labels, dtype=np.str_).reshape(-1, len(LABELS))
        return Features(
            row=stages[:, 0].astype(np.int64),
            labels={name: labels[:, column] for column, name in enumerate(LABELS)},
            index=rows[:, -1].astype(np.int64),
            **{name: stages[:, 1 + column] for column, name in enumerate(_BY_STAGE)},
            **{name: rows[:, column] for column, name in enumerate(_BY_ROW)},
        )


def _groups(row: dict[str, Any], sides: Sequence[int]) -> bytes | float:
    """Returns the group of each rank; if unknown, the share of messages between groups.

    Without the column, no message crosses groups, as far as the model is concerned: the latency is
    that of the measured jobs. Where other jobs state their groups, an unknown job has many.
    """
    if GROUPS not in row or len(sides) > 1:
        return 0.0
    groups = row[GROUPS]
    return groups if groups is not None and len(groups) == row["ranks"] else 1.0


def _shared_stages(
    row: dict[str, Any], stages: Sequence[Stage], sides: Sequence[int], per_node: int
) -> tuple[list[tuple[float, ...]], float]:
    """The numbers of :data:`_BY_STAGE` of each stage, and the bytes that a rank moves on a node."""
    size, groups = float(row["size_bytes"]), _groups(row, sides)
    shared: list[tuple[float, ...]] = []
    on_node = 0.0
    for stage in stages:
        if stage.messages == 0:
            continue
        bytes_sent = max(1.0, stage.fraction * size)
        load = node_load(stage, per_node)
        within = stage.count * (1.0 if load is None else _within_node(stage, per_node))
        count = stage.count - within + within * _shared_memory(bytes_sent)
        across, pair = (groups, 0.0) if isinstance(groups, float) else crossing(stage, groups)
        links = (load or 1.0) * link_load(stage, sides)
        port = stage.messages * bytes_sent if stage.one_port else 0.0
        others = (across, _between_groups(pair / per_node), mean_hops(stage, sides), port)
        shared.append((count, stage.messages, bytes_sent, links, *others))
        on_node += within * stage.messages * bytes_sent
    return shared, on_node


def _between_groups(nodes: float) -> float:
    """The further messages on the links between two groups, of which `nodes` nodes use them.

    Minimal routing would send all over the links of the pair, adaptive routing over all links of
    the group: the load is the geometric mean of both.
    """
    return math.sqrt(max(1.0, nodes / _NODES_OF_LINKS)) - 1


def _within_node(stage: Stage, per_node: int) -> float:
    """The share of the steps of a ring whose message stays on a node."""
    return 1 - 1 / per_node if stage.partners == "neighbour" else 0.0


def _shared_memory(size: float) -> float:
    """Time of a message between ranks of a node, relative to one between nodes."""
    return _SHORT_ON_NODE + (_LONG_ON_NODE - _SHORT_ON_NODE) * size / (size + _SHORT_BYTES)


def _mean_log(stages: list[tuple[float, ...]]) -> float:
    weights = [count * messages for count, messages, *_ in stages]
    logs = [math.log(size + 8) for _, _, size, *_ in stages]
    total = sum(weights)
    return sum(w * x for w, x in zip(weights, logs, strict=True)) / total if total else 0.0


def _labels(row: dict[str, Any], known: Execution, per_node: int, variant: str) -> tuple[str, ...]:
    system = row["system"] or "machine"
    gpu = "gpu" if row["gpu"] else "host"
    several = "one" if per_node == 1 else "several" if per_node <= _SEVERAL else "many"
    stack = f"{_library(row['library'])}/{known.interface}/{several}/{gpu}"
    return (
        system,
        f"{system}/{stack}",
        stack,
        row["collective"],
        row["library_algorithm"] + variant,
        known.name + variant,
        (row["job"] or "").split("/")[0],
        _library(row["library"]),
        f"{per_node}/{gpu}",
        "power of two" if row["ranks"] & (row["ranks"] - 1) == 0 else "other",
    )


def _library(name: str | None) -> str:
    """The MPI library without its version."""
    text = (name or "").lower().replace("_", "").replace(" ", "").replace("/", "-")
    for part, library in (
        ("ompi", "open_mpi"),
        ("openmpi", "open_mpi"),
        ("mpich", "mpich"),
        ("fj", "fujitsu"),
    ):
        if part in text:
            return library
    return text
