"""Errors of energy and area."""

from __future__ import annotations

from typing import ClassVar

from tutti.base.errors import Kind, TuttiError


class EnergyError(TuttiError, ValueError):
    """Raised for invalid constants, hardware or events of an energy or area model."""

    kinds: ClassVar[dict[str, Kind]] = {
        "unknown_technology": Kind(
            "The router or link technology is unknown.",
            "`tutti.energy.technologies()` lists them",
        ),
        "unknown_parameter": Kind(
            "The constant is unknown.",
            "`Technology.constants` lists them, with their units",
        ),
        "value": Kind(
            "The constant is negative or not a number.",
            "give it in the unit of its name",
        ),
        "bounds": Kind(
            "The bounds do not enclose their value.",
            "bounds are factors, such as 0.8 and 1.25",
        ),
        "no_source": Kind(
            "The constant has no source to check it against.",
            "name the paper and table, or the tool and version",
        ),
        "zero": Kind("The router has no ports, VCs, buffers or bits.", "give at least one"),
        "zero_cycle": Kind("The clock cycle is zero.", 'such as cycle="1 ns"'),
        "wrong_links": Kind(
            "Flits are counted for other link groups than the network has.",
            "give one number for each link group, in the order of the groups",
        ),
        "too_many_outputs": Kind(
            "Flits leave a router at more outputs than it has.",
            "entry k counts traversals to k + 1 outputs at once",
        ),
        "too_many": Kind("The sum is too large to be counted.", "take a shorter window"),
        "mesh": Kind(
            "Energy cannot be computed for this mesh, or for these counts.",
            "pass a `SmartMesh` of routers, and the counts of a run on it",
        ),
        "no_length": Kind(
            "The length of a link is unknown.",
            "give the topology's links their `length`",
        ),
        "no_flits": Kind(
            "Router events are requested for a platform without flits.",
            "give the platform `[topology.flits]`",
        ),
        "no_packets": Kind(
            "Bytes over links are requested for a platform without packets.",
            "give the platform `[topology.packets]`",
        ),
        "off_grid": Kind(
            "A link joins vertices that are not chiplets of a square grid.",
            "leave the pitch out, and give the topology's links their `length`",
        ),
        "mixed_ends": Kind("Some NPUs are routers, and others are attached to a router."),
        "no_chiplets": Kind(
            "A technology for links inside chiplets is given for another topology.",
            "leave `on_chip` out",
        ),
        "no_technology": Kind(
            "An energy is requested without the technology that defines the energy of events.",
            'such as Technology(router="dsent_45nm", link="dsent_45nm")',
        ),
    }
