"""NCCL's algorithms as schedules with all channels, so that all network interfaces are used.

Rings and trees are rotated, one channel per GPU of a node. NVLS and NVLSTree multicast and reduce
in the NVSwitches. The numbers of chunks are those of calcCollChunking in NCCL's src/enqueue.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tutti.nccl.chains import chains
from tutti.nccl.p2p import P2P
from tutti.nccl.relayed import ops_of, relayed_all_to_all, relayed_scatter
from tutti.nccl.rings import paired, rings, rotated
from tutti.nccl.sharp import SHARP, sharp
from tutti.schedules.builder import ScheduleBuilder
from tutti.schedules.errors import AlgorithmError
from tutti.schedules.ir import schedule

if TYPE_CHECKING:
    from tutti import _core
    from tutti.schedules.builder import RankProgram
    from tutti.schedules.ir import Schedule

KIB = 1 << 10
_TREE_CHUNK = {"LL": 32 * KIB, "LL128": 576_000, "Simple": 512 * KIB}
"""Bytes of a chunk: an eighth of the buffer of 512 KiB, 4.69 MiB and 4 MiB, less flags. Source:
NCCL 2.28, src/init.cc and src/include/device.h."""
_SEGMENT = 4 * KIB
"""The smallest segment of NVLS. A thread block loads a sum and stores it to all GPUs, so that
both directions overlap within a chunk (NCCL 2.28, src/device/all_reduce.h; inferred)."""
_MOST_SEGMENTS = 32
_PIECE = 64 * KIB
"""The smallest piece of NVLSTree. NCCL's chunks are 32 to 128 KiB."""
_MOST_TREE_PIECES = 64
_BEAT = KIB * KIB
"""The bytes of all shards in a step of NVLSTree that take as long as its network's latency."""
_MOST_OPS_OF_BEATS = 450_000
"""Most ops of NVLSTree whose pieces are smaller than `_PIECE`: more take long to simulate."""
_NVLS_CHUNK = 128 * KIB
_COLLNET_CHUNK = 512 * KIB
"""The smallest pieces with SHARP. Source: NCCL 2.28, NCCL_NVLS_CHUNKSIZE, and chunks of Simple."""
_MOST_SHARP_PIECES = 64
_LINE = 128
"""The smallest piece of a chain: a line of LL128 (NCCL 2.28, src/include/device.h)."""
_PIECES_PER_RANK = 64
"""Pieces of a chain per rank that forwards: filling the chain takes 1.6 % of the transfer."""
_MOST_CHAIN_MESSAGES = 600_000
"""More take longer than some seconds to simulate."""
_MESSAGE_PIECE = 128 * KIB
"""The smallest piece of a relayed message. Source: NCCL 2.28, NCCL_P2P_NET_CHUNKSIZE."""
_MOST_MESSAGE_PIECES = 8
_MOST_SCATTERED_PIECES = 64
"""Those of a scatter, whose last piece is forwarded alone."""
_WORD = 4
"""Bytes that a piece of a relayed message is a multiple of: float32."""
_MOST_OPS_OF_PIECES = 150_000
"""Most ops of messages in several pieces: more take long to simulate."""
CHAINED = ("broadcast", "reduce")
"""The collectives whose ring is a chain."""
_MOST_PIECES = 256
"""Most pieces of a tree: more take longer to simulate, and change the time by less than 2 %."""
_MOST_ROTATED = 4
"""Most paired GPUs of a node whose links carry rotated rings between nodes."""
_SHARDED = ("all_reduce", "all_gather", "reduce_scatter")
_MOST_OPS = 2_000_000
"""Most ops of a schedule that is built op by op."""


class Layout(NamedTuple):
    """The ranks of a communicator.

    Attributes:
        width: The ranks per node, which are consecutive.
        nodes: The number of nodes.
        pairs: NVLink connects each two GPUs of a node, without an NVSwitch.
        rings: The rings that NCCL's search found; 0 for one per GPU of a node.
    """

    width: int
    nodes: int
    pairs: bool = False
    rings: int = 0

    @property
    def rotated(self) -> str:
        """The argument for one channel per GPU of a node; empty if a channel suffices."""
        both = self.width > 1 and self.nodes > 1
        return f"node={self.width},channels={self.width}" if both else ""


