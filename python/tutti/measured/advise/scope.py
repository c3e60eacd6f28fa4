"""Which measurements can be used, and the machine that they describe.

A machine is a system, an MPI library, the memory of the buffers, and the number of ranks per node.
Measurements of other machines take part in the calibration, but no decision is about them.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from tutti.base.files.mistakes import did_you_mean, mistake
from tutti.formats.measurements.schema import POINT_TO_POINT
from tutti.measured.predict.catalogue import execution, is_default
from tutti.measured.predict.features import sides_of
from tutti.mpi.machine import cores_at_hand
from tutti.schedules.errors import AlgorithmError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

CANDIDATE: Final = "algorithm"
"""A row of a known algorithm, for the calibration."""
DEFAULT: Final = "default"
"""A row of the algorithm that the library chose."""
UNKNOWN_RANKS: Final = "number of ranks not stated"
"""Why a row without ranks, and without ranks per node, is of no use."""
MOST_RANKS: Final = 1 << 18
"""Most ranks of a measurement or of a prediction: a ring has as many stages as ranks."""
MOST_ROWS: Final = 6_000
"""Most rows of a calibration: its time grows with their third power."""
_LEAST_US: Final = 0.1
_BENCH: Final = "tutti"
"""The tool of results of `tutti mpi bench`, whose system is the host of rank 0."""
_SEVERAL_HOSTS: Final = " hosts, rank 0 on "
_FAMILIES: Final = (
    ("ompi", "openmpi"),
    ("openmpi", "openmpi"),
    ("mpich", "mpich"),
    ("fj", "fujitsu"),
    ("fujitsu", "fujitsu"),
    ("intel", "intelmpi"),
)
_WITH_NATIVE: Final = {"mpi": "libtutti_mpi"}
"""`tutti mpi bench` calls the library of native collectives `mpi`."""


def library_family(name: str | None) -> str:
    """Returns the name of an MPI library without vendor and version; empty if unknown.

    Examples:
        >>> library_family("customOMPI 5.0.7"), library_family("CRAY_MPICH 8.1.29")
        ('openmpi', 'mpich')
    """
    text = (name or "").strip()
    plain = text.lower().replace("_", "").replace(" ", "")
    for part, family in _FAMILIES:
        if part in plain:
            return family
    first = text.split()[0] if text else ""
    return _WITH_NATIVE.get(first, first)


@dataclass(frozen=True)
class Scope:
    """The machine that decisions are about.

    Attributes:
        system: name of the system; empty if no file states it.
        library: the MPI library, as in :func:`library_family`; empty if unknown.
        gpu: whether buffers are in the memory of a GPU.
        ranks_per_node: number of ranks per node.
        rows: the candidates and defaults of that system, library and memory.
        torus: whether the measurements state the sides of a torus.
        label: the library with its version, as the files name it.
        remarks: other machines in the measurements, for the user.
        is_placed: whether the ranks per node are known, from measurements or from the request.
    """

    system: str
    library: str
    gpu: bool
    ranks_per_node: int
    rows: pl.DataFrame = field(repr=False)
    torus: bool = False
    label: str | None = None
    remarks: tuple[str, ...] = ()
    is_placed: bool = False

    @property
    def description(self) -> str:
        """The machine in words."""
        per_node = f"{self.ranks_per_node} rank{'s' if self.ranks_per_node > 1 else ''} per node"
        memory = "GPU memory" if self.gpu else "host memory"
        named = (self.system or "one system", self.library or "unknown library")
        return ", ".join([*named, per_node, memory])

    def cautions(self, ranks: int) -> Iterator[str]:
        """Yields warnings on measurements of one host for several, and on crowded cores.

        Args:
            ranks: The largest number of ranks to decide for.
        """
        used = self.rows.filter(pl.col("role") == CANDIDATE, ~pl.col("emulated"))
        several = pl.col("system").str.contains(_SEVERAL_HOSTS, literal=True)
        on_one = (pl.col("tool") == _BENCH) & ~several
        stated = ~pl.col("assumed") & (pl.col("nodes") == 1)
        is_one = (on_one | stated).fill_null(value=False)
        nodes = ranks // self.ranks_per_node
        if len(used) and nodes > 1 and used.select(is_one.all()).item():
            yield (
                "warning: all measurements are of one host: they do not show messages between the "
                f"{nodes:,} nodes of a larger job"
            )
        here = used.filter(on_one, pl.col("system") == platform.node())
        most, cores = here["ranks"].max(), cores_at_hand()
        if isinstance(most, int) and most > cores:
            yield (
                f"warning: {most:,} ranks were measured on {cores:,} cores: the times are for such "
                "runs, not for a core per rank"
            )


def classified(
    rows: pl.DataFrame, *, ranks_per_node: int | None = None, library: str = ""
) -> pl.DataFrame:
    """Adds what each row can be used for.

    Args:
        rows: with the columns of :data:`tutti.formats.measurements.MEASUREMENTS`.
        ranks_per_node: for rows that state ranks but no nodes; by default 1. Fewer ranks are on
            one node.
        library: the library of rows that state none, as in :func:`library_family`.

    Returns:
        The rows with columns `role` (:data:`CANDIDATE`, :data:`DEFAULT`, or the reason why the row
        is of no use), `family` (of the library) and `assumed` (whether the number of nodes is).
    """
    per_node = ranks_per_node or 1
    assumed = pl.col("nodes").is_null() & pl.col("ranks").is_not_null()
    rows = rows.with_columns(
        pl.when(assumed).then(pl.max_horizontal(pl.col("ranks") // per_node, 1))
        .otherwise("nodes").alias("nodes"),
        pl.when(assumed).then(pl.min_horizontal("ranks", pl.lit(per_node, pl.Int64)))
        .otherwise(pl.col("ranks_per_node").fill_null(1)).alias("ranks_per_node"),
        pl.col("gpu").fill_null(value=False),
        pl.col("system").fill_null(""),
        assumed.alias("assumed"),
    )  # fmt: skip
    families = [library_family(one) or library for one in rows["library"]]
    roles = [_role(one) for one in rows.iter_rows(named=True)]
    return rows.with_columns(
        pl.Series("family", families, pl.String), pl.Series("role", roles, pl.String)
    )


def _role(row: Mapping[str, Any]) -> str:
    collective, algorithm, ranks = row["collective"], row["library_algorithm"], row["ranks"]
    few = ranks is not None and ranks < 2
    short = row["time_us"] is None or row["time_us"] <= _LEAST_US
    each = row["ranks_per_node"]
    odd = row["assumed"] and ranks is not None and row["nodes"] * each != ranks
    reasons = (
        (collective in POINT_TO_POINT, "point-to-point times"),
        (not row["size_bytes"], f"{collective} of 0 B"),
        (ranks is None, UNKNOWN_RANKS),
        (few, "fewer than 2 ranks"),
        (odd, f"{ranks} ranks do not fill nodes of {each} ranks"),
        (
            ranks is not None and max(ranks, row["nodes"]) > MOST_RANKS,
            f"more than {MOST_RANKS:,} ranks",
        ),
        (short, f"no time above {_LEAST_US} us"),
        (is_default(algorithm), DEFAULT),
    )
    for holds, reason in reasons:
        if holds:
            return reason
    if execution(collective, algorithm) is None:
        return f"unknown algorithm {algorithm} of {collective}"
    if not describable(row):
        return f"{algorithm} of {collective} has no known stages on {ranks:,} ranks"
    return CANDIDATE


def describable(row: Mapping[str, Any]) -> bool:
    """Returns whether the stages of a row's algorithm are known at its rank count.

    Args:
        row: with the columns of :data:`tutti.formats.measurements.MEASUREMENTS`.
    """
    known = execution(row["collective"], row["library_algorithm"])
    if known is None:
        return False
    sides = sides_of(row["shape"], row["nodes"])
    try:
        return known.stages(row["ranks"], sides, float(row["size_bytes"])) is not None
    except AlgorithmError:  # such as recursive_multiplying:a2,a2 on 8 ranks
        return False


def choose_scope(
    rows: pl.DataFrame,
    *,
    system: str | None = None,
    library: str | None = None,
    memory: str | None = None,
    ranks_per_node: int | None = None,
) -> Scope:
    """Selects the machine that decisions are about.

    Each property that the user leaves open has its most frequent value; a remark names the others.

    Args:
        rows: as :func:`classified` returns them, with at least one candidate.
        system: name of the system.
        library: the MPI library, as in :func:`library_family`.
        memory: `host` or `gpu`.
        ranks_per_node: number of ranks per node of the jobs to decide for; may be new.

    Raises:
        ConfigError: No measurement has the requested property.
    """
    remarks: list[str] = []
    memories = pl.when("gpu").then(pl.lit("gpu")).otherwise(pl.lit("host"))
    known, chosen = rows.with_columns(memories.alias("memory")), dict[str, Any]()
    for column, value in (("system", system), ("family", library), ("memory", memory)):
        chosen[column] = _chosen(known, column, value, remarks)
        known = known.filter(pl.col(column) == chosen[column])
    candidates = known.filter(pl.col("role") == CANDIDATE)
    labels = candidates["library"].drop_nulls().mode().sort()
    return Scope(
        system=chosen["system"],
        library=chosen["family"],
        gpu=chosen["memory"] == "gpu",
        ranks_per_node=_ranks_per_node(known, ranks_per_node, remarks),
        rows=known.drop("memory"),
        torus=bool(candidates["shape"].str.contains("x").any()),
        label=labels[0] if len(labels) else None,
        remarks=tuple(remarks),
        is_placed=ranks_per_node is not None or not candidates["assumed"].all(),
    )


def _ranks_per_node(known: pl.DataFrame, requested: int | None, remarks: list[str]) -> int:
    if requested is None:
        return int(_chosen(known, "ranks_per_node", None, remarks))
    if requested not in known.filter(pl.col("role") == CANDIDATE)["ranks_per_node"]:
        remarks.append(
            f"warning: no measurement has {requested} ranks per node: predictions carry those of "
            "other numbers over, and have no confidence"
        )
    return requested


_WORDS: Final = {
    "system": ("system", "--system"),
    "family": ("MPI library", "--library"),
    "memory": ("memory", "--memory"),
    "ranks_per_node": ("number of ranks per node", "--ranks-per-node"),
}


def _chosen(rows: pl.DataFrame, column: str, value: str | None, remarks: list[str]) -> Any:  # noqa: ANN401
    """Returns the requested value of a column, or its most frequent one among candidates."""
    counts = (
        rows.filter(pl.col("role") == CANDIDATE)
        .group_by(column)
        .agg(pl.len().alias("rows"))
        .sort(["rows", column], descending=[True, False])
    )
    known = counts[column].to_list()
    word, option = _WORDS[column]
    if value is not None:
        if value not in known:
            raise _absent(word, option, value, known)
        return value
    if len(known) > 1:
        listed = _listed([f"{one or 'not stated'} ({rows:,} rows)" for one, rows in counts.rows()])
        remarks.append(f"the measurements have more than one {word}: {listed}; advice is for "
                       f"{known[0] or 'that not stated'}, {option} selects another")  # fmt: skip
    return known[0]


def _absent(word: str, option: str, value: str, known: Sequence[str]) -> Exception:
    names = [str(one) for one in known if one]
    return mistake(
        f"no measurement has this {word}",
        source=option,
        value=value,
        expected=" or ".join(names) or f"no {option}, since no file states it",
        hint=did_you_mean(value, names),
    )


_MOST_LISTED: Final = 6


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_LISTED
    return ", ".join(names[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")
