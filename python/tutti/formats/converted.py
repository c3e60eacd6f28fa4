"""Networks of other flit simulators, converted to the network file of `tutti noc`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.networks.flit.files.network_file import Noc


@dataclass(frozen=True, kw_only=True)
class ConvertedNoc:
    """A converted configuration of another simulator.

    Attributes:
        noc: The network and its traffic, as `tutti noc` runs them.
        tables: The tables of the network file; a graph is written to a separate file.
        texts: Matrices and traces that `tables` name, by name; written next to the network file.
        remarks: Differences from the other simulator, one sentence each.
        not_honoured: The given keys that have no effect in tutti.
    """

    noc: Noc
    tables: dict[str, Any]
    texts: dict[str, str]
    remarks: tuple[str, ...]
    not_honoured: tuple[str, ...]


def link_rate(flit: int, time_ps: int) -> str:
    """Returns the rate of a link that carries a flit of so many bytes in a time.

    It is rounded up to an integer number of B/s, so that no link is slower than intended.
    """
    return f"{-(-flit * 10**12 // time_ps)} B/s"


def write(path: Path, converted: ConvertedNoc) -> list[Path]:
    """Writes the file that `tutti noc` reads, and next to it the graph, matrix or trace.

    Returns:
        The paths written.

    Raises:
        OSError: A file cannot be written.
    """
    import tomlkit

    paths = [path]
    if graph := converted.tables["topology"].get("file"):
        converted.noc.network.topology.write(path.parent / graph)
        paths.append(path.parent / graph)
    for name, text in converted.texts.items():
        paths.append(path.parent / name)
        paths[-1].write_text(text, encoding="utf-8")
    path.write_text(tomlkit.dumps(converted.tables), encoding="utf-8")
    return paths
