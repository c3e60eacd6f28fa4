"""Rules of a plan as text, such as ``all_reduce:0-4K=ring``."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Self

from tutti.base.files.mistakes import did_you_mean, known_name, mistake, shown
from tutti.base.ranges import expanded_ranks, size_bytes
from tutti.mpi.errors import PlanError
from tutti.mpi.planned import COLLECTIVES, Rule
from tutti.mpi.usual import untuned, usual
from tutti.mpi.view.plan import rank_ranges
from tutti.schedules.bits import bits_differ
from tutti.schedules.errors import AlgorithmError
from tutti.schedules.ir import algorithms
from tutti.schedules.mpi_names import collective_name
from tutti.schedules.text import SCHEDULE_SUFFIX, find_schedule

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tutti.base.errors import ConfigError

_NOT_SLOWER, _MPICH = "mpich-not-slower", "mpich"
_EXPECTED = "COLLECTIVE=SCHEDULE or COLLECTIVE:SIZES=SCHEDULE, such as all_reduce:0-4K=ring"
_COLUMNS = 78
_MOST_COUNTS = 4096
"""Maximum number of rank counts of one plan; a longer list is probably a mistake."""

Sizes = tuple[int, int | None]


@dataclass(frozen=True)
class _RuleSpec:
    """One rule, before the ranks are known."""

    collective: str
    notation: str
    sizes: Sizes
    text: str

    @property
    def width(self) -> float:
        first, last = self.sizes
        return float("inf") if last is None else last - first


@dataclass(frozen=True)
class RuleRequest:
    """All rules of a plan."""

    written: Sequence[_RuleSpec]
    for_every: Sequence[str]

    @classmethod
    def read(cls, rules: Sequence[str], for_every: Sequence[str]) -> Self:
        """Parses rules.

        Args:
            rules: The rules.
            for_every: Algorithms with a rule for every collective that they perform, or names of
                `tutti.mpi.usual`.

        Raises:
            ConfigError: A rule cannot be read, or there are no rules.
        """
        if not rules and not for_every:
            raise mistake("a plan without rules", source="tutti mpi plan", expected=_EXPECTED,
                          hint="--for-every mpich adds one for every collective")  # fmt: skip
        for name in for_every:
            _check_algorithm(name)
        return cls([_read(text) for text in rules], list(for_every))

    def rules(
        self, counts: Sequence[int], *, exact_types: bool = False
    ) -> tuple[list[Rule], list[str]]:
        """Returns the rules for these rank counts, and remarks about omitted ones.

        Args:
            counts: The rank counts.
            exact_types: Whether to accept schedules that give ranks different bits.

        Raises:
            AlgorithmError: A rule is impossible on all of the rank counts.
            VerificationError: A schedule is wrong.
            PlanError: Ranks would get different bits from a schedule.
        """
        rules: list[Rule] = []
        left_out: dict[str, list[int]] = {}
        differing: dict[str, list[int]] = {}
        for ranks in counts:
            # Written rules precede those of --for-every, however narrow these are.
            written = sorted(self.written, key=lambda spec: spec.width)
            for spec in [*written, *_filling(self.for_every, ranks)]:
                rule = _laid_out(spec, ranks, must=len(counts) == 1)
                if rule is None:
                    left_out.setdefault(spec.text, []).append(ranks)
                elif exact_types or not bits_differ(rule.schedule):  # type: ignore[arg-type] # not planned yet
                    rules.append(rule)
                elif spec in self.written:
                    raise _bits_differ(spec, ranks)
                else:
                    differing.setdefault(spec.text, []).append(ranks)
        for spec in self.written:
            if left_out.get(spec.text) == list(counts):
                _laid_out(spec, counts[0], must=True)
        remarks = [
            f"{text}: omitted on {rank_ranges(missing)} ranks, which it does not support"
            for text, missing in left_out.items()
        ]
        remarks += [
            f"{text}: all_reduce omitted on {rank_ranges(omitted)} ranks: they would get different "
            "bits"
            for text, omitted in differing.items()
        ]
        return rules, remarks


def _bits_differ(spec: _RuleSpec, ranks: int) -> PlanError:
    message = f"{spec.text}: results on {ranks} ranks differ in bits between ranks"
    hint = (
        "recursive_doubling and ring give all ranks the same bits; --exact-types accepts it, and "
        "the library then uses it for exact operations only, such as sums of integers"
    )
    fields = {"schedule": spec.notation, "ranks": ranks}
    return PlanError(message, kind="bits", hint=hint, fields=fields)


def rank_list(text: str) -> list[int]:
    """Parses the rank counts of a plan.

    Raises:
        ConfigError: It is not a list of rank counts.
    """
    if not text:
        raise mistake("no rank counts for the plan", source="tutti mpi plan",
                      expected="--ranks N, such as --ranks 8 or --ranks 2-16")  # fmt: skip
    counts = expanded_ranks(text)
    if min(counts) < 2 or len(counts) > _MOST_COUNTS:
        expected = f"1 to {_MOST_COUNTS} counts from 2 on, such as 8 or 2-16"
        problem = "is not a list of rank counts for a plan"
        raise mistake(problem, source="--ranks", value=shown(text), expected=expected)
    return counts


def _read(text: str) -> _RuleSpec:
    """Parses one rule."""
    what, equals, notation = text.partition("=")
    collective, colon, span = what.partition(":")
    if not equals or not notation or (colon and not span):
        raise mistake("not a rule", source=text, expected=_EXPECTED)
    collective = collective_name(collective)
    known_name(collective, COLLECTIVES, what="collective", source=text)
    return _RuleSpec(collective, notation, _sizes(span, text) if colon else (0, None), text)


def _sizes(span: str, rule: str) -> Sizes:
    """Parses ``0-4K``, ``64K-``, ``-4K`` or a single size, in bytes."""
    first, dash, last = (part.strip() for part in span.partition("-"))
    if not first and not last:
        raise mistake("sizes without a number", source=rule, expected=_EXPECTED)
    start = size_bytes(first or None, rule)
    if not dash:
        return start, start
    if not last:
        return start, None
    end = size_bytes(last, rule)
    if start > end:
        raise mistake("a range with its limits reversed", source=rule, value=shown(span),
                      expected="the smaller number first")  # fmt: skip
    return start, end


def _filling(for_every: Iterable[str], ranks: int) -> list[_RuleSpec]:
    """Returns a rule for every collective that these algorithms perform."""
    specs: list[_RuleSpec] = []
    for name in for_every:
        text = f"--for-every {name}"
        if name in {_NOT_SLOWER, _MPICH}:
            listed = usual if name == _NOT_SLOWER else untuned
            specs += [
                _RuleSpec(collective, notation, span, text)
                for collective in COLLECTIVES
                for notation, span in listed(collective, ranks)
            ]
            continue
        base = name.partition(":")[0]
        performed = next(entry.collectives for entry in algorithms() if entry.name == base)
        specs += [_RuleSpec(c, name, (0, None), text) for c in COLLECTIVES if c in performed]
    return specs


def _check_algorithm(name: str) -> None:
    names = [_NOT_SLOWER, _MPICH, *(entry.name for entry in algorithms())]
    expected = f"`{_NOT_SLOWER}`, `{_MPICH}`, or one of `tutti schedule list`"
    base = name.partition(":")[0]
    known_name(base, names, what="algorithm", source="--for-every", expected=expected)


def _no_algorithm(spec: _RuleSpec) -> ConfigError:
    """Reports a misspelt algorithm, with the possible ones."""
    base, does = spec.notation.partition(":")[0], spec.collective
    names = [entry.name for entry in algorithms() if does in entry.collectives]
    meant = did_you_mean(base, names)
    possible = f"one that performs {does}: {', '.join(names)}"
    label = " " * len("expected: ")
    lines = wrap(possible, _COLUMNS, initial_indent=label, subsequent_indent="  ")
    return mistake(": ".join(filter(None, [f"unknown algorithm `{base}`", meant])),
                   source=spec.text, expected="\n".join(lines).lstrip(),
                   hint="`tutti schedule list` lists every algorithm")  # fmt: skip


def _laid_out(spec: _RuleSpec, ranks: int, *, must: bool) -> Rule | None:
    """Returns a rule for one rank count; None if the algorithm does not support it."""
    file = spec.notation.endswith(SCHEDULE_SUFFIX)
    try:
        schedule = find_schedule(spec.notation, ranks=None if file else ranks,
                                 collective=spec.collective)  # fmt: skip
    except AlgorithmError as error:
        if error.kind == "unknown":
            raise _no_algorithm(spec) from None
        if must:
            raise
        return None
    if file and schedule.ranks != ranks:
        if must:
            raise mistake(f"a schedule for {schedule.ranks} ranks", source=spec.notation,
                          expected=f"--ranks {schedule.ranks}")  # fmt: skip
        return None
    return Rule(spec.collective, ranks, schedule, spec.sizes)
