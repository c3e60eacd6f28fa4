"""Generates the reference pages of the command line, the files, the errors and the constants."""

from __future__ import annotations

import inspect
import re
import textwrap
from functools import partial
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import typer.main
from pydantic_core import PydanticUndefined
from reference_libraries import libraries_page

from tutti.base.errors import ExitCode
from tutti.base.files import limits
from tutti.base.files.validate import models_in, range_of
from tutti.base.units import Frequency, Length, OpRate, Size, Time, TimePerByte
from tutti.cli.app import app
from tutti.cli.schema import File, schema_text
from tutti.collectives.files.tables import RawExperiment
from tutti.energy.technology import Technology, technologies
from tutti.errors import all_errors
from tutti.networks.coherence.files import RawCoherence
from tutti.networks.flit.files.tables import RawNoc
from tutti.networks.mesh.files import RawSmart
from tutti.platforms.files.platform_file import RawPlatform
from tutti.sweeps.files import RawSweep
from tutti.training.files.tables import RawTraining

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

    from tutti.energy.technology import Constant

_NOTE = "<!-- Written by `python scripts/generate_reference.py`; do not edit. -->\n"


_UNITS = """\
Files are TOML. `tutti schema` prints their JSON Schemas. Unknown keys and quantities without a unit
are errors. Every quantity is text with a unit:

- time: ps, ns, us, ms, s
- size: B, KB, MB, GB, TB (powers of 1000); KiB, MiB, GiB, TiB (powers of 1024)
- time per byte: ps/B, ns/B, us/B, s/B, or its inverse as a rate, such as "10 GB/s" or "400 Gb/s"
- operations per second: GFLOP/s, TFLOP/s, PFLOP/s
- frequency: MHz, GHz"""

_WIDTH = 100
_LIST_MARK = re.compile(r" (?=(?:[-+*>#]|\d+[.)]) )")
"""A space before what would start a list, a quotation or a heading in the next line."""


