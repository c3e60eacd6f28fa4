from .chunk import Chunk as Chunk
from .chunk import SentChunk as SentChunk
from .decompiler import decompile as decompile
from .loading import load as load
from .program import Exchange as Exchange
from .program import Program as Program
from .program import RankGroup as RankGroup
