"""The known name, or the file, that somebody meant who wrote another."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["meant", "near"]

_CLOSE: Final = 0.6
_CLOSE_FILE: Final = 0.7
"""How much alike two names of files are at least, without their suffix, where one may be meant by
the other."""
_VERY_CLOSE_FILE: Final = 0.9
"""The same, where suffixes differ too."""
_AROUND: Final = re.compile(r"^(mpi|osu|imb)_?i?|(_?perf|_?block|v)$")
"""What MPI, OSU's, IMB's and NVIDIA's benchmarks write around the name of a collective."""
_SHORT: Final = {"bcast": "broadcast"}


def meant(word: str, known: Iterable[str]) -> str:
    """The known name that is closest, or "".

    Collectives are found by the names that they have elsewhere, such as ``MPI_Ibcast``,
    ``osu_alltoall`` and ``reduce_perf``, which by their letters are far off or close to another.
    """
    from difflib import get_close_matches

    names = list(known)
    bare = {_bare(name): name for name in names}
    inner = _AROUND.sub("", word.lower())
    for spelt in (word.lower(), inner, inner.removesuffix("v")):
        found = bare.get(_bare(_SHORT.get(spelt, spelt)))
        if found:
            return found
    close = get_close_matches(word, names, n=1, cutoff=_CLOSE)
    return close[0] if close else ""


def near(path: Path) -> str:
    """A hint at a file of a close name, by what tells names apart: not by a suffix all have."""
    from difflib import get_close_matches

    try:
        names = [p.name for p in path.parent.iterdir()]
    except OSError:
        return f"the folder {path.parent} does not exist either"
    stems = {name.removesuffix(path.suffix): name for name in names if name.endswith(path.suffix)}
    close = get_close_matches(path.stem, list(stems), n=1, cutoff=_CLOSE_FILE)
    found = [stems[stem] for stem in close]
    found += get_close_matches(path.name, names, n=1, cutoff=_VERY_CLOSE_FILE)
    return f"did you mean `{found[0]}`?" if found else ""


def _bare(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
