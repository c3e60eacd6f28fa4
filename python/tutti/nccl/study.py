"""The study of an NCCL job: its diagnosis, and rules for NCCL's tuner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.base.errors import capped
from tutti.nccl.doctor import tuner_rules
from tutti.nccl.tuner_csv import write_tuner_csv
from tutti.nccl.view.diagnosis import diagnosis_view
from tutti.study.console import remark, wrote
from tutti.study.study import present

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.nccl.doctor import Diagnosis

_MOST = 5
"""Lines that were left out, each with a remark."""


def show_diagnosis(diagnosis: Diagnosis, about: str) -> None:
    """Prints and records a diagnosis.

    Args:
        diagnosis: The diagnosis.
        about: A remark on guesses, printed if a choice is a guess or unknown.
    """
    present(diagnosis_view(diagnosis))
    bases = {sized.basis for subject in diagnosis.subjects for sized in subject.sizes}
    if about and bases & {"", "guess"}:
        remark(about)
    for file, line, reason in diagnosis.omitted[:_MOST]:
        remark(capped(f"{file}, line {line}: left out: {reason}"))
    if len(diagnosis.omitted) > _MOST:
        remark(f"left out: {len(diagnosis.omitted) - _MOST:,} more lines")


def write_rules(diagnosis: Diagnosis, path: Path, channels: int | None) -> None:
    """Writes the fastest known choice of each size for NCCL's example tuner plugin.

    Args:
        diagnosis: The diagnosis.
        path: The file to write.
        channels: The number of channels; None for that of the debug log.

    Raises:
        ConfigError: No choice is known, a number of channels is missing, or the file cannot be
            written.
    """
    rules, remarks = tuner_rules(diagnosis, channels=channels)
    notes = ["The fastest known choice of each size that was measured."]
    written = write_tuner_csv(rules, path, notes=notes)
    covered = ", ".join(dict.fromkeys(rule.collective for rule in rules))
    for text in (
        *remarks,
        f"the plugin runs collectives without a rule on one channel; rules: {covered}",
    ):
        remark(text)
    wrote(written)
