"""Tables that are bundled with the program."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any


def bundled(name: str) -> dict[str, Any]:
    """Returns the tables of a TOML file of the package, such as ``formats/formats.toml``."""
    return tomllib.loads(files("tutti").joinpath(name).read_text("utf-8"))
