"""Experiments that have most of their tables in common, as the points of a sweep have.

Reading one takes a quarter of a millisecond, most of it for what stands in the others too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tutti.config.kinds import validated_file
from tutti.config.platform import RawPlatform
from tutti.config.presets import platform_of
from tutti.config.resolve import chosen_model, resolve
from tutti.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.config.resolve import Experiment

_MOST_KNOWN = 1_000
"""Experiments that are remembered."""


class Resolver:
    """Resolves experiments; where one asks what another did, only its machine is read.

    Two ask the same when all tables but the platform are the same objects, so nothing may change
    one. A file that experiments name is then read once.
    """

    def __init__(self, folder: Path) -> None:
        """Nothing is known yet; relative paths start from the folder."""
        self._folder = folder
        self._known: dict[tuple[tuple[str, int], ...], tuple[dict[str, Any], Experiment]] = {}

    def resolve(self, tables: dict[str, Any], *, source: str) -> Experiment:
        """What :func:`tutti.config.resolve.resolve` makes of the tables.

        Raises:
            ConfigError: The tables are no experiment.
        """
        question = tuple((key, id(value)) for key, value in tables.items() if key != "platform")
        if question in self._known and "platform" in tables:
            try:
                return self._on_its_machine(self._known[question][1], tables, source)
            except ConfigError:
                pass  # read as a whole, it is said where in the tables the mistake is
        experiment = resolve(tables, source=source, folder=self._folder)
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[question] = (tables, experiment)  # the tables, so that ids stay theirs
        return experiment

    def _on_its_machine(self, known: Experiment, tables: dict[str, Any], source: str) -> Experiment:
        written = tables["platform"]
        if not isinstance(written, str):
            written = validated_file(RawPlatform, written, source=source)
        platform = platform_of(written, folder=self._folder, source=source)
        model = chosen_model(platform, tables.get("model"), source=source)
        return known.on(platform, model, source=source)
