"""`tutti coherence`: runs parallel kernels on chips with coherent caches."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any

import typer

from tutti.base.files.mistakes import mistake, shown
from tutti.cli import coherence_list, options
from tutti.cli.grouped import grouped
from tutti.networks.coherence import CoherenceRun, run_all
from tutti.networks.coherence import kernels as registered
from tutti.networks.coherence.files import load_coherence
from tutti.networks.coherence.view.run import runs_view
from tutti.study.study import Study, read

app = options.group("Run parallel kernels on a chip with coherent caches.")
app.command("list")(coherence_list.list_)


@dataclass
class Kernels:
    """The kernels and the chip."""

    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="A configuration file (TOML); optional."),
    ] = None
    kernel: Annotated[
        str | None, typer.Option("--kernel", "-k", help="Kernel, a comma-separated list, or `all`.")
    ] = None
    protocol: Annotated[
        str | None, typer.Option("--protocol", help="Protocol: `ht` or `tc`. Default: `ht`.")
    ] = None
    design: Annotated[
        str | None, typer.Option("--design", help="A mesh design, or a comma-separated list.")
    ] = None
    scale: Annotated[
        str | None, typer.Option("--scale", help="`tiny`, `small` or `large`. Default: `small`.")
    ] = None

    @property
    def overrides(self) -> dict[str, Any]:
        """The keys of a file that the options replace, with their values.

        Raises:
            ConfigError: Neither a file nor a kernel is given, or an option has several values.
        """
        if self.file is None and self.kernel is None:
            raise mistake("nothing to run", source="tutti coherence run",
                          expected="a file, or --kernel",
                          hint="`tutti coherence list` lists the kernels")  # fmt: skip
        _refuse_several("--protocol", self.protocol)
        _refuse_several("--scale", self.scale)
        values = {
            "kernel": list(registered()) if self.kernel == "all" else _names(self.kernel),
            "designs": _names(self.design),
            "chip.protocol": self.protocol,
            "scale": self.scale,
        }
        return {key: value for key, value in values.items() if value is not None}


@app.command("run")
@grouped
def run_(
    kernels: Kernels,
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
    overrides = kernels.overrides
    experiment = read(
        "laying out",
        lambda: load_coherence(kernels.file, changes or (), options=overrides, output=to),
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


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


def _refuse_several(option: str, text: str | None) -> None:
    """Refuses a list where a run takes one value."""
    names = [name for name in _names(text) or () if name]
    if text is not None and "," in text:
        each = " and once with ".join(f"`{option} {name}`" for name in names)
        raise mistake(
            "takes one value", source=option, value=shown(text), expected="one name",
            hint=f"run it once with {each}, each with its --out" if len(names) > 1 else "",
        )  # fmt: skip
