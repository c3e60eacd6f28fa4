"""Writes `tutti.base.declared` from the core's declarations of parameters; `--check` lists stale
files.

It loads the compiled core alone: the package may be unusable while a declaration changes.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "python" / "tutti"

TYPES = {
    "time": "Time",
    "time per byte": "TimePerByte",
    "size": "Size",
    "count": "int",
    "number": "float",
    "flag": "bool",
    "text": "str",
    "flag or list of names": "StrictBool | tuple[StrictStr, ...]",
}
QUANTITIES = ("Time", "TimePerByte", "Size")
SHADOWED = {"copy"}
"""Names that pydantic's models have already; the field gets an underscore, files keep the name."""

HEAD = '"""{} Written by scripts/generate_parameters.py; do not edit."""\n'


def core() -> Any:
    """The compiled core, without the package around it."""
    path = next(PACKAGE.glob("_core*.so"))
    spec = importlib.util.spec_from_file_location("tutti._core", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def field(parameter: Any) -> str:
    """The line that declares a parameter."""
    kind = f"Literal{parameter.choices!r}" if parameter.choices else TYPES[parameter.kind]
    name = parameter.name + "_" if parameter.name in SHADOWED else parameter.name
    given = [f"description={parameter.meaning!r}"]
    if parameter.range:
        number = int if parameter.kind == "count" else float
        least, most = map(number, parameter.range)
        given = [f"ge={least}", f"le={most}", *given]
    if not (parameter.choices or kind in QUANTITIES or "Strict" in kind):
        given.insert(0, "strict=True")
    if name != parameter.name:
        given.append(f"alias={parameter.name!r}")
    default = parameter.default
    if default is not None:
        given.insert(0, value_of(default, kind))
    elif parameter.optional:
        given.insert(0, "None")
    optional = " | None" if parameter.optional else ""
    return f"    {name}: {kind}{optional} = Field({', '.join(given)})"


def value_of(default: str, kind: str) -> str:
    """The code of a default."""
    if kind in QUANTITIES:
        return f"{kind}.parse({default!r})"
    if kind == "str" or kind.startswith("Literal"):
        return repr(default)
    return default.title() if default in ("true", "false") else default


def declaration(group: Any, base: str, kind: bool) -> str:
    """The class of a group."""
    summary = group.summary[0].upper() + group.summary[1:].rstrip(".") + "."
    source = f"\n\nSource: {group.source}." if group.source else ""
    lines = [f"class {group.class_}({base}):", docstring(summary, group, source)]
    if kind:
        lines.append(f"    kind: Literal[{group.name!r}] = {group.name!r}")
    return "\n".join([*lines, *map(field, group.parameters)])


def docstring(summary: str, group: Any, source: str) -> str:
    """What the class is, and each of its parameters."""
    wrap = textwrap.TextWrapper(width=95, subsequent_indent="        ", initial_indent="    ")
    names = [p.name + "_" if p.name in SHADOWED else p.name for p in group.parameters]
    rows = [wrap.fill(f"{n}: {p.meaning}") for n, p in zip(names, group.parameters, strict=True)]
    head = textwrap.fill(summary, width=92)
    text = "\n".join([head + source, "", "Attributes:", *rows])
    return textwrap.indent(f'"""{text}\n"""\n', "    ")


def files() -> dict[Path, str]:
    """Every generated file."""
    compiled = core()
    groups, models = compiled.parameter_groups(False), compiled.parameter_groups(True)
    imports = (
        "from __future__ import annotations\n\n"
        "from typing import Annotated, Literal\n\n"
        "from pydantic import Field, Strict, StrictBool, StrictStr\n\n"
    )
    parts = [HEAD.format("Parameters of the core."), imports]
    parts += [
        "from tutti.base.parameters import Parameters",
        "from tutti.base.units import Size, Time, TimePerByte",
    ]
    parts += [declaration(group, "Parameters", kind=False) for group in groups]
    names = [group.class_ for group in models]
    of_models = [HEAD.format("Network models of the core."), imports]
    of_models += [
        "from tutti.base.declared.network_model import NetworkModel",
        "from tutti.base.units import Size, Time, TimePerByte",
    ]
    of_models += [declaration(group, "NetworkModel", kind=True) for group in models]
    of_models.append(f"MODELS: tuple[type[NetworkModel], ...] = ({', '.join(names)})")
    of_models.append('"""Every network model, in the order of the registry."""')
    of_models.append(f"Model = Annotated[{' | '.join(names)}, Field(discriminator='kind')]")
    folder = PACKAGE / "base" / "declared"
    found = {folder / "groups.py": parts, folder / "models.py": of_models}
    return {path: formatted("\n\n".join(text), path) for path, text in found.items()}


def formatted(text: str, path: Path) -> str:
    """The text as the formatter leaves it."""
    program = str(Path(sys.executable).parent / "ruff")
    ruff = [program, "format", "--stdin-filename", str(path), "-"]
    fixed = [program, "check", "--fix", "--quiet", "--stdin-filename", str(path), "-"]
    for command in (fixed, ruff):
        found = subprocess.run(command, input=text, text=True, capture_output=True, check=False)
        text = found.stdout or text
    return text


def main() -> int:
    """Writes, or with `--check` compares, every generated file."""
    check = "--check" in sys.argv[1:]
    stale = 0
    for path, text in files().items():
        if path.is_file() and path.read_text("utf-8") == text:
            continue
        stale += 1
        if not check:
            path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{'stale' if check else 'wrote'} {path.relative_to(ROOT)}\n")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
