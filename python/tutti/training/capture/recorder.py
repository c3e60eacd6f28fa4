"""Records the operators of a program while tensors of its GPU are fake.

Operators on tensors of the host run: they may hold a mesh of ranks or the lengths of sequences.
Operators on the GPU, and on tensors of the host that are too large, only compute shapes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from tutti.training.capture.exchanges import Groups, Issued, issued_by, work_of
from tutti.training.capture.named import on_named, seen_by_core
from tutti.training.capture.operators import changed_by, cost_of, launches_kernel, tensors_in
from tutti.training.capture.record import Exchange, Operator
from tutti.training.capture.refusals import no_values, script_line
from tutti.training.capture.storages import Storages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tutti.training.capture.devices import Devices
    from tutti.training.capture.modules import Modules
    from tutti.training.capture.record import Phase
    from tutti.training.capture.streams import Order

__all__ = ["Recorder"]

_LARGE = 1 << 18
"""Elements of a tensor of the host above which it has no data."""
_PLAIN = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer, FakeTensor)
_ATEN = torch.ops.aten
_FAKE_KEY = torch._C._TorchDispatchModeKey.FAKE
_FLASH, _EFFICIENT = 1, 2
"""Kernels of attention, as `torch.nn.attention.SDPBackend` numbers them."""


class _WithoutDevice(FakeTensorMode):  # type: ignore[misc] # torch is optional
    """Fake tensors that never ask the driver, although `torch.cuda` answers."""

    avoid_device_init = True

    def __init__(self, gpu: torch.device) -> None:
        super().__init__(allow_non_fake_inputs=True)
        self.gpu = gpu

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 - torch is optional
        types: Any,  # noqa: ANN401
        args: Any = (),  # noqa: ANN401
        kwargs: Any = None,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        if func is torch.ops.prim.device.default and not self.in_kernel_invocation:
            return seen_by_core(args[0])
        return super().__torch_dispatch__(func, types, args, on_named(kwargs or {}, self.gpu))


class Recorder(TorchDispatchMode):  # type: ignore[misc] # torch is optional
    """Records operators.

    Attributes:
        operators: The operators of the program.
        groups: The process groups.
        storages: The storages of the GPU.
        order: The order of streams.
        assumed: What was assumed, each with the number of operators before.
    """

    def __init__(
        self, script: str, modules: Modules, devices: Devices, value: float | None
    ) -> None:
        """Records a program.

        Args:
            script: The file of the program, for errors.
            modules: The modules of the program.
            devices: The named GPU.
            value: What a value that the program reads is; None refuses the program.
        """
        super().__init__()
        self.fake = _WithoutDevice(devices.device)
        self.operators: list[Operator] = []
        self.groups = Groups()
        self.order: Order = devices.order
        self.storages = Storages()
        self.assumed: list[tuple[int, str]] = []
        self._script, self._modules, self._devices, self._value = script, modules, devices, value

    def __torch_dispatch__(  # noqa: PLR0911 - a case each
        self,
        func: Any,  # noqa: ANN401 - torch is optional
        types: Any,  # noqa: ANN401
        args: Any = (),  # noqa: ANN401
        kwargs: Any = None,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        """Executes an operator without data, and records it."""
        kwargs = kwargs or {}
        if func is torch.ops.prim.device.default:
            return seen_by_core(args[0])
        if not all(one in _PLAIN for one in types):
            # DTensor and others issue operators on their local tensors.
            return NotImplemented
        if torch._C._get_dispatch_mode(_FAKE_KEY) is not None:
            return func(*args, **kwargs)
        kwargs = on_named(kwargs, self._devices.device)
        if func.namespace == "c10d":
            return self._c10d(func, args, kwargs)
        if func is _ATEN._fused_sdp_choice.default:
            return _attention(args, kwargs)
        if func is _ATEN._local_scalar_dense.default and _is_fake(args[0]):
            return self._read(args[0])
        return self._operator(func, args, kwargs)

    def _operator(self, func: Any, args: Any, kwargs: Mapping[str, Any]) -> Any:  # noqa: ANN401
        result = self._computed(func, args, kwargs)
        if not any(_on_gpu(one) for one in tensors_in((result, args))):
            return result
        if func.namespace == "_c10d_functional":
            issued = issued_by(func, args, kwargs, result, self.groups)
            if issued is not None:
                self._exchange(func, issued)
                return result
        if launches_kernel(func):
            self._kernel(func, args, kwargs, result)
        elif tensors_in(result):
            self.storages.allocated(tensors_in(result), self._place(), len(self.operators))
        return result

    def _computed(self, func: Any, args: Any, kwargs: Mapping[str, Any]) -> Any:  # noqa: ANN401
        """Returns the result of an operator: without data if it is on the GPU or large."""
        tensors = tensors_in((args, kwargs))
        if any(isinstance(one, FakeTensor) for one in tensors) or _creates_fake(
            func, args, kwargs, tensors
        ):
            with self.fake:
                args = _without_data(args)
                if func is _ATEN._to_copy.default and not _is_fake(args[0]):
                    # PyTorch up to 2.9 copies a tensor with data to the driver's GPU.
                    args = (self.fake.from_tensor(args[0]), *args[1:])
                return func(*args, **_without_data(kwargs))
        return func(*args, **kwargs)

    def _place(self) -> tuple[str, Phase]:
        return self._modules.module(), self._modules.phase

    def _starting(self, name: str) -> tuple[str, Phase]:
        """Returns the module and phase of an operator, which may be the first of a step.

        The first operator after an optimizer's step starts the next step, unless it zeroes
        gradients: stages of a pipeline receive before they call a module.
        """
        if self._modules.phase != "optimizer" and not name.endswith("zero_"):
            self._modules.started()
        return self._place()

    def _kernel(
        self,
        func: Any,  # noqa: ANN401
        args: Any,  # noqa: ANN401
        kwargs: Mapping[str, Any],
        result: Any,  # noqa: ANN401
    ) -> None:
        module, phase = self._starting(str(func._schema.name))
        stream, number = self._devices.stream, len(self.operators)
        inputs, outputs = tensors_in((args, kwargs)), tensors_in(result)
        self.storages.allocated(outputs, (module, phase), number)
        backward = phase == "backward"
        cost = cost_of(func, args, kwargs, result, backward=backward)
        first = (inputs or outputs)[0]
        operator = Operator(
            name=str(func).removesuffix(".default"),
            module=module,
            phase=phase,
            stream=stream,
            kind=cost.kind,
            after=self.order.issue(number, stream, self.storages.exchanged(inputs)),
            flops=cost.flops,
            bytes=cost.bytes,
            weight=cost.weight,
            dtype=str(first.dtype).removeprefix("torch."),
            shapes=_shapes(inputs),
        )
        self.operators.append(operator)
        if func._schema.name == "fsdp::split_with_sizes_copy":
            self.storages.gathered(changed_by(func, args, kwargs))
        self.storages.written([*outputs, *changed_by(func, args, kwargs)], None)

    def _c10d(self, func: Any, args: Any, kwargs: Mapping[str, Any]) -> Any:  # noqa: ANN401
        issued = issued_by(func, args, kwargs, None, self.groups)
        outputs = issued.outputs if issued else ()
        work = work_of(outputs)
        if issued is not None and any(_is_fake(one) for one in (*issued.inputs, *outputs)):
            self._exchange(func, issued)
        returned = func._schema.returns
        return (args[0], work) if len(returned) == 2 else work if returned else None

    def _exchange(self, func: Any, issued: Issued) -> None:  # noqa: ANN401
        """Records a collective: on a stream of its group, after the current stream."""
        exchange = issued.exchange
        if len(self.groups.groups[exchange.group].ranks) == 1 or exchange.collective == "barrier":
            return
        module, phase = self._starting(str(func._schema.name))
        number = len(self.operators)
        if issued.uneven:
            self.remark("uneven all-to-alls have the bytes that this rank sends")
        if issued.shift:
            self.remark("shifts in a ring take the time of all-to-alls of as many bytes")
        current = self._devices.stream
        message = exchange.collective in {"send", "recv"}
        stream = _stream_of(exchange)
        reads = {*self.order.point(current), *self.storages.exchanged(list(issued.inputs))}
        self.storages.allocated(list(issued.outputs), (module, phase), number)
        self.operators.append(
            Operator(
                name=str(func).removesuffix(".default"),
                module=module,
                phase=phase,
                stream=stream,
                kind="message" if message else "collective",
                after=self.order.issue(number, stream, reads),
                bytes=exchange.bytes,
                dtype=str((*issued.inputs, *issued.outputs)[0].dtype).removeprefix("torch."),
                shapes=_shapes(list(issued.inputs or issued.outputs)),
                exchange=exchange,
            )
        )
        self.storages.written(list(issued.outputs), number)
        if exchange.collective == "all_gather":
            self.storages.gathered(list(issued.outputs))
        if issued.waits:
            self.order.follow(current, number)

    def _read(self, tensor: Any) -> float | int | bool:  # noqa: ANN401
        """Returns the assumed value of a tensor that the program reads.

        Raises:
            CaptureError: There is no assumed value.
        """
        if self._value is None:
            raise no_values(script_line(self._script))
        self.remark(f"values that the program reads are {self._value:g}")
        if tensor.dtype.is_floating_point:
            return float(self._value)
        return bool(self._value) if tensor.dtype == torch.bool else int(self._value)

    def remark(self, text: str) -> None:
        """Notes what is assumed."""
        self.assumed.append((len(self.operators), text))


def _stream_of(exchange: Exchange) -> int:
    """Returns the number of the stream of a group's collectives or of messages with a peer."""
    if exchange.peer is None:
        return -1 - exchange.group
    sends = exchange.collective == "send"
    return -1_000_000 - 2 * exchange.peer - sends


