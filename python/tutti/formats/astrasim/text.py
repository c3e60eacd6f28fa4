"""Reads text workloads of ASTRA-sim 1: a line per layer, with times and collectives.

The first line is the policy, the second the number of layers. A layer has twelve columns: name and
dependency, then time, collective and bytes of forward pass, input gradient and weight gradient, and
last the time of the update; with `HYBRID_CUSTOMIZED`, a policy follows. Times are cycles of one
nanosecond, as in ASTRA-sim 1; its converter to Chakra reads them as microseconds. Policies select
the dimensions of collectives, which that conversion drops: :mod:`tutti.formats.astrasim.policies`.
With DLRM policies, the first layer is the embedding tables, and the number after the policy is the
last layer that does not depend on them. The size of an all-gather is that of a part, as in
ASTRA-sim, but a total in files of SimAI.

Source: ``Workload.cc``, ``Layer.cc`` and ``Ring.cc`` of ASTRA-sim 1.0.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from tutti import _core
from tutti.base.files import limits
from tutti.base.files.limits import parse_count
from tutti.base.files.mistakes import mistake, shown
from tutti.base.files.reader import read_text
from tutti.formats.astrasim.policies import CUSTOMIZED, EMBEDDING, policy_of_layer, read_policy

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.formats.astrasim.policies import Policy

_COLLECTIVES = {
    "ALLREDUCE": "all_reduce",
    "ALLGATHER": "all_gather",
    "REDUCESCATTER": "reduce_scatter",
    "ALLTOALL": "all_to_all",
}
_NONE = "NONE"
_IGNORED = "BROADCAST"
"""A collective of SimAI's AICB, which neither SimAI nor ASTRA-sim performs."""
_FUSED = "ALLREDUCEALLTOALL"
_COLUMNS = 12
_MOST = (1 << 53) - 1
_INTEGER = re.compile(r"[+-]?[0-9]{1,9}")
_EXPERTS = re.compile(r"(?P<collective>[A-Z]+)_(?P<group>DP_EP|EP)")

_Part = Literal["activations", "weights"]


@dataclass(frozen=True)
class TextWorkload:
    """A text workload.

    Attributes:
        program: The program of every NPU.
        remarks: What has no effect, a line each.
    """

    program: _core.TrainingProgram
    remarks: tuple[str, ...]


def load_text(path: Path, sizes: tuple[int, ...], *, iterations: int = 1) -> TextWorkload:
    """Reads the program of every NPU of a network with `sizes` NPUs per dimension.

    Raises:
        ConfigError: The file is invalid. The message has the line.
        WorkloadError: The layers do not form a training loop.
    """
    source = str(path)
    expected = "a text workload of ASTRA-sim 1"
    text = read_text(path, limits.Bytes.LOG, expected, line=limits.LOG_LINE)
    lines = [row for row in enumerate(text.splitlines(), start=1) if row[1].strip()]
    if len(lines) < 2:
        raise mistake("has no layers", source=source, expected="a policy, a count, and layers")
    header, count = lines[0][1].split(), lines[1][1].strip()
    rows = lines[2:]
    policy = read_policy(header, sizes, source)
    if count != str(len(rows)):
        problem = f"states {count[:20]} layers, but {len(rows)} follow"
        raise mistake(problem, source=source, key="line 2")
    reader = _Reader(policy, sizes, source)
    # Words take many times the memory of their line, so that lines are split one by one.
    layers = [reader.layer(line.split(), f"line {number}") for number, line in rows]
    _repeat(layers, policy, source)
    embedding = None
    if policy.name in EMBEDDING:
        exchange = layers.pop(0)
        embedding = _embedding(exchange, header, source)
        if exchange.after_input_gradient != exchange.after_forward:
            reader.notes["embeddings whose backward exchange is taken to be the forward one"] += 1
    program = _core.TrainingProgram(
        layers, iterations=iterations, overlap=True, embedding=embedding
    )
    return TextWorkload(program, (*policy.remarks, *reader.remarks()))


