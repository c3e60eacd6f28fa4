"""The time of a plan's collectives by the platform's library, where links join pairs of GPUs.

On a switch, a group of a GPU's domain reaches the rate of one link, whatever its size. With links
between pairs (MI300X), a group of n GPUs has n - 1 links per GPU, over which the library lays as
many rings. Between domains, RCCL's constants limit the rate of messages of some sizes. The
simulation has the times of the library, so the closed form has them, too.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tutti.schedules.errors import AlgorithmError
from tutti.training.library import group_of

if TYPE_CHECKING:
    from tutti.training.plan.cluster import Cluster
    from tutti.training.plan.space import Plan
    from tutti.workloads.transfers import Transfer


def library_seconds(plan: Plan, cluster: Cluster, transfer: Transfer) -> float | None:
    """Returns the time of a collective on its group by the library, with its launch.

    None if a switch joins the GPUs of a domain, without a library, or if its model does not predict
    the collective: then alpha-beta costs apply.
    """
    library = cluster.pairwise_library
    if library is None:
        return None
    order = plan.kinds.order
    sizes = [plan.degree(kind) for kind in order]
    mask = sum(1 << at for at, kind in enumerate(order) if kind in transfer.rings)
    if math.prod(size for at, size in enumerate(sizes) if mask >> at & 1) == 1:
        return 0.0
    model = library.model
    try:
        group = group_of(sizes, mask, model)
        found = model.predict(library.name, transfer.collective, group, transfer.bytes)
    except AlgorithmError:
        return None
    return max(cluster.launch, found.time_ps * 1e-12)
