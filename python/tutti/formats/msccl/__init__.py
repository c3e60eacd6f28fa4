"""Programs of MSCCL and MSCCL++, as formats of `tutti convert`."""

from __future__ import annotations

from tutti.formats.formats import Format
from tutti.formats.msccl.plan_reader import read_plan
from tutti.formats.msccl.plan_writer import write_plan
from tutti.formats.msccl.xml_reader import read_xml_program
from tutti.formats.msccl.xml_writer import write_xml_program

__all__ = ["FORMATS"]

FORMATS = (
    Format(
        name="msccl-xml",
        content="schedule",
        endings=(".xml",),
        summary="Programs of MSCCL, also of msccl-tools and RCCL.",
        source="microsoft/msccl b23e9cd (src/graph/topo.cc), ROCm/rccl 0cbce2a (msccl_parser.cc)",
        read=read_xml_program,
        write=write_xml_program,
        matches=lambda head: b"<algo" in head,
    ),
    Format(
        name="mscclpp-json",
        content="schedule",
        endings=(".json",),
        summary="Execution plans of MSCCL++.",
        source="microsoft/mscclpp 1f5f065 (src/core/executor/execution_plan.cc)",
        read=read_plan,
        write=write_plan,
        matches=lambda head: b'"gpus"' in head and b'"collective"' in head,
    ),
)
