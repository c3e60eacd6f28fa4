"""The study of hidden and exposed all-reduces of a training step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.base.units import Time
from tutti.collectives.experiment import lay_out, run_once
from tutti.study.console import remark
from tutti.study.progress import Progress

if TYPE_CHECKING:
    from tutti.base.units import Size
    from tutti.collectives.files.resolve import Experiment
    from tutti.study.study import Study
    from tutti.training.overlap import Overlap, Overlapped


def time_overlap(
    study: Study[Overlapped], experiment: Experiment, step: Overlap, *, verify: bool
) -> dict[str, Overlapped]:
    """Returns the iterations of a step with the all-reduces of each algorithm of an experiment.

    After Ctrl-C, these are the finished ones.

    Args:
        study: The call of the command.
        experiment: An all_reduce with algorithms and one rank count; its sizes are ignored.
        step: The layers, and what their forward passes wait for.
        verify: Whether to verify schedules.

    Raises:
        AlgorithmError: An algorithm does not support the ranks.
    """
    notations = experiment.algorithms or ()
    runs: dict[str, Overlapped] = {}
    unverified: dict[str, str] = {}
    sizes = len({layer.gradients for layer in step.layers if layer.gradients.bytes})
    total = sizes * len(notations)
    done = 0
    with Progress("all-reduces", work=total, total=total, handles_interrupts=True) as progress:

        def run(notation: str) -> Overlapped:
            laid_out = lay_out(experiment, notation, experiment.ranks[0])

            def all_reduce(size: Size) -> Time:
                nonlocal done
                done += 1
                run = run_once(experiment, laid_out, size, verify=verify)
                if run.not_verified is not None:
                    unverified[laid_out.name] = run.not_verified
                progress.advance(1, done)
                return Time(ps=run.completion_ps)

            return step.run(all_reduce)

        try:
            for notation in notations:
                runs[notation] = run(notation)
        except KeyboardInterrupt:
            study.is_interrupted = True
    for name, reason in unverified.items():
        remark(f"{name} is not verified: {reason}")
    return runs
