"""`tutti nccl`: the algorithms and protocols that NCCL chooses, and why."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tutti import _core
from tutti.base.files.mistakes import mistake, shown
from tutti.cli import options
from tutti.collectives.sizes import growing
from tutti.nccl import ALGORITHMS, Settings, best, candidates, known_versions
from tutti.nccl.presets import preset_names, preset_of, system
from tutti.nccl.reasons import reason
from tutti.nccl.versions import version
from tutti.study.console import out, record, record_table
from tutti.view.quantity import format_size, format_time

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tutti.nccl import Candidate, NcclSystem

app = options.group("Explain the algorithms and protocols that NCCL chooses.")

_PS = 10**6
"""Picoseconds per microsecond."""

SystemName = Annotated[
    str, typer.Option("--system", metavar="NAME", help="System of `tutti nccl systems`.")
]
Nodes = Annotated[int, typer.Option("--nodes", min=1, help="Number of nodes.")]
Collective = Annotated[
    str,
    typer.Option("--collective", "-c", help="Collective, such as all_reduce or reduce_scatter."),
]
NcclVersion = Annotated[
    str | None,
    typer.Option(
        "--nccl", metavar="VERSION", help="Version of NCCL, such as 2.27; default: latest."
    ),
]
Variables = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        metavar="NAME=VALUE",
        help="An environment variable of NCCL, such as NCCL_MIN_NCHANNELS=8; may be repeated.",
    ),
]


@dataclass(frozen=True)
class _Question:
    """A collective on a system with a version of NCCL."""

    system: NcclSystem
    collective: str
    nccl: str
    settings: Settings

    def rows(self, size: int) -> list[Candidate]:
        return candidates(self.system, self.collective, size, self.nccl, self.settings)


@app.command("systems")
def systems() -> None:
    """List the systems whose graphs tutti knows, with their sources.

    \b
    Examples:
      tutti nccl systems
    """
    for name in preset_names():
        preset = preset_of(name)
        names = ("summary", "source", "inferred")
        row = {"name": name} | {one: getattr(preset, one) for one in names}
        record_table("systems", [row])
        out().print(Text(name, style="bold"))
        lines = (preset.summary, f"source: {preset.source}", f"inferred: {preset.inferred}")
        for line in lines:
            _print_indented(line)


def _print_indented(text: str) -> None:
    out().print(Padding(Text(text), (0, 0, 0, 2), expand=False))


@app.command("explain")
def explain(
    name: SystemName = "dgx_h100",
    nodes: Nodes = 1,
    collective: Collective = "all_reduce",
    size: Annotated[
        str | None,
        typer.Option("--size", "-s", metavar="SIZE", help="Size: one. Default: 64MiB."),
    ] = None,
    begin: options.Begin = None,
    end: options.End = None,
    factor: options.Factor = None,
    nccl: NcclVersion = None,
    algo: Annotated[str, typer.Option("--algo", help="NCCL_ALGO, such as ^Ring.")] = "",
    proto: Annotated[str, typer.Option("--proto", help="NCCL_PROTO, such as LL,Simple.")] = "",
    variables: Variables = None,
) -> None:
    """Show the time that NCCL predicts for each algorithm and protocol, and which it chooses.

    With -b, -e or -f, shows the choice for each size, by default from 8 B to 1 GiB. Sizes are those
    of nccl-tests: the larger of a rank's send and receive buffers.

    \b
    Examples:
      tutti nccl explain --system dgx_h100 --nodes 2 --size 64MiB
      tutti nccl explain --nodes 4 -b 8 -e 1GiB --nccl 2.20
      tutti nccl explain --nodes 2 --algo ^NVLSTree --env NCCL_MAX_NCHANNELS=8 --json
    """
    settings = _settings(variables or [], algo, proto)
    full = version(nccl or known_versions()[-1]).name
    question = _Question(system(name, nodes), collective, full, settings)
    if begin is None and end is None and factor is None:
        _explain_one(question, _bytes(size or "64MiB", "--size"))
        return
    if size is not None:
        raise mistake("excludes -b, -e and -f", source="--size", value=shown(size),
                      expected="one size, or a range of sizes")  # fmt: skip
    _explain_sizes(question, _range(begin, end, factor))


def _range(begin: str | None, end: str | None, factor: int | None) -> list[int]:
    """Returns the sizes of the options -b, -e and -f."""
    first, last, by = _bytes(begin or "8", "-b"), _bytes(end or "1GiB", "-e"), factor or 2
    if first > last or by < 2:
        raise mistake(
            "invalid range of sizes",
            source="-b, -e, -f",
            value=f"{first} to {last}, factor {by}",
            expected="the smaller size first, and a factor of 2 or more",
        )
    return growing(first, last, by)


def _bytes(text: str, option: str) -> int:
    return _core.parse_size(options.size(text, option))


def _settings(variables: list[str], algo: str, proto: str) -> Settings:
    """Returns the settings of the options."""
    environment = {"NCCL_ALGO": algo, "NCCL_PROTO": proto}
    known = {f"NCCL_{name.upper()}" for name in asdict(Settings())}
    for text in variables:
        name, equals, value = text.partition("=")
        if not equals or name not in known:
            raise mistake(
                f"`{name}` does not change the choice" if equals else "lacks the value",
                source="--env",
                value=shown(text),
                expected="NAME=VALUE with one of " + ", ".join(sorted(known)),
            )
        environment[name] = value
    return Settings.from_environment(environment)


def _explain_one(question: _Question, size: int) -> None:
    rows = question.rows(size)
    chosen = best(rows, question.collective)
    _record(question, [_choice(size, rows, chosen)])
    out().print(_heading(question, f"{question.collective} of {format_size(size)}"))
    table = _table("algorithm", "protocol", "time", "channels", "threads", "why", gap=1)
    for row in sorted((row for row in rows if row.considered), key=lambda row: row.time):
        table.add_row(
            Text(row.algorithm, style="bold" if row is chosen else ""),
            row.protocol,
            format_time(row.time * _PS),
            str(row.channels),
            str(row.threads),
            Text(reason(row, chosen).replace("; ", "\n")),
        )
    out().print(table)
    refused = _refused(rows)
    if refused:
        out().print("not considered")
    for (algorithm, refusal), protocols in refused.items():
        _print_indented(f"{algorithm} {', '.join(protocols)}: {refusal}")
    out().print(f"NCCL chooses {chosen.algorithm} with {chosen.protocol}", markup=False)


def _refused(rows: list[Candidate]) -> dict[tuple[str, str], list[str]]:
    """Returns the protocols of each algorithm that NCCL does not consider, by reason."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if not row.considered:
            found.setdefault((row.algorithm, row.refusal), []).append(row.protocol)
    return found


