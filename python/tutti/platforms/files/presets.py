"""Bundled platforms, and the lookup of platforms by name, path or notation."""

from __future__ import annotations

import functools
import re
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tutti.base.files.kinds import validated_file
from tutti.base.files.mistakes import did_you_mean, known_name, mistake
from tutti.base.files.reader import parse_toml, read_toml
from tutti.platforms.files.builder import npus
from tutti.platforms.files.notation import notation_tables
from tutti.platforms.files.platform_file import RawPlatform
from tutti.topologies import families
from tutti.topologies.notation import EXAMPLE, is_notation

if TYPE_CHECKING:
    from tutti.topologies import Routes

_LIKE = re.compile(r'^like = "(\w+)"\n', re.MULTILINE)


def platform_names() -> list[str]:
    """Returns the names of the bundled platforms, in alphabetical order."""
    return list(_names())


@functools.cache
def _names() -> tuple[str, ...]:
    folder = files("tutti") / "platforms" / "presets"
    return tuple(
        sorted(p.name.removesuffix(".toml") for p in folder.iterdir() if p.name.endswith(".toml"))
    )


def platform_text(name: str) -> str:
    """Returns the file of a bundled platform.

    A platform that is like another one states only its name, summary and source.
    """
    text = (files("tutti") / "platforms" / "presets" / f"{name}.toml").read_text(encoding="utf-8")
    like = _LIKE.search(text)
    if like is None:
        return text
    _, start, rest = platform_text(like[1]).partition("default_model")
    return f"{_LIKE.sub('', text)}{start}{rest}"


def load_platform(path: Path) -> RawPlatform:
    """Reads a platform file.

    Raises:
        ConfigError: The file is invalid.
    """
    return anchored(validated_file(RawPlatform, read_toml(path), source=str(path)), path.parent)


def anchored(platform: RawPlatform, folder: Path) -> RawPlatform:
    """Returns the platform with the path of its topology file relative to `folder` resolved."""
    topology = platform.topology
    if topology is None or topology.file is None:
        return platform
    found = topology.model_copy(update={"file": str(folder / topology.file)})
    return platform.model_copy(update={"topology": found})


def platform_of(written: str | RawPlatform, *, folder: Path, source: str) -> RawPlatform:
    """Returns the platform of an experiment, given by name, path, notation or table.

    Args:
        written: The name, the path, the notation or the table.
        folder: The base of relative paths.
        source: The file that names the platform, for messages.

    Raises:
        ConfigError: The name is unknown, or the platform file is invalid.
    """
    if isinstance(written, str):
        return find_platform(written, folder=folder, source=source)
    return anchored(written, folder)


def find_platform(name: str, *, folder: Path, source: str = "platform") -> RawPlatform:
    """Returns a platform by name, path or notation.

    Args:
        name: The name, a path that ends in `.toml`, or a notation such as ``torus:4x4x4``.
        folder: The base of relative paths.
        source: The file or option, for messages.

    Raises:
        ConfigError: The name or the notation is unknown, or the platform file is invalid.
    """
    if is_notation(name):
        return _described(name)
    if _is_path(name):
        return load_platform(folder / name)
    _check_name(name, source)
    return _known(name)


def default_ranks(platform: object, counts: list[int], *, source: str) -> list[int]:
    """Returns the default rank counts on a platform: those of `counts` that fit.

    On a topology, the number of its NPUs replaces the largest.

    Args:
        platform: The platform.
        counts: Rank counts, ascending.
        source: The name of the options in errors.

    Raises:
        ConfigError: The platform is unknown.
    """
    if not isinstance(platform, str):
        return counts
    most = npus(find_platform(platform, folder=Path(), source=source), source=source)
    if most is None:
        return counts
    if is_notation(platform):
        return [*(n for n in counts[:-1] if n < most), most]
    return [n for n in counts if n <= most] or [most]


def platform_tables(name: str, *, folder: Path, source: str = "platform") -> dict[str, Any]:
    """Returns the tables of a platform by name, path or notation, so that a sweep can change them.

    The path of the topology file is resolved. The tables are shared: change a copy.

    Raises:
        ConfigError: The name or the notation is unknown, or the file cannot be read.
    """
    if is_notation(name):
        return notation_tables(name)
    if not _is_path(name):
        _check_name(name, source)
        return _known_tables(name)
    path = folder / name
    tables = read_toml(path)
    topology = tables.get("topology")
    if isinstance(topology, dict) and isinstance(topology.get("file"), str):
        topology["file"] = str(path.parent / topology["file"])
    return tables


def _is_path(name: str) -> bool:
    return name.endswith(".toml") or "/" in name


@functools.lru_cache(maxsize=64)
def _described(notation: str) -> RawPlatform:
    """Returns the platform of a notation."""
    return validated_file(RawPlatform, notation_tables(notation), source=notation)


@functools.cache
def _known(name: str) -> RawPlatform:
    """Returns a bundled platform, which is read once."""
    return validated_file(RawPlatform, _known_tables(name), source=f"{name}.toml")


@functools.cache
def _known_tables(name: str) -> dict[str, Any]:
    return parse_toml(platform_text(name), source=name)


def _check_name(name: str, source: str) -> None:
    known = platform_names()
    if name in known:
        return
    raise mistake(
        f"unknown platform `{name}`",
        source=source,
        key="platform" if source != "platform" else "",
        expected=f"one of {', '.join(known)}, a path that ends in .toml, or a topology such as "
        f"{EXAMPLE}",
        hint=did_you_mean(name, known) or _family(name),
    )


def _family(name: str) -> str:
    """Returns the syntax of the family of topologies with this name, or ""."""
    found = next((one for one in families() if one.name == name), None)
    return f"a topology is {name}:{found.argument}, such as {found.example}" if found else ""


def chosen_model(platform: RawPlatform, requested: str | None, *, source: str) -> str:
    """Returns the name of the requested model, or of the platform's default model.

    Raises:
        ConfigError: The platform has no model of that name.
    """
    names = list(platform.models)
    name = requested or platform.default_model or names[0]
    what = f"model of platform {platform.name}:"
    return known_name(name, names, key="model", what=what, source=source)


def check_fits(platform: RawPlatform, ranks: int, routes: Routes, *, source: str, key: str) -> None:
    """Rejects more ranks than the topology of a platform has NPUs.

    Raises:
        ConfigError: There are.
    """
    topology = routes.topology
    if ranks > topology.ranks:
        raise mistake(
            f"{ranks} ranks exceed the platform's topology",
            source=source,
            key=key,
            expected=f"at most {topology.ranks}, the NPUs of {topology.name}",
            hint=_larger_platform(platform, ranks),
        )


def _larger_platform(platform: RawPlatform, ranks: int) -> str:
    """Returns the hint for too many ranks: a bundled platform of the same machine, if one fits."""
    for name in platform_names():
        if name.startswith(f"{platform.name}_"):
            found = npus(find_platform(name, folder=Path()), source=name)
            if found is None or found >= ranks:
                size = f"has {found:,} NPUs" if found else "has any number of ranks"
                return f"--platform {name} {size}"
    return (
        "use fewer ranks, a larger topology (`build` in the platform's `[topology]`, or "
        "--platform torus:8x8x8), or another platform (`tutti platforms`)"
    )
