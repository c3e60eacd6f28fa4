"""Plans of training steps: degrees of parallelism, placement and memory for a number of GPUs.

:func:`search` ranks all plans by a closed form and simulates the fastest ones with the engine of
training steps (:mod:`tutti.training.step`).
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
