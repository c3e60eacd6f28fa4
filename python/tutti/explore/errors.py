"""Errors of the web application."""

from __future__ import annotations

from typing import ClassVar

from tutti.base.errors import Kind, TuttiError


class ExploreError(TuttiError):
    """Raised if the web application of `tutti explore` cannot start."""

    kinds: ClassVar[dict[str, Kind]] = {
        "address": Kind(
            "The server cannot listen on the address.",
            "select another port with --port; 0 selects a free one",
        ),
        "ended": Kind(
            "The process that runs the jobs of a page has ended.",
            "is there enough memory? The next request starts another process",
        ),
    }
