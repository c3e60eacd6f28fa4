"""Emulated distance is given like a model of a platform, and passed on in seconds."""

from __future__ import annotations

import pytest

from tutti.mpi.distance import Distance
from tutti.mpi.errors import LaunchError


def test_a_pipelining_postal_distance_is_reported_in_seconds() -> None:
    distance = Distance.parse("pipelining_postal:alpha_p=4 ms, alpha_r=1 ms,beta=2 ns/B")
    assert distance.variable == "pipelining_postal:alpha_p=0.004,alpha_r=0.001,beta=2e-09"
    assert distance.job_line == "distance 1 0.004 0.001 2e-09 0 0 0 0"
    assert distance.message_s == pytest.approx(0.005)
    assert distance.flight_s == pytest.approx(0.004)


def test_a_loggp_distance_is_reported_in_seconds() -> None:
    distance = Distance.parse("loggp:L=4 ms,o=1 ms,g=2 ms,G=0.5 ns/B")
    assert distance.variable == "loggp:L=0.004,o=0.001,g=0.002,G=5e-10"
    assert distance.job_line == "distance 2 0 0 0 0.004 0.001 0.002 5e-10"
    assert distance.message_s == pytest.approx(0.006)


def test_platform_has_the_emulated_parameters() -> None:
    import tutti

    machine = Distance.parse("pipelining_postal:alpha_p=4 ms,alpha_r=1 ms").platform
    laid_out = tutti.schedule("recursive_multiplying:a4", ranks=4)
    # alpha_p + 3 alpha_r
    assert tutti.simulate(laid_out, machine, size="8 B").completion_ps == 7 * 10**9


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("postal:alpha=1 ms", "expected pipelining_postal or loggp"),
        ("pipelining_postal:alpha_p=4,alpha_r=1 ms", "`4` has no unit"),
        ("pipelining_postal:alpha_p=4 ms", "pipelining_postal: `alpha_r`: is missing"),
        ("pipelining_postal:alpha_p=4 ms,alpha_r=1 ms,L=3 ms", "no parameter `L`"),
        ("pipelining_postal:alpha_p=4 ms,alpa_r=1 ms", "did you mean `alpha_r`?"),
        ("pipeling_postal:alpha_p=4 ms", "did you mean `pipelining_postal`?"),
        ("loggp:L=1 ms,o=1 ms,g=1 ms,G=1 ns/B,gamma=1 ns/B", "local work is not emulated"),
    ],
)
def test_invalid_distance_is_refused(text: str, output: str) -> None:
    with pytest.raises(LaunchError, match="--emulate") as caught:
        Distance.parse(text)
    assert output in str(caught.value)
    assert "such as pipelining_postal" in caught.value.hint
