"""Writes a Chakra trace for benchmarks: the same bytes on every run.

`python benchmarks/chakra_traces.py 300000 OUT.0.et` writes that many nodes of one rank, every
seventh of which is an all_reduce, with the attributes that traces of PyTorch have.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tutti.formats.chakra.reader import Attribute, Node, write_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

_SCHEMA = Attribute("string", "aten::mm(Tensor self, Tensor mat2) -> Tensor")


def nodes(count: int) -> Iterator[Node]:
    """Yields nodes in a chain, with further dependencies."""
    for number in range(count):
        communicates = number % 7 == 3
        attributes = {
            "is_cpu_op": Attribute("bool", False),
            "stream": Attribute("int64", 20 if communicates else 7),
            "rf_id": Attribute("uint64", number),
            "op_schema": _SCHEMA,
        }
        if communicates:
            attributes["comm_type"] = Attribute("int64", 0)
            attributes["comm_size"] = Attribute("int64", (number % 97 + 1) * 1024)
        else:
            attributes["num_ops"] = Attribute("int64", number % 1000 * 1000)
            attributes["tensor_size"] = Attribute("uint64", number % 513 * 64)
        yield Node(
            id=number,
            name="ncclAllReduce" if communicates else f"op_{number % 300}",
            type="COMM_COLL" if communicates else "COMP",
            data_deps=(number - 1,) if number else (),
            ctrl_deps=(number - 5,) if number > 5 and number % 3 == 0 else (),
            duration_us=10 + number % 50,
            start_us=number * 60,
            attributes=attributes,
        )


def write(count: int, path: Path) -> None:
    """Writes a trace of one rank."""
    write_nodes(path, list(nodes(count)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("path", type=Path)
    options = parser.parse_args()
    write(options.count, options.path)
