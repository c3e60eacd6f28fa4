"""Programs of MSCCL (XML)."""

from __future__ import annotations

import itertools
import random
import re
from typing import TYPE_CHECKING

import pytest

import tutti
from tutti.base.errors import ConfigError, TuttiError
from tutti.formats.formats import Options, named, recognised
from tutti.formats.msccl import races

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.schedules.ir import Schedule

NAMES = ("type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid", "deps", "hasdep")


def program(coll: str, chunks: int, gpus: list[tuple[str, list[str]]], **algo: int) -> str:
    """An XML program: per GPU its chunks ``"i o s"`` and its thread blocks.

    A thread block is ``"send recv chan: step; step"``; a step lists the values of `NAMES`, of which
    the last three may be absent.
    """
    extra = "".join(f' {key}="{value}"' for key, value in algo.items())
    head = f'<algo name="test" proto="LL" nchannels="2" nchunksperloop="{chunks}"'
    lines = [f'{head} ngpus="{len(gpus)}" coll="{coll}"{extra}>']
    for rank, (sizes, blocks) in enumerate(gpus):
        i, o, s = sizes.split()
        lines.append(f'<gpu id="{rank}" i_chunks="{i}" o_chunks="{o}" s_chunks="{s}">')
        for number, block in enumerate(blocks):
            peers, _, steps = block.partition(":")
            send, recv, chan = peers.split()
            lines.append(f'<tb id="{number}" send="{send}" recv="{recv}" chan="{chan}">')
            for at, step in enumerate(each for each in steps.split(";") if each.strip()):
                values = [*step.split(), "-1", "-1", "0"][: len(NAMES)]
                if len(step.split()) == len(NAMES):
                    values = step.split()
                text = " ".join(f'{k}="{v}"' for k, v in zip(NAMES, values, strict=True))
                lines.append(f'<step s="{at}" {text}/>')
            lines.append("</tb>")
        lines.append("</gpu>")
    return "\n".join([*lines, "</algo>\n"])


def ring(ranks: int, coll: str = "allreduce") -> str:
    """A ring all_reduce in place with all fused types of steps."""
    gpus = []
    for rank in range(ranks):
        at = [(rank - step) % ranks for step in range(2 * ranks)]
        steps = [f"s i {at[0]} i {at[0]} 1"]
        steps += [f"rrs i {at[step]} i {at[step]} 1" for step in range(1, ranks - 1)]
        steps += [f"rrcs i {at[ranks - 1]} i {at[ranks - 1]} 1"]
        steps += [f"rcs i {at[step]} i {at[step]} 1" for step in range(ranks, 2 * ranks - 2)]
        steps += [f"r i {at[2 * ranks - 2]} i {at[2 * ranks - 2]} 1"]
        block = f"{(rank + 1) % ranks} {(rank - 1) % ranks} 0:" + ";".join(steps)
        gpus.append((f"{ranks} 0 0", [block]))
    return program(coll, ranks, gpus, inplace=1)


PAIR = program(
    "allreduce",
    2,
    [
        (
            "2 2 2",
            [
                f"{1 - rank} -1 0: s i 0 s 0 2",
                f"-1 {1 - rank} 0: r i 0 s 0 2 -1 -1 1",
                "-1 -1 0: cpy i 0 o 0 2; re s 0 o 0 2 1 0 0",
            ],
        )
        for rank in range(2)
    ],
    inplace=0,
    outofplace=1,
)
"""An exchange through scratch and a local reduction, which waits for another thread block."""


def read(tmp_path: Path, text: str) -> tuple[Schedule, tuple[str, ...]]:
    path = tmp_path / "program.xml"
    path.write_text(text)
    form = named("msccl-xml", option="--from")
    assert form.read is not None
    return form.read(path, Options())


def rewritten(tmp_path: Path, schedule: Schedule) -> tuple[Schedule, str, tuple[str, ...]]:
    """Writes a schedule and reads it back."""
    path = tmp_path / "written.xml"
    form = named("msccl-xml", option="--to")
    assert form.write is not None
    assert form.read is not None
    losses = form.write(schedule, path, Options())
    return form.read(path, Options())[0], path.read_text(), losses


