"""Reads text workloads of ASTRA-sim 1: a line per layer, with times and collectives.

The first line is the policy, the second the number of layers. A layer has twelve columns: name and
dependency, then time, collective and bytes of forward pass, input gradient and weight gradient, and
last the time of the update. Times are cycles of one nanosecond, as in ASTRA-sim 1; its converter to
Chakra reads them as microseconds. All NPUs participate in each collective, as after that
conversion. With DLRM policies, the first layer is the embedding tables, and the number after the
policy is the last layer that does not depend on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tutti import _core
from tutti.base.files import limits
from tutti.base.files.mistakes import mistake, shown
from tutti.base.files.reader import parse_count, read_text

if TYPE_CHECKING:
    from pathlib import Path

_EMBEDDING = ("HYBRID_DLRM", "HYBRID_DLRM_ENHANCED")
_POLICIES = ("MICRO", "DATA", "MODEL", "HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA", *_EMBEDDING)
_COLLECTIVES = {
    "NONE": "",
    "ALLREDUCE": "all_reduce",
    "ALLGATHER": "all_gather",
    "REDUCESCATTER": "reduce_scatter",
    "ALLTOALL": "all_to_all",
}
_COLUMNS = 12
_MOST = (1 << 53) - 1

_Transfer = tuple[str, int, int, int]


def load_text(path: Path, sizes: tuple[int, ...], *, iterations: int = 1) -> _core.TrainingProgram:
    """Reads the program of every NPU of a network with `sizes` NPUs per dimension.

    Raises:
        ConfigError: The file is invalid. The message has the line.
        WorkloadError: The layers do not form a training loop.
    """
    source = str(path)
    expected = "a text workload of ASTRA-sim 1"
    text = read_text(path, limits.Bytes.LOG, expected, line=limits.LOG_LINE)
    lines = [line.split() for line in text.splitlines()]
    numbered = [(number, words) for number, words in enumerate(lines, start=1) if words]
    if len(numbered) < 2:
        raise mistake("has no layers", source=source, expected="a policy, a count, and layers")
    (_, policy), (_, count), *rows = numbered
    if policy[0] not in _POLICIES:
        expected = ", ".join(_POLICIES)
        problem = "unknown policy"
        value = shown(policy[0])
        raise mistake(problem, source=source, key="line 1", value=value, expected=expected)
    if policy[0] not in _EMBEDDING and len(policy) > 1:
        problem = f"arguments of {policy[0]} are not modelled"
        value = shown(" ".join(policy[1:]))
        raise mistake(
            problem, source=source, key="line 1", value=value, expected="the policy alone"
        )
    if count != [str(len(rows))]:
        problem = f"states {' '.join(count)[:20]} layers, but {len(rows)} follow"
        raise mistake(problem, source=source, key="line 2")
    layers = [_layer(words, f"line {number}", source, len(sizes)) for number, words in rows]
    embedding = None
    if policy[0] in _EMBEDDING:
        embedding = _embedding(layers.pop(0), policy, source)
    return _core.TrainingProgram(layers, iterations=iterations, overlap=True, embedding=embedding)


def _layer(words: list[str], key: str, source: str, dimensions: int) -> dict[str, Any]:
    if len(words) != _COLUMNS:
        problem = f"has {len(words)} columns"
        raise mistake(problem, source=source, key=key, expected=f"{_COLUMNS} columns")
    if words[1] != "-1":
        problem = f"the layer depends on layer {words[1]}, which is not modelled"
        hint = "ASTRA-sim ignores that column: write -1"
        raise mistake(problem, source=source, key=key, expected="-1", hint=hint)
    mask = (1 << dimensions) - 1

    def transfer(at: int) -> _Transfer | None:
        if words[at] not in _COLLECTIVES:
            expected = ", ".join(_COLLECTIVES)
            problem, value = "unknown collective", shown(words[at])
            raise mistake(problem, source=source, key=key, value=value, expected=expected)
        size = _number(words[at + 1], key, source)
        name = _COLLECTIVES[words[at]]
        if name and not size:
            raise mistake(f"{words[at]} has a size of 0 B", source=source, key=key)
        return (name, mask, size, 0) if name else None

    forward, backward = transfer(3), transfer(6)
    return {
        "name": words[0],
        "forward": 1000 * _number(words[2], key, source),
        "input_gradient": 1000 * _number(words[5], key, source),
        "weight_gradient": 1000 * _number(words[8], key, source),
        "update": 1000 * _number(words[11], key, source),
        "before_forward": None,
        "before_backward": None,
        "covered_forward": 0,
        "covered_backward": 0,
        "with_forward": [],
        "with_backward": [],
        "after_forward": [forward] if forward else [],
        "after_input_gradient": [backward] if backward else [],
        "after_weight_gradient": transfer(9),
    }


def _number(text: str, key: str, source: str) -> int:
    number = parse_count(text, _MOST)
    if number is None:
        problem, expected = "is not an integer in range", f"0 to {_MOST}"
        raise mistake(problem, source=source, key=key, value=shown(text), expected=expected)
    return number


def _embedding(layer: dict[str, Any], policy: list[str], source: str) -> dict[str, Any]:
    bottom = next(
        (int(word) for word in policy[1:] if parse_count(word, 1 << 31) is not None), None
    )
    exchanged = layer["after_forward"]
    if bottom is None or not exchanged or exchanged[0][0] != "all_to_all":
        problem = "incomplete DLRM policy"
        expected = "the number of the last bottom layer, and ALLTOALL in the first layer"
        raise mistake(problem, source=source, key="line 1", expected=expected)
    return {
        "bottom": bottom,
        "lookup": layer["forward"],
        "first_lookup": layer["forward"],
        "update": layer["update"],
        "bytes": exchanged[0][2],
        "background": policy[0] == "HYBRID_DLRM_ENHANCED",
    }
