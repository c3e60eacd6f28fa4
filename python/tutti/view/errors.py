"""Errors of reports and drawings."""

from __future__ import annotations

from typing import ClassVar

from tutti.base.errors import Kind, TuttiError


class ReportError(TuttiError, ValueError):
    """Raised for input that cannot be reported or drawn."""

    kinds: ClassVar[dict[str, Kind]] = {
        "frame": Kind(
            "The frame lacks columns or rows, or its rows are not comparable.",
            "pass frames of `simulate` or `compare`, filtered to the rows to be shown",
        ),
        "choice": Kind("The drawing or the format is unknown."),
        "too_large": Kind(
            "The drawing or graph is too large.",
            "use fewer ranks, or export as .dot",
        ),
        "npus": Kind(
            "An NPU of a timeline was not simulated, is repeated, or there are too many.",
            "select up to 8 simulated NPUs; on a torus, one NPU may represent all",
        ),
        "unmatched": Kind("A receive has no matching send.", "verify() names the schedule's error"),
    }
