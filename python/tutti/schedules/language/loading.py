"""Loads programs from Python modules."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

from tutti.schedules.errors import ProgramError
from tutti.schedules.ir import Schedule
from tutti.schedules.language.program import Program

if TYPE_CHECKING:
    from pathlib import Path


def load(where: str, folder: Path | None = None) -> Schedule:
    """Returns the schedule of `MODULE:CALLABLE`; this imports the module and calls the callable.

    Args:
        where: An importable Python module, a colon, and a callable without parameters that returns
            a program or a schedule.
        folder: An additional folder to import modules from.

    Raises:
        ProgramError: The module or the callable does not exist, or it returns something else.
    """
    module, colon, name = where.partition(":")
    if not colon or not module or not name:
        raise ProgramError(f"`{where}` names no program: expected `module:callable`", kind="load")
    found = [str(folder)] if folder is not None else []
    sys.path[:0] = found
    try:
        built = getattr(importlib.import_module(module), name)()
    except (ImportError, AttributeError, TypeError, SyntaxError) as error:
        raise ProgramError(f"`{where}` builds no program: {error}", kind="load") from None
    finally:
        for each in found:
            sys.path.remove(each)
    if isinstance(built, Program):
        return built.schedule
    if isinstance(built, Schedule):
        return built
    message = f"`{where}` returns a {type(built).__name__}: expected a program or a schedule"
    raise ProgramError(message, kind="load")
