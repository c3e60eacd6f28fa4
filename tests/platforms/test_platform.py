"""Platforms carry the parameters that the core's models have."""

from __future__ import annotations

from typing import Any

import pytest

import tutti
from tutti import _core, errors
from tutti.platforms.machine import MODELS, Platform

EXAMPLES: dict[str, Any] = {
    "time": "1 us",
    "time per byte": "0.5 ns/B",
    "count": 4,
    "size": "4 KB",
}


@pytest.mark.parametrize("entry", _core.parameter_groups(models=True), ids=lambda one: one.name)
def test_a_model_hands_its_parameters_to_the_core(entry: _core.ParameterGroup) -> None:
    model = next(one for one in MODELS if one.model_fields["kind"].default == entry.name)
    given = {one.name: EXAMPLES[one.kind] for one in entry.parameters}
    if entry.name == "lop":
        given["o_next"] = "0.5 us"
    if entry.name == "protocols":
        given["long_from"] = "64 KB"
    built = model(**given)
    assert built.parameters().keys() == given.keys()
    assert built.core.kind == entry.name


def test_a_platform_reads_back_from_its_dump() -> None:
    platform = Platform(
        name="demo", model=tutti.LogGP(L="2 us", o="1 us", g="1 us", G="6 ns/B", copy_="1 ns/B")
    )
    assert Platform.model_validate(platform.model_dump(mode="json", by_alias=True)) == platform


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"alpha": "5"}, "`alpha`: `5` has no unit"),
        ({"alpha": 5}, "`alpha`: `5` is not a time"),
        (
            {"alpha": "5 us", "betta": "1 ns/B"},
            "`betta`: is unknown: expected one of .*alpha, beta",
        ),
        ({}, "`alpha`: is missing"),
    ],
)
def test_invalid_values_give_one_error(values: dict[str, str], message: str) -> None:
    with pytest.raises(errors.ConfigError, match=message):
        tutti.Postal(**values)


def test_a_model_in_which_nothing_takes_time_is_refused() -> None:
    machine = tutti.Platform(name="demo", model=tutti.Postal(alpha="0 us"))
    ring = tutti.schedule("ring", collective="all_reduce", ranks=4)
    with pytest.raises(errors.ModelError, match="would take no time"):
        tutti.simulate(ring, machine, size="8 B")
    with pytest.raises(errors.ModelError, match="no parameter"):
        _core.Model("postal", {"alpha": "1 us", "gamma": "1 us"})