def volumes(schedule: Schedule) -> dict[tuple[int, int], list[float]]:
    """The parts of the payload that each rank sends to each other."""
    found: dict[tuple[int, int], list[float]] = {}
    for rank in range(schedule.ranks):
        for step in range(schedule.steps(rank)):
            for op in schedule.ops(rank, step):
                if op.kind == "send" and op.chunks is not None and op.peer is not None:
                    size = (op.chunks[1] - op.chunks[0]) / schedule.chunks
                    found.setdefault((rank, op.peer), []).append(size)
    return {pair: sorted(sizes) for pair, sizes in found.items()}


# --- reading ----------------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_a_ring_has_the_steps_and_messages_of_a_ring(tmp_path: Path, ranks: int) -> None:
    schedule, losses = read(tmp_path, ring(ranks))
    reference = tutti.schedule("ring", ranks=ranks)
    assert schedule.verify().messages == reference.verify().messages
    assert schedule.steps(0) == reference.steps(0) == 2 * (ranks - 1)
    assert volumes(schedule) == volumes(reference)
    assert "protocol LL" in losses


def test_scratch_is_at_the_position_of_its_reduction(tmp_path: Path) -> None:
    schedule, _ = read(tmp_path, PAIR)
    assert (schedule.result, schedule.steps(0), schedule.verify().messages) == (1, 1, 2)
    kinds = [op.kind for op in schedule.ops(0, 0)]
    assert kinds == ["send", "recv", "copy", "reduce"]
    assert schedule.ops(0, 0)[0].chunks == (0, 2)


def test_shards_of_all_gather_and_reduce_scatter(tmp_path: Path) -> None:
    def gather(mine: str, sizes: str) -> list[tuple[str, list[str]]]:
        return [
            (
                sizes,
                [
                    (
                        f"{1 - rank} {1 - rank} 0: s {mine.format(rank)} o {rank} 1; "
                        f"r o {1 - rank} o {1 - rank} 1"
                    ),
                    *([f"-1 -1 0: cpy i 0 o {rank} 1"] if mine.startswith("i") else []),
                ],
            )
            for rank in range(2)
        ]

    in_place, _ = read(tmp_path, program("allgather", 2, gather("o {}", "1 2 0"), inplace=1))
    assert (in_place.result, in_place.collective) == (0, "all_gather")
    outside, _ = read(tmp_path, program("allgather", 2, gather("i 0", "1 2 0"), inplace=0))
    assert outside.result == 1
    scatter = [
        ("2 1 0", [f"{1 - r} {1 - r} 0: s i {1 - r} i {1 - r} 1; rrc i {r} o 0 1"])
        for r in range(2)
    ]
    for coll in ("reduce_scatter", "reducescatter"):
        for inplace in (0, 1):
            found, _ = read(tmp_path, program(coll, 2, scatter, inplace=inplace))
            assert (found.collective, found.result) == ("reduce_scatter", 1 - inplace)


def test_all_to_all_moves_blocks_to_the_position_of_their_source(tmp_path: Path) -> None:
    gpus = [
        (
            "4 4 0",
            [
                f"{1 - r} {1 - r} 0: s i {2 - 2 * r} o {2 * r} 2; r i 0 o {2 - 2 * r} 2",
                f"-1 -1 0: cpy i {2 * r} o {2 * r} 2",
            ],
        )
        for r in range(2)
    ]
    schedule, _ = read(tmp_path, program("alltoall", 4, gpus, inplace=0))
    assert (schedule.chunks, schedule.collective) == (4, "all_to_all")
    assert tutti.schedule("direct", ranks=2, collective="all_to_all").verify().messages == 2


