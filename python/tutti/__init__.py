"""Collective communication: generate, verify, simulate, draw and run schedules.

Public names are imported on first use, so that ``import tutti`` is fast. ``__init__.pyi`` lists
them with their packages.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
