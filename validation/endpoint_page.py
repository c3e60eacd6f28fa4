"""Writes docs/machines/measured-endpoint.md: GPUs compared with the endpoint and compute models.

The CSV files in the folders of validation/gpu are those of `benchmarks/gpu/measure.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import polars as pl

from tutti.base.units import TimePerByte
from tutti.platforms import npus
from tutti.training.endpoint import Npu
from tutti.workloads import build
from tutti.workloads.compute import roofline
from tutti.workloads.model import PASSES, Work

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tutti.workloads.model import Pass

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = ROOT / "docs" / "machines" / "measured-endpoint.md"
DATA: Final = ROOT / "validation" / "gpu"
GPUS: Final = ("h100", "h200")
BATCH: Final = 32
"""Samples of ResNet-50, as `measure.py` has by default."""
_RATES: Final = (1, 4, 8, 16, 32, 64, 132)
_USED: Final = (1, 4, 8, 16, 24, 32)
_OPERATIONS: Final = {
    "gemm_8192x8192x8192": (Work(2 * 8192**3, 3 * 2 * 8192**2), "GEMM 8192x8192x8192"),
    "gemm_4096x14336x4096": (
        Work(2 * 4096 * 14336 * 4096, 2 * (4096 * 4096 + 2 * 4096 * 14336)),
        "GEMM 4096x14336x4096",
    ),
    "attention_4096": (
        Work(4 * 32 * 4096**2 * 128 * 2, 4 * 4 * 32 * 4096 * 128 * 2),
        "causal attention, 4,096 tokens",
    ),
    "scale_512mib": (Work(1 << 28, 2 << 29), "scaling of 512 MiB"),
}
_LINEAR: Final = {
    "attention_qkv": (6144, 4096),
    "projection": (4096, 4096),
    "up": (28672, 4096),
    "down": (4096, 14336),
    "head": (128256, 4096),
}
_TOKENS: Final = 8192
_TIMES: Final = (" roofline", "", " ratio")
Layers: TypeAlias = "list[tuple[tuple[str, str], Mapping[Pass, Work]]]"
"""Layers: the key of the measured row, and the work of each pass."""

HEAD: Final = """\
# Measured endpoint

