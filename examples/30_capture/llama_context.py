"""Trains the decoder of llama_fsdp.py with context parallelism (ring attention), and FSDP2."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from llama_fsdp import Decoder, arguments
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor.experimental import context_parallel
from torch.distributed.tensor.experimental._attention import set_rotate_method

CONTEXT = 4


def main():
    options = arguments()
    dist.init_process_group("nccl")
    shape = (dist.get_world_size() // CONTEXT, CONTEXT)
    mesh = init_device_mesh("cuda", shape, mesh_dim_names=("data", "context"))
    both = mesh["data", "context"]._flatten("both")
    set_rotate_method("alltoall")
    with torch.device("meta"):
        model = Decoder(options)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in [*model.layers, model]:
        fully_shard(layer, mesh=both, mp_policy=policy)
    model.to_empty(device="cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    for _ in range(10):
        words = torch.randint(options.vocabulary, (1, options.tokens), device="cuda")
        following = torch.randint(options.vocabulary, (1, options.tokens), device="cuda")
        with context_parallel(mesh["context"], buffers=[words, following], buffer_seq_dims=[1, 1]):
            scores = model(words).flatten(0, 1).float()
            F.cross_entropy(scores, following.flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
