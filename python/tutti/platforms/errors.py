"""Errors of network models and of noise."""

from __future__ import annotations

from typing import ClassVar

from tutti.base.errors import Kind, TuttiError


class ModelError(TuttiError, ValueError):
    """Raised for an unknown network model, or invalid parameters of one."""

    kinds: ClassVar[dict[str, Kind]] = {
        "unknown": Kind("The network model is unknown."),
        "unknown_parameter": Kind("The model has no such parameter."),
        "missing": Kind("A parameter without a default is missing.", "give it"),
        "value": Kind("The value is not of the parameter's quantity.", "write a number and a unit"),
        "empty_packets": Kind("The packet size is zero.", 'write a size such as "4 KiB"'),
        "buffer_too_small": Kind("The buffer is smaller than a packet.", "enlarge `buffer`"),
        "packets_too_long": Kind("The packet exceeds the largest length that can be counted."),
        "takes_no_time": Kind(
            "Messages would take no time.",
            "give at least one of the parameters",
        ),
        "later_costs_more": Kind(
            "Later messages of a burst would cost more than the first.",
            "were the two swapped?",
        ),
        "longer_takes_less": Kind(
            "A message would take less time than a shorter one.",
            "raise the parameters of the longer message or move the limit between the two",
        ),
    }


class NoiseError(TuttiError, ValueError):
    """Raised for an invalid disturbance: a distribution, a load or the speed of a rank."""

    kinds: ClassVar[dict[str, Kind]] = {
        "malformed": Kind("The text is not a distribution."),
        "unknown": Kind("The distribution is unknown."),
        "arguments": Kind("The distribution has too few or too many arguments."),
        "value": Kind("An argument is not a time.", "write a number and a unit"),
        "number": Kind("An argument is not a number, or out of its range."),
        "inverted": Kind("The lower bound exceeds the upper bound.", "give the lower one first"),
        "no_samples": Kind("The recorded distribution has no samples.", "give at least one"),
        "no_parts": Kind("The mixture has no parts.", "give at least one part"),
        "no_time_to_work": Kind(
            "Detours take all of the processor's time.",
            "make them shorter, or their period longer",
        ),
        "outside_cycle": Kind(
            "A detour starts after the end of its cycle.",
            "make the cycle longer",
        ),
        "too_few_arrivals": Kind(
            "Arrivals were recorded for fewer ranks than the run has.",
            "run on fewer ranks",
        ),
        "load": Kind(
            "The background load of a link is negative, or takes its full rate.",
            "a load is a share of the rate, such as 0.3",
        ),
        "loads": Kind(
            "The number of loads is neither one nor the number of link classes.",
            "link classes differ in rate, latency or length; they are ordered fastest first",
        ),
        "no_links": Kind(
            "A background load is given for a platform without links.",
            "give the platform a `[topology]`",
        ),
        "speed": Kind(
            "The speed is zero, negative or not a number.",
            "1 is nominal, 0.5 half as fast",
        ),
    }
