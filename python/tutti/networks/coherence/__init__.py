"""Cache-coherent chips that run parallel kernels; the protocol broadcasts over a mesh.

Examples:
    >>> from tutti.networks import coherence
    >>> from tutti.networks.mesh import SmartMesh
    >>> mesh = SmartMesh(design="sfo_complete", columns=4, rows=4)
    >>> run = coherence.run(kernel="fft_like", protocol="ht", mesh=mesh, scale="tiny")
    >>> run.cores, run.responses_per_flow
    (16, 1.0)
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
