"""`tutti moe`: dispatch and combine of a layer of experts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer
from rich.table import Table

from tutti.base.files.mistakes import did_you_mean, mistake, shown
from tutti.cli import options
from tutti.cli.grouped import grouped
from tutti.platforms.files.builder import machine
from tutti.platforms.files.presets import chosen_model, find_platform
from tutti.schedules.popularity import popularity
from tutti.study.console import out, record, record_table, remark
from tutti.study.progress import Progress
from tutti.training.experts import MOST_SIMULATED, time_experts
from tutti.view.quantity import format_share, format_size, format_time
from tutti.workloads import build
from tutti.workloads.experts import (
    FORMATS,
    KERNELS,
    ExpertLayer,
    Placement,
    counted_choices,
    read_counts,
    sampled_choices,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.platforms.machine import Platform
    from tutti.training.experts import ExpertTimes, Quantiles, StageTimes
    from tutti.workloads.experts import Choices, Format

_LAYER = "Layer"
_MACHINE = "Machine"
_ROUTING = "Routing"
_BOTH = "both"
_MOST_RANKS = 1024
_MOST_SEED = (1 << 63) - 1
_MOST_CHOICES = 1 << 27
"""Limit on the stored choices of all samples: 1 GiB."""


@dataclass
class LayerOptions:
    """The layer of experts."""

    model: Annotated[
        str | None,
        typer.Argument(metavar="[MODEL]", show_default=False,
                       help="A model with experts, such as gpt:hidden=4096,experts=64; or state "
                       "--hidden, --experts and --top-k."),
    ] = None  # fmt: skip
    hidden: Annotated[
        int | None, typer.Option("--hidden", min=1, help="Elements of a token.",
                                 rich_help_panel=_LAYER)
    ] = None  # fmt: skip
    experts: Annotated[
        int | None, typer.Option("--experts", min=1, help="Number of routed experts.",
                                 rich_help_panel=_LAYER)
    ] = None  # fmt: skip
    top_k: Annotated[
        int | None, typer.Option("--top-k", min=1, rich_help_panel=_LAYER,
                                 help="Experts per token; default: those of MODEL.")
    ] = None  # fmt: skip
    tokens: Annotated[
        int, typer.Option("--tokens", min=1, help="Tokens per rank.", rich_help_panel=_LAYER)
    ] = 128  # fmt: skip
    dispatch: Annotated[
        str, typer.Option("--dispatch-format", help="Format of dispatched tokens: fp8 or bf16.",
                          rich_help_panel=_LAYER)
    ] = "fp8"  # fmt: skip
    combine: Annotated[
        str, typer.Option("--combine-format", help="Format of returned tokens: fp8 or bf16.",
                          rich_help_panel=_LAYER)
    ] = "bf16"  # fmt: skip


@dataclass
class MachineOptions:
    """The machine and the kernels."""

    ranks: Annotated[
        str, typer.Option("--ranks", "-r", rich_help_panel=_MACHINE,
                          help="Rank counts: a list 8,16 or a range 8:64.")
    ] = "8,16,32"  # fmt: skip
    platform: Annotated[
        str, typer.Option("--platform", "-p", rich_help_panel=_MACHINE,
                          help="Name, file or notation of a platform with a topology.")
    ] = "dgx_h100_cluster"  # fmt: skip
    per_node: Annotated[
        int, typer.Option("--ranks-per-node", min=1, help="Ranks per node.",
                          rich_help_panel=_MACHINE)
    ] = 8  # fmt: skip
    kernel: Annotated[
        str, typer.Option("--kernel", "-k", help="Kernel: normal, low_latency or both.",
                          rich_help_panel=_MACHINE)
    ] = _BOTH  # fmt: skip
    most_simulated: Annotated[
        int, typer.Option("--simulate-up-to", min=0, max=_MOST_RANKS, metavar="RANKS",
                          rich_help_panel=_MACHINE,
                          help="Most ranks to simulate; larger counts get lower bounds only.")
    ] = MOST_SIMULATED  # fmt: skip


@dataclass
class RoutingOptions:
    """Which experts tokens select, and where they are."""

    routing: Annotated[
        str, typer.Option("--routing", rich_help_panel=_ROUTING,
                          help="Routing: uniform, zipf:S or a CSV file of tokens per rank, expert.")
    ] = "uniform"  # fmt: skip
    most_nodes: Annotated[
        int | None, typer.Option("--most-nodes", min=1, rich_help_panel=_ROUTING,
                                 help="Most nodes of a token's experts; default: no limit.")
    ] = None  # fmt: skip
    placement: Annotated[
        str, typer.Option("--placement", rich_help_panel=_ROUTING,
                          help="Consecutive experts on a rank (block), or on consecutive ranks "
                          "(cyclic).")
    ] = "block"  # fmt: skip
    samples: Annotated[
        int, typer.Option("--samples", min=1, max=1000, help="Samples of the routing.",
                          rich_help_panel=_ROUTING)
    ] = 10  # fmt: skip
    seed: Annotated[
        int, typer.Option("--seed", min=0, max=_MOST_SEED, help="Seed of the first sample.",
                          rich_help_panel=_ROUTING)
    ] = 0  # fmt: skip


@grouped
def moe(layer: LayerOptions, target: MachineOptions, routing: RoutingOptions) -> None:
    """Time the all-to-alls of a layer of experts, and choose its kernel.

    Dispatch sends every token to its experts, combine returns their outputs. The low_latency kernel
    sends a copy per selected expert directly. The normal kernel sends a copy per node, which a rank
    of that node forwards. Tokens select experts at random, so that the busiest rank has more than
    the mean: intervals are 5 % to 95 % of the samples.

    Times are of the network, without launches of kernels: simulated by flows, or the lower bound
    by link capacities on more than --simulate-up-to ranks.

    \b
    Examples:
      tutti moe --hidden 7168 --experts 256 --top-k 8 --ranks 16,32
      tutti moe deepseek_v3 --platform h800_deepep --ranks 32 --routing zipf:1.0
      tutti moe gpt:hidden=4096,experts=64 --top-k 2 --ranks 64 --kernel normal
    """
    chosen = _layer(layer, routing.most_nodes)
    found = find_platform(target.platform, folder=Path(), source="--platform")
    options.remark_platform(found)
    network = machine(found, chosen_model(found, None, source="--platform"), source="--platform")
    results = _timed(chosen, target, routing, network)
    _record(chosen, network.name, routing, results)
    _show(chosen, network.name, routing, results)


def _timed(
    layer: ExpertLayer, target: MachineOptions, routing: RoutingOptions, network: Platform
) -> list[ExpertTimes]:
    kernels = _kernels(target.kernel)
    order = cast('Literal["block", "cyclic"]', _word("--placement", routing.placement, _ORDERS))
    counts = _ranks(target.ranks)
    results: list[ExpertTimes] = []
    total = len(counts) * len(kernels)
    with Progress("simulating", work=total * sum(counts), total=total) as progress:
        for ranks in counts:
            placed = Placement.of(layer.experts, ranks=ranks, per_node=target.per_node, order=order)
            samples = _samples(layer, placed, routing)
            for kernel in kernels:
                found = time_experts(
                    layer, placed, samples, network, kernel, most_simulated=target.most_simulated
                )
                results.append(found)
                progress.advance(ranks * len(counts), len(results))
    return results


# --- input ----------------------------------------------------------------------------------------

_ORDERS = ("block", "cyclic")


def _layer(given: LayerOptions, most_nodes: int | None) -> ExpertLayer:
    hidden, experts, top_k = given.hidden, given.experts, given.top_k
    if given.model is not None:
        of_model = _model_sizes(given.model)
        hidden, experts = hidden or of_model[0], experts or of_model[1]
        top_k = top_k or of_model[2]
    if hidden is None or experts is None or top_k is None:
        absent = {"--hidden": hidden, "--experts": experts, "--top-k": top_k}
        missing = next(name for name, value in absent.items() if value is None)
        hint = "or name a model, such as gpt:hidden=4096,experts=64"
        raise mistake("is missing", source=missing, hint=hint,
                      expected="--hidden, --experts and --top-k")  # fmt: skip
    return ExpertLayer(
        hidden=hidden,
        experts=experts,
        top_k=top_k,
        tokens=given.tokens,
        dispatch=cast("Format", _word("--dispatch-format", given.dispatch, FORMATS)),
        combine=cast("Format", _word("--combine-format", given.combine, FORMATS)),
        most_nodes=most_nodes,
    )


def _model_sizes(notation: str) -> tuple[int, int, int]:
    """Returns elements of a token, experts, and experts per token of a model's first experts.

    The products of experts have a row per token and selected expert, other products one per token.
    """
    layers = build(notation).layers
    first = next((one for one in layers if one.experts > 1), None)
    if first is None:
        expected = "a model with experts, such as gpt:hidden=4096,experts=64"
        raise mistake("has no experts", source="MODEL", value=shown(notation), expected=expected)
    product = first.gemms[0]
    tokens = next(one.gemms[0].m for one in layers if one.gemms)
    return product.k, first.experts, max(1, product.m // tokens)


def _kernels(name: str) -> tuple[Any, ...]:
    return KERNELS if _word("--kernel", name, (*KERNELS, _BOTH)) == _BOTH else (name,)


def _word(option: str, word: str, known: Sequence[str]) -> str:
    if word not in known:
        raise mistake(
            "unknown value",
            source=option,
            value=shown(word),
            expected=f"one of {', '.join(known)}",
            hint=did_you_mean(word, known),
        )
    return word


def _ranks(text: str) -> list[int]:
    counts = options.expanded_ranks(text)
    if counts[0] < 2 or counts[-1] > _MOST_RANKS:
        expected = f"2 to {_MOST_RANKS:,} ranks"
        raise mistake("is out of range", source="--ranks", value=shown(text), expected=expected)
    return counts


def _samples(layer: ExpertLayer, placed: Placement, given: RoutingOptions) -> list[Choices]:
    size = given.samples * placed.ranks * layer.tokens * layer.top_k
    if size > _MOST_CHOICES:
        problem = f"{size:,} choices of experts (samples x ranks x tokens x top-k) are too many"
        expected = f"at most {_MOST_CHOICES:,}"
        raise mistake(problem, source="--samples", expected=expected, hint="use fewer samples")
    seeds = range(given.seed, given.seed + given.samples)
    path = Path(given.routing)
    if path.suffix == ".csv":
        if layer.most_nodes is not None:
            problem = "does not apply to counts of a file"
            raise mistake(problem, source="--most-nodes", hint="omit it")
        counts = read_counts(path, layer, placed)
        return [counted_choices(layer, counts, seed=seed) for seed in seeds]
    if path.suffix and path.is_file():
        raise mistake("unknown routing", source="--routing", value=shown(given.routing),
                      expected="uniform, zipf:S or a CSV file with the suffix .csv")  # fmt: skip
    shares = popularity(given.routing, layer.experts, seed=given.seed)
    return [sampled_choices(layer, placed, shares, seed=seed) for seed in seeds]


# --- output ---------------------------------------------------------------------------------------


def _record(
    layer: ExpertLayer, platform: str, given: RoutingOptions, results: Sequence[ExpertTimes]
) -> None:
    record(
        layer=layer,
        platform=platform,
        routing=given.routing,
        placement=given.placement,
        samples=given.samples,
        seed=given.seed,
        decisions=_decisions(results),
    )
    rows = (
        {
            "kernel": one.kernel,
            "ranks": one.ranks,
            "imbalance": one.imbalance,
            "dispatch": _stage(one.dispatch),
            "combine": _stage(one.combine),
        }
        for one in results
    )
    record_table("results", rows)


def _stage(stage: StageTimes) -> dict[str, Any]:
    return {
        "bound_ps": stage.bound_ps,
        "time_ps": stage.time_ps,
        "relative_bound": stage.relative_bound,
        "bottleneck": stage.bottleneck,
        "network_bytes_per_rank": stage.network_bytes,
        "node_bytes_per_rank": stage.node_bytes,
    }


def _show(
    layer: ExpertLayer, platform: str, given: RoutingOptions, results: Sequence[ExpertTimes]
) -> None:
    out().print(
        f"{layer.experts} experts, top-{layer.top_k}, {layer.tokens:,} tokens of {layer.hidden:,} "
        f"per rank, {layer.dispatch} dispatch, {layer.combine} combine, {given.routing} routing on "
        f"{platform}",
        markup=False,
    )
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), expand=True)
    table.add_column("ranks\n", justify="right", no_wrap=True)
    table.add_column("kernel\n[dim]bottleneck[/]", ratio=1)
    for name in ("dispatch\n[dim]interval[/]", "combine\n[dim]interval[/]"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("network\n[dim]node[/]", "imba-\nlance", "bound/\neven", "from\n"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in results:
        table.add_row(*_row(one))
    out().print(table)
    remark(
        "network, node: bytes per rank to other nodes and within the node, dispatch and combine\n"
        "imbalance: busiest rank over mean; bound/even: bound over that of an even load"
    )
    for line in _decisions(results):
        out().print(line, markup=False)


def _row(one: ExpertTimes) -> list[str]:
    stages = one.dispatch, one.combine
    network = sum(stage.network_bytes for stage in stages)
    node = sum(stage.node_bytes for stage in stages)
    return [
        f"{one.ranks:,}",
        f"{one.kernel}\n[dim]{one.dispatch.bottleneck}[/]",
        *(f"{format_time(s.best_ps.median)}\n[dim]{_interval(s.best_ps)}[/]" for s in stages),
        f"{format_size(network)}\n[dim]{format_size(node)}[/]",
        f"{one.imbalance.median:.2f}",
        f"{max(stage.relative_bound.median for stage in stages):.2f}",
        "flow" if one.dispatch.time_ps else "bound",
    ]


def _interval(found: Quantiles) -> str:
    low, high = format_time(found.low), format_time(found.high)
    unit = high.split()[1]
    return f"{low.removesuffix(f' {unit}')}-{high}"


def _decisions(results: Sequence[ExpertTimes]) -> list[str]:
    """Returns the choice of the kernel per number of ranks, and the cost of more ranks."""
    best: list[ExpertTimes] = []
    lines = []
    for ranks in sorted({one.ranks for one in results}):
        ranked = sorted((x for x in results if x.ranks == ranks), key=lambda x: x.total_ps)
        best.append(ranked[0])
        if len(ranked) > 1:
            lines.append(_choice(*ranked))
    least = min(best, key=lambda one: one.total_ps)
    for one in best:
        if one is not least:
            factor = one.total_ps / least.total_ps
            lines.append(
                f"{one.ranks:,} ranks take {factor:.2f} times as long as {least.ranks:,} "
                f"({format_time(one.total_ps)} and {format_time(least.total_ps)})"
            )
    return lines


def _choice(first: ExpertTimes, second: ExpertTimes) -> str:
    """Returns the kernel to use, and the margin that work outside the network must not exceed."""
    high = first.dispatch.best_ps.high + first.combine.best_ps.high
    low = second.dispatch.best_ps.low + second.combine.best_ps.low
    margin = format_time(second.total_ps - first.total_ps)
    if first.total_ps == second.total_ps:
        return f"{first.ranks:,} ranks: either kernel: the times are equal"
    if high > low:
        return (
            f"{first.ranks:,} ranks: either kernel: {second.kernel} is {margin} slower, within "
            "the intervals"
        )
    how = "" if first.dispatch.time_ps else ", by lower bounds"
    extra = "its launches and exchange of counts" if first.kernel == "normal" else "its launches"
    return (
        f"{first.ranks:,} ranks: use {first.kernel}, which saves {margin} "
        f"({format_share(1 - first.total_ps / second.total_ps)}){how}, unless {extra} take that "
        "much more"
    )
