"""Measures what communication takes from computation on one GPU, and the times of layers.

Writes three CSV files, which `docs/machines/measured-endpoint.md` compares with tutti's models:

- `traffic.csv`: memory rate of a kernel that moves data as a collective does, by number of SMs;
- `interference.csv`: time of an operation while such a kernel occupies SMs;
- `layers.csv`: time of each pass over layers of ResNet-50 and of a Llama 3 8B block.

Needs torch, torchvision and cupy. It changes no setting of the GPU.
"""

from __future__ import annotations

import argparse
import csv
import ctypes
import statistics
import time
from pathlib import Path

import cupy
import torch
import torchvision
from torch.nn import functional

KINDS = {"wait": 0, "copy": 1, "reduce": 2, "reduce_store": 3}
READS = {"wait": 0, "copy": 1, "reduce": 2, "reduce_store": 2}
WRITES = {"wait": 0, "copy": 1, "reduce": 1, "reduce_store": 2}
BUFFER_BYTES = 1 << 30
EXCLUSIVE_BYTES = 200 << 10
"""Shared memory of a block of the traffic kernel: no block of a GEMM fits on its SM."""
REPEATS = 5
PAIRS = 9
COUNTS = (1, 2, 4, 6, 8, 12, 16, 20, 24, 32)


