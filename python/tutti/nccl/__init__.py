"""NCCL's tuning model: which algorithm and protocol NCCL chooses for a collective, and why.

The model predicts a time for each algorithm with each protocol and takes the shortest. It reads the
graphs that NCCL's topology search found (:class:`NcclSystem`) and constants that depend on the
version (``versions.toml``). :mod:`tutti.nccl.presets` has the graphs of common systems.
"""

from __future__ import annotations

from tutti.nccl.settings import ALGORITHMS, COLLECTIVES, PROTOCOLS, Settings
from tutti.nccl.system import Graph, NcclSystem
from tutti.nccl.tuning import Candidate, best, candidates, choose
from tutti.nccl.versions import known_versions

__all__ = [
    "ALGORITHMS",
    "COLLECTIVES",
    "PROTOCOLS",
    "Candidate",
    "Graph",
    "NcclSystem",
    "Settings",
    "best",
    "candidates",
    "choose",
    "known_versions",
]
