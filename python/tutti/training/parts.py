"""Parts of a training step: layers, windows, and servers and stalls of the endpoint.

All values belong to one NPU, which represents all; times are integer picoseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tutti.training.links import link_name
from tutti.training.spans import spans

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tutti import _core
    from tutti.training.results import TrainingResult

NO_LAYER = "(none)"
"""The name of the part without a layer."""

_PASSES = ("forward", "input_gradient", "weight_gradient")
_VALUES = (*(f"{name}_ps" for name in _PASSES), "other_ps", "waited_ps", "carried_ps", "bytes")


class LayerTimes(NamedTuple):
    """A layer of a run: its number in the order of the model, its name, and its values by name."""

    run: TrainingResult
    place: int
    layer: str
    values: Mapping[str, int]


class Server(NamedTuple):
    """A server of the endpoint, or a link, and its utilisation during communication."""

    run: TrainingResult
    name: str
    is_link: bool
    use: _core.ServerUse
    utilisation: float


class Stall(NamedTuple):
    """A cause of stalls: a resource of the endpoint, or a server.

    Attributes:
        run: The run.
        cause: The resource, or the name of the server.
        waited_ps: The total waiting time of chunks and packets, in picoseconds.
        number: The number of waits; of a server, also of packets that do not wait.
        waiting: The mean number of chunks and packets that wait during communication.
    """

    run: TrainingResult
    cause: str
    waited_ps: int
    number: int
    waiting: float


class Window(NamedTuple):
    """A window: its start in ps, and the mean utilisation of an NPU's links and processor."""

    run: TrainingResult
    start_ps: int
    links: float
    compute: float


def layers(run: TrainingResult) -> list[LayerTimes]:
    """Returns the layers of an NPU in order, then `NO_LAYER`, with sums over all iterations.

    Values: the compute times ``forward_ps``, ``input_gradient_ps``, ``weight_gradient_ps`` and
    ``other_ps`` (updates, embeddings). ``waited_ps`` is the idle time of the processor before a
    task of this layer, ``carried_ps`` the time from the start to the end of its collectives, and
    ``bytes`` their payload. The bytes of a gradient bucket belong to the layer that completes it.

    `NO_LAYER` has embedding tables, and the wait for communication after the last computation.
    Computing and waiting add up to the complete run.
    """
    rows = run.once(_layers)
    return [LayerTimes(run, place, name, rows[name]) for place, name in enumerate(rows)]


def _layers(run: TrainingResult, npu: int) -> dict[str, dict[str, int]]:
    order = [*run.step.names(run.configuration), NO_LAYER]
    rows = {name: dict.fromkeys(_VALUES, 0) for name in order}
    done = 0
    for span in spans(run, npu):
        _, lane, kind, _, layer, _, _, size, start, end = span
        row = rows.get(layer, rows[NO_LAYER])
        if lane == "compute":
            row[f"{kind}_ps" if kind in _PASSES else "other_ps"] += end - start
            row["waited_ps"] += start - done
            done = end
        elif not lane:
            row["carried_ps"] += end - start
            row["bytes"] += size
    rows[NO_LAYER]["waited_ps"] += run.record.end_ps - done
    return rows


def windows(run: TrainingResult) -> list[Window]:
    """Returns the windows of the step in order of time; none if they are not recorded."""
    if run.step.window is None:
        return []
    width, end, npus = run.step.window.ps, run.record.end_ps, run.record.npus
    busy = run.record.over_time()
    count = npus * len(run.record.links())
    rows = []
    for index, start in enumerate(range(0, end, width)):
        lasts = min(width, end - start)
        links, computing = (
            times[index] if index < len(times) else 0
            for times in (busy.links_ps, busy.computing_ps)
        )
        rows.append(Window(run, start, links / (lasts * count), computing / (lasts * npus)))
    return rows


def servers(run: TrainingResult) -> list[Server]:
    """Returns the servers of the endpoint, then the links."""
    active = run.record.active_ps()

    def share(use: _core.ServerUse) -> float:
        return use.busy_ps / active if active else 0.0

    uses = [Server(run, use.name, False, use, share(use)) for use in run.record.servers()]
    links = run.record.links()
    return uses + [Server(run, link_name(run, use.name), True, use, share(use)) for use in links]


def stalls(run: TrainingResult) -> list[Stall]:
    """Returns the causes of stalls in the endpoint of an NPU: its resources, then its servers."""
    active = run.record.active_ps()
    causes = [(stall.cause, stall.waited_ps, stall.count) for stall in run.record.stalls()]
    causes += [(use.name, use.waited_ps, use.pieces) for use in run.record.servers()]
    return [
        Stall(run, cause, waited, count, waited / active if active else 0.0)
        for cause, waited, count in causes
    ]
