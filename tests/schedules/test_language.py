"""Chunk programs: compilation, errors at the user's line, and decompilation."""

from __future__ import annotations

import inspect
import random
from typing import TYPE_CHECKING, Any

import pytest

import tutti
from tutti import errors
from tutti.formats import formats
from tutti.schedules.ir import candidates
from tutti.schedules.language import RankGroup, load
from tutti.schedules.language.decompiler import is_equivalent

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LOGGP = tutti.Platform(
    name="loggp",
    model=tutti.LogGP(L="2500 ns", o="1500 ns", g="1000 ns", G="6 ns/B", gamma="0.1 ns/B"),
)
TORUS = tutti.Topology.build("torus:4x4", rate="10 GB/s", latency="50 ns").routes()
FLOWS = tutti.Platform(
    name="flows",
    model=tutti.PipeliningPostal(alpha_p="1 us", alpha_r="200 ns", gamma="0.1 ns/B"),
    routes=TORUS,
    contention=tutti.FlowLevel(),
)


def ring(group: RankGroup) -> None:
    reduce_scatter_ring(group)
    all_gather_ring(group, first=0)


def reduce_scatter_ring(group: RankGroup) -> None:
    for step in range(group.ranks - 1):
        for rank in range(group.ranks):
            chunk = group.chunk(rank, (rank - step - 1) % group.ranks)
            target = group.chunk((rank + 1) % group.ranks, chunk.index)
            target.fold(chunk, target)


def all_gather_ring(group: RankGroup, first: int = 0) -> None:
    for step in range(group.ranks - 1):
        for rank in range(group.ranks):
            group.chunk(rank, (rank + first - step) % group.ranks).copy((rank + 1) % group.ranks)


def recursive_doubling(group: RankGroup) -> None:
    for bit in range(group.ranks.bit_length() - 1):
        with group.exchange():
            for rank in range(group.ranks):
                low, high = sorted((rank, rank ^ 1 << bit))
                group.chunk(rank).fold(group.chunk(low), group.chunk(high))


def halving_doubling(group: RankGroup) -> None:
    first, distance, count = [0] * group.ranks, 1, group.ranks // 2
    while count:
        with group.exchange():
            for rank in range(group.ranks):
                first[rank] += count if rank & distance else 0
                low, high = sorted((rank, rank ^ distance))
                own, left, right = (
                    group.chunk(each, first[rank], count=count) for each in (rank, low, high)
                )
                own.fold(left, right)
        distance, count = distance * 2, count // 2
    count = 1
    while distance > 1:
        distance //= 2
        for rank in range(group.ranks):
            group.chunk(rank, first[rank], count=count).copy(rank ^ distance)
        first = [min(first[rank], first[rank ^ distance]) for rank in range(group.ranks)]
        count *= 2


def binomial(group: RankGroup) -> None:
    distance = group.ranks // 2
    while distance:
        for rank in range(0, group.ranks, 2 * distance):
            group.chunk(rank).copy(rank + distance)
        distance //= 2


def all_pairs(group: RankGroup) -> None:
    sent = {}
    for distance in range(1, group.ranks):
        for rank in range(group.ranks):
            peer = (rank + distance) % group.ranks
            sent[rank, peer] = group.chunk(rank).send(peer)
    for rank in range(group.ranks):
        own = group.chunk(rank)
        own.fold(*(sent.get((peer, rank), own) for peer in range(group.ranks)))


def hierarchical(group: RankGroup) -> None:
    nodes = [range(first, first + 4) for first in range(0, group.ranks, 4)]
    for node in nodes:
        reduce_scatter_ring(group.group(node, chunks=4))
    for local in range(4):
        across = [node[local] for node in nodes]
        ring(group.group(across, within=(4 * local, 4 * local + 4)))
    for node in nodes:
        group.group(node, chunks=4).perform(
            tutti.schedule("ring", collective="all_gather", ranks=4)
        )


def pairwise(group: RankGroup) -> None:
    for rank in range(group.ranks):
        group.chunk(rank, rank).copy(rank, buffer="out")
    for distance in range(1, group.ranks):
        for rank in range(group.ranks):
            peer = rank ^ distance
            group.chunk(rank, peer).copy(peer, rank, buffer="out", channel=0)


PROGRAMS: list[tuple[Callable[[RankGroup], None], str, str, dict[str, Any]]] = [
    (ring, "all_reduce", "ring", {"chunks": 16}),
    (recursive_doubling, "all_reduce", "recursive_doubling", {}),
    (halving_doubling, "all_reduce", "recursive_halving_doubling", {"chunks": 16}),
    (binomial, "broadcast", "binomial", {}),
    (all_pairs, "all_reduce", "direct", {}),
    (hierarchical, "all_reduce", "hierarchical:4x4:ring", {"chunks": 16}),
    (pairwise, "all_to_all", "pairwise", {"result": "out"}),
    (all_gather_ring, "all_gather", "ring", {}),
    (reduce_scatter_ring, "reduce_scatter", "ring", {}),
]


