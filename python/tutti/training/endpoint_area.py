"""Area and power of an ACE, summed over its components.

`PROCESSES` has two sets of constants at 28 nm. Those of `tutti` are from public sources or scaled
to 28 nm, each with bounds. Those of `published` are the synthesis results of Rashidi et al. 2021,
table IV, per unit; they are recalled and unverified.

Examples:
    >>> from tutti.training.endpoint import AceSettings, Npu
    >>> found = cost(AceSettings(), Npu(), links=6, bytes_per_second=300e9)
    >>> found["scratchpad"].area_mm2.nominal > found["ALUs"].area_mm2.nominal
    True
    >>> rate = {"links": 6, "bytes_per_second": 300e9}
    >>> recalled = cost(AceSettings(), Npu(), process=PROCESSES["published"], **rate)
    >>> f"{sum(one.area_mm2.nominal for one in recalled.values()):.3f} mm2"
    '5.339 mm2'
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti.energy.technology import Interval

if TYPE_CHECKING:
    from tutti.training.endpoint import AceSettings, Npu


@dataclass(frozen=True)
class Value:
    """A constant.

    Attributes:
        interval: Value with bounds.
        unit: Unit of the value.
        source: Source of the value.
    """

    interval: Interval
    unit: str
    source: str


HOROWITZ = "Horowitz, ISSCC 2014 (45 nm)"
_AREA = (28 / 45) ** 2
"""45 nm to 28 nm, ideal."""
_ENERGY = 28 / 45
"""At the same voltage: capacitance alone."""


@dataclass(frozen=True, kw_only=True)
class Process:
    """Constants of a 28 nm process, each with its unit in `Value.unit`.

    Attributes:
        cell: SRAM cell area per bit.
        filling: Cell fraction of SRAM macros.
        sram_energy: Access energy.
        sram_leakage: SRAM leakage.
        adder_area: FP32 adder area.
        adder_energy: FP16 addition.
        gate: NAND2 area.
        gates_of_fsm: FSM size.
        wire_energy: Bus energy.
    """

    cell: Value = Value(
        Interval(0.12, 0.127, 0.155), "um2", "28 nm high-density and high-speed 6T cells"
    )
    filling: Value = Value(Interval(0.8, 0.7, 0.6), "1", "common for macros of 1 Mb up")
    sram_energy: Value = Value(
        Interval(3.0, 12.5 * _ENERGY, 12.5), "pJ/B", f"{HOROWITZ}: 100 pJ for 8 B of 1 MB"
    )
    sram_leakage: Value = Value(
        Interval(0.003, 0.05, 0.4), "W/MiB", "low-power to high-performance cells: inferred"
    )
    adder_area: Value = Value(
        Interval(4184 * _AREA * 0.8, 4184 * _AREA, 4184 * _AREA * 1.5),
        "um2",
        f"{HOROWITZ}: 4184 um2",
    )
    adder_energy: Value = Value(
        Interval(0.4 * _ENERGY * 0.7, 0.4 * _ENERGY, 0.4), "pJ", f"{HOROWITZ}: 0.4 pJ, FP16"
    )
    gate: Value = Value(Interval(0.4, 0.49, 0.6), "um2", "28 nm libraries, NAND2")
    gates_of_fsm: Value = Value(Interval(5e3, 1e4, 3e4), "gates", "inferred")
    wire_energy: Value = Value(
        Interval(0.6, 0.17 * 8, 2.4), "pJ/B/mm", "Keckler et al. 2011 to full swing, 28 nm"
    )


@dataclass(frozen=True, kw_only=True)
class Synthesis:
    """Area in um2 and power in mW per unit of a synthesised ACE, at any data rate.

    Attributes:
        sram: Of a KiB of scratchpad.
        alu: Of an ALU.
        fsm: Of an FSM with its part of the control unit.
        switch: Of the switch and its interconnect.
        source: Source of the values.
    """

    sram: tuple[float, float]
    alu: tuple[float, float]
    fsm: tuple[float, float]
    switch: tuple[float, float]
    source: str

    def cost(self, ace: AceSettings) -> dict[str, Component]:
        """Returns area and power by component."""
        units = {
            "scratchpad": (ace.sram.bytes / 2**10, self.sram),
            "ALUs": (ace.alus, self.alu),
            "state machines": (_fsms(ace), self.fsm),
            "switch": (1, self.switch),
        }
        found = {}
        for name, (count, (area, power)) in units.items():
            mm2, watts = count * area * 1e-6, count * power * 1e-3
            found[name] = Component(name, Interval(mm2, mm2, mm2), Interval(watts, watts, watts))
        return found


PUBLISHED = Synthesis(
    sram=(5_113_696 / 4096, 1.0),
    alu=(16_112, 7.625),
    fsm=(159_803 / 16, 8.0),
    switch=(1_084, 0.0),
    source="Rashidi et al. 2021, table IV, recalled and unverified: 5,339,031 um2 and 4,254.5 mW "
    "in all; the ALUs have the power that scratchpad and FSMs leave",
)
"""The paper's synthesis. Its scratchpad fills 0.83 of the area with cells of 0.127 um2."""

