"""What a captured step of a PyTorch program is: facts for the terminal and reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.view.quantity import plural
from tutti.view.view import Fact

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tutti.training.capture.programs import CapturedWork

__all__ = ["captured_facts", "captured_headline", "captured_remarks"]


def captured_headline(work: CapturedWork, shape: str) -> str:
    """Returns the program and the ranks of a captured step on one line."""
    roles = plural(len(work.step.roles), "captured rank")
    return f"{work.step.script}, {roles} of {work.step.world_size:,} as {shape}"


def captured_facts(work: CapturedWork) -> list[Fact]:
    """Returns the settings of a captured step."""
    step, first = work.step, work.step.roles[0]
    operators = sum(len(role.operators) for role in step.roles)
    flops = max(role.flops() for role in step.roles)
    fused = ", fused by torch.compile" if work.kernels.fused else ""
    return [
        Fact("program", f"{step.script}, torch {step.torch}", "model", step.script),
        Fact("operators", f"{operators:,} of {plural(len(step.roles), 'rank')}{fused}"),
        Fact("FLOPs", f"{flops / 1e12:,.1f} TFLOP per rank", "flops", flops),
        Fact("parameters", f"{first.weights / 1e6:,.1f} M, {first.parameters / 1e6:,.1f} M stored",
             "parameters", first.weights),
        _memory(work),
        Fact("GPU", f"{work.kernels.peaks.name}, {work.kernels.setting.precision}", "gpu",
             work.kernels.peaks.name),
    ]  # fmt: skip


def _memory(work: CapturedWork) -> Fact:
    """Returns the largest memory of the captured ranks, of that of the GPU."""
    most = work.peak_bytes
    capacity = work.kernels.peaks.memory_bytes.bytes
    text = f"{most / 1e9:,.1f} of {capacity / 1e9:,.0f} GB per GPU"
    return Fact("memory", text, "peak_memory", most)


def captured_remarks(work: CapturedWork) -> Iterator[str]:
    """Yields what the capture assumed, and what kernels were priced by."""
    over = work.peak_bytes - work.kernels.peaks.memory_bytes.bytes
    if over > 0:
        yield f"the step needs {over / 1e9:,.1f} GB more than the memory of a GPU"
    lines = dict.fromkeys(line for role in work.step.roles for line in role.remarks)
    yield from lines
    names = {one.collective for role in work.step.roles for _, one in role.exchanges}
    if "broadcast" in names:
        yield "a broadcast takes the time of an all_gather of as many bytes"
    if "reduce" in names:
        yield "a reduce takes the time of a reduce_scatter of as many bytes"
    if work.assignment.apart:
        yield ("an all_reduce of two ranks outside of the mesh takes the time of a message in each "
               "direction")  # fmt: skip
    yield from _measured(work)
    if like := work.kernels.setting.model:
        yield f"the program has the weights of {like}, whose fitted factors apply"
    products = [one for role in work.step.roles for one in role.operators if one.kind == "product"]
    if (precision := work.kernels.setting.precision) != "bf16":
        reduced = sum(map(work.kernels.reduces, products))
        yield (f"{reduced:,} of {len(products):,} products have the rate of {precision}: those of "
               "weights in numbered blocks; the others have that of their datatype")  # fmt: skip
    if any(one.dtype == "float32" for one in products):
        yield "products in float32 have half of BF16's peak (TF32)"


def _measured(work: CapturedWork) -> Iterator[str]:
    """Yields what measured times replace, or why they do not."""
    kernels = work.kernels
    if kernels.measured is None:
        return
    if kernels.used is None:
        reason = f"not of {kernels.peaks.name}" if not kernels.efficiency else "and an efficiency"
        yield f"the measured kernel times are of {kernels.measured.gpu}, {reason}: not used"
        return
    operators = [one for role in work.step.roles for one in role.operators]
    timed = [one for one in operators if one.kind in {"product", "attention"}]
    count = sum(kernels.used.seconds(one) is not None for one in timed)
    others = sum(one.kind == "memory" and kernels.used.seconds(one) is not None
                 for one in operators)  # fmt: skip
    more = f", {others:,} other operators too" if others else ""
    yield (f"{count:,} of {len(timed):,} products and attentions have the time measured on "
           f"{kernels.measured.gpu}{more}")  # fmt: skip
    if reduced := sum(kernels.reduces(one) for one in timed if kernels.used.seconds(one)):
        yield (f"{reduced:,} of them were measured in BF16, so that they have the time of "
               f"{kernels.setting.precision} instead")  # fmt: skip
