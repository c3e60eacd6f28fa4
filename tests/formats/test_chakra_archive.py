"""Chakra traces of all ranks in an archive, and files of several gzip members."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest

from tutti.base.errors import ConfigError
from tutti.formats.chakra import reader as chakra
from tutti.formats.chakra.reader import Attribute, ChakraTrace, Node, read_all
from tutti.formats.chakra.trace import read_trace
from tutti.formats.formats import Options, head, recognised
from tutti.workloads.errors import TraceError
from tutti.workloads.trace import programs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tutti.workloads.operations import Trace

CALL = {
    "comm_type": Attribute("int64", 0),
    "comm_size": Attribute("int64", 64),
    "pg_name": Attribute("string", "all"),
}


def files(folder: Path) -> dict[str, bytes]:
    """Returns the traces of two ranks, and their groups."""
    for rank in range(2):
        call = Node(id=1, name="call", type="COMM_COLL", attributes=CALL)
        chakra.write(folder / f"t.{rank}.et", ChakraTrace(nodes=(call,)))
    (folder / "t.comm_group.json").write_text(json.dumps({"all": [1, 0]}), encoding="utf-8")
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def packed(path: Path, contents: dict[str, bytes]) -> Path:
    """Writes an archive, in the format of its ending."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in contents.items():
                archive.writestr(name, data)
        return path
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name, data in contents.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    packers: dict[str, Callable[[bytes], bytes]] = {
        "gz": gzip.compress, "z2": bz2.compress, "xz": lzma.compress
    }  # fmt: skip
    path.write_bytes(packers.get(path.name[-2:], bytes)(content.getvalue()))
    return path


def loaded(path: Path) -> tuple[Trace, tuple[str, ...]]:
    read = recognised(path, head(path), option="--from").reader()
    return read(path, Options())


@pytest.mark.parametrize("ending", ["zip", "tar", "tgz", "tar.bz2", "txz"])
def test_an_archive_is_read_as_its_files(ending: str, tmp_path: Path) -> None:
    contents = files(tmp_path)
    expected, _ = read_trace(tmp_path / "t.0.et", Options())
    inside = {f"a/b/{k}": v for k, v in contents.items()} | {"__MACOSX/._t.0.et": b"mac"}
    if ending == "zip":
        inside["a/b/t.1.et.gz"] = gzip.compress(inside.pop("a/b/t.1.et"))
    path = packed(tmp_path / f"run.{ending}", inside)
    trace, lines = loaded(path)
    assert (trace.name, trace.collectives) == (expected.name, expected.collectives)
    assert [rank.names for rank in trace.ranks] == [("call",)] * 2
    assert not lines
    traces = read_all(path)
    assert [each.nodes for each in traces] == [each.nodes for each in read_all(tmp_path / "t")]
    assert programs(traces, (2,))
    # Errors found later name the archive, and so do remarks.
    assert traces[1].nodes[0].place.startswith(f"{path}/t.1.et")
    assert traces[0].groups.source == f"{path}/t.comm_group.json"
    unused = json.dumps({"other": [0]}).encode()
    del contents["t.comm_group.json"]
    odd = packed(tmp_path / f"odd.{ending}", contents | {"comm_group.json": unused})
    with pytest.raises(TraceError, match=rf"odd\.{ending}/t\.0\.et, rank 0, .*unknown group `all`"):
        loaded(odd)


def test_other_archives_are_refused(tmp_path: Path) -> None:
    contents = files(tmp_path)
    one, two = contents["t.0.et"], contents["t.1.et"]

    def refused(name: str, contents: dict[str, bytes], damage: slice | None = None) -> str:
        path = packed(tmp_path / name, contents)
        if damage is not None:
            path.write_bytes(path.read_bytes()[damage])
        with pytest.raises((TraceError, ConfigError)) as error:
            loaded(path)
        assert "tutti-" not in str(error.value)
        return str(error.value)

    assert "a.zip: no traces: expected files <prefix>.<rank>.et" in refused("a.zip", {"x": one})
    assert "missing file of rank 0" in refused("b.tgz", {"t.1.et": two})
    prefixes = refused("c.tar", {"t.0.et": one, "u.0.et": one})
    assert "c.tar: traces of 2 prefixes (t, u)" in prefixes
    twice = refused("d.zip", {"a/t.0.et": one, "b/t.0.et": two})
    assert "d.zip: two files have the name t.0.et: a/t.0.et, b/t.0.et" in twice
    for name in ("e.zip", "e.tar", "e.tgz", "e.txz"):
        damaged = refused(name, contents, slice(0, 150))
        assert f"{name}: cannot be " in damaged
        assert "hint: was it copied completely?" in damaged
        assert f"{name}: cannot be " in refused(name, {"t.0.et": one}, slice(0, 0))


def test_all_members_of_a_gzipped_file_are_read(tmp_path: Path) -> None:
    path = chakra.write(tmp_path / "t.0.et", ChakraTrace(nodes=(Node(id=1), Node(id=2))))
    data = path.read_bytes()
    halves = gzip.compress(data[:9]), gzip.compress(data[9:])
    path.write_bytes(b"".join(halves))
    assert [node.id for node in chakra.read(path).nodes] == [1, 2]
    path.write_bytes(b"".join(halves)[:-6])
    with pytest.raises(TraceError, match=r"t\.0\.et: cannot be decompressed"):
        chakra.read(path)


def test_names_of_compressed_files_end_in_gz(tmp_path: Path) -> None:
    files(tmp_path)
    trace, _ = read_trace(tmp_path / "t.0.et", Options())
    form = recognised(tmp_path / "u.et.gz", None, option="--to")
    assert form.write is not None
    form.write(trace, tmp_path / "u.et.gz", Options())
    assert (tmp_path / "u.1.et.gz").read_bytes()[:2] == b"\x1f\x8b"
    for path in (tmp_path / "u.1.et.gz", tmp_path / "u"):
        assert read_trace(path, Options())[0].collectives == trace.collectives
