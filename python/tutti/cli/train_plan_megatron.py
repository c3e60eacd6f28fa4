"""The recipe of `tutti train plan megatron:FILE`: arguments in place of options."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tutti.study.console import remark

if TYPE_CHECKING:
    from tutti.cli.train_plan_options import Degrees, JobOptions

_INSTEAD = {"batch": "global_batch"}
"""Options of the values of a recipe whose names differ."""


def with_recipe(job: JobOptions, degrees: Degrees) -> tuple[JobOptions, Degrees]:
    """Returns the options, with those of the arguments of Megatron-LM where none is given.

    An option that replaces an argument is a remark, as are arguments that are not modelled.

    Raises:
        ConfigError: An argument has a value that is not modelled.
    """
    kind, _, notation = job.model.partition(":")
    if kind != "megatron":
        return job, degrees
    from tutti.workloads.megatron.recipe import read_recipe

    recipe = read_recipe(notation, Path())
    found = {_INSTEAD.get(key, key): value for key, value in recipe.options.items()}
    if job.batch is not None:
        remark(f"--batch-tokens replaces --{recipe.names['batch']}")
        found.pop("global_batch", None)
    names = {_INSTEAD.get(key, key): name for key, name in recipe.names.items()}
    for sentence in recipe.remarks:
        remark(sentence)
    return _completed(job, found, names), _completed(degrees, found, names)


def _completed(options: Any, found: dict[str, Any], names: dict[str, str]) -> Any:  # noqa: ANN401 - a dataclass
    """Returns a dataclass of options with values for those without one."""
    changes = {}
    for one in fields(options):
        given, value = getattr(options, one.name), found.get(one.name)
        if value is None:
            continue
        if given is None:
            changes[one.name] = value
        elif given != value:
            remark(f"{one.name.replace('_', ' ')} {given} replaces --{names[one.name]} {value}")
    return replace(options, **changes)
