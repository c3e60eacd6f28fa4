"""Platforms with packets: errors, names, and counts of links."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

import tutti
import tutti.platforms
import tutti.topologies
from tutti import errors
from tutti.base.errors import ConfigError
from tutti.platforms.errors import ModelError

if TYPE_CHECKING:
    from pathlib import Path

ENDS = tutti.PipeliningPostal(alpha_p="100 ns", alpha_r="10 ns")


def torus(routing: str = "shortest_path") -> tutti.topologies.Routes:
    return tutti.Topology.build("torus:4x4", rate="10 GB/s", latency="50 ns").routes(routing)  # type: ignore[arg-type]


def platform(routing: str = "shortest_path") -> tutti.Platform:
    return tutti.Platform(name="t", model=ENDS, routes=torus(routing), contention=tutti.Packets())


def test_results_name_the_network_and_where_messages_meet() -> None:
    table = tutti.compare(
        platform(), collective="all_reduce", ranks=[16], sizes=["1 KiB"], algorithms=["ring"]
    )
    assert table["model"].to_list() == ["pipelining_postal+packet"]
    assert table["closed_form_ps"].to_list() == [None]


def test_links_carry_every_byte_of_every_message() -> None:
    schedule = tutti.schedule("recursive_doubling", ranks=16)
    run = tutti.simulate(schedule, platform(), size="10000 B")
    hops = [torus().pair(m["source"], m["destination"]).hops for m in run.messages_frame.to_dicts()]
    assert run.links["bytes"].sum() == 10_000 * sum(hops)
    assert run.links["packets"].sum() == 3 * sum(hops)
    assert run.links["utilisation"].max() <= 1  # type: ignore[operator]
    assert run.links.height == 64


def test_contention_free_runs_have_no_link_counts() -> None:
    alone = tutti.Platform(name="t", model=ENDS, routes=torus(), contention=tutti.platforms.Free())
    run = tutti.simulate(tutti.schedule("ring", ranks=16), alone, size="1 KiB")
    assert run.links.is_empty()
    assert run.links.columns[-1] == "utilisation"


@pytest.mark.parametrize("routing", ["adaptive", "valiant", "ugal"])
def test_packet_routes_depend_only_on_the_seed(routing: str) -> None:
    schedule = tutti.schedule("recursive_doubling", ranks=16)
    runs = [
        tutti.simulate(schedule, platform(routing), size="100 KB", seed=seed) for seed in (1, 1, 2)
    ]
    assert runs[0].links.equals(runs[1].links)
    random = routing != "adaptive"
    assert runs[0].links.equals(runs[2].links) != random


def test_contention_never_makes_a_lone_ring_faster() -> None:
    alone = tutti.Platform(name="t", model=ENDS, routes=torus(), contention=tutti.platforms.Free())
    flows = tutti.Platform(name="t", model=ENDS, routes=torus())
    schedule = tutti.schedule("ring", ranks=16)
    times = [
        tutti.simulate(schedule, where, size="1 MB").completion_ps
        for where in (alone, flows, platform())
    ]
    assert times[1] >= times[0]
    assert times[2] >= times[0]


def test_background_flows_take_their_share() -> None:
    schedule = tutti.schedule("ring", ranks=16)
    flow = tutti.platforms.Flow(source=0, destination=1, size="1 MB", period="200 us", count=50)
    met = tutti.Conditions(background=tutti.platforms.Background(flows=[flow]))
    quiet = tutti.simulate(schedule, platform(), size="1 MB")
    busy = tutti.simulate(schedule, platform(), size="1 MB", conditions=met)
    assert busy.completion_ps > quiet.completion_ps
    assert busy.messages == quiet.messages
    nowhere = tutti.platforms.Flow(source=0, destination=99, size="1 MB")
    met = tutti.Conditions(background=tutti.platforms.Background(flows=[nowhere]))
    with pytest.raises(errors.TopologyError, match="99"):
        tutti.simulate(schedule, platform(), size="1 MB", conditions=met)
    with pytest.raises(ConfigError, match="without a period"):
        tutti.platforms.Flow(source=0, destination=1, size="1 MB", count=2)


def test_invalid_settings_are_refused() -> None:
    with pytest.raises(ModelError, match="cannot hold a packet"):
        tutti.Packets(size="4 KiB", buffer="1 KiB").core  # noqa: B018
    with pytest.raises(ModelError, match="carry no payload"):
        tutti.Packets(size="0 B").core  # noqa: B018
    with pytest.raises(ConfigError, match="the platform has no links"):
        tutti.Platform(name="t", model=ENDS, contention=tutti.Packets())
    with pytest.raises(ConfigError, match="depends on queues of packets"):
        tutti.Platform(name="t", model=ENDS, routes=torus("ugal"))


FILE = """
name = "mine"
[models.m]
kind = "postal"
alpha = "1 us"
[topology]
build = "torus:4x4"
links = [{{ rate = "10 GB/s", latency = "50 ns" }}]
{rest}
"""


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ('routing = "ugal"', "expected a `packets` table"),
        ("[topology.packets]\nsize = 4096", "4096"),
        ('[topology.packets]\nsize = "1 MiB"', "cannot hold a packet"),
        ('[topology.packets]\nbufer = "1 MiB"', "bufer"),
    ],
)
def test_invalid_files_are_refused(rest: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(FILE.format(rest=rest))
    with pytest.raises(ConfigError, match=message):
        tutti.platforms.platform(path)


def test_file_configures_packets(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    rest = 'routing = "ugal"\n[topology.packets]\nsize = "2 KiB"\nejection = "10 GB/s"'
    path.write_text(FILE.format(rest=rest))
    built = tutti.platforms.platform(path)
    assert built.contention == tutti.Packets(size="2 KiB", ejection="10 GB/s")
    assert built.network == "postal+packet"
    assert isinstance(built.routes, tutti.topologies.Routes)
    assert built.routes.choice == "ugal"
    run = tutti.simulate(tutti.schedule("ring", ranks=16), built, size="1 KiB")
    assert run.links.filter(pl.col("packets") > 0).height > 0
