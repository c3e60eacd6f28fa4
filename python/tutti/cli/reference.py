"""The reference pages: what the command line and the files accept, written from the code itself."""

from __future__ import annotations

import inspect
import re
from functools import partial
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import typer.main
from pydantic_core import PydanticUndefined

from tutti.cli.app import app
from tutti.cli.schema import File, schema_text
from tutti.config import (
    RawCoherence,
    RawExperiment,
    RawNoc,
    RawPlatform,
    RawSmart,
    RawSweep,
    RawTraining,
)
from tutti.energy import Technology, technologies
from tutti.errors import ExitCode, all_errors
from tutti.files import limits
from tutti.files.validate import models_in, range_of
from tutti.units import Frequency, Length, OpRate, Size, Time, TimePerByte

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

    from tutti.energy import Constant

_NOTE = "<!-- Written by `python scripts/generate_reference.py`; do not edit. -->\n"


_UNITS = """\
TOML. Every quantity is text with its unit: times in ps, ns, us, ms, s; sizes in B, KB, MB, GB, TB
(powers of 1000) and KiB, MiB, GiB, TiB (powers of 1024); times per byte in ps/B, ns/B, us/B, s/B,
or the rate that is their inverse, such as "10 GB/s" or "400 Gb/s"; rates of operations in GFLOP/s,
TFLOP/s, PFLOP/s; frequencies in MHz, GHz. Bare numbers and unknown keys
are refused. `tutti schema` prints the JSON Schema of each."""


