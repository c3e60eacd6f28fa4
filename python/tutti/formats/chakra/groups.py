"""Files of communicators that accompany Chakra traces: names and lists of ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import ConfigDict, Field, RootModel

from tutti.base.files.limits import Bytes
from tutti.base.files.reader import read_json
from tutti.base.files.validate import validated

if TYPE_CHECKING:
    from pathlib import Path

MOST_NPUS = 1 << 20


class _Groups(RootModel[dict[str, list[Annotated[int, Field(ge=0, lt=MOST_NPUS)]]]]):
    model_config = ConfigDict(strict=True)


def load_groups(path: Path) -> dict[str, tuple[int, ...]]:
    """Loads communicators: a JSON table of names and lists of ranks.

    Raises:
        ConfigError: The file cannot be read, or has another structure.
    """
    tables = read_json(path, "a table of groups and lists of their ranks (JSON)", Bytes.LOG)
    given = validated(_Groups, tables, source=str(path))
    return {name: tuple(ranks) for name, ranks in given.root.items()}
