"""From measurements to decisions for larger jobs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import polars as pl

from tutti.base.files.mistakes import did_you_mean, mistake
from tutti.measured.advise.decide import decisions, default_ratios, predictions, ranges
from tutti.measured.advise.hardware import (
    known_hardware,
    stated_ranks_per_node,
    stated_system,
)
from tutti.measured.advise.next import next_measurements
from tutti.measured.advise.questions import (
    candidates,
    measured_ranks,
    measured_sizes,
    questions,
    targets,
)
from tutti.measured.advise.rules import ruled_times, target_of
from tutti.measured.advise.scope import (
    CANDIDATE,
    DEFAULT,
    MOST_ROWS,
    UNKNOWN_RANKS,
    choose_scope,
    classified,
    describable,
)
from tutti.measured.predict.model import calibrate
from tutti.schedules.mpi_names import collective_name
from tutti.view.notebook import view_html
from tutti.view.tables import frame_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tutti.measured.advise.confidence import Predictor
    from tutti.measured.advise.decide import Decision, DefaultRatio, SizeRange
    from tutti.measured.advise.hardware import KnownHardware
    from tutti.measured.advise.next import NextMeasurement
    from tutti.measured.advise.questions import Target
    from tutti.measured.advise.scope import Scope

FARTHEST: Final = 16
"""Factor in ranks beyond which a prediction has a warning."""
FEWEST_RANK_COUNTS: Final = 3
"""Number of rank counts below which a prediction has a warning."""


@dataclass(frozen=True)
class Usage:
    """What the rows were used for.

    Attributes:
        used: rows of the calibration.
        defaults: rows of the library's default.
        unused: number of rows by the reason why they are of no use.
        assumed: number of rows that state no number of nodes.
    """

    used: int
    defaults: int
    unused: dict[str, int]
    assumed: int


@dataclass(frozen=True)
class Extrapolation:
    """How far predictions of a collective are from its measurements.

    Attributes:
        collective: the collective.
        measured: its rank counts, smallest first.
        ranks: the number of ranks predicted.
    """

    collective: str
    measured: tuple[int, ...]
    ranks: int

    @property
    def factor(self) -> float:
        """Ratio of the predicted rank count to the largest measured one."""
        return self.ranks / self.measured[-1]


@dataclass(frozen=True)
class Advice:
    """Decisions for larger jobs, and what they are based on.

    Attributes:
        scope: the machine.
        hardware: what the calibration started from.
        usage: what the rows were used for.
        predictions: with the columns of :data:`tutti.measured.advise.decide.PREDICTIONS`.
        decisions: the choice of each collective, rank count and size.
        extrapolations: of each collective and rank count.
        ratios: measured times of the default, by collective and size.
        missing: collective, algorithm and rank count that the model cannot describe.
        next: what to measure next, most useful first.
    """

    scope: Scope
    hardware: KnownHardware
    usage: Usage
    predictions: pl.DataFrame = field(repr=False)
    decisions: Sequence[Decision] = field(repr=False)
    extrapolations: Sequence[Extrapolation]
    ratios: dict[tuple[str, int], DefaultRatio] = field(repr=False)
    missing: Sequence[tuple[str, str, int]]
    next: Sequence[NextMeasurement]

    @property
    def ranges(self) -> list[SizeRange]:
        """Neighbouring sizes with the same choice, joined."""
        return ranges(self.decisions)

    @property
    def frame(self) -> pl.DataFrame:
        """A row per range of sizes, with the figures of its least certain size; times in us."""
        from .view import regions

        return frame_of(regions(), self.ranges)

    def _repr_html_(self) -> str:
        """Returns facts and decisions for notebooks."""
        from .view import advice_view

        return view_html(advice_view(self))


@dataclass(frozen=True)
class AdviceRequest:
    """What to decide, and for which machine.

    Attributes:
        ranks: rank counts of the jobs; None for 4 and 16 times the largest measured.
        shapes: sides of the torus, one for each job.
        ranks_per_node: number of ranks per node; None for the most frequent.
        collectives: collectives; None for those measured.
        sizes: sizes in bytes; None for those measured.
        smallest: smallest of the measured sizes to decide for, in bytes.
        largest: largest of them.
        algorithms: which to decide among, of :data:`tutti.measured.advise.questions.CANDIDATES`.
        system: name of the system; None for the most frequent.
        library: the MPI library, as in :func:`tutti.measured.advise.scope.library_family`.
        memory: `host` or `gpu`.
        platform: name or path of the platform of the system; None to search by the system's name.
    """

    ranks: Sequence[int] | None = None
    shapes: Sequence[str] | None = None
    ranks_per_node: int | None = None
    collectives: Sequence[str] | None = None
    sizes: Sequence[int] | None = None
    smallest: int = 0
    largest: int = 1 << 62
    algorithms: str = "measured"
    system: str | None = None
    library: str | None = None
    memory: str | None = None
    platform: str | None = None


def advise(
    rows: pl.DataFrame,
    request: AdviceRequest | None = None,
    *,
    fit: Callable[[pl.DataFrame], Predictor] | None = None,
) -> Advice:
    """Decides which algorithms larger jobs should use.

    Args:
        rows: measurements, with the columns of :data:`tutti.formats.measurements.MEASUREMENTS`.
        request: what to decide.
        fit: calibrates a model; None for :func:`tutti.measured.predict.model.calibrate`.

    Raises:
        ConfigError: No row can be used, or the request does not fit the measurements.
    """
    request = request or AdviceRequest()
    per_node = request.ranks_per_node or stated_ranks_per_node(request.platform)
    known = classified(rows, ranks_per_node=per_node, library=request.library or "")
    usable = _usable(known)
    scope = _scope(known, request)
    jobs = targets(scope, request.ranks, request.shapes)
    collectives = _collectives(scope, request.collectives)
    named = {one: candidates(scope, one, request.algorithms) for one in collectives}
    frame = _questions(scope, named, jobs, request)
    hardware = known_hardware(usable, scope, request.platform)
    model = fit(usable) if fit is not None else calibrate(usable, hardware=hardware.of_systems)
    ratios = default_ratios(scope)
    predicted = predictions(model, frame, ratios)
    if predicted.is_empty():
        raise _nothing_to_predict()
    found = _based(decisions(predicted), predicted, scope)
    return Advice(
        scope=scope,
        hardware=hardware,
        usage=_usage(known, usable, model),
        predictions=predicted,
        decisions=found,
        extrapolations=_extrapolations(scope, named, jobs),
        ratios=ratios,
        missing=_missing(named, jobs, predicted),
        next=next_measurements(scope, found),
    )


def _based(found: Sequence[Decision], predicted: pl.DataFrame, scope: Scope) -> list[Decision]:
    """Returns decisions with the time of the rules, and what was measured of the choice."""
    ruled = ruled_times(predicted, target_of(scope.library, scope.label or ""))
    measured = scope.rows.filter(pl.col("role") == CANDIDATE)
    counted = measured.group_by("collective", "library_algorithm").agg(
        pl.col("series").fill_null(1).sum()
    )
    counts = {(collective, name): count for collective, name, count in counted.rows()}
    placed = measured.filter(ranks_per_node=scope.ranks_per_node)
    known = set(placed.select("collective", "library_algorithm").unique().rows())
    return [
        replace(
            one,
            ruled_us=ruled[one.collective, one.ranks, one.size_bytes].ruled_us,
            observations=counts.get((one.collective, one.algorithm), 0),
            is_placed=(one.collective, one.algorithm) in known,
        )
        for one in found
    ]


def _scope(known: pl.DataFrame, request: AdviceRequest) -> Scope:
    usable = known.filter(pl.col("role") == CANDIDATE)
    return choose_scope(
        known,
        system=request.system
        or stated_system(request.platform, usable["system"].unique().to_list()),
        library=request.library,
        memory=request.memory,
        ranks_per_node=request.ranks_per_node,
    )


def _questions(
    scope: Scope, named: dict[str, list[str]], jobs: Sequence[Target], request: AdviceRequest
) -> pl.DataFrame:
    """Returns the questions whose algorithms the model can describe."""
    sizes = {one: _sizes(scope, one, request) for one in named}
    found = questions(scope, named, jobs, sizes)
    described = [describable(one) for one in found.iter_rows(named=True)]
    found = found.filter(pl.Series(described, dtype=pl.Boolean))
    if found.is_empty():
        raise _nothing_to_predict()
    return found


def _usable(known: pl.DataFrame) -> pl.DataFrame:
    """Returns the rows of the calibration."""
    usable = known.filter(pl.col("role") == CANDIDATE)
    if usable.is_empty():
        reasons = Counter(known["role"].to_list()).most_common(3)
        listed = "; ".join(
            f"{rows:,} row{'s' if rows > 1 else ''}: {_REASONS.get(why, why)}"
            for why, rows in reasons
        )
        raise mistake(
            "no row can be used",
            source="tutti advise",
            value=listed or "no rows",
            expected="times of collectives on 2 or more ranks, each with its algorithm",
            hint=_hint([why for why, _ in reasons]),
        )
    if len(usable) > MOST_ROWS:
        raise mistake(f"{len(usable):,} measurements are too many for a calibration",
                      source="tutti advise", expected=f"at most {MOST_ROWS:,}",
                      hint="name fewer files")  # fmt: skip
    emulated = usable["emulated"].fill_null(value=False)
    if emulated.any() and not emulated.all():
        raise mistake(
            "measurements of a network and of emulated distance in one calibration",
            source="tutti advise",
            expected="files of one network, or of emulated distance alone",
        )
    return usable


_REASONS: Final = {DEFAULT: "the library's default, or no algorithm stated"}


def _hint(reasons: Sequence[str]) -> str:
    if not reasons:
        return "the files have no rows, or the remarks state why they were left out"
    if UNKNOWN_RANKS in reasons:
        return ("--ranks-per-node states those of rows with a number of nodes; --measured-ranks "
                "states the ranks of all")  # fmt: skip
    if DEFAULT in reasons:
        return ("--algorithm states the algorithm of rows without one; to measure an algorithm, "
                "force it with the parameters of the MPI library")  # fmt: skip
    if any(one.startswith("unknown algorithm") for one in reasons):
        return ("known are names of Open MPI, MPICH, Fujitsu MPI and PICO, such as ring_ompi, and "
                "tutti's notation")  # fmt: skip
    return "`tutti mpi bench` measures collectives with known algorithms"


def _nothing_to_predict() -> Exception:
    return mistake(
        "no candidate can be predicted at these rank counts and sizes",
        source="tutti advise",
        expected="at least 1 B for each rank",
        hint="name larger sizes with -b and -e, or other rank counts with --ranks",
    )


def _collectives(scope: Scope, requested: Sequence[str] | None) -> list[str]:
    measured = scope.rows.filter(pl.col("role") == CANDIDATE)["collective"]
    known = measured.unique().sort().to_list()
    requested = [collective_name(one) for one in requested or []]
    for one in requested:
        if one not in known:
            raise mistake(
                "no algorithm of this collective was measured",
                source="--collective",
                value=one,
                expected=" or ".join(known),
                hint=did_you_mean(one, known),
            )
    return list(dict.fromkeys(requested or known))


def _sizes(scope: Scope, collective: str, request: AdviceRequest) -> list[int]:
    if request.sizes is not None:
        return sorted(set(request.sizes))
    measured = measured_sizes(scope, collective)
    return [one for one in measured if request.smallest <= one <= request.largest]


def _usage(known: pl.DataFrame, usable: pl.DataFrame, model: Predictor) -> Usage:
    reasons = Counter(known["role"].to_list())
    defaults = reasons.pop(DEFAULT, 0)
    reasons.pop(CANDIDATE, None)
    assumed = int(usable["assumed"].sum())
    return Usage(model.used, defaults, dict(sorted(reasons.items())), assumed)


def _extrapolations(
    scope: Scope, collectives: dict[str, list[str]], jobs: Sequence[Target]
) -> list[Extrapolation]:
    return [
        Extrapolation(one, tuple(measured_ranks(scope, one)), job.ranks)
        for one in collectives
        for job in jobs
    ]


def _missing(
    collectives: dict[str, list[str]], jobs: Sequence[Target], found: pl.DataFrame
) -> list[tuple[str, str, int]]:
    """Returns the candidates without a prediction at a rank count."""
    rows = found.select("collective", "algorithm", "ranks").unique().rows()
    there, counted = set(rows), {(one[0], one[2]) for one in rows}
    return [
        (collective, name, job.ranks)
        for collective, names in collectives.items()
        for job in jobs
        for name in names
        if (collective, name, job.ranks) not in there and (collective, job.ranks) in counted
    ]
