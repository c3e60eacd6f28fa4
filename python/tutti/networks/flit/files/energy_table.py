"""The technology that an energy table of a file describes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.base.errors import TuttiError
from tutti.base.files.mistakes import mistake

if TYPE_CHECKING:
    from tutti.energy import Technology
    from tutti.energy.link_classes import Technologies
    from tutti.networks.flit.files.tables import EnergyTable
    from tutti.topologies import Topology


def technology_of(table: EnergyTable | None, *, source: str, key: str) -> Technologies | None:
    """Returns the technology that a table describes, or those of its link classes.

    Raises:
        ConfigError: A technology is unknown, or a constant is invalid.
    """
    if table is None:
        return None
    from tutti.energy.link_classes import ClassTechnologies

    if isinstance(table.link, str):
        return single_technology_of(table, table.link, source=source, key=key)
    technologies = {
        name: single_technology_of(table, link, source=source, key=key)
        for name, link in table.link.items()
    }
    known = next(iter(technologies.values())).constants
    for name in table.constants:
        if known[name].part == "link":
            raise mistake(
                f"`{name}` would apply to all link classes", source=source,
                key=f"{key}.constants.{name}", expected="constants of routers, or one `link`",
            )  # fmt: skip
    return ClassTechnologies(next(iter(technologies.values())), technologies)


def single_technology_of(table: EnergyTable, link: str, *, source: str, key: str) -> Technology:
    """Returns the technology of a table with the links of one class.

    Args:
        table: The table.
        link: The technology of the links.
        source: The file, for messages.
        key: The key of the table.

    Raises:
        ConfigError: The technology is unknown, or a constant is invalid.
    """
    from tutti.energy import Technology

    try:
        technology = Technology(router=table.router, link=link)
        for name, constant in table.constants.items():
            values = constant.model_dump(exclude={"value"})
            technology = technology.with_value(name, constant.value, **values)
    except TuttiError as error:
        raise mistake(error.problem, source=source, key=key, hint=error.hint) from error
    return technology


def check_links(
    technology: Technologies, topology: Topology, *, source: str, key: str, links: str
) -> None:
    """Rejects links whose energy cannot be computed.

    Args:
        technology: The technology.
        topology: The topology.
        source: The file, for messages.
        key: The key of the table of the technology.
        links: The key of the links.

    Raises:
        ConfigError: A link has no length, or the technologies are not those of the link classes.
    """
    for link in topology.links:
        if link.length is None:
            raise mistake(
                f"the length of the link from {link.source} to {link.target} is unknown",
                source=source,
                key=links,
                expected='a `length`, such as "1 mm", which the energy depends on',
            )
    _check_classes(technology, topology, source=source, key=f"{key}.link")


def _check_classes(technology: Technologies, topology: Topology, *, source: str, key: str) -> None:
    """Rejects a technology for all links of a topology whose classes differ, and other classes."""
    from tutti.energy.technology import Technology
    from tutti.topologies.classes import class_of_links, differing_classes

    if isinstance(technology, Technology):
        differing = differing_classes(topology)
        if differing:
            raise mistake(
                f"`{technology.link}` for all links, whose classes differ", source=source, key=key,
                expected=f"a technology per class: {_example(differing, technology.link)}",
            )  # fmt: skip
        return
    classes = list(dict.fromkeys(class_of_links(topology).values()))
    if set(technology.links) != set(classes):
        problem = "the classes are not those of the links"
        expected = _example(classes, "TECHNOLOGY") if classes else "one technology for all links"
        raise mistake(problem, source=source, key=key, expected=expected)


def _example(classes: list[str], link: str) -> str:
    """Returns a table of technologies; names with spaces have quotes."""
    names = (f'"{name}"' if " " in name else name for name in classes)
    pairs = ", ".join(f'{name} = "{link}"' for name in names)
    return f"{{ {pairs} }}"
