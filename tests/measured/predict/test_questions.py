"""Tables of series that are to be predicted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from questions import read_questions

from tutti.base.errors import ConfigError
from tutti.formats.measurements import MEASUREMENTS

if TYPE_CHECKING:
    from pathlib import Path

HEADING = "question,system,collective,algorithm,nodes,ranks_per_node,vector_bytes,gpu_buffers,job\n"
ROW = "7,one,all_reduce,default-ring,4x4x4,2,32,no,j/1\n"


def test_questions_have_numbers_and_no_times(tmp_path: Path) -> None:
    path = tmp_path / "questions.csv"
    path.write_text(HEADING + ROW + "3,one,scan,ring,4,1,32,no,j/1\n")
    found = read_questions(path)
    assert found.rows.columns == [*MEASUREMENTS, "question"]
    (row,) = found.rows.to_dicts()
    expected = {
        "question": 7,
        "file": str(path),
        "line": 2,
        "shape": "4x4x4",
        "nodes": 64,
        "ranks": 128,
        "size_bytes": 32,
        "time_us": None,
    }
    assert {name: row[name] for name in expected} == expected
    assert found.omitted.select("file", "line", "reason").rows() == [
        (str(path), 3, "unknown collective")
    ]


def test_equal_questions_stay_separate(tmp_path: Path) -> None:
    path = tmp_path / "questions.csv"
    path.write_text(HEADING + ROW + ROW.replace("7", "8", 1))
    assert read_questions(path).rows["question"].to_list() == [7, 8]


def test_times_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "questions.csv"
    path.write_text(HEADING.replace("job", "median_us") + ROW.replace("j/1", "5.0"))
    assert read_questions(str(path)).rows["time_us"].to_list() == [None]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADING.replace("question", "number") + ROW, "lacks the column question"),
        (HEADING + ROW + ROW, "no distinct numbers"),
        (HEADING + ROW.replace("7", "first", 1), "no distinct numbers"),
        (HEADING.replace("nodes", "hosts") + ROW, "lacks the column nodes"),
    ],
)
def test_other_tables_are_rejected(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "questions.csv"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_questions(path)
