"""Platform files of mappings, for `tutti run` and `tutti compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.base.units import Time, TimePerByte

if TYPE_CHECKING:
    from collections.abc import Mapping as Table
    from pathlib import Path

    from tutti.bypass.mapping import Mapping


def platform_text(mapping: Mapping, *, rate: str, latency: str, graph: str | None = None) -> str:
    """Returns the file: negligible endpoint costs, packet queues at links, and every path.

    Args:
        mapping: The mapping.
        rate: The rate of every link.
        latency: The latency of every link.
        graph: The name of a file with the live links, instead of these rates and latencies.

    Raises:
        UnitError: A value has no unit.
    """
    TimePerByte.of_any(rate), Time.of_any(latency)
    links = f'{{ rate = "{rate}", latency = "{latency}" }}'
    built = f'build = "bypass:{mapping.mesh.notation}:{mapping.configuration.notation}"'
    topology = [f'file = "{graph}"'] if graph else [built, f"links = [{links}, {links}]"]
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
        *topology,
        "paths = [",
        *paths,
        "]",
        "",
        "[topology.packets]",
        'size = "256 B"',
        'buffer = "8 KiB"',
    ]
    return "\n".join(lines) + "\n"


def write_platform(
    path: Path,
    mapping: Mapping,
    *,
    rate: str,
    latency: str,
    chiplets: Table[int, str] | None = None,
    pairs: Table[tuple[int, int], str] | None = None,
) -> list[Path]:
    """Writes the platform file, and with different rates a file of the live links next to it.

    Args:
        path: The platform file.
        mapping: The mapping.
        rate: The rate of every link.
        latency: The latency of every link.
        chiplets: By node, the rate of its slower ports, as in `BypassConfiguration.topology`.
        pairs: By source and destination, the rate of each of their links.

    Returns:
        The files.

    Raises:
        BypassError: A node does not exist, or a pair has no live link.
        TopologyError: With different rates, some nodes are not connected.
        UnitError: A value has no unit.
    """
    if not chiplets and not pairs:
        path.write_text(platform_text(mapping, rate=rate, latency=latency), encoding="utf-8")
        return [path]
    graph = path.with_name(f"{path.name.partition('.')[0]}_links.json")
    topology = mapping.configuration.topology(rate, latency, chiplets=chiplets, pairs=pairs)
    topology.write(graph)
    text = platform_text(mapping, rate=rate, latency=latency, graph=graph.name)
    path.write_text(text, encoding="utf-8")
    return [path, graph]
