"""Package networks whose links are chosen: meshes with bypass wires, and configurations of them.

After ARIES (Yin, Ghazizadeh, Louri and Zheng, ICCAD 2023): see docs/concepts/bypass.md.
"""

from __future__ import annotations

from tutti.bypass.network import BypassMesh, Configuration, IdlePort, Link, Muxes, Port

__all__ = ["BypassMesh", "Configuration", "IdlePort", "Link", "Muxes", "Port"]