def built(
    algorithm: Callable[[RankGroup], None], collective: str, ranks: int = 16, **options: Any
) -> tutti.Schedule:
    with tutti.Program(collective, ranks=ranks, **options) as program:
        algorithm(program)
    return program.schedule


@pytest.mark.parametrize(("algorithm", "collective", "name", "options"), PROGRAMS)
def test_programs_take_the_time_of_built_in_algorithms(
    algorithm: Callable[[RankGroup], None], collective: str, name: str, options: dict[str, Any]
) -> None:
    program = built(algorithm, collective, **options)
    reference = tutti.schedule(name, collective=collective, ranks=16)
    assert program.is_verified
    assert program.verify().rendezvous_safe
    for platform in (LOGGP, FLOWS):
        for size in ("1 KiB", "16 MiB"):
            times = [
                tutti.simulate(each, platform, size=size).completion_ps
                for each in (program, reference)
            ]
            assert times[0] == times[1]


def test_a_ring_has_the_ops_of_the_built_in_ring() -> None:
    assert is_equivalent(built(ring, "all_reduce", 5, chunks=5), tutti.schedule("ring", ranks=5))


def chain(group: RankGroup) -> None:
    for rank in range(group.ranks - 1):
        group.chunk(rank).copy(rank + 1)


def test_instances_are_concurrent_or_pipelined() -> None:
    parallel = built(chain, "broadcast", 4, instances=3)
    pipelined = built(chain, "broadcast", 4, instances=3, pipelined=True)
    assert (parallel.chunks, parallel.steps(1), len(parallel.ops(1, 0))) == (3, 2, 3)
    assert [str(op) for op in pipelined.ops(1, 1)] == ["send data[0] to 2", "recv data[1] from 0"]
    assert pipelined.steps(1) == 4


def test_instances_of_overlapping_ranges_are_correct() -> None:
    assert built(halving_doubling, "all_reduce", 8, chunks=8, instances=2).chunks == 16


def test_an_exchange_swaps_chunks() -> None:
    with tutti.Program("all_to_all", ranks=2, chunks=2) as program, program.exchange():
        program.chunk(0, 1).copy(1, 0)
        program.chunk(1, 0).copy(0, 1)
    assert program.schedule.steps(0) == 1


def overwrites() -> None:
    with tutti.Program("all_reduce", ranks=2) as program:
        first, second = program.chunk(0), program.chunk(1)
        first.reduce(second)
        second.reduce(first)


def test_stale_chunks_name_both_lines() -> None:
    with pytest.raises(errors.ProgramError, match="was overwritten at") as caught:
        overwrites()
    start = inspect.getsourcelines(overwrites)[1]
    assert caught.value.kind == "stale"
    assert (caught.value.file, caught.value.line) == (__file__, start + 4)
    assert caught.value.overwritten == (__file__, start + 3)


def test_uninitialised_chunks_are_refused() -> None:
    with (
        pytest.raises(errors.ProgramError, match="never written") as caught,
        tutti.Program("broadcast", ranks=3) as program,
    ):
        program.chunk(1).copy(2)
    assert caught.value.kind == "uninitialised"


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        (lambda p: p.chunk(3), "no_such_rank"),
        (lambda p: p.chunk(0, 4), "no_such_chunks"),
        (lambda p: p.chunk(0).fold(), "no_operands"),
        (lambda p: p.chunk(0).reduce(p.chunk(1, count=2)), "counts"),
        (lambda p: p.chunk(0).fold(p.chunk(1, 1), in_network=True), "in_network"),
        (lambda p: p.chunk(0).copy([1, 1]), "multicast"),
        (lambda p: p.chunk(0).send(0), "multicast"),
        (lambda p: (p.chunk(0).send(1), p.chunk(0).copy(1)), "order"),
        (lambda p: p.chunk(0).send(1), "not_received"),
        (lambda p: p.group([0, 0]), "group"),
        (lambda p: p.group([0, 1], chunks=3), "group"),
        (lambda p: p.schedule, "not_finished"),
        (lambda p: p.perform(tutti.schedule("ring", ranks=2)), "does_not_fit"),
        (lambda p: p.perform(tutti.schedule("elimination", ranks=3)), "does_not_fit"),
    ],
)
def test_invalid_statements_are_refused(
    statement: Callable[[tutti.Program], object], kind: str
) -> None:
    with (
        pytest.raises(errors.ProgramError) as caught,
        tutti.Program("all_reduce", ranks=3, chunks=4) as program,
    ):
        statement(program)
    assert caught.value.kind == kind
    assert caught.value.file == __file__


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        (lambda p: (p.chunk(0).copy(1), p.chunk(2).copy(1)), "written_twice"),
        (lambda p: p.chunk(0).copy(1).copy(2), "in_exchange"),
        (lambda p: p.step(), "nested"),
        (lambda p: p.exchange().__enter__(), "nested"),
    ],
)
def test_invalid_exchanges_are_refused(
    statement: Callable[[tutti.Program], object], kind: str
) -> None:
    with (
        pytest.raises(errors.ProgramError) as caught,
        tutti.Program("all_reduce", ranks=3) as program,
        program.exchange(),
    ):
        statement(program)
    assert caught.value.kind == kind


