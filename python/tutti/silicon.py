"""What an ACE takes up and draws: its area and power, added up from its components.

Constants are those of public sources at 28 nm, or scaled to it, each with bounds; what the paper's
own synthesis came to is not public.

>>> from tutti.endpoint import AceSettings, Npu
>>> found = cost(AceSettings(), Npu(), links=6, bytes_per_second=300e9)
>>> found["scratchpad"].area_mm2.nominal > found["ALUs"].area_mm2.nominal
True
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tutti.energy import Interval

if TYPE_CHECKING:
    from tutti.endpoint import AceSettings, Npu

__all__ = ["Component", "Process", "Value", "cost"]


@dataclass(frozen=True)
class Value:
    """A constant.

    Attributes:
        interval: Its value, between bounds.
        unit: Of what.
        source: Where it is from.
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
    """Constants of a 28 nm process.

    Attributes:
        cell: Of SRAM, um2 for a bit.
        filling: The part of an SRAM macro that is cells.
        sram_energy: A byte read or written in a bank of 1 MiB, pJ.
        sram_leakage: W for a MiB.
        adder_area: An adder of FP32, um2.
        adder_energy: An addition in FP16, pJ.
        gate: A NAND2, um2.
        gates_of_fsm: Of a state machine with its queue of contexts.
        wire_energy: A byte over a bus of a millimetre, pJ.
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


@dataclass(frozen=True)
class Component:
    """What a component takes.

    Attributes:
        name: Which.
        area_mm2: Square millimetres.
        power_w: Watts at the rate that was asked for.
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
    process: Process | None = None,
) -> dict[str, Component]:
    """What an ACE takes, component by component, while an NPU sends so much.

    Args:
        ace: Which.
        npu: Beside which NPU.
        links: Links of the NPU, each with a buffer in and out.
        bytes_per_second: What the NPU sends and receives. Each byte of it is read from the
            scratchpad and written there once, at most.
        process: Its constants; 28 nm if left out.
    """
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
    """Square millimetres of SRAM for so many bytes."""
    filled = _one_over(made.filling.interval)
    return _times(made.cell.interval, filled, 8 * size * 1e-6)


def _scratchpad(ace: AceSettings, made: Process, rate: float) -> Component:
    leakage = _times(made.sram_leakage.interval, ace.sram.bytes / 2**20)
    used = _times(made.sram_energy.interval, 2 * rate * 1e-12)
    return Component("scratchpad", _bits(made, ace.sram.bytes), used.plus(leakage))


def _alus(ace: AceSettings, made: Process, rate: float) -> Component:
    """Adders of FP32 that also add twice as many of FP16; half of what comes is reduced."""
    adders = ace.alus * ace.width // 4
    area = _times(made.adder_area.interval, adders * 1e-6)
    return Component("ALUs", area, _times(made.adder_energy.interval, rate / 2 / 2 * 1e-12))


def _machines(ace: AceSettings, npu: Npu, made: Process) -> Component:
    count = ace.fsms if isinstance(ace.fsms, int) else sum(ace.fsms)
    area = _times(made.gates_of_fsm.interval, made.gate.interval, count * 1e-6)
    # A gate that switches in a tenth of the cycles, 1 fJ each time.
    switching = 0.1 * 1e-15 * npu.clock.hertz
    return Component("state machines", area, _times(made.gates_of_fsm.interval, count * switching))


def _buffers(ace: AceSettings, made: Process, links: int, rate: float) -> Component:
    """Of each link in and out, in SRAM; small ones cost a fifth of what the scratchpad does."""
    size = 2 * links * ace.port * ace.packet.bytes
    used = _times(made.sram_energy.interval, 2 * 2 * rate / 5 * 1e-12)
    return Component("port buffers", _bits(made, size), used)


def _buses(ace: AceSettings, made: Process, rate: float) -> Component:
    """Across the scratchpad and back, as wide as it is; wires lie above what they cross."""
    side = _bits(made, ace.sram.bytes)
    length = Interval(side.low**0.5, side.nominal**0.5, side.high**0.5)
    used = _times(made.wire_energy.interval, length, 2 * rate * 1e-12)
    return Component("buses", Interval(0.0, 0.0, 0.0), used)
