"""What workers have in common: loaded, and worked out, once, before they are forked off."""

from __future__ import annotations

import tutti.conditions
import tutti.platform
import tutti.recordings
import tutti.sweep.worker  # noqa: F401 - here to be loaded, as the others
from tutti.sweep.version import simulator

simulator()