def test_statements_outside_the_block_are_refused() -> None:
    program = tutti.Program("all_reduce", ranks=2)
    with pytest.raises(errors.ProgramError) as caught:
        program.chunk(0).copy(1)
    assert caught.value.kind == "closed"
    for chunks, instances in ((0, 1), (1, 0)):
        with pytest.raises(errors.ProgramError, match="chunks and"):
            tutti.Program("all_reduce", ranks=2, chunks=chunks, instances=instances)
    with pytest.raises(errors.AlgorithmError, match="all_reduce"):
        tutti.Program("all_reduces", ranks=2)


def reduces_twice() -> None:
    with tutti.Program("all_reduce", ranks=2) as program:
        program.chunk(0).reduce(program.chunk(1))
        program.chunk(0).reduce(program.chunk(1))
        program.chunk(0).copy(1)


def test_a_wrong_result_names_the_last_line_that_wrote_it() -> None:
    with pytest.raises(errors.VerificationError, match="wrote it last") as caught:
        reduces_twice()
    last = inspect.getsourcelines(reduces_twice)[1] + 3
    assert (caught.value.kind, caught.value.rank, caught.value.line) == ("doubled", 0, last)


def test_an_exception_in_the_block_propagates() -> None:
    with pytest.raises(ZeroDivisionError), tutti.Program("all_reduce", ranks=2):
        _ = 1 / 0


def executed(source: str) -> tutti.Schedule:
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    schedule = namespace["build"]()
    assert isinstance(schedule, tutti.Schedule)
    return schedule


SELECTED = random.Random(5).sample(
    [
        (name, collective, ranks)
        for collective in ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce",
                           "gather", "scatter", "all_to_all", "all_to_all_v", "barrier")
        for ranks in (2, 3, 4, 6, 8)
        for name in candidates(collective, ranks)
    ],
    20,
)  # fmt: skip
SPECIAL = [("elimination", "all_reduce", 3), ("in_network", "all_reduce", 4),
           ("direct", "all_to_all_v", 3), ("double_binary_tree", "all_reduce", 5)]  # fmt: skip


@pytest.mark.parametrize(("name", "collective", "ranks"), [*SPECIAL, *SELECTED])
def test_decompiled_programs_are_equivalent(name: str, collective: str, ranks: int) -> None:
    schedule = tutti.schedule(name, collective=collective, ranks=ranks)
    again = executed(tutti.decompile(schedule))
    assert is_equivalent(schedule, again)
    size = "0 B" if collective == "barrier" else f"{schedule.chunks * 32} B"
    times = [tutti.simulate(each, LOGGP, size=size).completion_ps for each in (schedule, again)]
    assert times[0] == times[1]


def test_regular_schedules_become_loops() -> None:
    source = tutti.decompile(tutti.schedule("ring", ranks=8))
    assert source.count("for step in range(7):") == 2
    assert len(source.splitlines()) == 13


def test_work_and_overlapping_steps_are_decompiled() -> None:
    builder = tutti.ScheduleBuilder("all_reduce", ranks=2)
    builder.rank(0).send(1).recv(1, slot=1).reduce(0, [0, 1]).compute("1.5 us").copy(0, into=1)
    builder.rank(1).send(0).recv(0, slot=2).reduce(0, [2, 0]).sleep("3 ns")
    schedule = builder.build()
    assert is_equivalent(schedule, executed(tutti.decompile(schedule)))


def test_the_format_is_write_only(tmp_path: Path) -> None:
    entry = formats.named("chunk-program", option="--to")
    assert entry.read is None
    assert entry.write is not None
    path = tmp_path / "ring.py"
    assert entry.write(tutti.schedule("ring", ranks=3), path, formats.Options()) == ()
    assert executed(path.read_text()).ranks == 3


def test_programs_are_loaded_by_name(tmp_path: Path) -> None:
    source = tutti.decompile(tutti.schedule("ring", ranks=3))
    (tmp_path / "ring_of_three.py").write_text(f"{source}\n\nnumber = int\n")
    assert load("ring_of_three:build", tmp_path).ranks == 3
    for refused in ("ring_of_three", "ring_of_three:missing", "ring_of_three:number", "none_x:f"):
        with pytest.raises(errors.ProgramError) as caught:
            load(refused, tmp_path)
        assert caught.value.kind == "load"
