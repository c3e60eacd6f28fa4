"""`tutti train disturb`: slow NPUs, failed links and other jobs, and their effect on a step."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tutti.base.files.mistakes import mistake, shown
from tutti.cli import options
from tutti.study.console import remark
from tutti.study.study import Study
from tutti.training.files.step_file import load_training
from tutti.training.slowdowns import Disturbances, Effect, effects, frame_of_effects, ordered
from tutti.training.study.step import plan_times
from tutti.training.view.disturbed import disturbed_view
from tutti.view.quantity import plural
from tutti.workloads.errors import WorkloadError


def disturb(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="The training step (TOML), or the folder of a captured step.",
            show_default=False,
        ),
    ],
    platform: options.Platform = None,
    slow: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE:FACTOR",
            help="Probability that an NPU is slow, and the factor on its time: 0.01:1.3.",
        ),
    ] = None,
    spread: Annotated[
        float, typer.Option(help="Relative spread of the speed of all NPUs: 0.02.")
    ] = 0.0,
    down: Annotated[
        int, typer.Option(help="Number of network cables that are down, chosen at random.")
    ] = 0,
    cable: Annotated[
        list[str] | None,
        typer.Option(
            metavar="'A -- B'", help="A cable that is down, by its vertices; may be repeated."
        ),
    ] = None,
    load: Annotated[
        float, typer.Option(help="Mean share of each network cable that other jobs use.")
    ] = 0.0,
    draws: Annotated[int, typer.Option(min=1, max=10_000, help="Draws of each disturbance.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first draw.")] = 0,
    threads: options.Threads = 0,
    changes: options.Changes = None,
    to: options.Out = None,
) -> None:
    """Show how slow NPUs, failed links and other jobs lengthen a training step.

    Simulates the step undisturbed, then with each disturbance alone and with all of them, in
    several draws. The table has the median and the 5 % and 95 % quantiles. Routes avoid cables that
    are down. Network cables are those of the lowest rate of the topology.

    Writes disturbances.parquet, a row per simulation, to the output folder. The first endpoint
    configuration of the file is used. Times of a file of `tutti train plan --out` are those of the
    plan.

    \b
    Examples:
      tutti train disturb examples/26_stragglers/training.toml \\
        --slow 0.02:1.3 --down 1
      tutti train disturb examples/26_stragglers/training.toml \\
        --load 0.2 --draws 20
    """
    share, factor = _slow(slow)
    what = _disturbances(
        slow_share=share,
        slow_factor=factor,
        spread=spread,
        down=down,
        cables=tuple(cable or ()),
        load=load,
    )
    training = load_training(file, options.with_platform(platform, changes), output=to)
    first, times = training.configurations[0], plan_times(training)
    study = Study[Effect](training.output, extra=None)
    planned = len(what.kinds()) * draws + 1
    rows, _ = study.several(
        "disturbances",
        lambda done: effects(
            training.step,
            first,
            what,
            draws=draws,
            seed=seed,
            report=done,
            threads=threads,
            planned=times.timing if times and first.name == "ideal" else None,
        ),
        planned=planned,
    )
    rows = ordered(rows, what)
    # The others are compared with the undisturbed step.
    if rows and rows[0].disturbance == "none":
        study.present(disturbed_view(frame_of_effects(rows), training.title))
    remark(f"{plural(draws, 'draw')} of each disturbance, from seed {seed}")
    study.end(len(rows), planned)


_OPTIONS = {"slow_share": "--slow SHARE", "slow_factor": "--slow SHARE:FACTOR"}
"""The options of parameters with another name."""


def _disturbances(**given: Any) -> Disturbances:  # noqa: ANN401 - as its class
    """Returns the disturbances of the options.

    Raises:
        ConfigError: A value is out of range, or nothing is disturbed.
    """
    try:
        found = Disturbances(**given)
    except WorkloadError as error:
        option = _OPTIONS.get(error.parameter, f"--{error.parameter}")
        raise mistake("is out of range", source=option, value=shown(error.value),
                      expected=error.expected) from None  # fmt: skip
    if not found.is_active:
        raise mistake("nothing disturbs the step", source="tutti train disturb",
                      expected="--slow, --spread, --down, --cable or --load",
                      hint="--slow 0.02:1.3 makes 2 % of the NPUs slow")  # fmt: skip
    return found


def _slow(text: str | None) -> tuple[float, float]:
    """Returns the share and the factor of an option.

    Raises:
        ConfigError: The text is not two numbers.
    """
    if text is None:
        return 0.0, 1.0
    share, _, factor = text.partition(":")
    try:
        return float(share), float(factor)
    except ValueError:
        raise mistake(
            "is not two numbers",
            source="--slow",
            value=shown(text),
            expected="a share and a factor, such as 0.01:1.3",
        ) from None
