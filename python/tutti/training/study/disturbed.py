"""The study of a training step with disturbances."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.study.console import remark
from tutti.study.files import folder
from tutti.study.progress import Progress
from tutti.study.study import present
from tutti.training.slowdowns import effects
from tutti.training.view.disturbed import disturbed_view

if TYPE_CHECKING:
    from tutti.training.files.step_file import Training
    from tutti.training.slowdowns import Disturbances


def run_disturbed(training: Training, disturbances: Disturbances, draws: int, seed: int) -> None:
    """Runs a step undisturbed and with disturbances, and shows and writes its times.

    Args:
        training: The step; its first configuration is used.
        disturbances: What disturbs it.
        draws: The draws of each disturbance.
        seed: The seed of the first draw.

    Raises:
        ConfigError: The output folder cannot be created.
        WorkloadError: The disturbances do not fit the network.
    """
    output = folder(training.output)
    work = len(disturbances.kinds()) * draws + 1
    with Progress("disturbances", work=work, total=work) as progress:
        rows = effects(
            training.step,
            training.configurations[0],
            disturbances,
            draws=draws,
            seed=seed,
            report=lambda done: progress.reach(done, work, done),
        )
    present(disturbed_view(rows, training.title), output)
    remark(f"{draws} draws of each disturbance, from seed {seed}")
