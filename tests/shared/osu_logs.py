"""Logs of OSU benchmarks between two ranks, from the parameters of a pipelining postal model."""

from __future__ import annotations

import random

_WINDOW = 64
_SIZES = tuple(1 << power for power in range(23))


def osu_log(
    alpha_p: float, alpha_r: float, beta: float, *, nodes: int | None, noise: float = 0.02
) -> str:
    """Returns a log of osu_latency and osu_bw; times in us, beta in us per byte.

    Args:
        alpha_p: Latency.
        alpha_r: Occupation of the sender by each message.
        beta: Time of a byte.
        nodes: The number of nodes that the echoed command states; None for no command.
        noise: Standard deviation of relative noise.
    """
    draw = random.Random(20260101)
    lines: list[str] = []
    for program, title, heading in (
        ("osu_latency", "Latency", "Avg Latency(us)"),
        ("osu_bw", "Bandwidth", "Bandwidth (MB/s)"),
    ):
        if nodes is not None:
            lines.append(f"$ mpirun -n 2 --map-by ppr:{2 // nodes}:node {program}")
        lines += [f"# OSU MPI {title} Test v7.4", f"# Size       {heading}"]
        for size in _SIZES:
            occupied = alpha_r + size * beta
            latency = alpha_p + occupied
            window = _WINDOW * occupied + 2 * alpha_p + alpha_r
            value = latency if title == "Latency" else _WINDOW * size / window
            lines.append(f"{size:<10} {value * (1 + draw.gauss(0, noise)):.3f}")
    return "\n".join([*lines, ""])
