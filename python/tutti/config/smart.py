"""Files of meshes whose flits make several hops in a cycle: the mesh, its traffic, for how long."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Discriminator, Field, Tag

from tutti.config.changes import read_changed
from tutti.config.kinds import validated_file
from tutti.errors import NocError, TuttiError
from tutti.files.mistakes import mistake
from tutti.files.reader import read_toml
from tutti.files.tables import Table, kind_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.errors import ConfigError
    from tutti.noc.smart import Plan, SmartMesh, Traffic

_MOST_DELAY = 1 << 16
_MOST_CYCLES = 1 << 40
_Size = Annotated[int, Field(ge=2, le=64)]
_Delay = Annotated[int, Field(ge=0, le=_MOST_DELAY)]
_Cycles = Annotated[int, Field(ge=0, le=_MOST_CYCLES)]


class SmartMeshTable(Table):
    """A mesh whose flits make several hops in a cycle; what is left out is as in its design."""

    design: Annotated[
        str,
        Field(default="sfo_greedy", description="Its design; docs/models/smart.md lists them."),
    ]
    columns: Annotated[_Size, Field(default=8, description="Routers in a row, 2 to 64.")]
    rows: Annotated[_Size, Field(default=8, description="Routers in a column, 2 to 64.")]
    hpc_max: Annotated[
        Annotated[int, Field(ge=1, le=64)] | None,
        Field(
            default=None,
            description="Hops that a flit can make in a cycle, 1 to 64; past a `reducer` 9 at "
            "most.",
        ),
    ]
    priority: Annotated[
        Literal["local", "bypass"] | None,
        Field(default=None, description="Who goes first: what comes from nearer, or from farther."),
    ]
    fan_out: Annotated[
        str | None,
        Field(
            default=None,
            description="What a multicast is to routers: `unicasts`, `greedy:svt`, `greedy:pvt` or "
            "`complete:` and its interval in cycles.",
        ),
    ]
    fan_in: Annotated[
        Literal["unicasts", "greedy", "complete"] | None,
        Field(default=None, description="What the answers of a reduction are to routers."),
    ]
    yx: Annotated[
        bool | None, Field(default=None, description="Whether packets go along y before x.")
    ]
    vcs: Annotated[
        Annotated[int, Field(ge=1, le=64)] | None,
        Field(
            default=None,
            description="Virtual channels of a message class at each port, 1 to 64; on private "
            "trees for each of the three stages of a broadcast.",
        ),
    ]
    depth: Annotated[
        Annotated[int, Field(ge=1, le=1024)] | None,
        Field(default=None, description="Flits of a VC, 1 to 1024; no packet has more."),
    ]
    split_vcs: Annotated[
        bool | None,
        Field(
            default=None,
            description="Whether the three stages share the VCs out instead, which are 3 or more "
            "then.",
        ),
    ]
    credit_delay: Annotated[
        _Delay | None,
        Field(default=None, description="Cycles from when a VC is vacated to when it counts."),
    ]
    sag_extra_cycle: Annotated[
        Annotated[int, Field(ge=0, le=1)] | None,
        Field(default=None, description="Cycles that setting up a path takes more, 0 or 1."),
    ]
    eject_cost: Annotated[
        _Delay | None,
        Field(default=None, description="Cycles from winning the ejection port to arrival."),
    ]
    art_entries: Annotated[
        Annotated[int, Field(ge=1, le=1 << 16)] | None,
        Field(
            default=None,
            description="Entries of the aggregation reduction tables (ART) of `complete` answers, "
            "and so reductions under way at once: one for each root at least, which are the 4 "
            "corners on private trees, else all nodes.",
        ),
    ]
    reducer: Annotated[
        bool | None,
        Field(
            default=None,
            description="Whether operands can be combined with what passes; `hpc_max` is 9 at most "
            "then.",
        ),
    ]
    patience: Annotated[
        Annotated[int, Field(ge=1, lt=1 << 32)] | None,
        Field(default=None, description="Cycles without any move that are a deadlock."),
    ]


_PLACES = {"unknown_design": "design", "fan_out": "fan_out"}
"""Which key a mistake is about, by its kind; what the mistake names itself where it is neither."""


def mesh_of(table: SmartMeshTable, *, source: str, key: str) -> SmartMesh:
    """The mesh that a table stands for.

    Args:
        table: It.
        source: The file, for messages.
        key: Where the table stands in it.

    Raises:
        ConfigError: There is no such mesh.
    """
    from tutti.noc.smart import SmartMesh

    try:
        return SmartMesh(**{name: getattr(table, name) for name in SmartMeshTable.model_fields})
    except NocError as error:
        raise mesh_mistake(error, source=source, key=key) from None


def mesh_mistake(error: TuttiError, *, source: str, key: str, hint: str = "") -> ConfigError:
    """What is wrong with a mesh, told of the key that it is about.

    Args:
        error: As the core tells it.
        source: The file, for messages.
        key: Where the mesh's table stands in it; what is about no key of it is told of this.
        hint: What to try, where it is more than the error itself says.
    """
    what = _PLACES.get(error.kind) or str(error.fields.get("what", ""))
    hint = hint or error.hint
    if what not in SmartMeshTable.model_fields:
        return mistake(error.problem, source=source, key=key, hint=hint)
    problem = str(error.fields.get("problem", error.problem))  # which begins with no key
    return mistake(problem, source=source, key=f"{key}.{what}", hint=hint)


class SmartTrafficTable(Table):
    """Messages of one kind."""

    kind: Annotated[
        Literal["unicast", "broadcast", "multicast", "reduction"],
        Field(
            description="`unicast`; `broadcast`, a flit to every other node; `multicast`, a flit "
            "to some; `reduction`, a flit from every other node at once to one that is drawn."
        ),
    ]
    rate: Annotated[
        float | None,
        Field(
            default=None,
            ge=0,
            allow_inf_nan=False,
            description="Of unicasts flits per node and cycle, of broadcasts and multicasts "
            "messages per source and cycle, of reductions messages per cycle on the whole mesh.",
        ),
    ]
    sources: Annotated[
        Literal["all", "corners"],
        Field(default="all", description="Who sends broadcasts and multicasts."),
    ]
    members: Annotated[
        Literal["any_number", "half"],
        Field(
            default="any_number",
            description="To whom multicasts go: to each number of nodes as often, or to each node "
            "with a chance of a half.",
        ),
    ]
    pattern: Annotated[
        str,
        Field(
            default="uniform",
            description="Where unicasts go, as `name` or `name:argument`; docs/models/flit.md "
            "lists them.",
        ),
    ]
    packet: Annotated[
        Annotated[Annotated[int, Field(ge=1, lt=1 << 32)], Tag("value")]
        | Annotated[str, Tag("text")],
        Discriminator(lambda value: "text" if isinstance(value, str) else "value"),
        Field(
            default=1,
            description='Flits of unicasts: a number, several such as "1,5", or with weights, '
            '"1,5/3,1".',
        ),
    ]
    process: Annotated[
        str,
        Field(
            default="bernoulli",
            description="When: `bernoulli`, `periodic`, `periodic:aligned` or `on_off:` with two "
            "of `alpha=`, `beta=`, `r1=`.",
        ),
    ]
    message_class: Annotated[
        int,
        Field(default=0, ge=0, le=15, description="Those of one class share VCs; 0 to 15."),
    ]


class SmartMeasureTable(Table):
    """How long to run, in cycles, and how often."""

    warmup: Annotated[
        _Cycles, Field(default=2_000, description="Cycles before those that are measured.")
    ]
    measure: Annotated[
        int,
        Field(
            default=10_000,
            ge=1,
            le=_MOST_CYCLES,
            description="Cycles that are measured, 1 or more.",
        ),
    ]
    drain: Annotated[
        _Cycles,
        Field(default=10_000, description="Cycles after them at most, until all has ended."),
    ]
    seeds: Annotated[
        int,
        Field(
            default=5,
            ge=1,
            le=10_000,
            description="Runs that differ in their seed only, for confidence intervals; 1 to "
            "10,000.",
        ),
    ]


class RawSmart(Table):
    """A mesh whose flits make several hops in a cycle, and the traffic on it."""

    title: Annotated[str, Field(default="", description="What is asked, for reports.")]
    seed: Annotated[
        int,
        Field(default=1, ge=0, lt=1 << 62, description="The first seed of all that is random."),
    ]
    mesh: Annotated[SmartMeshTable, Field(description="The mesh.")]
    traffic: Annotated[
        Annotated[SmartTrafficTable, Tag("table")]
        | Annotated[Annotated[list[SmartTrafficTable], Field(min_length=1)], Tag("list")],
        Discriminator(kind_of),
        Field(description="What is sent: a table `[traffic]`, or `[[traffic]]` for each kind."),
    ]
    measure: Annotated[
        SmartMeasureTable, Field(default_factory=SmartMeasureTable, description="How long to run.")
    ]
    output: Annotated[
        str,
        Field(
            default="out/noc",
            min_length=1,
            description="The folder for results, from where the command is run.",
        ),
    ]


@dataclass(frozen=True, kw_only=True)
class Smart:
    """A mesh and its traffic, as they can be run.

    Attributes:
        source: The file, for messages.
        title: What is asked.
        mesh: The mesh.
        traffic: Of each kind.
        plan: How long to measure.
        output: The folder for results.
    """

    source: str
    title: str
    mesh: SmartMesh
    traffic: tuple[Traffic, ...]
    plan: Plan
    output: Path


def is_smart(path: Path) -> bool:
    """Whether a file describes such a mesh: whether it has a table `[mesh]`.

    Raises:
        ConfigError: The file cannot be read.
    """
    return "mesh" in read_toml(path)


def load_smart(path: Path, changes: Sequence[str] = (), *, output: Path | None = None) -> Smart:
    """Reads the file of a mesh.

    Args:
        path: The file.
        changes: Each ``KEY=VALUE``: a key path, and what it is instead.
        output: The folder for results, instead of the file's.

    Raises:
        ConfigError: The file or a change cannot be used.
    """
    example = "mesh.design=sfo_complete or traffic.rate=0.005"
    tables, source = read_changed(path, changes, RawSmart, example=example, output=output)
    raw = validated_file(RawSmart, tables, source=source)
    several = isinstance(raw.traffic, list)
    given = raw.traffic if isinstance(raw.traffic, list) else [raw.traffic]
    names = [f"traffic[{place}]" if several else "traffic" for place in range(len(given))]
    found = Smart(
        source=source,
        title=raw.title,
        mesh=mesh_of(raw.mesh, source=source, key="mesh"),
        traffic=tuple(
            _traffic(table, source, name) for table, name in zip(given, names, strict=True)
        ),
        plan=_plan(raw),
        output=Path(raw.output),
    )
    _check(found, names)
    return found


def _plan(raw: RawSmart) -> Plan:
    from tutti.noc.smart import Plan

    return Plan(seed=raw.seed, **raw.measure.model_dump())


def _traffic(table: SmartTrafficTable, source: str, key: str) -> Traffic:
    from tutti.noc.smart import UNITS, Traffic

    if table.rate is None:
        raise mistake("`rate` is missing", source=source, key=f"{key}.rate",
                      expected=f"{UNITS[table.kind]}, such as 0.005")  # fmt: skip
    for name, kinds in _ONLY.items():
        if name in table.model_fields_set and table.kind not in kinds:
            problem = f"`{name}` says nothing of a {table.kind}"
            expected = f"only where kind is {' or '.join(kinds)}"
            raise mistake(problem, source=source, key=f"{key}.{name}", expected=expected)
    return Traffic(**{**table.model_dump(), "rate": table.rate})


_ONLY = {
    "sources": ("broadcast", "multicast"),
    "members": ("multicast",),
    "pattern": ("unicast",),
    "packet": ("unicast",),
}
"""Keys of traffic, and the kinds that they are for."""

_TRAFFIC_PLACES = {
    "chance": "rate",
    "unknown_process": "process",
    "bursts": "process",
    "out_of_reach": "process",
    "stuck": "process",
    "no_flits": "packet",
    "no_weight": "packet",
    "buffer_smaller_than_packet": "packet",
    "bad_packet": "message_class",
    "malformed": "",
}
"""Which key of traffic a mistake is about, by its kind; `pattern` where it is none of these."""


def _check(found: Smart, names: list[str]) -> None:
    """Lets the core refuse what makes no sense together, kind by kind, then all at once."""
    from tutti.noc.smart import check

    for traffic, name in zip(found.traffic, names, strict=True):
        try:
            check(found.mesh, [traffic], found.plan)
        except TuttiError as error:
            if error.kind in {"clash", "out_of_range"}:
                key = "mesh" if error.fields.get("what") == "vcs" else name
                raise mesh_mistake(error, source=found.source, key=key) from None
            place = _TRAFFIC_PLACES.get(error.kind, "pattern")
            key = f"{name}.{place}" if place else name
            problem, hint = error.problem, error.hint
            if error.kind == "buffer_smaller_than_packet":
                problem = f"no VC holds a packet of {error.packet} flits"
                hint = f"raise `mesh.depth`, the flits of a VC, which is {error.buffer}"
            raise mistake(problem, source=found.source, key=key, hint=hint) from None
    try:
        check(found.mesh, found.traffic, found.plan)
    except TuttiError as error:
        raise mesh_mistake(error, source=found.source, key="mesh") from None
