from __future__ import annotations

import polars as pl
import pytest

from tutti.collectives.comparison import Comparison, cases
from tutti.collectives.view.quantities import REGIONS
from tutti.collectives.view.summary import Reasons, leads, summary
from tutti.view.errors import ReportError


def point(algorithm: str, schedule: str, time_ps: int, **more: object) -> dict[str, object]:
    row: dict[str, object] = {
        "collective": "all_reduce",
        "algorithm": algorithm,
        "schedule": schedule,
        "ranks": 8,
        "size_bytes": 8,
        "datatype": "int64",
        "model": "postal",
        "platform": "demo",
        "time_ps": time_ps,
        "algbw_bytes_per_s": 8e12 / time_ps,
        "busbw_bytes_per_s": 14e12 / time_ps,
        "messages": 24,
        "message_bytes": 192,
    }
    return row | more


def test_the_runner_up_is_the_best_of_another_algorithm() -> None:
    rows = [
        point("rm", "rm:a8", 100),
        point("rm", "rm:a2,a4", 110),
        point("rd", "rd", 150),
        point("ring", "ring", 900),
    ]
    decision = cases(pl.DataFrame(rows))[0].decisions()[(8, 8)]
    assert decision.winner.schedule == "rm:a8"
    assert decision.runner_up is not None
    assert decision.runner_up.schedule == "rd"
    assert decision.margin == 0.5


def test_repetitions_count_by_their_median() -> None:
    rows = [point("rd", "rd", t, repetition=i) for i, t in enumerate((300, 100, 200))]
    rows += [point("ring", "ring", 150, repetition=0)]
    case = cases(pl.DataFrame(rows))[0]
    rd = case.best()[(8, 8, "rd")]
    assert (rd.time_ps, rd.least_ps, rd.most_ps, rd.repetitions) == (200, 100, 300, 3)
    assert case.decisions()[(8, 8)].winner.algorithm == "ring"


def test_neighbouring_sizes_with_one_winner_make_one_region() -> None:
    sizes = {8: (1, 2), 16: (1, 2), 32: (3, 2), 64: (1, 2)}
    rows = [
        point(name, name, times[index], size_bytes=size)
        for size, times in sizes.items()
        for index, name in enumerate(("one", "two"))
    ]
    regions = cases(pl.DataFrame(rows))[0].regions()
    assert [(r.winner, r.sizes) for r in regions] == [
        ("one", (8, 16)),
        ("two", (32, 32)),
        ("one", (64, 64)),
    ]


@pytest.mark.parametrize(
    ("winner", "loser", "reason"),
    [
        ((8, 63), (24, 64), "sends less"),
        ((8, 64), (24, 64), "same bytes in fewer messages"),
        ((8, 99), (24, 64), "per message"),
        ((24, 8), (8, 64), "per byte"),
        ((56, 448), (24, 192), "overlap"),
        ((24, 192), (24, 192), "waits less"),
        ((None, None), (24, 192), ""),
    ],
)
def test_the_reason_follows_from_messages_and_bytes(
    winner: tuple[int | None, int | None], loser: tuple[int, int], reason: str
) -> None:
    rows = [
        point(name, name, time, messages=messages, message_bytes=data)
        for name, time, (messages, data) in (("a", 100, winner), ("b", 200, loser))
    ]
    finding = summary(cases(pl.DataFrame(rows))[0], Reasons())[0]
    assert reason in finding.why


def test_closed_forms_give_the_reason_if_available() -> None:
    rows = [
        point("recursive_multiplying", "recursive_multiplying:a8", 100),
        point("recursive_doubling", "recursive_doubling", 150),
    ]
    case = cases(pl.DataFrame(rows))[0]
    assert "1 step, not 3" in summary(case, Reasons(1))[0].why


def shown(case: Comparison, column: str) -> str:
    """The text of a quantity of the first region."""
    (quantity,) = (each for each in REGIONS if each.name == column)
    cell = quantity.cell(leads(case, Reasons())[0])
    return "; ".join(filter(None, (cell.text, cell.soft)))


def test_tie_goes_to_the_most_frequent_winner() -> None:
    rows = [point("b", "b", 100), point("a", "a", 100), point("c", "c", 150)]
    rows += [point("b", "b", 100, size_bytes=16), point("a", "a", 110, size_bytes=16)]
    case = cases(pl.DataFrame(rows))[0]
    decision = case.decisions()[(8, 8)]
    assert decision.winner.algorithm == "b"
    assert [one.algorithm for one in decision.level] == ["a"]
    assert decision.runner_up is not None
    assert decision.runner_up.algorithm == "c"
    assert shown(case, "fastest") == "b; tied with a"
    assert "tied with a (at 1)" in str(summary(case, Reasons())[0])


def test_complete_tie_has_no_runner_up() -> None:
    case = cases(pl.DataFrame([point("b", "b", 100), point("a", "a", 100)]))[0]
    assert case.decisions()[(8, 8)].runner_up is None
    assert shown(case, "lead over runner-up") == "no slower algorithm"


def test_one_algorithm_alone_wins_without_a_margin() -> None:
    case = cases(pl.DataFrame([point("a", "a", 100)]))[0]
    assert "no algorithm is slower" in str(summary(case, Reasons())[0])
    assert shown(case, "lead over runner-up") == "no slower algorithm"


def test_frames_without_rows_or_columns_are_refused() -> None:
    frame = pl.DataFrame([point("a", "a", 100)])
    with pytest.raises(ReportError, match="lacks the columns schedule"):
        cases(frame.drop("schedule"))
    with pytest.raises(ReportError, match="no rows"):
        cases(frame.clear())
