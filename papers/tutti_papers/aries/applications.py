"""The trained applications (section V): four data-parallel models, and possible batch sizes."""

from __future__ import annotations

from functools import cache

from tutti.workloads import Chiplet, build
from tutti.workloads.timed import TimedLayer, recorded, timed

RECORDED = {"resnet50": "resnet50", "dlrm": "dlrm_small", "transformer": "transformer"}
"""Workloads of ASTRA-sim; it has none for VGG-16."""
APPLICATIONS = ("resnet50", "vgg16", "dlrm", "transformer")
BATCHES = ("ASTRA-sim's cycles", "1 sample per chiplet", "16 samples per chiplet")
"""The paper states no batch size. In the first, VGG-16 has one sample per chiplet."""


@cache
def layers(name: str, batch: str) -> tuple[TimedLayer, ...]:
    """Returns the layers of an application, with their times and gradients."""
    if batch == BATCHES[0] and name in RECORDED:
        return recorded(RECORDED[name])
    model = build("dlrm_small" if name == "dlrm" else name)
    if batch == BATCHES[2]:
        return timed(model, Chiplet(share="samples"), 16)
    return timed(model, Chiplet(share="folds"), 1)
