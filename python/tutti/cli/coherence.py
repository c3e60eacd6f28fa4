"""`tutti coherence`: runs parallel kernels on chips with coherent caches."""

from __future__ import annotations

from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any

import typer

from tutti.base.files.mistakes import mistake, shown
from tutti.cli import coherence_list, options
from tutti.networks.coherence import CoherenceRun, kernels, run_all
from tutti.networks.coherence.files import load_coherence
from tutti.networks.coherence.view.run import runs_view
from tutti.study.study import Study, read

app = options.group("Run parallel kernels on a chip with coherent caches.")
app.command("list")(coherence_list.list_)


@app.command("run")
def run_(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="A configuration file (TOML); optional."),
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option("--kernel", "-k", help="Kernel, a comma-separated list, or `all`."),
    ] = None,
    protocol: Annotated[
        str | None, typer.Option("--protocol", help="Protocol: `ht` or `tc`. Default: `ht`.")
    ] = None,
    design: Annotated[
        str | None,
        typer.Option("--design", help="A mesh design, or a comma-separated list."),
    ] = None,
    scale: Annotated[
        str | None, typer.Option("--scale", help="`tiny`, `small` or `large`. Default: `small`.")
    ] = None,
    changes: options.Changes = None,
    threads: options.Threads = 0,
    to: options.Out = None,
) -> None:
    """Run kernels on a chip: runtime, cache misses and the latency of misses.

    Kernels have the sharing patterns of well-known benchmarks, but are not those benchmarks: use
    them to compare designs, not with published runtimes. Each result is checked against a serial
    program. Writes report.html, results.parquet, misses.parquet and flows.parquet to the output
    folder.

    \b
    Examples:
      tutti coherence run --kernel water_like --protocol ht --design sfo_complete
      tutti coherence run -k radix_like,water_like \\
        --design baseline_collective,sfo_greedy
      tutti coherence run examples/15_coherence/chip.toml --set chip.protocol=tc
    """
    if file is None and kernel is None:
        raise mistake("nothing to run", source="tutti coherence run",
                      expected="a file, or --kernel",
                      hint="`tutti coherence list` lists the kernels")  # fmt: skip
    overrides: dict[str, Any] = {}
    _refuse_several("--protocol", protocol)
    _refuse_several("--scale", scale)
    if kernel is not None:
        overrides["kernel"] = _kernels(kernel)
    if design is not None:
        overrides["designs"] = [name.strip() for name in design.split(",")]
    overrides |= {"chip.protocol": protocol} if protocol is not None else {}
    overrides |= {"scale": scale} if scale is not None else {}
    experiment = read(
        "laying out", lambda: load_coherence(file, changes or (), options=overrides, output=to)
    )
    study = Study[CoherenceRun](experiment.output, "run", attrgetter("total_cycles"))
    cases = experiment.cases
    finished, _ = study.several(
        "runs", lambda done: run_all(cases, threads=threads, done=done), planned=len(cases)
    )
    if finished:
        order = {id(case): place for place, case in enumerate(cases)}
        runs = sorted(finished, key=lambda run: order[id(run.case)])
        study.present(runs_view(runs, title=experiment.title))
    study.end(len(finished), len(cases))


def _refuse_several(option: str, text: str | None) -> None:
    """Refuses a list where a run takes one value.

    Raises:
        ConfigError: The option has several values.
    """
    if text is None or "," not in text:
        return
    names = [name.strip() for name in text.split(",") if name.strip()]
    each = " and once with ".join(f"`{option} {name}`" for name in names)
    raise mistake(
        "takes one value", source=option, value=shown(text), expected="one name",
        hint=f"run it once with {each}, each with its --out" if len(names) > 1 else "",
    )  # fmt: skip


def _kernels(text: str) -> list[str]:
    return list(kernels()) if text == "all" else [name.strip() for name in text.split(",")]
