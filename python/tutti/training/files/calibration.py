"""Files of `tutti train calibrate`: factors on the coefficients of a step on a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from tutti.base.files.mistakes import known_name
from tutti.base.files.reader import read_toml
from tutti.base.files.tables import Positive, Table
from tutti.base.files.validate import validated
from tutti.base.files.writer import document
from tutti.training.plan.calibrated import Calibrated
from tutti.training.plan.efficiency import NAMES
from tutti.workloads.kernels import Precision

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.training.plan.calibration import Calibration, Factor

_Ratio = Annotated[float, Field(gt=0, lt=1e6)]


class _Factor(Table):
    factor: _Ratio
    low: _Ratio
    high: _Ratio
    determined: float = Field(ge=0, le=1)


class _Calibration(Table):
    gpu: str = Field(min_length=1)
    precisions: list[Precision] = Field(min_length=1)
    models: list[str] = Field(min_length=1)
    steps: Positive
    factors: dict[str, _Factor]


def read_calibration(path: Path) -> Calibrated:
    """Reads the factors of a file.

    Raises:
        ConfigError: The file cannot be read, or is not a calibration.
    """
    expected = "a file that `tutti train calibrate` wrote (TOML)"
    given = validated(_Calibration, read_toml(path, expected), source=str(path))
    known = [name for name in NAMES if name != "optimizer"]
    for name in given.factors:
        known_name(name, known, what="coefficient", source=str(path), key="factors")
    return Calibrated(
        source=str(path),
        gpu=given.gpu,
        precisions=tuple(given.precisions),
        models=tuple(given.models),
        factors=tuple((name, one.factor) for name, one in given.factors.items()),
    )


def write_calibration(path: Path, found: Calibration) -> Path:
    """Writes a calibration as a file that :func:`read_calibration` reads.

    Returns:
        The path written.
    """
    comments = [
        "Factors on the fitted coefficients of a step, of `tutti train calibrate`, with 90 %",
        "intervals. `determined` is the share of the prior variance that the measurements removed.",
        f"Measured: {', '.join(one.source for one in found.steps)}",
    ]
    tables = {
        "gpu": found.gpu,
        "precisions": sorted({one.cluster.precision for one in found.steps}),
        "models": sorted({one.model.name.partition(":")[0] for one in found.steps}),
        "steps": len(found.steps),
        "factors": {one.name: _rounded(one) for one in found.factors},
    }
    path.write_text(document(comments, tables), encoding="utf-8")
    return path


def _rounded(one: Factor) -> dict[str, float]:
    """Returns a factor with four digits; the interval is rounded outwards."""
    return {
        "factor": round(one.factor, 4),
        "low": round(one.low - 5e-5, 4),
        "high": round(one.high + 5e-5, 4),
        "determined": round(one.determined, 3),
    }
