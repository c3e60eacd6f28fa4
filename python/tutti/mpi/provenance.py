"""The origin of a plan, stored in its file."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tutti import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence


def provenance(arguments: Sequence[str], **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """Returns the command line that reproduces a plan, the time, the version and `more`."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {"command": shlex.join(["tutti", *arguments]), "made": now, "tutti": __version__} | more
