"""The table `node` of platform files: what the nodes of a machine offer to an MPI library."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import Field, model_validator

from tutti.base.files.custom_errors import refused
from tutti.base.files.sourced import (
    CountParameter,
    PerByteParameter,
    Sourced,
    TimeParameter,
    written,
)
from tutti.base.files.tables import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

NUMBERS: Final = ("latency", "rate", "interfaces", "gap", "memory_rate")
"""The keys with a number."""
_Name = Annotated[str, Field(min_length=1, max_length=256)]
_ENVIRONMENT: Final = re.compile(r"[^/]+/[^/]+/(one|several|many)/(host|gpu)")


class NodeTable(Table):
    """A node and its network interfaces: what is known of a machine before any measurement.

    `tutti advise` and the scoreboard of measured machines start their fits here. No prediction
    moves more bytes than the interfaces carry.
    """

    systems: list[_Name] = Field(
        default_factory=list,
        description="Names of the machine in files of measurements, in lower case.",
    )
    latency: TimeParameter = Field(
        description="Time of a small message between two nodes through the MPI library."
    )
    rate: PerByteParameter = Field(
        description="Bandwidth that one process reaches in one direction."
    )
    interfaces: CountParameter = Field(
        default=1, description="How many times that bandwidth the interfaces of a node have."
    )
    gap: TimeParameter | None = Field(
        default=None,
        description="Least time between small messages that a process sends and receives; if "
        "absent, 0.3 us.",
    )
    memory_rate: PerByteParameter | None = Field(
        default=None, description="Peak bandwidth of a node's memory; if absent, 200 GB/s."
    )
    environments: dict[_Name, _Name] = Field(
        default_factory=dict,
        description="The model of each environment, whose gamma is then known: library, "
        "interface, ranks per node (one, several or many) and memory, such as "
        "`open_mpi/mpi/one/host`.",
    )

    @model_validator(mode="after")
    def _is_positive(self) -> NodeTable:
        times = {key: written(getattr(self, key)) for key in ("latency", "gap")}
        nothing = [key for key, time in times.items() if time is not None and time.ps == 0]
        nothing += ["interfaces"] if written(self.interfaces) == 0 else []
        if nothing:
            raise refused("has `{key}` of 0: expected more", key=nothing[0])
        return self

    @model_validator(mode="after")
    def _environments_are_known(self) -> NodeTable:
        for name in self.environments:
            if _ENVIRONMENT.fullmatch(name) is None:
                raise refused(
                    "has the environment `{name}`: expected library, interface, ranks per node "
                    "and memory, such as `open_mpi/mpi/one/host`",
                    name=name,
                )
        return self

    def numbers(self) -> Iterator[tuple[str, Any, str, bool]]:
        """Yields key, value, source (empty if not given), and whether the value is inferred."""
        for key in NUMBERS:
            value = getattr(self, key)
            if key in self.model_fields_set:
                is_sourced = isinstance(value, Sourced)
                origin = (value.source, value.inferred) if is_sourced else ("", False)
                yield key, written(value), *origin
