"""Finds the known name, or the file, that is closest to an unknown one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_CLOSE: Final = 0.6
_CLOSE_FILE: Final = 0.7
"""The least similarity of two file names without their suffixes, for a hint."""
_VERY_CLOSE_FILE: Final = 0.9
"""The same for names whose suffixes differ, too."""
_AROUND: Final = re.compile(r"^(mpi|osu|imb)_?i?|(_?perf|_?block|v)$")
"""Prefixes and suffixes of collectives in MPI and in the benchmarks of OSU, IMB and NVIDIA."""
_LEAST_START: Final = 4
"""Least letters of a word that may be the start of a name."""
_SHORT: Final = {"bcast": "broadcast"}


def meant(word: str, known: Iterable[str]) -> str:
    """Returns the closest known name, or "".

    The shortest name of which the word is a part, such as ``h100`` of ``dgx_h100``, comes first,
    then the shortest that starts with it. Names of collectives in MPI and in
    benchmarks, such as ``MPI_Ibcast``, ``osu_alltoall`` and ``reduce_perf``, are recognised,
    although their letters may be closer to another collective.
    """
    from difflib import get_close_matches

    names = list(known)
    bare = {_bare(name): name for name in names}
    inner = _AROUND.sub("", word.lower())
    for spelt in (word.lower(), inner, inner.removesuffix("v")):
        found = bare.get(_bare(_SHORT.get(spelt, spelt)))
        if found:
            return found
    if len(word) >= _LEAST_START:
        parts = [name for name in names if word.lower() in name.split("_")]
        started = parts or [name for name in names if name.startswith(word.lower())]
        if started:
            return min(started, key=len)
    close = get_close_matches(word, names, n=1, cutoff=_CLOSE)
    return close[0] if close else ""


def near(path: Path) -> str:
    """Returns a hint at a file with a similar name, ignoring a suffix that all files share."""
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