def test_the_root_is_that_of_the_messages(tmp_path: Path) -> None:
    blocks = [[], ["0 -1 0: s i 0 i 0 1", "2 -1 0: s i 0 i 0 1"], []]
    gpus = [("1 0 0", each or ["-1 1 0: r i 0 i 0 1"]) for each in blocks]
    schedule, _ = read(tmp_path, program("broadcast", 1, gpus, inplace=1))
    assert schedule.root == 1


def test_messages_of_two_channels_may_overtake(tmp_path: Path) -> None:
    """GPU 1 receives the second message first, and the first only after it."""
    sender = ["1 -1 0: s i 0 i 0 1 -1 -1 1", "1 -1 1: s i 1 i 1 1 0 0 0"]
    receiver = ["-1 0 1: r i 1 i 1 1 -1 -1 1", "-1 0 0: r i 0 i 0 1 0 0 0"]
    gpus = [("2 0 0", sender), ("2 0 0", receiver)]
    schedule, losses = read(tmp_path, program("broadcast", 2, gpus, inplace=1))
    assert any("overtake" in loss for loss in losses)
    assert schedule.verify().messages == 2


DEADLOCK = program(
    "allreduce",
    1,
    [("1 0 1", [f"{1 - r} {1 - r} 0: r i 0 s 0 1; s i 0 s 0 1; re s 0 i 0 1"]) for r in (0, 1)],
    inplace=1,
)
RACE = PAIR.replace('depid="1" deps="0"', 'depid="-1" deps="-1"')


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (DEADLOCK, "gpu 0, tb 0, step 0: deadlock: waits for gpu 1, tb 0, step 0"),
        (RACE, "at the same time as gpu 0, tb "),
        (PAIR.replace('hasdep="1"', 'hasdep="0"'), "waits forever for tb 1, step 0"),
        (PAIR.replace('depid="1"', 'depid="7"'), "depends on tb 7, step 0"),
        (PAIR.replace("allreduce", "custom"), "no postcondition"),
        (PAIR.replace("allreduce", "allreduse"), "unknown collective"),
        (PAIR.replace('s="1"', 's="2"'), "attribute `s` is invalid"),
        (PAIR.replace('type="re"', 'type="ra"'), "attribute `type` is invalid"),
        (PAIR.replace('type="s"', 'type="nop"', 1), "without a counterpart"),
        (PAIR.replace('ngpus="2"', 'ngpus="3"'), "attribute `ngpus` is invalid"),
        (PAIR.replace('i_chunks="2"', 'i_chunks="3"'), "`i_chunks` is invalid"),
        (PAIR.replace('nchunksperloop="2"', 'nchunksperloop="999999"'), "`i_chunks` is invalid"),
        (PAIR.replace('dstoff="0" cnt="2"', 'dstoff="1" cnt="2"'), "accesses chunks 1 to 2"),
        (PAIR.replace("<step ", "<op ", 1), "layout of msccl-tools that no runtime reads"),
        (PAIR.replace('type="re" srcbuf="s"', 'type="cpy" srcbuf="s"'), "tb 2, step 1"),
        (PAIR[:300], "truncated"),
    ],
)
def test_invalid_programs_are_refused_with_their_place(
    tmp_path: Path, text: str, expected: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(expected)):
        read(tmp_path, text)


