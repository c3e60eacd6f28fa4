"""Package networks whose links are chosen: meshes with bypass wires, and configurations of them.

After ARIES (Yin, Ghazizadeh, Louri and Zheng, ICCAD 2023): see docs/concepts/bypass.md. Which links
to choose for what a schedule sends is found, too:

>>> from tutti.bypass import BypassMesh, flows_of, map_flows
>>> from tutti.schedules import schedule
>>> trees = schedule("double_binary_tree:nccl", collective="all_reduce", ranks=16)
>>> mapping = map_flows(BypassMesh(side=4), flows_of(trees))
>>> len(mapping.flows), len(mapping.dedicated), mapping.optimal
(52, 44, True)
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
