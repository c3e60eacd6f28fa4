"""Quantities preserve the values of the core, and refuse the same input."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from tutti.base.errors import UnitError
from tutti.base.units import Size, Time, TimePerByte


class Model(BaseModel):
    time: Time
    rate: TimePerByte
    size: Size


@given(st.integers(min_value=0, max_value=2**63 - 1))
def test_a_time_prints_and_reads_back_without_loss(ps: int) -> None:
    assert Time.parse(str(Time(ps=ps))).ps == ps


@given(st.integers(min_value=0, max_value=2**63 - 1))
def test_a_size_prints_and_reads_back_without_loss(size: int) -> None:
    assert Size.parse(str(Size(bytes=size))).bytes == size


def test_a_rate_is_the_inverse_of_a_time_per_byte() -> None:
    assert TimePerByte.parse("10 GB/s") == TimePerByte.parse("0.1 ns/B")
    assert hash(TimePerByte.parse("10 GB/s")) == hash(TimePerByte.parse("0.1 ns/B"))
    assert TimePerByte.parse("900 GB/s").of(Size(bytes=1)).ps == 2  # 1.11 ps, rounded up


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "malformed"),
        ("5", "missing_unit"),
        ("5 GB", "unknown_unit"),
        ("0.1 ps", "too_fine"),
        ("999999999 s", "too_large"),
        ("-5 ns", "negative"),
    ],
)
def test_errors_of_times(text: str, kind: str) -> None:
    with pytest.raises(UnitError) as caught:
        Time.parse(text)
    assert caught.value.kind == kind
    assert caught.value.text == text
    assert f"`{text}`" in str(caught.value)


def test_models_carry_quantities_as_text() -> None:
    model = Model.model_validate({"time": "1340 ns", "rate": "68 GB/s", "size": "64 KiB"})
    assert model.time == Time(ps=1_340_000)
    assert model.model_dump(mode="json") == {
        "time": "1.34 us",
        "rate": "68 GB/s",
        "size": "64 KiB",
    }
    assert Model.model_json_schema()["properties"]["time"]["type"] == "string"


@pytest.mark.parametrize("value", [1.5, 5, None, [], "5"])
def test_bare_numbers_are_refused_in_models(value: object) -> None:
    with pytest.raises(ValidationError, match="unit"):
        Model.model_validate({"time": value, "rate": "68 GB/s", "size": "8 B"})


@pytest.mark.parametrize(
    ("quantity", "text"),
    [
        (Time, "9223372036854775808 ps"),
        (Size, "9223372036854775808 B"),
        (Time, "18446744073709551615 ps"),
    ],
)
def test_quantities_beyond_63_bits_are_refused(quantity: type[Time | Size], text: str) -> None:
    with pytest.raises(UnitError, match="too large for a") as caught:
        quantity.parse(text)
    assert caught.value.kind == "too_large"
