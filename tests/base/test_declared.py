"""Each declared parameter is the same in classes, files, schemas and reference pages."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tutti import _core
from tutti.base.declared import groups, models
from tutti.networks.flit.files.tables import RawNoc
from tutti.platforms.files.platform_file import SWITCHES, RawPlatform

if TYPE_CHECKING:
    from tutti.base.parameters import Parameters

ROOT = Path(__file__).parents[2]
GROUPS = [*_core.parameter_groups(models=False), *_core.parameter_groups(models=True)]
PARAMETERS = [
    (group, one)
    for group in GROUPS
    for one in group.parameters
    if one.name not in SWITCHES  # keys of `[topology]`, for flows and packets alike
]
SCHEMAS = {
    name: table
    for model in (RawPlatform, RawNoc)
    for name, table in model.model_json_schema()["$defs"].items()
}
TABLES = {
    "RouterParameters": "Router",
    "Speculation": "Speculation",
    "FlowParameters": "FlowTable",
    "PacketParameters": "PacketsTable",
}
"""The table of a group in files, if its name differs from the class."""


def class_of(group: _core.ParameterGroup) -> type[Parameters]:
    found: type[Parameters] = getattr(groups, group.class_, None) or getattr(models, group.class_)
    return found


@pytest.mark.parametrize(("group", "one"), PARAMETERS, ids=lambda x: x.name)
def test_a_parameter_is_the_same_everywhere(
    group: _core.ParameterGroup, one: _core.ParameterEntry
) -> None:
    declared = class_of(group)
    field = next(n for n, i in declared.model_fields.items() if one.name in {n, i.alias})
    info = declared.model_fields[field]
    table = SCHEMAS[TABLES.get(group.class_, f"{group.class_}Table")]["properties"][one.name]
    signature: Any = inspect.signature(declared).parameters[one.name]
    assert info.description == table["description"] == one.meaning
    if one.default is None:
        assert info.is_required() is not one.optional
        assert info.is_required() == (signature.default is inspect.Parameter.empty)
    else:
        texts = [str(value).lower() for value in (info.default, table["default"])]
        assert texts[0] in {one.default, str(signature.default).lower()}
        assert texts[0] == texts[1] or one.kind in {"time", "size", "time per byte"}
    page = (ROOT / "docs" / "reference" / "config.md").read_text("utf-8")
    entries = (" ".join(entry.split()) for entry in page.split("\n- "))
    assert any(entry.startswith(f"`{one.name}`:") and one.meaning in entry for entry in entries)


def test_generated_classes_are_up_to_date() -> None:
    script = ROOT / "scripts" / "generate_parameters.py"
    found = subprocess.run(
        [sys.executable, script, "--check"], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, f"run `make reference`: {found.stdout}{found.stderr}"


def test_the_core_reads_the_text_of_each_default() -> None:
    for group in GROUPS:
        given = class_of(group)
        if all(not info.is_required() for info in given.model_fields.values()):
            texts = given().texts(given)
            assert texts.keys() == {one.name for one in group.parameters if one.default}
