"""Lower bounds of a step from the bytes that its algorithms put on each link.

A step lasts at least as long as its most loaded link transmits. The bytes of an algorithm on each
link are those of one collective alone, on all groups at once, times the number of its collectives
in the step. They do not depend on the other collectives, so a search adds them up for every
combination of algorithms, without a simulation of the step.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, reduce
from operator import and_
from typing import TYPE_CHECKING

from tutti import _core
from tutti.base.errors import TuttiError
from tutti.platforms.library import is_library
from tutti.training.endpoint import configurations
from tutti.training.fabric import AUTO

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tutti.training.results import TrainingResult

_LEAST_SHARE = 0.5
"""Share of the busiest link of a step, below which bounds would leave out few algorithms."""
_ROUNDED = 1e-5
"""Share of a bound by which rounded ends of transmissions may exceed it."""


class LinkLoads:
    """The bytes that the collectives of a step put on each link, by algorithm.

    Only steps with endpoints have bounds, on a platform with flows and one route per pair of NPUs,
    if its switches neither multicast nor reduce, and its links are busy for much of the step.
    """

    def __init__(self, run: TrainingResult) -> None:
        """Uses the loads of a run of the step with its own algorithms."""
        self._run, self._step = run, run.step
        self._loads: dict[tuple[str, str | None], list[int]] = {}

    def bound_ps(self, chosen: Mapping[str, str | None]) -> int:
        """Returns the lower bound of the time of the step in ps; 0 without one.

        Args:
            chosen: The algorithm of each collective, by key; None for that of the step. Collectives
                whose algorithm has no schedule add nothing.
        """
        if not self._is_bounded:
            return 0
        each = [self._of(key, notation) for key, notation in chosen.items()]
        return self._busiest([sum(link) for link in zip(*each, strict=True)])

    @cached_property
    def _is_bounded(self) -> bool:
        platform = self._step.platform
        is_exact = self._step.detail == "packets" and not self._step.is_recorded
        if not is_exact or platform is None or platform.is_in_network:
            return False
        kind, routes = platform.effective_contention.kind, platform.routes
        if kind != "flow" or routes is None or routes.choice is not None:
            return False
        used = self._busiest(link.bytes for link in self._run.record.graph_links())
        return used >= _LEAST_SHARE * self._run.total.ps

    @cached_property
    def _rates(self) -> list[_core.TimePerByte]:
        """The rate of each link of the platform."""
        platform = self._step.platform
        routes = platform.routes if platform else None
        return [link.rate for link in routes.topology.core.links()] if routes else []

    def _busiest(self, loads: Iterable[int]) -> int:
        """Returns the time in ps in which the most loaded link transmits its bytes."""
        times = (rate.of(size) for rate, size in zip(self._rates, loads, strict=True))
        return int(max(times, default=0) * (1 - _ROUNDED))

    @cached_property
    def _issued(self) -> dict[str, Counter[tuple[str, int, int]]]:
        """Collective, dimensions and bytes of the transfers of every stage, counted, by key."""
        programs = self._step.programs(self._run.configuration)
        counted = (
            Counter(
                (one.kind, one.mask, one.size)
                for one in program.issued
                if one.kind not in {"send", "recv"}
            )
            for program in programs
        )
        network, found = (
            self._step.network,
            defaultdict[str, Counter[tuple[str, int, int]]](Counter),
        )
        for each, number in reduce(and_, counted).items():
            found[network.key(*each[:2])][each] = number
        return found

    def _of(self, key: str, notation: str | None) -> list[int]:
        """Returns the bytes of a collective on each link in a step."""
        if (key, notation) not in self._loads:
            total = [0] * len(self._rates)
            with suppress(TuttiError):  # its simulation states why it is refused
                total = self._summed(key, notation)
            self._loads[key, notation] = total
        return self._loads[key, notation]

    def _summed(self, key: str, notation: str | None) -> list[int]:
        total, numbers = [0] * len(self._rates), self._issued[key]
        transfers = {each: _core.Transfer(*each) for each in numbers}
        if not transfers:
            return total
        network = self._step.network
        collective, mask, _ = next(iter(transfers))
        given = notation or network.algorithm(collective, mask)
        if given == AUTO or is_library(str(given)):
            return total
        algorithms = {} if given is None else {key: given}
        fabric = replace(network, algorithms=algorithms).fabric(list(transfers.values()))
        for each, transfer in transfers.items():
            loads = zip(total, self._alone(fabric, transfer), strict=True)
            total = [one + numbers[each] * more for one, more in loads]
        return total

    def _alone(self, fabric: _core.StepFabric, transfer: _core.Transfer) -> list[int]:
        """Returns the bytes on each link while all groups perform a collective at once."""
        npu, chunk, message = self._step.npu, self._step.chunk, self._step.message
        endpoint = configurations()["ideal"].endpoint(
            npu, fabric, transfers=[transfer], chunk=chunk, message=message
        )
        settings = _core.FabricSettings(
            chunk=chunk.bytes, message=message.bytes, every_npu=True, detail="flows"
        )
        program = _core.TrainingProgram.alone(transfer)
        record = _core.simulate_training([program], fabric, endpoint, settings)
        return [link.bytes for link in record.graph_links()]
