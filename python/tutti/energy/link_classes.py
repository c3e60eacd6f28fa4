"""Technologies of networks whose links differ in kind, such as links on chips and between dies."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - pydantic resolves it
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tutti.energy.technology import AreaReport, EnergyReport, Technology

if TYPE_CHECKING:
    from tutti.energy.technology import Interval

_LINKS = "links"
"""The component of links in reports of one technology."""


@dataclass(frozen=True)
class ClassTechnologies:
    """A technology of routers, and one of the links of each class.

    Attributes:
        routers: The technology of routers; its links have no effect.
        links: The technology of the links of each class; its routers have no effect.
    """

    routers: Technology
    links: Mapping[str, Technology]

    @property
    def router(self) -> str:
        """The name of the router technology."""
        return self.routers.router

    @property
    def link(self) -> str:
        """The names of the link technologies, with their classes."""
        return ", ".join(f"{name} {technology.link}" for name, technology in self.links.items())


Technologies: TypeAlias = Technology | ClassTechnologies
"""One technology for all links, or one per link class."""


def energy_of_routers(report: EnergyReport) -> EnergyReport:
    """Returns a report without links."""
    return EnergyReport(_others(report.dynamic_by_component), _others(report.leakage_by_component))


def energy_of_class(report: EnergyReport, name: str) -> EnergyReport:
    """Returns the links of a report alone, as a component with the name of their class."""
    component = component_of(name)
    return EnergyReport(
        {component: report.dynamic_by_component[_LINKS]},
        {component: report.leakage_by_component[_LINKS]},
    )


def area_of_routers(report: AreaReport) -> AreaReport:
    """Returns a report without links."""
    return AreaReport(_others(report.um2_by_component))


def area_of_class(report: AreaReport, name: str) -> AreaReport:
    """Returns the links of a report alone, as a component with the name of their class."""
    return AreaReport({component_of(name): report.um2_by_component[_LINKS]})


def component_of(name: str) -> str:
    """Returns the component of the links of a class in reports.

    Examples:
        >>> component_of("die-to-die")
        'die_to_die_links'
    """
    return f"{name.replace('-', '_').replace(' ', '_')}_links"


def _others(components: Mapping[str, Interval]) -> dict[str, Interval]:
    return {name: value for name, value in components.items() if name != _LINKS}
