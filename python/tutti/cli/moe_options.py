"""The options of `tutti moe`, and the layer, kernels and routing that they define."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tutti.base.files.mistakes import known_word, mistake, shown
from tutti.base.ranges import RANK_NOTATION, expanded_ranks
from tutti.schedules.popularity import popularity
from tutti.training.experts import MOST_SIMULATED
from tutti.training.files.step_file import find_model, remarked_model
from tutti.workloads.experts import (
    KERNELS,
    ExpertLayer,
    Placement,
    counted_choices,
    read_counts,
    sampled_choices,
)
from tutti.workloads.tokens import FORMATS

if TYPE_CHECKING:
    from tutti.workloads.experts import Choices

_LAYER = "Layer"
_MACHINE = "Machine"
_ROUTING = "Routing"
_BOTH = "both"
_ORDERS: tuple[Literal["block", "cyclic"], ...] = ("block", "cyclic")
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
                          help=f"Rank counts: {RANK_NOTATION}.")
    ] = "8,16,32"  # fmt: skip
    platform: Annotated[
        str, typer.Option("--platform", "-p", rich_help_panel=_MACHINE,
                          help="Name, file or notation of a platform with a topology.")
    ] = "dgx_h100_cluster"  # fmt: skip
    per_node: Annotated[
        int | None, typer.Option("--ranks-per-node", min=1, show_default=False,
                                 help="Ranks per node; default: the scale-up domain of the "
                                 "platform.", rich_help_panel=_MACHINE)
    ] = None  # fmt: skip
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
                                 help="Most nodes of a token's experts; default: the limit of "
                                 "MODEL on groups of experts, if any.")
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


def order_of(given: RoutingOptions) -> Literal["block", "cyclic"]:
    """Returns the placement of experts."""
    return known_word(given.placement, _ORDERS, source="--placement")


def layer_of(given: LayerOptions, most_nodes: int | None) -> ExpertLayer:
    """Returns the layer of experts.

    Raises:
        ConfigError: A size is missing, a format is unknown, or the model has no experts.
    """
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
        **_groups(given, experts, most_nodes),
        dispatch=known_word(given.dispatch, FORMATS, source="--dispatch-format"),
        combine=known_word(given.combine, FORMATS, source="--combine-format"),
        most_nodes=most_nodes,
    )


def _groups(given: LayerOptions, experts: int, most_nodes: int | None) -> dict[str, Any]:
    """Returns the groups of experts of the model, which `--most-nodes` and `--experts` replace."""
    decoder = find_model(given.model, Path()).decoder if given.model is not None else None
    of = decoder.experts if decoder else None
    if of is None or most_nodes is not None or of.routed != experts:
        return {}
    return {"groups": of.groups, "most_groups": of.most_groups}


def _model_sizes(notation: str) -> tuple[int, int, int]:
    """Returns elements of a token, experts, and experts per token of a model's first experts.

    The products of experts have a row per token and selected expert, other products one per token.
    """
    layers = remarked_model(notation).layers
    first = next((one for one in layers if one.experts > 1), None)
    if first is None:
        expected = "a model with experts, such as gpt:hidden=4096,experts=64"
        raise mistake("has no experts", source="MODEL", value=shown(notation), expected=expected)
    product = first.gemms[0]
    tokens = next(one.gemms[0].m for one in layers if one.gemms)
    return product.k, first.experts, max(1, product.m // tokens)


def kernels_of(name: str) -> tuple[Any, ...]:
    """Returns the kernels that `--kernel` selects."""
    word = known_word(name, (*KERNELS, _BOTH), source="--kernel")
    return KERNELS if word == _BOTH else (word,)


def ranks_of(text: str) -> list[int]:
    """Returns the rank counts of `--ranks`."""
    counts = expanded_ranks(text)
    if counts[0] < 2 or counts[-1] > _MOST_RANKS:
        expected = f"2 to {_MOST_RANKS:,} ranks"
        raise mistake("is out of range", source="--ranks", value=shown(text), expected=expected)
    return counts


def samples_of(layer: ExpertLayer, placed: Placement, given: RoutingOptions) -> list[Choices]:
    """Returns the experts that tokens choose, in each sample of the routing.

    Raises:
        ConfigError: There are too many choices, or the routing is unknown.
    """
    of_token = placed.ranks * layer.top_k
    size = given.samples * layer.tokens * of_token
    if size > _MOST_CHOICES:
        problem = f"{size:,} choices of experts (samples x ranks x tokens x top-k) are too many"
        option, most = "--samples", _MOST_CHOICES // (layer.tokens * of_token)
        one = ""
        if not most:
            option, most = "--tokens", _MOST_CHOICES // of_token
            one = " and --samples 1" if given.samples > 1 else ""
        raise mistake(problem, source=option, expected=f"at most {_MOST_CHOICES:,}",
                      hint=f"use {option} {most}{one}, or less")  # fmt: skip
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
    # Sampling releases the interpreter lock.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda seed: sampled_choices(layer, placed, shares, seed=seed), seeds))