def _without_data(value: Any) -> Any:  # noqa: ANN401
    """Returns arguments with a tensor without data for each tensor of the host.

    The converter of PyTorch would keep references to them, which then cannot move to the GPU.
    """
    if isinstance(value, torch.Tensor):
        if isinstance(value, FakeTensor) or value.device.type == "meta" or value.dim() == 0:
            return value
        return torch.empty_strided(
            value.size(), value.stride(), dtype=value.dtype, device=value.device
        )
    if isinstance(value, dict):
        return {key: _without_data(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_without_data(one) for one in value)
    return value


def _is_fake(tensor: Any) -> bool:  # noqa: ANN401
    return isinstance(tensor, FakeTensor)


def _on_gpu(leaf: Any) -> bool:  # noqa: ANN401
    return bool(isinstance(leaf, FakeTensor) and leaf.device.type == "cuda")


def _creates_fake(
    func: Any,  # noqa: ANN401
    args: Any,  # noqa: ANN401
    kwargs: Mapping[str, Any],
    tensors: list[Any],
) -> bool:
    """Returns whether an operator without fake tensors creates one: on the GPU, or a large one."""
    device = kwargs.get("device")
    if device is not None:
        kind = torch.device(device).type
        if kind != "cpu":
            return bool(kind == "cuda")
    elif tensors:
        return False
    if func is _ATEN.arange.default or func is _ATEN.lift_fresh.default:
        return False
    size = args[0] if args and isinstance(args[0], list | tuple) else kwargs.get("size")
    shape = size if isinstance(size, list | tuple) else _shape_after(args)
    return math.prod(one for one in shape if isinstance(one, int)) >= _LARGE


def _shape_after(args: Any) -> Any:  # noqa: ANN401
    """Returns the shape of operators such as `randint(high, size)`."""
    return next((one for one in args if isinstance(one, list | tuple)), ())


def _attention(args: Any, kwargs: Mapping[str, Any]) -> int:  # noqa: ANN401
    """Returns the kernel that PyTorch chooses for an attention: flash, or memory-efficient."""
    mask = args[3] if len(args) > 3 else kwargs.get("attn_mask")
    half = args[0].dtype in {torch.float16, torch.bfloat16}
    return _FLASH if half and mask is None else _EFFICIENT


def _shapes(tensors: list[Any]) -> str:
    shown = ["x".join(map(str, one.shape)) or "1" for one in tensors[:4]]
    return " ".join(shown) + (f" +{len(tensors) - 4}" if len(tensors) > 4 else "")
