"""Programs of MSCCL and MSCCL++, as formats of `tutti convert`."""
