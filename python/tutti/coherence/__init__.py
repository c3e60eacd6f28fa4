"""Cache-coherent chips that run parallel kernels; the protocol broadcasts over a mesh.

Examples:
    >>> from tutti import coherence
    >>> from tutti.noc import SmartMesh
    >>> mesh = SmartMesh(design="sfo_complete", columns=4, rows=4)
    >>> run = coherence.run(kernel="fft_like", protocol="ht", mesh=mesh, scale="tiny")
    >>> run.cores, run.responses_per_flow
    (16, 1.0)
"""

from __future__ import annotations

from tutti.coherence.chip import Chip
from tutti.coherence.frame import flow_frame, frame, miss_frame
from tutti.coherence.measured import CoherenceRun, FlowCount, Mean, Misses
from tutti.coherence.runs import SCALES, Case, Protocol, Scale, check, kernels, run, run_all

__all__ = [
    "SCALES",
    "Case",
    "Chip",
    "CoherenceRun",
    "FlowCount",
    "Mean",
    "Misses",
    "Protocol",
    "Scale",
    "check",
    "flow_frame",
    "frame",
    "kernels",
    "miss_frame",
    "run",
    "run_all",
]
