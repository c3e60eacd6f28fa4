"""The published values in the drawings of figures 6 and 7."""

from __future__ import annotations

from tutti_papers.exhibits import Anchor
from tutti_papers.smart.system import (
    ALL,
    BASELINE,
    COMPLETE,
    CORNERS,
    GREEDY,
    IN_BYPASS,
    IN_COMPLETE,
    LOW,
    PRIVATE,
    TO_ONE,
    largest,
)


def fan_out_anchors(experiment: str) -> list[Anchor]:
    """Returns latencies at low load and saturation loads of figure 6; section V-A."""
    low = LOW * largest(experiment)
    if experiment == CORNERS:
        return [
            Anchor(low, (27, 28), "derived", BASELINE),
            Anchor(low, (4.6, 4.9), "derived", GREEDY),
            Anchor(low, 5.4, "text", COMPLETE.format(3)),
            Anchor(low, 3.8, "text", COMPLETE.format(4)),
            Anchor(low, (5, 7.5), "words", COMPLETE.format(8)),
        ]
    if experiment == ALL:
        top = largest(ALL)
        return [
            Anchor(low, (22, 23), "derived", BASELINE),
            Anchor(low, 5.6, "text", GREEDY),
            Anchor(0.58 * top, None, "derived", BASELINE),
            Anchor(0.70 * top, None, "text", GREEDY),
            Anchor(0.90 * top, None, "text", PRIVATE),
        ]
    return []


FAN_IN_ANCHORS: dict[str, list[Anchor]] = {
    "latency": [
        Anchor(LOW * largest(TO_ONE), 25, "text", BASELINE),
        Anchor(LOW * largest(TO_ONE), 5.7, "text", IN_BYPASS),
        Anchor(0.79, 8.9, "text", IN_BYPASS),
        Anchor(LOW * largest(TO_ONE), 4.7, "text", IN_COMPLETE),
        Anchor(largest(TO_ONE), 7.1, "text", IN_COMPLETE),
        Anchor(0.44, None, "text", BASELINE),
        Anchor(0.8, None, "text", IN_BYPASS),
    ],
    "answers": [
        Anchor(None, (12, 18), "text", BASELINE),
        Anchor(None, 4, "text", IN_BYPASS),
        Anchor(None, 1, "text", IN_COMPLETE),
    ],
    "active": [
        Anchor(0.44, 9, "text", BASELINE),
        Anchor(0.8, 4, "words", IN_COMPLETE),
    ],
}
"""The values of figure 7, by quantity; section V-B."""
