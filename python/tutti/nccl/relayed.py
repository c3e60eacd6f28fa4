"""Sends and receives that change rails within the sender's node (PXN).

A message to a GPU of another node goes through NVLink to the GPU of the own node that is on the
rail of the receiver, and from there over its network interface (NCCL 2.12). All interfaces of a
node then carry the same number of bytes, and no message crosses rails in the network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.schedules.builder import ScheduleBuilder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.schedules.builder import RankProgram
    from tutti.schedules.ir import Schedule

_RESULT, _RELAYED = 1, 2
"""Slots: the received blocks, and those that a GPU forwards for others of its node."""


def relayed_all_to_all(width: int, nodes: int, pieces: int) -> Schedule:
    """Returns an all_to_all in which a GPU forwards a piece while it receives the next.

    Args:
        width: The GPUs of a node.
        nodes: The number of nodes, at least 2.
        pieces: The pieces of a message.
    """
    ranks = width * nodes
    builder = ScheduleBuilder(
        "all_to_all",
        ranks=ranks,
        chunks=ranks * pieces,
        name=f"pxn:{width},{pieces}",
        result=_RESULT,
    )
    for rank in range(ranks):
        gpu = _Gpu(builder.rank(rank), rank, width, nodes, pieces)
        for step in range(pieces + 1):
            gpu.add(step)
    return builder.build()


def relayed_scatter(width: int, nodes: int, pieces: int, root: int = 0) -> Schedule:
    """Returns a scatter in which GPUs of the root's node forward blocks on their rails.

    Args:
        width: The GPUs of a node.
        nodes: The number of nodes, at least 2.
        pieces: The pieces of a message.
        root: The root.
    """
    ranks, (home, rail) = width * nodes, divmod(root, width)
    name = f"pxn:{width},{pieces}"
    builder = ScheduleBuilder("scatter", ranks=ranks, chunks=ranks * pieces, root=root, name=name)
    for rank in range(ranks):
        node, index = divmod(rank, width)
        program, on_rail = builder.rank(rank), [of * width + index for of in range(nodes)]
        across = [peer for peer in on_rail if peer // width != home]
        for piece in range(pieces + 1):
            program.step(f"piece {piece}")
            is_last = piece == pieces
            if rank == root and not is_last:
                for by in range(1, width):
                    at = (rail + by) % width
                    for of in range(nodes):
                        chunk = (of * width + at) * pieces + piece
                        program.send(home * width + at, chunk=chunk)
                _forward(program, across, pieces, piece)
            elif node == home and rank != root:
                _forward(program, across if piece else (), pieces, piece - 1)
                for peer in () if is_last else on_rail:
                    program.recv(root, chunk=peer * pieces + piece)
            elif node != home and not is_last:
                program.recv(home * width + index, chunk=rank * pieces + piece)
    return builder.build()


def _forward(program: RankProgram, peers: Sequence[int], pieces: int, piece: int) -> None:
    """Adds the messages of a piece to GPUs of other nodes on the rail."""
    for peer in peers:
        program.send(peer, chunk=peer * pieces + piece)


def ops_of(width: int, nodes: int) -> int:
    """Returns the ops of a piece of :func:`relayed_all_to_all`."""
    within, across = nodes * (width - 1), width * (nodes - 1)
    return 2 * width * nodes * (within + across)


class _Gpu:
    """A rank of an all_to_all. It numbers others by their distance, so that no two start alike."""

    def __init__(
        self, program: RankProgram, rank: int, width: int, nodes: int, pieces: int
    ) -> None:
        self._program, self._width, self._nodes, self._pieces = program, width, nodes, pieces
        self._node, self._index = divmod(rank, width)

    def add(self, piece: int) -> None:
        """Adds the step that sends a piece and forwards the previous one."""
        self._program.step(f"piece {piece}")
        if piece < self._pieces:
            self._within(piece, sends=True)
        self._across(piece, sends=True)
        if piece < self._pieces:
            self._within(piece, sends=False)
        self._across(piece, sends=False)
        if piece == 0:
            own = self._chunks(self._rank(self._node, self._index))
            self._program.copy(0, _RESULT, chunks=own)

    def _within(self, piece: int, *, sends: bool) -> None:
        """Adds messages to or from other GPUs of the node: their own blocks, and relayed ones."""
        for by in range(1, self._width):
            index = (self._index + (by if sends else -by)) % self._width
            peer = self._rank(self._node, index)
            for distance in range(self._nodes):
                node = (self._node + distance) % self._nodes
                if sends:
                    chunk = self._chunk(self._rank(node, index), piece)
                    self._program.send(peer, chunk=chunk)
                elif distance == 0:
                    chunk = self._chunk(peer, piece)
                    self._program.recv(peer, chunk=chunk, slot=_RESULT)
                else:
                    chunk = self._chunk(self._rank(node, index), piece)
                    self._program.recv(peer, chunk=chunk, slot=_RELAYED)

    def _across(self, piece: int, *, sends: bool) -> None:
        """Adds messages on the rail: a piece of the own block, and the previous one of others."""
        for distance in range(1, self._nodes):
            node = (self._node + (distance if sends else -distance)) % self._nodes
            peer = self._rank(node, self._index)
            for by in range(self._width):
                index = (self._index + by) % self._width
                at = piece - (1 if by else 0)
                if not 0 <= at < self._pieces:
                    continue
                if not sends:
                    chunk = self._chunk(self._rank(node, index), at)
                    self._program.recv(peer, chunk=chunk, slot=_RESULT)
                elif by:
                    chunk = self._chunk(self._rank(node, index), at)
                    self._program.send(peer, chunk=chunk, slot=_RELAYED)
                else:
                    self._program.send(peer, chunk=self._chunk(peer, at))

    def _rank(self, node: int, index: int) -> int:
        return node * self._width + index

    def _chunk(self, block: int, piece: int) -> int:
        return block * self._pieces + piece

    def _chunks(self, block: int) -> tuple[int, int]:
        return self._chunk(block, 0), self._chunk(block + 1, 0)
