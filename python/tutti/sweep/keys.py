"""Names for questions: a hash of everything that a measurement depends on, and of who answers."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from tutti.config.resolve import content
from tutti.sweep.version import FORMAT, simulator

if TYPE_CHECKING:
    from tutti.config import Experiment

_JSON = json.JSONEncoder(separators=(",", ":"))

_ITS_OWN = frozenset(
    {"algorithms", "messages_limit", "ranks", "repetitions", "seed", "sizes"},
)
"""What an experiment asks for several of, or what does not change what one measurement comes to."""


class Questions:
    """The measurements of one experiment, and their proofs, by name."""

    def __init__(self, experiment: Experiment) -> None:
        """Hashes what all of them share."""
        texts = experiment.inputs_as_json.items()
        shared = sorted(f"{key}:{text}" for key, text in texts if key not in _ITS_OWN)
        self._shared = _digest(FORMAT, simulator(), *shared)
        self._what = [experiment.collective, experiment.root]
        self._seed = experiment.seed
        self._contents: dict[str, str] = {}

    def measurement(self, notation: str, ranks: int, size_bytes: int, repetition: int) -> str:
        """The key of one measurement."""
        schedule = self._content(notation)
        seed = self._seed + repetition
        return _digest("measured", self._shared, schedule, ranks, size_bytes, repetition, seed)

    def proof(self, notation: str, ranks: int) -> str:
        """The key of the proof of a schedule."""
        schedule = self._content(notation)
        return _digest("proved", FORMAT, simulator(), *self._what, schedule, ranks)

    def _content(self, notation: str) -> str:
        if notation not in self._contents:
            self._contents[notation] = content(notation)
        return self._contents[notation]


def _digest(*parts: object) -> str:
    return hashlib.sha256(_JSON.encode(parts).encode()).hexdigest()[:32]
