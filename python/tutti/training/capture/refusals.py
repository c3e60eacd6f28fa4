"""What a program does that a capture cannot: errors with the line of the program."""

from __future__ import annotations

import re
import sys
import sysconfig
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from tutti.training.errors import CaptureError

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["is_users", "no_peer", "no_values", "refusal_of", "script_line", "script_place"]

_OWN = str(Path(__file__).resolve().parent)
_STANDARD = sysconfig.get_paths()["stdlib"]
_LIBRARIES = ("site-packages", "dist-packages")


def script_line(script: str) -> str:
    """Returns the innermost line of the program that runs now, as `FILE, line N`.

    Args:
        script: The file of the program; empty for the caller of `tutti.capture`.
    """
    place = script_place(script)
    return "{}, line {}".format(*place) if place else script


def script_place(script: str) -> tuple[str, int] | None:
    """Returns the file and the innermost line of the program that runs now.

    The program is its script and other files outside of installed packages.

    Args:
        script: The file of the program; empty for the caller of `tutti.capture`.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if is_users(file, script):
            return file, frame.f_lineno
        frame = frame.f_back
    return None


def _line_of(error: BaseException, script: str) -> str:
    """Returns the innermost line of the program in a traceback."""
    frames = reversed(traceback.extract_tb(error.__traceback__))
    lines = (f"{one.filename}, line {one.lineno}" for one in frames
             if is_users(one.filename, script))  # fmt: skip
    return next(lines, script)


def is_users(file: str, script: str) -> bool:
    """Returns whether a file is one of the program: its script, or not of an installed package."""
    if file == script:
        return True
    is_library = file.startswith(("<", _OWN, _STANDARD)) or any(one in file for one in _LIBRARIES)
    return not is_library


def no_values(place: str) -> CaptureError:
    """Returns the error of a program that reads the value of a tensor."""
    message = f"{place}: the program reads the value of a tensor of the GPU, which has no data"
    return CaptureError(f"{message}: expected a step without `.item()` and branches on tensors",
                        kind="values", fields={"place": place})  # fmt: skip


def no_peer(place: str, call: str) -> CaptureError:
    """Returns the error of a program that waits for another rank."""
    message = f"{place}: `{call}` waits for an object of another rank, which does not run"
    return CaptureError(f"{message}: expected tensors of known shapes", kind="peer",
                        fields={"place": place, "call": call})  # fmt: skip


def _is_wrapped(error: BaseException) -> bool:
    """Returns whether the cause of an error is clearer: pipelining adds operands, line by line."""
    return isinstance(error.__cause__, CaptureError) or str(error)[:1] in {"", "\n"}


def refusal_of(  # noqa: PLR0911 - a case each
    error: BaseException, script: str
) -> CaptureError | None:
    """Returns why a program cannot be captured; None for errors of the program itself."""
    raised = error
    while error.__cause__ is not None and _is_wrapped(error):
        error = error.__cause__
    if "no NVIDIA driver" in str(error) and isinstance(error.__context__, NotImplementedError):
        # PyTorch tries the kernel of the GPU if an operator refuses datatypes.
        error = error.__context__
    if isinstance(error, CaptureError):
        return error
    # The traceback of a cause may start below the program.
    lines = (_line_of(one, script) for one in (error, raised))
    place, kind = next((one for one in lines if one != script), script), type(error).__name__
    text = (str(error).strip().splitlines() or [""])[0]
    if kind in {"DataDependentOutputException", "GuardOnDataDependentSymNode"}:
        return no_values(place)
    if kind == "DynamicOutputShapeException":
        message = f"{place}: the shape of the result of `{_operator(text)}` depends on data"
        return CaptureError(f"{message}: expected shapes that do not", kind="shapes",
                            fields={"place": place})  # fmt: skip
    if kind in {"UnsupportedOperatorException", "MissingFakeImpl"} or _lacks_fake(text):
        name = _operator(text)
        message = f"{place}: `{name}` has no fake implementation"
        hint = (f"register one: `@torch.library.register_fake('{name}')` on a function that "
                "returns `x.new_empty(shape)`")  # fmt: skip
        return CaptureError(f"{message}: expected one that returns the shapes of its results",
                            kind="no_fake", hint=hint if "::" in name else "",
                            fields={"place": place})  # fmt: skip
    if "HigherOrderOperator" in text:
        name = text.partition("HigherOrderOperator ")[2].split(" ")[0]
        message = f"{place}: `{name}` takes Python code as an operand, whose cost is unknown"
        return CaptureError(f"{message}: expected operators of tensors", kind="no_fake",
                            fields={"place": place})  # fmt: skip
    kernel = _needs_gpu(error)
    if kernel:
        message = f"{place}: the program {kernel}: {kind}: {text}"
        hint = ("call it in an operator of `torch.library.custom_op`, and register the shapes of "
                "its results with `register_fake`")  # fmt: skip
        return CaptureError(message, kind="no_fake", hint=hint, fields={"place": place})
    if any(part in text for part in _DATA):
        return no_values(place)
    if "Default process group has not been initialized" in text:
        message = f"{place}: the program has no process group: expected one until its step ends"
        return CaptureError(message, kind="no_group", fields={"place": place})
    if script:
        version = f" (PyTorch {torch.__version__})" if _is_of_torch(error) else ""
        return CaptureError(f"{place}: {kind}: {text}{version}", kind="program",
                            fields={"place": place})  # fmt: skip
    return None


_TOOLS = {"triton": "launches a Triton kernel", "cpp_extension.py": "compiles an extension"}
"""What needs a GPU or its compiler, by folder or file of those that raise errors."""


def _needs_gpu(error: BaseException) -> str:
    """Returns what a program does that needs the driver or the compiler of a GPU, or ""."""
    frames = traceback.extract_tb(error.__traceback__)
    parts = {part for one in frames if any(name in one.filename for name in _LIBRARIES)
             for part in Path(one.filename).parts}  # fmt: skip
    return next((what for name, what in _TOOLS.items() if name in parts), "")


def _is_of_torch(error: BaseException) -> bool:
    """Returns whether PyTorch raises an error, or lacks a name that the program uses."""
    if isinstance(error, ImportError):
        return (error.name or "").partition(".")[0] == "torch"
    frames = traceback.extract_tb(error.__traceback__)
    folder = str(Path(torch.__file__).parent)
    last = frames[-1].filename if frames else ""
    return last.startswith(folder) or "torch" in str(error)


_DATA = ("Cannot access data pointer", "data is not allocated yet",
         ".numpy() is not supported for tensor subclasses")  # fmt: skip
_MISSING = ("has no fake impl", "no fake impl registered", "here was no fake impl",
            "Could not run", "doesn't have a fake", "does not have a fake")  # fmt: skip


def _lacks_fake(text: str) -> bool:
    return any(part in text for part in _MISSING) and "NCCL" not in text


def _operator(text: str) -> str:
    """Returns the operator that an error names, as `NAMESPACE::NAME`."""
    found = re.search(r"(\w+)::(\w+)", text) or re.search(r"\b([a-z]\w*)\.(\w+)", text)
    return "::".join(found.groups()) if found else "an operator"
