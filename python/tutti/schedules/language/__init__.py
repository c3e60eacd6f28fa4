"""A language for collectives: statements on chunks, which compile to verified schedules.

MSCCLang (Cowan et al., ASPLOS 2023) introduced programs of copies and reductions of chunks, which a
compiler turns into the program of each rank. `docs/guides/write-a-schedule.md` shows how to use
this package.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
