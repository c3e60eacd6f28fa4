"""All-reduces during the backward pass: by hand, and by a queue."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.base.units import Size, Time, TimePerByte
from tutti.training.overlap import Order, Overlap, Overlapped, Waits
from tutti.workloads import Chiplet, TimedLayer, build, recorded, timed
from tutti.workloads.errors import WorkloadError


def layer(name: str, forward: int, back: int, weights: int, size: int) -> TimedLayer:
    """Times in picoseconds, gradients in bytes."""
    return TimedLayer(
        name=name,
        forward=Time(ps=forward),
        input_gradient=Time(ps=back),
        weight_gradient=Time(ps=weights),
        gradients=Size(bytes=size),
    )


def a_ps_for_a_byte(size: Size) -> Time:
    return Time(ps=size.bytes)


def three(first: int, second: int, third: int) -> tuple[TimedLayer, ...]:
    """Computing 36: back to 8, 13, 20, 24 and 30, then 6 forward; gradients ready at 30, 20, 8."""
    return (
        layer("one", 1, 0, 6, first),
        layer("two", 2, 4, 7, second),
        layer("three", 3, 5, 8, third),
    )


def spans(run: Overlapped) -> list[tuple[int, int, int]]:
    return [(row.ready.ps, row.start.ps, row.end.ps) for row in run.layers]


def test_an_iteration_by_hand() -> None:
    run = Overlap(three(10, 3, 15)).run(a_ps_for_a_byte)
    # The third goes at 8, the second waits for it from 20 to 23, the first goes when it is ready.
    assert spans(run) == [(30, 30, 40), (20, 23, 26), (8, 8, 23)]
    assert (run.compute.ps, run.communication.ps) == (36, 28)
    assert (run.iteration.ps, run.exposed.ps) == (46, 10)


@pytest.mark.parametrize(
    ("sizes", "waits", "order", "iteration", "waited"),
    [
        # 8..68, 68..71, 71..72; forward from 72 on.
        ((1, 3, 60), "all", "fifo", 78, [42, 0, 0]),
        # The first layer waits for its own all-reduce, the last in the queue: no gain.
        ((1, 3, 60), "own", "fifo", 78, [42, 0, 0]),
        # The first has no gradients and starts at 30; the second waits from 31 to 71.
        ((0, 3, 60), "all", "fifo", 77, [41, 0, 0]),
        ((0, 3, 60), "own", "fifo", 76, [0, 40, 0]),
        # Newest first: 8..68, then the first to 69, the second to 72; forward 69..70, 72..74.
        ((1, 3, 60), "all", "lifo", 78, [42, 0, 0]),
        ((1, 3, 60), "own", "lifo", 77, [39, 2, 0]),
    ],
)
def test_the_next_forward_pass_waits(
    sizes: tuple[int, int, int], waits: Waits, order: Order, iteration: int, waited: list[int]
) -> None:
    run = Overlap(three(*sizes), waits=waits, order=order).run(a_ps_for_a_byte)
    assert run.iteration.ps == iteration
    assert [row.waited.ps for row in run.layers] == waited
    assert run.exposed.ps == sum(waited)


TIMES = st.integers(0, 30)
LAYERS = st.lists(st.builds(layer, st.just("l"), TIMES, TIMES, TIMES, TIMES), min_size=1)
WAITS = st.sampled_from(["all", "own"])
ORDERS = st.sampled_from(["fifo", "lifo"])


def queued(layers: list[TimedLayer], waits: Waits, order: Order) -> list[tuple[int, ...]]:
    """The oracle, by a queue: ready, start, end, forward and waited of each layer."""
    ready, now, free = [0] * len(layers), 0, 0
    for i in reversed(range(len(layers))):
        ready[i] = now + layers[i].weight_gradient.ps
        now = ready[i] + layers[i].input_gradient.ps
    start, end = list(ready), list(ready)
    left = [i for i in reversed(range(len(layers))) if layers[i].gradients.bytes]
    while left:
        free = max(free, ready[left[0]])
        i = [i for i in left if ready[i] <= free][0 if order == "fifo" else -1]
        left.remove(i)
        start[i], end[i] = free, free + a_ps_for_a_byte(layers[i].gradients).ps
        free = end[i]
    rows: list[tuple[int, ...]] = []
    for i, one in enumerate(layers):
        forward = max(now, max(end) if waits == "all" else end[i])
        rows.append((ready[i], start[i], end[i], forward, forward - now))
        now = forward + one.forward.ps
    return rows


@given(LAYERS, WAITS, ORDERS)
def test_a_queue_agrees(layers: list[TimedLayer], waits: Waits, order: Order) -> None:
    run = Overlap(layers, waits=waits, order=order).run(a_ps_for_a_byte)
    rows = [(row.ready, row.start, row.end, row.forward, row.waited) for row in run.layers]
    assert [tuple(time.ps for time in row) for row in rows] == queued(layers, waits, order)
    assert run.iteration == Time(ps=rows[-1][3].ps + layers[-1].forward.ps)


def test_the_newest_of_simultaneous_gradients_is_first() -> None:
    layers = (layer("one", 1, 0, 0, 3), layer("two", 1, 0, 0, 5), layer("three", 1, 0, 2, 7))
    run = Overlap(layers, order="lifo").run(a_ps_for_a_byte)
    assert spans(run) == [(2, 2, 5), (2, 5, 10), (2, 10, 17)]


@given(LAYERS, WAITS, ORDERS, st.integers(0, 5))
def test_bounds_hold_in_any_order(
    layers: list[TimedLayer], waits: Waits, order: Order, factor: int
) -> None:
    overlap = Overlap(layers, waits=waits, order=order)
    run = overlap.run(lambda size: Time(ps=size.bytes * factor))
    assert run.iteration >= run.compute
    if waits == "all":
        assert run.iteration >= max(run.compute, run.communication)
    assert run.exposed.ps == sum(row.waited.ps for row in run.layers)
    if factor == 0:
        assert run.iteration == run.compute
    slower = overlap.run(lambda size: Time(ps=size.bytes * (factor + 1)))
    assert order == "lifo" or slower.iteration >= run.iteration
    rows = sorted((row for row in run.layers), key=lambda row: row.start)
    busy = [row for row in rows if row.layer.gradients.bytes]
    assert all(one.end <= other.start for one, other in pairwise(busy))


def test_all_reduces_are_simulated_once_per_size() -> None:
    requested: list[int] = []

    def all_reduce(size: Size) -> Time:
        requested.append(size.bytes)
        return Time(ps=1)

    Overlap((*three(8, 8, 0), layer("four", 1, 1, 1, 4))).run(all_reduce)
    assert requested == [4, 8]


def test_layers_as_a_frame() -> None:
    frame = Overlap(three(10, 3, 15)).run(a_ps_for_a_byte).frame
    assert frame["layer"].to_list() == ["one", "two", "three"]
    assert frame["end_ps"].to_list() == [40, 26, 23]
    assert frame["waited_ps"].sum() == 10


def test_invalid_inputs_are_refused() -> None:
    with pytest.raises(WorkloadError, match="no layers"):
        Overlap(()).run(a_ps_for_a_byte)
    with pytest.raises(WorkloadError, match="all-reduce of 10 B takes -1 ps"):
        Overlap(three(10, 10, 10)).run(lambda _: Time(ps=-1))


def test_a_ring_of_16_chiplets_with_each_compute_model() -> None:
    """Ring time to computing: 0.20 where 16 samples share a chiplet, 3.2 where one has it all."""
    ring = TimePerByte.parse("68 GB/s")
    model = build("resnet50")

    def ratio(layers: tuple[TimedLayer, ...]) -> float:
        run = Overlap(layers).run(lambda size: Time(ps=ring.of(size).ps * 30 // 16))
        return run.communication.ps / run.compute.ps

    assert ratio(recorded("resnet50")) == pytest.approx(2.6, abs=0.05)
    assert ratio(timed(model, Chiplet(), 16)) == pytest.approx(0.17, abs=0.01)
    assert ratio(timed(model, Chiplet(share="folds"), 1)) == pytest.approx(2.6, abs=0.1)