def _wrapped(text: str, indent: str = "") -> str:
    """Returns a paragraph in lines of at most 100 columns."""
    text = _LIST_MARK.sub("\0", " ".join(text.split()))
    lines = textwrap.wrap(
        text, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(lines).replace("\0", " ")


def cli_page() -> str:
    """Returns the page of the commands: arguments, options and examples."""
    root = typer.main.get_command(app)
    parts = ["# Command line", _NOTE, _prose(root.help or "")]
    for name, command in _commands(root, "tutti"):
        parts.append(f"## {name}")
        parts.append(_prose(command.help or ""))
        items = [_parameter(p) for p in command.params if p.name != "help"]
        if items:
            parts.append("\n".join(items))
    return "\n\n".join(parts) + "\n"


def errors_page() -> str:
    """Returns the page of the errors; `anchor` links to its headings."""
    codes = [_wrapped(f"- {code.value}: {code.meaning}", "  ") for code in ExitCode]
    intro = _wrapped(
        "Every error is one message: what is wrong and where, what was expected, and a hint. In "
        "Python, the attribute `kind` names the case, and other attributes hold the values of the "
        "message. All errors derive from `tutti.base.errors.TuttiError`."
    )
    table = "\n".join(codes)
    limits = "\n".join(["| input | limit |", "|---|---|", *map(_limit, _LIMITS)])
    parts = ["# Errors", _NOTE, intro, "## Exit codes", table, "## Limits on files", limits]
    for error in all_errors():
        if not error.kinds:
            continue
        bases = ", ".join(f"`{base.__name__}`" for base in error.__bases__)
        paragraphs = inspect.cleandoc(error.__doc__ or "").split("\n\n")
        parts.append(f"## {error.__name__}")
        parts += map(_wrapped, paragraphs)
        parts.append(f"Base: {bases}. Exit code: {error.exit_code.value}.")
        for kind, entry in error.kinds.items():
            hint = f" Hint: {entry.hint}." if entry.hint else ""
            parts.append(f"### {error.__name__} {kind}\n\n{_wrapped(entry.when + hint)}")
    return "\n\n".join(parts) + "\n"


_LIMITS = (
    ("a configuration file (TOML, JSON, BookSim)", limits.Bytes.CONFIG, "bytes"),
    ("an ASTRA-sim network (YAML)", limits.Bytes.NETWORK, "bytes"),
    ("a schedule file", limits.Bytes.SCHEDULE, "bytes"),
    (
        "benchmark output, a text workload, a model or rank groups",
        limits.Bytes.LOG,
        "bytes",
    ),
    ("a table, recording or results file (CSV, Parquet, text)", limits.Bytes.TABLE, "bytes"),
    ("the Chakra trace of a rank, uncompressed", limits.Bytes.TRACE, "bytes"),
    (
        "a line of a log, text workload or BookSim configuration",
        limits.LOG_LINE,
        "characters",
    ),
    ("a line of a table", limits.LINE, "characters"),
    ("a field of a table", limits.FIELD, "characters"),
    ("an integer", limits.DIGITS, "digits"),
    ("nesting of tables and lists", limits.DEPTH, "levels"),
)


def _limit(row: tuple[str, int, str]) -> str:
    what, most, unit = row
    return f"| {what} | {most:,} {unit} |"


def energy_page() -> str:
    """Returns the page of the technologies: constants, bounds and sources."""
    intro = _wrapped(
        "[Energy and area](../models/energy.md) explains these constants. Bounds are factors of "
        "the value. *Inferred* values are derived from their source, not printed in it."
    )
    parts = ["# Constants of energy and area", _NOTE, intro]
    names: dict[str, list[str]] = {"router": [], "link": []}
    for entry in technologies():
        names[entry.part].append(entry.name)
    for entry in technologies():
        pair = {part: known[0] for part, known in names.items()} | {entry.part: entry.name}
        constants = Technology(**pair).constants.values()
        listed = [constant for constant in constants if constant.part == entry.part]
        sources = list(dict.fromkeys(constant.source for constant in listed))
        rows = [_constant(constant, sources) for constant in listed]
        parts.append(f"## {entry.part} {entry.name}\n\n{_wrapped(_sentence(entry.summary))}")
        heading = ["| constant | value | bounds | source |", "|---|---|---|---|"]
        parts.append("\n".join([*heading, *rows]))
        parts.append("\n".join(_source(n, text) for n, text in enumerate(sources, start=1)))
    return "\n\n".join(parts) + "\n"


def _source(number: int, text: str) -> str:
    return _wrapped(f"{number}. {text}", "   ")


def _constant(constant: Constant, sources: list[str]) -> str:
    bounds = f"{constant.low_factor:g} .. {constant.high_factor:g}"
    if constant.low_factor == constant.high_factor:
        bounds = ""
    source = f"{sources.index(constant.source) + 1}{', inferred' if constant.inferred else ''}"
    return f"| `{constant.name}` | {constant.value:.4g} | {bounds} | {source} |"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    for verb, child in sorted(getattr(command, "commands", {}).items()):
        if getattr(child, "commands", None):
            yield from _commands(child, f"{name} {verb}")
        else:
            yield f"{name} {verb}", child


def _prose(text: str) -> str:
    """Returns a help text as Markdown, with its examples as a code block."""
    prose, found, examples = text.replace("\b", "").partition("Examples:")
    prose = prose.strip()
    if not found:
        return prose
    lines = [line.strip() for line in examples.strip().splitlines()]
    return "\n".join([prose, "", "```sh", *lines, "```"])


def _parameter(parameter: Any) -> str:
    help_text = getattr(parameter, "help", "") or ""
    if parameter.param_type_name == "argument":
        name = parameter.make_metavar_name() if hasattr(parameter, "make_metavar_name") else ""
        name = name or parameter.metavar or parameter.name.upper()
        return _wrapped(f"- `{name}`: {help_text}", "  ")
    names = ", ".join(f"`{n}`" for n in (*parameter.opts, *parameter.secondary_opts))
    default = parameter.default
    shown = default not in (None, False, True, [], "") and not callable(default)
    value = getattr(default, "value", default)
    return _wrapped(f"- {names}: {help_text}{f' Default: `{value}`.' if shown else ''}", "  ")


def config_page() -> str:
    """Returns the page of the files: their tables and keys."""
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
    yield f"### {model.__name__.removeprefix('Raw')}\n\n{_wrapped(_summary(model))}"
    items = [
        _item(info.alias or name, info, range_of(model, name))
        for name, info in model.model_fields.items()
    ]
    yield "\n".join(items)
    for info in model.model_fields.values():
        for inner in models_in(info.annotation):
            yield from _tables(inner, done)


def _summary(model: type[BaseModel]) -> str:
    """Returns the docstring of a table without its list of attributes."""
    return (model.__doc__ or "").partition("Attributes:")[0]


def _item(key: str, info: FieldInfo, bounds: str) -> str:
    default = info.default if info.default_factory is None else None
    meaning = info.description or ""
    if bounds:
        meaning += f" Range: {_POWER.sub(_power, bounds)}."
    names_table = get_origin(info.annotation) is Literal and len(get_args(info.annotation)) == 1
    if info.is_required() or names_table:
        meaning += " Required."
    elif default not in (None, PydanticUndefined, ""):
        meaning += f" Default: `{default}`."
    return _wrapped(f"- `{key}`: *{_words(info.annotation)}*. {meaning}", "  ")


_POWER = re.compile(r"\b\d{8,}\b")


def _power(number: re.Match[str]) -> str:
    """Returns a large power of two in exponent form."""
    value = int(number[0])
    return f"2^{value.bit_length() - 1}" if value.bit_count() == 1 else number[0]


def _words(annotation: Any) -> str:  # noqa: PLR0911 - a line for each form of type
    """Returns the English name of a type."""
    names = {
        str: "text",
        int: "integer",
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
    "docs/reference/library-algorithms.md": libraries_page,
    **{f"schemas/{file}.schema.json": partial(schema_text, file) for file in File},
}
"""The generator of each file, by its path in the repository."""