@dataclass
class _Reader:
    """Converts lines to layers.

    Attributes:
        policy: The policy of the file.
        sizes: NPUs per dimension.
        source: The file, for errors.
        layers: The number of layers that were read.
        notes: Numbers of columns and collectives by remark.
    """

    policy: Policy
    sizes: tuple[int, ...]
    source: str
    layers: int = 0
    notes: Counter[str] = field(default_factory=Counter)

    def remarks(self) -> tuple[str, ...]:
        """Returns a line for each kind of column without effect."""
        return tuple(f"{text}: {count:,}" for text, count in self.notes.items())

    def layer(self, words: list[str], key: str) -> _core.TrainingLayer:
        """Returns the layer of a line; `key` names the line."""
        policy = self.policy
        columns = _COLUMNS + (policy.name == CUSTOMIZED)
        if len(words) != columns:
            problem = f"has {len(words)} columns"
            raise mistake(problem, source=self.source, key=key, expected=f"{columns} columns")
        if policy.name == CUSTOMIZED:
            policy = policy_of_layer(words[-1], len(self.sizes), key, self.source)
        elif policy.name in EMBEDDING and not self.layers:
            policy = policy.everywhere(len(self.sizes))
        self._check_dependency(words[1], key)
        forward = self._transfer(words[3:5], key, policy, "activations")
        backward = self._transfer(words[6:8], key, policy, "activations")
        if backward and policy.skips_first and not self.layers:
            self.notes["ignored collectives of the first layer's input gradient"] += 1
            backward = None
        if (forward or backward) and self.policy.name == "MICRO":
            text = "collectives of activations, which ASTRA-sim omits with MICRO, are performed"
            self.notes[text] += 1
        self.layers += 1
        return _core.TrainingLayer(
            words[0],
            forward_ps=1000 * self._number(words[2], key),
            input_gradient_ps=1000 * self._number(words[5], key),
            weight_gradient_ps=1000 * self._number(words[8], key),
            update_ps=1000 * self._number(words[11], key),
            after_forward=[forward] if forward else [],
            after_input_gradient=[backward] if backward else [],
            after_weight_gradient=self._transfer(words[9:11], key, policy, "weights"),
        )

    def _check_dependency(self, word: str, key: str) -> None:
        """Counts a dependency on another layer, which ASTRA-sim ignores."""
        if not _INTEGER.fullmatch(word):
            problem, expected = "the dependency is not an integer", "the number of a layer, or -1"
            raise mistake(problem, source=self.source, key=key, value=shown(word),
                          expected=expected)  # fmt: skip
        if int(word) != -1:
            self.notes["ignored dependencies on layers, as in ASTRA-sim"] += 1

    def _transfer(
        self, words: list[str], key: str, policy: Policy, part: _Part
    ) -> _core.Transfer | None:
        """Returns the collective of two columns, or None if none is performed."""
        size = self._number(words[1], key)
        name, among_experts = self._collective(words[0], key, policy)
        if not name:
            return None
        if not size:
            raise mistake(f"{words[0]} has a size of 0 B", source=self.source, key=key)
        mask = policy.activations if part == "activations" else policy.weights
        npus = math.prod(n for at, n in enumerate(self.sizes) if mask >> at & 1)
        if npus < 2 or among_experts:
            text = f"ignored collectives of {part}, for which {policy.name} has no dimension"
            if among_experts:
                text = "ignored collectives among one NPU's experts"
            self.notes[text] += 1
            return None
        if name == "all_gather":
            size = self._gathered(size, npus, key)
        return _core.Transfer(name, mask, size)

    def _gathered(self, size: int, npus: int, key: str) -> int:
        """Returns the total bytes of an all-gather of this stated size."""
        if self.policy.gathers_total:
            self.notes["sizes of ALLGATHER are totals, as in SimAI"] += 1
            return size
        self.notes["sizes of ALLGATHER are those of one NPU's part, as in ASTRA-sim"] += 1
        if size * npus > _MOST:
            problem, expected = "the gathered data is too large", f"at most {_MOST // npus} B"
            raise mistake(problem, source=self.source, key=key, value=f"{size} B",
                          expected=expected)  # fmt: skip
        return size * npus

    def _collective(self, word: str, key: str, policy: Policy) -> tuple[str, bool]:
        """Returns the collective of a word, or "", and whether it runs among experts only."""
        if word in _COLLECTIVES or word == _NONE:
            return _COLLECTIVES.get(word, ""), False
        if word == _IGNORED:
            self.notes["ignored BROADCAST, as in ASTRA-sim and SimAI"] += 1
            return "", False
        problem, expected = "unknown collective", ", ".join((_NONE, *_COLLECTIVES))
        match = _EXPERTS.fullmatch(word)
        if match and match["collective"] in _COLLECTIVES:
            if policy.experts == 1:
                return _COLLECTIVES[match["collective"]], match["group"] == "EP"
            problem = "collectives of experts are not modelled without `ep: 1`"
        elif word == _FUSED:
            problem = "an all-reduce with an all-to-all is not modelled"
        raise mistake(problem, source=self.source, key=key, value=shown(word), expected=expected)

    def _number(self, text: str, key: str) -> int:
        number = parse_count(text, _MOST)
        if number is None:
            problem, expected = "is not an integer in range", f"0 to {_MOST}"
            raise mistake(problem, source=self.source, key=key, value=shown(text),
                          expected=expected)  # fmt: skip
        return number


def _repeat(layers: list[_core.TrainingLayer], policy: Policy, source: str) -> None:
    """Adds the repeated forward passes to the layers whose backward passes wait for them.

    Their collectives precede their computations together, which takes the same time as in turn.

    Raises:
        ConfigError: A layer is not in the file.
    """
    for start, end in policy.repeated:
        if end >= len(layers):
            problem, expected = f"`checkpoint_initiates`: no layer {end}", "layers count from 0"
            raise mistake(problem, source=source, key="line 1", expected=expected)
        again = layers[start:end]
        layers[end].with_backward = [each for layer in again for each in layer.after_forward]
        layers[end].weight_gradient_ps += sum(layer.forward_ps for layer in again)


def _embedding(layer: _core.TrainingLayer, header: list[str], source: str) -> _core.EmbeddingTables:
    bottom = next(
        (int(word) for word in header[1:] if parse_count(word, 1 << 31) is not None), None
    )
    exchanged = layer.after_forward
    if bottom is None or not exchanged or exchanged[0].collective != "all_to_all":
        problem = "incomplete DLRM policy"
        expected = "the number of the last bottom layer, and ALLTOALL in the first layer"
        raise mistake(problem, source=source, key="line 1", expected=expected)
    return _core.EmbeddingTables(
        bottom=bottom,
        lookup_ps=layer.forward_ps,
        first_lookup_ps=layer.forward_ps,
        update_ps=layer.update_ps,
        size=exchanged[0].size,
        background=header[0] == "HYBRID_DLRM_ENHANCED",
    )
