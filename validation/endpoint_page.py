"""Writes docs/machines/measured-endpoint.md: an H200 compared with the endpoint and compute models.

The CSV files of validation/gpu/h200 are those of `benchmarks/gpu/measure.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from tutti.endpoint import Npu
from tutti.npus import npu
from tutti.units import TimePerByte
from tutti.workload import build
from tutti.workload.compute import roofline
from tutti.workload.model import PASSES, Work

if TYPE_CHECKING:
    from tutti.workload.model import Pass

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = ROOT / "docs" / "machines" / "measured-endpoint.md"
DATA: Final = ROOT / "validation" / "gpu" / "h200"
PEAKS: Final = npu("h200")
H200: Final = Npu(arithmetic=PEAKS.bf16_flops, sms=PEAKS.sms, memory=PEAKS.memory_bandwidth)
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

HEAD: Final = """# Measured endpoint

What communication takes from computation on one NVIDIA H200, compared with the
[endpoint](../models/endpoint.md) and [compute](../models/training.md#compute) models. All models
use the [published peaks](gpus.md#peaks-of-gpus); nothing is fitted.

`python benchmarks/gpu/measure.py --out FOLDER` measures any NVIDIA GPU (torch, torchvision and
cupy required). `python validation/endpoint_page.py` writes this page from
`validation/gpu/h200/*.csv`. Conditions: H200 SXM, 132 SMs, driver 580.159.04, PyTorch 2.11.0,
CUDA 13.0, BF16, random data, medians, 2026-11-28. A second run differed by at most 1 % in most
rows."""


RATES: Final = """\
A kernel with one block of 512 threads per SM moves data as a collective does. It copies, reduces
two inputs, or reduces and stores twice. Bytes read plus bytes written, in GB/s:"""

RATES_NOTES: Final = """\
The default NPU, of Rashidi et al. 2021, reads 80 GB/s per SM. An SM of the H200 reads 35 GB/s if it
copies and 44 GB/s if it reduces. Blocks of 1,024 threads are 6 % faster. The 450 GB/s of `comm_opt`
therefore need 11 of 132 SMs instead of 6 of 80. A ring all_reduce reads 1.5 bytes per byte sent. To
send at the payload rate of NVLink 4, 370.8 GB/s, it needs 14 SMs. Set `per_sm = "44 GB/s"` in the
table `[npu]` for an H200."""

SLOWDOWN: Final = """\
Time of an operation while the reducing kernel occupies SMs, divided by its time alone, by number of
SMs. The prediction uses the remaining SMs and memory bandwidth. `cuBLAS limited` means that cuBLAS
selects a kernel for the remaining SMs (`cublasSetSmCountTarget`)."""

SLOWDOWN_NOTES: Final = """\
- Attention slows down as predicted, within 3 %.
- A memory-bound operation slows down as predicted, within 1 %, if writes count. The models count
  reads only unless `charge_writes` is set.
- GEMMs slow down more than predicted: by 9 to 19 % for a single SM, where 1 % is predicted. The
  prediction is 7 to 21 % too short from 4 SMs on. A probable cause is that cuBLAS divides a GEMM
  into waves of tiles for all SMs.
- With the limit, 1 to 8 SMs cost 0 to 20 %. From 12 SMs on, the kernels that cuBLAS selects are
  slower than those without the limit."""

WAITING: Final = """\
The files also have a kernel that occupies SMs without memory traffic. Up to 16 SMs, GEMMs slow down
as with the reducing kernel. From 20 SMs on they slow down more, up to 2.5 times with 32 SMs. The
cause is unknown."""

LAYERS: Final = """\
Sums over the layers of ResNet-50 (32 samples) and the linear layers of a Llama 3 8B block and its
classifier (8,192 tokens), each layer alone with inputs from memory. `layers.csv` has each layer."""

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
    rows = pl.read_csv(DATA / "traffic.csv").filter(threads=512, unrolled=8)
    lines = ["| SMs | copy | reduce | reduce, store and send |", "|--:|--:|--:|--:|"]
    for sms in _RATES:
        cells = []
        for kind in ("copy", "reduce", "reduce_store"):
            row = rows.row(
                by_predicate=(pl.col("traffic") == kind) & (pl.col("sms") == sms), named=True
            )
            cells.append(f"{row['read_gb_per_s']:.0f} + {row['written_gb_per_s']:.0f}")
        lines.append(f"| {sms} | {' | '.join(cells)} |")
    return [
        "## Memory bandwidth of SMs",
        RATES,
        "\n".join(lines),
        RATES_NOTES,
    ]


def _predicted(operation: str, used: int, read: float, write: float = 0.0) -> float:
    """Returns how many times longer the roofline is with what the traffic leaves."""
    work = _OPERATIONS[operation][0]
    memory = TimePerByte.parse(f"{max(read + write, 0.001):.3f} GB/s")
    alone = roofline(work, H200.without(0, None))
    return roofline(work, H200.without(used, memory)) / alone


def _slowdowns() -> list[str]:
    rows = pl.read_csv(DATA / "interference.csv").filter(traffic="reduce")
    lines = ["| operation | " + " | ".join(map(str, _USED)) + " |", "|---|" + "--:|" * len(_USED)]
    for operation, (_, title) in _OPERATIONS.items():
        for limited in (0, 1) if operation.startswith("gemm") else (0,):
            found = rows.filter(operation=operation, limited=limited)
            by_sms = {row["sms"]: row for row in found.iter_rows(named=True)}
            label = f"{title}, cuBLAS limited" if limited else title
            cells = [f"{by_sms[used]['slowdown']:.2f}" for used in _USED]
            lines.append(f"| {label} | {' | '.join(cells)} |")
            if not limited:
                cells = [
                    f"{_predicted(operation, used, by_sms[used]['read_gb_per_s']):.2f}"
                    for used in _USED
                ]
                lines.append(f"| predicted | {' | '.join(cells)} |")
    scale = {row["sms"]: row for row in rows.filter(operation="scale_512mib").iter_rows(named=True)}
    cells = []
    for used in _USED:
        read = scale[used]["read_gb_per_s"]
        cells.append(f"{_predicted('scale_512mib', used, read, read / 2):.2f}")
    lines.append(f"| predicted, writes included | {' | '.join(cells)} |")
    return [
        "## Slowdown of computation",
        SLOWDOWN,
        "\n".join(lines),
        SLOWDOWN_NOTES,
        WAITING,
    ]


def _layers() -> list[str]:
    rows = {(row["model"], row["layer"]): row for row in _read_layers()}
    lines = ["| layers | pass | roofline in us | measured in us | ratio |", "|---|---|--:|--:|--:|"]
    for title, works in _works().items():
        for which in PASSES:
            predicted = sum(roofline(work[which], H200.without(0, None)) for _, work in works) / 1e6
            measured = sum(rows[key][f"{which}_us"] for key, _ in works)
            words = which.replace("_", " ")
            ratio = measured / predicted
            lines.append(f"| {title} | {words} | {predicted:.0f} | {measured:.0f} | {ratio:.2f} |")
    return [
        "## Times of layers",
        LAYERS,
        "\n".join(lines),
        LAYERS_NOTES,
    ]


def _read_layers() -> list[dict[str, Any]]:
    return list(pl.read_csv(DATA / "layers.csv").iter_rows(named=True))


def _works() -> dict[str, list[tuple[tuple[str, str], dict[Pass, Work]]]]:
    """Returns the layers of each group: the key of its row, and the work of each pass."""
    images = [
        (("resnet50", layer.name), {which: layer.work(which, BATCH, 2) for which in PASSES})
        for layer in build("resnet50").layers
    ]
    linear = []
    for name, (outputs, inputs) in _LINEAR.items():
        flops = 2 * _TOKENS * outputs * inputs
        moved = 2 * (_TOKENS * (inputs + outputs) + inputs * outputs)
        linear.append((("llama3_8b", name), dict.fromkeys(PASSES, Work(flops, moved))))
    return {"ResNet-50": images, "Llama 3 8B, linear": linear}


if __name__ == "__main__":
    main()
