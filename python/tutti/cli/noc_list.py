"""`tutti noc list`: routings, traffic patterns, allocators and mesh designs."""

from __future__ import annotations

from tutti import _core
from tutti.cli.listed import listed
from tutti.networks.flit import patterns, routings
from tutti.networks.mesh import designs
from tutti.study.console import out, record, record_table


def list_() -> None:
    """List routings, traffic patterns, allocators and designs of single-cycle multi-hop meshes.

    \b
    Examples:
      tutti noc list
    """
    for title, entries in (("routing", routings()), ("pattern", patterns())):
        facts = []
        for entry in entries:
            argument = entry.argument
            colon = ":" if argument and not argument.startswith("[") else ""
            name = f"{entry.name}{colon}{argument.replace('[', '[:', 1) if not colon else argument}"
            facts.append((name, entry.summary))
            record_table(f"{title}s", [{"name": name, "summary": entry.summary}])
        out().print(title, style="bold")
        out().print(listed(facts))
    record(allocators=_core.flit_allocators(), mesh_designs=designs())
    out().print("allocator", style="bold")
    out().print(f"  {', '.join(_core.flit_allocators())}", markup=False)
    out().print("single-cycle multi-hop mesh", style="bold")
    out().print(listed(list(designs().items())))
