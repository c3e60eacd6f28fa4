"""`tutti moe`: dispatch and combine of a layer of experts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tutti.cli.grouped import grouped
from tutti.cli.moe_options import (
    LayerOptions,
    MachineOptions,
    RoutingOptions,
    kernels_of,
    layer_of,
    order_of,
    ranks_of,
    samples_of,
)  # fmt: skip
from tutti.platforms.files.builder import machine
from tutti.platforms.files.notation import defaults_of
from tutti.platforms.files.presets import chosen_model, find_platform
from tutti.platforms.nodes import domain_of
from tutti.study.console import remark
from tutti.study.study import Study
from tutti.training.experts import ExpertTimes, all_to_all_of_library, time_experts
from tutti.training.view.experts import experts_view
from tutti.workloads.experts import Placement

if TYPE_CHECKING:
    from collections.abc import Callable

    from tutti.platforms.machine import Platform
    from tutti.workloads.experts import ExpertLayer


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
    chosen = layer_of(layer, routing.most_nodes)
    found = find_platform(target.platform, folder=Path(), source="--platform")
    if text := defaults_of(found):
        remark(text)
    network = machine(found, chosen_model(found, None, source="--platform"), source="--platform")
    for text in network.remarks:
        remark(text)
    study = Study[ExpertTimes]()
    results, planned = _timed(study, chosen, target, routing, network)
    for ranks in ranks_of(target.ranks):
        if text := all_to_all_of_library(chosen, network, ranks):
            remark(text)
    names = ("routing", "placement", "samples", "seed")
    settings = {name: getattr(routing, name) for name in names}
    if results:
        study.present(experts_view(results, chosen, network.name, settings))
    study.end(len(results), planned)


def _timed(
    study: Study[ExpertTimes],
    layer: ExpertLayer,
    target: MachineOptions,
    routing: RoutingOptions,
    network: Platform,
) -> tuple[list[ExpertTimes], int]:
    """Returns the times of each kernel on each number of ranks, and how many there are."""
    kernels, order, counts = kernels_of(target.kernel), order_of(routing), ranks_of(target.ranks)
    per_node = target.per_node or (domain_of(network.routes) if network.routes else 1)

    def compute(done: Callable[[ExpertTimes], None]) -> None:
        for ranks in counts:
            placed = Placement.of(layer.experts, ranks=ranks, per_node=per_node, order=order)
            samples = samples_of(layer, placed, routing)
            for kernel in kernels:
                done(
                    time_experts(layer, placed, samples, network, kernel,
                                 most_simulated=target.most_simulated)
                )  # fmt: skip

    planned = len(counts) * len(kernels)
    work = len(kernels) * sum(counts)
    results, _ = study.several(
        "simulating", compute, planned=planned, work=work, work_of=lambda times: times.ranks
    )
    return results, planned
