"""Trains the decoder of llama_fsdp.py in a pipeline with (interleaved) 1F1B and tensor parallelism.

By default 4 stages of 2 model chunks, and 8 micro-batches.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from llama_fsdp import Block, angles_of, arguments
from llama_tensor import divided
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleInterleaved1F1B


def blocks_of(options, index):
    """Returns the number of blocks of a chunk; the first and last ones have fewer."""
    total = options.stages * options.chunks
    each, more = divmod(options.layers, total)
    first = (total - more) // 2
    return each + (first <= index < first + more)


class Chunk(nn.Module):
    """A model chunk: the embedding is in the first one, the classifier in the last one."""

    def __init__(self, options, index):
        super().__init__()
        last = index == options.stages * options.chunks - 1
        self.tokens, self.head = options.tokens, options.width // options.heads
        self.words = nn.Embedding(options.vocabulary, options.width) if index == 0 else None
        self.layers = nn.ModuleList(Block(options) for _ in range(blocks_of(options, index)))
        self.norm = nn.RMSNorm(options.width) if last else None
        self.scores = nn.Linear(options.width, options.vocabulary, bias=False) if last else None

    def forward(self, x):
        angles = angles_of(self.tokens, self.head, x.device)
        x = x if self.words is None else self.words(x)
        for layer in self.layers:
            x = layer(x, angles)
        return x if self.scores is None else self.scores(self.norm(x))


def stage(options, index, mesh):
    """Returns a stage with the shapes of its inputs and outputs, else stages exchange them."""
    gpu = {"device": "cuda", "dtype": torch.bfloat16, "requires_grad": True}
    hidden = torch.empty(1, options.tokens // options.tensor, options.width, **gpu)
    words = torch.zeros(1, options.tokens, dtype=torch.int64, device="cuda")
    total = options.stages * options.chunks
    last = index == total - 1
    scores = torch.empty(1, options.tokens, options.vocabulary, **gpu) if last else hidden
    with torch.device("meta"):
        chunk = Chunk(options, index).to(torch.bfloat16)
    if options.tensor > 1:
        divided(chunk, mesh["tensor"])
    chunk.to_empty(device="cuda")
    return PipelineStage(
        chunk, index, total, torch.device("cuda"), group=mesh["pipeline"].get_group(),
        input_args=(words if index == 0 else hidden,), output_args=(scores,),
    )  # fmt: skip


def loss(scores, words):
    return F.cross_entropy(scores.flatten(0, 1).float(), words.flatten())


def main():
    options = arguments(stages=4, chunks=2, tensor=1, micro_batches=8)
    dist.init_process_group("nccl")
    data = dist.get_world_size() // (options.stages * options.tensor)
    names = ("pipeline", "data", "tensor")
    mesh = init_device_mesh("cuda", (options.stages, data, options.tensor), mesh_dim_names=names)
    rank = mesh["pipeline"].get_local_rank()
    stages = [stage(options, rank + chunk * options.stages, mesh)
              for chunk in range(options.chunks)]  # fmt: skip
    if options.chunks > 1:
        schedule = ScheduleInterleaved1F1B(stages, options.micro_batches, loss_fn=loss)
    else:
        schedule = Schedule1F1B(stages[0], options.micro_batches, loss_fn=loss)
    parameters = [one for each in stages for one in each.submod.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=3e-4, fused=True)
    for _ in range(10):
        size = (options.micro_batches, options.tokens)
        words = torch.randint(options.vocabulary, size, device="cuda")
        given = (words,) if rank == 0 else ()
        schedule.step(*given, **({"target": words} if rank == options.stages - 1 else {}))
        for one in parameters:
            gradient = one.grad.to_local() if hasattr(one.grad, "to_local") else one.grad
            dist.all_reduce(gradient, group=mesh["data"].get_group())
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
