"""Every error has a class, a kind and an entry in the reference."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import tutti
from tutti import _core, errors


def test_every_refusal_of_the_core_has_an_entry() -> None:
    for name, kind in _core.error_kinds():
        assert kind in getattr(errors, name).kinds, f"{name} lacks {kind}"


def test_error_states_problem_fields_and_hint() -> None:
    with pytest.raises(errors.UnitError) as caught:
        tutti.Time.parse("5 GB")
    error = caught.value
    assert (error.kind, error.unit, error.quantity) == ("unknown_unit", "GB", "time")
    assert error.problem in str(error)
    assert "hint: " in str(error)
    assert str(error).endswith("docs/reference/errors.md#uniterror-unknown_unit")
    with pytest.raises(AttributeError, match="no field 'nothing'"):
        _ = error.nothing


def test_errors_can_be_pickled() -> None:
    error = errors.UnitError("bad", kind="zero", fields={"text": "0 GB/s"})
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is errors.UnitError
    assert str(again) == str(error)
    assert again.text == "0 GB/s"


def test_exit_codes_are_those_documented() -> None:
    assert {code.name: int(code) for code in errors.ExitCode} == {
        "OK": 0,
        "UNPROVED": 1,
        "MISTAKE": 2,
        "FAILED": 3,
        "INTERNAL": 70,
        "INTERRUPTED": 130,
    }


def test_every_kind_has_its_anchor_in_the_reference() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "errors.md"
    headings = {
        line.removeprefix("### ").lower().replace(" ", "-")
        for line in page.read_text("utf-8").splitlines()
        if line.startswith("### ")
    }
    anchors = {
        error("", kind=kind).anchor.partition("#")[2]
        for error in errors.all_errors()
        for kind in error.kinds
    }
    assert headings == anchors
