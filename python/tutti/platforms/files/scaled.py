"""Platforms with another number of GPUs: rail-optimised clusters with other hosts and pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.base.files.mistakes import mistake
from tutti.platforms.files.builder import machine
from tutti.platforms.files.platform_file import SWITCHES
from tutti.platforms.files.presets import chosen_model

if TYPE_CHECKING:
    from tutti.platforms.files.platform_file import RawPlatform, TopologyTable
    from tutti.platforms.machine import Platform

_FAMILY = "rail_optimized"


def scaled(platform: RawPlatform, gpus: int, *, source: str) -> Platform:
    """Returns a platform with `gpus` NPUs.

    A rail-optimised cluster gets fewer hosts, or more pods of the same number of hosts if it has
    spine switches; these get as many ports as that needs. A cluster of NVL72 racks may use part of
    each rack.

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
            hint="only rail-optimised clusters have other sizes, such as dgx_h100_cluster",
        )
    return found


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


def _arguments(platform: RawPlatform) -> dict[str, str]:
    """Returns the arguments of a rail-optimised cluster; of another platform, nothing."""
    topology = platform.topology
    build = "" if topology is None or topology.build is None else str(topology.build)
    family, _, argument = build.partition(":")
    return dict(part.split("=") for part in argument.split(",")) if family == _FAMILY else {}


def _machine(platform: RawPlatform, source: str) -> Platform:
    return machine(platform, chosen_model(platform, None, source=source), source=source)


def _rails(given: dict[str, str], gpus: int, name: str) -> str:
    """Returns the notation of a rail-optimised cluster with `gpus` GPUs."""
    npus, most = int(given["npus"]), int(given["hosts"])
    npus = _used(npus, gpus)
    hosts = gpus // npus
    if gpus % npus or (hosts > most and hosts % most):
        raise mistake(
            f"does not fit {name}, with {npus} GPUs per host and {most} hosts per pod",
            source="--gpus",
            value=f"{gpus:,}",
            expected=f"a multiple of {npus} up to {npus * most:,}, or of {npus * most:,}",
        )
    if hosts <= most:
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
    return f"{_FAMILY}:npus={npus},hosts={most},pods={hosts // most},{text}"


def _used(npus: int, gpus: int) -> int:
    """Returns the GPUs of a host or rack that a job uses, of `npus`.

    A rack of trays may be used in part, equally in all racks: 64 GPUs of each GB200 NVL72. The job
    takes as few racks as divide it, and more than half of each; hosts are used completely.
    """
    if npus <= _HOST or gpus % npus == 0:
        return npus
    least, most = -(-gpus // npus), max(1, 2 * gpus // npus)
    racks = (count for count in range(least, most + 1) if gpus % (_TRAY * count) == 0)
    return next((gpus // count for count in racks), npus)


_HOST = 8
"""The most GPUs of a host."""
_TRAY = 4
"""GPUs of a compute tray of GB200 and GB300 NVL72."""
