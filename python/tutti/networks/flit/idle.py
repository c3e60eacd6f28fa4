"""Options of a network and its traffic that change nothing, as other options disable them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.networks.flit.router_buffers import entries_like_all
from tutti.networks.flit.settings import Trace, Traffic

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tutti.networks.flit.network import Network, Supply
    from tutti.networks.flit.settings import Router

_ITERATIVE = frozenset({"islip", "pim"})
_SEPARABLE = frozenset({"separable_input_first", "separable_output_first"})


def idle_routers(network: Network, classes: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Yields a sentence for each parameter of routers that has no effect.

    Args:
        network: The network.
        classes: The first and the last VC of each traffic class.
    """
    for number in entries_like_all(network.router, network.routers, classes):
        yield (
            f"routers[{number}] has no effect: its routers have the VCs and buffers of `router`; "
            "state fewer `vcs` or a smaller `buffer`"
        )
    yield from _idle_allocation(network.router)


def _idle_allocation(router: Router) -> Iterator[str]:
    allocators = {router.vc_allocator, router.switch_allocator}
    if router.iterations != 1 and not allocators & _ITERATIVE:
        yield (
            f"router.iterations = {router.iterations} has no effect: no allocator is iterative, "
            "as `islip` and `pim` are"
        )
    if router.arbiter != "round_robin" and not allocators & _SEPARABLE:
        yield (
            f"router.arbiter = {router.arbiter} has no effect: no allocator is separable, as "
            "`separable_input_first` is"
        )


def idle_traffic(network: Network, traffic: Supply) -> Iterator[str]:
    """Yields a sentence for each parameter of traffic that has no effect."""
    if isinstance(traffic, Trace):
        return
    loads = (traffic,) if isinstance(traffic, Traffic) else traffic
    queues = [load.queue for load in loads]
    for number, load in enumerate(loads):
        place = f"traffic[{number}]" if len(loads) > 1 else "traffic"
        if load.queue is not None and not load.reply and queues.count(load.queue) < 2:
            yield (
                f'{place}.queue = "{load.queue}" has no effect: no other class has this queue, and '
                "the class has no replies to share it"
            )
        if load.priority and network.router.priority != "ordered":
            yield (
                f"{place}.priority = {load.priority} has no effect: router.priority is "
                f"`{network.router.priority}`, not `ordered`"
            )
