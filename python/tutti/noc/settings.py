"""What a network of routers is told: routers, traffic, and how long to measure.

All delays are in clock cycles, all lengths of packets and buffers in flits, all rates in flits per
node and cycle. Numbers are checked against each other when a network is made of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, Field

from tutti.declared.groups import RouterParameters, Speculation
from tutti.errors import NocError

__all__ = [
    "Deadlock",
    "MeasurementPlan",
    "NarrowLinks",
    "Router",
    "Speculation",
    "Trace",
    "Traffic",
]

if TYPE_CHECKING:
    from tutti import _core

NarrowLinks = Annotated[
    Literal["refuse", "serialize"],
    Field(
        description="What becomes of links that need more than a cycle for a flit: `serialize` "
        "occupies them for as long as each flit takes."
    ),
]
Deadlock = Annotated[
    Literal["warn", "refuse", "ignore"],
    Field(
        description="What becomes of a routing that can deadlock; `refuse` also refuses a network "
        "too large to check."
    ),
]

_MOST = (1 << 32) - 1
_MOST_CYCLES = 1 << 40


def _switched(value: object) -> object:
    """True is speculation with its defaults, false is none."""
    return ({} if value else None) if isinstance(value, bool) else value


class Router(RouterParameters):
    """The routers of a network; all are identical. Delays are in cycles, buffers in flits.

    Attributes:
        speculation: whether heads request a VC and the switch in the same cycle: true, or how.
    """

    refused_as = NocError

    speculation: Annotated[
        Speculation | None,
        BeforeValidator(_switched, json_schema_input_type=Speculation | bool | None),
        Field(description="Whether heads request a VC and the switch in the same cycle."),
    ] = None

    def core_settings(self, classes: list[tuple[int, int]], seed: int) -> _core._Settings:
        """The settings of the core."""
        ahead = self.speculation
        return {
            "router": self.texts(RouterParameters),
            "speculation": ahead.texts(Speculation) if ahead else None,
            "classes": classes,
            "seed": seed,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Packets of one class, generated.

    Attributes:
        rate: Flits per node and cycle.
        pattern: Where packets go, as `name` or `name:argument`; `tutti.noc.patterns` lists them.
        process: When they are generated: `bernoulli`, `periodic`, `periodic:aligned` or `on_off:`
            with two of `alpha=`, `beta=` and `r1=`.
        packet: Flits of a packet: a number, several such as `"1,5"`, each as likely, or with
            weights, `"1,5/3,1"`.
        vcs: The first and the last VC of the class; None is all.
        priority: Larger goes first, where the routers' priority is `ordered`.
    """

    rate: float
    pattern: str = "uniform"
    process: str = "bernoulli"
    packet: int | str = 1
    vcs: tuple[int, int] | None = None
    priority: int = 0

    def core_load(self, share: float = 1.0) -> tuple[str, str, float, str, int]:
        """As the core takes it, with so many times its rate."""
        return self.pattern, self.process, self.rate * share, str(self.packet), self.priority


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Recorded packets, of one class or several.

    Attributes:
        text: Comma-separated values with the columns cycle, source, destination, flits and, where
            there are classes, class.
        vcs: For each class its first and its last VC; None is one class on all VCs.
    """

    text: str
    vcs: tuple[tuple[int, int], ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementPlan:
    """How long to run.

    Attributes:
        warmup: Cycles before the window that is measured.
        measure: Cycles of the window.
        batches: Parts of the window whose means give the confidence intervals, 2 or more.
        drain: Cycles after the window in which what was created in it must arrive.
        patience: Cycles without any flit moving after which packets under way are called
            deadlocked.
        sample: Every how many cycles of the window buffers are looked at; never if 0.
        keep_vcs: Whether to keep, each time, how full the buffer of every VC was and what it had
            sent: `NocRun.vcs_over_time`.
    """

    warmup: int = 5_000
    measure: int = 20_000
    batches: int = 20
    drain: int = 20_000
    patience: int = 5_000
    sample: int = 100
    keep_vcs: bool = False

    def __post_init__(self) -> None:
        """Refuses numbers that the core cannot take at all.

        Raises:
            NocError: one of them is none.
        """
        for name in ("warmup", "measure", "drain", "patience", "sample"):
            _whole(name, getattr(self, name), _MOST_CYCLES)
        _whole("batches", self.batches, _MOST)

    def core_plan(self) -> tuple[int, int, int, int, int, int, bool]:
        """As the core takes it."""
        times = (self.warmup, self.measure, self.batches, self.drain, self.patience, self.sample)
        return (*times, self.keep_vcs)


def _whole(name: str, value: object, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        message = f"`{name}` is {value!r}: expected a whole number from 0 to {most}"
        raise NocError(message, kind="out_of_range")
