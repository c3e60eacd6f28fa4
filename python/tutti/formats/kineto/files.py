"""Finds the files of all ranks of a profile, and the rank of each."""

from __future__ import annotations

import re
from glob import has_magic
from typing import TYPE_CHECKING

from tutti.base.files.reader import missing
from tutti.formats.formats import INFERRED, head, named
from tutti.formats.kineto.profile import EXPECTED
from tutti.workloads.errors import TraceError

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.formats.kineto.profile import Profile

ENDINGS = (".json", ".json.gz")
_RANK = re.compile(r"(?i)(rank[-_]?)(\d{1,7})")


def job_name(path: Path) -> str:
    """Returns a name for all ranks: that of the file without its rank, or of the folder."""
    if has_magic(path.name):
        return path.resolve().parent.name
    name = re.sub(r"(?:\.pt)?(?:\.trace)?\.json(?:\.gz)?$", "", _RANK.sub("", path.name))
    return name.strip("-_.*?") or path.resolve().parent.name


def files_of(path: Path) -> list[Path]:
    """Returns the files of all ranks.

    Raises:
        ConfigError: There is no file.
    """
    if has_magic(path.name):
        found = sorted(path.parent.glob(path.name))
    elif path.is_dir():
        found = _profiles_of(path)
    elif path.is_file():
        return _siblings(path)
    else:
        found = []
    if not found:
        raise missing(path, f"{EXPECTED}, a folder of them, or a pattern")
    return found


def _siblings(path: Path) -> list[Path]:
    """Returns the files of the ranks of a profile: those whose names differ in the rank.

    If no other name does, these are all profiles of the folder.
    """
    pattern = _RANK.sub(r"\1#", path.name)
    others = _profiles_of(path.parent)
    found = [each for each in others if _RANK.sub(r"\1#", each.name) == pattern]
    if len(found) < 2:
        found = others
    return found if path in found else [path]


def _profiles_of(folder: Path) -> list[Path]:
    matches = named("kineto", option="--from").matches
    return [
        each
        for each in sorted(folder.iterdir())
        if each.name.endswith(ENDINGS) and each.is_file() and matches and matches(head(each))
    ]


def rank_of(profile: Profile, *, is_alone: bool, lines: list[str]) -> int:
    """Returns the rank of a file.

    Raises:
        TraceError: Neither the file nor its name states it, and there are other files.
    """
    named_rank = _RANK.search(profile.source.name)
    stated = int(named_rank[2]) if named_rank else None
    if profile.rank is not None:
        if stated is not None and stated != profile.rank:
            text = f"{profile.source.name} is of rank {profile.rank}, not {stated} as in its name"
            lines.append(f"{INFERRED}{text}: `distributedInfo` has the rank")
        return profile.rank
    if stated is None and not is_alone:
        message = f"{profile.source}: no rank in `distributedInfo` or in the name of the file"
        raise TraceError(f"{message}: expected a name such as rank0.json", kind="no_profile")
    rank = 0 if stated is None else stated
    text = f"{profile.source.name} is of rank {rank}: it has no rank in `distributedInfo`"
    lines.append(f"{INFERRED}{text}")
    return rank