class Traffic:
    """The kernel of traffic.cu and its buffers.

    Args:
        threads: Threads of a block.
        unrolled: Loads of 16 bytes that a thread has in flight per buffer.
    """

    def __init__(self, threads: int = 512, unrolled: int = 8) -> None:
        source = Path(__file__).with_name("traffic.cu").read_text()
        options = (f"-DTHREADS={threads}", f"-DUNROLLED={unrolled}")
        self.threads = threads
        self.tile_bytes = 16 * threads * unrolled
        self.kernel = cupy.RawModule(code=source, options=options).get_function("traffic")
        self.kernel.max_dynamic_shared_size_bytes = EXCLUSIVE_BYTES
        words = BUFFER_BYTES // 2
        self.buffers = [torch.randn(words, device="cuda", dtype=torch.bfloat16) for _ in range(4)]
        self.stop = torch.zeros(1, dtype=torch.int32).pin_memory()
        self.moved = torch.zeros(256, dtype=torch.int64, device="cuda")
        self.spans = torch.zeros(512, dtype=torch.int64, device="cuda")
        self.processors = torch.zeros(256, dtype=torch.int32, device="cuda")
        self.stream = torch.cuda.Stream()

    def start(self, kind: str, sms: int, limit_s: float = 2.0) -> None:
        """Starts one block on each of `sms` SMs."""
        self.stop[0] = 0
        arguments = (
            *(cupy.uint64(buffer.data_ptr()) for buffer in self.buffers),
            cupy.uint64(BUFFER_BYTES // self.tile_bytes // sms),
            cupy.int32(KINDS[kind]),
            cupy.uint64(self.stop.data_ptr()),
            cupy.uint64(int(limit_s * 1e9)),
            *(cupy.uint64(one.data_ptr()) for one in (self.moved, self.spans, self.processors)),
        )
        with cupy.cuda.ExternalStream(self.stream.cuda_stream):
            self.kernel((sms,), (self.threads,), arguments, shared_mem=EXCLUSIVE_BYTES)

    def finish(self, sms: int) -> tuple[float, float]:
        """Stops the kernel; returns bytes per second in one direction, and the seconds it ran."""
        self.stop[0] = 1
        self.stream.synchronize()
        moved = self.moved[:sms].sum().item() * self.tile_bytes
        spans = self.spans[: 2 * sms].view(-1, 2)
        seconds = (spans[:, 1].max() - spans[:, 0].min()).item() / 1e9
        return moved / seconds, seconds

    def pairs(self, sms: int) -> int:
        """Returns on how many pairs of neighbouring SMs the last kernel ran."""
        return len({number // 2 for number in self.processors[:sms].tolist()})


def measure_traffic(sms: int) -> list[dict]:
    rows = []
    for threads, unrolled in ((512, 8), (1024, 4), (512, 4), (256, 8)):
        traffic = Traffic(threads, unrolled)
        main = (threads, unrolled) == (512, 8)
        for kind in ("copy", "reduce", "reduce_store"):
            for used in (*COUNTS, 48, 64, 96, sms) if main else (1, 16):
                rows.append({"threads": threads, "unrolled": unrolled})
                rows[-1] |= rate_row(traffic, kind, used)
        del traffic
        torch.cuda.empty_cache()
    return rows


def rate_row(traffic: Traffic, kind: str, used: int) -> dict:
    rates = []
    for _ in range(REPEATS):
        traffic.start(kind, used)
        time.sleep(0.02)
        rates.append(traffic.finish(used)[0])
    rate = statistics.median(rates)
    return {
        "traffic": kind,
        "sms": used,
        "read_gb_per_s": round(READS[kind] * rate / 1e9, 2),
        "written_gb_per_s": round(WRITES[kind] * rate / 1e9, 2),
        "spread": round((max(rates) - min(rates)) / rate, 4),
    }


def graph_of(calls: list) -> torch.cuda.CUDAGraph:
    """Returns a graph of all calls in sequence."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for call in calls[:3]:
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for call in calls:
            call()
    return graph


def seconds_per_call(graph: torch.cuda.CUDAGraph, calls: int, replays: int = 1) -> float:
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        first.record()
        for _ in range(replays):
            graph.replay()
        last.record()
    last.synchronize()
    return first.elapsed_time(last) / 1e3 / calls / replays


def matrix(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def limit_gemms(sms: int) -> None:
    """Sets the number of SMs for which cuBLAS chooses its kernels; 0 for all."""
    library = ctypes.CDLL("libcublas.so.13")
    handle = ctypes.c_void_p(torch.cuda.current_blas_handle())
    if status := library.cublasSetSmCountTarget(handle, sms):
        raise SystemExit(f"cublasSetSmCountTarget: status {status}")


def operations() -> dict[str, list]:
    """Returns the operations that communication slows, each repeated for 10 to 30 ms."""
    left, right, result = matrix(8192, 8192), matrix(8192, 8192), matrix(8192, 8192)
    tokens, weights, up = matrix(4096, 4096), matrix(4096, 14336), matrix(4096, 14336)
    streamed, target = matrix(1 << 28), matrix(1 << 28)
    query, key, value = (matrix(4, 32, 4096, 128) for _ in range(3))

    def attention() -> torch.Tensor:
        return functional.scaled_dot_product_attention(query, key, value, is_causal=True)

    return {
        "gemm_8192x8192x8192": [lambda: torch.matmul(left, right, out=result)] * 20,
        "gemm_4096x14336x4096": [lambda: torch.matmul(tokens, weights, out=up)] * 40,
        "scale_512mib": [lambda: torch.mul(streamed, 1.0009765625, out=target)] * 40,
        "attention_4096": [attention] * 20,
    }


def measure_interference(traffic: Traffic, sms: int) -> list[dict]:
    rows = []
    for name, calls in operations().items():
        alone = graph_of(calls)
        seconds_per_call(alone, len(calls), 20)  # until the power limit sets a steady clock
        for limited in (False, True) if name.startswith("gemm") else (False,):
            for used in COUNTS:
                limit_gemms(sms - used if limited else 0)
                graph = graph_of(calls) if limited else alone
                limit_gemms(0)
                for kind in ("wait", "reduce"):
                    rows.append({"operation": name, "limited": int(limited)})
                    rows[-1] |= slowed(traffic, kind, used, (alone, graph), len(calls))
    return rows


def slowed(
    traffic: Traffic, kind: str, used: int, graphs: tuple[torch.cuda.CUDAGraph, ...], calls: int
) -> dict:
    """Returns the time of a call alone and while `used` SMs communicate, in alternation."""
    ratios, alone, rates = [], [], []
    missed = 0
    while len(ratios) < PAIRS and missed < PAIRS:
        alone.append(seconds_per_call(graphs[0], calls))
        traffic.start(kind, used)
        time.sleep(0.002)
        both = seconds_per_call(graphs[1], calls)
        rate, ran = traffic.finish(used)
        if ran < both * calls:  # the kernel was not resident all the time
            missed += 1
            continue
        ratios.append(both / alone[-1])
        rates.append(rate)
    quartiles = statistics.quantiles(ratios, n=4)
    return {
        "traffic": kind,
        "sms": used,
        "pairs": traffic.pairs(used),
        "alone_us": round(statistics.median(alone) * 1e6, 2),
        "slowdown": round(statistics.median(ratios), 4),
        "lower_quartile": round(quartiles[0], 4),
        "upper_quartile": round(quartiles[2], 4),
        "read_gb_per_s": round(READS[kind] * statistics.median(rates) / 1e9, 2),
        "missed": missed,
    }


def timed_pass(call, inputs: list[tuple]) -> float:
    """Returns the median microseconds of `call`, over sets of inputs larger than the L2 cache."""
    graph = graph_of([lambda one=one: call(*one) for one in inputs] * max(1, 16 // len(inputs)))
    calls = len(inputs) * max(1, 16 // len(inputs))
    seconds_per_call(graph, calls)
    return statistics.median(seconds_per_call(graph, calls) for _ in range(REPEATS)) * 1e6


def sets(make, bytes_per_set: int) -> list[tuple]:
    return [make() for _ in range(max(1, min(16, -(-(200 << 20) // bytes_per_set))))]


def gemm_rows(model: str, layer: str, tokens: int, inputs: int, outputs: int) -> dict:
    """Times the three passes of a linear layer."""
    size = 2 * (tokens * inputs + inputs * outputs + tokens * outputs)
    many = sets(
        lambda: (matrix(tokens, inputs), matrix(outputs, inputs), matrix(tokens, outputs)), size
    )
    return {
        "model": model,
        "layer": layer,
        "forward_us": round(timed_pass(lambda x, w, _: torch.matmul(x, w.t()), many), 2),
        "input_gradient_us": round(timed_pass(lambda _, w, y: torch.matmul(y, w), many), 2),
        "weight_gradient_us": round(timed_pass(lambda x, _, y: torch.matmul(y.t(), x), many), 2),
    }


def attention_row(model: str, tokens: int, heads: int, groups: int, width: int) -> dict:
    """Times causal attention without its projections; both gradients in one call."""
    query = matrix(1, heads, tokens, width).requires_grad_()
    key, value = (matrix(1, groups, tokens, width).requires_grad_() for _ in range(2))

    def forward():
        return functional.scaled_dot_product_attention(
            query, key, value, is_causal=True, enable_gqa=True
        )

    once = [()]
    ahead = timed_pass(forward, once)
    gradient = matrix(1, heads, tokens, width)

    def both():
        torch.autograd.grad(forward(), (query, key, value), gradient)

    return {
        "model": model,
        "layer": "attention_products",
        "forward_us": round(ahead, 2),
        "input_gradient_us": round(timed_pass(both, once) - ahead, 2),
        "weight_gradient_us": 0,
    }


def convolution_name(name: str) -> str:
    """Returns the layer name of tutti's resnet50 for a module of torchvision."""
    parts = name.split(".")
    if parts[0] == "conv1":
        return "conv1"
    which = "projection" if parts[2] == "downsample" else parts[2].removeprefix("conv")
    return f"conv{int(parts[0].removeprefix('layer')) + 1}_{int(parts[1]) + 1}_{which}"


def convolution_row(name: str, module: torch.nn.Conv2d, shape: torch.Size) -> dict:
    x = torch.randn(shape, device="cuda", dtype=torch.bfloat16)
    weight = module.weight.detach().to("cuda", torch.bfloat16)
    y = functional.conv2d(x, weight, None, module.stride, module.padding)
    size = 2 * (x.numel() + weight.numel() + y.numel())

    def one():
        return tuple(
            torch.randn_like(part).to(memory_format=torch.channels_last) for part in (x, weight, y)
        )

    def backward(x, w, y, mask):
        return torch.ops.aten.convolution_backward(
            y, x, w, None, module.stride, module.padding, (1, 1), False, (0, 0), 1, mask
        )

    many = sets(one, size)
    first = name == "conv1"
    return {
        "model": "resnet50",
        "layer": convolution_name(name),
        "forward_us": round(
            timed_pass(
                lambda x, w, _: functional.conv2d(x, w, None, module.stride, module.padding), many
            ),
            2,
        ),
        "input_gradient_us": 0
        if first
        else round(timed_pass(lambda *a: backward(*a, (True, False, False)), many), 2),
        "weight_gradient_us": round(
            timed_pass(lambda *a: backward(*a, (False, True, False)), many), 2
        ),
    }


def measure_layers(batch: int) -> list[dict]:
    model = torchvision.models.resnet50()
    shapes: dict[str, torch.Size] = {}
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Conv2d):
            module.register_forward_pre_hook(
                lambda _, inputs, name=name: shapes.__setitem__(
                    name, torch.Size((batch, *inputs[0].shape[1:]))
                )
            )
    with torch.no_grad():
        model(torch.zeros(1, 3, 224, 224))
    modules = dict(model.named_modules())
    rows = [convolution_row(name, modules[name], shape) for name, shape in shapes.items()]
    rows.append(gemm_rows("resnet50", "fc", batch, 2048, 1000))
    tokens = 8192
    for layer, inputs, outputs in (
        ("attention_qkv", 4096, 6144),
        ("projection", 4096, 4096),
        ("up", 4096, 28672),
        ("down", 14336, 4096),
        ("head", 4096, 128256),
    ):
        rows.append(gemm_rows("llama3_8b", layer, tokens, inputs, outputs))
    rows.append(attention_row("llama3_8b", tokens, 32, 8, 128))
    return rows


def write(path: Path, rows: list[dict]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"wrote {path}: {len(rows)} rows", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="Folder of the CSV files.")
    parser.add_argument("--batch", type=int, default=32, help="Samples per GPU of ResNet-50.")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    torch.backends.cudnn.benchmark = True
    print(torch.cuda.get_device_name(), torch.__version__, flush=True)
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    write(chosen.out / "traffic.csv", measure_traffic(sms))
    write(chosen.out / "interference.csv", measure_interference(Traffic(), sms))
    torch.cuda.empty_cache()
    write(chosen.out / "layers.csv", measure_layers(chosen.batch))


main()
