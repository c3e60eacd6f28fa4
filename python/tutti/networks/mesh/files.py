"""Files of meshes with several hops per cycle: the mesh, its traffic and the measurement."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Discriminator, Field, Tag

from tutti.base.errors import TuttiError
from tutti.base.files.described import described_by, table_of
from tutti.base.files.kinds import validated_file
from tutti.base.files.mistakes import mistake
from tutti.base.files.overrides import read_changed
from tutti.base.files.reader import read_toml
from tutti.base.files.tables import Table, kind_of
from tutti.networks.errors import NocError, keys_of_errors
from tutti.networks.experiment import Experiment
from tutti.networks.loads import SearchPlan, runs_of_search
from tutti.networks.mesh.idle import idle_settings
from tutti.networks.mesh.mesh import SmartMesh
from tutti.networks.mesh.traffic import UNITS, ReplicationPlan, Traffic, TrafficKind, ideal
from tutti.view.quantity import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.base.errors import ConfigError
    from tutti.networks.mesh import MeshRun

_LOADS = 12
"""The number of default loads of a sweep, up to the ideal throughput."""
_TOLERANCE = 0.02
"""The default tolerance of the saturation load, as a fraction of the largest load."""


@described_by(SmartMesh)
class SmartMeshTable(Table):
    """A mesh with several hops per cycle; absent keys take the value of the design."""


def mesh_of(table: SmartMeshTable, *, source: str, key: str) -> SmartMesh:
    """Returns the mesh that a table describes.

    Args:
        table: The table.
        source: The file, for messages.
        key: The key of the table.

    Raises:
        ConfigError: The mesh is invalid.
    """
    given = dict(table)
    try:
        return SmartMesh(**{name: given[name] for name in SmartMeshTable.model_fields})
    except NocError as error:
        raise mesh_mistake(error, source=source, key=key) from error


def mesh_mistake(error: TuttiError, *, source: str, key: str, hint: str = "") -> ConfigError:
    """Returns the error of a mesh, with the key that causes it.

    Args:
        error: The error of the core.
        source: The file, for messages.
        key: The key of the mesh's table, used for errors without a key.
        hint: Replaces the hint of the error.
    """
    what = keys_of_errors("mesh").get(error.kind) or str(error.fields.get("what", ""))
    hint = hint or error.hint
    if what not in SmartMeshTable.model_fields:
        return mistake(error.problem, source=source, key=key, hint=hint)
    problem = str(error.fields.get("problem", error.problem))  # without the key
    return mistake(problem, source=source, key=f"{key}.{what}", hint=hint)


@described_by(Traffic)
class SmartTrafficTable(Table):
    """The messages of one kind."""

    kind: TrafficKind
    rate: Annotated[float | None, table_of(Traffic).model_fields["rate"]] = None


@described_by(ReplicationPlan, without={"seed"})
class SmartMeasureTable(Table):
    """Lengths of warm-up, measurement and drain, in cycles, and the number of runs."""


class RawSmart(Table):
    """A mesh with several hops per cycle, and its traffic."""

    title: str = Field(default="", description="Title of reports.")
    seed: Annotated[int, table_of(ReplicationPlan).model_fields["seed"]]
    mesh: SmartMeshTable = Field(description="The mesh.")
    traffic: Annotated[
        Annotated[SmartTrafficTable, Tag("table")]
        | Annotated[Annotated[list[SmartTrafficTable], Field(min_length=1)], Tag("list")],
        Discriminator(kind_of),
    ] = Field(description="The traffic: a table `[traffic]`, or `[[traffic]]` per kind.")
    measure: SmartMeasureTable = Field(
        default_factory=SmartMeasureTable, description="Length of the run."
    )
    output: str = Field(
        default="out/noc",
        min_length=1,
        description="The folder for results, relative to the working directory.",
    )


@dataclass(frozen=True, kw_only=True)
class Smart(Experiment[SmartMesh, tuple[Traffic, ...], ReplicationPlan, "MeshRun"]):
    """A resolved mesh and its traffic."""

    package = "tutti.networks.mesh"

    @property
    def default_loads(self) -> list[float]:
        """Loads up to the ideal throughput, or 1 if the pattern has no bound."""
        bound = ideal(self.network, self.traffic[0])
        most = min(bound.load, 1.0) if bound and self.traffic[0].kind != "reduction" else 1.0
        return [round(most * (index + 1) / _LOADS, 6) for index in range(_LOADS)]

    def remarks(self) -> list[str]:
        """Returns warnings: settings without effect."""
        return list(idle_settings(self.network))

    def search_plan(self, runs: Sequence[MeshRun], tolerance: float | None) -> SearchPlan:
        """Returns a search up to the ideal throughput, or the largest load of runs."""
        bound = ideal(self.network, self.traffic[0])
        highest = max(run.load for run in runs)
        most = max(highest, bound.load if bound else highest)
        if self.traffic[0].kind != "reduction":
            most = min(most, max(1.0, highest))
        share = _TOLERANCE if tolerance is None else min(tolerance / most, 1.0)
        # It searches by two criteria.
        return SearchPlan(most, share, 2 * runs_of_search(1 / share))


def is_smart(path: Path) -> bool:
    """Returns whether a file describes a mesh: whether it has a table `[mesh]`.

    Raises:
        ConfigError: The file cannot be read.
    """
    return "mesh" in read_toml(path)


def load_smart(path: Path, changes: Sequence[str] = (), *, output: Path | None = None) -> Smart:
    """Reads a mesh file.

    Args:
        path: The file.
        changes: Key paths and values, each ``KEY=VALUE``.
        output: Replaces the folder for results of the file.

    Raises:
        ConfigError: The file or a change is invalid.
    """
    example = "mesh.design=sfo_complete or traffic.rate=0.005"
    tables, source = read_changed(path, changes, RawSmart, example=example, output=output)
    return resolve_smart(tables, source=source)


def resolve_smart(tables: dict[str, Any], *, source: str) -> Smart:
    """Validates the tables of a mesh file.

    Args:
        tables: The tables of the file.
        source: The file, for messages.

    Raises:
        ConfigError: The mesh or its traffic is invalid.
    """
    raw = validated_file(RawSmart, tables, source=source)
    several = isinstance(raw.traffic, list)
    given = raw.traffic if isinstance(raw.traffic, list) else [raw.traffic]
    names = [f"traffic[{place}]" if several else "traffic" for place in range(len(given))]
    found = Smart(
        source=source,
        title=raw.title,
        network=mesh_of(raw.mesh, source=source, key="mesh"),
        traffic=tuple(
            _traffic(table, source, name) for table, name in zip(given, names, strict=True)
        ),
        plan=ReplicationPlan(seed=raw.seed, **dict(raw.measure)),
        output=Path(raw.output),
    )
    _check(found, names)
    return found


def _traffic(table: SmartTrafficTable, source: str, key: str) -> Traffic:
    if table.rate is None:
        raise mistake("`rate` is missing", source=source, key=f"{key}.rate",
                      expected=f"{UNITS[table.kind]}, such as 0.005")  # fmt: skip
    for name, kinds in _ONLY.items():
        if name in table.model_fields_set and table.kind not in kinds:
            problem = f"`{name}` does not apply to a {table.kind}"
            expected = f"`{name}` only if kind is {' or '.join(kinds)}"
            raise mistake(problem, source=source, key=f"{key}.{name}", expected=expected)
    return Traffic(**dict(table))


_ONLY = {
    "sources": ("broadcast", "multicast"),
    "members": ("multicast",),
    "pattern": ("unicast",),
    "packet": ("unicast",),
    "outstanding": ("reduction",),
}
"""Keys that apply only to some kinds of traffic."""


def _check(found: Smart, names: list[str]) -> None:
    """Checks mesh and traffic in the core, first each kind of traffic, then all together."""
    from tutti.networks.mesh import check

    for traffic, name in zip(found.traffic, names, strict=True):
        try:
            check(found.network, [traffic], found.plan)
        except TuttiError as error:
            if error.kind in {"clash", "out_of_range"}:
                key = "mesh" if error.fields.get("what") == "vcs" else name
                raise mesh_mistake(error, source=found.source, key=key) from error
            place = keys_of_errors("mesh_traffic").get(error.kind, "pattern")
            key = f"{name}.{place}" if place else name
            problem, hint = error.problem, error.hint
            if error.kind == "buffer_smaller_than_packet":
                problem = f"a packet of {plural(error.packet, 'flit')} exceeds the depth of a VC"
                hint = f"raise `mesh.depth`, the flits of a VC, which is {error.buffer}"
            raise mistake(problem, source=found.source, key=key, hint=hint) from error
    try:
        check(found.network, found.traffic, found.plan)
    except TuttiError as error:
        raise mesh_mistake(error, source=found.source, key="mesh") from error
