"""Tables of a network as the text of its TOML file."""

from __future__ import annotations

from typing import Any


def toml_of(tables: dict[str, Any]) -> str:
    """The file that `tutti noc run` reads; `traffic` may be a list of tables."""
    lines: list[str] = []
    _write_table(lines, "", tables)
    return "\n".join(lines).lstrip("\n") + "\n"


def _write_table(lines: list[str], name: str, table: dict[str, Any]) -> None:
    for key, value in table.items():
        if not _is_table(key, value):
            lines.append(f"{key} = {_toml(value)}")
    for key, value in table.items():
        if not _is_table(key, value):
            continue
        place = f"{name}.{key}" if name else key
        tables = value if isinstance(value, list) else [value]
        for one in tables:
            lines += ["", f"[[{place}]]" if isinstance(value, list) else f"[{place}]"]
            _write_table(lines, place, one)


def _is_table(key: str, value: object) -> bool:
    return isinstance(value, dict) or (key == "traffic" and isinstance(value, list))


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if isinstance(value, list):
        return f"[{', '.join(_toml(one) for one in value)}]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + " }"
    return repr(value)
