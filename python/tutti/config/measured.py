"""Noise, skew and traffic of an experiment: what stands in files is read, the rest taken over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from tutti.config import disturbance as as_written
from tutti.errors import TuttiError
from tutti.files.mistakes import mistake

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tutti.conditions import Conditions
    from tutti.topology import Routes

_Table = TypeVar("_Table")


class Recordings:
    """Puts the values of files in the place of their names; paths start from a folder."""

    def __init__(self, folder: Path, source: str) -> None:
        self.folder = folder
        self.source = source

    def noise(self, noise: as_written.Noise) -> as_written.Noise:
        """Noise whose recorded times are all there.

        Raises:
            ConfigError: A file cannot be used.
        """
        changed = {
            "step": self._distribution(noise.step),
            "message": self._distribution(noise.message),
            "detours": self._detours(noise.detours),
        }
        return noise.model_copy(update=changed)

    def arrival(
        self, arrival: as_written.Distribution | as_written.PerRankTime | None
    ) -> as_written.Distribution | as_written.PerRankTime | None:
        """Arrivals that are all there.

        Raises:
            ConfigError: A file cannot be used.
        """
        from tutti.recordings import arrivals

        if isinstance(arrival, as_written.PerRankTime) and arrival.file is not None:
            times = arrivals(self.folder / arrival.file, unit=arrival.unit)
            return arrival.model_copy(update={"times": times, "file": None, "unit": None})
        return self._distribution(arrival)

    def background(self, background: as_written.Background) -> as_written.Background:
        """Traffic with the flows of its file.

        Raises:
            ConfigError: The file cannot be used.
        """
        from tutti.conditions import Flow
        from tutti.recordings import flows

        if background.file is None:
            return background
        read = flows(self.folder / background.file, Flow)
        more = [as_written.FlowTable(**dict(flow)) for flow in read]
        return background.model_copy(update={"flows": background.flows + more, "file": None})

    def _distribution(self, table: _Table) -> _Table:
        from tutti.recordings import durations

        if isinstance(table, as_written.RecordedTime) and table.file is not None:
            asked = {"column": table.column, "unit": table.unit}
            times = durations(self.folder / table.file, **asked)
            origin = dict.fromkeys(("file", "column", "unit"))
            return table.model_copy(update={"times": times, **origin})
        if isinstance(table, as_written.MixtureTime):
            parts = [
                part.model_copy(update={"distribution": self._distribution(part.distribution)})
                for part in table.parts
            ]
            return table.model_copy(update={"parts": parts})
        return table

    def _detours(self, table: _Table) -> _Table:
        from tutti.recordings import detours

        if isinstance(table, as_written.TraceDetours) and table.file is not None:
            read = detours(self.folder / table.file, unit=table.unit)
            return table.model_copy(update={"detours": read, "file": None})
        if isinstance(table, as_written.PoissonDetours):
            return table.model_copy(update={"duration": self._distribution(table.duration)})
        return table


def conditions(
    noise: as_written.Noise,
    arrival: as_written.Distribution | as_written.PerRankTime | None,
    background: as_written.Background,
    speed: dict[int, float],
) -> Conditions:
    """What gets in the way of a run, for `tutti.simulate`."""
    from tutti.conditions import Conditions

    asked: dict[str, Any] = {
        "noise": _plain(noise.model_dump(exclude_none=True)),
        "background": _plain(background.model_dump(exclude_none=True)),
        "speed": speed,
    }
    if arrival is not None:
        asked["arrival"] = _plain(arrival.model_dump(exclude_none=True))
    return Conditions(**asked)


def _plain(value: Any) -> Any:  # noqa: ANN401 - the tables of any distribution
    """Without what only says where values come from."""
    if isinstance(value, dict):
        origin = {"file", "column", "unit"}
        return {key: _plain(inner) for key, inner in value.items() if key not in origin}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value


def check(
    conditions: Conditions, ranks: Sequence[int], routes: Routes | None, *, source: str
) -> None:
    """Lets the core refuse numbers that make no sense together.

    Raises:
        ConfigError: It did; the message names the table.
    """
    from tutti.conditions import PerRank

    try:
        conditions.core(ranks=ranks[0], seed=0)
    except TuttiError as error:
        key = "arrival" if error.kind == "too_few_arrivals" else "noise"
        raise mistake(error.problem, source=source, key=key, hint=error.hint) from None
    try:
        if isinstance(conditions.arrival, PerRank):
            for seed in range(len(conditions.arrival.times)):
                conditions.arrival.of(ranks=ranks[-1], seed=seed)
    except TuttiError as error:
        raise mistake(error.problem, source=source, key="arrival", hint=error.hint) from None
    try:
        conditions.background.core(routes)
    except TuttiError as error:
        raise mistake(error.problem, source=source, key="background", hint=error.hint) from None
