"""Cache keys: a hash of all inputs of a measurement, and of the simulator."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from tutti.schedules.text import content
from tutti.sweeps.version import FORMAT, simulator

if TYPE_CHECKING:
    from tutti.collectives.files.resolve import Experiment
    from tutti.collectives.request import TimedSchedule

_JSON = json.JSONEncoder(separators=(",", ":"))

_NOT_SHARED = frozenset(
    {"algorithms", "messages_limit", "ranks", "repetitions", "seed", "sizes"},
)
"""Keys with several values per experiment, or without effect on a measurement."""


class Questions:
    """The keys of the measurements and proofs of one experiment."""

    def __init__(self, experiment: Experiment) -> None:
        """Hashes the shared inputs."""
        texts = experiment.inputs_as_json.items()
        shared = sorted(f"{key}:{text}" for key, text in texts if key not in _NOT_SHARED)
        self._shared = digest(FORMAT, simulator(), *shared)
        self._what = [experiment.collective, experiment.root, experiment.inputs["blocks"]]
        self._seed = experiment.seed
        self._contents: dict[str, str] = {}

    def measurement(self, notation: str, ranks: int, size_bytes: int, repetition: int) -> str:
        """Returns the key of a measurement."""
        schedule = self._content(notation)
        seed = self._seed + repetition
        return digest("measured", self._shared, schedule, ranks, size_bytes, repetition, seed)

    def proof(self, notation: str, ranks: int) -> str:
        """Returns the key of the proof of a schedule."""
        schedule = self._content(notation)
        return digest("proved", FORMAT, simulator(), *self._what, schedule, ranks)

    def _content(self, notation: str) -> str:
        if notation not in self._contents:
            self._contents[notation] = content(notation)
        return self._contents[notation]


def proof_key(questions: Questions, case: TimedSchedule) -> str:
    """Returns the key of the proof of a case; an algorithm of a library has several schedules."""
    name = f"{case.notation} {case.schedule.name}" if case.label else case.notation
    return questions.proof(name, case.schedule.ranks)


def digest(*parts: object) -> str:
    """Returns a hash of values that JSON can represent."""
    return hashlib.sha256(_JSON.encode(parts).encode()).hexdigest()[:32]
