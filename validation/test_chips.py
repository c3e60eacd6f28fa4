"""Power of published chips, compared with the energy model at 45 nm.

Only the abstracts are at hand, so what they do not state is a range: the share of broadcasts, the
share of flits that bypass buffers, the activity. Router parameters are inferred.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tutti.energy.technology import (
    EnergyReport,
    EventCounts,
    LinkHardware,
    NetworkHardware,
    RouterHardware,
    Technology,
    energy,
)

CYCLES = 10_000
CHIP = Technology(router="dsent_45nm", link="low_swing_45nm")


@dataclass(frozen=True)
class Milliwatts:
    """Power: nominal, and at the lower and upper bounds of all constants."""

    nominal: float
    low: float
    high: float


def milliwatts(report: EnergyReport, cycle_ps: int) -> Milliwatts:
    seconds = CYCLES * cycle_ps * 1e-12
    total = report.total
    return Milliwatts(
        *(1e3 * joules / seconds for joules in (total.nominal, total.low, total.high))
    )


def park(*, broadcasts: bool, bypassed: bool) -> Milliwatts:
    """Returns the power of the 16-node chip of Park et al. (DAC 2012) at 892 Gb/s.

    A broadcast visits 16 routers over 15 links for 15 deliveries. A unicast takes 8/3 links on
    average.
    """
    # 87.1 % of the limit: 64 bits per node and cycle.
    delivered = round(892 / 64 * CYCLES)
    visits = delivered * 16 // 15 if broadcasts else delivered * 11 // 3
    links = delivered if broadcasts else delivered * 8 // 3
    outputs = links + delivered
    stored = 0 if bypassed else visits
    router = RouterHardware(ports=5, vcs=6, buffer_flits=10, flit_bits=64)  # inferred
    wires = [LinkHardware(length="1 mm", count=48)]  # inferred
    hardware = NetworkHardware(router=router, routers=16, links=wires, cycle="1 ns")
    events = EventCounts(
        cycles=CYCLES,
        buffer_writes=stored,
        buffer_reads=stored,
        crossbar_traversals=[2 * visits - outputs, outputs - visits],
        switch_allocations=outputs,
        vc_allocations=outputs,
        link_flits=[links],
    )
    return milliwatts(energy(hardware, events, CHIP), 1000)


def scorpio(*, busy: bool) -> Milliwatts:
    """Returns the power of a router of SCORPIO (Daya et al., ISCA 2014) at 833 MHz.

    Idle, or with a flit through each of five ports in every cycle.
    """
    router = RouterHardware(ports=5, vcs=6, buffer_flits=10, flit_bits=128)  # inferred
    wires = [LinkHardware(length="1 mm", count=4)]  # inferred
    hardware = NetworkHardware(router=router, routers=1, links=wires, cycle="1.2 ns")
    flits = 5 * CYCLES * busy
    events = EventCounts(
        cycles=CYCLES,
        buffer_writes=flits,
        buffer_reads=flits,
        crossbar_traversals=[flits],
        switch_allocations=flits,
        vc_allocations=flits,
        link_flits=[4 * CYCLES * busy],
    )
    return milliwatts(energy(hardware, events, CHIP), 1200)


def test_the_chip_of_park_is_within_the_range_of_what_its_abstract_leaves_open() -> None:
    """531.4 mW, measured at 892 Gb/s of unicasts and broadcasts, 1.1 V (the model: 1.0 V)."""
    measured = 531.4
    cases = [park(broadcasts=a, bypassed=b) for a in (True, False) for b in (True, False)]
    nominal = sorted(case.nominal for case in cases)
    assert nominal[0] == pytest.approx(255, abs=1)
    assert nominal[-1] == pytest.approx(531, abs=1)
    assert min(case.low for case in cases) < measured < max(case.high for case in cases)
    # The bounds of the constants do not cover broadcasts alone: voltage and clocks are outside.
    assert park(broadcasts=True, bypassed=True).high < measured


def test_routers_of_scorpio_take_more_than_the_model_at_any_load() -> None:
    """19 % of 768 mW, with network interfaces: 146 mW per tile, estimated after layout."""
    published = 0.19 * 768
    idle, busy = scorpio(busy=False), scorpio(busy=True)
    assert idle.nominal == pytest.approx(19, abs=1)
    assert busy.nominal == pytest.approx(76, abs=1)
    # Network interfaces, clocks without gating and the second network are outside of the bounds.
    assert busy.high < published < 2 * busy.nominal
