"""Trains the decoder of llama_fsdp.py with tensor and sequence parallelism, and FSDP2."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from llama_fsdp import Decoder, arguments
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)


def divided(model, mesh):
    """Divides the weights of a decoder among the ranks of a mesh, and tokens between blocks."""
    rows, columns = RowwiseParallel(output_layouts=Shard(1)), ColwiseParallel()
    words = RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1))
    scores = ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate())
    plan = {"words": words, "norm": SequenceParallel(), "scores": scores}
    parallelize_module(model, mesh, {name: plan[name] for name in plan if getattr(model, name)})
    gather = PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),))
    more = PrepareModuleInput(
        input_layouts=(Shard(1), None), desired_input_layouts=(Replicate(), None)
    )
    for layer in model.layers:
        inner = dict.fromkeys(("attention.queries", "attention.keys", "attention.values"), columns)
        inner |= dict.fromkeys(("forward_part.gate", "forward_part.up"), columns)
        inner |= {"attention.out": rows, "forward_part.down": rows}
        inner |= {"attention": more, "forward_part": gather}
        inner |= {"norm1": SequenceParallel(), "norm2": SequenceParallel()}
        parallelize_module(layer, mesh, inner)


def main():
    options = arguments(tensor=8)
    dist.init_process_group("nccl")
    shape = (dist.get_world_size() // options.tensor, options.tensor)
    mesh = init_device_mesh("cuda", shape, mesh_dim_names=("data", "tensor"))
    with torch.device("meta"):
        model = Decoder(options)
    divided(model, mesh["tensor"])
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in [*model.layers, model]:
        fully_shard(layer, mesh=mesh["data"], mp_policy=policy)
    model.to_empty(device="cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    for _ in range(10):
        words = torch.randint(options.vocabulary, (1, options.tokens + 1), device="cuda")
        scores = model(words[:, :-1]).flatten(0, 1).float()
        F.cross_entropy(scores, words[:, 1:].flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
