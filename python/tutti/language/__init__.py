"""A language for collectives: statements on chunks, which compile to verified schedules.

MSCCLang (Cowan et al., ASPLOS 2023) introduced programs of copies and reductions of chunks, which a
compiler turns into the program of each rank. `docs/guides/write-a-schedule.md` shows how to use
this package.
"""

from __future__ import annotations

from tutti.language.chunk import Chunk, SentChunk
from tutti.language.decompiler import decompile
from tutti.language.loading import load
from tutti.language.program import Exchange, Program, RankGroup

__all__ = ["Chunk", "Exchange", "Program", "RankGroup", "SentChunk", "decompile", "load"]
