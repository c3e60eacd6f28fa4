"""Requests and replies, closed loops and batches."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from called import call
from flit_networks import SHORT, network
from tutti.energy import Technology
from tutti.networks import flit as noc
from tutti.networks.errors import NocError, TrafficError
from tutti.networks.flit.files.network_file import load_noc
from tutti.networks.flit.view.quantities import state

if TYPE_CHECKING:
    from pathlib import Path

PAIR = noc.Traffic(rate=0.05, vcs=(0, 1), reply=noc.Reply(packet=5, vcs=(2, 3)))
BATCH = noc.MeasurementPlan(warmup=0, measure=200, batches=2, sample=0)

FILE = """
[topology]
build = "mesh:4x4"
links = [{ rate = "16 GB/s", latency = "1 ns", length = "1 mm" }]
[traffic]
pattern = "uniform_others"
outstanding = 4
vcs = [0, 1]
[traffic.reply]
packet = 5
vcs = [2, 3]
[measure]
warmup = 500
measure = 2000
"""


def test_each_request_is_answered() -> None:
    run = noc.run(network(), PAIR, SHORT)
    assert run.is_stable
    requests, replies = run.classes
    assert replies.offered == pytest.approx(5 * requests.offered, rel=0.02)
    assert requests.round_trips is not None
    assert requests.round_trips.requests == requests.packets
    # A reply is created when the request arrives, and sent in the next cycle at the earliest.
    together = requests.latency.mean + replies.latency.mean
    assert requests.round_trips.latency.mean == pytest.approx(together, rel=0.01)
    assert run.all.round_trips == requests.round_trips
    assert replies.round_trips is None


def test_closed_loops_have_no_saturation_load(tmp_path: Path) -> None:
    (tmp_path / "n.toml").write_text(FILE)
    result = call("noc", "sweep", "n.toml", "--loads", "0.1,0.9", "--no-files", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "no saturation load is searched" in result.stderr
    assert "stable up to" not in result.stdout
    assert "accepted of all includes replies" in " ".join(result.stdout.split())


def test_a_reply_starts_after_its_delay() -> None:
    """One request at a time: without contention, a delay adds to every round trip."""
    alone = noc.Traffic(rate=0.001, pattern="neighbour", vcs=(0, 1), outstanding=1,
                        reply=noc.Reply(packet=2, vcs=(2, 3)))  # fmt: skip
    later = replace(alone, reply=noc.Reply(packet=2, vcs=(2, 3), delay=40))
    trips = [noc.run(network(), one, SHORT).all.round_trips for one in (alone, later)]
    assert trips[0] is not None
    assert trips[1] is not None
    assert trips[1].extremes[0] == trips[0].extremes[0] + 40


def test_requests_in_the_queue_of_replies_wait_for_them() -> None:
    busy = replace(PAIR, rate=0.08)
    loads = (busy, replace(busy, queue="ni"))
    separate, shared = (noc.run(network(), load, SHORT) for load in loads)
    assert shared.is_stable
    assert shared.classes[0].latency.mean > 1.1 * separate.classes[0].latency.mean


@pytest.mark.parametrize("outstanding", [1, 2, 8])
def test_littles_law_holds_in_a_closed_loop(outstanding: int) -> None:
    """Nodes always have that many requests in flight: N = throughput times round trip."""
    traffic = replace(PAIR, rate=1.0, pattern="uniform_others", outstanding=outstanding)
    run = noc.run(network(), traffic, replace(SHORT, measure=6000))
    assert run.is_stable
    trips = run.classes[0].round_trips
    assert trips is not None
    # A node creates its next request in the cycle after a reply.
    in_flight = run.classes[0].offered * (trips.latency.mean + 1)
    assert in_flight == pytest.approx(outstanding, rel=0.02)


def test_a_larger_window_has_more_throughput_and_longer_round_trips() -> None:
    found = []
    for outstanding in (1, 4, 16):
        run = noc.run(network(), replace(PAIR, rate=1.0, outstanding=outstanding), SHORT)
        trips = run.classes[0].round_trips
        assert trips is not None
        found.append((run.accepted.mean, trips.latency.mean))
    assert found == sorted(found)
    ideal = noc.capacity(network(), PAIR)
    assert ideal is not None
    assert found[-1][0] < 6 * ideal.load


def test_a_batch_ends_with_its_last_packet() -> None:
    """Each node sends 20 packets to its neighbour over links that no other packet takes."""
    traffic = noc.Traffic(rate=1.0, pattern="bit_complement", requests=20)
    run = noc.run(network("mesh:2"), traffic, BATCH)
    assert run.is_stable
    assert run.all.packets == 40
    # One flit per cycle: the last of 20 is created in cycle 19.
    first = run.all.latency_extremes[0]
    assert run.makespan == 19 + first
    assert run.last_arrival == run.makespan
    assert run.window == run.makespan + 1
    assert run.accepted.mean == pytest.approx(20 / run.window)
    # `measure` and `drain` limit the run, and the default has no warm-up.
    for plan in (replace(BATCH, measure=10), replace(BATCH, measure=90_000), None):
        again = noc.run(network("mesh:2"), traffic, plan)
        assert (again.window, again.latency.mean) == (run.window, run.latency.mean)
        assert again.accepted.mean == run.accepted.mean
    # With a warm-up, the window is the one of the plan.
    later = noc.run(network("mesh:2"), traffic, replace(BATCH, warmup=5))
    assert later.window == BATCH.measure
    assert later.all.packets == 2 * (20 - 5)


def test_a_batch_of_requests_waits_for_all_replies() -> None:
    traffic = replace(PAIR, rate=1.0, requests=30, outstanding=4)
    run = noc.run(network(), traffic, BATCH)
    assert run.is_stable
    requests, replies = run.classes
    assert (requests.accepted.mean > 0, replies.accepted.mean > 0) == (True, True)
    slower = noc.run(network(), replace(traffic, outstanding=1), BATCH)
    assert run.makespan is not None
    assert slower.makespan is not None
    assert slower.makespan > run.makespan
    for each in (run, slower):
        # All flits of all packets, whose energy is that of the window.
        assert sum(sent.flits for sent in each.sent if sent.kind == "ejection") == 16 * 30 * 6
        assert each.classes[0].round_trips is not None
        assert each.classes[0].round_trips.requests == 16 * 30
        assert each.classes[0].offered == pytest.approx(30 / each.window)
    technology = Technology(router="dsent_45nm", link="dsent_45nm")
    energies = [noc.run(network(), traffic, replace(BATCH, measure=measure)).energy(technology)
                for measure in (50, 5000)]  # fmt: skip
    assert energies[0].dynamic == energies[1].dynamic == run.energy(technology).dynamic
    assert energies[0].total == energies[1].total


def test_a_batch_that_does_not_end_is_not_stable() -> None:
    traffic = replace(PAIR, rate=1.0, requests=10_000, outstanding=1)
    run = noc.run(network(), traffic, replace(BATCH, drain=100))
    assert run.ending == "saturated"
    assert run.makespan is None
    assert (run.window, run.cycles) == (300, 300)
    assert "packets had not arrived after 300 cycles" in state(run)


def test_runs_are_repeatable_and_do_not_depend_on_threads() -> None:
    loads = [0.02, 0.05, 0.08]
    one, four = (noc.sweep(network(), PAIR, loads, SHORT, threads=n) for n in (1, 4))
    assert [run.latency for run in one] == [run.latency for run in four]


@pytest.mark.parametrize("limits", [{"outstanding": 0}, {"requests": 0}])
def test_limits_of_zero_are_errors(limits: dict[str, int]) -> None:
    with pytest.raises(TrafficError, match="is 0: expected an integer from 1"):
        noc.run(network(), replace(PAIR, **limits), SHORT)  # type: ignore[arg-type]


def test_replies_in_the_vcs_of_requests_are_refused_beyond_the_vcs() -> None:
    with pytest.raises(NocError, match=r"class 0 \(replies\) has the VCs"):
        noc.run(network(), replace(PAIR, reply=noc.Reply(vcs=(2, 9))), SHORT)


def test_a_file_describes_a_closed_loop(tmp_path: Path) -> None:
    file = tmp_path / "n.toml"
    file.write_text(FILE)
    found = load_noc(file)
    assert isinstance(found.traffic, tuple)
    assert found.traffic == (
        noc.Traffic(rate=1.0, pattern="uniform_others", outstanding=4, vcs=(0, 1),
                    reply=noc.Reply(packet=5, vcs=(2, 3))),
    )  # fmt: skip
    done = call("noc", "run", "n.toml", "-o", "out", cwd=tmp_path)
    text = " ".join(done.stdout.split())
    assert "at most 4 outstanding per node; replies of 5 flits on VCs 2 to 3" in text
    assert "round trip:" in text
    assert "0 requests" in text
    rows = json.loads(call("noc", "run", "n.toml", "-o", "out", "--json", cwd=tmp_path).stdout)
    first, requests, replies = rows["tables"]["results"]
    assert first["round_trip"] == requests["round_trip"]
    assert (requests["traffic_class"], replies["round_trip"]) == ("0 requests", None)
    settings = rows["result"]["settings"]
    assert settings["router"]["vcs"] == found.network.router.vcs
    (load,) = settings["traffic"]
    assert (load["outstanding"], load["vcs"]) == (4, [0, 1])
    assert load["reply"] == {"packet": 5, "delay": 0, "vcs": [2, 3]}
    assert settings["measure"]["measure"] == found.plan.measure
    assert (settings["cycle_ps"], settings["flit_bytes"], settings["clocks"]) == (1000, 16, [])
    assert settings["topology"]["name"] == found.network.topology.name
    assert sum(link["count"] for link in settings["topology"]["links"]) == 48
    file.write_text(FILE.replace("outstanding = 4", 'outstanding = 4\nqueue = "ni"'))
    assert load_noc(file).traffic == (replace(found.traffic[0], queue="ni"),)
    done = call("noc", "run", "n.toml", "--no-files", cwd=tmp_path)
    assert "VCs 2 to 3; injection queue `ni`" in " ".join(done.stdout.split())
    file.write_text(FILE.replace("outstanding = 4", "requests = 50").replace("warmup = 500", ""))
    assert load_noc(file).plan.warmup == 0
    done = call("noc", "run", "n.toml", "-o", "out", cwd=tmp_path)
    assert "makespan:" in done.stdout
    assert "cycles, until the last packet arrived" in " ".join(done.stdout.split())
    options = ("--mesh", "4x4", "--rate", "1", "--set", "traffic.requests=5", "--no-files")
    done = call("noc", "run", *options, cwd=tmp_path)
    assert "cycles, until the last packet arrived" in " ".join(done.stdout.split())


def test_sweeps_of_closed_loops_compare_the_load_that_nodes_offer(tmp_path: Path) -> None:
    """Nodes that wait for replies offer less than the rate, and at most the capacity."""
    (tmp_path / "n.toml").write_text(FILE)
    done = call("noc", "sweep", "n.toml", "--loads", "0.2", "--no-saturation", "--no-files",
                "--json", cwd=tmp_path)  # fmt: skip
    document = json.loads(done.stdout)
    (first, *_) = document["tables"]["results"]
    assert document["result"]["settings"]["traffic"][0]["rate"] == 0.2
    assert 0.3 < first["capacity_share"] < 1


def test_one_of_a_unit_is_singular(tmp_path: Path) -> None:
    """No text of a run has a plural after 1."""
    options = ("--mesh", "2x1", "--vcs", "1", "--buffer", "1", "--traffic", "bit_complement")
    keys = {"requests": 1, "outstanding": 1, "reply": "{packet = 1, delay = 1}", "rate": 1}
    changes = [part for key, value in keys.items() for part in ("--set", f"traffic.{key}={value}")]
    done = call("noc", "run", *options, *changes, "--set", "measure.sample=1", "-o", "o",
                "--set", "router.vcs=2", "--set", "traffic.vcs=[0,0]", "--set", "measure.batches=2",
                "--set", "traffic.reply.vcs=[1,1]", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    page = re.sub(r"<script.*?</script>|<[^>]*>", " ", (tmp_path / "o/report.html").read_text(),
                  flags=re.DOTALL)  # fmt: skip
    texts = (done.stdout, done.stderr, page)
    units = "cycle|flit|packet|VC|node|router|channel|run|point|design|measurement|load"
    plurals = rf"(?<![\d.,])1 (?:{units})s\b"
    assert [re.findall(f".*{plurals}.*", text) for text in texts] == [[]] * 3
    assert "replies of 1 flit on VCs 1 to 1 after 1 cycle" in " ".join(done.stdout.split())


def test_reports_can_be_left_out_and_tables_have_coordinates(tmp_path: Path) -> None:
    (tmp_path / "n.toml").write_text(FILE)
    done = call("noc", "run", "n.toml", "--no-report", "-o", "out", cwd=tmp_path)
    assert done.returncode == 0
    assert not (tmp_path / "out" / "report.html").exists()
    header, first = (tmp_path / "out" / "channels.csv").read_text().splitlines()[:2]
    names = header.split(",")
    assert names[1:7] == ["source", "source_x", "source_y", "target", "target_x", "target_y"]
    assert first.split(",")[1:4] == ["npu0", "0", "0"]
    assert (tmp_path / "out" / "results.csv").exists()
    assert "router_x" in (tmp_path / "out" / "occupancy.csv").read_text()
