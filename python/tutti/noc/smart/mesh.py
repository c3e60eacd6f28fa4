"""Meshes whose flits make several hops in a cycle, and whose routers fork and combine.

>>> from tutti.noc import SmartMesh
>>> mesh = SmartMesh(design="sfo_complete", fan_out="complete:4")
>>> mesh.nodes, mesh.settings["hpc_max"], mesh.settings["credit_delay"]
(64, 8, 2)
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from tutti import _core
from tutti.errors import NocError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, kw_only=True)
class SmartMesh:
    """A mesh, as the name of its design and what is unlike it; docs/models/smart.md.

    What is None is as in the design; `settings` has it all. Delays are in cycles.

    Attributes:
        design: What it is by default; `designs` lists them.
        columns: Routers in a row, 2 to 64.
        rows: Routers in a column, 2 to 64. Node x + columns y is at (x, y).
        hpc_max: Hops that a flit can make in a cycle, 1 to 64; 1 is the mesh of one-cycle routers.
        priority: Which of two flits that want a port goes first: the one from nearer (`local`) or
            from farther (`bypass`).
        fan_out: What a multicast is to routers: `unicasts`, `greedy:svt`, `greedy:pvt` or
            `complete:INTERVAL`.
        fan_in: What the answers of a reduction are to them: `unicasts`, `greedy` or `complete`.
        yx: Whether packets go along y before x.
        vcs: Virtual channels of a message class at each port; on private trees of each of the
            three stages of a broadcast.
        depth: Flits that each holds; no packet has more.
        split_vcs: Whether the three stages share `vcs` out instead.
        credit_delay: From when a VC is vacated to when the routers upstream can count on it,
            besides the next cycle.
        sag_extra_cycle: What setting up a path takes besides switch allocation, 0 or 1.
        eject_cost: From winning the ejection port to arrival.
        art_entries: Entries of the aggregation reduction tables (ART) of `complete` answers, and so
            reductions that can be under way at once: one at least for each root, which are the four
            corners on private trees, else all nodes.
        reducer: Whether operands can be combined with what passes; then `hpc_max` is 9 at most.
        patience: Cycles without any move after which packets under way are called deadlocked.

    Raises:
        NocError: There is no such design, or settings are out of range or clash.
    """

    design: str = "sfo_greedy"
    columns: int = 8
    rows: int = 8
    hpc_max: int | None = None
    priority: str | None = None
    fan_out: str | None = None
    fan_in: str | None = None
    yx: bool | None = None
    vcs: int | None = None
    depth: int | None = None
    split_vcs: bool | None = None
    credit_delay: int | None = None
    sag_extra_cycle: int | None = None
    eject_cost: int | None = None
    art_entries: int | None = None
    reducer: bool | None = None
    patience: int | None = None

    def __post_init__(self) -> None:
        """Refuses what cannot be, before anything is run."""
        for name, (least, most) in _RANGES.items():
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
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


_RANGES = {
    "columns": (2, 64),
    "rows": (2, 64),
    "hpc_max": (1, 64),
    "vcs": (1, 64),
    "depth": (1, 1 << 10),
    "credit_delay": (0, 1 << 16),
    "sag_extra_cycle": (0, 1),
    "eject_cost": (0, 1 << 16),
    "art_entries": (1, 1 << 16),
    "patience": (1, (1 << 32) - 1),
}
"""The least and the most of each, as the core and files have them."""


def designs() -> dict[str, str]:
    """Every design of meshes, and a sentence on it."""
    return dict(_core.smart_designs())
