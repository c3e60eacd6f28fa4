"""The readers of all formats of `tutti.formats.formats`, with small valid files.

A format that has no seed here is written from a small sample of its content.
"""

from __future__ import annotations

import io
import tarfile
import zipfile
from typing import TYPE_CHECKING, Any

import made
import network_seeds
import samples
import seeds
import training_seeds
from readers import Reader

if TYPE_CHECKING:
    from pathlib import Path

    from readers import Files


def unseeded(work: Path) -> list[str]:
    """Returns the readable formats without a valid input."""
    from tutti.formats.formats import formats

    known = {reader.name for reader in format_readers(work)}
    return [each.name for each in formats() if each.read and f"format-{each.name}" not in known]


def format_readers(work: Path) -> list[Reader]:
    from tutti.formats.formats import Format, Options, formats

    def reader(each: Format, files: tuple[Files, ...]) -> Reader:
        read = each.read
        assert read is not None
        repair = Options(repair="repair" in each.read_options)
        return Reader(name=f"format-{each.name}", read=lambda path: read(path, repair), files=files)

    found = []
    for each in formats():
        files = _seeded(each.name, work) or _written(each, work)
        if each.read and files:
            found.append(reader(each, files))
    return found


def _written(each: Any, work: Path) -> tuple[Files, ...]:
    """Returns the files that a format writes for a sample of its content, or none."""
    from tutti.base.errors import TuttiError
    from tutti.formats.formats import Options

    make = {
        "schedule": _schedule,
        "trace": _trace,
        "topology": _topology,
        "messages": _messages,
    }[each.content]
    if each.write is None:
        return ()
    folder = work / each.name
    folder.mkdir(parents=True, exist_ok=True)
    size = _size() if "size" in each.write_options else None
    algorithm = "ring" if "algorithm" in each.write_options else None
    main = folder / f"f.0{each.endings[0]}"
    try:
        each.write(make(), main, Options(size=size, algorithm=algorithm))
    except TuttiError:
        return ()  # listed as a format without a seed
    names = sorted(folder.iterdir(), key=lambda path: (path != main, path.name))
    return ({path.name: path.read_bytes() for path in names},)


def _size() -> Any:
    from tutti.base.units import Size

    return Size.parse("64 KiB")


def _schedule() -> Any:
    from tutti.schedules.ir import schedule

    return schedule("ring", collective="all_reduce", ranks=3)


def _topology() -> Any:
    """Returns a fat tree, which formats without other topologies represent, too."""
    from tutti.topologies import Topology

    return Topology.build("fat_tree:k=2,n=2", rate="100 Gb/s", latency="1 us")


def _messages() -> Any:
    from tutti.collectives.lowering import lower
    from tutti.formats.messages import messages_of

    return messages_of(lower(_schedule(), _size()))


def _trace() -> Any:
    """Returns a trace of two ranks with all kinds of operations."""
    import numpy as np

    from tutti.workloads.operations import CollectiveCall, Kind, Operations, Trace

    def operations(rank: int) -> Operations:
        kinds = [Kind.COMPUTE, Kind.SEND, Kind.RECEIVE, Kind.COLLECTIVE]
        return Operations(
            kinds=np.array(kinds, np.uint8),
            sizes=np.array([0, 64, 64, 4096], np.int64),
            durations=np.array([2_000_000, 0, 0, 0], np.int64),
            peers=np.array([-1, 1 - rank, 1 - rank, 0], np.int32),
            tags=np.array([0, 7, 7, 0], np.int64),
            streams=np.array([0, 1, 1, 2], np.int32),
            first_dependency=np.array([0, 0, 1, 2, 3], np.int64),
            dependencies=np.array([0, 0, 2], np.int64),
            on_start=np.array([False, True, False]),
            names=("a", "b", "c", "d"),
        )

    call = CollectiveCall("all_reduce", (0, 1))
    return Trace(name="sample", ranks=(operations(0), operations(1)), collectives=(call,))


def _seeded(name: str, work: Path) -> tuple[Files, ...]:
    """Returns valid inputs of a format beyond those that tutti writes."""
    from tutti.formats.formats import named

    if name == "nccl-topology-xml":
        path = seeds.EXAMPLES / "23_nccl_doctor" / "topology.xml"
        return ({"topology.xml": path.read_bytes()},)
    if name == "simgrid-xml":
        return tuple(
            {"p.xml": samples.SIMGRID % body} for body in (samples.CLUSTERS, samples.ZONES)
        )
    if name == "kineto":
        return (training_seeds.profiles(), *made.profiles(work))
    if name in {"garnet", "noxim"}:
        return (
            network_seeds.examples("config.ini")
            if name == "garnet"
            else network_seeds.examples("noxim.yaml")
        )
    if name == "tacos-csv":
        return ({"t.csv": samples.TACOS}, {"t.csv": samples.TACOS_TIMES})
    if name == "msccl-xml":
        return (*_written(named(name, option="name"), work), {"m.xml": samples.MSCCL})
    if name == "chakra":
        return (*_written(named(name, option="name"), work), _chakra(work))
    return _archives(_chakra(work)) if name == "chakra-archive" else ()


def _chakra(work: Path) -> Files:
    """Returns the traces of two ranks, with a table of groups."""
    from tutti.formats.chakra import reader as chakra

    files: Files = {}
    work.mkdir(parents=True, exist_ok=True)
    for rank in range(2):
        path = chakra.write(work / f"p.{rank}.et", samples.pytorch())
        files[path.name] = path.read_bytes()
    return files | {"comm_group.json": b'{"1": [1, 0]}'}


def _archives(files: Files) -> tuple[Files, ...]:
    """Returns files packed as `.zip` and as `.tar.gz`."""
    zipped, packed = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive, tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data)
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return {"p.zip": zipped.getvalue()}, {"p.tar.gz": packed.getvalue()}
