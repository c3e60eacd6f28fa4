"""Factors on the coefficients of a step, from a file of `tutti train calibrate`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti.workloads.errors import WorkloadError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tutti.training.plan.efficiency import Setting

__all__ = ["Calibrated"]


@dataclass(frozen=True, kw_only=True)
class Calibrated:
    """Factors that measured steps of a GPU determine.

    Attributes:
        source: The file.
        gpu: The GPU.
        precisions: The precisions of the measured steps.
        models: The names of the measured models, without arguments.
        factors: Coefficients and the factors on them; others have 1.
    """

    source: str
    gpu: str
    precisions: tuple[str, ...]
    models: tuple[str, ...]
    factors: tuple[tuple[str, float], ...]

    def check(self, gpu: str) -> None:
        """Checks the GPU.

        Raises:
            WorkloadError: The factors are those of another GPU.
        """
        if gpu != self.gpu:
            message = f"{self.source} calibrates {self.gpu}: expected a calibration of {gpu}"
            hint = f"run `tutti train calibrate` with steps measured on {gpu}"
            raise WorkloadError(message, kind="calibration", hint=hint)

    def remarks(self, setting: Setting) -> Iterator[str]:
        """Yields sentences on what no step of the calibration had: the precision, or the model."""
        if setting.precision not in self.precisions:
            yield (
                f"{self.source} has steps in {' and '.join(self.precisions)}: its factors are "
                f"applied to {setting.precision}"
            )
        if setting.model not in self.models:
            yield (
                f"{self.source} has steps of {' and '.join(self.models)}: its factors are applied "
                f"to {setting.model}"
            )
