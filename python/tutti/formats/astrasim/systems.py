"""Reads system files of ASTRA-sim 2 (JSON): how NPUs execute collectives.

Keys without effect on time are listed. Values of other keys that ask for what is not modelled are
refused; their defaults are accepted.

Source: ``Sys.cc`` (initialize_sys) and ``CollectiveImplLookup.cc`` of astra-sim/astra-sim 518bd51,
and of its former versions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field

from tutti import _core
from tutti.base.errors import ConfigError
from tutti.base.files import limits
from tutti.base.files.mistakes import mistake
from tutti.base.files.reader import parse_json, read_text
from tutti.base.files.tables import Table
from tutti.base.files.validate import validated
from tutti.base.units import TimePerByte
from tutti.formats.astrasim.networks import MOST_DIMENSIONS, modelled
from tutti.workloads.trace import NodeRates

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_EXPECTED = "a system of ASTRA-sim 2 (JSON)"
_VERSION_1 = re.compile(r"\s*[a-z]+(?:-[a-z]+)+:\s")
"""The first line of a system of version 1, such as `scheduling-policy: LIFO`."""


@dataclass(frozen=True, kw_only=True)
class System:
    """A system: how NPUs execute collectives.

    Attributes:
        order: The scheduling order of collectives.
        nested: Whether an all_reduce is hierarchical over the dimensions (`localBWAware`), and not
            sequential with all data.

        delay: The endpoint delay per message, in ns.
        memory: Memory bandwidth in 10^9 B/s.
        splits: Chunks per collective.
        active: Concurrent chunks per dimension.
        peak: TFLOP/s, or 0 to use recorded times.
        implementations: The number of dimensions with an algorithm, by collective; None: those of
            the network.
        source: The file, for errors.
        unused: Keys of the file without effect on time.
    """

    order: Literal["lifo", "fifo"] = "lifo"
    nested: bool = True
    delay: int = 10
    memory: float = 0
    splits: int = 1
    active: int = 1
    peak: float = 0
    implementations: Mapping[str, int] | None = None
    source: str = "system"
    unused: tuple[str, ...] = ()

    def endpoint(self) -> _core.Endpoint:
        """Returns the messaging agent of the NPUs."""
        rate = TimePerByte.parse(f"{round(self.memory * 10**9)} B/s").core if self.memory else None
        return _core.Endpoint.agent(
            delay_ps=self.delay * 1000,
            memory=rate or _core.TimePerByte("0 ns/B"),
            chunks_at_once=self.active,
        )

    @property
    def timing(self) -> NodeRates:
        """The roofline times of nodes with operations and bytes."""
        if not self.peak or not self.memory:
            return NodeRates()
        memory = TimePerByte.parse(f"{round(self.memory * 10**9)} B/s")
        return NodeRates(round(self.peak * 10**12), memory, replace=True)


def _one_of(*known: str) -> AfterValidator:
    return AfterValidator(lambda word: modelled(word, known))


def _off(what: str, *off: object) -> BeforeValidator:
    """Refuses all values but those that switch a feature off: 0, and `off`."""

    def check(value: object) -> object:
        if any(type(value) is type(each) and value == each for each in (0, 0.0, *off)):
            return 0
        problem = f"{what} is not modelled: expected 0"
        raise ConfigError(problem, kind="invalid")

    return BeforeValidator(check)


def _refused(value: object) -> object:
    message = "custom algorithms are not modelled: expected no such key"
    raise ConfigError(message, kind="invalid", fields={"value": str(value)[:40]})


_COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
_Rings = Annotated[
    list[Annotated[str, _one_of("ring")]],
    Field(default=["ring"], min_length=1, max_length=MOST_DIMENSIONS),
]


def _integral(value: object) -> object:
    """Returns a number such as 10.0 as an integer, as ASTRA-sim reads it."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


