"""The platforms that tutti brings along, and the search for a platform by name or path."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from tutti.config.mistakes import did_you_mean, mistake
from tutti.config.platform import RawPlatform
from tutti.config.reader import parse_toml, read_toml
from tutti.config.validate import validated

if TYPE_CHECKING:
    from pathlib import Path


def platform_names() -> list[str]:
    """The names of the platforms that tutti brings along, in alphabetical order."""
    folder = files("tutti") / "platforms"
    return sorted(
        p.name.removesuffix(".toml") for p in folder.iterdir() if p.name.endswith(".toml")
    )


def platform_text(name: str) -> str:
    """The file of one of the platforms that tutti brings along."""
    return (files("tutti") / "platforms" / f"{name}.toml").read_text(encoding="utf-8")


def load_platform(path: Path) -> RawPlatform:
    """Reads a platform file.

    Raises:
        ConfigError: The file cannot be used.
    """
    return anchored(validated(RawPlatform, read_toml(path), source=str(path)), path.parent)


def anchored(platform: RawPlatform, folder: Path) -> RawPlatform:
    """The same platform with its topology's file as it can be opened: paths start from `folder`."""
    topology = platform.topology
    if topology is None or topology.file is None:
        return platform
    found = topology.model_copy(update={"file": str(folder / topology.file)})
    return platform.model_copy(update={"topology": found})


def find_platform(name: str, *, folder: Path, source: str = "platform") -> RawPlatform:
    """The platform of that name, or in that file; a path starts from `folder` and ends in `.toml`.

    Raises:
        ConfigError: There is none, or its file cannot be used.
    """
    if name.endswith(".toml") or "/" in name:
        return load_platform(folder / name)
    known = platform_names()
    if name in known:
        return validated(
            RawPlatform, parse_toml(platform_text(name), source=name), source=f"{name}.toml"
        )
    raise mistake(
        f"there is no platform `{name}`",
        source=source,
        key="platform" if source != "platform" else "",
        expected=f"one of {', '.join(known)}, or a path that ends in .toml",
        hint=did_you_mean(name, known),
    )
