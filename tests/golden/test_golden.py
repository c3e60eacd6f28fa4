"""Did a prediction change? Every case stands beside its derivation by hand, in WHY.md.

A case is a schedule, a payload, a model and what they must come to, exactly. The numbers were
derived before they were compared: there is no command that writes them anew.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

import tutti
from tutti.platform import MODELS

FOLDER = Path(__file__).parent
CASES = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.glob("*/*.toml"))


def model(given: dict[str, Any]) -> Any:
    kinds = {known.model_fields["kind"].default: known for known in MODELS}
    return kinds[given["kind"]](**given)


def met(given: dict[str, Any]) -> dict[str, Any]:
    """Where messages meet, if they do."""
    if "topology" not in given:
        return {}
    table = given["topology"]
    topology = tutti.Topology.build(table.pop("build"), **table)
    return {"routes": topology.routes(), "flits": tutti.Flits(**given["flits"])}


@pytest.mark.parametrize("case", CASES)
def test_a_prediction_is_what_was_derived(case: str) -> None:
    given = tomllib.loads((FOLDER / case).read_text("utf-8"))
    asked, expected = given["schedule"], given["expected"]
    schedule = tutti.schedule(asked.pop("algorithm"), **asked)
    machine = tutti.Platform(name=case, model=model(given["model"]), **met(given))
    run = tutti.simulate(schedule, machine, **given["payload"])
    assert run.finish_ps == expected["finish_ps"]
    assert run.completion_time == expected["completion_ps"]
    assert (run.messages, run.message_bytes) == (expected["messages"], expected["message_bytes"])
    assert run.closed_form_ps in (None, expected["completion_ps"])
    if "flits" in given:
        used = run.links.filter(run.links["flits"] > 0).select("source", "target", "flits")
        assert {f"{a} > {b}": flits for a, b, flits in used.rows()} == expected["link_flits"]
        assert run.events.buffer_writes == expected["buffer_writes"]
        assert run.events.vc_grants == expected["vc_grants"]


@pytest.mark.parametrize("case", CASES)
def test_the_derivation_reaches_the_numbers(case: str) -> None:
    """WHY.md has a section for the case and ends up at its completion time, in nanoseconds."""
    path = FOLDER / case
    completion = tomllib.loads(path.read_text("utf-8"))["expected"]["completion_ps"]
    why = (path.parent / "WHY.md").read_text("utf-8")
    sections = why.split("\n## ")
    section = next((part for part in sections if part.startswith(f"{path.name}\n")), "")
    assert section, f"{path.parent.name}/WHY.md has no section `## {path.name}`"
    assert f"{completion / 1000:.3f}".rstrip("0").rstrip(".") in section.replace(",", "")
