"""Trains a decoder like Llama 3 with FSDP2: an ordinary PyTorch program for torchrun."""

import argparse
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard


def rotated(x, angles):
    """Applies rotary embeddings to (batch, tokens, heads, width)."""
    even, odd = x.float().reshape(*x.shape[:-1], -1, 2).unbind(-1)
    cos, sin = angles.cos()[:, None], angles.sin()[:, None]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2).type_as(x)


class Attention(nn.Module):
    def __init__(self, options):
        super().__init__()
        width, self.head = options.width, options.width // options.heads
        self.queries = nn.Linear(width, width, bias=False)
        self.keys = nn.Linear(width, options.kv_heads * self.head, bias=False)
        self.values = nn.Linear(width, options.kv_heads * self.head, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x, angles):
        q, k, v = (f(x).unflatten(-1, (-1, self.head))
                   for f in (self.queries, self.keys, self.values))  # fmt: skip
        q, k, v = (one.transpose(1, 2) for one in (rotated(q, angles), rotated(k, angles), v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.out(y.transpose(1, 2).flatten(-2))


class FeedForward(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.gate = nn.Linear(options.width, options.wide, bias=False)
        self.up = nn.Linear(options.width, options.wide, bias=False)
        self.down = nn.Linear(options.wide, options.width, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(options.width), nn.RMSNorm(options.width)
        self.attention, self.forward_part = Attention(options), FeedForward(options)

    def forward(self, x, angles):
        x = x + self.attention(self.norm1(x), angles)
        return x + self.forward_part(self.norm2(x))


def angles_of(tokens, head, device):
    """Returns the angles of rotary embeddings, (tokens, head / 2)."""
    powers = torch.arange(0, head, 2, device=device) / head
    return torch.outer(torch.arange(tokens, device=device), 500_000.0**-powers)


class Decoder(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.words = nn.Embedding(options.vocabulary, options.width)
        self.layers = nn.ModuleList(Block(options) for _ in range(options.layers))
        self.norm = nn.RMSNorm(options.width)
        self.scores = nn.Linear(options.width, options.vocabulary, bias=False)
        self.head = options.width // options.heads

    def forward(self, tokens):
        angles = angles_of(tokens.shape[1], self.head, tokens.device)
        x = self.words(tokens)
        for layer in self.layers:
            x = layer(x, angles)
        return self.scores(self.norm(x))


def arguments():
    """Returns the shape of the decoder; by default Llama 3 8B."""
    parser = argparse.ArgumentParser()
    for name, default in (("layers", 32), ("width", 4096), ("heads", 32), ("kv-heads", 8),
                          ("wide", 14336), ("vocabulary", 128256), ("tokens", 8192)):  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--micro-batches", type=int, default=1, help="gradient accumulation")
    parser.add_argument("--checkpoint", action="store_true", help="recompute the blocks")
    return parser.parse_args()


def main():
    options = arguments()
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    with torch.device("meta"):
        model = Decoder(options)
    if options.checkpoint:
        for number, layer in enumerate(model.layers):
            model.layers[number] = checkpoint_wrapper(layer)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in [*model.layers, model]:
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    model.to_empty(device="cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    for _ in range(10):
        for number in range(options.micro_batches):
            model.set_requires_gradient_sync(number + 1 == options.micro_batches)
            words = torch.randint(options.vocabulary, (1, options.tokens + 1), device="cuda")
            scores = model(words[:, :-1]).flatten(0, 1).float()
            F.cross_entropy(scores, words[:, 1:].flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
