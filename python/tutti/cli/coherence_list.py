"""`tutti coherence list`: kernels, protocols and mesh designs."""

from __future__ import annotations

from tutti.cli.listed import listed
from tutti.networks.coherence import kernels
from tutti.networks.mesh import designs
from tutti.study.console import out, record_table


def list_() -> None:
    """List the kernels, the protocols and the mesh designs.

    \b
    Examples:
      tutti coherence list
    """
    protocols = [
        ("ht", "home node without a directory: broadcasts each request; all caches respond"),
        ("tc", "token coherence: the requester broadcasts; holders send tokens of the line"),
    ]
    for title, entries in (
        ("kernels", list(kernels().items())),
        ("protocols", protocols),
        ("mesh designs", list(designs().items())),
    ):
        record_table(
            title.replace(" ", "_"), ({"name": name, "summary": text} for name, text in entries)
        )
        out().print(title, style="bold")
        out().print(listed(entries))
