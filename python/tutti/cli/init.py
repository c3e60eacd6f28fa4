"""`tutti init`: writes an experiment file with comments, and its JSON Schema for editors."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tutti.base.files.reader import parse_toml
from tutti.cli.schema import File, schema_text
from tutti.collectives.files.resolve import resolve
from tutti.platforms.files.presets import default_ranks
from tutti.study.console import record
from tutti.study.files import folder, one_of
from tutti.study.study import Study

_EXPERIMENT = """\
#:schema ./experiment.schema.json
# Run `tutti compare experiment.toml`. `tutti schema` describes all keys.

title = "Which {collective} is fastest?"

# A built-in platform (`tutti platforms`), a platform file, a topology such as "torus:4x4x4", or a
# table [platform].
platform = "{platform}"

# all_reduce, all_gather, reduce_scatter, broadcast, all_to_all, ... (`tutti schedule list`)
collective = "{collective}"

# "all", or a list such as ["ring", "recursive_doubling", "hierarchical:8x4:ring"]
algorithms = "all"

# Rank counts: numbers, and ranges such as {{ from = 16, to = 1024 }}, which double.
ranks = {ranks}

# The payload; see docs/reference/config.md for the convention of each collective.
sizes = {{ from = "1 KiB", to = "64 MiB", factor = 4 }}
datatype = "float32"

# Results, the report and a timeline are written here.
output = "out"
"""


def init(
    to: Annotated[
        Path | None,
        typer.Argument(metavar="[FOLDER]", help="Folder of the file.", show_default=False),
    ] = None,
    platform: Annotated[
        str,
        typer.Option(
            "--platform", "-p", help="Name of a built-in platform, or a topology: torus:4x4x4."
        ),
    ] = "loggp_cluster",
    collective: Annotated[
        str, typer.Option("--collective", "-c", help="Collective.")
    ] = "all_reduce",
    option: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FOLDER", help="Output folder, instead of FOLDER."),
    ] = None,
) -> None:
    """Write an experiment file with comments, to edit, and its JSON Schema for editors.

    \b
    Examples:
      tutti init my_cluster
      tutti init gather --platform dgx_h100 --collective all_gather
    """
    ranks = default_ranks(platform, [4, 8], source="tutti init")
    text = _EXPERIMENT.format(platform=platform, collective=collective, ranks=ranks)
    resolve(parse_toml(text, source="tutti init"), source="tutti init", folder=Path())
    record(text=text)
    to = one_of(to, option, "FOLDER") or Path()
    file = to / "experiment.toml"
    folder(to)
    for path, content in (
        (file, text),
        (to / "experiment.schema.json", schema_text(File.EXPERIMENT)),
    ):
        Study().write(path, partial(_write, content=content))


def _write(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path
