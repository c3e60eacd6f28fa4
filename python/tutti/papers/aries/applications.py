"""What is trained (section V): four networks, data parallel, in each reading of the batch."""

from __future__ import annotations

from functools import cache

from tutti.workload import Chiplet, build
from tutti.workload.timed import TimedLayer, recorded, timed

RECORDED = {"resnet50": "resnet50", "dlrm": "dlrm_small", "transformer": "transformer"}
"""ASTRA-sim's workloads, in which VGG-16 is missing."""
APPLICATIONS = ("resnet50", "vgg16", "dlrm", "transformer")
BATCHES = ("ASTRA-sim's cycles", "1 sample a chiplet", "16 samples a chiplet")
"""The paper gives no batch. VGG-16 has one sample a chiplet in the first."""


@cache
def layers(name: str, batch: str) -> tuple[TimedLayer, ...]:
    """The layers of an application, with their times and gradients."""
    if batch == BATCHES[0] and name in RECORDED:
        return recorded(RECORDED[name])
    model = build("dlrm_small" if name == "dlrm" else name)
    if batch == BATCHES[2]:
        return timed(model, Chiplet(share="samples"), 16)
    return timed(model, Chiplet(share="folds"), 1)
