"""Compares predictions with trusted sources, each within its tolerance on both sides.

A case is a folder. `case.toml` has the source, the model's parameters and the tolerance;
`measured.csv` has the source's results. `python -m pytest validation --write` writes
docs/validation.md from the cases and from against_*.py.
"""

from __future__ import annotations

import csv
import functools
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import against_astrasim
import against_booksim
import against_floonoc
import against_scalesim
import pytest
from prose import bullets, paragraph

import tutti
from tutti.platforms.machine import MODELS

FOLDER = Path(__file__).parent
PAGE = FOLDER.parent / "docs" / "validation.md"
CASES = sorted(path.parent.name for path in FOLDER.glob("*/measured.csv"))
HAS = {"summary", "source", "machine", "date", "licence", "datatype", "model", "tolerance"}
COLUMNS = ("ranks", "size_bytes", "collective", "algorithm", "finish_ns")

HEAD = """# Validation

Predictions of tutti, compared with results of trusted sources. Parameters are those of the
source; none is tuned. A case states inferred parameters. `make validate` computes every row and
checks it against the tolerance of its case.

`python -m pytest validation --write` writes this page from the cases in `validation/`."""

# The largest rings have 33 million messages.
pytestmark = pytest.mark.timeout(900)


@dataclass(frozen=True)
class Row:
    """One measurement of a source.

    Attributes:
        case: the folder it is from.
        label: further fields of the source.
        finish_ps: the completion time there.
    """

    case: str
    label: str
    ranks: int
    size_bytes: int
    collective: str
    algorithm: str
    finish_ps: int

    @property
    def predicted_ps(self) -> int:
        request = self.algorithm, self.collective, self.ranks, self.size_bytes
        return predicted(self.case, *request)

    @property
    def off_ppm(self) -> float:
        """How far the prediction is above (or, negative, below) the source, in millionths."""
        return (self.predicted_ps - self.finish_ps) / self.finish_ps * 1e6

    def __str__(self) -> str:
        return f"{self.case}-{self.label}-{self.ranks}-{self.size_bytes}"


@functools.cache
def about(case: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / case / "case.toml").read_text("utf-8"))


def rows(case: str) -> list[Row]:
    found = []
    with (FOLDER / case / "measured.csv").open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            ranks, size, collective, algorithm, finish = (line.pop(name) for name in COLUMNS)
            label = " ".join(line.values()).replace("_", " ")
            finish_ps = int(finish) * 1000
            found.append(Row(case, label, int(ranks), int(size), collective, algorithm, finish_ps))
    return found


@functools.cache
def predicted(case: str, algorithm: str, collective: str, ranks: int, size_bytes: int) -> int:
    """The completion time in picoseconds, by a run of the engine."""
    given = about(case)
    kinds = {known.model_fields["kind"].default: known for known in MODELS}
    model: Any = kinds[given["model"]["kind"]](**given["model"])
    machine = tutti.Platform(name=case, model=model)
    schedule = tutti.schedule(algorithm, collective=collective, ranks=ranks)
    size = tutti.Size(bytes=size_bytes)
    return tutti.simulate(schedule, machine, size=size, datatype=given["datatype"]).completion_time


def page() -> str:
    """docs/validation.md."""
    parts = [HEAD]
    for case in CASES:
        measured = rows(case)
        parts += [
            f"## {case}",
            paragraph(about(case)["summary"]),
            facts(case, measured),
            table(measured),
        ]
    cases = (against_booksim, against_floonoc, against_astrasim, against_scalesim)
    sections = [case.section() for case in cases]
    return "\n\n".join([*parts, *sections]) + "\n"


def facts(case: str, measured: list[Row]) -> str:
    given = about(case)
    below, above = (given["tolerance"][side] / 1e4 for side in ("below_ppm", "above_ppm"))
    least, most = (pick(row.off_ppm for row in measured) / 1e4 for pick in (min, max))
    lines = [
        f"Source: {given['source']}, run on {given['date']}; see `validation/{case}/case.toml`.",
        f"Model: {parameters(given['model'])}.",
    ]
    if "inferred" in given:
        lines.append(f"Inferred: {given['inferred']}")
    lines.append(
        f"Tolerance: from {below:g} % below to {above:g} % above the source. "
        f"Found: {least:+.3f} % to {most:+.3f} %."
    )
    return bullets(lines)


def parameters(model: dict[str, Any]) -> str:
    others = ", ".join(f"{name} = {value}" for name, value in model.items() if name != "kind")
    return f"[{model['kind']}](models/{model['kind']}.md) with {others}"


def table(measured: list[Row]) -> str:
    head = "| source | algorithm | ranks | size | measured (us) | predicted (us) | ratio |"
    lines = [head, "|---|---|--:|--:|--:|--:|--:|"]
    for row in measured:
        what = f"{row.label} | {row.algorithm} | {row.ranks:,} | {tutti.Size(bytes=row.size_bytes)}"
        times = f"{row.finish_ps / 1e6:,.3f} | {row.predicted_ps / 1e6:,.3f}"
        lines.append(f"| {what} | {times} | {row.predicted_ps / row.finish_ps:.6f} |")
    return "\n".join(lines)


@pytest.mark.parametrize("case", CASES)
def test_case_states_its_origin(case: str) -> None:
    missing = HAS - about(case).keys()
    assert not missing, f"validation/{case}/case.toml lacks {', '.join(sorted(missing))}"
    assert rows(case)


@pytest.mark.parametrize("row", [row for case in CASES for row in rows(case)], ids=str)
def test_a_prediction_is_within_the_tolerance(row: Row) -> None:
    tolerance = about(row.case)["tolerance"]
    assert -tolerance["below_ppm"] <= row.off_ppm <= tolerance["above_ppm"]


@pytest.mark.parametrize("row", rows("astrasim_ring"), ids=str)
def test_truncation_explains_the_difference_to_astrasim(row: Row) -> None:
    """Each transfer and each memory access is truncated to integer nanoseconds."""
    shard = row.size_bytes // row.ranks
    transfer = shard * 10**9 // (50 * 2**30) + 500 + 10
    fold = 3 * (shard // 1600)
    finish_ns = (row.ranks - 1) * (2 * transfer + fold) + 10
    assert finish_ns * 1000 == row.finish_ps


def test_the_page_is_current(request: pytest.FixtureRequest) -> None:
    text = page()
    if request.config.getoption("--write"):
        PAGE.write_text(text, encoding="utf-8")
    found = PAGE.read_text("utf-8") if PAGE.is_file() else ""
    assert found == text, "docs/validation.md is stale: run pytest with --write"
