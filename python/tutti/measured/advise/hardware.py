"""Which hardware a calibration starts from: that of a named platform, or of known systems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tutti.base.files.mistakes import mistake
from tutti.measured.advise.scope import CANDIDATE
from tutti.measured.predict.features import features
from tutti.measured.predict.files import hardware_of, platform_of_option, platform_of_system
from tutti.measured.predict.hardware import Hardware, least_us
from tutti.platforms.nodes import ranks_per_node
from tutti.view.quantity import format_rate, format_size, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

    from tutti.measured.advise.scope import Scope
    from tutti.measured.predict.hardware import Gamma
    from tutti.platforms.files.platform_file import RawPlatform

_UNNAMED: Final = "machine"
"""The name of a system that no file names, in :mod:`tutti.measured.predict.features`."""
_OPTION: Final = "--platform"
_TOLERANCE: Final = 0.9
"""Share of the least time below which a measurement is of another machine, and no noise."""


@dataclass(frozen=True)
class KnownHardware:
    """The hardware that a calibration starts from.

    Attributes:
        of_systems: by the name of a system in the model, its hardware; nothing of unknown systems.
        platform: name of the platform of the system to decide for; None if none is known.
        description: that hardware in words, and where it comes from.
        remarks: platforms that the measurements contradict, for the user.
    """

    of_systems: Mapping[str, Hardware]
    platform: str | None
    description: str
    remarks: tuple[str, ...] = ()


def stated_ranks_per_node(name: str | None) -> int | None:
    """Returns the ranks per node of the platform that the user named; None if it states none.

    Raises:
        ConfigError: The name is unknown, or the platform file is invalid.
    """
    platform = platform_of_option(name, _OPTION)
    return ranks_per_node(platform) if platform is not None else None


def stated_system(name: str | None, systems: Sequence[str]) -> str | None:
    """Returns the only system of measurements that the platform named by the user states.

    Args:
        name: name or path of the platform.
        systems: the systems of the measurements.

    Raises:
        ConfigError: The name is unknown, or the platform file is invalid.
    """
    platform = platform_of_option(name, _OPTION)
    stated = platform.node.systems if platform is not None and platform.node is not None else []
    found = [one for one in systems if one.lower() in stated]
    return found[0] if len(found) == 1 else None


def known_hardware(rows: pl.DataFrame, scope: Scope, name: str | None) -> KnownHardware:
    """Returns the hardware of the measured systems.

    The platform that the user named is that of the system to decide for. Others are the bundled
    platforms that state the name of the system.

    Args:
        rows: the measurements of the calibration.
        scope: the machine to decide for.
        name: name or path of its platform; None to search by the name of the system.

    Raises:
        ConfigError: The platform is unknown, or measurements are faster than its interfaces.
    """
    found, remarks = dict[str, Hardware](), list[str]()
    chosen: tuple[RawPlatform, str] | None = None
    for system in rows["system"].unique().sort():
        mine = system == scope.system
        given = platform_of_option(name, _OPTION) if mine else None
        platform = given or platform_of_system(system)
        if platform is None:
            continue
        hardware = hardware_of(platform, source=_OPTION)
        faster = _faster(rows.filter(system=system), hardware)
        if faster and given is not None:
            raise _contradicted(platform.name, faster)
        if faster:
            remarks.append(f"platform {platform.name} of {system} is not used: {faster}")
            continue
        found[system or _UNNAMED] = hardware
        if mine:
            chosen = platform, _OPTION if given else "the system's name"
            remarks += _other_name(system, platform)
    if chosen is None:
        text = (
            f"no platform of {scope.system or 'the system'} known; assumed: {_values(Hardware())}"
        )
        return KnownHardware(found, None, f"{text}; {_OPTION} names one", tuple(remarks))
    platform, origin = chosen
    values = _values(found[scope.system or _UNNAMED], _stacks(scope))
    text = f"platform {platform.name} ({origin}): {values}"
    return KnownHardware(found, platform.name, text, tuple(remarks))


def _other_name(system: str, platform: RawPlatform) -> Iterator[str]:
    """Yields a warning if a named platform is that of other systems."""
    other = platform_of_system(system)
    stated = platform.node.systems if platform.node is not None else []
    if other is not None and other.name != platform.name:
        yield (
            f"warning: the measurements are of {system}, which is platform {other.name}, not "
            f"{platform.name}"
        )
    elif system and stated and system.lower() not in stated:
        yield (
            f"warning: the measurements are of {system}; platform {platform.name} is of "
            f"{' or '.join(stated)}"
        )


def _faster(rows: pl.DataFrame, hardware: Hardware) -> str:
    """Returns which measurements take less time than the interfaces need; empty if none does."""
    nodes = rows["nodes"].fill_null(rows["ranks"]).to_numpy().astype(float)
    sizes = rows["size_bytes"].to_numpy().astype(float)
    rates = np.full(len(rows), hardware.node_bytes_per_us)
    least = least_us(rows["collective"].to_numpy(), nodes, sizes, rates)
    times = rows["time_us"].to_numpy()
    faster = np.flatnonzero(times < _TOLERANCE * least)
    if not len(faster):
        return ""
    first = int(faster[np.argmin(times[faster] / least[faster])])
    row = rows.row(first, named=True)
    return (
        f"{plural(len(faster), 'measurement')} faster than its interfaces, such as "
        f"{row['collective']} of {format_size(row['size_bytes'])} on {nodes[first]:,.0f} nodes in "
        f"{times[first]:.3g} us, which takes {least[first]:.3g} us or more at "
        f"{format_rate(hardware.node_bytes_per_us * 1e6)} per node"
    )


def _contradicted(name: str, faster: str) -> Exception:
    return mistake(
        f"the measurements are not of platform {name}: {faster}",
        source=_OPTION,
        expected="the platform that was measured",
        hint=f"without {_OPTION}, common hardware is assumed; if ranks shared nodes, "
        "--ranks-per-node states how many",
    )


def _stacks(scope: Scope) -> list[str]:
    """Returns library, interface, ranks per node and memory of the measurements to decide for."""
    rows = scope.rows.filter(role=CANDIDATE)
    placed = rows.filter(ranks_per_node=scope.ranks_per_node)
    kinds = (placed if len(placed) else rows).unique(("library", "library_algorithm"))
    return sorted({str(one) for one in features(kinds).labels["stack"]})


def _values(hardware: Hardware, stacks: Sequence[str] = ()) -> str:
    """Returns hardware in words, with the gamma of environments."""
    rate = format_rate(hardware.bytes_per_us * 1e6)
    parts = [
        f"latency {hardware.latency_us:.3g} us",
        f"{plural(hardware.interfaces, 'interface')} of {rate} per node",
        f"gap {hardware.gap_us:.3g} us",
        f"memory {format_rate(hardware.memory_bytes_per_us * 1e6)}",
    ]
    gammas = {one: hardware.gamma(one) for one in stacks}
    known = {one: _gamma_text(gamma) for one, gamma in gammas.items() if gamma is not None}
    if len({*known.values()}) > 1:
        known = {one: f"{text} of {one}" for one, text in known.items()}
    return "; ".join([*parts, *dict.fromkeys(known.values())])


def _gamma_text(gamma: Gamma) -> str:
    text = f"gamma {gamma.cached * 1e3:.3g} ns/B"
    if gamma.cache_bytes is None:
        return text
    return f"{text}, {gamma.beyond * 1e3:.3g} above {format_size(gamma.cache_bytes)}"
