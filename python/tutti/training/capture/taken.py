"""The step of a program that runs: which of its operators are the step, and what they are."""

from __future__ import annotations

import weakref
from collections import Counter
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.parallel import DistributedDataParallel

from tutti.training.capture.assignment import Totals
from tutti.training.capture.iterations import Turn, iteration, last_iteration
from tutti.training.capture.lines import StepLines
from tutti.training.capture.record import Role
from tutti.training.capture.refusals import script_place
from tutti.training.capture.storages import Span
from tutti.training.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tutti.training.capture.iterations import Iteration
    from tutti.training.capture.modules import Modules
    from tutti.training.capture.recorder import Recorder

__all__ = ["Captured", "Finished"]

STEADY = 2
"""The step that is captured by default: optimizers have created their state."""
STEADY_DDP = 3
"""That of programs with DDP, which rebuilds its buckets in the second step."""


class Finished(BaseException):
    """Leaves a program after its captured step."""


class Captured:
    """A step while it is captured.

    Attributes:
        role: The captured rank; None before the step has ended.
        first: The totals of the first step of the program.
        compiled: Whether the program calls `torch.compile`.
        created: The optimizers of the program.
        recorder: What records operators.
        modules: The modules of the program.
    """

    def __init__(self, rank: int, step: int | None, *, leaves: bool, script: str = "") -> None:
        """Captures the step of a number, from 1; with `leaves`, the program ends after it.

        Without a number, it captures the first step that is like later ones.
        """
        self._script, self._lines = script, StepLines()
        self.rank, self.compiled = rank, False
        self.role: Role | None = None
        self.first: Totals | None = None
        self.created: weakref.WeakSet[Any] = weakref.WeakSet()
        self._step, self._leaves = step, leaves
        self._turns: list[Turn] = []
        self._stepped: dict[int, int] = {}
        self.recorder: Recorder
        self.modules: Modules

    def started(self) -> None:
        """Starts a turn if an optimizer has stepped, and a step if it is that of the first one."""
        if self._stepped and self.role is None:
            self._end()
            if self._leaves:
                waiting = any(id(one) not in self.modules.optimizers for one in self.created)
                found = iteration(self._turns, self._number(), waiting=waiting,
                                  unseen=bool(self._lines.unseen()))  # fmt: skip
                if found is not None:
                    self._take(found)
                    raise Finished

    def stepped(self, optimizer: int) -> None:
        """Notes that an optimizer has stepped, and in which line of the program."""
        self._stepped.setdefault(optimizer, self._lines.number(script_place(self._script)))

    def ended(self) -> None:
        """Ends the last step, at the end of the program.

        A block without a step of an optimizer is a step, too.
        """
        if self.role is not None:
            return
        if self._stepped or not (self._turns or self._leaves):
            self._end()
        if self._turns:
            self._take(last_iteration(self._turns, self._number()))

    def _number(self) -> int:
        return self._step or (STEADY_DDP if self._has_ddp() else STEADY)

    def _has_ddp(self) -> bool:
        return any(isinstance(one, DistributedDataParallel)
                   for root in self.modules.roots for one in root.modules())  # fmt: skip

    def _end(self) -> None:
        """Ends a turn of optimizers."""
        operators, start = self.recorder.operators, self._turns[-1].end if self._turns else 0
        work = sum(one.flops for one in operators[start:])
        numbers = [list(self.modules.optimizers).index(one) for one in self._stepped]
        count, lines = self.recorder.storages.count, tuple(self._stepped.values())
        self._turns.append(Turn(tuple(numbers), work, len(operators), count, lines))
        self._stepped = {}

    def _take(self, found: Iteration) -> None:
        """Sets the role to an iteration of the program."""
        self.role = self._role(found)
        first = self._span(iteration(self._turns, 1) or last_iteration(self._turns, 1))
        operators = self.recorder.operators[first.first : first.last]
        self.first = Totals.of(self.rank, operators, self.recorder.groups.groups)

    def _span(self, found: Iteration) -> Span:
        before = self._turns[found.first - 1] if found.first else Turn((), 0, 0, 0)
        last = self._turns[found.last - 1]
        return Span(before.end, last.end, before.changes, last.changes)

    def _role(self, found: Iteration) -> Role:
        span, recorder = self._span(found), self.recorder
        operators = recorder.operators[span.first : span.last]
        if not operators:
            raise _without_operators()
        states = {key for key in map(_key, _states(self.modules.optimizers.values())) if key}
        parameters = [one for root in self.modules.roots for one in root.parameters()]
        local = [one.to_local() if hasattr(one, "to_local") else one for one in parameters]
        keys = {key for key in map(_key, local) if key}
        return Role(
            rank=self.rank,
            operators=tuple(one.since(span.first) for one in operators),
            groups=tuple(recorder.groups.groups),
            parameters=sum(int(one.numel()) for one in local),
            weights=sum(int(one.numel()) for one in parameters),
            memory=recorder.storages.changes(keys, states, span),
            remarks=tuple(self._remarks(found, span)),
        )

    def _remarks(self, found: Iteration, span: Span) -> Iterator[str]:
        assumed = Counter(text for at, text in self.recorder.assumed
                          if span.first <= at < span.last)  # fmt: skip
        yield from (f"{count:,} x {text}" for text, count in sorted(assumed.items()))
        if found.remark:
            yield found.remark
        if self._leaves and found.last - found.first == 1:
            for line in self._lines.unseen():
                yield f"{line} steps the optimizer too, but has not run"
        if found.number < STEADY_DDP and self._has_ddp():
            yield (
                "DDP copies its state in the first step and rebuilds its buckets in the second: "
                f"the steady state starts with `--step {STEADY_DDP}`"
            )


def _without_operators() -> CaptureError:
    message = "the step issues no operator on a GPU: expected a model and batches on `cuda`"
    return CaptureError(message, kind="no_step", hint="move both: `model.cuda()`, `batch.cuda()`")


def _key(tensor: Any) -> int:  # noqa: ANN401 - torch is optional
    """Returns the key of a tensor's storage among :class:`Storages`; 0 if it has none."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (NotImplementedError, RuntimeError):
        return 0


def _states(optimizers: Iterable[Any]) -> list[Any]:
    """Returns the tensors of the states of optimizers."""
    values = (value for one in optimizers for state in one.state.values()
              for value in state.values())  # fmt: skip
    tensors = (one for one in values if isinstance(one, torch.Tensor))
    return [one.to_local() if hasattr(one, "to_local") else one for one in tensors]
