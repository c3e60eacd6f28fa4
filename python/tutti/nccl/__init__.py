"""NCCL's tuning model: which algorithm and protocol NCCL chooses for a collective, and why.

The model predicts a time for each algorithm with each protocol and takes the shortest. It reads the
graphs that NCCL's topology search found (:class:`NcclSystem`) and constants that depend on the
version (``versions.toml``). :mod:`tutti.nccl.presets` has the graphs of common systems.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
