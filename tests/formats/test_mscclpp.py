"""Execution plans of MSCCL++ (JSON)."""

from __future__ import annotations

import json
import random
import re
from typing import TYPE_CHECKING, Any

import pytest

import tutti
from tutti.base.errors import ConfigError, TuttiError
from tutti.formats.formats import Options, named, recognised

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.schedules.ir import Schedule

Ops = list[dict[str, Any]]


def chunks(kind: str, index: int, size: int = 1) -> dict[str, Any]:
    return {"type": kind, "index": index, "size": size}


def remote(index: int, size: int = 1, buffer: int = 0) -> dict[str, Any]:
    return {"buffer_id": buffer, "index": index, "size": size}


def op(name: str, sources: Ops, targets: Ops, **others: Any) -> dict[str, Any]:
    memory = {"channel_type": "memory"}
    return {"name": name, "src_buff": sources, "dst_buff": targets, **memory, **others}


def on(name: str) -> dict[str, Any]:
    return {"name": name, "channel_ids": [0], "channel_type": "memory"}


def plan(
    collective: str,
    sizes: tuple[int, int, int],
    blocks: list[list[Ops]],
    kind: str,
    **others: Any,
) -> dict[str, Any]:
    """A plan of two GPUs whose thread blocks have a channel and a remote buffer of the other."""
    gpus = []
    for rank, each in enumerate(blocks):
        gpu = dict(zip(("input_chunks", "output_chunks", "scratch_chunks"), sizes, strict=True))
        access = {"access_channel_type": "memory", "remote_buffer_ids": [0]}
        peers = [1 - rank] * len(each)
        gpus.append(
            {
                "id": rank,
                **gpu,
                "threadblocks": [
                    {
                        "id": number,
                        "ops": ops,
                        "channels": [{"channel_type": "memory", "channel_ids": [number]}],
                        "remote_buffer_refs": [access],
                    }
                    for number, ops in enumerate(each)
                ],
                "channels": [{"channel_type": "memory", "connected_to": peers}],
                "remote_buffers": [
                    {"rank": 1 - rank, "type": kind, "access_channel_types": ["memory"]}
                ],
                "semaphores": [{"init_value": 0}],
            }
        )
    head = {"name": "test", "collective": collective, "protocol": "Simple", "inplace": True}
    return {**head, "gpus": gpus, "max_message_size": 2**64 - 1, **others}


def gather(rank: int) -> Ops:
    """An all_gather in place: a put between handshakes."""
    put = op("put", [chunks("o", rank)], [remote(rank)])
    return [on("rlxsignal"), on("rlxwait"), put, {"name": "nop"}, on("signal"), on("wait")]


GATHER = plan("allgather", (1, 2, 0), [[gather(0)], [gather(1)]], "o")


def reduced(rank: int) -> Ops:
    """Reads the chunk of the other GPU, reduces it, and writes the result to the other."""
    sources = [chunks("i", rank), remote(rank)]
    step = op("rres", sources, [chunks("i", rank), remote(rank)], reduce_op="sum")
    return [on("signal"), on("wait"), step, on("signal"), on("wait")]


REDUCE = plan("allreduce", (2, 2, 0), [[reduced(0)], [reduced(1)]], "i")


def packets(rank: int) -> list[Ops]:
    """An all_reduce by packets, whose readers wait for the flags of packets."""
    send = op("ppkt", [chunks("i", 0, 2)], [remote(0, 2)])
    fold = op("repkt", [chunks("i", 0, 2), chunks("s", 0, 2)], [chunks("i", 0, 2)])
    done = {"name": "sem_release", "semaphore_ids": [0]}
    return (
        [[send, done], [{"name": "sem_acquire", "semaphore_ids": [0]}, fold]]
        if rank
        else [
            [send, fold],
            [],
        ]
    )


PACKETS = plan("allreduce", (2, 2, 2), [packets(0), packets(1)], "s", protocol="LL")


