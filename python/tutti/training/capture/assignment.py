"""The captured role of each rank, and whether ranks of one role do the same."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tutti.training.capture.grid import Grid
from tutti.training.errors import CaptureError
from tutti.view.quantity import format_size, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tutti.training.capture.record import Exchange, Group, Operator, Role

__all__ = ["Assignment", "Totals", "check_messages"]

_APART = 1 << 31
"""The tag of messages that stand for an all-reduce."""
_ALIKE = 0.01
"""The largest difference of FLOPs or bytes of ranks of one role."""


@dataclass(frozen=True)
class Assignment:
    """The captured role of each rank: that of the captured rank with the same digits.

    The digits that count are those in which captured ranks differ from the first one or from the
    ranks with which they exchange messages. Roles that name their ranks precede the others.

    Attributes:
        world: The number of ranks.
        roles: The captured ranks.
    """

    world: int
    roles: tuple[Role, ...]

    @cached_property
    def grid(self) -> Grid:
        """The dimensions that the process groups span.

        Raises:
            CaptureError: The groups do not fit into a grid.
        """
        names = {group.ranks: group.name for role in self.roles for group in role.groups}
        return Grid.of(self.world, self._spanning[0], names)

    @cached_property
    def _placed(self) -> list[Role]:
        """The roles whose ranks follow from digits."""
        return [role for role in self.roles if not role.ranks]

    @cached_property
    def _named(self) -> dict[int, int]:
        """The number of the role of ranks that a role names."""
        return {rank: number for number, role in enumerate(self.roles) for rank in role.ranks}

    @property
    def apart(self) -> frozenset[tuple[int, ...]]:
        """The groups of two ranks that no mesh with the other groups has.

        Megatron's group of the first and the last stage, which tie their embeddings, is one.
        """
        return self._spanning[1]

    @cached_property
    def _spanning(self) -> tuple[list[tuple[int, ...]], frozenset[tuple[int, ...]]]:
        """The groups and pairs of ranks that span dimensions, and groups of two that do not."""
        groups = [group.ranks for role in self.roles for group in role.groups]
        placed = self._placed
        first = placed[0].rank
        peers = {peer for role in placed for peer in role.peers}
        pairs = [tuple(sorted((role.rank, peer))) for role in placed for peer in role.peers]
        if len(placed) < self.world:
            pairs += [(first, role.rank) for role in placed if role.rank not in {first, *peers}]
        every = [*groups, *_spans(pairs, groups, self.world)]
        spanning = [ranks for ranks in every if len(ranks) != 2]
        if _fits(self.world, every) or not _fits(self.world, spanning):
            return every, frozenset()
        apart = set()
        for ranks in dict.fromkeys(ranks for ranks in every if len(ranks) == 2):
            if _fits(self.world, [*spanning, ranks]):
                spanning.append(ranks)
            else:
                apart.add(ranks)
        return spanning, frozenset(apart)

    @cached_property
    def distinct(self) -> int:
        """The digits in which roles differ, a bit each."""
        first = self._placed[0].rank
        mask = 0
        for role in self._placed:
            mask |= self.grid.distance(first, role.rank)
            for peer in role.peers:
                mask |= self.grid.distance(role.rank, peer)
        return mask

    @cached_property
    def _by_key(self) -> dict[tuple[int, ...], int]:
        placed = enumerate(self.roles)
        return {self._key(role.rank): number for number, role in placed if not role.ranks}

    def _key(self, rank: int) -> tuple[int, ...]:
        digits = enumerate(self.grid.digits_of(rank))
        return tuple(one for place, one in digits if self.distinct >> place & 1)

    def of(self, rank: int) -> int | None:
        """Returns the number of the role of a rank; None if no captured rank has it."""
        named = self._named.get(rank)
        return self._by_key.get(self._key(rank)) if named is None else named

    def parts(self, role: Role, one: Exchange | None) -> tuple[Exchange | None, ...]:
        """Returns the exchanges of an operator: messages in place of an apart all-reduce.

        A ring of two ranks sends the payload once in each direction, too.

        Raises:
            CaptureError: The ranks of another collective are not those of a mesh.
        """
        if one is None or one.peer is not None:
            return (one,)
        ranks = role.groups[one.group].ranks
        if ranks not in self.apart:
            return (one,)
        if one.collective != "all_reduce":
            message = (f"rank {role.rank} calls {one.collective} in a group of the ranks "
                       f"{ranks[0]} and {ranks[1]}")  # fmt: skip
            raise CaptureError(f"{message}: expected the ranks of a mesh, or an all_reduce",
                               kind="groups")  # fmt: skip
        peer = next(rank for rank in ranks if rank != role.rank)
        return tuple(replace(one, collective=name, peer=peer, tag=_APART)
                     for name in ("send", "recv"))  # fmt: skip

    def missing(self) -> Iterator[int]:
        """Yields the first rank of each role that is not captured."""
        seen = set(self._by_key)
        for rank in range(self.world):
            key = self._key(rank)
            if key not in seen and rank not in self._named:
                seen.add(key)
                yield rank

    def numbers(self) -> list[int]:
        """Returns the number of the role of each rank.

        Raises:
            CaptureError: A rank has no captured role.
        """
        found = []
        for rank in range(self.world):
            number = self.of(rank)
            if number is None:
                has = ", ".join(str(role.rank) for role in self.roles)
                message = f"rank {rank} has the role of none of the captured ranks {has}"
                raise CaptureError(f"{message}: expected a rank of each role", kind="roles",
                                   fields={"rank": rank})  # fmt: skip
            found.append(number)
        return found


def _fits(world: int, groups: Sequence[tuple[int, ...]]) -> bool:
    try:
        Grid.of(world, groups)
    except CaptureError:
        return False
    return True


def _spans(
    pairs: Sequence[tuple[int, ...]], groups: Sequence[tuple[int, ...]], world: int
) -> list[tuple[int, ...]]:
    """Returns pairs of ranks that are in no group of a part of the job, as groups."""
    parts = [set(group) for group in groups if len(group) < world]
    return [
        pair
        for pair in pairs
        if world % (2 * (pair[1] - pair[0])) == 0 and not any(set(pair) <= one for one in parts)
    ]


@dataclass(frozen=True)
class Totals:
    """What a rank issues in a step, without messages.

    Attributes:
        rank: The rank.
        flops: FLOPs of all operators.
        bytes: Bytes that operators other than exchanges read and write.
        collectives: The number and bytes of collectives by name and ranks of their group.
        alike: Whether each rank of the job takes the same branches of the program; None if this is
            unknown.
    """

    rank: int
    flops: int
    bytes: int
    collectives: dict[tuple[str, tuple[int, ...]], tuple[int, int]]
    alike: Any = field(default=None, compare=False)

    @classmethod
    def of(cls, rank: int, operators: Sequence[Operator], groups: Sequence[Group]) -> Totals:
        """Returns the totals of operators.

        Before the first call of a module, a rank may initialise weights for the others: only
        collectives count.
        """
        flops = size = 0
        first = next((at for at, one in enumerate(operators) if one.module), 0)
        counts, sizes = (Counter[tuple[str, tuple[int, ...]]]() for _ in range(2))
        for at, one in enumerate(operators):
            to = one.exchange
            if to is None and at >= first:
                flops, size = flops + one.flops, size + one.bytes
            elif to is not None and to.peer is None:
                key = (to.collective, groups[to.group].ranks)
                counts[key] += 1
                sizes[key] += to.bytes
        return cls(rank, flops, size, {key: (counts[key], sizes[key]) for key in counts})

    def difference(self, other: Totals) -> str:
        """Returns how the other rank differs, for people; empty if both do the same.

        Raises:
            CaptureError: A collective of a group with both ranks is called by one of them only.
        """
        self._check_shared(other)
        for name, mine, its in (("FLOPs", self.flops, other.flops),
                                ("bytes of operators", self.bytes, other.bytes)):  # fmt: skip
            if abs(its - mine) > _ALIKE * max(mine, its):
                change = f"{its / mine - 1:+.0%}" if mine else f"{its:,}"
                return f"{change} {name}"
        calls, others = self._by_size(), other._by_size()
        for key in sorted(calls | others):
            (count, size), (counted, sized) = calls.get(key, (0, 0)), others.get(key, (0, 0))
            if count != counted or abs(sized - size) > _ALIKE * max(size, sized):
                name, ranks = key
                calls_of = f"{plural(count, 'call')} of {name} among {ranks:,} ranks"
                return f"{counted:,} in place of {calls_of}"
        return ""

    def _check_shared(self, other: Totals) -> None:
        for key in sorted(self.collectives | other.collectives):
            name, ranks = key
            if not {self.rank, other.rank} <= set(ranks):
                continue
            mine, its = (one.collectives.get(key, (0, 0))[0] for one in (self, other))
            if mine != its:
                counts = [f"rank {one.rank:,} issues {plural(count, 'call')}"
                          for one, count in ((other, its), (self, mine))]  # fmt: skip
                message = (f"{counts[0]} of {name} in a group of {len(ranks):,} ranks, and "
                           f"{counts[1]}")  # fmt: skip
                raise CaptureError(
                    f"{message}: expected as many calls of all its ranks",
                    kind="groups",
                    hint="let all ranks of a group call its collectives",
                    fields={"rank": other.rank},
                )

    def _by_size(self) -> dict[tuple[str, int], tuple[int, int]]:
        found: dict[tuple[str, int], tuple[int, int]] = {}
        for (name, ranks), (count, size) in self.collectives.items():
            before = found.get((name, len(ranks)), (0, 0))
            found[name, len(ranks)] = (before[0] + count, before[1] + size)
        return found


def check_messages(roles: Sequence[Role]) -> None:
    """Checks that captured ranks receive what the others send.

    Raises:
        CaptureError: The sizes of the messages between two ranks differ.
    """
    ends: dict[tuple[int, int], dict[str, Counter[int]]] = {}
    captured = {role.rank for role in roles}
    for role in roles:
        for _, to in role.exchanges:
            if to.peer in captured:
                pair = (role.rank, to.peer) if to.collective == "send" else (to.peer, role.rank)
                ends.setdefault(pair, {}).setdefault(to.collective, Counter())[to.bytes] += 1
    for (source, target), sizes in sorted(ends.items()):
        sent, received = sizes.get("send", Counter()), sizes.get("recv", Counter())
        if sent != received:
            message = (
                f"rank {source} sends {_listed(sent - received)} to rank {target}, which "
                f"receives {_listed(received - sent)}"
            )
            raise CaptureError(
                f"{message}: expected messages of equal sizes",
                kind="peer",
                hint="give stages of a pipeline `input_args` and `output_args` of the shapes that "
                "they exchange, with `requires_grad` where gradients return",
                fields={"rank": source},
            )


def _listed(sizes: Counter[int]) -> str:
    """Returns messages by size, for people."""
    if not sizes:
        return "nothing"
    return ", ".join(f"{plural(count, 'message')} of {format_size(size)}"
                     for size, count in sorted(sizes.items()))  # fmt: skip
