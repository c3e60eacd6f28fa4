"""The message classes of Chakra execution traces, built at run time.

Source: ``et_def.proto`` of mlcommons/chakra 1.0.0.
"""

from __future__ import annotations

from functools import cache
from typing import Any

NODE_TYPES = (
    "INVALID",
    "METADATA",
    "MEM_LOAD",
    "MEM_STORE",
    "COMP",
    "COMM_SEND",
    "COMM_RECV",
    "COMM_COLL",
)
"""Names by the number of `type`."""
COLLECTIVES = (
    "all_reduce",
    "reduce",
    "all_gather",
    "gather",
    "scatter",
    "broadcast",
    "all_to_all",
    "reduce_scatter",
    "reduce_scatter_block",
    "barrier",
)
"""Names by the number of `comm_type`."""
SCALARS = (
    ("double", 1),
    ("float", 2),
    ("int32", 5),
    ("int64", 3),
    ("uint32", 13),
    ("uint64", 4),
    ("sint32", 17),
    ("sint64", 18),
    ("fixed32", 7),
    ("fixed64", 6),
    ("sfixed32", 15),
    ("sfixed64", 16),
    ("bool", 8),
    ("string", 9),
    ("bytes", 12),
)
"""The types of attributes, with their numbers in descriptors."""


_MESSAGES = {
    "IOInfo": "values:string shapes:string types:string",
    "GlobalMetadata": "version:string attr:AttributeProto*",
    "Node": "id:uint64 name:string type:int32 ctrl_deps:uint64* data_deps:uint64* "
    "start_time_micros:uint64 duration_micros:uint64 inputs:IOInfo outputs:IOInfo "
    "attr:AttributeProto*",
    "NodeBytes": "id:uint64 name:bytes type:int32 ctrl_deps:uint64* data_deps:uint64* "
    "start_time_micros:uint64 duration_micros:uint64 inputs:bytes - attr:bytes*",
}
"""Names and types of fields 1, 2 and so on; `*` marks repeated fields, `-` an omitted one.

`NodeBytes` is a node whose text and attributes remain bytes: strings and messages are encoded as
bytes are. It parses several times faster than `Node`.
"""
_PACKAGE = "ChakraProtoMsg"


@cache
def schema() -> dict[str, Any]:
    """Returns the message classes of the schema, by name."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(
        name="chakra/et_def.proto", package=_PACKAGE, syntax="proto3"
    )
    for name, _ in SCALARS:
        _describe(file, f"{name.capitalize()}List", f"values:{name}*")
    attribute = _describe(file, "AttributeProto", "name:string doc_string:string")
    attribute.oneof_decl.add(name="value")
    for index, (name, _) in enumerate(SCALARS):
        number, of_list = 3 + 2 * index, f"{name.capitalize()}List"
        _add(attribute, f"{name}_val", number, name, oneof_index=0)
        _add(attribute, f"{name}_list", number + 1, of_list, oneof_index=0)
    for name, fields in _MESSAGES.items():
        _describe(file, name, fields)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in (*_MESSAGES, "AttributeProto")
    }


def _describe(file: Any, name: str, fields: str) -> Any:  # noqa: ANN401 - of protobuf
    message = file.message_type.add(name=name)
    for number, field in enumerate(fields.split(), 1):
        label, _, kind = field.partition(":")
        if kind:
            _add(message, label, number, kind.rstrip("*"), label=3 if kind.endswith("*") else 1)
    return message


def _add(message: Any, name: str, number: int, kind: str, **more: int) -> None:  # noqa: ANN401 - as above
    """Adds a field of a scalar type or a message."""
    scalar = dict(SCALARS).get(kind)
    is_message = {"type": 11, "type_name": f".{_PACKAGE}.{kind}"}
    described = is_message if scalar is None else {"type": scalar}
    message.field.add(name=name, number=number, **{"label": 1, **described, **more})
