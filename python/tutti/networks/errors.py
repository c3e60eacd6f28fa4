"""Errors of router networks, their traffic, and coherent chips on them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tutti.base.bundled import bundled
from tutti.base.errors import SimulationError, TuttiError

if TYPE_CHECKING:
    from collections.abc import Mapping


@cache
def keys_of_errors(table: str) -> Mapping[str, str]:
    """Returns the key of a file by kind of error: a table of `error_keys.toml`."""
    keys: Mapping[str, str] = bundled("networks/error_keys.toml")[table]
    return keys


class NocError(TuttiError, ValueError):
    """Raised for an invalid router network, or a routing that does not match it."""


class TrafficError(TuttiError, ValueError):
    """Raised for invalid traffic: a pattern, an injection process, packet sizes or a trace."""


class CoherenceError(TuttiError, ValueError):
    """Raised for an invalid chip with coherent caches, or a kernel that does not match it."""


class CoherenceRunError(SimulationError):
    """Raised for a program on a chip with coherent caches that gives no result."""
