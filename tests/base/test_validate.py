"""Errors in tables depend on pydantic's error types, not on its messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tutti.base.errors import ConfigError
from tutti.base.files import validate
from tutti.base.files.custom_errors import CHOICE, REFUSED
from tutti.collectives.files.resolve import resolve

RIGHT: dict[str, Any] = {
    "platform": "cray_xc30",
    "collective": "all_reduce",
    "algorithms": ["ring"],
    "ranks": 4,
    "sizes": "8 B",
}
LINK = {"rate": "1 GB/s", "latency": "1 us"}
POSTAL = {"kind": "postal", "alpha": "1 us"}
MACHINE: dict[str, Any] = {"name": "m", "models": {"a": POSTAL}}


def machine(**keys: Any) -> dict[str, Any]:
    return {"platform": MACHINE | keys}


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "unknown key": ({"rank": 4}, "unknown key `rank`"),
    "missing": ({"platform": {"models": {"a": POSTAL}}}, "platform.name: `name` is missing"),
    "no number": ({"ranks": "four"}, 'is not an integer\ngiven: "four"'),
    "too small": ({"ranks": 1}, "ranks: should be greater than or equal to 2\ngiven: 1"),
    "too large": ({"seed": 1 << 63}, "seed: should be less than 9223372036854775808"),
    "not above": ({"speed": {"3": 0.0}}, "should be greater than 0\ngiven: 0.0"),
    "not finite": ({"speed": {"3": float("inf")}}, "is not finite"),
    "no text": ({"collective": 3}, "is not text\ngiven: 3"),
    "no list": ({"platform": MACHINE | {"topology": {"build": "ring:4", "links": 3}}}, "links"),
    "empty": ({"algorithms": []}, "algorithms: is empty"),
    "neither": ({"wait_for_sends": 1}, "is neither true nor false"),
    "no table": (machine(compute=3), "platform.compute: is not a table"),
    "a unit": ({"sizes": "8 bananas"}, "sizes"),
    "no kind": (
        {"noise": {"step": {"kind": "normall", "mean": "1 us"}}},
        'noise.step.kind: unknown kind `normall`\ngiven: "normall"\nexpected: one of fixed',
    ),
    "kind missing": ({"arrival": {"mean": "1 us"}}, "arrival: `kind` is missing"),
    "model's kind": (
        machine(models={"a": {"kind": "postall"}}),
        'unknown kind `postall`\ngiven: "postall"\nexpected: one of postal, pipelining_postal',
    ),
    "a choice of words": (
        machine(topology={"build": "ring:4", "links": [LINK], "routing": "short"}),
        'unknown routing `short`\ngiven: "short"\nexpected: one of ',
    ),
    "another type": ({"platform": ["cray_xc30"]}, "platform: does not fit"),
    "a custom type": ({"ranks": [[4]]}, "is not a rank count"),
    "refused by a table": (
        machine(models={"a": POSTAL, "b": POSTAL}),
        "platform: has 2 models and no default: expected `default_model` to be one of a, b",
    ),
}


def fragment(changes: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        resolve(RIGHT | changes, source="e.toml", folder=Path())
    return str(caught.value)


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_do_not_depend_on_the_words_of_pydantic(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes, expected = WRONG[name]
    before = fragment(changes)
    assert expected in before
    first = validate._first

    def reworded(model: Any, tables: Any, errors: Any, source: str) -> ConfigError:
        others = [
            error
            if error["type"] in {CHOICE, REFUSED}
            else error | {"msg": "Eingabe falsch", "ctx": _without_words(error.get("ctx", {}))}
            for error in errors
        ]
        return first(model, tables, others, source)

    monkeypatch.setattr(validate, "_first", reworded)
    assert fragment(changes) == before


def _without_words(context: dict[str, Any]) -> dict[str, Any]:
    """Keeps bounds, tags and exceptions; lists of expected values are prose of pydantic."""
    prose = {"expected", "expected_tags", "discriminator"}
    return {name: value for name, value in context.items() if name not in prose}
