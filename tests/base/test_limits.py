"""What every reader checks: limits on trees, lines and fields, and the columns of frames."""

from __future__ import annotations

import io
import random
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from tutti.base.errors import ConfigError
from tutti.base.files import limits, reader
from tutti.base.files.mistakes import shown

if TYPE_CHECKING:
    from pathlib import Path


def json_of(text: str) -> dict[str, Any]:
    return reader.parse_json(text, source="x.json", expected="a table")


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("{", "not JSON"),
        ("[]", "is not a table"),
        ('{"a": NaN}', "a: the number is not finite"),
        ('{"a": {"b": [1, -Infinity]}}', r"a\.b\[1\]: the number is not finite"),
        ('{"a": 1e999}', "a: the number is not finite"),
        (f'{{"a": {2**63}}}', "a: the number is too large"),
        (f'{{"a": {"9" * 5000}}}', "not JSON"),
        (f'{{"a": {"[" * 100}{"]" * 100}}}', "nested too deeply"),
        (f'{{"a": {"[" * 100_000}{"]" * 100_000}}}', "nested too deeply"),
    ],
)
def test_trees_beyond_the_limits_are_refused(text: str, fragment: str) -> None:
    with pytest.raises(ConfigError, match=fragment):
        json_of(text)


def test_trees_within_the_limits_are_read() -> None:
    assert json_of(f'{{"a": {limits.MOST}, "b": {"[" * 60}{"]" * 60}}}')["a"] == limits.MOST


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"k{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 9)),
        "a: &a [*a]\n",
        "a: [1\n",
        "a: .inf\n",
        "a: !!python/object:x {}\n",
    ],
)
def test_invalid_or_expanding_yaml_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "n.yml"
    path.write_text(text.replace("*a0", "1"), "utf-8")
    with pytest.raises(ConfigError, match=r"n\.yml"):
        reader.read_yaml(path, "a network")


@pytest.mark.parametrize("levels", [65, 60_000])
def test_deep_yaml_is_refused_while_it_is_scanned(levels: int, tmp_path: Path) -> None:
    path = tmp_path / "n.yml"
    path.write_text("a: " + "[" * levels, "utf-8")
    with pytest.raises(ConfigError, match="nested too deeply"):
        reader.read_yaml(path, "a network")


def test_long_lines_and_fields_name_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1," + "9" * 5000 + "\n")
    with pytest.raises(ConfigError, match="line 2: a field of 5,000 characters") as caught:
        list(reader.read_rows(path, "a table"))
    assert f"at most {limits.FIELD:,}" in str(caught.value)
    assert len(str(caught.value)) < 400
    with pytest.raises(ConfigError, match="line 2: a line of 12 characters"):
        reader.check_lines("a\n" + "b" * 12, 10, source="x")


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("12", 12), ("9" * 5000, None), ("-1", None), ("1_0", None), ("\u0663", None)],
)
def test_counts_have_a_limited_number_of_digits(text: str, number: int | None) -> None:
    assert limits.parse_count(text) == number


FRAME = pl.DataFrame({"n": [1, 2], "x": [0.5, None], "t": ["a", "b"], "f": [True, None]})
KINDS = {"n": "positive", "x": "number?", "t": "text", "f": "flag?"}


def checked(frame: pl.DataFrame) -> pl.DataFrame:
    return reader.check_frame(frame, KINDS, source="r.parquet", expected="results")


def test_frames_as_declared_are_taken() -> None:
    assert checked(FRAME).equals(FRAME)
    narrow = FRAME.with_columns(n=pl.col("n").cast(pl.UInt8), x=pl.lit(None), f=pl.lit(None))
    assert checked(narrow).schema == FRAME.schema


@pytest.mark.parametrize(
    ("column", "value", "fragment"),
    [
        ("n", [1, 0], "column `n`: row 2: 0"),
        ("n", [1, None], "column `n`: row 2: null"),
        ("n", [1, 2**63 - 1], "column `n`: row 2: 9223372036854775807"),
        ("n", ["1", "2"], "column `n`: holds string"),
        ("n", [[1], [2]], "column `n`: holds list"),
        ("x", [-1.0, 0.0], "column `x`: row 1: -1.0"),
        ("x", [0.0, float("nan")], "column `x`: row 2: nan"),
        ("x", ["a", "b"], "column `x`: holds string"),
        ("t", [b"a", b"b"], "column `t`: holds binary"),
        ("t", ["a", None], "column `t`: row 2: null"),
        ("f", [1, 0], "column `f`: holds int64"),
    ],
)
def test_columns_of_another_kind_are_refused(column: str, value: list[Any], fragment: str) -> None:
    with pytest.raises(ConfigError) as caught:
        checked(FRAME.with_columns(pl.Series(column, value)))
    assert fragment in str(caught.value)
    with pytest.raises(ConfigError, match=f"lacks the columns {column}"):
        checked(FRAME.drop(column))


def test_damaged_parquet_is_refused_or_read(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Some bits make Polars panic, which is not an Exception, and print to stderr."""
    buffer = io.BytesIO()
    FRAME.write_parquet(buffer)
    complete, rng = buffer.getvalue(), random.Random(1)
    path = tmp_path / "r.parquet"
    for _ in range(300):
        at = rng.randrange(len(complete))
        path.write_bytes(
            complete[:at] + bytes([complete[at] ^ 1 << rng.randrange(8)]) + complete[at + 1 :]
        )
        try:
            reader.read_frame(path, "results")
        except ConfigError as error:
            assert "r.parquet: cannot be read" in str(error)  # noqa: PT017 - either is right
    assert "panicked" not in capfd.readouterr().err


def test_long_values_are_abbreviated() -> None:
    assert shown(10**6000) == "a number of 19,932 bits"
    assert len(shown("x" * 10_000)) <= 60
