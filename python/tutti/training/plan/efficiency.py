"""Coefficients of a training step on a GPU, fitted to measured steps.

`efficiencies.toml` has a value per term, and factors of GPUs, precisions and models.
`make gpu` writes it. docs/models/measured-steps.md has the model.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from tutti.base.files.reader import parse_toml
from tutti.workloads.errors import WorkloadError
from tutti.workloads.kernels import PRECISIONS, TERMS, Kernels, Rates
from tutti.workloads.zoo.llm import DECODERS, preset_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from tutti.platforms.npus import NpuPeaks
    from tutti.training.plan.calibrated import Calibrated
    from tutti.workloads.kernels import Dispatcher, Graph, Precision
    from tutti.workloads.model import Model

SHARES = ("tensor", "context", "expert", "data")
"""Shares of collectives that compute never hides, by kind of parallelism."""
UPDATE = ("cast", "optimizer", "step", "skew")
"""Terms of a step: traffic of casts of weights and of the optimizer, a constant, and a time per
doubling of the scale-up domains."""
NAMES = (*TERMS, *SHARES, *UPDATE)
"""All coefficients."""

MATRIX = frozenset({"products", "grouped", "attention", "classifier"})
HOST_TERMS = frozenset({"kernels", "routing"})
_MEMORY = frozenset({"memory", "copies", "weights"})
_BY_PRECISION = frozenset({"products", "grouped", "cast"})
_BY_DISPATCHER = frozenset({"copies", "routing"})
_HOPPER = {"h200": "h100", "h800": "h100"}
"""GPUs with the SMs of another."""
_LIKE = {"kimi_k2": "deepseek_v3"}
"""Models with the layers of a measured one: latent attention and 256 or 384 experts of 2,048."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What coefficients depend on.

    Attributes:
        npu: The GPU.
        precision: The precision of matrix products.
        model: The name of the model, without arguments; that of the preset with its shape.
        family: `dense`, `experts` or `latent` (experts and latent attention).
        dispatcher: The kernels of experts: `alltoall` of NCCL, `flex` (DeepEP, HybridEP), `fused`
            (with fused grouped products in a CUDA graph), or `dropping` tokens beyond a capacity.
        overlapped: Whether dispatch and combine overlap with another micro-batch.
        graph: What CUDA graphs launch: nothing, parts of layers, or an iteration.
        release: The release of the software; empty for the mean of the measured ones.
    """

    npu: str
    precision: Precision
    model: str = ""
    family: str = "dense"
    dispatcher: Dispatcher = "flex"
    overlapped: bool = False
    graph: Graph = "partial"
    release: str = ""


_UNSEEN_MEDIAN, _UNSEEN_TAIL = 0.07, 0.21
"""Errors of steps whose model and system are left out of the fit: median, and 90 % quantile of
docs/machines/measured-gpus.md."""
_FUSED = frozenset({"mxfp8", "nvfp4"})
"""Precisions whose recipes fuse the grouped products of experts (Megatron-Bridge 26.06)."""


def setting_of(
    npu: NpuPeaks,
    model: Model,
    precision: Precision,
    dispatcher: Dispatcher | None = None,
    *,
    overlapped: bool = False,
    graph: Graph | None = None,
) -> Setting:
    """Returns the setting of a model on a GPU, with the kernels that recipes use by default."""
    dispatcher = dispatcher or ("fused" if precision in _FUSED else "flex")
    name, preset = model.name.partition(":")[0], model.decoder and preset_of(model.decoder)
    return Setting(
        npu=npu.name,
        precision=precision,
        model=name if name in DECODERS else preset or name,
        family=family_of(model),
        dispatcher=dispatcher,
        overlapped=overlapped,
        graph=graph or ("full" if dispatcher == "fused" else "partial"),
    )


def rates_of(npu: NpuPeaks, precision: Precision) -> Rates:
    """Returns the peaks of a GPU at a precision.

    Raises:
        WorkloadError: The GPU does not have the precision.
    """
    found = {one: Rates.of(npu, one) for one in PRECISIONS}
    rates = found[precision]
    if rates is None:
        has = " or ".join(one for one in PRECISIONS if found[one])
        message = f"{npu.name} has no {precision}: expected {has}"
        raise WorkloadError(message, kind="no_precision")
    return rates


def kernels_of(
    npu: NpuPeaks,
    setting: Setting,
    efficiency: float | None = None,
    calibrated: Calibrated | None = None,
) -> Kernels:
    """Returns the compute model of a GPU.

    Raises:
        WorkloadError: The GPU does not have the precision, or the calibration is of another GPU.
    """
    found = coefficients(setting, efficiency, calibrated)[: len(TERMS)]
    return Kernels(rates_of(npu, setting.precision), tuple(map(float, found)))


def family_of(model: Model) -> str:
    """Returns the family of a model, as in :class:`Setting`."""
    decoder = model.decoder
    if decoder is None or decoder.experts is None:
        return "dense"
    return "latent" if decoder.latent else "experts"


def parameters_of(name: str, setting: Setting) -> Iterator[str]:
    """Yields the parameters whose product is a coefficient: the value first, then factors."""
    npu = _HOPPER.get(setting.npu, setting.npu)
    yield _value_of(name, setting)
    if name in MATRIX:
        yield f"matrix: gpu: {npu}"
        yield f"matrix: gpu, precision: {npu}, {setting.precision}"
    elif name in _MEMORY:
        yield f"memory: gpu: {npu}"
        yield f"memory: precision: {setting.precision}"
        yield f"memory: dispatcher, gpu: {setting.dispatcher}, {npu}"
    elif name in HOST_TERMS:
        yield f"host: gpu: {npu}"
        if name == "routing" and setting.dispatcher != "fused":
            yield f"routing: graph: {setting.graph}"
    if name in TERMS:
        yield from _of_model(setting, npu)


def _value_of(name: str, setting: Setting) -> str:
    if name in _BY_PRECISION:
        return f"{name}_{setting.precision}"
    if name in _BY_DISPATCHER:
        return f"{name}_{setting.dispatcher}"
    if name == "kernels":
        return f"{name}_{setting.graph}"
    return "expert_overlapped" if name == "expert" and setting.overlapped else name


def _of_model(setting: Setting, npu: str) -> Iterator[str]:
    """Yields the factors of the model and of the release."""
    model = _LIKE.get(setting.model, setting.model)
    yield f"family: {setting.family}"
    yield f"family, gpu: {setting.family}, {npu}"
    if model:
        yield f"model: {model}"
        yield f"model, gpu: {model}, {npu}"
    if model != setting.model:
        yield f"model: {setting.model}"
    if setting.release:
        yield f"release: {setting.release}"
        yield f"family, release: {setting.family}, {setting.release}"
        yield f"model, release: {model}, {setting.release}"


@functools.cache
def fitted() -> Mapping[str, float]:
    """Returns the fitted parameters by name; factors that are left out are 1."""
    text = files("tutti.training.plan").joinpath("efficiencies.toml").read_text(encoding="utf-8")
    tables = parse_toml(text, source="efficiencies.toml")
    return {**tables["coefficients"], **tables["factors"]}


def unmeasured(setting: Setting, name: str) -> list[str]:
    """Returns sentences on what no fitted run has, the GPU or the model, and whose factors apply.

    Args:
        setting: The setting of the model.
        name: The name of the model, which may be that of a file.
    """
    known, npu = fitted(), _HOPPER.get(setting.npu, setting.npu)
    model = _LIKE.get(setting.model, setting.model)
    found = []
    if f"matrix: gpu: {npu}" not in known:
        found.append(f"no published run on {setting.npu} is fitted: efficiencies are means of GPUs")
    if f"model: {model}" not in known:
        found.append(
            f"no published run of {setting.model} is fitted: steps of models left out of the fit "
            f"are {_UNSEEN_MEDIAN:.0%} off in the median, one in ten more than {_UNSEEN_TAIL:.0%}"
        )
    elif setting.model != name:
        found.append(f"{name} has the shape of {setting.model}, whose fitted factors apply")
    return found


@functools.lru_cache(maxsize=256)
def coefficients(
    setting: Setting, efficiency: float | None = None, calibrated: Calibrated | None = None
) -> NDArray[np.float64]:
    """Returns the coefficients of :data:`NAMES`.

    Args:
        setting: The GPU, the precision and the model.
        efficiency: The fraction of the peak that matrix products and attention reach, instead of
            the fitted ones.
        calibrated: Factors on the coefficients, from measured steps of this GPU.

    Raises:
        WorkloadError: The calibration is of another GPU.
    """
    known = fitted()
    found = np.ones(len(NAMES))
    for at, name in enumerate(NAMES):
        if efficiency is not None and name in MATRIX:
            found[at] = 1 / efficiency
        elif name != "optimizer":
            first, *factors = parameters_of(name, setting)
            found[at] = known[first] * np.prod([known.get(factor, 1.0) for factor in factors])
    if calibrated is not None:
        calibrated.check(setting.npu)
        for name, factor in calibrated.factors:
            found[NAMES.index(name)] *= factor
    found.flags.writeable = False
    return found
