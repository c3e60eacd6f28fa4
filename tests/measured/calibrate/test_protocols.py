"""The fit of the protocols of an MPI library recovers the limit and both lines."""

from __future__ import annotations

import numpy as np
import pytest

from tutti import Platform
from tutti.measured.calibrate import Observation, fit_protocols
from tutti.measured.errors import CalibrationError

SIZES = tuple(1 << power for power in range(21))


def measured(limit: int, *, noise: float = 0.0, rendezvous_us: float = 6.0) -> list[Observation]:
    """Half round trips: 1.5 us + 1 ns/B up to the limit, and 0.5 ns/B above it."""
    factors = 1 + noise * np.random.default_rng(1).standard_normal(len(SIZES))
    times = (
        1.5 + 0.001 * size if size <= limit else rendezvous_us + 0.0005 * size for size in SIZES
    )
    points = zip(SIZES, times, factors, strict=True)
    return [Observation("one_way", float(time * factor), size) for size, time, factor in points]


@pytest.mark.parametrize("limit", [64, 1024, 8192, 65536])
def test_exact_times_give_back_the_limit_and_both_lines(limit: int) -> None:
    found = fit_protocols(measured(limit, rendezvous_us=6 + 0.001 * limit))
    assert (found.eager_limit, found.next_size) == (limit, 2 * limit)
    assert found.eager.theta["alpha"] == pytest.approx(1.5, rel=1e-3)
    assert found.eager.theta["beta"] == pytest.approx(0.001, rel=0.02)
    assert found.rendezvous.theta["alpha"] == pytest.approx(6 + 0.001 * limit, rel=1e-3)
    assert found.rendezvous.theta["beta"] == pytest.approx(0.0005, rel=1e-3)


def test_noise_of_measurements_leaves_the_limit() -> None:
    assert fit_protocols(measured(8192, noise=0.02)).eager_limit == 8192


def test_the_model_has_the_chosen_overheads() -> None:
    model = fit_protocols(measured(8192)).model(alpha_r="0.3 us", alpha_r_rendezvous="0.5 us")
    assert model.eager_limit.bytes == 8192
    assert model.alpha_r_rendezvous is not None
    assert model.alpha_p_rendezvous is not None
    assert (model.alpha_r.ps, model.alpha_r_rendezvous.ps) == (300_000, 500_000)
    assert model.alpha_p.ps == pytest.approx(1_200_000, rel=1e-3)
    assert model.alpha_p_rendezvous.ps == pytest.approx(5_500_000, rel=1e-3)
    assert Platform(name="fitted", model=model).model.kind == "protocols"


def test_an_overhead_above_the_latency_is_rejected() -> None:
    with pytest.raises(CalibrationError, match="expected at most that"):
        fit_protocols(measured(8192)).model(alpha_r="2 us")


def test_a_limit_needs_sizes_on_both_sides() -> None:
    with pytest.raises(CalibrationError, match="do not determine the eager limit"):
        fit_protocols(measured(8192)[:5])
    with pytest.raises(CalibrationError, match="expected points of kind one_way"):
        fit_protocols([Observation("burst", 3.0, 8, messages=4)])
