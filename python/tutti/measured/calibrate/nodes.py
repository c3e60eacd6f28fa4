"""A platform with nodes: one model fitted within a node, and one between nodes.

The parameters within a node are those of the platform's model. Links of its topology add what a
message between nodes takes longer: latency, and time per byte, which the ranks of a node share. The
costs of each further message of a burst, such as alpha_r, are those within a node.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tutti.base.files.writer import document
from tutti.base.units import Time
from tutti.measured.calibrate.files import (
    PREFERRED,
    calibration_table,
    comments,
    compute_table,
    head,
    model_table,
)
from tutti.measured.calibrate.points import Observation
from tutti.measured.errors import CalibrationError
from tutti.platforms.nodes import DIRECT, SWITCHED, build_of
from tutti.view.quantity import format_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tutti.measured.calibrate.files import Provenance
    from tutti.measured.calibrate.fit import Fit

_DIFFERENT: Final = 0.1
"""Relative difference of a cost within nodes and between them that affects predictions."""
_PS: Final = 1e6
"""Picoseconds of a microsecond."""


@dataclass(frozen=True)
class NodesFit:
    """A model fitted within a node and between nodes.

    Attributes:
        within: The fit within a node.
        between: The fit between nodes.
        per_node: The number of ranks of a node.
        nodes: The number of nodes of the platform.
    """

    within: Fit
    between: Fit
    per_node: int
    nodes: int

    @property
    def per_byte(self) -> tuple[float, float]:
        """The time of a byte within a node and between nodes, in us."""
        (name,) = self.within.model.per_byte
        return self.within.theta[name], self.between.theta[name]

    @property
    def latencies(self) -> tuple[float, float]:
        """The time of an empty message within a node and between nodes, in us."""
        empty = Observation("one_way", 0.0, 0)
        within, between = (one.model.predict(one.theta, empty)
                           for one in (self.within, self.between))  # fmt: skip
        return within, between

    @property
    def error(self) -> float:
        """The larger median absolute relative error of both fits."""
        return max(self.within.median_residual, self.between.median_residual)

    def remarks(self) -> Iterator[str]:
        """Yields the costs that a platform states once for all levels, with both fitted values."""
        for name in self.within.model.times[1:]:
            within, between = self.within.theta[name], self.between.theta[name]
            line = (
                f"{name} is {format_time(within * _PS)} within a node and "
                f"{format_time(between * _PS)} between nodes: a platform has one value for all "
                "levels, the former"
            )
            if abs(within - between) > _DIFFERENT * max(within, between):
                line += (
                    ", so each further message of a burst between nodes is off by the difference"
                )
            yield line


def nodes_fit(
    within: Sequence[Fit], between: Sequence[Fit], *, per_node: int, nodes: int
) -> NodesFit:
    """Returns the fits of one model: that which platform files prefer, of those determined.

    Args:
        within: The fits within a node.
        between: The fits between nodes.
        per_node: The number of ranks of a node.
        nodes: The number of nodes of the platform.

    Raises:
        CalibrationError: No model is determined by both; or messages between nodes are faster.
    """
    pairs = [
        NodesFit(inner, outer, per_node, nodes)
        for inner in within
        for outer in between
        if (inner.model, inner.statistic) == (outer.model, outer.statistic)
        and _states_bytes(inner)
        and _states_bytes(outer)
    ]
    if not pairs:
        message = (
            "no model is determined by the measurements within a node and by those between nodes"
        )
        hint = "measure messages of several sizes in both places: osu_latency, and osu_bw"
        raise CalibrationError(message, kind="undetermined", hint=hint)
    order = [*PREFERRED, *(pair.within.model.name for pair in pairs)]
    best = min(pairs, key=lambda pair: (pair.within.statistic == "minimum",
                                        order.index(pair.within.model.name)))  # fmt: skip
    inner_us, outer_us = best.latencies
    if outer_us < inner_us:
        message = (
            f"a message between nodes takes {format_time(outer_us * _PS)}, less than one within a "
            f"node with {format_time(inner_us * _PS)}"
        )
        hint = "were the measurements exchanged? --between names those between nodes"
        raise CalibrationError(message, kind="out_of_range", hint=hint)
    return best


def _states_bytes(fitted: Fit) -> bool:
    per_byte = fitted.model.per_byte
    return fitted.determined and len(per_byte) == 1 and fitted.theta.get(per_byte[0], 0.0) > 0


def nodes_platform_text(
    found: NodesFit, provenance: Provenance, *, folds: Fit | None = None
) -> str:
    """Returns the text of a platform file whose topology has the nodes.

    Args:
        found: The fits.
        provenance: The origin of the numbers.
        folds: The fitted cost of a fold.
    """
    model, places = found.within.model.name, ("within a node", "between nodes")
    labels = [f"{place}: {model}" for place in places]
    lines = comments([found.within, found.between], provenance, labels=labels)
    costs = "further messages of a burst" + (" and of reductions" if folds is not None else "")
    lines += [f"The costs of {costs} are those {places[0]}, for all levels."]
    (name,) = found.within.model.per_byte
    source = f"fitted {places[found.per_byte[1] < found.per_byte[0]]}, the faster of both"
    table = model_table(found.within, provenance)
    table[name] = {"value": _rate(min(found.per_byte)), "source": source}
    tables = head(provenance, model) | {"models": {model: table}}
    tables |= compute_table(folds) | {"topology": _topology(found)}
    measured = replace(provenance, hosts=max(2, provenance.hosts or 2))
    return document(lines, tables | calibration_table(found.error, measured))


def _topology(found: NodesFit) -> dict[str, object]:
    """Returns the table of nodes around a switch.

    Where bytes are faster between nodes, messages between nodes do not cross the links within: a
    message takes the time of the slowest link of its route.
    """
    inner, outer = found.per_byte
    kind = SWITCHED if outer >= inner else DIRECT
    links = 2 if kind == SWITCHED else 4
    within, between = found.latencies
    latency = Time(ps=round((between - within) / links * _PS))
    return {
        "build": build_of(kind, found.per_node, found.nodes),
        "ranks_per_node": found.per_node,
        "links": [
            {
                "rate": {"value": _rate(inner), "source": "fitted within a node"},
                "latency": {"value": "0 ps", "source": "part of the model's latency"},
            },
            {
                "rate": {"value": _rate(outer), "source": "fitted between nodes; ranks of a node "
                         "share it"},
                "latency": {"value": str(latency), "source": f"fitted: a message between nodes "
                            f"takes {format_time((between - within) * _PS)} longer, over {links} "
                            "links"},
            },
        ],
    }  # fmt: skip


def _rate(us: float) -> str:
    return f"{us * 1e3:.9f} ns/B"
