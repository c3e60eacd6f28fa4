"""Captures a training step of a PyTorch program without GPUs, and prices it on a cluster."""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
