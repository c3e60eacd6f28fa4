"""`tutti mpi`: plans for the MPI library, programs run with it, and the MPI implementation."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tutti.cli import mpi_options
from tutti.cli.command_group import CommandGroup, Commands
from tutti.study.console import out, record, record_table, remark, wrote

if TYPE_CHECKING:
    from rich.table import Table

    from tutti.mpi.plan import CollectivePlan, Rule
    from tutti.mpi.underneath import Mpi

app = Commands(
    cls=CommandGroup,
    help="Run and benchmark schedules over MPI, also under unmodified programs.",
    rich_markup_mode=None,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="A plan file.", show_default=False)]


# --- info -----------------------------------------------------------------------------------------


@app.command()
def info(
    mpicc: mpi_options.Mpicc = None,
    launcher: mpi_options.Launcher = None,
    build: Annotated[
        bool, typer.Option("--compile", help="Compile the library for it now, if it is not.")
    ] = False,
    start: Annotated[
        bool, typer.Option("--start", help="Start two ranks, which report their MPI library.")
    ] = False,
) -> None:
    """Show the MPI implementation, why it was selected, and whether the library is compiled for it.

    The default is the one with the first mpiexec on PATH, or in the environment of this Python.

    \b
    Examples:
      tutti mpi info
      tutti mpi info --start
      tutti mpi info --mpicc /opt/mpich/bin/mpicc --compile
    """
    from tutti.mpi.underneath import find_mpi

    mpi = find_mpi(mpicc, launcher)
    facts = [
        ("MPI", f"{mpi}, MPI standard {mpi.standard}"),
        ("selected", mpi.why),
        *(("also", other) for other in _others(mpi)),
        ("mpicc", f"{mpi.mpicc} ({' for '.join(filter(None, (mpi.compiler, mpi.machine)))})"),
        ("mpiexec", str(mpi.mpiexec)),
        *_library(mpi, build=build),
        *(_running(mpi) if start else []),
    ]
    record(mpi=mpi.kind, standard=mpi.standard, mpicc=mpi.mpicc, mpiexec=mpi.mpiexec)
    record_table("facts", ({"name": name, "fact": fact} for name, fact in facts))
    for name, fact in facts:  # one line each, for copying paths
        out().print(f"{name + ':':<10}{fact}", markup=False, soft_wrap=True)


def _others(mpi: Mpi) -> list[str]:
    """Lists launchers of other MPI libraries, in case one of them was meant."""
    from tutti.mpi.errors import MpiError
    from tutti.mpi.underneath import NAMES, launcher_kind, launchers_on_path

    found = []
    for path in launchers_on_path():
        if path.resolve() == mpi.mpiexec.resolve():
            continue
        try:
            kind, version = launcher_kind(path)
        except MpiError:
            continue
        found.append(f"{path} ({NAMES[kind]} {version}): select it with --mpicc")
    return found


def _running(mpi: Mpi) -> list[tuple[str, str]]:
    from tutti.mpi.probe import probe

    found = probe(mpi)
    return [("ranks", found.version), ("threads", f"at most {found.threads}")]


def _library(mpi: Mpi, *, build: bool) -> list[tuple[str, str]]:
    from tutti.mpi.library import built, is_built, sources

    if not build and not is_built(mpi):
        missing = "not compiled; --compile or the first `tutti mpi exec` compiles it"
        return [("library", missing), ("sources", str(sources()))]
    made = built(mpi, starting=lambda: remark(f"compiling the library for {mpi}, once ..."))
    return [("library", str(made.library))]


# --- plan -----------------------------------------------------------------------------------------


Rules = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[COLLECTIVE[:SIZES]=SCHEDULE]...",
        help="Schedule of a collective: an algorithm, or a .schedule file; optionally for sizes "
        "such as 0-4K or 64K- only, both limits inclusive.",
    ),
]
Ranks = Annotated[
    str,
    typer.Option(
        "--ranks",
        "-r",
        help="Rank counts, required: 8, a list 4,8,12, each of 2-16, or a range 4:64 or 4:64:4 "
        "(with its factor).",
    ),
]
ForEvery = Annotated[
    list[str] | None,
    typer.Option(
        "--for-every",
        metavar="ALGORITHM",
        help="A rule for every collective that this algorithm performs, after the given rules; "
        "`untuned`: the MPICH default (its algorithms and thresholds of 2005); `usual`: the same, "
        "without the sizes at which the native collective was faster. May be repeated.",
    ),
]

ExactTypes = Annotated[
    bool,
    typer.Option(
        "--exact-types",
        help="Accept all_reduce schedules whose results can differ in bits between ranks: "
        "libtutti_mpi uses them for exact operations only, such as sums of integers.",
    ),
]


@app.command("plan")
def plan_(
    rules: Rules = None,
    ranks: Ranks = "",
    for_every: ForEvery = None,
    exact_types: ExactTypes = False,
    to: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Output file.")] = Path(
        "plan.tutti"
    ),
) -> None:
    """Write a plan: which schedule performs which collective, for which ranks and sizes.

    If several rules match a call, the one with the narrowest size range whose schedule can perform
    the call applies; among equal ranges, the first. Sizes of all_gather and reduce_scatter are the
    total over all ranks. A bare number is bytes, and K, M, G stand for KiB, MiB, GiB. Every
    schedule is verified before it is written. An all_reduce schedule whose floating-point results
    can differ in bits between ranks is rejected: programs rely on identical results.

    \b
    Examples:
      tutti mpi plan --ranks 8 all_reduce=ring \\
        all_reduce:0-4K=recursive_multiplying:a8
      tutti mpi plan --ranks 2-16 --for-every usual --out plan.tutti
      tutti mpi plan --ranks 6 broadcast=binomial all_reduce=mine.schedule
    """
    from tutti.base.files.mistakes import mistake
    from tutti.cli.mpi_rules import RuleRequest, rank_list
    from tutti.mpi.plan import CollectivePlan
    from tutti.mpi.proof import remember
    from tutti.mpi.provenance import provenance
    from tutti.study.files import folder

    request = RuleRequest.read(rules or [], for_every or [])
    if not ranks:
        raise mistake("no rank counts for the plan", source="tutti mpi plan",
                      expected="--ranks N, such as --ranks 8 or --ranks 2-16")  # fmt: skip
    found, skipped = request.rules(rank_list(ranks), exact_types=exact_types)
    for line in skipped:
        remark(line)
    plan = CollectivePlan(_proved(found), provenance(sys.argv[1:]))
    folder(to.parent)
    remember(plan.write(to))
    record_table("rules", lambda: map(_row, plan.rules))
    out().print(rules_table(plan))
    wrote(to, note=f": {_counted(plan)}, {to.stat().st_size:,} bytes", wrap=True)


def _proved(rules: list[Rule]) -> list[Rule]:
    """Verifies the schedules of the rules, which takes long for many ranks."""
    from dataclasses import replace

    from tutti.mpi.plan import PlannedSchedule
    from tutti.schedules.ir import Schedule
    from tutti.study.progress import Progress

    work = sum(rule.ranks for rule in rules)
    done: list[Rule] = []
    with Progress("verifying", work=work, total=len(rules)) as progress:
        for rule in rules:
            given = rule.schedule
            planned = PlannedSchedule.of(given) if isinstance(given, Schedule) else given
            done.append(replace(rule, schedule=planned))
            progress.advance(rule.ranks, len(done))
    return done


def _counted(plan: CollectivePlan) -> str:
    rules, schedules = len(plan.rules), len(plan.schedules)
    return (
        f"{rules} rule{'s' * (rules != 1)}, {schedules} verified schedule{'s' * (schedules != 1)}"
    )


# --- show -----------------------------------------------------------------------------------------


@app.command()
def show(
    file: PlanFile,
    prove: Annotated[
        bool, typer.Option("--prove", help="Check its schedules again, from the file's bytes.")
    ] = False,
) -> None:
    """Show the rules of a plan in order of precedence, and its origin.

    Each schedule is listed with the number of steps of rank 0. A star marks schedules for
    commutative operations only, because they do not combine in rank order. A plus marks schedules
    with sends that complete in a later step. An exclamation mark marks schedules for exact
    operations only, because other results can differ in bits between ranks.

    \b
    Examples:
      tutti mpi show plan.tutti
      tutti mpi show --prove plan.tutti
    """
    from tutti.mpi.plan import CollectivePlan
    from tutti.mpi.proof import prove as prove_again

    plan = CollectivePlan.read(file)
    if prove:
        prove_again(plan, source=str(file))
    record(verified=prove, schedules=len(plan.schedules), provenance=plan.provenance)
    record_table("rules", lambda: map(_row, plan.rules))
    console = out()
    counted = _counted(plan) if prove else _counted(plan).replace(" verified", "")
    console.print(f"{file}: {counted}", markup=False)
    for key, value in plan.provenance.items():
        shown = _folded(str(value)) if key == "command" else value
        console.print(f"  {key}: {shown}", markup=False, soft_wrap=True)  # for copying
    console.print(rules_table(plan))


_COLUMNS = 80


def _folded(command: str) -> str:
    """Folds a command line into lines that a shell reads as one."""
    import shlex

    try:
        words = [shlex.quote(word) for word in shlex.split(command)]
    except ValueError:  # written by another program
        return command
    lines = ["  command:"]
    for word in words:
        if len(lines[-1]) + len(f" {word} \\") > _COLUMNS:
            lines[-1] += " \\"
            lines.append("   ")
        lines[-1] += f" {word}"
    return "\n".join(lines).removeprefix("  command: ")


def rules_table(plan: CollectivePlan) -> Table:
    """Returns the rules of a plan as a table; rules that differ only in ranks share a row."""
    from rich.table import Table
    from rich.text import Text

    from tutti.cli.mpi_rules import rank_ranges

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("collective", "ranks", "sizes"):
        table.add_column(name, overflow="fold")
    table.add_column("schedule", overflow="fold", ratio=1)
    table.add_column("steps", justify="right", no_wrap=True)
    table.add_column("")
    for rules in _alike(plan):
        one = rules[0].schedule
        counts = rank_ranges([rule.ranks for rule in rules])
        cells = (one.collective, counts, sizes(rules[0]), one.name, _steps(rules), _mark(rules))
        table.add_row(*map(Text, cells))
    marks = "".join(_mark([rule]) for rule in plan.rules)
    notes = [f"{sign} {meaning}" for sign, meaning in _MARKS.items() if sign in marks]
    if notes:
        table.caption = ", ".join(notes)
        table.caption_justify = "right"
    return table


_MARKS = {
    "*": "commutative operations only",
    "+": "sends complete in later steps",
    "!": "exact operations only, such as sums of integers",
}


def _row(rule: Rule) -> dict[str, Any]:
    """Returns a rule for `--json`."""
    return {
        "collective": rule.collective,
        "ranks": rule.ranks,
        "from_bytes": rule.sizes[0],
        "to_bytes": rule.sizes[1],
        "schedule": rule.schedule.name,
        "steps": int(_steps([rule])),
        "rank_order": "*" not in _mark([rule]),
        "pending_sends": "+" in _mark([rule]),
        "exact_only": "!" in _mark([rule]),
    }


def _alike(plan: CollectivePlan) -> list[list[Rule]]:
    """Groups rules that differ only in ranks, unless that would hide their precedence."""
    from graphlib import CycleError, TopologicalSorter

    groups: dict[tuple[str, ...], list[Rule]] = {}
    before: dict[tuple[str, ...], dict[tuple[str, ...], None]] = {}
    latest: dict[tuple[str, int], tuple[str, ...]] = {}
    for rule in plan.rules:
        key = (rule.collective, sizes(rule), rule.schedule.name)
        groups.setdefault(key, []).append(rule)
        earlier = before.setdefault(key, {})
        last = latest.get((rule.collective, rule.ranks))
        if last is not None:
            earlier[last] = None
        latest[rule.collective, rule.ranks] = key
    try:
        order = list(TopologicalSorter(before).static_order())
    except CycleError:
        return [[rule] for rule in plan.rules]
    collectives = list(dict.fromkeys(rule.collective for rule in plan.rules))
    return [groups[key] for key in sorted(order, key=lambda key: collectives.index(key[0]))]


def _steps(rules: list[Rule]) -> str:
    counts = sorted({len(rule.schedule.steps(0)) for rule in rules})  # type: ignore[arg-type]
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]}-{counts[-1]}"


def _mark(rules: list[Rule]) -> str:
    """Returns the signs of `_MARKS` that apply to some of the schedules."""
    from tutti.mpi.plan import PlannedSchedule

    planned = [rule.schedule for rule in rules if isinstance(rule.schedule, PlannedSchedule)]
    reduces = "reduce" in rules[0].collective
    star = "*" * (reduces and not all(one.rank_order for one in planned))
    return (
        star
        + "+" * any(one.pending_sends for one in planned)
        + "!" * any(one.bits_differ for one in planned)
    )


def sizes(rule: Rule) -> str:
    """Returns the sizes of a rule, such as ``from 4 KiB``."""
    from tutti.base.units import Size

    first, last = rule.sizes
    start, before = str(Size(bytes=first)), str(Size(bytes=max(first - 1, 0)))
    if last is None and first == 0:
        return "all"
    if last is None:
        return f"over {before}" if len(before) < len(start) else f"from {start}"
    end, after = str(Size(bytes=last)), f"below {Size(bytes=last + 1)}"
    if first == last:
        return end
    until = after if len(after) <= len(f"to {end}") else f"to {end}"
    return f"{start} {until}" if first else until
