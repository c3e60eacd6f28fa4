"""The JSON Schema of the documents of `--json`."""

from __future__ import annotations

from typing import Any

from tutti.base.errors import TuttiError
from tutti.study.document import SCHEMA, error_of

_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}


def document_schema() -> dict[str, Any]:
    """Returns the schema of the document that every command writes with `--json`."""
    properties = {
        "schema": {"const": SCHEMA},
        "version": {**_TEXT, "description": "The version of tutti."},
        "command": {**_TEXT, "description": "The command, such as `noc run`."},
        "exit_code": {"type": "integer", "description": "The exit code of the process."},
        "result": {
            "type": "object",
            "description": "Figures of the result, by name; units are part of the names.",
        },
        "tables": {
            "type": "object",
            "description": "Tables of the result, by name.",
            "additionalProperties": {"type": "array", "items": {"type": "object"}},
        },
        "legends": {**_TEXTS, "description": "Legends of tables; their text is not stable."},
        "remarks": {**_TEXTS, "description": "Remarks for people; their text is not stable."},
        "files": {**_TEXTS, "description": "Paths of the written files."},
        "errors": {
            "type": "array",
            "description": "Errors; the last one ended the command. Empty on success.",
            "items": _error(),
        },
    }
    return {
        "title": "Document of --json",
        "description": _DESCRIPTION,
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_DESCRIPTION = (
    "What `tutti COMMAND --json` writes to stdout. Within a version of the schema, fields are "
    "added, never renamed or removed."
)


def _error() -> dict[str, Any]:
    meanings = {
        "class": "The exception in Python, such as `ConfigError`.",
        "kind": "The kind of error within the class.",
        "problem": "What is wrong.",
        "source": "The file or option with the fault; empty without one.",
        "key": "The key in the file; empty without one.",
        "value": "The value as written; may be empty.",
        "expected": "What is accepted; may be empty.",
        "hint": "What to try; may be empty.",
        "see": "The file and anchor of the reference.",
    }
    assert list(meanings) == list(error_of(TuttiError("")))  # noqa: S101 - one list of fields
    return {
        "type": "object",
        "properties": {name: {**_TEXT, "description": text} for name, text in meanings.items()},
        "required": list(meanings),
        "additionalProperties": False,
    }