PROCESSES: dict[str, Process | Synthesis] = {"tutti": Process(), "published": PUBLISHED}
"""The constants of an ACE at 28 nm, by name."""


@dataclass(frozen=True)
class Component:
    """Area and power of a component.

    Attributes:
        name: Name of the component.
        area_mm2: Square millimetres.
        power_w: Watts at the given rate.
    """

    name: str
    area_mm2: Interval
    power_w: Interval


def cost(
    ace: AceSettings,
    npu: Npu,
    *,
    links: int,
    bytes_per_second: float,
    process: Process | Synthesis | None = None,
) -> dict[str, Component]:
    """Returns area and power by component for an ACE at a data rate of its NPU.

    Args:
        ace: The ACE.
        npu: The NPU.
        links: Links of the NPU, each with an input and an output buffer.
        bytes_per_second: Data rate of the NPU. The scratchpad reads and writes each byte once.
        process: The constants; by default those of `tutti`. A synthesis has no port buffers, and
            its power does not depend on the data rate.
    """
    if isinstance(process, Synthesis):
        return process.cost(ace)
    made = process or Process()
    found = (
        _scratchpad(ace, made, bytes_per_second),
        _alus(ace, made, bytes_per_second),
        _machines(ace, npu, made),
        _buffers(ace, made, links, bytes_per_second),
        _buses(ace, made, bytes_per_second),
    )
    return {component.name: component for component in found}


def _times(*factors: Interval | float) -> Interval:
    low = nominal = high = 1.0
    for factor in factors:
        if isinstance(factor, Interval):
            low, nominal, high = low * factor.low, nominal * factor.nominal, high * factor.high
        else:
            low, nominal, high = low * factor, nominal * factor, high * factor
    return Interval(low, nominal, high)


def _one_over(value: Interval) -> Interval:
    return Interval(1 / value.low, 1 / value.nominal, 1 / value.high)


def _bits(made: Process, size: int) -> Interval:
    """Returns the square millimetres of an SRAM of this size in bytes."""
    filled = _one_over(made.filling.interval)
    return _times(made.cell.interval, filled, 8 * size * 1e-6)


def _scratchpad(ace: AceSettings, made: Process, rate: float) -> Component:
    leakage = _times(made.sram_leakage.interval, ace.sram.bytes / 2**20)
    used = _times(made.sram_energy.interval, 2 * rate * 1e-12)
    return Component("scratchpad", _bits(made, ace.sram.bytes), used.plus(leakage))


def _alus(ace: AceSettings, made: Process, rate: float) -> Component:
    """FP32 adders, each of which can add two FP16 pairs; half of the received data is reduced."""
    adders = ace.alus * ace.width // 4
    area = _times(made.adder_area.interval, adders * 1e-6)
    return Component("ALUs", area, _times(made.adder_energy.interval, rate / 2 / 2 * 1e-12))


def _fsms(ace: AceSettings) -> int:
    return ace.fsms if isinstance(ace.fsms, int) else sum(ace.fsms)


def _machines(ace: AceSettings, npu: Npu, made: Process) -> Component:
    count = _fsms(ace)
    area = _times(made.gates_of_fsm.interval, made.gate.interval, count * 1e-6)
    # A gate switches in a tenth of the cycles, 1 fJ each time.
    switching = 0.1 * 1e-15 * npu.clock.hertz
    return Component("state machines", area, _times(made.gates_of_fsm.interval, count * switching))


def _buffers(ace: AceSettings, made: Process, links: int, rate: float) -> Component:
    """SRAM buffers of each link, in and out; small ones take a fifth of the scratchpad's energy."""
    size = 2 * links * ace.port * ace.packet.bytes
    used = _times(made.sram_energy.interval, 2 * 2 * rate / 5 * 1e-12)
    return Component("port buffers", _bits(made, size), used)


def _buses(ace: AceSettings, made: Process, rate: float) -> Component:
    """Buses across the scratchpad and back, as wide as the scratchpad, in the metal above it."""
    side = _bits(made, ace.sram.bytes)
    length = Interval(side.low**0.5, side.nominal**0.5, side.high**0.5)
    used = _times(made.wire_energy.interval, length, 2 * rate * 1e-12)
    return Component("buses", Interval(0.0, 0.0, 0.0), used)
