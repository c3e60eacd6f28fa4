"""A mapping as a platform file, which `tutti run` and `tutti compare` take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.units import Time, TimePerByte

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.bypass.mapping import Mapping


def platform_text(mapping: Mapping, *, rate: str, latency: str) -> str:
    """The file: ends that cost next to nothing, links in whose queues packets meet, and every way.

    Raises:
        UnitError: a value without a unit.
    """
    TimePerByte.of_any(rate), Time.of_any(latency)
    network = mapping.configuration
    links = f'{{ rate = "{rate}", latency = "{latency}" }}'
    paths = [f"    [{', '.join(map(str, path))}]," for _, path in sorted(mapping.paths.items())]
    lines = [
        f'name = "bypass-{mapping.mesh.side}x{mapping.mesh.side}"',
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
    """Writes it.

    Raises:
        UnitError: a value without a unit.
    """
    path.write_text(platform_text(mapping, rate=rate, latency=latency), encoding="utf-8")
    return path
