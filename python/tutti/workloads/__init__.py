"""Workloads: models as lists of layers, with their computation and communication.

Examples:
    >>> model = build("resnet50")
    >>> model.parameters
    25502912
    >>> len(model.layers)
    54
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
