"""Die-to-die links of UCIe: rate, latency, energy and retry of a configuration.

Rates and latencies are settings of topologies, energies those of link technologies
(``docs/models/energy.md``).

Examples:
    >>> link = UcieLink(package="advanced", gt_per_s=16)
    >>> link.lanes, link.raw_rate, link.rate, link.latency, link.retry
    (64, '128 GB/s', '120.471 GB/s', '2 ns', True)
    >>> from tutti.topologies import Topology
    >>> mesh = Topology.build("mesh:4x4", rate=link.rate, latency=link.latency)
    >>> str(UcieLink(package="standard", gt_per_s=8, modules=4).rate)
    '60.235 GB/s'
    >>> link.technology("aries_45nm").constants["crossing_pj_per_bit"].value
    0.25
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tutti.base.errors import ConfigError
from tutti.energy.technology import Technology

RATES = (4, 8, 12, 16, 24, 32)
"""GT/s of a lane (UCIe 1.1 and 2.0)."""
_MODULES = (1, 2, 4)
_LANES = {"standard": 16, "advanced": 64}
_PAYLOAD, _FLIT = 64, 68
"""Bytes of a flit: two are its header, two its CRC."""
_EFFICIENT, _ABOVE = 16, 1.2
"""Up to this rate a bit takes its energy; above, this factor (0.5 and 0.6, 0.25 and 0.3 pJ)."""
_RELIABLE = 8
"""Up to this rate no retry is needed."""
_SOURCE = "Das Sharma, UCIe consortium, Hot Interconnects 2025: above 16 GT/s"


@dataclass(frozen=True, kw_only=True)
class UcieLink:
    """A link between two dies, in each direction.

    Sources: UCIe specification 1.1 (2023) for lanes, rates, modules, flits of 68 bytes, and the
    latency target of less than 2 ns from the adapter of the sender to that of the receiver, without
    the wire. Retry above 8 GT/s, as the raw error rate requires.

    Attributes:
        package: `standard`: an organic substrate. `advanced`: an interposer or bridge.
        gt_per_s: Transfers per second and lane, one of `RATES`.
        modules: Modules side by side: 1, 2 or 4.

    Raises:
        ConfigError: A value is not one of UCIe's.
    """

    package: Literal["standard", "advanced"]
    gt_per_s: int
    modules: int = 1

    def __post_init__(self) -> None:
        """Checks the values."""
        for name, value, known in (
            ("package", self.package, tuple(_LANES)),
            ("gt_per_s", self.gt_per_s, RATES),
            ("modules", self.modules, _MODULES),
        ):
            if value not in known:
                expected = ", ".join(map(str, known))
                problem = f"UCIe has no {name} `{value}`: expected one of {expected}"
                raise ConfigError(problem, kind="invalid")

    @property
    def lanes(self) -> int:
        """The data lanes of all modules."""
        return self.modules * _LANES[self.package]

    @property
    def raw_rate(self) -> str:
        """The rate of the lanes, such as ``128 GB/s``."""
        return f"{self._raw:g} GB/s"

    @property
    def rate(self) -> str:
        """The rate of payload, without headers and CRC of flits."""
        return f"{self._raw * _PAYLOAD / _FLIT:.3f} GB/s"

    @property
    def latency(self) -> str:
        """The latency of adapters and transceivers at both ends: UCIe's target, an upper bound."""
        return "2 ns"

    @property
    def retry(self) -> bool:
        """Whether the adapter needs its CRC and retry. The time of retries is not modelled."""
        return self.gt_per_s > _RELIABLE

    def technology(self, router: str) -> Technology:
        """Returns the energies of this link, with a technology of routers.

        Raises:
            EnergyError: The technology of routers is unknown.
        """
        usual = Technology(router=router, link=f"ucie_{self.package}")
        if self.gt_per_s <= _EFFICIENT:
            return usual
        name = "crossing_pj_per_bit"
        more = usual.constants[name].value * _ABOVE
        return usual.with_value(name, more, source=_SOURCE)

    @property
    def _raw(self) -> float:
        return self.lanes * self.gt_per_s / 8
