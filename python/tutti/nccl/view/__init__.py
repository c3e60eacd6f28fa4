"""How choices of NCCL and diagnoses are shown."""