def cli_page() -> str:
    """The verbs, their arguments, options and examples."""
    root = typer.main.get_command(app)
    parts = ["# Command line", _NOTE, _prose(root.help or "")]
    for name, command in _commands(root, "tutti"):
        parts.append(f"## {name}")
        parts.append(_prose(command.help or ""))
        rows = [_parameter(p) for p in command.params if p.name != "help"]
        if rows:
            parts.append("\n".join(["| parameter | meaning |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def errors_page() -> str:
    """Every error: when it is raised, and what helps. Its headings are what `anchor` points at."""
    codes = [f"| {code.value} | {code.meaning} |" for code in ExitCode]
    intro = (
        "Every mistake is one message: what is wrong, where, what was expected; then a hint. In "
        "Python each class has the kind as `kind` and the values of its message as attributes; all "
        "derive from `tutti.errors.TuttiError`."
    )
    table = "\n".join(["| exit code | meaning |", "|---|---|", *codes])
    limits = "\n".join(["| limit on files | at most |", "|---|---|", *map(_limit, _LIMITS)])
    parts = ["# Errors", _NOTE, intro, "## Exit codes", table, "## Limits on files", limits]
    for error in all_errors():
        if not error.kinds:
            continue
        bases = ", ".join(f"`{base.__name__}`" for base in error.__bases__)
        text = inspect.cleandoc(error.__doc__ or "")
        parts.append(f"## {error.__name__}")
        parts.append(f"{text}\n\nA {bases}; exit code {error.exit_code.value}.")
        for kind, entry in error.kinds.items():
            hint = f" Hint: {entry.hint}." if entry.hint else ""
            parts.append(f"### {error.__name__} {kind}\n\n{entry.when}{hint}")
    return "\n\n".join(parts) + "\n"


_LIMITS = (
    ("a configuration (TOML, JSON), or one of BookSim", limits.Bytes.CONFIG, "bytes"),
    ("a network of ASTRA-sim (YAML)", limits.Bytes.NETWORK, "bytes"),
    ("a schedule in text form", limits.Bytes.SCHEDULE, "bytes"),
    (
        "the output of a benchmark, a text workload, a model or groups of ranks",
        limits.Bytes.LOG,
        "bytes",
    ),
    ("a table, a recording or results (CSV, Parquet, text)", limits.Bytes.TABLE, "bytes"),
    ("a Chakra trace of a rank, unpacked", limits.Bytes.TRACE, "bytes"),
    (
        "a line of a log, a text workload or a configuration of BookSim",
        limits.LOG_LINE,
        "characters",
    ),
    ("a line of a table", limits.LINE, "characters"),
    ("a field of a table", limits.FIELD, "characters"),
    ("a whole number in text", limits.DIGITS, "digits"),
    ("tables and lists within each other", limits.DEPTH, "levels"),
)


def _limit(row: tuple[str, int, str]) -> str:
    what, most, unit = row
    return f"| {what} | {most:,} {unit} |"


def energy_page() -> str:
    """Every technology of routers and links: its constants, their bounds and their sources."""
    intro = (
        "The constants behind [energy and area](../models/energy.md), where each is explained. "
        "Bounds are factors of the value; *inferred* was concluded, not read from its source."
    )
    parts = ["# Constants of energy and area", _NOTE, intro]
    names: dict[str, list[str]] = {"router": [], "link": []}
    for entry in technologies():
        names[entry.part].append(entry.name)
    for entry in technologies():
        pair = {part: known[0] for part, known in names.items()} | {entry.part: entry.name}
        constants = Technology(**pair).constants.values()
        own = [constant for constant in constants if constant.part == entry.part]
        sources = list(dict.fromkeys(constant.source for constant in own))
        rows = [_constant(constant, sources) for constant in own]
        parts.append(f"## {entry.part} {entry.name}\n\n{_sentence(entry.summary)}")
        heading = ["| constant | value | bounds | source |", "|---|---|---|---|"]
        parts.append("\n".join([*heading, *rows]))
        parts.append("\n".join(f"{n}. {source}" for n, source in enumerate(sources, start=1)))
    return "\n\n".join(parts) + "\n"


def _constant(constant: Constant, sources: list[str]) -> str:
    bounds = f"{constant.low_factor:g} .. {constant.high_factor:g}"
    if constant.low_factor == constant.high_factor:
        bounds = ""
    source = f"{sources.index(constant.source) + 1}{', inferred' if constant.inferred else ''}"
    return f"| `{constant.name}` | {constant.value:.4g} | {bounds} | {source} |"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - click's
    for verb, child in sorted(getattr(command, "commands", {}).items()):
        if getattr(child, "commands", None):
            yield from _commands(child, f"{name} {verb}")
        else:
            yield f"{name} {verb}", child


def _prose(text: str) -> str:
    """A help text as Markdown: its examples become a code block."""
    prose, found, examples = text.replace("\b", "").partition("Examples:")
    prose = prose.strip()
    if not found:
        return prose
    lines = [line.strip() for line in examples.strip().splitlines()]
    return "\n".join([prose, "", "```sh", *lines, "```"])


def _parameter(parameter: Any) -> str:  # noqa: ANN401 - click's
    help_text = " ".join((getattr(parameter, "help", "") or "").split()).replace("|", "\\|")
    if parameter.param_type_name == "argument":
        name = parameter.make_metavar_name() if hasattr(parameter, "make_metavar_name") else ""
        name = name or parameter.metavar or parameter.name.upper()
        return f"| `{name}` | {help_text} |"
    names = ", ".join(f"`{n}`" for n in (*parameter.opts, *parameter.secondary_opts))
    default = parameter.default
    shown = default not in (None, False, True, [], "") and not callable(default)
    value = getattr(default, "value", default)
    return f"| {names} | {help_text}{f' Default: `{value}`.' if shown else ''} |"


def config_page() -> str:
    """The keys of all files."""
    parts = [
        "# Configuration files",
        _NOTE,
        _UNITS,
    ]
    done: set[type[BaseModel]] = set()
    files: dict[str, type[BaseModel]] = {
        "Experiment": RawExperiment,
        "Platform": RawPlatform,
        "Sweep": RawSweep,
        "Noc": RawNoc,
        "Smart": RawSmart,
        "Coherence": RawCoherence,
        "Training": RawTraining,
    }
    for title, model in files.items():
        parts.append(f"## {title}")
        parts.extend(_tables(model, done))
    return "\n\n".join(parts) + "\n"


def _tables(model: type[BaseModel], done: set[type[BaseModel]]) -> Iterator[str]:
    if model in done:
        return
    done.add(model)
    doc = " ".join((model.__doc__ or "").split())
    yield f"### {model.__name__.removeprefix('Raw')}\n\n{doc}"
    rows = [
        _row(info.alias or name, info, range_of(model, name))
        for name, info in model.model_fields.items()
    ]
    yield "\n".join(["| key | value | meaning |", "|---|---|---|", *rows])
    for info in model.model_fields.values():
        for inner in models_in(info.annotation):
            yield from _tables(inner, done)


def _row(key: str, info: FieldInfo, bounds: str) -> str:
    default = info.default if info.default_factory is None else None
    meaning = (info.description or "").replace("|", "\\|")
    if bounds:
        meaning += f" Range: {_POWER.sub(_power, bounds)}."
    names_table = get_origin(info.annotation) is Literal and len(get_args(info.annotation)) == 1
    if info.is_required() or names_table:
        meaning += " Required."
    elif default not in (None, PydanticUndefined, ""):
        meaning += f" Default: `{default}`."
    return f"| `{key}` | {_words(info.annotation)} | {meaning.strip()} |"


_POWER = re.compile(r"\b\d{8,}\b")


def _power(number: re.Match[str]) -> str:
    """A large power of two as one."""
    value = int(number[0])
    return f"2^{value.bit_length() - 1}" if value.bit_count() == 1 else number[0]


def _words(annotation: Any) -> str:  # noqa: ANN401, PLR0911 - a line for each form of type
    """A type in words."""
    names = {
        str: "text",
        int: "whole number",
        float: "number",
        bool: "true or false",
        Time: "time",
        Size: "size",
        Length: "length",
        TimePerByte: "time per byte or rate",
        OpRate: "operations per second",
        Frequency: "frequency",
        Any: "any value",
    }
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _words(arguments[0])
    if origin is Literal:
        return ", ".join(f'`"{value}"`' for value in arguments)
    if origin in (Union, UnionType):
        words = [_words(a) for a in arguments if a is not NoneType]
        return " or ".join(dict.fromkeys(words))
    if origin is tuple and arguments[-1] is not Ellipsis:
        return f"list of {len(arguments)} values, {' and '.join(map(_words, arguments))}"
    if origin in (list, tuple):
        return f"list of {_words(arguments[0])}"
    if origin is dict:
        return f"table of {_words(arguments[1])}"
    if isinstance(annotation, type) and models_in(annotation):
        name = annotation.__name__.removeprefix("Raw")
        return f"[{name}](#{name.lower()})"
    return names.get(annotation, str(annotation))


PAGES: dict[str, Callable[[], str]] = {
    "docs/reference/cli.md": cli_page,
    "docs/reference/config.md": config_page,
    "docs/reference/energy.md": energy_page,
    "docs/reference/errors.md": errors_page,
    **{f"schemas/{file}.schema.json": partial(schema_text, file) for file in File},
}
"""Writes each generated file, by its path in the repository."""
