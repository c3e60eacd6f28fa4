"""Training steps: computation and communication of NPUs, endpoints, plans and their search."""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
