"""Networks and traces of other simulators to mutate."""

from __future__ import annotations

import struct

from seeds import EXAMPLES, Target


def targets() -> list[Target]:
    """Networks and traces of gem5, Noxim, RapidChiplet and netrace."""
    folder = EXAMPLES / "31_coming_from_garnet"
    of_gem5 = {"mesh.py": ("num_cpus=6", "mesh_rows=2"), "config.ini": ()}
    targets = [
        Target(
            f"garnet {name}",
            {name: (folder / name).read_bytes()},
            ("noc", "from-garnet", name, *options, "--write", "o.toml"),
        )
        for name, options in of_gem5.items()
    ]
    noxim = (folder / "noxim.yaml").read_bytes()
    write = ("noc", "from-noxim", "n.yaml", "--write", "o.toml")
    convert = ("noc", "from-netrace", "t.tra", "-o", "o.csv")
    return [
        *targets,
        Target("noxim", {"n.yaml": noxim}, write),
        Target(
            "rapidchiplet",
            rapidchiplet(),
            ("noc", "from-rapidchiplet", "design.json", "--write", "o.toml"),
        ),
        Target("netrace", {"t.tra": netrace()}, convert),
        Target(
            "noc-trace",
            {"t.csv": DEPENDENT},
            ("noc", "run", "--mesh", "2x2", "--set", "traffic.trace=t.csv", "--no-report"),
        ),
    ]


def netrace() -> bytes:
    """Returns an unpacked trace of netrace: three packets on four nodes, two regions."""
    header = struct.pack("<If30sBxQQII8x", 0x484A5455, 1.0, b"made", 4, 1000, 3, 5, 2)
    packets = [(5, 1, 1, 0, 3, (2, 3)), (6, 2, 2, 3, 0, (3,)), (90, 3, 4, 1, 2, ())]
    packed = b"".join(
        struct.pack(f"<QIIBBBBB{len(later)}I", cycle, number, 64, kind, source, to, 0, len(later),
                    *later)
        for cycle, number, kind, source, to, later in packets
    )  # fmt: skip
    return header + b"note\0" + struct.pack("<6Q", 0, 50, 2, 54, 50, 1) + packed


DEPENDENT = b"""cycle,source,destination,flits,class,id,after,delay
0,0,3,1,0,1,,
1,3,0,5,0,2,1,20
2,0,1,5,0,3,1 2,0
"""
"""A trace whose packets wait for others."""


def rapidchiplet() -> dict[str, bytes]:
    """Returns the files of a design of RapidChiplet."""
    folder = EXAMPLES / "31_coming_from_garnet" / "rapidchiplet"
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.json"))}


def examples(*names: str) -> tuple[dict[str, bytes], ...]:
    """Returns files of networks of other simulators."""
    folder = EXAMPLES / "31_coming_from_garnet"
    return tuple({name: (folder / name).read_bytes()} for name in names)
