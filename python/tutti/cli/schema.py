"""`tutti schema`: the JSON Schema of the files that tutti reads."""

from __future__ import annotations

import enum
import json
from typing import Annotated

import typer


class File(enum.StrEnum):
    """A kind of file."""

    EXPERIMENT = "experiment"
    PLATFORM = "platform"


def schema(
    file: Annotated[File, typer.Argument(help="Which kind of file.")] = File.EXPERIMENT,
) -> None:
    """Print the JSON Schema of experiment or platform files, for editors and checkers.

    \b
    Examples:
      tutti schema > experiment.schema.json
      tutti schema platform
    """
    typer.echo(schema_text(file), nl=False)


def schema_text(file: File) -> str:
    """The schema as it stands in `schemas/`."""
    from tutti.config import RawExperiment, RawPlatform

    model = RawExperiment if file == File.EXPERIMENT else RawPlatform
    written = model.model_json_schema(by_alias=True)
    written = {"$schema": "https://json-schema.org/draft/2020-12/schema", **written}
    return json.dumps(written, indent=2, ensure_ascii=False) + "\n"
