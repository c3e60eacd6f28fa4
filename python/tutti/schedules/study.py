"""The studies of schedules: the list of algorithms, and the proof and the drawing of a schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tutti import _core
from tutti.base.files.mistakes import known_name
from tutti.schedules.errors import VerificationError
from tutti.schedules.ir import algorithms, check_ranks
from tutti.schedules.mpi_names import collective_name
from tutti.schedules.text import find_schedule
from tutti.study.study import Study, read

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.schedules.ir import Schedule, Verification


def show_algorithms(collective: str | None = None, ranks: int | None = None) -> None:
    """Shows the algorithms and the collectives that each performs.

    Args:
        collective: The collective that they perform; None for any.
        ranks: The rank count that they support; None for any.

    Raises:
        AlgorithmError: The rank count is invalid.
        ConfigError: The collective is unknown.
    """
    from tutti.schedules.view.summary import algorithm_view

    if ranks is not None:
        check_ranks(ranks)
    if collective is not None:
        collective = collective_name(collective)
        known_name(collective, _core.collectives(), what="collective", source="--collective")
    for entry in algorithms():
        performed = [each for each in entry.collectives if collective in {None, each}]
        if performed and (ranks is None or any(entry.claims(each, ranks) for each in performed)):
            Study().present(algorithm_view(entry))


def verify_schedule(notation: str, **layout: Any) -> None:  # noqa: ANN401 - of `find_schedule`
    """Verifies a schedule and shows its proof; takes the arguments of `find_schedule`.

    Raises:
        TuttiError: As `find_schedule`.
        VerificationError: The schedule does not perform its collective.
    """
    from tutti.schedules.view.summary import proof_view

    def proved() -> tuple[Schedule, Verification]:
        schedule = find_schedule(notation, **layout)
        return schedule, schedule.verify()

    try:
        schedule, proof = read("verifying", proved)
    except VerificationError as error:
        raise error.reworded(f"{notation}: {error.problem}") from None
    Study().present(proof_view(schedule, proof))


def draw_schedule(notation: str, to: Path, **layout: Any) -> None:  # noqa: ANN401 - of `find_schedule`
    """Draws the program graph of a schedule; takes the arguments of `find_schedule`.

    Raises:
        TuttiError: As `find_schedule`.
        ReportError: The suffix of the file is unknown, or the schedule is too large.
    """
    from tutti.schedules.view.program_graph import draw_program_graph

    schedule = find_schedule(notation, **layout)
    Study().write(to, lambda path: draw_program_graph(path, schedule))
