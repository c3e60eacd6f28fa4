"""Every error that tutti raises, and the exit codes of the command line.

A user's mistake is always a :class:`TuttiError`. Its message states what is wrong, where, and what
was expected. A hint follows, and the anchor of its entry in ``docs/reference/errors.md``, which is
generated from these classes. The values that the message names are also attributes.

Each package defines its errors in its module ``errors``; this module imports a class on first use.
"""

from __future__ import annotations

from importlib import import_module

import lazy_loader

from tutti.base.errors import TuttiError as _TuttiError

__getattr__, __dir__, __all__ = lazy_loader.attach_stub("tutti", __file__)
__all__ += ["all_errors"]

_PACKAGES = (
    *("base", "topologies", "schedules", "platforms", "energy", "bypass", "networks"),
    *("workloads", "training", "mpi", "measured", "sweeps", "explore", "view"),
)
"""The packages with errors, in the order of the reference page."""


def all_errors() -> list[type[_TuttiError]]:
    """Returns every error class, in the order of the reference page."""
    modules = [import_module(f"tutti.{package}.errors") for package in _PACKAGES]
    return [
        kind
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type)
        and issubclass(kind, _TuttiError)
        and kind.__module__ == module.__name__
    ]
