"""Options of gem5's command line that describe Garnet and its synthetic traffic.

Names and defaults are those of `configs/network/Network.py`, `configs/ruby/Ruby.py`,
`configs/common/Options.py` and `configs/example/garnet_synth_traffic.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic import Field

from tutti.base.errors import ConfigError, UnitError
from tutti.base.files.mistakes import did_you_mean, each_meant, mistake, shown
from tutti.base.files.tables import Table
from tutti.base.files.validate import validated
from tutti.base.units import Time
from tutti.formats.garnet.values import Options

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet


class Settings(Table):
    """Options, with the defaults of gem5; those that differ are `num_cpus` and `num_dirs`."""

    topology: str | None = None
    num_cpus: int = Field(default=0, ge=0, le=4096)
    num_l2caches: int = Field(default=0, ge=0, le=4096)
    num_dirs: int = Field(default=0, ge=0, le=4096)
    num_dmas: int = Field(default=0, ge=0, le=4096)
    mesh_rows: int = Field(default=0, ge=0, le=4096)
    router_latency: int = Field(default=1, ge=1, le=1 << 16)
    link_latency: int = Field(default=1, ge=1, le=1 << 16)
    link_width_bits: int = Field(default=128, ge=8, le=1 << 19, multiple_of=8)
    vcs_per_vnet: int = Field(default=4, ge=1, le=64)
    buffers_per_data_vc: int = Field(default=4, ge=1, le=1 << 15)
    buffers_per_ctrl_vc: int = Field(default=1, ge=1, le=1 << 15)
    routing_algorithm: int = Field(default=0, ge=0, le=2)
    cacheline_size: int = Field(default=64, ge=1, le=1 << 16)
    sys_clock: str = "1GHz"
    ruby_clock: str = "2GHz"
    synthetic: str = "uniform_random"
    injectionrate: float = Field(default=0.1, ge=0, le=1)
    inj_vnet: int = Field(default=-1, ge=-1, le=2)
    single_sender_id: int = Field(default=-1, ge=-1)
    single_dest_id: int = Field(default=-1, ge=-1)
    num_packets_max: int = Field(default=-1, ge=-1)
    network_fault_model: bool = False
    # Without a counterpart; they do not change the steady state of the network.
    network: str = "garnet"
    sim_cycles: int = Field(default=1000, ge=1)
    precision: int = Field(default=3, ge=0)
    garnet_deadlock_threshold: int = Field(default=50000, ge=1)


NOT_HONOURED: Final = frozenset({"sim_cycles", "precision", "garnet_deadlock_threshold"})
"""Options of the output and of gem5's stopping rule."""
_OF_SCRIPTS: Final = frozenset({"topology", "mesh_rows", "router_latency", "link_latency"})
"""Options that have an effect only if a script reads them."""


class Stated(NamedTuple):
    """An option that the configuration of a run states.

    Attributes:
        option: The option, such as `injectionrate`.
        text: Its value.
        key: The key in the file, such as `inj_rate`.
        place: The file and the line of its object.
    """

    option: str
    text: str
    key: str
    place: str


class Given:
    """The options of a conversion, and where each one is stated.

    Attributes:
        settings: The options.
        extra: Further integers that a script may read, such as `num_chiplets`.
        places: The place of each given option.
        changed: The options of the command line, which replace those of a run.
    """

    def __init__(
        self, changes: Sequence[str], *, source: str, stated: Sequence[Stated] = ()
    ) -> None:
        values: dict[str, Any] = {each.option: _value(each.text) for each in stated}
        self.extra: dict[str, Any] = {}
        self.places = {each.option: each.place for each in stated}
        self._keys = {each.option: each.key for each in stated}
        self.changed: set[str] = set()
        self._unread: set[str] = set()
        for change in changes:
            place = f"argument {shown(change)}"
            name, equals, text = change.partition("=")
            key = name.strip().lstrip("-").replace("-", "_")
            if not equals or not key.isidentifier():
                raise mistake("is not KEY=VALUE", source=place, expected="such as num_cpus=16")
            self.places[key] = place
            self._keys.pop(key, None)
            self.changed.add(key)
            (values if key in Settings.model_fields else self.extra)[key] = _value(text.strip())
        try:
            self.settings = validated(Settings, values, source=source)
        except ConfigError as error:
            key = str(error.fields.get("key", ""))
            raise mistake(str(error.fields.get("problem", "is invalid")),
                          source=self.places.get(key, source), key=self._keys.get(key, key),
                          value=str(error.fields.get("value", "")),
                          expected=str(error.fields.get("expected", ""))) from None  # fmt: skip

    @property
    def not_honoured(self) -> tuple[str, ...]:
        """The given options without effect."""
        return tuple(sorted((NOT_HONOURED & self.changed) | self._unread))

    def options(self) -> Options:
        """Returns `options` of a script: the given ones, and gem5's defaults.

        Numbers of controllers and rows have no default, as a topology depends on them.
        """
        needed = {"num_cpus", "num_l2caches", "num_dirs", "num_dmas", "mesh_rows", "topology"}
        values = {key: value for key, value in self.settings.model_dump().items()
                  if key in self.places or key not in needed}  # fmt: skip
        return Options({**values, **self.extra})

    def refused(self, key: str, expected: str, *, problem: str = "", hint: str = "") -> ConfigError:
        """Returns the error of an option with an unsupported value."""
        return mistake(
            problem or "is not supported",
            source=self.places.get(key, "the network"),
            key=self._keys.get(key, key),
            value=shown(getattr(self.settings, key)),
            expected=expected,
            hint=hint,
        )

    def refuse_unread(self, read: AbstractSet[str] = frozenset()) -> None:
        """Rejects options that are unknown and that no script reads; notes others of scripts."""
        self._unread = {*_OF_SCRIPTS} & self.changed - read
        keys = [key for key in self.extra if key not in read]
        expected = ", ".join(Settings.model_fields)
        if len(keys) == 1:
            raise mistake("is not an option that is read", source=self.places[keys[0]], key=keys[0],
                          expected=expected,
                          hint=did_you_mean(keys[0], Settings.model_fields))  # fmt: skip
        if keys:
            names = ", ".join(f"`{key[:60]}`" for key in keys[:20])
            raise mistake(f"{len(keys)} options are not read: {names}", source="arguments",
                          expected=expected,
                          hint=each_meant(keys[:20], Settings.model_fields))  # fmt: skip


def _value(text: str) -> Any:  # noqa: ANN401 - a number, a flag or a text
    for convert in (int, float):
        try:
            return convert(text) if len(text) <= 32 else text
        except ValueError:
            continue
    return {"True": True, "true": True, "False": False, "false": False}.get(text, text)


def period_ps(text: str) -> int | None:
    """Returns the period of a clock such as `2GHz` or `500ps`; None if it is neither."""
    for unit, scale in (("GHz", 10**9), ("MHz", 10**6), ("kHz", 10**3), ("Hz", 1)):
        if text.endswith(unit):
            try:
                hertz = float(text.removesuffix(unit)) * scale
            except ValueError:
                return None
            return round(10**12 / hertz) if 1 <= hertz <= 10**12 else None
    try:
        return Time.parse(text).ps or None
    except UnitError:
        return None
