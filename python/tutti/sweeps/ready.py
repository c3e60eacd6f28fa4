"""Preloads and precomputes what all workers share, before they are forked."""

from __future__ import annotations

from tutti.sweeps.version import simulator

simulator()
