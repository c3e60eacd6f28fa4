"""Golden predictions, each derived by hand in the WHY.md of its folder.

A case is a schedule, a payload, a model and the exact expected results. The numbers were derived
before they were compared; no command regenerates them.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

import tutti
from tutti.platforms.machine import MODELS

FOLDER = Path(__file__).parent
CASES = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.glob("*/*.toml"))


def model(given: dict[str, Any]) -> Any:
    kinds = {known.model_fields["kind"].default: known for known in MODELS}
    return kinds[given["kind"]](**given)


def contention(given: dict[str, Any]) -> dict[str, Any]:
    """Returns the routes and flits of a case with a topology."""
    if "topology" not in given:
        return {}
    table = given["topology"]
    topology = tutti.Topology.build(table.pop("build"), **table)
    return {"routes": topology.routes(), "contention": tutti.Flits(**given["flits"])}


@pytest.mark.parametrize("case", CASES)
def test_predictions_match_their_derivations(case: str) -> None:
    given = tomllib.loads((FOLDER / case).read_text("utf-8"))
    request, expected = given["schedule"], given["expected"]
    schedule = tutti.schedule(request.pop("algorithm"), **request)
    machine = tutti.Platform(name=case, model=model(given["model"]), **contention(given))
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
def test_derivations_end_with_the_expected_times(case: str) -> None:
    """WHY.md has a section for the case that states its completion time, in nanoseconds."""
    path = FOLDER / case
    completion = tomllib.loads(path.read_text("utf-8"))["expected"]["completion_ps"]
    why = (path.parent / "WHY.md").read_text("utf-8")
    sections = why.split("\n## ")
    section = next((part for part in sections if part.startswith(f"{path.name}\n")), "")
    assert section, f"{path.parent.name}/WHY.md has no section `## {path.name}`"
    assert f"{completion / 1000:.3f}".rstrip("0").rstrip(".") in section.replace(",", "")
