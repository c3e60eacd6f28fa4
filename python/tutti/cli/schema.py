"""`tutti schema`: prints the JSON Schemas of configuration files."""

from __future__ import annotations

import enum
import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic.json_schema import GenerateJsonSchema

from tutti.base.units import Frequency, Length, OpRate, Size, Time, TimePerByte
from tutti.cli.document_schema import document_schema
from tutti.collectives.files.tables import RawExperiment
from tutti.networks.coherence.files import RawCoherence
from tutti.networks.flit.files.tables import RawNoc
from tutti.networks.mesh.files import RawSmart
from tutti.platforms.files.platform_file import RawPlatform
from tutti.study.console import record
from tutti.study.document import active
from tutti.sweeps.files import RawSweep
from tutti.training.files.tables import RawTraining

if TYPE_CHECKING:
    from pydantic import BaseModel


class File(enum.StrEnum):
    """A kind of file."""

    EXPERIMENT = "experiment"
    COHERENCE = "coherence"
    NOC = "noc"
    PLATFORM = "platform"
    RESULT = "result"
    SMART = "smart"
    SWEEP = "sweep"
    TRAINING = "training"


def schema(
    file: Annotated[File, typer.Argument(help="Kind of file.")] = File.EXPERIMENT,
) -> None:
    """Print the JSON Schema of a kind of file, for editors and validators.

    `result` is the document that every command prints with --json.

    \b
    Examples:
      tutti schema > experiment.schema.json
      tutti schema result
      tutti schema platform
    """
    text = schema_text(file)
    record(schema=lambda: json.loads(text))
    if not active():
        typer.echo(text, nl=False)


def schema_text(file: File) -> str:
    """Returns the schema as in `schemas/`."""

    class Schema(GenerateJsonSchema):
        """Writes default quantities as text with a unit, as in files."""

        def encode_default(self, dft: Any) -> Any:  # noqa: ANN401 - of any field
            quantities = Frequency | Length | OpRate | Size | Time | TimePerByte
            return str(dft) if isinstance(dft, quantities) else super().encode_default(dft)

    models: dict[File, type[BaseModel]] = {
        File.EXPERIMENT: RawExperiment,
        File.COHERENCE: RawCoherence,
        File.NOC: RawNoc,
        File.SMART: RawSmart,
        File.PLATFORM: RawPlatform,
        File.SWEEP: RawSweep,
        File.TRAINING: RawTraining,
    }
    if file == File.RESULT:
        written = document_schema()
    else:
        written = models[file].model_json_schema(schema_generator=Schema)
    if file == File.SWEEP:
        for key, model in (("experiment", RawExperiment), ("training", RawTraining)):
            _with_keys(written, key, model.model_json_schema(schema_generator=Schema))
    written = {"$schema": "https://json-schema.org/draft/2020-12/schema", **written}
    return json.dumps(written, indent=2, ensure_ascii=False) + "\n"


def _with_keys(sweep: dict[str, Any], key: str, swept: dict[str, Any]) -> None:
    """Adds the keys of a file to a sweep; none is required, as it may be swept."""
    sweep["$defs"] |= swept.pop("$defs")
    del swept["required"]
    forms = sweep["properties"][key]["anyOf"][0]["oneOf"]
    forms[:] = [swept if form.get("type") == "object" else form for form in forms]
