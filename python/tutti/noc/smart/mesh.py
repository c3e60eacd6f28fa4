"""Meshes whose flits make several hops in a cycle, and whose routers fork and combine.

>>> from tutti.noc import SmartMesh
>>> mesh = SmartMesh(design="sfo_complete", fan_out="complete:4")
>>> mesh.nodes, mesh.settings["hpc_max"], mesh.settings["credit_delay"]
(64, 8, 2)
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from tutti import _core
from tutti.errors import NocError
from tutti.files.described import beyond_bounds

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST_DELAY = 1 << 16


@dataclass(frozen=True, kw_only=True)
class SmartMesh:
    """A mesh, as the name of its design and what is unlike it; docs/models/smart.md.

    What is None is as in the design; `settings` has it all. Delays are in cycles.

    Raises:
        NocError: There is no such design, or settings are out of range or clash.
    """

    design: Annotated[
        str, Field(description="The mesh design; docs/models/smart.md lists them.")
    ] = "sfo_greedy"
    columns: Annotated[int, Field(ge=2, le=64, description="Routers in a row.")] = 8
    rows: Annotated[
        int,
        Field(
            ge=2,
            le=64,
            description="Routers in a column. Node x + columns y is at (x, y).",
        ),
    ] = 8
    hpc_max: Annotated[
        int | None,
        Field(
            ge=1,
            le=64,
            description="Most hops of a flit per cycle; at most 9 with a `reducer`.",
        ),
    ] = None
    priority: Annotated[
        Literal["local", "bypass"] | None,
        Field(
            description="Priority of flits at a port: those from nearer routers (`local`) or "
            "from farther (`bypass`).",
        ),
    ] = None
    fan_out: Annotated[
        str | None,
        Field(
            description="Multicast mode of routers: `unicasts`, `greedy:svt`, `greedy:pvt`, or "
            "`complete:` and its interval in cycles.",
        ),
    ] = None
    fan_in: Annotated[
        Literal["unicasts", "greedy", "complete"] | None,
        Field(description="Reduction mode of routers."),
    ] = None
    yx: Annotated[bool | None, Field(description="Whether routing is YX instead of XY.")] = None
    vcs: Annotated[
        int | None,
        Field(
            ge=1,
            le=64,
            description="Virtual channels of a message class at each port; on private trees, "
            "for each of the three stages of a broadcast.",
        ),
    ] = None
    depth: Annotated[
        int | None,
        Field(ge=1, le=1 << 10, description="Flits of a VC; the upper limit of packet sizes."),
    ] = None
    split_vcs: Annotated[
        bool | None,
        Field(
            description="Whether the three stages of a broadcast divide the VCs, which "
            "requires at least 3.",
        ),
    ] = None
    credit_delay: Annotated[
        int | None,
        Field(
            ge=0,
            le=_MOST_DELAY,
            description="Additional cycles until the upstream routers can use a vacated VC.",
        ),
    ] = None
    sag_extra_cycle: Annotated[
        int | None,
        Field(
            ge=0,
            le=1,
            description="Additional cycles for path setup after switch allocation.",
        ),
    ] = None
    eject_cost: Annotated[
        int | None,
        Field(
            ge=0,
            le=_MOST_DELAY,
            description="Cycles from winning the ejection port to arrival.",
        ),
    ] = None
    art_entries: Annotated[
        int | None,
        Field(
            ge=1,
            le=1 << 16,
            description="Entries of the aggregation reduction table (ART) of `complete`, "
            "which limit the reductions in flight: at least one per root. Roots "
            "are the 4 corners on private trees, else all nodes.",
        ),
    ] = None
    reducer: Annotated[
        bool | None,
        Field(
            description="Whether routers reduce operands in passing flits; limits `hpc_max` to 9.",
        ),
    ] = None
    patience: Annotated[
        int | None,
        Field(
            ge=1,
            lt=1 << 32,
            description="Cycles without progress after which packets in flight count as "
            "deadlocked.",
        ),
    ] = None

    def __post_init__(self) -> None:
        """Refuses what cannot be, before anything is run."""
        for name, value, least, most in beyond_bounds(self):
            message = f"`{name}` is {value!r}: expected a whole number from {least} to {most}"
            raise NocError(message, kind="out_of_range", fields={"what": name})
        _ = self.core

    @property
    def core(self) -> _core.SmartMesh:
        """As the core takes it."""
        given: Any = {one.name: getattr(self, one.name) for one in fields(self)}
        return _core.SmartMesh(given.pop("design"), given)

    @property
    def nodes(self) -> int:
        """How many there are."""
        return self.core.nodes

    @property
    def settings(self) -> Mapping[str, Any]:
        """All settings, those of the design too, by the attributes' names."""
        return {
            "design": self.design,
            "columns": self.columns,
            "rows": self.rows,
            **self.core.described(),
        }


def designs() -> dict[str, str]:
    """Every design of meshes, and a sentence on it."""
    return dict(_core.smart_designs())