What communication takes from computation on NVIDIA's H100 and H200, compared with the
[endpoint](../models/endpoint.md) and [compute](../models/training.md#compute) models. All models
use the [published peaks](gpus.md#peaks-of-gpus); nothing is fitted.

`python benchmarks/gpu/measure.py --out FOLDER` measures any NVIDIA GPU (torch, torchvision and
cupy required). `python validation/endpoint_page.py` writes this page from
`validation/gpu/h100/*.csv` and `validation/gpu/h200/*.csv`. Conditions: one GPU of each, SXM, 132
SMs, driver 580.159.04, PyTorch 2.11.0, CUDA 13.0, BF16, random data, medians, 2026-11-28. A second
run on an H200 differed by at most 1 % in most rows."""

RATES: Final = """\
A kernel with one block of 512 threads per SM moves data as a collective does: it copies, or reduces
two inputs. Bytes read plus bytes written, in GB/s:"""

RATES_NOTES: Final = """\
The default NPU, of Rashidi et al. 2021, reads 80 GB/s per SM. An SM of these GPUs reads 35 to 37
GB/s if it copies and 44 to 47 GB/s if it reduces. Blocks of 1,024 threads are 4 to 7 % faster, and
storing a result twice costs as much as copying. The 450 GB/s of `comm_opt` therefore need 11 of 132
SMs instead of 6 of 80. A ring all_reduce reads 1.5 bytes per byte sent. To send at the payload rate
of NVLink 4, 370.8 GB/s, it needs 14 SMs. Set `per_sm = "44 GB/s"` in the table `[npu]` for an H100
or H200."""

SLOWDOWN: Final = """\
Time of an operation while the reducing kernel occupies SMs, divided by its time alone, by number of
SMs. The prediction uses the remaining SMs and memory bandwidth. `cuBLAS limited` means that cuBLAS
selects a kernel for the remaining SMs (`cublasSetSmCountTarget`)."""

SLOWDOWN_NOTES: Final = """\
- Attention slows down as predicted, within 2 %.
- A memory-bound operation slows down as predicted, within 3 %, if writes count. The models count
  reads only unless `charge_writes` is set.
- GEMMs slow down more than predicted: by 8 to 19 % for a single SM, where 1 % is predicted. The
  prediction is 7 to 21 % too short from 4 SMs on. A probable cause is that cuBLAS divides a GEMM
  into waves of tiles for all SMs.
- With the limit, 1 to 8 SMs cost 0 to 20 %. From 12 SMs on, most kernels that cuBLAS selects are
  slower than those without the limit."""

WAITING: Final = """\
The files also have a kernel that occupies SMs without memory traffic. Up to 16 SMs, GEMMs slow down
as with the reducing kernel. From 20 SMs on they slow down more, up to 2.5 times with 32 SMs. The
cause is unknown."""

LAYERS: Final = """\
Sums over the layers of ResNet-50 (32 samples) and the linear layers of a Llama 3 8B block and its
classifier (8,192 tokens), in us. Each layer runs alone, with inputs from memory. `layers.csv` has
each layer."""

LAYERS_NOTES: Final = """\
- Large GEMMs reach 69 to 79 % of the published rate, at the clock that the power limit allows. An
  `arithmetic` of 70 % of the peak in `[npu]` models this.
- Convolutions of 32 samples take 1.3 to 4 times the roofline. Most of them last 8 to 30 us, in
  which an SM processes one or two tiles. The first convolution has 3 input channels and takes 12 to
  17 times the roofline.
- For small layers, use measured times: `model = "measured"` in `[compute]`."""


def main() -> None:
    """Writes the page."""
    PAGE.write_text(text(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")


def text() -> str:
    """Returns the page."""
    return "\n\n".join([HEAD, *_rates(), *_slowdowns(), *_layers()]) + "\n"


def _rates() -> list[str]:
    runs = [(gpu, kind) for gpu in GPUS for kind in ("copy", "reduce")]
    columns = []
    for gpu, kind in runs:
        rows = pl.read_csv(DATA / gpu / "traffic.csv").filter(threads=512, unrolled=8, traffic=kind)
        columns.append({row["sms"]: row for row in rows.iter_rows(named=True)})
    lines = [_line("SMs", (f"{gpu.upper()} {kind}" for gpu, kind in runs)), "|" + "--:|" * 5]
    for sms in _RATES:
        found = (rows[sms] for rows in columns)
        cells = (f"{row['read_gb_per_s']:.0f} + {row['written_gb_per_s']:.0f}" for row in found)
        lines.append(_line(sms, cells))
    return ["## Memory bandwidth of SMs", RATES, "\n".join(lines), RATES_NOTES]


def _line(first: object, cells: Iterable[object]) -> str:
    return f"| {first} | {' | '.join(map(str, cells))} |"


def _npu(gpu: str) -> Npu:
    peaks = npus.npu(gpu)
    return Npu(arithmetic=peaks.bf16_flops, sms=peaks.sms, memory=peaks.memory_bandwidth)


def _predicted(gpu: str, operation: str, used: int, traffic: float) -> float:
    """Returns the slowdown of the roofline with the resources that `traffic` GB/s leave."""
    work = _OPERATIONS[operation][0]
    npu = _npu(gpu)
    left = npu.without(used, TimePerByte.parse(f"{traffic:.3f} GB/s"))
    return roofline(work, left) / roofline(work, npu.without(0, None))


def _slowdowns() -> list[str]:
    lines = [_line("operation", _USED), "|---|" + "--:|" * len(_USED)]
    for operation, (_, title) in _OPERATIONS.items():
        lines += dict.fromkeys(_slowdown_lines(operation, title))
    notes = [SLOWDOWN_NOTES, WAITING]
    return ["## Slowdown of computation", SLOWDOWN, "\n".join(lines), *notes]


def _slowdown_lines(operation: str, title: str) -> list[str]:
    """Returns the rows of an operation: measured, then predicted, on each GPU."""
    measured, limited, predicted = [], [], []
    for gpu in GPUS:
        rows = pl.read_csv(DATA / gpu / "interference.csv")
        rows = rows.filter(operation=operation, traffic="reduce")
        by_sms = {(row["limited"], row["sms"]): row for row in rows.iter_rows(named=True)}
        name = gpu.upper()
        measured.append(_line(f"{title}, {name}", _slowed(by_sms, 0)))
        if (1, 1) in by_sms:
            limited.append(_line(f"{name}, cuBLAS limited", _slowed(by_sms, 1)))
        factors = {"predicted": 1.0}
        if operation == "scale_512mib":
            factors = {f"predicted, {name}": 1.0, f"predicted with writes, {name}": 1.5}
        for label, factor in factors.items():
            reads = {used: by_sms[0, used]["read_gb_per_s"] for used in _USED}
            cells = (_predicted(gpu, operation, used, factor * reads[used]) for used in _USED)
            predicted.append(_line(label, (f"{cell:.2f}" for cell in cells)))
    return measured + limited + predicted


def _slowed(rows: Mapping[tuple[int, int], Mapping[str, Any]], limited: int) -> list[str]:
    return [f"{rows[limited, used]['slowdown']:.2f}" for used in _USED]


def _layers() -> list[str]:
    columns = ["pass", *(f"{gpu.upper()}{what}" for gpu in GPUS for what in _TIMES)]
    lines = [_line("layers", columns), "|---|---|" + "--:|" * (len(columns) - 1)]
    for title, works in _works().items():
        for which in PASSES:
            cells = (cell for gpu in GPUS for cell in _layer_cells(gpu, works, which))
            lines.append(_line(title, (which.replace("_", " "), *cells)))
    return ["## Times of layers", LAYERS, "\n".join(lines), LAYERS_NOTES]


def _layer_cells(gpu: str, works: Layers, which: Pass) -> tuple[str, str, str]:
    """Returns predicted and measured microseconds of a pass, and their ratio."""
    table = pl.read_csv(DATA / gpu / "layers.csv")
    rows = {(row["model"], row["layer"]): row for row in table.iter_rows(named=True)}
    left = _npu(gpu).without(0, None)
    predicted = sum(roofline(work[which], left) for _, work in works) / 1e6
    measured = sum(rows[key][f"{which}_us"] for key, _ in works)
    return f"{predicted:.0f}", f"{measured:.0f}", f"{measured / predicted:.2f}"


def _works() -> dict[str, Layers]:
    """Returns the layers of each group: the key of its row, and the work of each pass."""
    images: Layers = [
        (("resnet50", layer.name), {which: layer.work(which, BATCH, 2) for which in PASSES})
        for layer in build("resnet50").layers
    ]
    linear: Layers = []
    for name, (outputs, inputs) in _LINEAR.items():
        flops = 2 * _TOKENS * outputs * inputs
        moved = 2 * (_TOKENS * (inputs + outputs) + inputs * outputs)
        linear.append((("llama3_8b", name), dict.fromkeys(PASSES, Work(flops, moved))))
    return {"ResNet-50": images, "Llama 3 8B, linear": linear}


if __name__ == "__main__":
    main()
