"""Fits recover the parameters of generated data, and report what the data do not determine."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tutti.measured.calibrate import FOLDS, MODELS, Observation, fit, model_named, of_probes
from tutti.measured.errors import CalibrationError
from tutti.schedules.ir import schedule

if TYPE_CHECKING:
    from tutti.measured.calibrate.models import FittedModel

SIZES = (1, 8, 64, 512, 4096, 32768)


def generated(
    model: FittedModel, theta: dict[str, float], points: list[Observation]
) -> list[Observation]:
    """The points with the times that the model predicts."""
    return [
        Observation(p.kind, model.predicted(theta, p), p.size, p.messages, p.pause_us, p.schedule)
        for p in points
    ]


def half_round_trips() -> list[Observation]:
    return [Observation("one_way", 0, size) for size in SIZES]


def bursts(size: int = 8) -> list[Observation]:
    return [Observation("burst", 0, size, messages=b) for b in (1, 2, 3, 4, 6, 8, 12, 16)]


def everything() -> list[Observation]:
    paused = [Observation("round_trip", 0, size, 16, pause_us=5.0) for size in SIZES]
    close = [Observation("round_trip", 0, size, 16) for size in SIZES]
    issued = [Observation("issue", 0, size) for size in SIZES]
    return half_round_trips() + bursts() + bursts(4096) + paused + close + issued


TRUTHS = {
    "postal": {"alpha": 1.5, "beta": 0.001},
    "pipelining_postal": {"alpha_p": 1.34, "alpha_r": 0.34, "beta": 0.0005},
    "loggp": {"L": 1.2, "o": 0.2, "g": 0.5, "G": 0.0008},
    "logfp": {"L": 1.2, "o": 0.2, "g": 0.5, "f": 4},
}


@pytest.mark.parametrize("name", MODELS)
def test_exact_data_give_back_the_parameters(name: str) -> None:
    model, theta = MODELS[name], TRUTHS[name]
    found = fit(model, generated(model, theta, everything()))
    assert found.determined, found.undetermined
    for parameter, value in theta.items():
        assert found.parameters[parameter].value == pytest.approx(value, rel=1e-3), parameter
    assert found.median_residual < 1e-4


# The same draws in each run: 2 of 604 miss it, where both outliers determine one parameter.
@settings(max_examples=8, derandomize=True)
@given(st.floats(0.1, 100), st.floats(0.02, 20), st.floats(1e-5, 1e-2), st.integers(0, 2**32 - 1))
def test_fit_is_robust_to_noise_and_outliers(
    alpha_p: float, alpha_r: float, beta: float, seed: int
) -> None:
    theta = {"alpha_p": alpha_p, "alpha_r": alpha_r, "beta": beta}
    model = MODELS["pipelining_postal"]
    exact = generated(model, theta, half_round_trips() + bursts() + bursts(512) + bursts(4096))
    random = np.random.default_rng(seed)
    factors = np.exp(random.normal(0, 0.02, len(exact)))
    factors[random.integers(0, len(exact), 2)] = 1000  # ranks preempted by the operating system
    noisy = [
        Observation(p.kind, p.time_us * factor, p.size, p.messages)
        for p, factor in zip(exact, map(float, factors), strict=True)
    ]
    found = fit(model, noisy)
    assert found.determined
    for one, two in zip(exact, found.predicted_us, strict=True):
        assert two == pytest.approx(one.time_us, rel=0.25)
    for parameter in found.parameters.values():
        assert parameter.low is not None
        assert parameter.high is not None
        assert parameter.low <= parameter.value <= parameter.high


def test_intervals_cover_the_true_value() -> None:
    model, theta = MODELS["pipelining_postal"], TRUTHS["pipelining_postal"]
    exact = generated(model, theta, half_round_trips() + bursts() + bursts(512) + bursts(4096))
    held = 0
    for seed in range(40):
        random = np.random.default_rng(seed)
        noise = np.exp(random.normal(0, 0.03, len(exact)))
        noisy = [
            Observation(p.kind, p.time_us * factor, p.size, p.messages)
            for p, factor in zip(exact, map(float, noise), strict=True)
        ]
        found = fit(model, noisy).parameters
        ends = {name: (one.low or 0.0, one.high or 0.0) for name, one in found.items()}
        held += sum(ends[n][0] <= value <= ends[n][1] for n, value in theta.items())
    assert held / (40 * len(theta)) > 0.8


@pytest.mark.parametrize("name", ["loggp", "logfp"])
def test_the_same_points_give_the_same_bits(name: str) -> None:
    random = np.random.default_rng(7)
    noisy = [
        replace(point, time_us=point.time_us * float(np.exp(random.normal(0, 0.05))))
        for point in generated(MODELS[name], TRUTHS[name], everything())
    ]
    first, second = fit(MODELS[name], noisy), fit(MODELS[name], list(noisy))
    assert first.parameters == second.parameters
    assert first.predicted_us.tobytes() == second.predicted_us.tobytes()


@pytest.mark.parametrize("wrong", [1, 0.3])
def test_parameters_absent_from_the_data_are_zero(wrong: float) -> None:
    points = generated(MODELS["pipelining_postal"], {"alpha_p": 1.5, "alpha_r": 0.3, "beta": 0.0},
                  half_round_trips() + bursts() + bursts(4096))  # fmt: skip
    points[-1] = replace(points[-1], time_us=wrong * points[-1].time_us)
    found = fit(MODELS["pipelining_postal"], points).parameters
    assert found["beta"].value == 0
    assert found["beta"].low == 0
    assert found["alpha_r"].value == pytest.approx(0.3, rel=1e-3)


def test_a_fit_leaves_no_smaller_errors_nearby() -> None:
    random = np.random.default_rng(3)
    model, theta = MODELS["loggp"], TRUTHS["loggp"]
    noisy = [
        replace(point, time_us=point.time_us * float(np.exp(random.normal(0, 0.03))))
        for point in generated(model, theta, everything())
    ]
    found = fit(model, noisy)
    scale = 1.345 * 1.4826 * float(np.median(np.abs(np.log1p(found.residuals))))

    def huber(theta: dict[str, float]) -> float:
        ratios = np.array(model.predictions(theta, noisy)) / [p.time_us for p in noisy]
        size = np.abs(np.log(ratios))
        inside = np.minimum(size, scale)
        return float((inside**2 + 2 * scale * (size - inside)).sum())

    least = huber(found.theta)
    for name in theta:
        for factor in (0.98, 1.02):
            moved = found.theta | {name: factor * found.theta[name]}
            assert huber(moved) >= least * (1 - 1e-6), name


# --- what data do not determine -------------------------------------------------------------------


def test_ping_pongs_do_not_determine_overheads_nor_overlap() -> None:
    points = generated(MODELS["loggp"], TRUTHS["loggp"], half_round_trips())
    found = fit(MODELS["loggp"], points)
    assert set(found.undetermined) == {"L", "o", "g"}
    assert "live run" in found.undetermined["o"]
    found = fit(MODELS["pipelining_postal"], points)
    assert set(found.undetermined) == {"alpha_p", "alpha_r"}
    assert "osu_bw" in found.undetermined["alpha_p"]
    assert fit(MODELS["postal"], points).determined


def test_bursts_do_not_determine_overhead_from_latency() -> None:
    points = generated(
        MODELS["loggp"], TRUTHS["loggp"], half_round_trips() + bursts() + bursts(4096)
    )
    assert set(fit(MODELS["loggp"], points).undetermined) == {"L", "o"}


def test_one_size_does_not_determine_the_cost_of_a_byte() -> None:
    laid_out = schedule("recursive_doubling", ranks=8)
    point = Observation("collective", 5.0, 8, schedule=laid_out)
    found = fit(MODELS["postal"], [point, point, point])
    assert found.absent == {"beta": "all are of 8 B"}
    assert found.determined
    assert found.parameters["alpha"].value == pytest.approx(5 / 3, rel=1e-3)
    found = fit(MODELS["loggp"], generated(MODELS["loggp"], TRUTHS["loggp"], bursts()))
    assert found.undetermined["G"].startswith("all are of 8 B")


def test_multicasts_of_eight_bytes_determine_both_alphas() -> None:
    theta = {"alpha_p": 4000.0, "alpha_r": 1000.0}
    model = MODELS["pipelining_postal"]
    points = generated(
        model, theta, [Observation("multicast", 0, 8, messages=b) for b in range(1, 9)]
    )
    found = fit(model, points)
    assert found.determined
    for name, value in theta.items():
        assert found.parameters[name].value == pytest.approx(value, rel=1e-4)


def test_collectives_of_one_message_a_stage_do_not_determine_overlap() -> None:
    model, theta = MODELS["pipelining_postal"], TRUTHS["pipelining_postal"]
    points = [
        Observation("collective", 0, size, schedule=schedule("recursive_doubling", ranks=8))
        for size in (8, 1024, 65536)
    ]
    found = fit(model, generated(model, theta, points))
    assert set(found.undetermined) == {"alpha_p", "alpha_r"}
    wide = [
        Observation("collective", 0, size, schedule=schedule("recursive_multiplying:a8", ranks=8))
        for size in (8, 1024, 65536)
    ]
    found = fit(model, generated(model, theta, points + wide))
    assert found.determined
    assert found.parameters["alpha_p"].value == pytest.approx(1.34, rel=1e-2)


def test_bursts_of_one_length_do_not_determine_f() -> None:
    points = generated(MODELS["logfp"], TRUTHS["logfp"], everything())
    few = [p for p in points if p.messages in (1, 16)]
    assert {"g", "f"} <= set(fit(MODELS["logfp"], few).undetermined)


def test_bursts_within_f_do_not_determine_the_gap() -> None:
    truth = TRUTHS["logfp"] | {"f": 16}
    found = fit(MODELS["logfp"], generated(MODELS["logfp"], truth, everything()))
    assert {"g", "f"} <= set(found.undetermined)


def test_systematic_deviation_reports_its_sizes() -> None:
    straight = fit(MODELS["postal"], [Observation("one_way", 2.0 + s / 1000, s) for s in SIZES])
    assert not straight.bent
    # Times that grow with the square root of the size are not linear.
    found = fit(MODELS["postal"], [Observation("one_way", s**0.5, s) for s in SIZES])
    assert found.bent
    sizes, shares = zip(*found.worst_sizes, strict=True)
    assert sorted(sizes) == sorted(SIZES)
    assert list(shares) == sorted(shares, reverse=True)
    assert shares[0] == pytest.approx(np.abs(found.residuals).max())


def test_undetermined_parameters_are_grouped_by_reason() -> None:
    points = generated(MODELS["logfp"], TRUTHS["logfp"], half_round_trips() + bursts()[:2])
    reasons = fit(MODELS["logfp"], points).undetermined_groups
    assert [names for names, _ in reasons] == [["L", "o"], ["g", "f"]]


def test_missing_observations_and_unknown_models_are_refused() -> None:
    with pytest.raises(CalibrationError, match="postal predicts none"):
        fit(MODELS["postal"], [Observation("issue", 0.1, 8)])
    with pytest.raises(CalibrationError, match="unknown model `loggps`") as caught:
        model_named("loggps")
    assert "did you mean `loggp`?" in caught.value.hint


def test_folds() -> None:
    points = generated(FOLDS, {"reduce_overhead": 0.05, "gamma": 0.0001},
                  [Observation("fold", 0, size) for size in SIZES[1:]])  # fmt: skip
    found = fit(FOLDS, points)
    assert found.parameters["gamma"].value == pytest.approx(0.0001, rel=1e-3)


def test_probes_become_points() -> None:
    rows = [("round_trip", 8, 1, 0, 2000), ("round_trip", 8, 1, 0, 4000),
            ("burst", 8, 4, 0, 3000), ("round_trip", 8, 16, 500, 9000),
            ("fold", 8, 0, 0, 50), ("issue", 8, 1, 0, 0)]  # fmt: skip
    frame = pl.DataFrame(
        rows, schema=["what", "bytes", "messages", "delay_ns", "time_ns"], orient="row"
    )
    found = [(p.kind, p.time_us, p.messages, p.pause_us) for p in of_probes(frame, "minimum")]
    assert found == [
        ("one_way", 1.0, 1, 0.0),
        ("burst", 3.0, 4, 0.0),
        ("round_trip", 9.0, 16, 0.5),
        ("fold", 0.05, 0, 0.0),
    ]
    assert next(of_probes(frame, "median")).time_us == 1.5


def test_scipy_is_loaded_by_the_first_fit() -> None:
    code = "import sys, tutti, tutti.measured.calibrate; print('scipy' in sys.modules)"
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert output.stdout == "False\n"
