"""Kernels on chips with coherent caches, from Python."""

from __future__ import annotations

import pickle

import pytest

from tutti.networks import coherence
from tutti.networks.coherence import Case, Chip
from tutti.networks.errors import CoherenceError, CoherenceRunError, NocError
from tutti.networks.mesh import SmartMesh


def small(design: str = "sfo_complete", **settings: object) -> SmartMesh:
    return SmartMesh(design=design, columns=4, rows=4, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("protocol", ["ht", "tc"])
def test_results_of_a_run_are_consistent(protocol: coherence.Protocol) -> None:
    run = coherence.run(kernel="water_like", protocol=protocol, mesh=small(), scale="tiny")
    assert run.cores == 16
    assert 0 < run.cycles < run.total_cycles
    assert 0 < run.network_stall <= run.stall < 1
    assert 0 < run.ipc < 1
    assert run.misses_of_all == sum(one.latency.count for one in run.misses)
    for one in run.misses:
        assert sum(one.parts.values()) == pytest.approx(one.latency.mean)
    shares = [run.share_of(cast) for cast in ("unicast", "broadcast", "responses")]
    assert sum(shares) == pytest.approx(1)
    assert run.broadcasts.count > 0
    assert (run.reductions.count > 0) == (protocol == "ht")
    assert run.responses_per_flow == (1 if protocol == "ht" else 0)
    assert run.counts["link_hops"] > 0
    assert run.chip["protocol"] == protocol


def test_results_do_not_depend_on_threads_and_the_checker() -> None:
    cases = [
        Case(kernel=kernel, mesh=small(design), scale="tiny", chip=Chip(check=check))
        for kernel in ("radix_like", "canneal_like")
        for design in ("baseline_collective", "fully_connected")
        for check in (False, True)
    ]
    finished: list[coherence.CoherenceRun] = []
    runs = coherence.run_all(cases, threads=2, done=finished.append)
    assert [run.case for run in runs] == cases
    assert {id(run) for run in finished} == {id(run) for run in runs}
    again = coherence.run_all(cases, threads=1)
    assert [run.cycles for run in again] == [run.cycles for run in runs]
    for one, checked in zip(runs[::2], runs[1::2], strict=True):
        assert one.cycles == checked.cycles
        assert one.counts == checked.counts


def test_frames_have_one_row_per_run_miss_and_flow() -> None:
    cases = [
        Case(kernel="ocean_like", protocol=protocol, mesh=small(), scale="tiny")
        for protocol in ("ht", "tc")
    ]
    runs = coherence.run_all(cases)
    frame = coherence.frame(runs)
    assert frame["cycles"].to_list() == [run.cycles for run in runs]
    assert frame["responses_per_flow"].to_list() == [1.0, None]
    misses = coherence.miss_frame(runs)
    assert misses.height == 6
    assert misses["count"].sum() == sum(run.misses_of_all for run in runs)
    flows = coherence.flow_frame(runs)
    assert set(flows["cast"]) == {"unicast", "broadcast", "responses"}
    assert coherence.frame([]).is_empty()


def test_chip_settings_change_the_cycles() -> None:
    def cycles(**settings: int) -> int:
        chip = Chip(**settings)  # type: ignore[arg-type]
        return coherence.run(kernel="radix_like", mesh=small(), scale="tiny", chip=chip).cycles

    default = cycles()
    assert cycles(snoop_cycles=40) > default
    assert cycles(l2_cycles=30) > default
    assert cycles(l1_bytes=256, l1_ways=1, l2_bytes=512, l2_ways=1) > default


def test_every_kernel_has_a_description() -> None:
    kernels = coherence.kernels()
    assert len(kernels) == 9
    assert all(name.endswith("_like") and text for name, text in kernels.items())


def test_invalid_cases_are_refused() -> None:
    with pytest.raises(CoherenceError, match="no kernel `water`") as caught:
        coherence.run(kernel="water", mesh=small())
    assert (caught.value.kind, "water_like" in caught.value.hint) == ("unknown_kernel", True)
    with pytest.raises(CoherenceError, match="cannot be divided among 64 cores: expected 1 to 16"):
        coherence.run(kernel="fft_like", scale="tiny")
    with pytest.raises(CoherenceError, match="17 threads"):
        coherence.run(kernel="radix_like", mesh=small(), cores=17)
    with pytest.raises(CoherenceError, match="`l1_bytes` is 100"):
        coherence.run(kernel="radix_like", mesh=small(), chip=Chip(l1_bytes=100))
    with pytest.raises(CoherenceError, match="`l1_ways` is -1"):
        Chip(l1_ways=-1)
    chip = Chip(collector="bank")  # type: ignore[arg-type]
    with pytest.raises(CoherenceError, match="no collector `bank`"):
        coherence.run(kernel="radix_like", mesh=small(), chip=chip)
    far = small(hpc_max=12)
    with pytest.raises(NocError, match="12 hops per cycle past routers with a reducer"):
        coherence.run(kernel="radix_like", mesh=far)
    never = Chip(shared_hint="never")
    assert coherence.run(kernel="radix_like", mesh=far, scale="tiny", chip=never).cycles > 0


def test_a_run_over_the_limit_raises() -> None:
    chip = Chip(limit=5_000)
    with pytest.raises(CoherenceRunError, match="not finished after 5000 cycles") as caught:
        coherence.run(kernel="radix_like", mesh=small(), scale="tiny", chip=chip)
    assert caught.value.kind == "endless"
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
