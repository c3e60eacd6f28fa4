"""Trains a small mixture of experts: expert parallelism of 8, and FSDP2."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from llama_fsdp import Decoder, arguments
from torch import nn
from torch.distributed._functional_collectives import all_to_all_single_autograd
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import Shard

RANKS = 8
"""Ranks with different experts."""
EXPERTS, TOP = 16, 2


class Experts(nn.Module):
    """The experts of this rank, for (experts, tokens, width)."""

    def __init__(self, options, count):
        super().__init__()
        width, wide = options.width, options.wide
        self.up = nn.Parameter(torch.empty(count, width, 2 * wide))
        self.down = nn.Parameter(torch.empty(count, wide, width))

    def forward(self, x):
        gate, up = torch.bmm(x, self.up).chunk(2, -1)
        return torch.bmm(F.silu(gate) * up, self.down)


class Mixture(nn.Module):
    """Experts on several ranks: each takes as many tokens of every rank (a fixed capacity)."""

    def __init__(self, options, group):
        super().__init__()
        self.group = group
        self.router = nn.Linear(options.width, EXPERTS, bias=False)
        self.experts = Experts(options, EXPERTS // RANKS)

    def exchanged(self, x):
        """Sends equal parts of (tokens, width) to all ranks."""
        parts = [len(x) // RANKS] * RANKS
        return all_to_all_single_autograd(x, parts, parts, self.group)

    def forward(self, x):
        tokens = x.flatten(0, 1)
        share, chosen = self.router(tokens).softmax(-1).topk(TOP)
        order = chosen.flatten().argsort(stable=True)
        sent = self.exchanged(tokens[order // TOP])
        mine = sent.unflatten(0, (RANKS, EXPERTS // RANKS, -1)).transpose(0, 1)
        done = self.experts(mine.flatten(1, 2)).unflatten(1, (RANKS, -1)).transpose(0, 1)
        back = self.exchanged(done.flatten(0, 2)) * share.flatten()[order, None]
        return torch.zeros_like(tokens).index_add(0, order // TOP, back).view_as(x)


def main():
    options = arguments()
    dist.init_process_group("nccl")
    shape = (dist.get_world_size() // RANKS, RANKS)
    mesh = init_device_mesh("cuda", shape, mesh_dim_names=("data", "expert"))
    both = mesh["data", "expert"]._flatten("both")
    with torch.device("meta"):
        model = Decoder(options)
        for layer in model.layers:
            layer.forward_part = Mixture(options, mesh["expert"].get_group())
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in model.layers:
        # A rank has fewer experts than their group has ranks, so that rows are divided.
        fully_shard(layer.forward_part.experts, mesh=mesh["data"], mp_policy=policy,
                    shard_placement_fn=lambda _: Shard(1))  # fmt: skip
    for layer in [*model.layers, model]:
        fully_shard(layer, mesh=both, mp_policy=policy)
    model.to_empty(device="cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for _ in range(10):
        words = torch.randint(options.vocabulary, (1, options.tokens + 1), device="cuda")
        scores = model(words[:, :-1]).flatten(0, 1).float()
        F.cross_entropy(scores, words[:, 1:].flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
