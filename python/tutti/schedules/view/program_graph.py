"""Program graphs: schedules as task graphs, as in Fig. 17 of Ruefenacht et al. 2017.

Tasks are start (S), put (P), compute (C), sleep and proxy; start and proxy take no time. Edges
within a rank are program order; edges from a put to a task of another rank are messages. In models
without contention at receivers, the completion time is the longest path through the graph.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tutti.view.errors import ReportError
from tutti.view.palette import BLUE, FAINT, GREEN, GREY, OLIVE, RED
from tutti.view.plot import FORMATS, figure_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    import networkx as nx
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tutti.schedules.ir import Op, Schedule

MOST_TASKS = 200_000
"""Maximum number of tasks of a graph."""
MOST_DRAWN = 600
"""Maximum number of tasks of a drawing."""

LABELS = {"start": "S", "put": "P", "compute": "C", "sleep": "Z", "proxy": ""}
COLOURS = {
    "start": GREY,
    "put": BLUE,
    "compute": GREEN,
    "sleep": OLIVE,
    "proxy": FAINT,
}


def program_graph(schedule: Schedule) -> nx.DiGraph[str]:
    """Returns the program graph of a schedule.

    Nodes have `kind` (start, put, compute, sleep, proxy), `op` (the op of the schedule, or empty),
    `rank`, `step` and `step_name`. Where applicable, they have `peer`, `chunks` and `of` (the
    fraction of the payload), `operands` and `duration_ps`. Edges have `kind`: "program" within a
    rank, "message" between ranks.

    Raises:
        ReportError: The graph has more than `MOST_TASKS` tasks, or a receive has no send.
    """
    import networkx as nx

    graph: nx.DiGraph[str] = nx.DiGraph(name=schedule.name, ranks=schedule.ranks)
    puts: dict[tuple[int, int], deque[str]] = defaultdict(deque)
    waits: list[tuple[str, int, int]] = []
    for rank in range(schedule.ranks):
        program = _Program(graph, schedule, rank)
        for step in range(schedule.steps(rank)):
            program.add_step(step)
        for name, peer in program.puts:
            puts[(rank, peer)].append(name)
        waits += [(name, peer, rank) for name, peer in program.waits]
    # The k-th message from a to b matches the k-th receive that b posts for a.
    for name, source, rank in waits:
        if not puts[(source, rank)]:
            raise ReportError(
                f"rank {rank} receives a message that rank {source} does not send",
                kind="unmatched",
            )
        graph.add_edge(puts[(source, rank)].popleft(), name, kind="message")
    return graph


_SENDS = ("send", "multicast", "contribute")


class _Program:
    """Adds the tasks of one rank to a graph, in program order."""

    def __init__(self, graph: nx.DiGraph[str], schedule: Schedule, rank: int) -> None:
        self._graph = graph
        self._schedule = schedule
        self._rank = rank
        self._last: str | None = None
        self.puts: list[tuple[str, int]] = []
        self.waits: list[tuple[str, int]] = []
        self._add("start", 0, "")

    def add_step(self, step: int) -> None:
        """Adds sends in sequence, then a task that waits for all receives, then local ops."""
        ops = self._schedule.ops(self._rank, step)
        name = self._schedule.step_name(self._rank, step)
        waited = [peer for op in ops if op.kind in ("recv", "combine") for peer in op.peers]
        for op in ops:
            if op.kind in _SENDS:
                self.puts += [(self._add("put", step, name, op, peer), peer) for peer in op.peers]
        for op in ops:
            if op.kind == "recv" or op.kind in _SENDS:
                continue
            # The first local op waits for the receives; without local ops, a proxy does.
            task = self._add("sleep" if op.kind == "sleep" else "compute", step, name, op)
            self.waits += [(task, peer) for peer in waited]
            waited = []
        if waited:
            task = self._add("proxy", step, name)
            self.waits += [(task, peer) for peer in waited]

    def _add(
        self, kind: str, step: int, step_name: str, op: Op | None = None, peer: int | None = None
    ) -> str:
        count = self._graph.number_of_nodes()
        if count >= MOST_TASKS:
            raise ReportError(
                f"{self._schedule.name} on {self._schedule.ranks:,} ranks has more than "
                f"{MOST_TASKS:,} tasks: expected a smaller schedule",
                kind="too_large",
            )
        name = f"t{count}"
        facts: dict[str, Any] = {"kind": kind, "op": op.kind if op else "", "rank": self._rank}
        facts |= {"step": step, "step_name": step_name}
        if op is not None:
            facts |= _facts(op, self._schedule.chunks)
        if peer is not None:
            facts["peer"] = peer
        self._graph.add_node(name, **facts)
        if self._last is not None:
            self._graph.add_edge(self._last, name, kind="program")
        self._last = name
        return name


def _facts(op: Op, of: int) -> dict[str, int]:
    facts: dict[str, int] = {}
    if op.chunks is not None:
        start, end = op.chunks
        facts |= {"chunk_start": start, "chunk_end": end, "chunks": end - start, "of": of}
    if op.operands is not None:
        facts["operands"] = len(op.operands)
    if op.duration_ps is not None:
        facts["duration_ps"] = op.duration_ps
    return facts


def draw_program_graph(path: str | Path, schedule: Schedule) -> Path:
    """Draws or exports the program graph of a schedule.

    Args:
        path: The file to write; `.svg`, `.png` and `.pdf` draw, `.dot` and `.graphml` export.
        schedule: The schedule.

    Returns:
        The path written.

    Raises:
        ReportError: The schedule is too large, or its messages do not match.
    """
    import networkx as nx

    target = Path(path)
    ending = target.suffix.lower()
    endings = (*FORMATS, ".dot", ".graphml")
    if ending not in endings:
        raise ReportError(
            f"cannot draw to {str(path)!r}: expected a suffix in {', '.join(endings)}",
            kind="choice",
        )
    graph = program_graph(schedule)
    if ending == ".dot":
        target.write_text(to_dot(graph), encoding="utf-8", newline="\n")
    elif ending == ".graphml":
        nx.write_graphml_xml(graph, target)
    else:
        _refuse_many(graph.number_of_nodes())
        places = layout(graph)
        columns = max(place.x for place in places.values()) + 1
        with figure_at(target, (1.0 + 0.62 * columns, 0.9 + 0.62 * schedule.ranks)) as figure:
            _draw(figure, graph, places, schedule)
    return target


def _refuse_many(tasks: int) -> None:
    if tasks > MOST_DRAWN:
        raise ReportError(
            f"{tasks:,} tasks are too many to draw: expected at most {MOST_DRAWN}",
            kind="too_large",
            hint="export it as .dot or .graphml, or draw fewer ranks",
        )


@dataclass(frozen=True)
class Place:
    """The position of a task: column by depth, row by rank."""

    x: float
    y: float


def layout(graph: nx.DiGraph[str]) -> dict[str, Place]:
    """Returns a position per task: a row per rank, a column per depth."""
    import networkx as nx

    places = {}
    for depth, generation in enumerate(nx.topological_generations(graph)):
        for name in generation:
            places[name] = Place(float(depth), float(graph.nodes[name]["rank"]))
    return places


def _draw(
    figure: Figure, graph: nx.DiGraph[str], places: dict[str, Place], schedule: Schedule
) -> None:
    axes = figure.add_subplot()
    for source, target in sorted(graph.edges, key=_numbered):
        _draw_edge(axes, places[source], places[target], graph.edges[source, target]["kind"])
    for name, facts in graph.nodes(data=True):
        _draw_task(axes, places[name], facts)
    axes.set_xlim(-0.6, max(place.x for place in places.values()) + 0.6)
    axes.set_ylim(schedule.ranks - 0.4, -0.6)
    axes.set_yticks(range(schedule.ranks), [f"rank {rank}" for rank in range(schedule.ranks)])
    axes.set_xticks([])
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_title(schedule.name, loc="left")
    _legend(figure, {facts["kind"] for _, facts in graph.nodes(data=True)})


def _draw_edge(axes: Axes, source: Place, target: Place, kind: str) -> None:
    program = kind == "program"
    arrow = {
        "arrowstyle": "-|>,head_width=0.14,head_length=0.3",
        "color": "#59636E" if program else RED,
        "lw": 1.0 if program else 0.7,
        "shrinkA": 9,
        "shrinkB": 9,
        # Messages are bent so that they do not cover each other.
        "connectionstyle": "arc3,rad=0" if program else "arc3,rad=0.12",
    }
    axes.annotate("", (target.x, target.y), (source.x, source.y), arrowprops=arrow, zorder=1)


def _draw_task(axes: Axes, place: Place, facts: dict[str, Any]) -> None:
    kind = facts["kind"]
    face = COLOURS[kind]
    axes.plot(place.x, place.y, "o", markersize=17, color=face, markeredgecolor="white", zorder=2)
    label = f"{LABELS[kind]}{facts['peer']}" if kind == "put" else LABELS[kind]
    ink = "black" if kind == "proxy" else "white"
    size = 8 if len(label) < 4 else 6
    axes.text(place.x, place.y, label, ha="center", va="center", fontsize=size, color=ink, zorder=3)


def _legend(figure: Figure, kinds: set[str]) -> None:
    from matplotlib.patches import Patch

    meanings = {"put": "put to rank"}
    handles = [
        Patch(color=COLOURS[kind], label=f"{LABELS[kind]} {meanings.get(kind, kind)}".strip())
        for kind in LABELS
        if kind in kinds
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))


def _numbered(edge: tuple[str, str]) -> tuple[int, int]:
    return int(edge[0][1:]), int(edge[1][1:])


def to_dot(graph: nx.DiGraph[str]) -> str:
    """Returns the graph in the DOT language, a cluster per rank."""
    return "\n".join(_dot_lines(graph)) + "\n"


def _dot_lines(graph: nx.DiGraph[str]) -> Iterator[str]:
    yield f"digraph {_quoted(str(graph.graph['name']))} {{"
    yield "  rankdir=LR; node [shape=circle, style=filled, fontcolor=white, fixedsize=true];"
    by_rank: dict[int, list[tuple[str, dict[str, Any]]]] = defaultdict(list)
    for name, facts in graph.nodes(data=True):
        by_rank[facts["rank"]].append((name, facts))
    for rank, tasks in sorted(by_rank.items()):
        yield f"  subgraph cluster_{rank} {{ label={_quoted(f'rank {rank}')};"
        for name, facts in tasks:
            tip = f"{facts['kind']} {facts['op']} step {facts['step']} {facts['step_name']}"
            label, colour = LABELS[facts["kind"]], COLOURS[facts["kind"]]
            yield f'    {name} [label="{label}", fillcolor="{colour}", tooltip={_quoted(tip)}];'
        yield "  }"
    for source, target in sorted(graph.edges, key=_numbered):
        kind = graph.edges[source, target]["kind"]
        style = "" if kind == "program" else f' [color="{RED}", constraint=true]'
        yield f"  {source} -> {target}{style};"
    yield "}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
