"""Policies of text workloads of ASTRA-sim 1: the dimensions in which collectives run.

A policy separates collectives of activations (forward pass and input gradients) from those of
weights. Policies of transformers name the number of NPUs that share the weights of a model; these
fill the first dimensions. `HYBRID_TRANSFORMER_FWD_IN_BCKWD` repeats forward passes from checkpoints
on. SimAI's AICB adds further arguments.

Source: ASTRA-sim 1.0, ``Workload.cc`` (decode_involved_dimensions, initialize_workload,
iterate_hybrid_parallel_Transformer_fwd_in_bckwd) and ``Sys.cc`` (break_dimension); ``Workload.cc``
of aliyun/SimAI cef83f9d.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tutti.base.files.limits import parse_count
from tutti.base.files.mistakes import mistake, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tutti.base.errors import ConfigError

EMBEDDING = ("HYBRID_DLRM", "HYBRID_DLRM_ENHANCED")
CUSTOMIZED = "HYBRID_CUSTOMIZED"
_OF_SIMAI = "HYBRID_TRANSFORMER_FWD_IN_BCKWD"
"""The policy of all files of AICB with groups; ASTRA-sim's sample has no all-gather."""
_TRANSFORMERS = ("HYBRID_TRANSFORMER", _OF_SIMAI)
_BY_LAYER = ("DATA", "MODEL", "HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA")
"""Policies of a layer with `HYBRID_CUSTOMIZED`."""
_SKIP_FIRST = ("MODEL", "HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA")
"""Policies without the collective of the first layer's input gradient."""
_POLICIES = ("MICRO", *_BY_LAYER, *EMBEDDING, *_TRANSFORMERS, CUSTOMIZED)
_NOT_MODELLED = {"DISTRIBUTED_INFERENCE": "inference has no backward pass"}
_GROUP = "model_parallel_NPU_group"
_LISTS = ("checkpoints", "checkpoint_initiates")
_OF_PIPELINES = ("vpp", "ga", "pp_comm")
"""Arguments without effect on a single pipeline stage."""
_NUMBERS = (_GROUP, "ep", "pp", "all_gpus", *_OF_PIPELINES)
_MOST = 1 << 53


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Where the collectives of a layer run.

    Attributes:
        name: The policy.
        activations: The dimensions of collectives of activations, a bit each; 0 for none.
        weights: The dimensions of collectives of weights, likewise.
        experts: The NPUs among which experts are divided; None if the file does not state it.
        gathers_total: Whether sizes of all-gathers are totals, as in SimAI, and not the part of an
            NPU.
        repeated: Layers whose forward passes are repeated, as the first and the one after the last;
            the backward pass of the latter waits for them.
        remarks: What has no effect.
    """

    name: str
    activations: int = 0
    weights: int = 0
    experts: int | None = None
    gathers_total: bool = False
    repeated: tuple[tuple[int, int], ...] = ()
    remarks: tuple[str, ...] = field(default=(), compare=False)

    @property
    def skips_first(self) -> bool:
        """Whether the input gradient of the first layer has no collective."""
        return self.name in _SKIP_FIRST

    def everywhere(self, dimensions: int) -> Policy:
        """Returns the policy with collectives over all dimensions."""
        every = (1 << dimensions) - 1
        return replace(self, activations=every, weights=every)


def read_policy(words: Sequence[str], sizes: Sequence[int], source: str) -> Policy:
    """Returns the policy of the first line of a file; `sizes` are NPUs per dimension.

    Raises:
        ConfigError: The policy or an argument is unknown or not modelled.
    """
    name, *arguments = words
    if name in _NOT_MODELLED:
        raise _refused(name, f"not modelled: {_NOT_MODELLED[name]}", "another policy", source)
    if name not in _POLICIES:
        raise mistake("unknown policy", source=source, key="line 1", value=shown(name),
                      expected=", ".join(_POLICIES))  # fmt: skip
    if name in _TRANSFORMERS:
        return _transformer(name, _arguments(arguments, source), sizes, source)
    if arguments and name not in EMBEDDING:
        problem = f"arguments of {name} are not modelled"
        value = shown(" ".join(arguments))
        expected = "the policy alone"
        raise mistake(problem, source=source, key="line 1", value=value, expected=expected)
    return _simple(name, len(sizes))


def policy_of_layer(name: str, dimensions: int, key: str, source: str) -> Policy:
    """Returns the policy of a layer with `HYBRID_CUSTOMIZED`.

    Raises:
        ConfigError: The policy is not one of a layer.
    """
    if name not in _BY_LAYER:
        problem = "is not modelled as the policy of a layer"
        if name not in (*_POLICIES, *_NOT_MODELLED):
            problem = "unknown policy"
        expected = ", ".join(_BY_LAYER)
        raise mistake(problem, source=source, key=key, value=shown(name), expected=expected)
    return _simple(name, dimensions)


def _simple(name: str, dimensions: int) -> Policy:
    every = (1 << dimensions) - 1
    inner, outer = every & 1, every & ~1
    activations, weights = {
        "MICRO": (every, every),
        "MODEL": (every, 0),
        "HYBRID_DATA_MODEL": (inner, outer),
        "HYBRID_MODEL_DATA": (outer, inner),
    }.get(name, (0, every))
    return Policy(name=name, activations=activations, weights=weights)


def _transformer(
    name: str, arguments: dict[str, list[int]], sizes: Sequence[int], source: str
) -> Policy:
    stated = {key: values[0] for key, values in arguments.items()}
    if _GROUP not in stated:
        raise _refused(name, f"has no `{_GROUP}: N`", "the number of NPUs that share a model",
                       source)  # fmt: skip
    for key, problem in (
        ("pp", "a pipeline of several stages is not modelled"),
        ("ep", "experts on several NPUs are not modelled"),
    ):
        if stated.get(key, 1) > 1:
            raise _refused(f"`{key}: {stated[key]}`", problem, f"{key}: 1", source)
    npus = math.prod(sizes)
    if stated.get("all_gpus", npus) != npus:
        problem = f"the network has {npus:,} NPUs"
        raise _refused(f"`all_gpus: {stated['all_gpus']}`", problem, "equal numbers", source)
    inner = _leading(stated[_GROUP], sizes, source)
    unused = [key for key in _OF_PIPELINES if stated.get(key, 0) > 0]
    remark = f"ignored arguments of {name}, which do not affect time: {', '.join(unused)}"
    return Policy(
        name=name,
        activations=(1 << inner) - 1,
        weights=(1 << len(sizes)) - (1 << inner),
        experts=stated.get("ep"),
        gathers_total=name == _OF_SIMAI,
        repeated=_repeated(name, arguments, source),
        remarks=(remark,) if unused else (),
    )


def _repeated(
    name: str, arguments: dict[str, list[int]], source: str
) -> tuple[tuple[int, int], ...]:
    """Returns the layers whose forward passes are repeated.

    Raises:
        ConfigError: The policy repeats none, or a repetition does not start at a checkpoint.
    """
    checkpoints, ends = (sorted(arguments.get(key, [0])[1:]) for key in _LISTS)
    if ends and name != _OF_SIMAI:
        raise _refused(f"`{_LISTS[1]}`", f"{name} repeats no forward passes", _OF_SIMAI, source)
    found = []
    for end in ends:
        start = max((layer for layer in checkpoints if layer < end), default=-1)
        inside = any(start < other < end for other in ends)
        if start < 0 or end in checkpoints or inside or ends.count(end) > 1:
            problem = "does not start at a checkpoint before it"
            expected = "a checkpoint before each of these layers"
            raise _refused(f"`{_LISTS[1]}`: layer {end}", problem, expected, source)
        found.append((start, end))
    return tuple(found)


def _leading(group: int, sizes: Sequence[int], source: str) -> int:
    """Returns the number of first dimensions whose NPUs are a group.

    Raises:
        ConfigError: A group is part of a dimension, which ASTRA-sim divides, or larger than all.
    """
    npus = 1
    for count in range(len(sizes) + 1):
        if npus == group:
            return count
        if npus > group or count == len(sizes):
            break
        npus *= sizes[count]
    shape = " x ".join(map(str, sizes))
    problem = f"groups that do not span complete first dimensions of {shape} are not modelled"
    if group > math.prod(sizes):
        problem = f"the network has {math.prod(sizes):,} NPUs"
    starts = [math.prod(sizes[:count]) for count in range(len(sizes) + 1)]
    expected = " or ".join(map(str, dict.fromkeys(starts)))
    raise _refused(f"`{_GROUP}: {group}`", problem, expected, source)


def _arguments(words: Sequence[str], source: str) -> dict[str, list[int]]:
    """Returns the values of each argument: ``name: value``, or a count and that many layers.

    Raises:
        ConfigError: An argument is unknown, repeated, or has no number.
    """
    found: dict[str, list[int]] = {}
    remaining = list(words)[::-1]
    while remaining:
        word = remaining.pop()
        name = word.removesuffix(":")
        if name not in (*_NUMBERS, *_LISTS) or name in found:
            problem = "argument appears twice" if name in found else "unknown argument"
            expected = ", ".join((*_NUMBERS, *_LISTS))
            raise mistake(problem, source=source, key="line 1", value=shown(word),
                          expected=expected)  # fmt: skip
        found[name] = [_number(name, remaining, source)]
        if name in _LISTS:
            layers = min(found[name][0], len(remaining) + 1)
            found[name] += [_number(name, remaining, source) for _ in range(layers)]
    return found


def _number(name: str, remaining: list[str], source: str) -> int:
    word = remaining.pop() if remaining else ""
    number = parse_count(word, _MOST)
    if number is None:
        problem = f"`{name}` has no number"
        raise mistake(problem, source=source, key="line 1", value=shown(word), expected="a number")
    return number


def _refused(what: str, problem: str, expected: str, source: str) -> ConfigError:
    return mistake(f"{what}: {problem}", source=source, key="line 1", expected=expected)
