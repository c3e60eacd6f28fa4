"""Trains the decoder of llama_fsdp.py in a pipeline of 4 stages with interleaved 1F1B."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from llama_fsdp import Block, angles_of, arguments
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, ScheduleInterleaved1F1B

STAGES, CHUNKS, MICRO_BATCHES = 4, 2, 8


class Chunk(nn.Module):
    """A model chunk: the embedding is in the first one, the classifier in the last one."""

    def __init__(self, options, index):
        super().__init__()
        last = index == STAGES * CHUNKS - 1
        blocks = options.layers // (STAGES * CHUNKS)
        self.head = options.width // options.heads
        self.words = nn.Embedding(options.vocabulary, options.width) if index == 0 else None
        self.layers = nn.ModuleList(Block(options) for _ in range(blocks))
        self.norm = nn.RMSNorm(options.width) if last else None
        self.scores = nn.Linear(options.width, options.vocabulary, bias=False) if last else None

    def forward(self, x):
        angles = angles_of(x.shape[1], self.head, x.device)
        x = x if self.words is None else self.words(x)
        for layer in self.layers:
            x = layer(x, angles)
        return x if self.scores is None else self.scores(self.norm(x))


def stage(options, index, group):
    """Returns a stage with the shapes of its inputs and outputs, else stages exchange them."""
    gpu = {"device": "cuda", "dtype": torch.bfloat16, "requires_grad": True}
    hidden = torch.empty(1, options.tokens, options.width, **gpu)
    words = torch.zeros(1, options.tokens, dtype=torch.int64, device="cuda")
    last = index == STAGES * CHUNKS - 1
    scores = torch.empty(1, options.tokens, options.vocabulary, **gpu) if last else hidden
    with torch.device("cuda"):
        chunk = Chunk(options, index).to(torch.bfloat16)
    return PipelineStage(
        chunk, index, STAGES * CHUNKS, torch.device("cuda"), group=group,
        input_args=(words if index == 0 else hidden,), output_args=(scores,),
    )  # fmt: skip


def loss(scores, words):
    return F.cross_entropy(scores.flatten(0, 1).float(), words.flatten())


def main():
    options = arguments()
    dist.init_process_group("nccl")
    shape = (STAGES, dist.get_world_size() // STAGES)
    mesh = init_device_mesh("cuda", shape, mesh_dim_names=("pipeline", "data"))
    rank, group = mesh["pipeline"].get_local_rank(), mesh["pipeline"].get_group()
    stages = [stage(options, rank + chunk * STAGES, group) for chunk in range(CHUNKS)]
    schedule = ScheduleInterleaved1F1B(stages, n_microbatches=MICRO_BATCHES, loss_fn=loss)
    parameters = [one for each in stages for one in each.submod.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=3e-4, fused=True)
    for _ in range(10):
        words = torch.randint(options.vocabulary, (MICRO_BATCHES, options.tokens), device="cuda")
        given = (words,) if rank == 0 else ()
        schedule.step(*given, **({"target": words} if rank == STAGES - 1 else {}))
        for one in parameters:
            dist.all_reduce(one.grad, group=mesh["data"].get_group())
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
