"""Files of kernels on chips with coherent caches: kernels, meshes and caches."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Discriminator, Field, Tag

from tutti.base.errors import ConfigError
from tutti.base.files.described import described_by, table_of
from tutti.base.files.kinds import validated_file
from tutti.base.files.mistakes import did_you_mean, mistake, moved
from tutti.base.files.overrides import with_changes, with_values
from tutti.base.files.reader import read_toml
from tutti.base.files.tables import Table, kind_of
from tutti.networks.coherence import Case, Chip, check
from tutti.networks.coherence.runs import Protocol, Scale
from tutti.networks.coherence.traces import PREFIX
from tutti.networks.errors import CoherenceError, NocError, keys_of_errors
from tutti.networks.mesh.files import SmartMeshTable, mesh_mistake, mesh_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.base.files.overrides import Values
    from tutti.networks.mesh import SmartMesh

_CASE = table_of(Case).model_fields


@described_by(Chip)
class ChipTable(Table):
    """Caches, protocol and memory; delays in cycles."""

    protocol: Annotated[Protocol, _CASE["protocol"]]


_Names = Annotated[
    Annotated[str, Tag("value")]
    | Annotated[list[str], Field(min_length=1, max_length=100), Tag("list")],
    Discriminator(kind_of),
]


class RawCoherence(Table):
    """Kernels on a chip with coherent caches."""

    title: str = Field(default="", description="Title of reports.")
    kernel: _Names = Field(
        description="The kernel or kernels; docs/models/coherence.md lists them. `trace:FILE` "
        "repeats the accesses of a file, relative to this file."
    )
    scale: Annotated[Scale, _CASE["scale"]]
    cores: Annotated[int | None, _CASE["cores"]]
    seed: Annotated[int, _CASE["seed"]]
    designs: list[str] | None = Field(
        default=None,
        min_length=1,
        max_length=100,
        description="Mesh designs to compare, instead of the design in `[mesh]`.",
    )
    mesh: SmartMeshTable = Field(
        default_factory=SmartMeshTable, description="The mesh between the caches."
    )
    chip: Annotated[
        ChipTable, Field(default_factory=ChipTable, description="Caches, protocol and memory.")
    ]
    output: str = Field(
        default="out/coherence",
        min_length=1,
        description="The folder for results, relative to the working directory.",
    )

    @property
    def kernels(self) -> list[str]:
        """The kernels."""
        return [self.kernel] if isinstance(self.kernel, str) else self.kernel


@dataclass(frozen=True, kw_only=True)
class Coherence:
    """Resolved kernels on chips.

    Attributes:
        source: The file, for messages.
        title: Title of reports.
        cases: Every kernel on every mesh, kernel by kernel.
        output: The folder for results.
    """

    source: str
    title: str
    cases: tuple[Case, ...]
    output: Path


def load_coherence(
    path: Path | None,
    changes: Sequence[str] = (),
    *,
    options: Values | None = None,
    output: Path | None = None,
) -> Coherence:
    """Reads a file of kernels on a chip.

    Args:
        path: The file; None if options give all keys.
        changes: Key paths and values, each ``KEY=VALUE``.
        options: Option and value by key path, such as ``chip.protocol``.
        output: Replaces the folder for results of the file.

    Raises:
        ConfigError: The file, a trace, a change or an option is invalid.
    """
    example = "chip.protocol=tc or mesh.design=smart_1d"
    tables = {} if path is None else read_toml(path)
    tables = with_changes(tables, changes, RawCoherence, example=example)
    tables = with_values(tables, options or {})
    if output is not None:
        tables = {**tables, "output": str(output)}
    source = "tutti coherence run" if path is None else str(path)
    try:
        return _resolved(tables, source, Path() if path is None else path.parent)
    except ConfigError as error:
        raise _where_given(error, changes, options or {}) from None


def _resolved(tables: dict[str, Any], source: str, folder: Path) -> Coherence:
    raw = validated_file(RawCoherence, tables, source=source)
    meshes = _meshes(raw, source)
    kernels = [_within_folder(kernel, folder) for kernel in raw.kernels]
    cases = tuple(_case(raw, kernel, mesh, source) for kernel in kernels for mesh in meshes)
    return Coherence(source=source, title=raw.title, cases=cases, output=Path(raw.output))


def _within_folder(kernel: str, folder: Path) -> str:
    """Returns a kernel; the file of a trace is relative to a folder."""
    if not kernel.startswith(PREFIX) or kernel == PREFIX:
        return kernel
    return f"{PREFIX}{folder / kernel.removeprefix(PREFIX)}"


def _where_given(error: ConfigError, changes: Sequence[str], options: Values) -> ConfigError:
    """Returns the error with the option or change as its source, if that gave the value."""
    key = str(error.fields.get("key", ""))
    for name, (option, _) in options.items():
        if _within(key, name):
            return moved(error, source=option, key="")
    if any(_within(key, change.partition("=")[0].strip()) for change in changes):
        return moved(error, source="--set", key=key)
    return error


def _within(key: str, name: str) -> bool:
    """Returns whether a key path equals `name` or lies below it."""
    return key == name or key.startswith((f"{name}.", f"{name}["))


def _meshes(raw: RawCoherence, source: str) -> list[SmartMesh]:
    if raw.designs is None:
        return [mesh_of(raw.mesh, source=source, key="mesh")]
    from tutti.networks.mesh import designs

    meshes = []
    for place, design in enumerate(raw.designs):
        table = raw.mesh.model_copy(update={"design": design})
        try:
            meshes.append(mesh_of(table, source=source, key="mesh"))
        except ConfigError as error:
            if error.fields.get("key") == "mesh.design":
                known = sorted(designs())
                raise mistake(
                    f"unknown mesh design `{design}`",
                    source=source,
                    key=f"designs[{place}]",
                    expected=f"one of {', '.join(known)}",
                    hint=did_you_mean(design, known) or "`tutti coherence list` describes them",
                ) from None
            raise
    return meshes


def _case(raw: RawCoherence, kernel: str, mesh: SmartMesh, source: str) -> Case:
    try:
        case = _checked(raw, kernel, mesh)
    except CoherenceError as error:
        of_chip = f"chip.{error.fields.get('what', '')}".rstrip(".")
        key = keys_of_errors("coherence").get(error.kind, of_chip)
        hint = error.hint
        if error.kind == "unknown_kernel" and "," in kernel:
            names = ", ".join(f'"{name.strip()}"' for name in kernel.split(","))
            hint = f"give several as a list: kernel = [{names}]"
        if error.kind == "cores":
            hint = f"a larger scale has more work; {_fewer_cores(raw, mesh)}"
        raise mistake(error.problem, source=source, key=key, hint=hint) from None
    except NocError as error:
        hint = _NO_REDUCER if error.fields.get("what") == "hpc_max" else ""
        raise mesh_mistake(error, source=source, key="mesh", hint=hint) from None
    return case


def _checked(raw: RawCoherence, kernel: str, mesh: SmartMesh) -> Case:
    """Returns a case that can run.

    Raises:
        CoherenceError: As :func:`check`.
        NocError: As :func:`check`.
    """
    chip = dict(raw.chip)
    protocol = chip.pop("protocol")
    case = Case(kernel=kernel, protocol=protocol, mesh=mesh, scale=raw.scale, cores=raw.cores,
                seed=raw.seed, chip=Chip(**chip))  # fmt: skip
    check(case)
    return case


def _fewer_cores(raw: RawCoherence, mesh: SmartMesh) -> str:
    """States on how many cores all kernels that have too many of them run."""
    most: dict[str, int] = {}
    for kernel in raw.kernels:
        try:
            _checked(raw, kernel, mesh)
        except CoherenceError as error:
            if error.kind == "cores":
                most[kernel] = int(error.fields["most"])
    return f"`cores = {min(most.values())}` suits {', '.join(most)}"


_NO_REDUCER = (
    "acknowledgements of `ht` report whether a core has a copy, so routers that combine them need "
    'a reducer; `chip.shared_hint = "never"` needs no reducer'
)
