"""Datatypes of elements: names and sizes."""

from __future__ import annotations

DATATYPES: dict[str, int] = {
    "int8": 1,
    "uint8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "uint64": 8,
    "float8_e4m3": 1,
    "float8_e5m2": 1,
    "bfloat16": 2,
    "float16": 2,
    "float32": 4,
    "float64": 8,
}
"""Bytes of an element, by name."""

NCCL_NAMES: dict[str, str] = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "f8e4m3": "float8_e4m3",
    "f8e5m2": "float8_e5m2",
}
"""Datatypes by their names in nccl-tests, where these differ."""
