"""`tutti mpi`: plans for the MPI library, programs run with it, and the MPI underneath."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tutti.cli.console import out, remark

if TYPE_CHECKING:
    from rich.table import Table

    from tutti.mpi.host import Host
    from tutti.mpi.plan import Plan, Rule

app = typer.Typer(
    help="Run schedules with real ranks, under unmodified MPI programs.",
    rich_markup_mode=None,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="A plan file.", show_default=False)]


# --- info -----------------------------------------------------------------------------------------


@app.command()
def info(
    mpicc: Annotated[
        str | None,
        typer.Option("--mpicc", help="Its compiler wrapper, instead of the one on PATH."),
    ] = None,
    build: Annotated[
        bool, typer.Option("--compile", help="Compile the library for it now, if it is not.")
    ] = False,
) -> None:
    """Show the MPI underneath, and whether the library is compiled for it.

    It is the one on PATH, or in the environment of this Python, and is started with two ranks.

    \b
    Examples:
      tutti mpi info
      tutti mpi info --mpicc /opt/mpich/bin/mpicc --compile
    """
    from tutti.mpi.host import find_host
    from tutti.mpi.probe import probe

    host = find_host(mpicc)
    said = probe(host)
    facts = [
        ("MPI", f"{host}, of the standard's version {host.standard}"),
        ("says", said.version),
        ("threads", f"{said.threads} at most"),
        ("mpicc", str(host.mpicc)),
        ("mpiexec", str(host.mpiexec)),
        ("library", _library(host, build=build)),
    ]
    for name, fact in facts:  # in one line each: paths are for copying
        out().print(f"{name + ':':<9}{fact}", markup=False, soft_wrap=True)


def _library(host: Host, *, build: bool) -> str:
    from tutti.mpi.library import built, is_built, sources

    if not build and not is_built(host):
        return f"not compiled yet, from {sources()}: --compile, or the first `tutti mpi exec`"
    made = built(host, starting=lambda: remark(f"compiling the library for {host}, once ..."))
    return f"{made.library}"


# --- plan -----------------------------------------------------------------------------------------


@app.command("plan")
def plan_(
    rules: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[COLLECTIVE[:SIZES]=SCHEDULE]...",
            help="What performs a collective: an algorithm, or a file that ends in .schedule; "
            "for sizes such as 0-4K or 64K- alone, both ends included.",
        ),
    ] = None,
    ranks: Annotated[
        str,
        typer.Option(
            "--ranks",
            "-r",
            help="Rank counts: 8, a list 4,8,12, each of 2-16, or a range 4:64 or 4:64:4 "
            "(with its factor).",
        ),
    ] = "",
    for_every: Annotated[
        list[str] | None,
        typer.Option(
            "--for-every",
            metavar="ALGORITHM",
            help="A rule for every collective that this algorithm performs, behind those that are "
            "given; `usual`: what MPI libraries use untuned. May be repeated.",
        ),
    ] = None,
    to: Annotated[Path, typer.Option("--out", "-o", help="The file.")] = Path("plan.tutti"),
) -> None:
    """Write a plan: which schedule performs which collective, for which ranks and sizes.

    Of rules that fit a call, the one for the narrowest range of sizes is taken whose schedule can
    do it, then the one that stands first. Sizes are counted as everywhere in tutti: of all_gather
    and reduce_scatter all shards together. A bare number is bytes, and K, M, G stand for KiB, MiB,
    GiB. Every schedule is proved before it is written.

    \b
    Examples:
      tutti mpi plan --ranks 8 all_reduce=ring all_reduce:0-4K=recursive_multiplying:a8
      tutti mpi plan --ranks 2-16 --for-every usual --out plan.tutti
      tutti mpi plan --ranks 6 broadcast=binomial all_reduce=mine.schedule
    """
    from tutti.cli.files import folder
    from tutti.cli.mpi_rules import Asked, rank_list
    from tutti.config.mistakes import mistake
    from tutti.mpi.plan import Plan
    from tutti.mpi.provenance import provenance

    asked = Asked.read(rules or [], for_every or [])
    if not ranks:
        raise mistake("a plan is for a number of ranks", source="tutti mpi plan",
                      expected="--ranks N, such as --ranks 8 or --ranks 2-16")  # fmt: skip
    found, skipped = asked.rules(rank_list(ranks))
    for line in skipped:
        remark(line)
    plan = Plan(_proved(found), provenance(sys.argv[1:]))
    folder(to.parent)
    plan.write(to)
    console = out()
    console.print(rules_table(plan))
    console.print(f"wrote {to}: {_counted(plan)}, {to.stat().st_size:,} bytes", markup=False)


def _proved(rules: list[Rule]) -> list[Rule]:
    """The same rules with their schedules proved, which takes long for many ranks."""
    from dataclasses import replace

    from tutti.cli.progress import Progress
    from tutti.mpi.plan import PlannedSchedule
    from tutti.schedule import Schedule

    work = sum(rule.ranks for rule in rules)
    done: list[Rule] = []
    with Progress("proving", work=work, total=len(rules)) as progress:
        for rule in rules:
            given = rule.schedule
            planned = PlannedSchedule.of(given) if isinstance(given, Schedule) else given
            done.append(replace(rule, schedule=planned))
            progress.advance(rule.ranks, len(done))
    return done


def _counted(plan: Plan) -> str:
    rules, schedules = len(plan.rules), len(plan.schedules)
    return f"{rules} rule{'s' * (rules != 1)}, {schedules} proved schedule{'s' * (schedules != 1)}"


# --- show -----------------------------------------------------------------------------------------


@app.command()
def show(file: PlanFile) -> None:
    """Show the rules of a plan, in their order of precedence, and what made it.

    Each schedule is shown with the steps that rank 0 takes; a star marks those that combine in
    another order than that of the ranks, and so are for commutative operations alone.

    \b
    Examples:
      tutti mpi show plan.tutti
    """
    from tutti.mpi.plan import Plan

    plan = Plan.read(file)
    console = out()
    console.print(f"{file}: {_counted(plan)}".replace(" proved", ""), markup=False)
    for key, value in plan.provenance.items():
        console.print(f"  {key}: {value}", markup=False)
    console.print(rules_table(plan))


def rules_table(plan: Plan) -> Table:
    """The rules of a plan; those that differ in their ranks alone share a row."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("collective", "ranks", "sizes"):
        table.add_column(name, overflow="fold")
    table.add_column("schedule", overflow="fold", ratio=1)
    table.add_column("steps", justify="right", no_wrap=True)
    table.add_column("")
    for rules in _alike(plan):
        one = rules[0].schedule
        counts = _runs([rule.ranks for rule in rules])
        cells = (one.collective, counts, sizes(rules[0]), one.name, _steps(rules), _mark(rules))
        table.add_row(*map(Text, cells))
    if any(_mark([rule]) for rule in plan.rules):
        table.caption = "* for commutative operations alone"
        table.caption_justify = "right"
    return table


