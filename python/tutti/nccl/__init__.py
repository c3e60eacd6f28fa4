"""NCCL: its choice of algorithms, tuner files, and diagnosis of measured clusters."""
