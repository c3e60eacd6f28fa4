"""Preloads and precomputes what all workers share, before they are forked."""

from __future__ import annotations

import tutti.conditions
import tutti.platform
import tutti.recordings
import tutti.sweep.worker  # noqa: F401 - imported to preload it
from tutti.sweep.version import simulator

simulator()
