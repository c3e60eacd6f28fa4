"""The critical path of the program graph takes as long as the engine's run."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import networkx as nx
import pytest

import tutti
from tutti.schedules.view.program_graph import program_graph

if TYPE_CHECKING:
    from tutti.schedules.ir import Schedule

ALPHA_P, ALPHA_R, BETA, OVERHEAD = 500_000, 100_000, 400, 10_000
MACHINE = tutti.Platform(
    name="simulator of Ruefenacht et al. 2017, section 6",
    model=tutti.PipeliningPostal(
        alpha_p="500 ns", alpha_r="100 ns", beta="0.4 ns/B", reduce_overhead="10 ns"
    ),
)

SCHEDULES = [
    ("recursive_multiplying:a2,a2,a2", 8),
    ("recursive_multiplying:a8", 8),
    ("recursive_multiplying:a3,a2", 6),
    ("recursive_multiplying:c6m2,a2,a2,e6m2", 7),
    ("recursive_multiplying:m1g2a3,n1g3a2", 7),
    ("recursive_multiplying:m3g2a2,n3g2a2", 7),
    ("recursive_doubling", 7),
    ("ring", 6),
    ("recursive_halving_doubling", 8),
    ("direct", 5),
    ("binomial", 7),
]


def longest_walk(schedule: Schedule, size: int) -> int:
    """The end of the last task by the pipelining postal model, from its formula."""
    graph = program_graph(schedule)
    ends: dict[str, int] = {}
    for task in nx.topological_sort(graph):
        facts = graph.nodes[task]
        ready = 0
        for before in graph.predecessors(task):
            travels = graph.edges[before, task]["kind"] == "message"
            ready = max(ready, ends[before] + (ALPHA_P if travels else 0))
        ends[task] = ready + cost(facts, size)
    return max(ends.values())


def cost(facts: dict[str, Any], size: int) -> int:
    if facts["kind"] == "put":
        return ALPHA_R + BETA * (size * int(facts["chunks"]) // int(facts["of"]))
    return OVERHEAD if facts["op"] == "reduce" else 0


@pytest.mark.parametrize(("notation", "ranks"), SCHEDULES)
def test_the_longest_walk_is_the_completion_time(notation: str, ranks: int) -> None:
    schedule = tutti.schedule(notation, collective="all_reduce", ranks=ranks)
    size = 8 * math.lcm(schedule.chunks, 4)
    run = tutti.simulate(schedule, MACHINE, size=f"{size} B", datatype="float64")
    assert longest_walk(schedule, size) == run.completion_ps


@pytest.mark.parametrize(("notation", "ranks"), SCHEDULES)
def test_tasks_match_the_ops_of_the_schedule(notation: str, ranks: int) -> None:
    schedule = tutti.schedule(notation, collective="all_reduce", ranks=ranks)
    graph = program_graph(schedule)
    ops = [
        op.kind
        for rank in range(ranks)
        for step in range(schedule.steps(rank))
        for op in schedule.ops(rank, step)
    ]
    tasks = [facts["op"] for _, facts in graph.nodes(data=True) if facts["op"]]
    assert sorted(tasks) == sorted(kind for kind in ops if kind != "recv")
    messages = [e for e in graph.edges if graph.edges[e]["kind"] == "message"]
    assert len(messages) == ops.count("recv")
