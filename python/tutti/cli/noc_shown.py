"""Output of `tutti noc` and `tutti coherence`: a view in the terminal, in `--json` and in files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.base.errors import SimulationError
from tutti.cli.console import out, record, record_table, wrote
from tutti.view import fields, files, terminal

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.view.view import View


def present(view: View, folder: Path) -> None:
    """Prints and records a view, and writes its files into a folder."""
    terminal.show(view, out())
    record(**fields.figures(view))
    for name, rows in fields.tables(view).items():
        record_table(name, rows)
    wrote(*files.write(view, folder))


def refuse_unstable(ending: str, source: object) -> None:
    """Refuses a run that saturated or deadlocked, and so has no latency.

    Raises:
        SimulationError: The run saturated or deadlocked.
    """
    if ending == "deadlocked":
        raise SimulationError(f"{source}: the network deadlocks", kind="deadlocked")
    if ending != "stable":
        problem = f"{source}: the network saturates at this load, or no packet was measured"
        raise SimulationError(problem, kind="saturated")