def _explain_sizes(question: _Question, sizes: list[int]) -> None:
    found = [(size, question.rows(size)) for size in sizes]
    chosen = [best(rows, question.collective) for _, rows in found]
    pairs = zip(found, chosen, strict=True)
    _record(question, (_choice(size, rows, row) for (size, rows), row in pairs))
    out().print(_heading(question, question.collective))
    table = _table("size", "algorithm", "protocol", "time", "channels", "next best")
    for (size, rows), row in zip(found, chosen, strict=True):
        table.add_row(
            format_size(size),
            row.algorithm,
            row.protocol,
            format_time(row.time * _PS),
            str(row.channels),
            Text(_next_best(rows, row)),
        )
    out().print(table)


def _next_best(rows: list[Candidate], chosen: Candidate) -> str:
    """Returns the fastest other algorithm, and how much longer it takes."""
    others = [row for row in rows if row.considered and row.algorithm != chosen.algorithm]
    if not others:
        return "-"
    other = min(others, key=lambda row: row.time)
    return f"{other.algorithm} {other.protocol}, {other.time / chosen.time:.2f}x"


def _heading(question: _Question, about: str) -> Text:
    where = question.system
    count = f"{where.nodes} x {where.gpus_per_node} GPUs"
    return Text(f"{about} on {where.name}, {count}, NCCL {question.nccl}", style="bold")


def _table(*columns: str, gap: int = 2) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0))
    for column in columns:
        right = column in {"size", "time", "channels", "threads"}
        table.add_column(column, justify="right" if right else "left")
    return table


def _choice(size: int, rows: list[Candidate], chosen: Candidate) -> dict[str, Any]:
    return {
        "size_bytes": size,
        "choice": {"algorithm": chosen.algorithm, "protocol": chosen.protocol},
        "candidates": [
            {
                "algorithm": row.algorithm,
                "protocol": row.protocol,
                "considered": row.considered,
                "time_us": row.time if row.considered else None,
                "latency_us": row.latency,
                "bandwidth_gb_per_s": row.bandwidth,
                "channels": row.channels,
                "threads": row.threads,
                "why": reason(row, chosen),
            }
            for row in sorted(rows, key=lambda row: ALGORITHMS.index(row.algorithm))
        ],
    }


def _record(question: _Question, sizes: Iterable[dict[str, Any]]) -> None:
    where = question.system
    record(
        system=where.name,
        nodes=where.nodes,
        gpus_per_node=where.gpus_per_node,
        nccl=question.nccl,
        collective=question.collective,
    )
    record_table("sizes", sizes)
