"""The blocks of an all_to_all_v in experiment files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.base.files.mistakes import mistake, shown
from tutti.schedules.block_sizes import block_sizes
from tutti.schedules.errors import LayoutError
from tutti.workloads.errors import WorkloadError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def checked_blocks(
    text: str | None, collective: str, ranks: Sequence[int], folder: Path, source: str
) -> str | None:
    """Returns the blocks of an experiment; a relative path starts from `folder`.

    Raises:
        ConfigError: The collective has no blocks, they are invalid, or a file does not fit the
            rank counts.
    """
    if text is None:
        return None
    if collective != "all_to_all_v":
        raise mistake(
            f"{collective} has equal chunks",
            source=source,
            key="blocks",
            value=shown(text),
            expected='no blocks, or collective = "all_to_all_v"',
        )
    found = str(folder / text) if text.endswith(".csv") else text
    try:
        for count in ranks:
            block_sizes(found, count)
    except (LayoutError, WorkloadError) as error:
        raise mistake(
            error.problem, source=source, key="blocks", value=shown(text), hint=error.hint
        ) from None
    return found
