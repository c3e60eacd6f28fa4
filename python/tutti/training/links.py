"""The utilisation of every link in a training step."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tutti.training.results import TrainingResult


class LinkTime(NamedTuple):
    """A link of a run.

    Attributes:
        run: The run.
        npu: The source on a torus; else None.
        source: The source in the topology of a platform; None on a torus.
        target: The target in the topology of a platform; None on a torus.
        link: The name.
        busy_ps: The busy time in picoseconds; on a platform, that of the bytes at its rate.
        bytes: The bytes.
    """

    run: TrainingResult
    npu: int | None
    source: str | None
    target: str | None
    link: str
    busy_ps: int
    bytes: int

    @property
    def utilisation(self) -> float:
        """The busy time as a fraction of the time of the run."""
        return self.busy_ps / max(self.run.record.end_ps, 1)


def link_name(run: TrainingResult, name: str) -> str:
    """Returns the name of a link of an NPU, such as `vertical +`, or `to s0` on a platform.

    Args:
        run: The run, whose step names the dimensions.
        name: The name in the record: `ring 1 +`, or on a platform the end of the link.
    """
    if run.step.platform is not None:
        return f"to {name}"
    _, ring, direction = name.split(" ")
    return f"{run.step.rings[int(ring)].name} {direction}"


def link_times(run: TrainingResult) -> list[LinkTime]:
    """Returns every link of a platform, or those of each simulated NPU of a torus."""
    routes = run.step.platform.routes if run.step.platform else None
    if run.step.platform is None:
        return [
            LinkTime(run, npu, None, None, link_name(run, use.name), use.busy_ps, use.bytes)
            for npu in range(run.record.npus)
            for use in run.record.links(npu)
        ]
    rows = []
    for link, use in zip(routes.topology.links if routes else (), run.record.graph_links(),
                         strict=False):  # fmt: skip
        name, busy = (
            f"{link.source} to {link.target}",
            round(use.bytes * link.rate.core.ps_per_byte),
        )
        rows.append(LinkTime(run, None, link.source, link.target, name, busy, use.bytes))
    return rows
