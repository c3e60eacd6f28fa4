"""Single-cycle multi-hop meshes whose routers fork multicasts and combine responses.

Examples:
    >>> from tutti.networks.mesh import SmartMesh
    >>> mesh = SmartMesh(design="sfo_complete", fan_out="complete:4")
    >>> mesh.nodes, mesh.settings["hpc_max"], mesh.settings["credit_delay"]
    (64, 8, 2)
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from tutti import _core
from tutti.base.files.described import key
from tutti.base.files.typed import refuse_fields
from tutti.networks.errors import NocError

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST_DELAY = 1 << 16


@dataclass(frozen=True, kw_only=True)
class SmartMesh:
    """A mesh: a design and the settings that differ from it; see docs/models/smart.md.

    Settings that are `None` have the design's value; `settings` lists all values. Delays are in
    cycles.

    Raises:
        NocError: The design is unknown, or settings are out of range or conflict.
    """

    design: str = key("sfo_greedy", description="Design; docs/models/smart.md lists them.")
    columns: int = key(8, ge=2, le=64, description="Routers in a row.")
    rows: int = key(
        8, ge=2, le=64, description="Routers in a column. Node x + columns * y is at (x, y)."
    )
    hpc_max: int | None = key(
        None, ge=1, le=64, description="Maximum hops per cycle (HPC_max); with `reducer` at most 9."
    )
    bypass_turns: bool | None = key(
        None,
        description="Unicasts also pass the router where they turn (SMART_2D), so a path has up "
        "to `hpc_max` hops in both dimensions. Else paths end at turns (SMART_1D).",
    )
    collective_turns: bool | None = key(
        None,
        description="With `bypass_turns`: multicasts also fork, and responses are combined, on "
        "paths that turn. Else their paths lie along one dimension.",
    )
    priority: str | None = key(
        None,
        description="Arbitration between path requests for a port. `local`: the nearer router "
        "wins. `bypass`: the farther one. `bypass_responses`: the farther one among responses, "
        "then the nearer one among other flits. Else an expression over `distance`, "
        "`response`, `multicast`, `class` and `age`, whose largest value wins.",
    )
    arbiter: Literal["round_robin", "oldest"] | None = key(
        None,
        description="Arbitration within a router: in turn (`round_robin`), or the packet or "
        "reduction that was created first (`oldest`).",
    )
    fan_out: str | None = key(
        None,
        description="Multicast mode of routers: `unicasts`, `greedy:svt`, `greedy:pvt` or "
        "`complete:N` with an interval of N cycles.",
    )
    fan_in: Literal["unicasts", "greedy", "complete"] | None = key(
        None, description="Reduction mode of routers, for responses."
    )
    merge: Literal["landing", "buffered"] | None = key(
        None,
        description="The responses that a landing one merges into, if `fan_in` is `greedy`: "
        "those buffered or landing in the same cycle (`landing`), or those buffered in the "
        "switch allocation of this cycle (`buffered`).",
    )
    hold: str | None = key(
        None,
        description="When a buffered response waits for others of its flow, if `fan_in` is "
        "`greedy`: an expression over `stay`, `count`, `missing` and `age`, such as "
        '"missing and stay < 8". Default: never.',
    )
    yx: bool | None = key(None, description="YX instead of XY routing.")
    vcs: int | None = key(
        None,
        ge=1,
        le=64,
        description="Virtual channels per message class and port; on private trees per stage "
        "of a broadcast.",
    )
    depth: int | None = key(
        None, ge=1, le=1 << 10, description="Depth of a VC in flits; the largest packet size."
    )
    split_vcs: bool | None = key(
        None, description="Divide `vcs` (3 or more) among the three stages of a broadcast."
    )
    credit_delay: int | None = key(
        None,
        ge=0,
        le=_MOST_DELAY,
        description="Cycles, after the next one, from release of a VC until upstream routers "
        "can allocate it.",
    )
    sag_extra_cycle: int | None = key(
        None, ge=0, le=1, description="Cycles of path setup in addition to switch allocation."
    )
    eject_cost: int | None = key(
        None,
        ge=0,
        le=_MOST_DELAY,
        description="Cycles from the grant of the ejection port to arrival.",
    )
    art_entries: int | None = key(
        None,
        ge=1,
        le=1 << 16,
        description="Entries of the aggregation reduction table (ART) of a router with "
        "`fan_in` `complete`, which limit the reductions in flight. The minimum is one per "
        "root: 4 on private trees, else one per node. Default: 64, or that minimum.",
    )
    reducer: bool | None = key(
        None,
        description="Routers combine operands with bypassing flits; `hpc_max` is then at most 9.",
    )
    patience: int | None = key(
        None,
        ge=1,
        lt=1 << 32,
        description="Cycles without flit movement after which packets in flight count as "
        "deadlocked.",
    )

    def __post_init__(self) -> None:
        """Refuses invalid settings."""
        refuse_fields(self, NocError)
        _ = self.core

    @property
    def core(self) -> _core.SmartMesh:
        """The mesh for the core."""
        given: Any = {one.name: getattr(self, one.name) for one in fields(self)}
        design = given.pop("design")
        try:
            return _core.SmartMesh(design, given)
        except NocError as error:
            nodes = self.columns * self.rows
            if self.art_entries is not None or error.fields.get("what") != "art_entries":
                raise
            # The default of the designs has an entry for each of 64 nodes.
            return _core.SmartMesh(design, given | {"art_entries": nodes})

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.core.nodes

    @property
    def settings(self) -> Mapping[str, Any]:
        """All settings, including the design's, by attribute name."""
        return {
            "design": self.design,
            "columns": self.columns,
            "rows": self.rows,
            **self.core.described(),
        }


def designs() -> dict[str, str]:
    """Returns every design, with a description."""
    return dict(_core.smart_designs())
