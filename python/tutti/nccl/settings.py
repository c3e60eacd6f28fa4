"""NCCL's environment variables that change the choice, in NCCL's syntax."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from tutti.base.files.mistakes import did_you_mean, mistake, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tutti.nccl.versions import Version

ALGORITHMS = ("Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT")
"""NCCL's algorithms, in the order in which equal times are resolved."""
PROTOCOLS = ("LL", "LL128", "Simple")
COLLECTIVES = {
    "broadcast": "Broadcast",
    "reduce": "Reduce",
    "all_gather": "AllGather",
    "reduce_scatter": "ReduceScatter",
    "all_reduce": "AllReduce",
}
"""NCCL's names of the collectives."""


@dataclass(frozen=True)
class Settings:
    """Environment variables of NCCL; each field is that of ``NCCL_`` and its name in capitals.

    Attributes:
        algo: The list of algorithms, such as ``^Ring`` or ``Ring;allreduce:Tree,NVLS``.
        proto: The list of protocols, in the same syntax.
        nthreads: The maximum number of threads per block for LL and Simple.
        ll128_nthreads: The maximum number of threads per block for LL128.
        min_nchannels: The minimum number of channels.
        max_nchannels: The maximum number of channels.
        min_ctas: The minimum number of CTAs, which limits channels of NVLS too.
        max_ctas: The maximum number of CTAs, which limits channels of NVLS too.
        nvls_enable: 0 disables NVLink SHARP.
        pat_enable: 0 disables PAT, 1 enables it; 2 enables it for one GPU per node.
        net_overhead: The overhead of a network post in ns; None is that of the CPU.
    """

    algo: str = ""
    proto: str = ""
    nthreads: int | None = None
    ll128_nthreads: int | None = None
    min_nchannels: int | None = None
    max_nchannels: int | None = None
    min_ctas: int | None = None
    max_ctas: int | None = None
    nvls_enable: int = 2
    pat_enable: int = 2
    net_overhead: int | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """Reads the variables of an environment; ignores those that do not change the choice.

        Raises:
            ConfigError: A number is invalid.
        """
        found: dict[str, str | int] = {}
        for field in fields(cls):
            variable = f"NCCL_{field.name.upper()}"
            text = environment.get(variable, "").strip()
            if not text:
                continue
            found[field.name] = text if field.type == "str" else _number(text, variable)
        return cls(**found)  # type: ignore[arg-type]

    @classmethod
    def of_assignments(
        cls, assignments: Iterable[str], *, algo: str = "", proto: str = ""
    ) -> Settings:
        """Reads assignments such as ``NCCL_MIN_NCHANNELS=8``.

        Args:
            assignments: Names and values.
            algo: The value of ``NCCL_ALGO``, unless an assignment has one.
            proto: The value of ``NCCL_PROTO``, likewise.

        Raises:
            ConfigError: A variable does not change the choice, or a number is invalid.
        """
        environment = {"NCCL_ALGO": algo, "NCCL_PROTO": proto}
        variables = sorted(f"NCCL_{field.name.upper()}" for field in fields(cls))
        for text in assignments:
            name, equals, value = text.partition("=")
            if not equals or name not in variables:
                raise mistake(
                    f"`{name}` does not change the choice" if equals else "lacks the value",
                    source="--env",
                    value=shown(text),
                    expected="NAME=VALUE with one of " + ", ".join(variables),
                )
            environment[name] = value
        return cls.from_environment(environment)


def _number(text: str, variable: str) -> int:
    try:
        value = int(text, 0)
    except ValueError:
        value = -1
    if value < 0:
        raise mistake(
            "is not a number", source=variable, value=shown(text), expected="a number from 0 on"
        )
    return value


def enabled(
    text: str, variable: str, names: tuple[str, ...], collective: str, rules: Version
) -> frozenset[str] | None:
    """Returns the names that a list enables for a collective; None if it does not name it.

    A list is names with commas; ``^`` before it inverts it. From NCCL 2.24 on, lists for one
    collective follow a semicolon: ``Ring;allreduce:Tree``.

    Raises:
        ConfigError: A name is unknown, or the version has no lists for one collective.
    """
    found: frozenset[str] | None = None
    for position, part in enumerate(filter(None, text.split(";"))):
        prefix, colon, names_part = part.partition(":")
        if (colon or position) and not rules.collectives_in_lists:
            raise _invalid(text, variable, f"NCCL {rules.name} has no lists for one collective")
        if not colon:
            names_part = prefix
            if position:
                raise _invalid(text, variable, "only the first list may lack a collective")
        elif not _is_collective(prefix, text, variable, collective):
            _listed(names_part, text, variable, names)
            continue
        found = _listed(names_part, text, variable, names)
    return found


def _is_collective(prefix: str, text: str, variable: str, collective: str) -> bool:
    known = {name.lower() for name in COLLECTIVES.values()}
    if prefix.lower() not in known:
        raise _invalid(text, variable, f"unknown collective `{prefix}`", prefix, known)
    return prefix.lower() == COLLECTIVES[collective].lower()


def _listed(part: str, text: str, variable: str, names: tuple[str, ...]) -> frozenset[str]:
    known = {name.lower(): name for name in names}
    inverted = part.startswith("^")
    found = set()
    for word in filter(None, part.removeprefix("^").split(",")):
        if word.lower() not in known:
            raise _invalid(text, variable, f"unknown name `{word}`", word, set(names))
        found.add(known[word.lower()])
    return frozenset(names) - found if inverted else frozenset(found)


def _invalid(
    text: str, variable: str, problem: str, word: str = "", known: set[str] | None = None
) -> Exception:
    return mistake(
        problem,
        source=variable,
        value=shown(text),
        expected=", ".join(sorted(known)) if known else "names with commas, such as ^Ring or Tree",
        hint=did_you_mean(word, known) if known else "",
    )
