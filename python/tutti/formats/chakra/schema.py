"""The message classes of Chakra execution traces, built at run time.

Source: ``et_def.proto`` of mlcommons/chakra 1.0.0.
"""

from __future__ import annotations

from functools import cache
from typing import Any

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


@cache
def schema() -> dict[str, Any]:
    """Returns the message classes of the schema, by name.

    `NodeBytes` is a node whose text and attributes remain bytes: strings and messages are encoded
    as bytes are. It parses several times faster than `Node`.
    """
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(
        name="chakra/et_def.proto", package="ChakraProtoMsg", syntax="proto3"
    )
    text, raw, count, many = 9, 12, 4, 3

    def message(name: str, *fields: tuple[str, int, int | str, bool]) -> None:
        described = file.message_type.add(name=name)
        for label, number, kind, repeated in fields:
            one = described.field.add(name=label, number=number, label=many if repeated else 1)
            if isinstance(kind, str):
                one.type, one.type_name = 11, f".ChakraProtoMsg.{kind}"
            else:
                one.type = kind

    for name, kind in SCALARS:
        message(f"{name.capitalize()}List", ("values", 1, kind, True))
    message("AttributeProto", ("name", 1, text, False), ("doc_string", 2, text, False))
    attribute = file.message_type[-1]
    attribute.oneof_decl.add(name="value")
    for index, (name, kind) in enumerate(SCALARS):
        number = 3 + 2 * index
        attribute.field.add(name=f"{name}_val", number=number, label=1, type=kind, oneof_index=0)
        attribute.field.add(
            name=f"{name}_list",
            number=number + 1,
            label=1,
            type=11,
            type_name=f".ChakraProtoMsg.{name.capitalize()}List",
            oneof_index=0,
        )
    message(
        "IOInfo", *((n, i, text, False) for i, n in enumerate(("values", "shapes", "types"), 1))
    )
    message("GlobalMetadata", ("version", 1, text, False), ("attr", 2, "AttributeProto", True))
    message(
        "Node",
        ("id", 1, count, False),
        ("name", 2, text, False),
        ("type", 3, 5, False),
        ("ctrl_deps", 4, count, True),
        ("data_deps", 5, count, True),
        ("start_time_micros", 6, count, False),
        ("duration_micros", 7, count, False),
        ("inputs", 8, "IOInfo", False),
        ("outputs", 9, "IOInfo", False),
        ("attr", 10, "AttributeProto", True),
    )
    message(
        "NodeBytes",
        ("id", 1, count, False),
        ("name", 2, raw, False),
        ("type", 3, 5, False),
        ("ctrl_deps", 4, count, True),
        ("data_deps", 5, count, True),
        ("start_time_micros", 6, count, False),
        ("duration_micros", 7, count, False),
        ("inputs", 8, raw, False),
        ("attr", 10, raw, True),
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"ChakraProtoMsg.{name}"))
        for name in ("GlobalMetadata", "Node", "NodeBytes", "IOInfo", "AttributeProto")
    }
