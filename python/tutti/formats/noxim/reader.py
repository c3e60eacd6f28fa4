"""Reads and validates configuration files of Noxim (YAML).

Source: Noxim `ConfigurationManager.cpp` (`loadConfiguration`, `checkConfiguration`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import Field

from tutti.base.errors import ConfigError
from tutti.base.files import limits
from tutti.base.files.mistakes import each_meant, mistake, shown
from tutti.base.files.reader import read_text, read_yaml
from tutti.base.files.tables import Table
from tutti.base.files.validate import validated

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_EXPECTED: Final = "a configuration file of Noxim (YAML)"

Traffic = Literal[
    "TRAFFIC_RANDOM", "TRAFFIC_TRANSPOSE1", "TRAFFIC_TRANSPOSE2", "TRAFFIC_BIT_REVERSAL",
    "TRAFFIC_SHUFFLE", "TRAFFIC_BUTTERFLY", "TRAFFIC_HOTSPOT", "TRAFFIC_TABLE_BASED",
    "TRAFFIC_HARDCODED", "TRAFFIC_LOCAL", "TRAFFIC_ULOCAL",
]  # fmt: skip


class NoximConfig(Table):
    """The keys of Noxim. Keys without a default must be in the file, as Noxim requires."""

    topology: Literal["MESH", "BUTTERFLY", "BASELINE", "OMEGA"] = "MESH"
    mesh_dim_x: int = Field(default=0, ge=0, le=1024)
    mesh_dim_y: int = Field(default=0, ge=0, le=1024)
    n_delta_tiles: int = Field(default=0, ge=0, le=1024)
    buffer_depth: int = Field(ge=1, le=1 << 15)
    flit_size: int = Field(ge=1, le=1 << 19)
    r2r_link_length: float = Field(default=1.0, ge=0, le=1e6)
    n_virtual_channels: int = Field(default=1, ge=1, le=8)
    routing_algorithm: str
    routing_table_filename: str = ""
    selection_strategy: str = "RANDOM"
    min_packet_size: int = Field(ge=2, le=1 << 15)
    max_packet_size: int = Field(ge=2, le=1 << 15)
    packet_injection_rate: float = Field(gt=0, le=1)
    probability_of_retransmission: float = Field(ge=0, le=1)
    traffic_distribution: Traffic
    clock_period_ps: int = Field(default=1000, ge=1, le=10**9)
    simulation_time: int = Field(ge=1, le=10**9)
    stats_warm_up_time: int = Field(ge=0, le=10**9)
    use_winoc: bool = False
    winoc_dst_hops: int = 0
    use_wirxsleep: bool = False
    max_volume_to_be_drained: int = Field(default=0, ge=0)
    # Without effect on what tutti computes; `NOT_HONOURED` lists them.
    reset_time: int = 0
    r2h_link_length: float = 0.0
    dyad_threshold: float = 0.0
    detailed: bool = False
    show_buffer_stats: bool = False
    trace_mode: bool = False
    trace_filename: str = ""
    traffic_table_filename: str = ""
    traffic_hardcoded_filename: str = ""
    verbose_mode: str = ""
    rnd_generator_seed: int = Field(default=1, ge=0, lt=1 << 63)
    Hubs: Any = None
    RadioChannels: Any = None
    Channels: Any = None


NOT_HONOURED: Final = (
    *("reset_time", "r2h_link_length", "dyad_threshold", "selection_strategy", "detailed"),
    *("show_buffer_stats", "trace_mode", "trace_filename", "traffic_table_filename"),
    *("traffic_hardcoded_filename", "routing_table_filename", "verbose_mode", "Hubs"),
    *("RadioChannels", "Channels"),
)
"""Keys of the output, of wireless channels that are off, and of routings that are not used."""


class Given:
    """A configuration, and where each key is stated.

    Attributes:
        config: The configuration.
        source: The file.
        keys: The keys that the file or the command line states.
    """

    def __init__(self, path: Path, changes: Sequence[str]) -> None:
        self.source = str(path)
        table = read_yaml(path, _EXPECTED)
        self._places = _lines(path)
        for change in changes:
            key, value = _changed(change)
            table[key] = value
            self._places[key] = f"argument {shown(change)}"
        self.keys = frozenset(map(str, table))
        self._refuse_unknown(table)
        try:
            self.config = validated(NoximConfig, table, source=self.source)
        except ConfigError as error:
            raise self._placed(error) from None

    def place(self, key: str) -> str:
        """Returns the file and line of a key, or the argument that assigns it."""
        return self._places.get(key, self.source)

    def _refuse_unknown(self, table: dict[str, Any]) -> None:
        if "Energy" in table:
            raise mistake(
                "has the energies of Noxim (power.yaml)",
                source=self.place("Energy"),
                expected=_EXPECTED,
                hint="[energy] of a network file selects technologies: `tutti energy list`",
            )
        unknown = [key for key in map(str, table) if key not in NoximConfig.model_fields]
        if unknown:
            lines = "".join(f"\n  {self.place(key)}: {key[:60]}" for key in unknown[:20])
            raise mistake(f"has keys that are not of Noxim:{lines}", source=self.source,
                          expected="keys of a configuration of Noxim",
                          hint=each_meant(unknown[:20], NoximConfig.model_fields))  # fmt: skip

    def _placed(self, error: ConfigError) -> ConfigError:
        """Returns an error of the schema with its line."""
        fields = {key: str(error.fields.get(key, "")) for key in ("problem", "value", "expected")}
        key = str(error.fields.get("key", ""))
        place = self.place(key.partition(".")[0])
        return mistake(source=place, key=key, hint=error.hint, **fields)


def _changed(change: str) -> tuple[str, Any]:
    """Returns key and value of an argument; the value is read as YAML."""
    from yaml import YAMLError

    from tutti.base.files.repeated import load_yaml

    place = f"argument {shown(change)}"
    key, equals, text = change.partition("=")
    if not equals or not key:
        raise mistake("is not KEY=VALUE", source=place, expected="such as mesh_dim_x=8")
    try:
        return key.strip(), load_yaml(text, place)
    except (YAMLError, RecursionError, ValueError):
        raise mistake("the value cannot be read", source=place, expected="KEY=VALUE") from None


def _lines(path: Path) -> dict[str, str]:
    """Returns file and line of each key of the first level."""
    text = read_text(path, limits.Bytes.NETWORK, _EXPECTED)
    places: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if found := re.match(r"""["']?([A-Za-z_]\w*)["']?\s*:""", line):
            places.setdefault(found[1], f"{path}:{number}")
    return places
