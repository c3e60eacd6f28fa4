"""Searches for scheduling anomalies: runs that get faster when a component gets slower.

Draws random runs of each engine and increases one number at a time: a parameter of the model, the
time per byte or latency of links, the compute time, or noise. Prints the pairs of runs with the
largest savings. Graham (1969) described the effect in first-come, first-served queues: see
"Scheduling anomalies" in `docs/models/README.md`. The search has no pass criterion.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from dataclasses import dataclass, replace
from typing import Any, Final

import tutti
from tutti import _core
from tutti.base.errors import TuttiError
from tutti.networks.mesh import SmartMesh
from tutti.training.endpoint import Npu, Ring, configurations, torus

ENGINES: Final = ("model", "packet", "flit", "mesh", "training")
FACTORS: Final = (1.1, 1.5, 2.0, 4.0)
NOISE_PS: Final = (5_000, 50_000, 500_000)
COLLECTIVES: Final = ("all_reduce", "all_to_all", "all_gather", "reduce_scatter", "broadcast")
ALGORITHMS: Final = (
    "binomial",
    "bruck",
    "direct",
    "dissemination",
    "double_binary_tree",
    "mirrored_ring",
    "pairwise",
    "recursive_doubling",
    "recursive_halving_doubling",
    "ring",
    "swing",
)
TOPOLOGIES: Final = ("ring:8", "mesh:4x4", "torus:4x4", "switch:8", "switch:16", "mesh:3x3")
DESIGNS: Final = ("smart_1d", "sfo_greedy")
SIZES: Final = ("64 B", "1004 B", "4 KiB", "10004 B", "64 KiB")
BUFFERS: Final = ("8 KiB", "64 KiB")
TORI: Final = ("2", "4", "22", "42", "44", "422")
GRADIENTS: Final = (1_000, 40_000, 100_000, 300_000, 1_000_000)
CHUNK, MESSAGE = tutti.Size.parse("64 KiB"), tutti.Size.parse("8 KiB")
MODELS: Final[dict[str, tuple[Any, tuple[str, ...], str | None]]] = {
    "postal": (tutti.Postal, ("alpha",), "beta"),
    "pipelining_postal": (tutti.PipeliningPostal, ("alpha_p", "alpha_r"), "beta"),
    "logp": (tutti.LogP, ("L", "o", "g"), None),
    "loggp": (tutti.LogGP, ("L", "o", "g"), "G"),
}
"""Each model: its class, its times, and its time per byte if it has one."""


@dataclass(frozen=True)
class Case:
    """A run.

    Attributes:
        engine: One of `ENGINES`.
        fixed: Constant settings: algorithm, collective, topology, model, size, buffer; of a
            training step endpoint, rings, order, gradients.
        numbers: Varied times, in picoseconds.
    """

    engine: str
    fixed: tuple[str, ...]
    numbers: dict[str, int]

    def raised(self, name: str, value: int) -> Case:
        """Returns the same run with a larger number."""
        return replace(self, numbers=self.numbers | {name: value})

    def simulate(self) -> int:
        """Returns the completion time in picoseconds."""
        if self.engine == "training":
            return _train(self)
        algorithm, collective, graph, kind, size, _ = self.fixed
        platform = tutti.Platform(name="drawn", model=_model(kind, self.numbers), **_network(self))
        ranks = 16 if self.engine == "mesh" else _ranks(graph)
        schedule = tutti.schedule(algorithm, collective=collective, ranks=ranks)
        conditions = _conditions(self.numbers["noise"])
        return tutti.simulate(schedule, platform, size=size, conditions=conditions).completion_time


def _ranks(graph: str) -> int:
    return math.prod(int(side) for side in graph.partition(":")[2].split("x"))


def _model(kind: str, numbers: dict[str, int]) -> tutti.Model:
    build, times, per_byte = MODELS[kind]
    given = {name: f"{numbers[name]} ps" for name in times}
    if per_byte:
        given[per_byte] = f"{numbers['per_byte']} ps/B"
    return build(**given)


def _network(case: Case) -> dict[str, Any]:
    graph, buffer, numbers = case.fixed[2], case.fixed[5], case.numbers
    if case.engine == "mesh":
        return {"contention": tutti.MeshFlits(mesh=SmartMesh(design=graph, rows=4, columns=4))}
    rate, latency = f"{numbers['link_per_byte']} ps/B", f"{numbers['link_latency']} ps"
    routes = tutti.Topology.build(graph, rate=rate, latency=latency).routes()
    if case.engine == "packet":
        return {"routes": routes, "contention": tutti.Packets(size="1 KiB", buffer=buffer)}
    if case.engine == "flit":
        return {"routes": routes, "contention": tutti.Flits(flit="16 B", narrow_links="serialize")}
    return {"routes": routes}


def _conditions(noise: int) -> tutti.Conditions | None:
    if not noise:
        return None
    return tutti.Conditions(
        noise=tutti.platforms.Noise(step=tutti.platforms.Exponential(mean=f"{noise} ps"))
    )


def _train(case: Case) -> int:
    endpoint, sides, order, gradients = case.fixed
    per_byte, latency = case.numbers["link_per_byte"], tutti.Time(ps=case.numbers["link_latency"])
    rates = (f"{per_byte * (1 if place == 0 else 8)} ps/B" for place in range(len(sides)))
    rings = [
        Ring("ring", int(side), tutti.TimePerByte.parse(rate), latency)
        for side, rate in zip(sides, rates, strict=True)
    ]
    fabric, configuration = torus(rings), configurations()[endpoint]
    program = _core.TrainingProgram(
        [_layer(case.numbers["compute"], int(size), len(sides)) for size in gradients.split("+")],
        iterations=2,
        overlap=configuration.overlap,
    )
    found = configuration.endpoint(Npu(), fabric, chunk=CHUNK, message=MESSAGE)
    settings = _core.FabricSettings(chunk=CHUNK.bytes, message=MESSAGE.bytes, order=order)
    return _core.simulate_training([program], fabric, found, settings).end_ps


def _layer(compute: int, gradients: int, rings: int) -> _core.TrainingLayer:
    return _core.TrainingLayer(
        "layer",
        forward_ps=compute,
        input_gradient_ps=compute,
        weight_gradient_ps=compute,
        after_weight_gradient=_core.Transfer("all_reduce", (1 << rings) - 1, gradients),
    )


def _drawn(engine: str, draw: random.Random) -> Case:
    if engine == "training":
        gradients = "+".join(str(draw.choice(GRADIENTS)) for _ in range(draw.randint(1, 4)))
        order = draw.choice(("lifo", "fifo"))
        endpoint = draw.choice(tuple(configurations()))
        numbers = {
            "link_per_byte": draw.choice((5, 20)),
            "link_latency": draw.choice((10_000, 100_000, 424_000)),
            "compute": draw.choice((50_000, 500_000, 3_000_000)),
        }
        return Case(engine, (endpoint, draw.choice(TORI), order, gradients), numbers)
    kind = draw.choice(tuple(MODELS))
    algorithm, collective = draw.choice(ALGORITHMS), draw.choice(COLLECTIVES)
    graph = draw.choice(DESIGNS if engine == "mesh" else TOPOLOGIES)
    size = draw.choice((*SIZES, "1 MiB") if engine == "packet" else SIZES)
    _, times, per_byte = MODELS[kind]
    numbers = {name: draw.choice((1_000, 50_000, 300_000, 1_000_000)) for name in times}
    if per_byte:
        numbers["per_byte"] = draw.choice((1, 40, 100))
    if engine != "mesh":
        numbers["link_per_byte"] = draw.choice((63, 125) if engine == "flit" else (40, 100, 250))
        numbers["link_latency"] = draw.choice((2_000, 50_000, 500_000))
    numbers["noise"] = 0
    fixed = (algorithm, collective, graph, kind, size, draw.choice(BUFFERS))
    return Case(engine, fixed, numbers)


def _slower(case: Case, draw: random.Random) -> tuple[Case, str]:
    name, value = draw.choice(list(case.numbers.items()))
    larger = draw.choice(NOISE_PS) if name == "noise" else round(value * draw.choice(FACTORS))
    return case.raised(name, larger), f"{name} {value} -> {larger} ps"


def search(engine: str, seconds: float, seed: int) -> tuple[int, list[tuple[float, str]]]:
    """Compares runs of an engine with slower ones.

    Args:
        engine: One of `ENGINES`.
        seconds: The duration of the search.
        seed: The seed of the draws.

    Returns:
        The number of compared pairs, and the five with the largest savings: the saved share of the
        time, and the run.
    """
    draw, compared = random.Random(seed), 0
    saved: dict[str, float] = {}
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        case = _drawn(engine, draw)
        try:
            before = case.simulate()
            for other, what in (_slower(case, draw) for _ in range(6)):
                after = other.simulate()
                compared += 1
                if after < before:
                    run = f"{' '.join(case.fixed)} {case.numbers}"
                    saved[f"{run}; {what}: {before} -> {after} ps"] = 1 - after / before
        except TuttiError:  # Not every algorithm performs every collective.
            continue
    worst = sorted(((part, run) for run, part in saved.items()), reverse=True)
    return compared, worst[:5]


def main() -> None:
    """Prints the anomalies."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engines", nargs="*", default=ENGINES, help=", ".join(ENGINES))
    parser.add_argument("--seconds", type=float, default=60, help="for each engine")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for engine in given.engines:
        compared, worst = search(engine, given.seconds, given.seed)
        print(f"{engine}: {compared} pairs of runs")
        for part, run in worst:
            print(f"  {100 * part:.2f} % {run}")


if __name__ == "__main__":
    main()
