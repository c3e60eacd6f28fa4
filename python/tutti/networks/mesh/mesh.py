"""Single-cycle multi-hop meshes whose routers fork multicasts and combine responses.

Examples:
    >>> from tutti.networks.mesh import SmartMesh
    >>> mesh = SmartMesh(design="sfo_complete", fan_out="complete:4")
    >>> mesh.nodes, mesh.settings["hpc_max"], mesh.settings["credit_delay"]
    (64, 8, 2)
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from tutti import _core
from tutti.base.files.described import beyond_bounds
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

    design: Annotated[str, Field(description="Design; docs/models/smart.md lists them.")] = (
        "sfo_greedy"
    )
    columns: Annotated[int, Field(ge=2, le=64, description="Routers in a row.")] = 8
    rows: Annotated[
        int,
        Field(
            ge=2,
            le=64,
            description="Routers in a column. Node x + columns * y is at (x, y).",
        ),
    ] = 8
    hpc_max: Annotated[
        int | None,
        Field(
            ge=1,
            le=64,
            description="Maximum hops per cycle (HPC_max); with `reducer` at most 9.",
        ),
    ] = None
    priority: Annotated[
        str | None,
        Field(
            description="Arbitration between path requests for a port. `local`: the nearer router "
            "wins. `bypass`: the farther one. `bypass_responses`: the farther one among responses, "
            "then the nearer one among other flits. Else an expression over `distance`, "
            "`response`, `multicast`, `class` and `age`, whose largest value wins.",
        ),
    ] = None
    arbiter: Annotated[
        Literal["round_robin", "oldest"] | None,
        Field(
            description="Arbitration within a router: in turn (`round_robin`), or the packet or "
            "reduction that was created first (`oldest`).",
        ),
    ] = None
    fan_out: Annotated[
        str | None,
        Field(
            description="Multicast mode of routers: `unicasts`, `greedy:svt`, `greedy:pvt` or "
            "`complete:N` with an interval of N cycles.",
        ),
    ] = None
    fan_in: Annotated[
        Literal["unicasts", "greedy", "complete"] | None,
        Field(description="Reduction mode of routers, for responses."),
    ] = None
    merge: Annotated[
        Literal["landing", "buffered"] | None,
        Field(
            description="The responses that a landing one merges into, if `fan_in` is `greedy`: "
            "those buffered or landing in the same cycle (`landing`), or those buffered in the "
            "switch allocation of this cycle (`buffered`).",
        ),
    ] = None
    hold: Annotated[
        str | None,
        Field(
            description="When a buffered response waits for others of its flow, if `fan_in` is "
            "`greedy`: an expression over `stay`, `count`, `missing` and `age`, such as "
            '"missing and stay < 8". Default: never.',
        ),
    ] = None
    yx: Annotated[bool | None, Field(description="YX instead of XY routing.")] = None
    vcs: Annotated[
        int | None,
        Field(
            ge=1,
            le=64,
            description="Virtual channels per message class and port; on private trees per stage "
            "of a broadcast.",
        ),
    ] = None
    depth: Annotated[
        int | None,
        Field(ge=1, le=1 << 10, description="Depth of a VC in flits; the largest packet size."),
    ] = None
    split_vcs: Annotated[
        bool | None,
        Field(
            description="Divide `vcs` (3 or more) among the three stages of a broadcast.",
        ),
    ] = None
    credit_delay: Annotated[
        int | None,
        Field(
            ge=0,
            le=_MOST_DELAY,
            description="Cycles, after the next one, from release of a VC until upstream routers "
            "can allocate it.",
        ),
    ] = None
    sag_extra_cycle: Annotated[
        int | None,
        Field(
            ge=0,
            le=1,
            description="Cycles of path setup in addition to switch allocation.",
        ),
    ] = None
    eject_cost: Annotated[
        int | None,
        Field(
            ge=0,
            le=_MOST_DELAY,
            description="Cycles from the grant of the ejection port to arrival.",
        ),
    ] = None
    art_entries: Annotated[
        int | None,
        Field(
            ge=1,
            le=1 << 16,
            description="Entries of the aggregation reduction table (ART) of a router with "
            "`fan_in` `complete`, which limit the reductions in flight. The minimum is one per "
            "root: 4 on private trees, else one per node.",
        ),
    ] = None
    reducer: Annotated[
        bool | None,
        Field(
            description="Routers combine operands with bypassing flits; `hpc_max` is then at most "
            "9.",
        ),
    ] = None
    patience: Annotated[
        int | None,
        Field(
            ge=1,
            lt=1 << 32,
            description="Cycles without flit movement after which packets in flight count as "
            "deadlocked.",
        ),
    ] = None

    def __post_init__(self) -> None:
        """Refuses invalid settings."""
        for name, value, least, most in beyond_bounds(self):
            message = f"`{name}` is {value!r}: expected an integer from {least} to {most}"
            raise NocError(message, kind="out_of_range", fields={"what": name})
        _ = self.core

    @property
    def core(self) -> _core.SmartMesh:
        """The mesh for the core."""
        given: Any = {one.name: getattr(self, one.name) for one in fields(self)}
        return _core.SmartMesh(given.pop("design"), given)

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