def schedule_of(
    algorithm: str,
    protocol: str,
    collective: str,
    layout: Layout,
    *,
    size: int,
    channels: int,
    root: int = 0,
) -> str | Schedule:
    """Returns the schedule of an algorithm: a notation, or a schedule that none generates.

    Args:
        algorithm: NCCL's name of the algorithm.
        protocol: NCCL's name of the protocol.
        collective: The collective.
        layout: The ranks.
        size: The size in bytes.
        channels: The number of channels that NCCL uses.
        root: The root of a broadcast or reduce.

    Raises:
        AlgorithmError: tutti has no such schedule.
    """
    if algorithm == P2P:
        # Short messages take as long as their latency: routes that cross rails do not matter.
        return "direct" if protocol == "LL" else _sends_and_receives(collective, layout, size, root)
    if algorithm in {"NVLSTree", *SHARP}:
        return _by_switches(algorithm, collective, layout, size)
    if algorithm == "Tree":
        return _tree(layout, _tree_pieces(protocol, layout, size, channels))
    if algorithm == "Ring" and collective in CHAINED:
        return _chains(collective, layout, size, root)
    if algorithm == "Ring" and collective in _SHARDED and not _is_notated(layout):
        return rings(collective, paired(layout.width, layout.nodes))
    ring = f"ring:{layout.rotated}" if layout.rotated else "ring"
    return "pat" if algorithm == "PAT" else ring


def _tree(layout: Layout, pieces: int) -> str:
    if layout.nodes > 1 and not _rotates(layout):
        problem = (
            f"tutti has no schedule for trees through {layout.width} GPUs without switches: "
            "each channel has another chain through a node, over other links"
        )
        raise AlgorithmError(problem, kind="wrong_ranks")
    return ",".join(filter(None, ("double_binary_tree:nccl", layout.rotated, str(pieces))))


def _is_notated(layout: Layout) -> bool:
    """Returns whether the notation `ring` has the rings of NCCL."""
    return _rotates(layout) if layout.nodes > 1 else not layout.pairs


def has_rings(layout: Layout) -> bool:
    """Returns whether rings through GPUs have a schedule."""
    try:
        _orders(layout)
    except AlgorithmError:
        return False
    return True


def _orders(layout: Layout) -> list[tuple[int, ...]]:
    """Returns the rings of channels, in which each link or network adapter has an equal share."""
    if layout.nodes == 1 and not layout.pairs:
        return [tuple(range(layout.width))]
    if _rotates(layout):
        channels = min(layout.width, layout.rings or layout.width)
        return rotated(layout.width, layout.nodes, channels)
    return paired(layout.width, layout.nodes)


def _rotates(layout: Layout) -> bool:
    """Returns whether rings between nodes visit the GPUs of a node in rotated order."""
    return layout.nodes > 1 and (not layout.pairs or layout.width <= _MOST_ROTATED)


def concurrent_channels(
    algorithm: str, collective: str, layout: Layout, laid_out: str | Schedule
) -> int:
    """Returns the number of channels of a schedule that do not wait for each other.

    Each is a thread block in NCCL, with separate connections. In a ring, the thread block waits
    for one message at a time. In a tree, it has threads for both directions, which the steps of the
    schedule approximate without channels.
    """
    if algorithm != "Ring" or collective not in {*_SHARDED, *CHAINED}:
        return 1
    if collective in CHAINED:
        return len(_orders(layout))
    if isinstance(laid_out, str):
        return layout.width if layout.rotated else 1
    return laid_out.chunks // laid_out.ranks


