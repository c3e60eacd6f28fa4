"""The stored comparison of every exhibit: what `tutti paper` shows without running anything.

Each run of an exhibit writes its comparison to `claims.json` in the output folder. `make papers`
merges these files into `summary.json` of this package.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

import tutti
from tutti.base.errors import ConfigError
from tutti_papers.claims import Claim, Conclusion, Reading

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from tutti_papers import ExhibitResult

FILE = "claims.json"
"""The file of comparisons in the output folder of a paper."""
STORED = "summary.json"
"""The file of the comparisons of all papers in this package."""
_DIGITS = 6


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The published values and conclusions of an exhibit, as computed by a version of tutti.

    Attributes:
        paper: The name of the paper.
        exhibit: Kind and number, such as `figure 5`.
        title: The title of the exhibit.
        version: The version of tutti that computed it.
        claims: Published and computed values.
        conclusions: The paper's conclusions.
        readings: Joint readings of the paper, with the values that each meets.
    """

    paper: str
    exhibit: str
    title: str
    version: str
    claims: tuple[Claim, ...]
    conclusions: tuple[Conclusion, ...]
    readings: tuple[Reading, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """Paper and exhibit."""
        return self.paper, self.exhibit


def comparison_of(paper: str, exhibit: str, title: str, result: ExhibitResult) -> Comparison:
    """Returns the comparison of a result; computed values have `_DIGITS` digits."""
    return _parsed(
        {
            "paper": paper,
            "exhibit": exhibit,
            "title": title,
            "version": tutti.__version__,
            "claims": [_raw_claim(claim) for claim in result.published],
            "conclusions": [asdict(one) for one in result.conclusions],
            "readings": [asdict(one) for one in result.readings],
        }
    )


def _raw_claim(claim: Claim) -> dict[str, Any]:
    """Returns a claim for JSON: None is an infinite bound or a value that was not computed."""
    published: Any = claim.published
    if isinstance(published, tuple):
        published = [None if math.isinf(bound) else bound for bound in published]
    computed = None if math.isnan(claim.computed) else float(f"{claim.computed:.{_DIGITS}g}")
    return asdict(claim) | {"published": published, "computed": computed}


def _parsed(raw: Mapping[str, Any]) -> Comparison:
    claims = tuple(
        Claim(**one | {"published": _published(one["published"]), "computed": _number(one)})
        for one in raw["claims"]
    )
    conclusions = tuple(Conclusion(**one) for one in raw["conclusions"])
    readings = tuple(Reading(**one) for one in raw.get("readings", ()))
    parsed = {"claims": claims, "conclusions": conclusions, "readings": readings}
    return Comparison(**{**raw, **parsed})


def _published(raw: float | list[float | None]) -> float | tuple[float, float]:
    if not isinstance(raw, list):
        return raw
    low, high = raw
    return (-math.inf if low is None else low, math.inf if high is None else high)


def _number(raw: Mapping[str, Any]) -> float:
    return math.nan if raw["computed"] is None else raw["computed"]


def dumped(comparisons: Iterable[Comparison]) -> str:
    """Returns comparisons as JSON text, in order of paper, kind and number."""
    rows = [
        asdict(one) | {"claims": [_raw_claim(claim) for claim in one.claims]}
        for one in sorted(comparisons, key=_order)
    ]
    return json.dumps(rows, indent=1) + "\n"


def _order(one: Comparison) -> tuple[str, str, int]:
    kind, number = one.exhibit.split()
    return one.paper, kind, int(number)


def read(text: str, place: str = STORED) -> list[Comparison]:
    """Returns the comparisons of a JSON text.

    Args:
        text: The text.
        place: The file that has it, for errors.

    Raises:
        ConfigError: The text is not a list of comparisons.
    """
    try:
        return [_parsed(raw) for raw in json.loads(text)]
    except (ValueError, TypeError, KeyError) as error:
        raise ConfigError(
            f"{place}: not a comparison of `tutti paper`: {error}",
            kind="invalid",
            hint="delete the file; the exhibits write it again",
        ) from error


def merged(before: Iterable[Comparison], after: Iterable[Comparison]) -> list[Comparison]:
    """Returns all comparisons; later ones replace those of the same exhibit."""
    return list(({one.key: one for one in before} | {one.key: one for one in after}).values())


def store(folder: Path, found: Comparison) -> Path:
    """Adds a comparison to the file of a folder, and returns the file."""
    path = folder / FILE
    before = read(path.read_text("utf-8"), str(path)) if path.is_file() else []
    path.write_text(dumped(merged(before, [found])), "utf-8")
    return path


def stored() -> list[Comparison]:
    """Returns the comparisons stored in this package."""
    return read(resources.files("tutti_papers").joinpath(STORED).read_text("utf-8"))


def distinct(comparisons: Iterable[Comparison]) -> list[tuple[str, Claim]]:
    """Returns the computed claims with their first exhibit, without repetitions by others."""
    claims: dict[tuple[str, object], tuple[str, Claim]] = {}
    for one in comparisons:
        for claim in one.claims:
            if claim.verdict != "not computed":
                claims.setdefault((claim.quantity, claim.published), (one.exhibit, claim))
    return list(claims.values())
