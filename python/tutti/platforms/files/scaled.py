"""Platforms with another number of GPUs: rail-optimised clusters with other hosts and pods."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tutti.base.files.mistakes import mistake
from tutti.platforms.files.builder import machine
from tutti.platforms.files.platform_file import SWITCHES
from tutti.platforms.files.presets import chosen_model, platform_names

if TYPE_CHECKING:
    from tutti.base.errors import ConfigError
    from tutti.platforms.files.platform_file import RawPlatform, TopologyTable
    from tutti.platforms.machine import Platform

_FAMILY = "rail_optimized"
_SWITCHED = re.compile(r"(?P<start>hierarchical:\w+:(?P<npus>\d+)/rail:switch:)(?P<hosts>\d+)")
"""Hosts with a switch per GPU index, without spines."""


def scaled(platform: RawPlatform, gpus: int, *, source: str) -> Platform:
    """Returns a platform with `gpus` NPUs.

    A cluster with a switch per GPU index gets fewer hosts. A rail-optimised one gets fewer, or more
    pods of equally many hosts if it has spine switches; these get as many ports as that needs. A
    cluster of NVL72 racks may use part of each rack.

    Raises:
        ConfigError: The platform has another number of NPUs, and cannot be scaled.
    """
    topology, build = platform.topology, scaled_notation(platform, gpus)
    if build and topology is not None:
        changed = topology.model_copy(update={"build": build, **_switches(topology, build)})
        platform = platform.model_copy(update={"topology": changed})
    found = _machine(platform, source)
    ranks = found.routes.topology.ranks if found.routes else 0
    if ranks != gpus:
        expected = f"{ranks:,}" if ranks else "a platform with a topology"
        raise mistake(
            f"platform {platform.name} has another number of NPUs",
            source="--gpus",
            value=f"{gpus:,}",
            expected=expected,
            hint=f"only rail-optimised clusters have other sizes, such as {_cluster(platform)}",
        )
    return found


def _cluster(platform: RawPlatform) -> str:
    """Returns the cluster of the platform's nodes, or a common one."""
    name = f"{platform.name}_cluster"
    return name if name in platform_names() else "dgx_h100_cluster"


def _switches(topology: TopologyTable, build: str) -> dict[str, object]:
    """Returns the switches that multicast and reduce, without spines if the cluster has none."""
    found: dict[str, object] = {}
    for key in SWITCHES:
        switches = getattr(topology, key)
        names = getattr(switches, "value", None)
        if isinstance(names, list) and "spines" not in build:
            kept = [name for name in names if not name.startswith("spine")]
            found[key] = switches.model_copy(update={"value": kept})
    return found


def scaled_notation(platform: RawPlatform, gpus: int) -> str:
    """Returns the topology of a rail-optimised cluster with `gpus` NPUs; "" for other platforms.

    Raises:
        ConfigError: The hosts are not full, or the pods are not equal.
    """
    if switched := _SWITCHED.fullmatch(_build(platform)):
        hosts, left = divmod(gpus, int(switched["npus"]))
        fits = not left and 1 < hosts <= int(switched["hosts"])
        return f"{switched['start']}{hosts}" if fits else ""
    rails = _arguments(platform)
    return _rails(rails, gpus, platform.name) if rails else ""


def enough_gpus(platform: RawPlatform, least: int, *, source: str) -> int:
    """Returns a number of GPUs for a default.

    It is that of the platform. For a rail-optimised cluster it is at least `least`: a power of two
    of hosts in a pod, or of pods.
    """
    rails = _arguments(platform)
    if not rails:
        routes = _machine(platform, source).routes
        return routes.topology.ranks if routes else least
    host, pod = int(rails["npus"]), int(rails["npus"]) * int(rails["hosts"])
    count = host if 2 * least <= pod else pod  # doubled hosts then stay within a pod
    while count < least:
        count *= 2
    return count


def _build(platform: RawPlatform) -> str:
    topology = platform.topology
    return "" if topology is None or topology.build is None else str(topology.build)


