"""Energy and area: technologies of routers and links, packages, and die-to-die links."""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
