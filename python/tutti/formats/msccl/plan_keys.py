"""The keys of MSCCL++ execution plans.

Source: microsoft/mscclpp 1f5f065 (src/core/executor/execution_plan.cc and
python/mscclpp/language/internal, which writes more keys than the executor reads).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tutti.base.files.mistakes import did_you_mean, shown

if TYPE_CHECKING:
    from tutti.formats.msccl.tables import Table

_BUFFER: Final = "type index size buffer_id switch_channel_id"
_KEYS: Final = {
    name: frozenset(keys.split())
    for name, keys in {
        "": "name collective protocol inplace gpus reuse_resources use_double_scratch_buffer "
        "buffer_alignment min_message_size max_message_size num_threads_per_block",
        "gpus": "id input_chunks output_chunks scratch_chunks threadblocks channels "
        "remote_buffers semaphores",
        "threadblocks": "id ops channels remote_buffer_refs",
        "channels": "channel_type connected_to buffer_type rank_groups channel_ids buff",
        "rank_groups": "size ranks",
        "remote_buffers": "rank type access_channel_types",
        "remote_buffer_refs": "access_channel_type remote_buffer_ids",
        "semaphores": "init_value",
        "ops": "name ops channel_type channel_ids src_buff dst_buff tbg_info barrier_id "
        "num_threadblocks semaphore_ids iter_context reduce_op",
        "src_buff": _BUFFER,
        "dst_buff": _BUFFER,
        "tbg_info": "tb_id tbg_size",
        "iter_context": "unit_size num_chunks",
    }.items()
}
"""The keys of the objects under each key; the empty name is the plan."""


def unread_keys(plan: Table) -> list[str]:
    """Returns a line for each key that the executor does not read, with its first place."""
    first: dict[tuple[str, str], str] = {}
    pending: list[tuple[str, Any, str]] = [("", plan.values, "")]
    while pending:
        parent, value, path = pending.pop()
        if isinstance(value, list):
            pending += [(parent, each, f"{path}[{number}]") for number, each in enumerate(value)][
                ::-1
            ]
        elif isinstance(value, dict):
            for key in reversed(value):
                place = f"{path}.{key}" if path else key
                if key not in _KEYS[parent]:
                    first.setdefault((parent, key), place)
                elif key in _KEYS:
                    pending.append((key, value[key], place))
    return [_line(parent, key, place) for (parent, key), place in first.items()]


def _line(parent: str, key: str, place: str) -> str:
    meant = did_you_mean(key, _KEYS[parent])
    suffix = f"; {meant}" if meant else ""
    return f"key {shown(place)[1:-1]}: MSCCL++ does not read it{suffix}"
