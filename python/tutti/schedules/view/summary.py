"""What algorithms and the proofs of schedules show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.view.quantity import count, plural
from tutti.view.terminal import indented
from tutti.view.view import Data, Fact, View, json_facts

if TYPE_CHECKING:
    from tutti._core import Algorithm
    from tutti.schedules.ir import Schedule, Verification


def algorithm_view(entry: Algorithm) -> View:
    """Returns an algorithm as a paragraph: a table would not fit a terminal."""
    names = ("name", "summary", "collectives", "ranks", "argument", "source")
    facts = {
        "performs": ", ".join(entry.collectives),
        "ranks": entry.ranks,
        "ARG": entry.argument,
        "source": entry.source,
    }
    lines = [indented(f"{name}: {fact}", "dim") for name, fact in facts.items() if fact]
    return View(
        headline=Fact("name", f"{entry.name}:ARG" if entry.argument else entry.name),
        below=[indented(entry.summary), *lines],
        data=[Data("algorithms", lambda: [{name: getattr(entry, name) for name in names}])],
    )


def proof_view(schedule: Schedule, proof: Verification) -> View:
    """Returns the ops of a verified schedule, its reproducibility and its buffering."""
    name, ranks = schedule.name, schedule.ranks
    buffering = f"{plural(proof.buffering, 'message')} at a rank"
    if proof.rendezvous_safe:
        buffering = "none required: safe with rendezvous"
    bits = proof.reproducibility if proof.reductions else "unchanged: no reductions"
    return View(
        headline=Fact("schedule", f"{name} performs {schedule.collective} on {ranks:,} ranks"),
        facts=[
            *json_facts(schedule=name, collective=schedule.collective, ranks=ranks),
            Fact("steps", f"{proof.steps:,} over all ranks", "steps", proof.steps),
            Fact("messages", count(proof.messages), "messages", proof.messages),
            Fact("reductions", count(proof.reductions), "reductions", proof.reductions),
            Fact("bits", bits, "bits", proof.reproducibility),
            *json_facts(rendezvous_safe=proof.rendezvous_safe),
            Fact("buffering", buffering, "buffered_messages", proof.buffering),
        ],
    )
