"""Topologies as text: a family with its argument, then keys with values."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tutti.base.files.mistakes import did_you_mean, mistake
from tutti.topologies.graph import families

if TYPE_CHECKING:
    from collections.abc import Iterable

EXAMPLE = "torus:4x4x4,rate=25GB/s,latency=500ns"
_HEAD = re.compile(r"([A-Za-z_][A-Za-z0-9_]*):")
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.\[\]]*(?==)")
_SYNONYMS = {"link": "rate", "bandwidth": "rate", "bw": "rate", "lat": "latency"}


def is_notation(text: str) -> bool:
    """Returns whether a topology is given as a notation, not by name or path."""
    return _HEAD.match(text) is not None and not text.endswith(".toml")


def split(
    text: str, keys: Iterable[str], *, source: str, listed: str = ""
) -> tuple[str, dict[str, str]]:
    """Splits a notation into the topology and the text of each key.

    Args:
        text: The notation.
        keys: First parts of the keys that may follow the topology.
        source: The file or option, for messages.
        listed: The list of the keys in messages; if absent, that of `keys`.

    Raises:
        ConfigError: The family or a key is unknown, or a key appears twice.
    """
    family = text.partition(":")[0]
    arguments = _arguments(family, source)
    topology, *parts = text.split(",")
    given: dict[str, str] = {}
    for part in parts:
        found = _KEY.match(part.strip())
        key = found[0] if found else ""
        first = key.partition(".")[0].partition("[")[0]
        # The `g` of a dragonfly precedes the `g` of LogGP.
        if not given and (not key or key in arguments):
            topology += f",{part}"
        elif key and first in keys:
            if key in given:
                raise mistake(f"`{key}` appears twice", source=source, key=key)
            given[key] = part.partition("=")[2].strip()
        else:
            family_keys = f"a key of the family ({', '.join(sorted(arguments))}), "
            known = [*sorted(arguments), *keys]
            raise mistake(
                f"unknown key `{key or part.strip()}`",
                source=source,
                expected=(family_keys if arguments else "") + (listed or ", ".join(keys)),
                hint=did_you_mean(_SYNONYMS.get(key, key), known),
            )
    return topology, given


def _arguments(family: str, source: str) -> set[str]:
    """Returns the keys in the argument of a family, such as ``k`` and ``n`` of a fat tree.

    Raises:
        ConfigError: The family is unknown.
    """
    known = {one.name: one for one in families()}
    if family not in known:
        raise mistake(
            f"unknown family of topologies `{family}`",
            source=source,
            expected=f"one of {', '.join(known)}, as in {EXAMPLE}",
            hint=did_you_mean(family, known) or "a platform's name has no `:`",
        )
    # A hierarchy contains other families.
    inner = known.values() if family == "hierarchical" else [known[family]]
    return {key for one in inner for key in re.findall(r"(\w+)=", one.argument)}
