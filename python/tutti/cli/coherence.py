"""`tutti coherence`: runs parallel kernels on chips with coherent caches."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Annotated

import typer

from tutti.base.files.mistakes import mistake, shown
from tutti.cli import coherence_list, options
from tutti.cli.grouped import grouped
from tutti.cli.keyed import Key, keyed
from tutti.networks.coherence import CoherenceRun, kernels, run_all
from tutti.networks.coherence.files import load_coherence
from tutti.networks.coherence.view.run import runs_view
from tutti.study.study import Study, read

app = options.group("Run parallel kernels on a chip with coherent caches.")
app.command("list")(coherence_list.list_)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _kernels(text: str) -> list[str]:
    return list(kernels()) if text == "all" else _names(text)


@dataclass
class Kernels:
    """The kernels and the chip."""

    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="A configuration file (TOML); optional."),
    ] = None
    kernel: Annotated[
        str | None,
        typer.Option("--kernel", "-k", help="Kernel, a comma-separated list, or `all`."),
        Key("kernel", read=_kernels),
    ] = None
    protocol: Annotated[
        str | None,
        typer.Option("--protocol", help="Protocol: `ht` or `tc`. Default: `ht`."),
        Key("chip.protocol"),
    ] = None
    design: Annotated[
        str | None,
        typer.Option("--design", help="A mesh design, or a comma-separated list."),
        Key("designs", read=_names),
    ] = None
    scale: Annotated[
        str | None,
        typer.Option("--scale", help="`tiny`, `small` or `large`. Default: `small`."),
        Key("scale"),
    ] = None


@app.command("run")
@grouped
def run_(
    of: Kernels,
    *,
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
    if of.file is None and of.kernel is None:
        raise mistake("nothing to run", source="tutti coherence run",
                      expected="a file, or --kernel",
                      hint="`tutti coherence list` lists the kernels")  # fmt: skip
    _refuse_several("--protocol", of.protocol)
    _refuse_several("--scale", of.scale)
    values = keyed(of)
    experiment = read(
        "laying out",
        lambda: load_coherence(of.file, changes or (), options=values, output=to),
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
    """Refuses a list where a run takes one value."""
    if text is not None and "," in text:
        names = list(filter(None, _names(text)))
        each = " and once with ".join(f"`{option} {name}`" for name in names)
        raise mistake(
            "takes one value", source=option, value=shown(text), expected="one name",
            hint=f"run it once with {each}, each with its --out" if len(names) > 1 else "",
        )  # fmt: skip
