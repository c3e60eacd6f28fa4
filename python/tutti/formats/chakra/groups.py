"""Process groups of Chakra traces: which ranks take part in a collective.

A collective names its group in `pg_name`, or in `comm_group` in traces of STAGE. METADATA nodes of
PyTorch define groups, and so does a JSON table of names and lists of ranks: that of `--groups`, or
the first of ``<prefix>.comm_group.json``, ``<prefix>.json`` and ``comm_group.json`` next to the
traces. Definitions of a trace take precedence over the table. Without a name, and for the name `0`
without a definition, a collective spans all ranks.

Source: ``Workload.cc`` (extract_comm_group, issue_pytorch_pg_metadata) of astra-sim/astra-sim
518bd51; ``chakra_00_4_backend.py`` of astra-sim/stage 9ec6c02.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, RootModel

from tutti.base.errors import ConfigError
from tutti.base.files.limits import RANKS, Bytes
from tutti.base.files.reader import read_json
from tutti.base.files.validate import validated
from tutti.workloads.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

MOST_NPUS = 1 << 20
GROUPS = ".comm_group.json"
"""The ending of the table of groups after the prefix of the traces."""
NAMES = ("pg_name", "comm_group")
"""Attributes that name the group of a collective."""
_MOST_SHOWN = 9


def _distinct(ranks: list[int]) -> list[int]:
    twice = next((rank for rank, count in Counter(ranks).items() if count > 1), None)
    if twice is not None:
        raise ConfigError(f"lists rank {twice} twice: expected each rank once", kind="invalid")
    return ranks


_Ranks = Annotated[
    list[Annotated[int, Field(ge=0, lt=MOST_NPUS)]], Field(min_length=1), AfterValidator(_distinct)
]


class _Table(RootModel[dict[str, _Ranks]]):
    model_config = ConfigDict(strict=True)


@dataclass
class Groups:
    """The process groups of a trace.

    Attributes:
        table: The groups of the table, by name.
        source: The file of the table, or "".
        named: Names that collectives have used.
        replaced: Names whose ranks differ between the table and the trace.
    """

    table: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    source: str = ""
    named: set[str] = field(default_factory=set)
    replaced: set[str] = field(default_factory=set)

    def of_rank(self, inputs: Iterable[str], ranks: int) -> GroupsOfRank:
        """Returns the groups that a rank knows.

        Args:
            inputs: The inputs of its METADATA nodes.
            ranks: The number of ranks of the trace.
        """
        stated = _defined(inputs, ranks)
        twice = stated.keys() & self.table.keys()
        self.replaced |= {name for name in twice if set(stated[name]) != set(self.table[name])}
        return GroupsOfRank(self, {**self.table, **stated}, ranks)

    def remarks(self) -> tuple[str, ...]:
        """Returns a line if no collective names a group of the table, or a trace defines others."""
        if self.table and self.named.isdisjoint(self.table):
            return (f"groups of {self.source} ({_shown(self.table)}): no collective names them",)
        names = _shown(sorted(self.replaced & self.named))
        return (f"groups of {self.source} ({names}): the trace defines others",) if names else ()


@dataclass(frozen=True)
class GroupsOfRank:
    """The process groups that a rank knows.

    Attributes:
        groups: The groups of the trace, which record names.
        definitions: The ranks of each group.
        ranks: The number of ranks of the trace.
        checked: The ranks of names that are valid for the rank.
    """

    groups: Groups
    definitions: Mapping[str, tuple[int, ...]]
    ranks: int
    checked: dict[str, tuple[int, ...] | None] = field(default_factory=dict)

    def members(self, name: str, rank: int, place: str) -> tuple[int, ...] | None:
        """Returns the ranks of a group in the order of the communicator; None for all ranks.

        Args:
            name: The name in the collective, or "".
            rank: The rank that starts the collective.
            place: File, rank and node, for errors.

        Raises:
            TraceError: The group is unknown, lacks the rank, or has ranks without a trace.
        """
        if name not in self.checked:
            self.checked[name] = self._checked(name, rank, place)
        return self.checked[name]

    def _checked(self, name: str, rank: int, place: str) -> tuple[int, ...] | None:
        self.groups.named.add(name)
        if name not in self.definitions:
            if name in ("", "0"):
                return None
            known = _shown(self.definitions) or "a table of groups"
            problem, kind = f"unknown group `{name}`: expected {known}", "unknown_group"
            raise TraceError(f"{place}: {problem}", kind=kind, fields={"group": name})
        members = self.definitions[name]
        problem = ""
        if max(members, default=0) >= self.ranks:
            problem = f"has rank {max(members)}, and there are traces of {self.ranks} ranks"
            problem += ": expected traces of all its ranks"
        elif rank not in members or len({*members}) < len(members):
            problem = f"does not have rank {rank} exactly once"
        if problem:
            message = f"{place}: group `{name}` {problem}"
            raise TraceError(message, kind="other_ranks", fields={"group": name})
        return members


def group_name(values: Mapping[str, tuple[str, Any]], place: str) -> str:
    """Returns the name of the group of a collective, or "".

    Args:
        values: The attributes of `NAMES` that it has, each with its type and value.
        place: File, rank and node, for errors.

    Raises:
        TraceError: An attribute is neither text nor an integer, or two attributes differ.
    """
    names = {}
    for attribute, (kind, value) in values.items():
        is_integer = "int" in kind or "fixed" in kind
        if kind != "string" and (kind.endswith("_list") or not is_integer):
            message = f"{place}: attribute `{attribute}` is a {kind}: expected a name or a number"
            raise TraceError(message, kind="attribute_type", fields={"attribute": attribute})
        names[attribute] = str(value)
    if len(set(names.values())) > 1:
        stated = " and ".join(f"`{name}` of {attribute}" for attribute, name in names.items())
        message = f"{place}: the collective is in the groups {stated}: expected one group"
        raise TraceError(message, kind="unknown_group", fields={"groups": list(names.values())})
    return next(iter(names.values()), "")


def find_groups(prefix: Path, given: Path | None = None) -> Groups:
    """Returns the groups of a given table, or of one next to the traces of a prefix.

    Raises:
        ConfigError: The table is invalid.
    """
    if given is not None:
        return load_groups(given)
    names = (f"{prefix.name}{GROUPS}", f"{prefix.name}.json", GROUPS[1:])
    for file in (prefix.with_name(name) for name in names):
        if file.is_file():
            return load_groups(file)
    return Groups()


def load_groups(path: Path) -> Groups:
    """Loads a table of groups: a JSON table of names and lists of ranks.

    Raises:
        ConfigError: The file cannot be read, or has another structure.
    """
    tables = read_json(path, "a table of groups and lists of their ranks (JSON)", Bytes.LOG)
    table = validated(_Table, tables, source=str(path)).root
    return Groups({name: tuple(ranks) for name, ranks in table.items()}, source=str(path))


def _shown(names: Iterable[str]) -> str:
    """Returns the first names of a list."""
    listed = list(names)
    more = ", ..." if len(listed) > _MOST_SHOWN else ""
    return ", ".join(repr(name)[1:-1][:40] for name in listed[:_MOST_SHOWN]) + more


def _defined(inputs: Iterable[str], ranks: int) -> dict[str, tuple[int, ...]]:
    """Returns the process groups of METADATA nodes of PyTorch; an empty list is all ranks."""
    found = {}
    for text in inputs:
        start, end = text.find("[{"), text.rfind("}]")
        if start < 0 or end < start:
            continue
        try:
            groups = json.loads(text[start : end + 2].replace('\\"', '"'))
        except (ValueError, RecursionError):
            continue
        for group in filter(_is_table, groups):
            name, members = group.get("pg_name"), group.get("ranks")
            if not isinstance(name, str) or not isinstance(members, list):
                continue
            if all(type(member) is int and 0 <= member < RANKS for member in members):
                everyone = tuple(range(max(ranks, _declared(group))))
                found[name] = tuple(members) if members else everyone
    return found


def _is_table(group: object) -> bool:
    return isinstance(group, dict)


def _declared(group: Mapping[str, object]) -> int:
    """Returns the declared size of a group, or 0."""
    size = group.get("group_size")
    return size if type(size) is int and 0 <= size < RANKS else 0
