"""Platform files of mappings, for `tutti run` and `tutti compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.base.units import Time, TimePerByte

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.bypass.mapping import Mapping


def platform_text(mapping: Mapping, *, rate: str, latency: str) -> str:
    """Returns the file: negligible endpoint costs, packet queues at links, and every path.

    Raises:
        UnitError: A value has no unit.
    """
    TimePerByte.of_any(rate), Time.of_any(latency)
    network = mapping.configuration
    links = f'{{ rate = "{rate}", latency = "{latency}" }}'
    paths = [f"    [{', '.join(map(str, path))}]," for _, path in sorted(mapping.paths.items())]
    lines = [
        f'name = "bypass-{mapping.mesh.size}"',
        f'summary = "a configuration of bypass links for {len(mapping.flows)} flows"',
        "",
        "[models.ends]",
        'kind = "pipelining_postal"',
        'alpha_p = "1 ns"',
        'alpha_r = "0 ns"',
        'beta = "0 ns/B"',
        "",
        "[topology]",
        f'build = "bypass:{mapping.mesh.notation}:{network.notation}"',
        f"links = [{links}, {links}]",
        "paths = [",
        *paths,
        "]",
        "",
        "[topology.packets]",
        'size = "256 B"',
        'buffer = "8 KiB"',
    ]
    return "\n".join(lines) + "\n"


def write_platform(path: Path, mapping: Mapping, *, rate: str, latency: str) -> Path:
    """Writes the platform file.

    Raises:
        UnitError: A value has no unit.
    """
    path.write_text(platform_text(mapping, rate=rate, latency=latency), encoding="utf-8")
    return path
