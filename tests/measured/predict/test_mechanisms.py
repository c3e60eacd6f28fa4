"""Each mechanism of a machine, alone, is recovered from small runs and extrapolated."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from synthetic_machines import runs, timed
from tutti.measured.predict.curve import NAMES, Curve
from tutti.measured.predict.features import features
from tutti.measured.predict.hardware import Hardware
from tutti.measured.predict.model import CalibratedModel, calibrate

if TYPE_CHECKING:
    from numpy.typing import NDArray

HARDWARE = Hardware()
NOISE = 0.02
GAP = "gap between messages of a rank"
BLOCKS: dict[str, tuple[str, ...]] = {
    "all_gather": ("ring_ompi", "sparbit_over", "bine_block_by_block_over")
}
ROOTED: dict[str, tuple[str, ...]] = {"broadcast": ("basic_linear_ompi", "binomial_ompi")}
DISTANT = {"all_reduce": ("recursive_doubling_ompi", "ring_ompi", "rabenseifner_ompi")}


def machine(**changes: float) -> NDArray[np.float64]:
    """Parameters of the prior, without growth and congestion, and changed ones by name.

    Names have underscores for spaces.
    """
    theta = HARDWARE.prior()
    for index, name in enumerate(NAMES):
        if name.startswith("growth"):
            theta[index] = 0.0
        if (value := changes.pop(name.replace(" ", "_"), None)) is not None:
            theta[index] = math.log(value)
    assert not changes
    return theta


def fitted(frame: pl.DataFrame, theta: NDArray[np.float64]) -> CalibratedModel:
    measured = timed(frame, theta, noise=NOISE, seed=0)
    return calibrate(measured, hardware={"made": HARDWARE})


def check_extrapolation(
    model: CalibratedModel, targets: pl.DataFrame, theta: NDArray[np.float64], *, factor: float
) -> None:
    """The true times are within the intervals, and the medians within a factor of them."""
    found = model.predict(targets)
    truth = Curve(features(targets))(theta)
    inside = (found["low_us"].to_numpy() <= truth) & (truth <= found["high_us"].to_numpy())
    assert inside.mean() >= 0.9
    errors = np.abs(np.log(found["predicted_us"].to_numpy() / truth))
    assert np.exp(np.median(errors)) <= factor


@pytest.mark.parametrize("gap", [0.2, 1.0, 4.0])
def test_gaps_between_messages(gap: float) -> None:
    theta = machine(gap_between_messages_of_a_rank=gap)
    model = fitted(runs(BLOCKS, nodes=(4, 8, 16, 32)), theta)
    check_extrapolation(model, runs(BLOCKS, nodes=(512, 1024)), theta, factor=1.25)


def test_no_time_is_below_the_gaps_of_a_sender() -> None:
    """A fit to a few messages may find that further ones cost nothing; a thousand do."""
    free = machine(
        gap_between_messages_of_a_rank=0.3, **{"further_message_of_256_B,_relative": 1e-3}
    )
    model = fitted(runs(BLOCKS, nodes=(4, 8), sizes=(4096,)), free)
    targets = runs({"all_gather": ("sparbit_over",)}, nodes=(1024,), sizes=(4096,))
    (curve,) = model.curves.values()
    gap = math.exp(curve.theta[NAMES.index(GAP)])
    assert gap > 0.15
    assert model.predict(targets)["structural_us"][0] > 1023 * gap


def test_times_grow_with_the_number_of_messages() -> None:
    sizes = (1 << 20,)
    model = fitted(runs(BLOCKS, nodes=(4, 8, 16), sizes=(4096, *sizes)), machine())
    (curve,) = model.curves.values()
    rows = features(runs({"all_gather": ("sparbit_over",)}, nodes=(64,), sizes=sizes))
    times = []
    for messages in (1, 2, 8, 64, 512):
        rows.messages[:] = messages
        times.append(float(Curve(rows)(curve.theta)[0]))
    assert times == sorted(times)
    assert times[-1] > times[0]


def test_port_of_a_root() -> None:
    """Messages of a root pass one interface; other ranks send several at once, as on Fugaku."""
    port, rate = NAMES.index("port of a root, per byte"), 9e3
    theta = machine(
        **{"port_of_a_root,_per_byte": 1 / rate, "further_message_of_1_MiB,_relative": 0.2}
    )
    model = fitted(runs(ROOTED | BLOCKS, nodes=(4, 8, 16)), theta)
    (curve,) = model.curves.values()
    assert math.exp(-curve.theta[port]) == pytest.approx(rate, rel=0.1)
    assert curve.determined[port]
    targets = runs(ROOTED, nodes=(256, 512), sizes=(1 << 20, 16 << 20))
    check_extrapolation(model, targets, theta, factor=1.25)
    longest = model.predict(targets)["structural_us"].to_numpy().max()
    assert longest > 0.9 * 511 * (16 << 20) / rate


def test_derivatives_of_the_structural_model() -> None:
    curve = Curve(features(pl.concat([runs(ROOTED, nodes=(8,)), runs(BLOCKS, nodes=(8,))])))
    theta = machine(**{"port_of_a_root,_per_byte": 1 / 3e3})
    derivative = curve.jacobian(theta)[1]
    steps = 1e-6 * np.eye(len(theta))
    for index, step in enumerate(steps):
        slope = (np.log(curve(theta + step)) - np.log(curve(theta - step))) / 2e-6
        np.testing.assert_allclose(derivative[:, index], slope, atol=1e-5)


@pytest.mark.parametrize("rate", [5e3, 2e4])
def test_links_of_a_torus(rate: float) -> None:
    theta = machine(**{"further_message_on_a_link,_per_byte": 1 / rate})
    model = fitted(runs(DISTANT, shapes=("2x2x2", "4x4x4", "2x4x8")), theta)
    check_extrapolation(model, runs(DISTANT, shapes=("8x8x8", "16x16x16")), theta, factor=1.3)


def test_hops_of_a_torus() -> None:
    theta = machine(hop=1.0)
    sizes = (1024, 16384)
    model = fitted(runs(DISTANT, shapes=("4x4x4", "2x4x8", "4x4x8"), sizes=sizes), theta)
    check_extrapolation(model, runs(DISTANT, shapes=("16x16x16",), sizes=sizes), theta, factor=1.3)


@pytest.mark.parametrize(
    "name", ["further_message_on_a_link,_per_byte", "memory_shared_by_ranks,_per_byte"]
)
def test_interfaces_and_memory_of_a_node(name: str) -> None:
    theta = machine(**{name: 2e-4})
    few = [runs(DISTANT, nodes=(4, 8), ranks_per_node=ranks) for ranks in (1, 2, 4, 8)]
    model = fitted(pl.concat(few), theta)
    targets = runs(DISTANT, nodes=(16, 32), ranks_per_node=8)
    check_extrapolation(model, targets, theta, factor=1.3)
