"""Platform files of SimGrid, as a format of `tutti convert`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.formats.formats import Format, Options
from tutti.formats.simgrid.platform_file import read_platform

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.topologies import Topology

__all__ = ["FORMATS", "read_platform"]


def _read(path: Path, _options: Options) -> tuple[Topology, tuple[str, ...]]:
    return read_platform(path)


FORMATS = (
    Format(
        name="simgrid-xml",
        content="topology",
        endings=(".xml",),
        summary="Platforms of SimGrid (DTD 4.1).",
        source="SimGrid 4.1, src/kernel/xml/simgrid.dtd",
        read=_read,
        matches=lambda head: b"<platform" in head,
    ),
)