_Integer = Annotated[int, BeforeValidator(_integral)]
_Chunks = Annotated[_Integer, Field(ge=1, le=1 << 20)]
# `Sys.cc` compares with 0, so that `true` and also `false` switch it on.
_Switch = Annotated[
    _Integer, BeforeValidator(lambda value: 1 if value is True else value), Field(ge=0, le=1)
]
_Unused = Annotated[str | bool | int | float | None, Field(default=None)]
_Custom = Annotated[Any, BeforeValidator(_refused), Field(default=None, validate_default=False)]
_UNUSED = (
    *("boost-mode", "trace-enabled", "track-local-mem", "local-mem-trace-filename"),
    *("local-mem-tracker-enabled", "track-mem-activities", "memory-report-dir"),
    *("local-reduction-delay", "L", "o", "g", "G", "replay-only", "model-shared-bus"),
)
"""Keys without effect on time in ASTRA-sim 2, at the values that are accepted; `L`, `o`, `g` and
`G` are those of a shared bus."""


class _RawSystem(Table):
    """All keys of a system file; those of `_UNUSED` have no effect."""

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"))

    all_reduce_implementation: _Rings
    all_gather_implementation: _Rings
    reduce_scatter_implementation: _Rings
    all_to_all_implementation: _Rings
    scheduling_policy: Annotated[str, _one_of("LIFO", "FIFO")] = "LIFO"
    collective_optimization: Annotated[str, _one_of("localBWAware", "baseline")] = "baseline"
    intra_dimension_scheduling: Annotated[str, _one_of("FIFO")] = "FIFO"
    inter_dimension_scheduling: Annotated[str, _one_of("ascending", "baseline")] = "ascending"
    model_shared_bus: Annotated[int, _off("a shared bus", False)] = 0
    # `Sys.cc` compares with 0, so that `false` switches a replay on.
    replay_only: Annotated[int, _off("a replay of recorded durations of all nodes")] = 0
    endpoint_delay: _Integer = Field(10, ge=0, le=1 << 40)
    preferred_dataset_splits: _Chunks = 1
    active_chunks_per_dimension: _Chunks = 1
    local_mem_bw: Annotated[float, Field(ge=1e-9, le=1e9)] | None = None
    roofline_enabled: _Switch = 0
    peak_perf: float = Field(0, ge=0, le=1e6)
    boost_mode: _Unused
    trace_enabled: _Unused
    track_local_mem: _Unused
    local_mem_trace_filename: _Unused
    local_mem_tracker_enabled: _Unused
    track_mem_activities: _Unused
    memory_report_dir: _Unused
    local_reduction_delay: _Unused
    L: _Unused
    o: _Unused
    g: _Unused
    G: _Unused
    all_reduce_implementation_custom: _Custom
    all_gather_implementation_custom: _Custom
    reduce_scatter_implementation_custom: _Custom
    all_to_all_implementation_custom: _Custom
    per_node_custom_implementation: _Custom
    all_reduce_implementation_chakra: _Custom
    all_gather_implementation_chakra: _Custom
    reduce_scatter_implementation_chakra: _Custom
    all_to_all_implementation_chakra: _Custom


def load_system(path: Path) -> System:
    """Loads a system file.

    Raises:
        ConfigError: The file is invalid, or requires an unsupported feature.
    """
    text = read_text(path, limits.Bytes.CONFIG, _EXPECTED)
    if _VERSION_1.match(text):
        hint = 'such as "scheduling-policy": "LIFO", and ["ring", "ring"] for ring_ring'
        raise mistake("is a system of ASTRA-sim 1", source=str(path), expected=_EXPECTED, hint=hint)
    tables = parse_json(text, source=str(path), expected=_EXPECTED)
    given = validated(_RawSystem, tables, source=str(path))
    unused = [key for key in _UNUSED if key in tables]
    if not given.roofline_enabled and "peak-perf" in tables:
        unused.append("peak-perf")
    return System(
        order="lifo" if given.scheduling_policy == "LIFO" else "fifo",
        nested=given.collective_optimization == "localBWAware",
        delay=given.endpoint_delay,
        memory=given.local_mem_bw or 0,
        splits=given.preferred_dataset_splits,
        active=given.active_chunks_per_dimension,
        peak=given.peak_perf if given.roofline_enabled else 0,
        source=str(path),
        implementations={
            collective: len(getattr(given, f"{collective}_implementation"))
            for collective in _COLLECTIVES
            if f"{collective}_implementation" in given.model_fields_set
        },
        unused=tuple(unused),
    )