def grouped(rank: int) -> list[Ops]:
    """Two thread blocks that share each op, joined by barriers."""
    barrier = {"name": "barrier", "barrier_id": 0, "num_threadblocks": 2}

    def shared(number: int) -> Ops:
        group = {"tbg_info": {"tb_id": number, "tbg_size": 2}}
        put = op("put", [chunks("o", rank)], [remote(rank)], **group)
        body = {"name": "pipeline", "iter_context": {"unit_size": 4, "num_chunks": 1}, "ops": [put]}
        synced = [on("signal"), on("wait")] if number == 0 else []
        return [barrier, body, barrier, *synced]

    return [shared(0), shared(1)]


GROUPED = plan("allgather", (1, 2, 0), [grouped(0), grouped(1)], "o")


def read(tmp_path: Path, tree: object) -> tuple[Schedule, tuple[str, ...]]:
    path = tmp_path / "plan.json"
    path.write_text(tree if isinstance(tree, str) else json.dumps(tree))
    form = named("mscclpp-json", option="--from")
    assert form.read is not None
    return form.read(path, Options())


@pytest.mark.parametrize(
    ("tree", "messages", "reductions", "steps"),
    [(GATHER, 2, 0, 1), (REDUCE, 4, 2, 2), (PACKETS, 2, 4, 1), (GROUPED, 4, 0, 1)],
)
def test_transfers_become_messages(
    tmp_path: Path, tree: object, messages: int, reductions: int, steps: int
) -> None:
    schedule, losses = read(tmp_path, tree)
    found = schedule.verify()
    assert (found.messages, found.reductions) == (messages, reductions)
    assert schedule.steps(0) == steps
    assert any("thread blocks" in loss for loss in losses)
    assert schedule.result == 0


def test_a_group_of_thread_blocks_divides_chunks(tmp_path: Path) -> None:
    schedule, losses = read(tmp_path, GROUPED)
    assert schedule.chunks == 4
    assert any("pipelines" in loss for loss in losses)


def changed(tree: object, old: str, new: str, count: int = -1) -> str:
    text = json.dumps(tree)
    assert old in text
    return text.replace(old, new, count)


UNORDERED = changed(PACKETS, '"sem_release"', '"nop"').replace('"sem_acquire"', '"nop"')
"""A thread block writes what another one reads."""


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (changed(REDUCE, '"rres"', '"glres"'), "op `glres` uses a switch"),
        (changed(REDUCE, '"rres"', '"rrres"'), "unknown op `rrres`"),
        (changed(GATHER, '"put"', '"pull"'), "gpus[0].threadblocks[0].ops[2].name"),
        (changed(GATHER, "allgather", "sendrecv"), "no postcondition"),
        (changed(GATHER, '"rlxsignal"', '"nop"', 1), "gpu 1, tb 0, op 5: waits forever"),
        (changed(GATHER, '"put"', '"nop"', 1), "does not perform all_gather"),
        (changed(GATHER, '"buffer_id": 0', '"buffer_id": 3'), "an index of the 1 memory buffers"),
        (changed(GATHER, '"channel_ids": [0], "ch', '"channel_ids": [4], "ch'), "memory channels"),
        (changed(GATHER, '"output_chunks": 2', '"output_chunks": 3'), "chunks of equal size"),
        (changed(GATHER, '"size": 1', '"size": 9'), "1 to 2 chunks"),
        (changed(GROUPED, '"num_threadblocks": 2', '"num_threadblocks": 3'), "joins 2 thread"),
        (changed(PACKETS, '"sem_release"', '"nop"'), "waits forever for semaphore 0"),
        (UNORDERED, "at the same time as gpu"),
        (json.dumps(GATHER)[:200], "not JSON"),
    ],
)  # fmt: skip
def test_invalid_plans_are_refused_with_their_place(
    tmp_path: Path, tree: object, expected: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(expected)):
        read(tmp_path, tree)


