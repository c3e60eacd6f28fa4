"""Joint readings: answers to every question that the paper leaves open."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from tutti.base.errors import ConfigError
from tutti.base.files.mistakes import did_you_mean
from tutti.bypass.package_networks import DEFAULT, ONE_WIRE, Assumptions
from tutti_papers.aries.applications import BATCHES
from tutti_papers.aries.iterations import SPLITS, Mean, iterations

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tutti_papers.aries.iterations import Iteration, Key

Measure = Literal["iterations", "all_reduces"]
MEASURES: tuple[Measure, ...] = ("iterations", "all_reduces")


@dataclass(frozen=True, kw_only=True)
class JointReading:
    """An answer to every open question.

    Attributes:
        assumptions: The networks and schedules.
        batch: The samples of the applications, one of `BATCHES`.
        splits: Parts of each all-reduce, sequentially.
        mean: How speedups of applications are combined.
        time: Whether speedups are those of iterations or of all-reduces alone.
        technology: Constants of the energy, a key of `tutti.energy.package.technologies`.
    """

    assumptions: Assumptions = DEFAULT
    batch: str = BATCHES[0]
    splits: int = 1
    mean: Mean = "stated"
    time: Measure = "iterations"
    technology: str = "synthesis"

    def iterations(self) -> dict[Key, Iteration]:
        """Returns the iterations of every case."""
        return iterations(self.assumptions, self.batch, self.splits)

    def answer(self, question: str) -> Any:  # noqa: ANN401 - answers have several types
        """Returns the answer to a question of `AXES`."""
        return getattr(self if question in _OWN else self.assumptions, question)

    def with_answers(self, answers: Mapping[str, Any]) -> JointReading:
        """Returns this reading with other answers, by question."""
        own = {name: value for name, value in answers.items() if name in _OWN}
        others = {name: value for name, value in answers.items() if name not in _OWN}
        return replace(self, assumptions=replace(self.assumptions, **others), **own)


_OWN = {field.name for field in fields(JointReading)} - {"assumptions"}


@dataclass(frozen=True)
class Axis:
    """A question that the paper leaves open.

    Attributes:
        name: The question.
        values: The answers; the first is the default.
        evidence: What supports each answer.
    """

    name: str
    values: tuple[Any, ...]
    evidence: tuple[str, ...]


AXES = (
    Axis(
        "batch",
        BATCHES,
        (
            "ASTRA-sim simulates the applications (V); its bundled workloads",
            "each node trains on its own samples (II-B); one is the fewest",
            "MultiTree's mini-batch of 16 N, ISCA 2021: one sample for each PE",
        ),
    ),
    Axis(
        "bidirectional",
        (True, False),
        (
            "clockwise or anti-clockwise (IV-A); 4 G of Table I needs every port",
            "one direction, figure 6(b) as described",
        ),
    ),
    Axis(
        "wires",
        (2, 1),
        (
            "two bi-directional links (III-B); they suffice up to 16x16 only (IV-B, figure 7)",
            "8 (k - 1) k links, Table I, with the mesh; wire costs similar to a torus (II-D)",
        ),
    ),
    Axis("chunks", (4, 16), ("inferred", "ASTRA-sim's streams are configurable: inferred")),
    Axis(
        "butterfly",
        ("equal_pins", "concentrated", "wide"),
        (
            "micro-bump pitch limits links (III-B)",
            "4 NPUs per router, as in Kim et al., MICRO 2007, which the paper cites",
            "one rate is given for all links (V)",
        ),
    ),
    Axis(
        "rings",
        ("lines", "butterfly", "plain"),
        (
            "Adapt-NoC and butterfly reduce hops, as nodes are fully connected (V-B)",
            "Adapt-NoC runs the plain ring, title of figure 10; the butterfly reduces hops",
            "`Ring all-reduce` on every network, title of figure 10",
        ),
    ),
    Axis(
        "switched",
        (True, False),
        (
            "a link for each tree edge (figure 7(c)) fits one phase at a time only",
            "only configured prior to running the application (IV-C)",
        ),
    ),
    Axis(
        "switch",
        ("100 ns", "0 ns"),
        ("if switched: a barrier among all routers, inferred", "if switched: none is stated"),
    ),
    Axis(
        "shapes",
        (False, True),
        (
            "ARIES_LT, ARIES_BW, the optimized MT of ARIES (V-A): its own schedules",
            "adapts to various topologies supporting any tree and ring (III-B)",
        ),
    ),
    Axis(
        "accumulators",
        (4, 2),
        ("a similar level of bandwidth as a multi-tree (IV-B)", "into two nodes (IV-B)"),
    ),
    Axis(
        "splits",
        SPLITS,
        ("none is stated", "ASTRA-sim's sample_torus_sys.txt: 4 splits, 1 active chunk"),
    ),
    Axis(
        "mean",
        ("stated", "arithmetic", "geometric"),
        (
            "an average (V-B); the maximum where it states up to",
            "an average everywhere",
            "none is stated",
        ),
    ),
    Axis("time", MEASURES, ("training iterations, V-B", "without computation")),
    Axis(
        "technology",
        ("synthesis", "usual"),
        (
            "power of synthesised routers (V) times the execution time (V-C)",
            "events of routers and links: energy per bit",
        ),
    ),
)
"""The open questions. The first answer is what the text states, if it states anything."""

MORE_AXES = (
    Axis(
        "muxes",
        ("any", "sign", "axis", "own"),
        (
            "rings on every corner in both directions (figure 6(c))",
            "port +x selects +x, +bypassing x and +bypassing y (III-B)",
            "wires of the axis of the port: Adapt-NoC",
            "wires of the axis and direction of the port",
        ),
    ),
    Axis("hop", ("12 ns", "10 ns"), ("10 ns and two router cycles (V)", "10 ns (V)")),
    Axis("per_span", (False, True), ("one hop latency (V)", "10 ns per spanned chiplet")),
)
"""Further questions, which the grid of readings leaves at their defaults."""

DEFAULT_READING = JointReading()
_EVERY = (*AXES, *MORE_AXES)
NAMED: dict[str, tuple[JointReading, str]] = {
    "text": (DEFAULT_READING, "what the text states: the default"),
    "one-wire": (
        JointReading(assumptions=ONE_WIRE, mean="geometric", technology="usual"),
        "one bypass wire, configured for each phase, rings in one direction, geometric means",
    ),
    "configured-once": (
        DEFAULT_READING.with_answers({"switched": False}),
        "the text, with one configuration prior to running the application (IV-C)",
    ),
    "astra-sim": (
        JointReading(splits=4),
        "the text, with all-reduces in the four parts of ASTRA-sim's sample of a torus",
    ),
}
"""Readings with a name, and their meanings."""


def reading_of(text: str) -> JointReading:
    """Returns a named reading, or the default one with answers such as `wires=1,chunks=16`.

    Raises:
        ConfigError: A name, a question or an answer is unknown.
    """
    if text in NAMED:
        return NAMED[text][0]
    answers = {}
    for part in text.split(","):
        name, separator, value = part.partition("=")
        axis = next((one for one in _EVERY if one.name == name.strip()), None)
        if axis is None or not separator:
            questions = [f"{one.name}=..." for one in _EVERY]
            raise _unknown(f"unknown reading `{part}`", part, [*NAMED, *questions])
        known = {str(answer): answer for answer in axis.values}
        if value.strip() not in known:
            raise _unknown(f"unknown answer `{value}` to `{axis.name}`", value, known)
        if axis.name in answers:
            problem = f"`{axis.name}` has several answers"
            raise ConfigError(problem, kind="invalid", hint="one answer per question")
        answers[axis.name] = known[value.strip()]
    return DEFAULT_READING.with_answers(answers)


def _unknown(problem: str, text: str, known: Mapping[str, Any] | list[str]) -> ConfigError:
    expected = ", ".join(known)
    hint = did_you_mean(text, known) or "join several answers by commas"
    return ConfigError(f"{problem}: expected one of {expected}", kind="invalid", hint=hint)


def described(reading: JointReading) -> str:
    """Returns the answers that differ from the default, such as `wires=1, chunks=16`."""
    parts = [
        f"{axis.name}={reading.answer(axis.name)}"
        for axis in _EVERY
        if reading.answer(axis.name) != axis.values[0]
    ]
    return ", ".join(parts) or "the default"
