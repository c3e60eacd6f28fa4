"""The plan of a sweep whose points have measurements without schedules to verify."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tutti.sweeps.files import Sweep
    from tutti.sweeps.worker import Item


@dataclass
class PointPlan:
    """All measurements of a sweep.

    Attributes:
        sweep: The sweep.
        measurements: The measurements of each point.
        proofs: Empty: there are no schedules, or each measurement verifies its own.
        remarks: Remarks on all points.
    """

    sweep: Sweep
    measurements: list[Item] = field(default_factory=list)
    proofs: list[Item] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def values(self, item: Item) -> Mapping[str, Any]:
        """Returns the swept keys of the item's point, with their values."""
        return self.sweep.points[item.point]

    def omissions(self) -> list[str]:
        """Returns no lines: no measurement is omitted, or the result lists what is."""
        return []

    def label(self, item: Item) -> str:
        """Returns the name of an item in errors."""
        return f"{self.sweep.source}, {self.sweep.label(item.point)}: {item.notation}"
