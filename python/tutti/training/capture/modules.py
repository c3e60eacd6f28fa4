"""The module and the phase in which the program issues an operator.

Modules of the forward pass are a stack that hooks keep. An operator of the backward pass belongs to
a node of the graph, whose sequence number lies in the range of a module's forward pass.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tutti.training.capture.record import Phase

__all__ = ["Modules"]


class Modules:
    """Follows the modules and the phases of a program.

    Attributes:
        roots: The modules that the program calls itself.
        optimizers: The optimizers that have stepped, by id.
    """

    def __init__(self, started: Callable[[], None], stepped: Callable[[int], None]) -> None:
        """Calls `stepped` with the id of an optimizer; a recorder calls `started`."""
        self.roots: list[Any] = []
        self.optimizers: dict[int, Any] = {}
        self.started, self._stepped = started, stepped
        self._names: dict[int, str] = {}
        self._stack: list[str] = []
        self._starts: list[int] = [0]
        self._places: list[str] = [""]
        self._optimizing = 0
        self._hooks: list[Any] = []

    def __enter__(self) -> Modules:
        """Registers the hooks."""
        self._hooks = [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
            register_optimizer_step_pre_hook(self._before),
            register_optimizer_step_post_hook(self._after),
        ]
        return self

    def __exit__(self, *error: object) -> None:
        """Removes the hooks."""
        for hook in self._hooks:
            hook.remove()

    @property
    def phase(self) -> Phase:
        """The phase of the step."""
        if self._optimizing:
            return "optimizer"
        if torch._C._current_graph_task_id() == -1:
            return "forward"
        return "recompute" if self._stack else "backward"

    def module(self) -> str:
        """Returns the qualified name of the module of the current operator, or ""."""
        if self._stack:
            return self._stack[-1]
        node: Any = torch._C._current_autograd_node()
        if node is None:
            return ""
        return self._places[bisect_right(self._starts, node._sequence_nr()) - 1]

    def _enter(self, module: Any, _inputs: object) -> None:  # noqa: ANN401 - torch is optional
        if not self._stack:
            self._root(module)
        self._mark([*self._stack, self._names.get(id(module), type(module).__name__)])

    def _leave(self, _module: object, _inputs: object, _outputs: object) -> None:
        self._mark(self._stack[:-1])

    def _mark(self, stack: list[str]) -> None:
        self._stack = stack
        place, at = stack[-1] if stack else "", torch._C._autograd._get_sequence_nr()
        if self._starts[-1] == at:
            self._places[-1] = place
        else:
            self._starts.append(at)
            self._places.append(place)

    def _root(self, module: Any) -> None:  # noqa: ANN401
        if id(module) in self._names:
            return
        self.roots.append(module)
        inner = module.module if hasattr(module, "reducer") else module
        self._names[id(module)] = type(inner).__name__
        for name, one in inner.named_modules():
            self._names[id(one)] = name or type(inner).__name__

    def _before(self, *_: object) -> None:
        self._optimizing += 1

    def _after(self, optimizer: Any, *_: object) -> None:  # noqa: ANN401
        self.optimizers[id(optimizer)] = optimizer
        self._optimizing -= 1
        if not self._optimizing:
            self._stepped(id(optimizer))
