"""Profiles of PyTorch (Kineto) as traces."""