def _arguments(platform: RawPlatform) -> dict[str, str]:
    """Returns the arguments of a rail-optimised cluster; of another platform, nothing."""
    family, _, argument = _build(platform).partition(":")
    return dict(part.split("=") for part in argument.split(",")) if family == _FAMILY else {}


def _machine(platform: RawPlatform, source: str) -> Platform:
    return machine(platform, chosen_model(platform, None, source=source), source=source)


def _rails(given: dict[str, str], gpus: int, name: str) -> str:
    """Returns the notation of a rail-optimised cluster with `gpus` GPUs."""
    npus, most = int(given["npus"]), int(given["hosts"])
    npus = _used(npus, gpus)
    hosts, pods = gpus // npus, _fewest(gpus // npus, most)
    if gpus % npus or not pods:
        raise _misfit(given, gpus, name)
    if pods == 1:
        return f"{_FAMILY}:npus={npus},hosts={hosts}"
    if "spines" not in given:
        raise mistake(
            f"exceeds {name}, which has no spine switches and therefore one pod",
            source="--gpus",
            value=f"{gpus:,}",
            expected=f"at most {npus * most:,}",
            hint="dgx_h100_cluster and other clusters with spines have several pods",
        )
    kept = {key: value for key, value in given.items() if key in {"spines", "uplinks"}}
    text = ",".join(f"{key}={value}" for key, value in kept.items())
    return f"{_FAMILY}:npus={npus},hosts={hosts // pods},pods={pods},{text}"


def _misfit(given: dict[str, str], gpus: int, name: str) -> ConfigError:
    """Returns the error of a number of GPUs that a cluster cannot have, with the nearest ones."""
    npus, most = int(given["npus"]), int(given["hosts"])
    near = (gpus - more for more in range(1, gpus) if _fits(given, gpus - more))
    far = (gpus + more for more in range(1, npus * most + 1) if _fits(given, gpus + more))
    sizes = [size for size in (next(near, 0), next(far, 0)) if size]
    if npus > _HOST:
        unit, rule = "rack", f"a multiple of {_TRAY} GPUs in each rack, equally many in all"
        used = {size: _used(npus, size) for size in sizes}
        texts = [f"{size:,} ({size // used[size]} x {used[size]})" for size in sizes]
    else:
        unit, rule = "host", "full hosts, equally many in each pod"
        texts = [f"{size:,}" for size in sizes]
    return mistake(
        f"does not fit {name}, with {npus} GPUs per {unit} and {most} {unit}s per pod",
        source="--gpus",
        value=f"{gpus:,}",
        expected=f"{rule}, such as {' or '.join(texts)}",
    )


def _fewest(total: int, most: int, unit: int = 1) -> int:
    """Returns the fewest equal parts of at most `most`, more than half full; 0 if none.

    Each part has a multiple of `unit`.
    """
    least, many = -(-total // most), max(1, 2 * total // most)
    counts = range(least, many + 1) if total else ()
    return next((count for count in counts if total % (unit * count) == 0), 0)


def _fits(given: dict[str, str], gpus: int) -> bool:
    """Returns whether a cluster can have a number of GPUs."""
    npus = _used(int(given["npus"]), gpus)
    return gpus % npus == 0 and _fewest(gpus // npus, int(given["hosts"])) > 0


def _used(npus: int, gpus: int) -> int:
    """Returns the GPUs of a host or rack that a job uses, of `npus`.

    A rack of trays may be used in part, equally in all racks: 64 GPUs of each GB200 NVL72. The job
    takes as few racks as divide it, and more than half of each; hosts are used completely.
    """
    if npus <= _HOST or gpus % npus == 0:
        return npus
    racks = _fewest(gpus, npus, _TRAY)
    return gpus // racks if racks else npus


_HOST = 8
"""The most GPUs of a host."""
_TRAY = 4
"""GPUs of a compute tray of GB200 and GB300 NVL72."""