def test_races_of_large_programs_are_those_of_small_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrays hold the clocks of large programs, lists those of small ones."""
    errors = []
    for most in (1 << 14, 0):
        monkeypatch.setattr(races, "_FEW_CLOCKS", most)
        read(tmp_path, PAIR)
        with pytest.raises(ConfigError) as raised:
            read(tmp_path, RACE)
        errors.append(str(raised.value))
    assert errors[0] == errors[1]


# --- writing ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("algorithm", "collective", "ranks"),
    [
        ("ring", "all_reduce", 4),
        ("direct", "all_reduce", 5),
        ("recursive_halving_doubling", "all_reduce", 8),
        ("double_binary_tree", "all_reduce", 6),
        ("bruck", "all_gather", 6),
        ("ring", "all_gather", 4),
        ("swing", "reduce_scatter", 8),
        ("pat", "reduce_scatter", 5),
        ("bruck", "all_to_all", 5),
        ("hierarchical", "all_to_all", 4),
        ("scatter_all_gather", "broadcast", 4),
        ("binomial", "reduce", 5),
    ],
)
def test_a_written_program_has_the_same_messages(
    tmp_path: Path, algorithm: str, collective: str, ranks: int
) -> None:
    root = 2 if collective in {"broadcast", "reduce"} else 0
    schedule = tutti.schedule(algorithm, ranks=ranks, collective=collective, root=root)
    found, text, _ = rewritten(tmp_path, schedule)
    assert volumes(found) == volumes(schedule)
    assert found.verify().reductions == schedule.verify().reductions
    assert (found.collective, found.root) == (schedule.collective, schedule.root)
    again, copy, _ = rewritten(tmp_path, found)
    assert volumes(again) == volumes(schedule)
    assert copy.count("<step") == text.count("<step") or collective == "all_to_all"


def test_files_have_what_runtimes_require(tmp_path: Path) -> None:
    _, text, losses = rewritten(tmp_path, tutti.schedule("direct", ranks=4))
    head = text.splitlines()[0]
    for name in ("minBytes", "maxBytes", "inplace", "outofplace", "nchannels", "proto"):
        assert f'{name}="' in head
    assert 'inplace="1" outofplace="0"' in head
    steps = text.split("<step ")[1:]
    for step, after in itertools.pairwise(steps):
        if 'type="nop"' in step:  # runtimes refuse a nop before a step without a dependency
            assert 'depid="-1"' not in after
    blocks = re.findall(r'send="(-?\d+)" recv="(-?\d+)"', text)
    assert all("-1" in peers for peers in blocks)
    assert any("do not wait" in loss for loss in losses)
    (lost,) = read(tmp_path, text)[1]  # not the size range 0 to 0, nor the protocol Simple
    assert "a rank performs one sequence of steps" in lost


def test_long_programs_use_more_channels(tmp_path: Path) -> None:
    builder = tutti.ScheduleBuilder("broadcast", ranks=2, chunks=300)
    for chunk in range(300):
        builder.rank(0).send(1, chunk=chunk)
        builder.rank(1).recv(0, chunk=chunk)
    found, text, losses = rewritten(tmp_path, builder.build())
    assert found.verify().messages == 300
    assert 'nchannels="2"' in text
    assert not any("accept" in loss for loss in losses)


def test_work_has_no_counterpart(tmp_path: Path) -> None:
    builder = tutti.ScheduleBuilder("broadcast", ranks=2)
    builder.rank(0).compute("1 us").send(1)
    builder.rank(1).recv(0)
    assert "compute ops are omitted" in rewritten(tmp_path, builder.build())[2]
    gather = tutti.schedule("binomial", ranks=4, collective="gather")
    with pytest.raises(ConfigError, match="gather has no counterpart"):
        rewritten(tmp_path, gather)


def copied(name: str = "copy", **attributes: str) -> str:
    """An all_to_all of two GPUs, whose own blocks an element of `<gpu>` copies."""
    extra = "".join(f' {key}="{value}"' for key, value in attributes.items())
    text = program(
        "alltoall",
        2,
        [
            (
                "2 2 0",
                [
                    f"{1 - rank} -1 0: s i {1 - rank} o {rank} 1",
                    f"-1 {1 - rank} 0: r i {rank} o {1 - rank} 1",
                ],
            )
            for rank in range(2)
        ],
        inplace=0,
    )
    for rank in range(2):
        start = f'<gpu id="{rank}" i_chunks="2" o_chunks="2" s_chunks="0">'
        element = f'<{name} i_off="{rank}" o_off="{rank}"{extra}/>'
        text = text.replace(start, f"{start}{element}")
    return text


def test_copies_of_ncclize_are_performed(tmp_path: Path) -> None:
    """msccl-tools 2a3becf writes <copy> for blocks that stay; without it, chunk 0 is missing."""
    schedule, losses = read(tmp_path, copied())
    assert volumes(schedule) == {(0, 1): [0.5], (1, 0): [0.5]}
    assert not any("copy" in loss for loss in losses)
    without = re.sub(r"<copy [^>]*>", "", copied())
    with pytest.raises(ConfigError, match="nothing was written to chunk 0"):
        read(tmp_path, without)
    with pytest.raises(ConfigError, match=r"line 2.*\n.*\n.*a chunk below 2"):
        read(tmp_path, copied().replace('o_off="0"', 'o_off="2"', 1))


def test_unknown_elements_are_refused(tmp_path: Path) -> None:
    for text, problem in (
        (copied("frobnicate"), "line 2: unknown element <frobnicate> in <gpu>"),
        (copied("copi"), "did you mean `copy`?"),
        (ring(3).replace("</algo>", "<gpus/></algo>"), "unknown element <gpus> in <algo>"),
        (ring(3).replace("</tb>", "<stop/></tb>", 1), "unknown element <stop> in <tb>"),
    ):
        with pytest.raises(ConfigError) as caught:
            read(tmp_path, text)
        assert problem in str(caught.value)


def test_attributes_that_no_runtime_reads_are_listed(tmp_path: Path) -> None:
    text = ring(3).replace('cnt="1"', 'cnt="1" weird="3"').replace("<algo ", '<algo redop="sum" ')
    _, losses = read(tmp_path, text)
    assert 'attribute weird="3" of <step>, 15 x from line 4: no runtime reads it' in losses
    assert "redop sum" in losses
    _, losses = read(tmp_path, copied(o_of="1"))
    assert losses[-1].endswith("2 x from line 2: no runtime reads it; did you mean `o_off`?")


def test_assumed_values_are_named(tmp_path: Path) -> None:
    text = re.sub(' depid="-1" deps="-1" hasdep="0"', "", copied().replace(' inplace="0"', ""))
    _, losses = read(tmp_path, text)
    assert [loss.partition(", which")[0] for loss in losses if loss.startswith("inferred")] == [
        'inferred: inplace="0"',
        'inferred: depid="-1" of 4 steps',
        'inferred: hasdep="0" of 4 steps',
    ]
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, ring(3).replace(' inplace="1"', ""))
    assert 'assumed: inplace="0"' in str(caught.value)


def test_the_format_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    assert recognised(path, PAIR.encode(), option="--from").name == "msccl-xml"


# --- damage -----------------------------------------------------------------------------------


def damaged(text: str, rng: random.Random) -> str:
    """Returns a text with one to three values or lines changed, or bytes removed."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        lines = text.split("\n")
        at = rng.randrange(len(lines))
        action = rng.randrange(6)
        if action == 0:
            del lines[at]
        elif action == 1:
            lines.insert(at, lines[rng.randrange(len(lines))])
        elif action == 2:
            cut = rng.randrange(len(text) + 1)
            return text[:cut] + text[cut + rng.choice((1, 5, 1000)) :]
        else:
            found = list(re.finditer(r'"([^"]*)"', lines[at]))
            if found:
                word = rng.choice(found)
                value = rng.choice(VALUES)
                lines[at] = lines[at][: word.start(1)] + value + lines[at][word.end(1) :]
        text = "\n".join(lines) or "<"
    return text


VALUES = (
    *("-1", "0", "1", "2", "3", "7", "1000000", "99999999999999999999", "0x1", "1.5", "", "x"),
    *("i", "o", "s", "r", "rrs", "rrcs", "cpy", "re", "nop", "custom", "alltoall", "allgather"),
    *("&lt;", "\N{GREEK SMALL LETTER ALPHA}", "1e9", "true", "reduce", "broadcast"),
)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_damaged_files_end_in_a_result_or_an_error(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    seeds = (PAIR, ring(3), DEADLOCK)
    for _ in range(100):
        text = damaged(rng.choice(seeds), rng)
        try:
            schedule, _ = read(tmp_path, text)
        except TuttiError as error:
            assert str(tmp_path) in str(error)  # noqa: PT017 - most files are refused
        else:
            assert schedule.is_verified
