"""What made a plan, and when: kept in its file, so that nobody has to guess later."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tutti import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["provenance"]


def provenance(arguments: Sequence[str], **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """A table for `Plan`: the command line that makes it again, the time, and what else is said."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {"command": shlex.join(["tutti", *arguments]), "made": now, "tutti": __version__} | more
