"""Plans of training steps: degrees of parallelism, placement and memory for a number of GPUs.

:func:`search` ranks all plans by a closed form and simulates the fastest ones with the engine of
training steps (:mod:`tutti.training`).
"""

from __future__ import annotations

from tutti.plan.cluster import Cluster
from tutti.plan.estimate import estimate
from tutti.plan.search import Found, Ranked, least_gpus, search
from tutti.plan.space import Fixed, Plan, plans
from tutti.plan.timing import Timing

__all__ = [
    "Cluster",
    "Fixed",
    "Found",
    "Plan",
    "Ranked",
    "Timing",
    "estimate",
    "least_gpus",
    "plans",
    "search",
]
