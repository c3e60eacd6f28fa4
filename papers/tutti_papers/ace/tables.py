"""Tables 5 and 6: parameters of the system, and the compared configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tutti.training.endpoint import AceSettings, Npu, configurations
from tutti_papers import Exhibit, ExhibitResult
from tutti_papers.ace.published import SURE
from tutti_papers.ace.system import READING, rings
from tutti_papers.ace.workloads import BATCH, FP16, SCALINGS

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.training.endpoint import Configuration


def _table_5(folder: Path) -> ExhibitResult:
    """Returns the parameters of all runs of this paper."""
    del folder
    npu, ace = Npu(), AceSettings()
    local, vertical, _ = rings("4x4x4")
    rows = [
        ("compute", str(npu.arithmetic), "B"),
        ("SMs", str(npu.sms), "B"),
        ("clock", str(npu.clock), "R"),
        ("memory bandwidth per SM", str(npu.per_sm), "R, D"),
        ("memory", str(npu.memory), "B"),
        ("bus, each direction", str(npu.bus), "R"),
        ("link inside a package", f"{local.rate}, {local.latency}", "R; latency V"),
        ("link between packages", f"{vertical.rate}, {vertical.latency}", "R"),
        ("payload share of a link", "0.94", "R"),
        ("chunk, message, packet", f"64 KiB, 8 KiB, {ace.packet}", "R"),
        ("scratchpad", str(ace.sram), "B"),
        ("FSMs", str(ace.fsms), "B"),
        ("ALUs", str(ace.alus), "B"),
        ("banks, width of buses", f"{ace.banks}, {ace.width} B", "R"),
        ("samples per NPU", ", ".join(f"{m} {n}" for m, n in BATCH.items()), "R"),
        ("FSMs per phase", "in proportion to the time of a chunk", "inferred"),
        ("FSMs for all-to-alls", "any, in addition to its phase", "words S, any inferred"),
        *_chosen(),
    ]
    return ExhibitResult(
        frame=pl.DataFrame(rows, schema=["parameter", "value", "sure"], orient="row"),
        source=f"the known part of the table. {SURE}",
    )


def _chosen() -> list[tuple[str, str, str]]:
    """Returns the choices of the default reading, and those of ACE."""
    return [
        (
            "recorded times",
            "Resnet50_DataParallel.txt, medium_DLRM.txt; a cycle is 1 ns",
            "V; that they are the paper's inferred",
        ),
        ("compute with less memory bandwidth", SCALINGS[READING.scaling], "words S, rest inferred"),
        (
            "bytes per gradient",
            f"ResNet-50 {READING.gradient}, others {FP16}",
            "files V; FP16 S",
        ),
        ("compute of GNMT", f"{READING.part:g} of its roofline", "fitted to a conclusion"),
        ("partitions", "rate of the links in use x chunk", "words S, rest inferred"),
        ("buffer space of the next phase", "reserved at the end of a phase", "inferred"),
    ]


def _table_6(folder: Path) -> ExhibitResult:
    """Returns the resources that communication uses, and those left for computation."""
    del folder
    return ExhibitResult(
        frame=pl.DataFrame([_row(configuration) for configuration in configurations().values()]),
        source=f"the known part of the table: 450 and 128 GB/s, 6 SMs B; 2 SMs R. {SURE}",
    )


def _row(configuration: Configuration) -> dict[str, object]:
    npu = Npu()
    per_second, memory = configuration.compute(npu)
    taken = configuration.memory
    return {
        "configuration": configuration.name,
        "overlap": "yes" if configuration.overlap else "no",
        "memory_taken": str(taken) if taken else "-",
        "sms_taken": configuration.sms,
        "memory_left": f"{memory.core.bytes_per_second / 1e9:.0f} GB/s",
        "tflops_left": round(per_second / 1e12, 1),
    }


TABLES = {
    5: Exhibit(title="parameters and their confidence", make=_table_5),
    6: Exhibit(title="configurations", make=_table_6),
}