def _sends_and_receives(collective: str, layout: Layout, size: int, root: int) -> str | Schedule:
    """Returns all messages at once; with NVSwitches, they change rails in the sender's node.

    Those of a gather meet at the network adapter of the root, whatever their rails are.
    """
    width, nodes = layout.width, layout.nodes
    is_direct = collective == "gather" or width == 1 or nodes == 1 or layout.pairs
    is_scatter = collective == "scatter"
    ops = 4 * width * nodes if is_scatter else ops_of(width, nodes)
    if is_direct or ops > _MOST_OPS:
        return "direct"
    message = size // (width * nodes)
    most = _MOST_SCATTERED_PIECES if is_scatter else _MOST_MESSAGE_PIECES
    most = min(most, _MOST_OPS_OF_PIECES // ops)
    pieces = 1 << (max(1, min(most, message // _MESSAGE_PIECE)).bit_length() - 1)
    # Messages of nccl-tests are multiples of 16 B; those of traces may divide into fewer pieces.
    while pieces > 1 and message % (pieces * _WORD):
        pieces //= 2
    if is_scatter:
        return relayed_scatter(width, nodes, pieces, root)
    return relayed_all_to_all(width, nodes, pieces)


def _by_switches(algorithm: str, collective: str, layout: Layout, size: int) -> str | Schedule:
    """Returns the schedule of an algorithm whose switches multicast and reduce."""
    if algorithm == "NVLS" and layout.nodes == 1:
        return _nvls(collective, layout, size)
    if algorithm == "NVLSTree":
        return nvls_tree(layout, _nvls_tree_pieces(layout, size))
    if collective != "all_reduce":
        problem = f"tutti has no schedule for {collective} with {algorithm} between nodes"
        raise AlgorithmError(problem, kind="wrong_collective")
    return sharp(algorithm, layout, _sharp_pieces(algorithm, layout, size))


def _tree_pieces(protocol: str, layout: Layout, size: int, channels: int) -> int:
    """Returns the chunks of a tree, each of which has a pair per channel."""
    chunk, shares = _TREE_CHUNK[protocol], max(1, size // channels)
    if protocol == "LL128":
        steps = 1 + layout.nodes.bit_length() - 1 + 0.1 * layout.width
        for most, least in ((64, 128 * KIB), (16, 32 * KIB)):
            while shares // chunk < steps * most / layout.width and chunk > least:
                chunk //= 2
    return max(1, min(_MOST_PIECES, shares // chunk))


def _chains(collective: str, layout: Layout, size: int, root: int) -> str | Schedule:
    """Returns the chains of a broadcast or reduce, with so many pieces that they fill in no time.

    A rank forwards chunks of Simple, 512 KiB per channel, when they are complete. NCCL's model and
    nccl-tests have no time for it: the root sends the next broadcast while others forward.
    """
    orders = _orders(layout)
    count, ranks = len(orders), layout.width * layout.nodes
    most = min(_PIECES_PER_RANK * (ranks - 2), _MOST_CHAIN_MESSAGES // (count * (ranks - 1)))
    pieces = max(1, min(most, size // (count * _LINE)))
    if count == 1:
        return f"chain:segments={pieces}"
    return chains(collective, tuple(orders), pieces, root)


def _nvls(collective: str, layout: Layout, size: int) -> str:
    segments = max(1, min(_MOST_SEGMENTS, size // (layout.width * _SEGMENT)))
    roots = "all," if collective == "all_reduce" else ""
    return f"in_network:{roots}segments={segments}"


def _sharp_pieces(algorithm: str, layout: Layout, size: int) -> int:
    least = _NVLS_CHUNK if algorithm == "NVLS" else _COLLNET_CHUNK
    return max(1, min(_MOST_SHARP_PIECES, size // (layout.width * least)))


def _nvls_tree_pieces(layout: Layout, size: int) -> int:
    """Returns the pieces of a shard in a tree.

    The first piece rises alone, and the last descends alone: few pieces take longer than NCCL's
    model, which has both directions at once.
    """
    pieces = size // (2 * layout.width * _PIECE)
    beats = min(size // _BEAT, _MOST_OPS_OF_BEATS // _ops_of_step(layout))
    return max(1, min(_MOST_TREE_PIECES, max(pieces, beats)))


def _ops_of_step(layout: Layout) -> int:
    """Returns about the ops of a step of NVLSTree."""
    return layout.nodes * layout.width * (2 * layout.width + 2)


def nvls_tree(layout: Layout, pieces: int) -> Schedule:
    """Returns NVLSTree: each GPU is the root of its shard in its node, in a tree of nodes.

    The NVSwitch of a node reduces a piece to its root. The roots of a shard reduce it up a double
    binary tree of nodes and send the sum down. Each root multicasts the sum in its node. All pieces
    are in flight at the same time.

    Args:
        layout: The ranks, on two nodes or more.
        pieces: The pieces of a shard in each of the two trees.

    Raises:
        AlgorithmError: The schedule has too many ops.
    """
    tree = _Tree.of(layout.nodes, pieces)
    ops = tree.steps * _ops_of_step(layout)
    if ops > _MOST_OPS:
        problem = f"NVLSTree on {layout.nodes} nodes has about {ops:,} ops"
        raise AlgorithmError(f"{problem}: expected at most {_MOST_OPS:,}", kind="too_many_ranks")
    width, ranks = layout.width, layout.width * layout.nodes
    builder = ScheduleBuilder(
        "all_reduce", ranks=ranks, chunks=2 * pieces * width, name=f"nvls_tree:{width},{pieces}"
    )
    for rank in range(ranks):
        member = _Member(builder.rank(rank), rank, layout, tree)
        for step in range(tree.steps):
            member.add(step)
    return builder.build()


_Ops = list[dict[int, list["_core.Op"]]]
"""Ops by node and step."""


class _Tree(NamedTuple):
    """The double binary tree of the nodes.

    A message of the tree is received in the step after the one that sends it, which hides the
    latency of the network. A piece therefore takes two steps per level.

    Attributes:
        pieces: The pieces of a shard in each tree.
        sends: The sends of each node by step.
        receives: Its receives and reductions by step.
        complete: The chunks whose sum each node multicasts, by step.
        steps: The number of steps of NVLSTree.
    """

    pieces: int
    sends: _Ops
    receives: _Ops
    complete: list[dict[int, list[int]]]
    steps: int

    @classmethod
    def of(cls, nodes: int, pieces: int) -> _Tree:
        laid_out = schedule(f"double_binary_tree:nccl,{pieces}", ranks=nodes)
        sends: _Ops = [{} for _ in range(nodes)]
        receives: _Ops = [{} for _ in range(nodes)]
        complete: list[dict[int, list[int]]] = [{} for _ in range(nodes)]
        for node in range(nodes):
            last: dict[int, int] = {}
            for index in range(laid_out.steps(node)):
                beat = int(laid_out.step_name(node, index).split()[1])
                for op in laid_out.ops(node, index):
                    assert op.chunks is not None  # noqa: S101 - messages and reductions have chunks
                    piece = op.chunks[0] % pieces
                    step = 1 + piece + 2 * (beat - piece)
                    if op.kind == "send":
                        sends[node].setdefault(step, []).append(op)
                        continue
                    receives[node].setdefault(step + 1, []).append(op)
                    last[op.chunks[0]] = step + 2
            for chunk, step in last.items():
                complete[node].setdefault(step, []).append(chunk)
        steps = 1 + max(max(one) for one in complete)
        return cls(pieces, sends, receives, complete, steps)


class _Member:
    """A rank of NVLSTree. Slots: its data, the contributions of other GPUs, those of the tree."""

    def __init__(self, program: RankProgram, rank: int, layout: Layout, tree: _Tree) -> None:
        self._program = program
        self._node, self._index = divmod(rank, layout.width)
        self._width = layout.width
        self._tree = tree

    def add(self, step: int) -> None:
        """Adds a step: multicasts, messages of the tree, contributions, and their receives."""
        tree, program = self._tree, self._program
        down = tree.complete[self._node].get(step, [])
        program.step(f"step {step}")
        for chunk in down:
            program.multicast(self._others, chunk=self._chunk(self._index, chunk))
        for op in tree.sends[self._node].get(step, []):
            program.send(self._rank_of(op.peer), chunk=self._place(op))
        rising = (step, tree.pieces + step) if step < tree.pieces else ()
        for chunk in rising:
            for index in self._indices:
                program.contribute(self._at(index), chunk=self._chunk(index, chunk))
        for chunk in down:
            for index in self._indices:
                program.recv(self._at(index), chunk=self._chunk(index, chunk))
        received = tree.receives[self._node].get(step, [])
        for op in received:
            if op.kind == "recv":
                slot = op.slot + self._width - 1 if op.slot else 0
                program.recv(self._rank_of(op.peer), chunk=self._place(op), slot=slot)
        for chunk in rising:
            program.combine(0, self._operands, chunk=self._chunk(self._index, chunk))
        for op in received:
            if op.kind == "reduce":
                slots = [one + self._width - 1 if one else 0 for one in op.operands or ()]
                program.reduce(0, slots, chunk=self._place(op))

    @property
    def _indices(self) -> list[int]:
        """The positions of the other GPUs of the node, such that no two start with the same."""
        return [(self._index + by) % self._width for by in range(1, self._width)]

    @property
    def _others(self) -> list[int]:
        return [self._at(index) for index in self._indices]

    @property
    def _operands(self) -> list[tuple[int, int | None]]:
        """The slots of the contributions in order of ranks, each with its rank."""
        found: list[tuple[int, int | None]] = []
        for index in range(self._width):
            if index == self._index:
                found.append((0, None))
            else:
                found.append((index + (index < self._index), self._at(index)))
        return found

    def _at(self, index: int) -> int:
        return self._node * self._width + index

    def _rank_of(self, node: int | None) -> int:
        assert node is not None  # noqa: S101 - messages have a peer
        return node * self._width + self._index

    def _chunk(self, index: int, chunk: int) -> int:
        """Returns the chunk of a shard; the pieces of both trees alternate."""
        half, piece = divmod(chunk, self._tree.pieces)
        return 2 * (index * self._tree.pieces + piece) + half

    def _place(self, op: _core.Op) -> int:
        assert op.chunks is not None  # noqa: S101 - messages and reductions have chunks
        return self._chunk(self._index, op.chunks[0])