def _alike(plan: Plan) -> list[list[Rule]]:
    """Rules that differ in ranks alone, together: unless that would hide which comes first."""
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
    """A star where some of the schedules reduce in another order than that of the ranks."""
    from tutti.mpi.plan import PlannedSchedule

    planned = [rule.schedule for rule in rules if isinstance(rule.schedule, PlannedSchedule)]
    reduces = "reduce" in rules[0].collective
    return "*" if reduces and not all(one.rank_order for one in planned) else ""


def sizes(rule: Rule) -> str:
    """The sizes of a rule, such as ``from 4 KiB``."""
    from tutti.units import Size

    first, last = rule.sizes
    begin, before = str(Size(bytes=first)), str(Size(bytes=max(first - 1, 0)))
    if last is None and first == 0:
        return "all"
    if last is None:
        return f"over {before}" if len(before) < len(begin) else f"from {begin}"
    end, after = str(Size(bytes=last)), f"below {Size(bytes=last + 1)}"
    if first == last:
        return end
    until = after if len(after) <= len(f"to {end}") else f"to {end}"
    return f"{begin} {until}" if first else until


def _runs(counts: list[int]) -> str:
    """Numbers as ``2-5, 8``."""
    runs: list[list[int]] = []
    for count in sorted(set(counts)):
        if runs and runs[-1][-1] == count - 1:
            runs[-1].append(count)
        else:
            runs.append([count])
    return ", ".join(f"{r[0]}-{r[-1]}" if len(r) > 1 else str(r[0]) for r in runs)