@pytest.mark.parametrize(
    ("algorithm", "collective", "ranks"),
    [
        ("ring", "all_reduce", 3),
        ("recursive_halving_doubling", "all_reduce", 4),
        ("direct", "all_gather", 4),
        ("bruck", "all_gather", 5),
        ("pat", "reduce_scatter", 4),
        ("bruck", "all_to_all", 4),
    ],
)
def test_a_written_plan_has_the_same_messages(
    tmp_path: Path, algorithm: str, collective: str, ranks: int
) -> None:
    schedule = tutti.schedule(algorithm, ranks=ranks, collective=collective)
    path = tmp_path / "written.json"
    form = named("mscclpp-json", option="--to")
    assert form.write is not None
    form.write(schedule, path, Options())
    tree = json.loads(path.read_text())
    assert len(tree["gpus"]) == ranks
    assert recognised(path, path.read_bytes()[:4096], option="--from").name == "mscclpp-json"
    found, _ = read(tmp_path, tree)
    proof, again = schedule.verify(), found.verify()
    assert (proof.messages, proof.reductions) == (again.messages, again.reductions)
    assert found.collective == collective


def test_plans_over_the_limits_of_the_executor_are_reported(tmp_path: Path) -> None:
    form = named("mscclpp-json", option="--to")
    assert form.write is not None
    ring = tutti.schedule("ring", ranks=8)
    losses = form.write(ring, tmp_path / "a.json", Options())
    assert any("the executor accepts 64" in loss for loss in losses)
    broadcast = tutti.schedule("binomial", ranks=4, collective="broadcast")
    with pytest.raises(ConfigError, match="broadcast has no counterpart"):
        form.write(broadcast, tmp_path / "b.json", Options())


# --- damage -----------------------------------------------------------------------------------

VALUES: tuple[object, ...] = (
    *(None, True, -1, 0, 1, 2, 7, 2**20, 2**64, 1.5, "", "x", "i", "o", "s", [], {}, [1], [{}]),
    *("get", "rre", "pws", "cpkt", "upkt", "barrier", "pipeline", "wait", "allreduce", "alltoall"),
)


def test_keys_that_the_executor_does_not_read_are_listed(tmp_path: Path) -> None:
    text = json.dumps(GATHER)
    tree = json.loads(text.replace('"size": 1', '"size": 1, "sise": 2'))
    tree |= {"weird": [1], "buffer_alignment": 128, "use_double_scratch_buffer": True}
    _, losses = read(tmp_path, tree)
    assert "key weird: MSCCL++ does not read it" in losses
    first = "key gpus[0].threadblocks[0].ops[2].src_buff[0].sise"
    assert f"{first}: MSCCL++ does not read it; did you mean `size`?" in losses
    assert {"buffer_alignment 128", "use_double_scratch_buffer"} < set(losses)
    del tree["inplace"]
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, tree)
    assert "assumed: inplace false" in str(caught.value)


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Each container of a tree with each of its keys."""
    items = list(tree.items()) if isinstance(tree, dict) else list(enumerate(tree))
    found = [(tree, key) for key, _ in items]
    for _, value in items:
        if isinstance(value, dict | list):
            found += places(value)
    return found


def damaged(tree: object, rng: random.Random) -> str:
    """Returns a plan with one to three values changed, removed or repeated."""
    tree = json.loads(json.dumps(tree))
    for _ in range(rng.choice((1, 1, 2, 3))):
        found = places(tree)
        if not found:
            break
        owner, key = rng.choice(found)
        action = rng.randrange(4)
        if action == 0:
            del owner[key]
        elif action == 1 and isinstance(owner, list):
            owner.append(owner[key])
        else:
            owner[key] = rng.choice(VALUES)
    text = json.dumps(tree)
    cut = rng.randrange(len(text) + 1)
    return text if rng.random() < 0.9 else text[:cut] + text[cut + rng.choice((1, 9)) :]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_damaged_plans_end_in_a_result_or_an_error(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(100):
        text = damaged(rng.choice((GATHER, REDUCE, PACKETS, GROUPED)), rng)
        try:
            schedule, _ = read(tmp_path, text)
        except TuttiError as error:
            assert str(tmp_path) in str(error)  # noqa: PT017 - most plans are refused
        else:
            assert schedule.is_verified
