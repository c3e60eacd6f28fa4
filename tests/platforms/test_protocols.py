"""The protocols model from Python, and reductions beyond the cache."""

from __future__ import annotations

from typing import Any

import pytest

import tutti
from tutti.platforms.errors import ModelError

EAGER = {"alpha_p": "1 us", "alpha_r": "0.2 us", "beta": "0.5 ns/B"}
LARGER = {"alpha_p_rendezvous": "3 us", "alpha_r_rendezvous": "0.1 us", "beta_rendezvous": "1 ns/B"}
ROUTES = tutti.Topology.build("switch:4", rate="20 GB/s", latency="0 ns").routes("shortest_path")
NETWORKS = {
    "flow": {"contention": tutti.FlowLevel()},
    "packets": {"contention": tutti.Packets(size="64 KiB", buffer="1 MiB", header="0 B")},
}


def completion_ps(
    model: tutti.platforms.machine.Model,
    collective: str,
    size: str,
    *,
    ranks: int = 4,
    **given: Any,
) -> int:
    machine = tutti.Platform(name="t", model=model, **given)
    schedule = tutti.schedule("direct", collective=collective, ranks=ranks)
    return tutti.simulate(schedule, machine, size=size, datatype="uint8").completion_ps


@pytest.mark.parametrize(("size", "per_message"), [("1000 B", 700), ("1001 B", 1101)])
def test_the_size_selects_the_protocol(size: str, per_message: int) -> None:
    model = tutti.Protocols(eager_limit="1000 B", **EAGER, **LARGER)
    latency = 1000 if per_message == 700 else 3000
    assert completion_ps(model, "broadcast", size) == (latency + 3 * per_message) * 1000


@pytest.mark.parametrize("network", [{}, *NETWORKS.values()], ids=["none", *NETWORKS])
@pytest.mark.parametrize("collective", ["broadcast", "gather", "all_to_all"])
def test_equal_protocols_are_pipelining_postal(collective: str, network: dict[str, Any]) -> None:
    where = {"routes": ROUTES, **network} if network else {}
    for size in ("400 B", "4 KB", "400 KB"):
        one = tutti.Protocols(eager_limit="1 KB", long_from="9 KB", beta_long="0.5 ns/B", **EAGER)
        other = tutti.PipeliningPostal(**EAGER)
        times = {completion_ps(model, collective, size, **where) for model in (one, other)}
        assert len(times) == 1, size


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
@pytest.mark.parametrize("size", ["4 KB", "40 KB"])
def test_a_network_without_contention_adds_nothing(size: str, network: dict[str, Any]) -> None:
    """A link of 20 GB/s is faster than the port in both protocols, 2 and 1 GB/s."""
    model = tutti.Protocols(eager_limit="5 KB", **EAGER, **LARGER)
    free = completion_ps(model, "broadcast", size)
    assert completion_ps(model, "broadcast", size, routes=ROUTES, **network) == free


@pytest.mark.parametrize(("ranks", "per_byte"), [(3, 1.0), (4, 1.2)])
def test_flows_that_share_a_link_are_no_faster_than_their_protocol(
    ranks: int, per_byte: float
) -> None:
    """Two rendezvous flows of 1 GB/s do not fill a link of 2.5 GB/s; three do."""
    model = tutti.Protocols(eager_limit="5 KB", **EAGER, **LARGER)
    narrow = tutti.Topology.build("switch:4", rate="2.5 GB/s", latency="0 ns")
    where = {"routes": narrow.routes("shortest_path"), "contention": tutti.FlowLevel()}
    found = completion_ps(model, "gather", f"{ranks} MB", ranks=ranks, **where)
    assert found == pytest.approx(per_byte * 1e9 + 3_100_000, rel=1e-6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"eager_limit": "0 B"}, "`eager_limit` is 0: expected at least 1 B"),
        ({"long_from": "1 KB", "beta_long": "1 ns/B"}, "more than `eager_limit`"),
        ({"long_from": "9 KB"}, "needs `beta_long`"),
        ({"beta_long": "1 ns/B"}, "needs `long_from`"),
        ({"alpha_p_rendezvous": "0 us"}, "a message of 1001 B would take 1.101 us"),
        ({"gamma_memory": "1 ns/B"}, "needs `cache`"),
        ({"cache": "1 MiB"}, "needs `gamma_memory`"),
        (
            {"gamma": "1 ns/B", "gamma_memory": "0.5 ns/B", "cache": "1 MiB"},
            "`gamma_memory` is 0.5 ns/B: expected at least `gamma`, which is 1 ns/B",
        ),
    ],
)
def test_parameters_without_sense_are_rejected(given: dict[str, str], message: str) -> None:
    model = tutti.Protocols(**({"eager_limit": "1 KB", **EAGER, **LARGER} | given))
    with pytest.raises(ModelError) as refused:
        _ = model.core
    assert message in str(refused.value)


def test_operands_above_the_cache_are_reduced_at_the_rate_of_memory() -> None:
    costs = {"gamma": "0.1 ns/B", "gamma_memory": "0.4 ns/B", "cache": "1000 B"}
    schedule = tutti.schedule("recursive_doubling", ranks=2)
    times = []
    for size in ("1000 B", "1001 B"):
        machine = tutti.Platform(name="t", model=tutti.Postal(alpha="1 us", **costs))
        run = tutti.simulate(schedule, machine, size=size, datatype="uint8")
        times.append(run.completion_ps)
    assert times == [1_000_000 + 100_000, 1_000_000 + 400_400]
