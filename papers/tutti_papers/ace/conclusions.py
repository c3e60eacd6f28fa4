"""The paper's conclusions, which its text states in words, and whether the runs support them."""

from __future__ import annotations

from itertools import pairwise, product
from typing import TYPE_CHECKING

from tutti_papers.claims import Conclusion, verdict_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tutti_papers.claims import Claim

    Case = tuple[str, str, str]
    """Model, size, configuration."""

BASELINES = ("no_overlap", "comm_opt", "comp_opt")
_ROUNDING = 1e-9
_LITTLE = 10.0
"""Per cent that a larger design may gain where returns diminish."""
_IDLE = 1.0
"""Per cent of a pass in which an idle engine may be active."""
_SENSITIVE = 1.5
"""The slowdown by half the memory bandwidth beyond which compute is sensitive to it; 1 to 2."""


def counts(claims: Sequence[Claim], conclusions: Sequence[Conclusion]) -> str:
    """Returns the line on top of a drawing: values that agree, conclusions that hold."""
    held = sum(one.holds for one in conclusions)
    return f"{verdict_line(claims)}. {held} of {len(conclusions)} conclusions hold"


def _all(statement: str, cases: Iterable[tuple[str, bool]]) -> Conclusion:
    """Returns a conclusion that holds if every case does; `why` names the exceptions."""
    found = list(cases)
    exceptions = [name for name, holds in found if not holds]
    held = f"in {len(found) - len(exceptions)} of {len(found)} cases"
    why = f"{held}; not in {', '.join(exceptions)}" if exceptions else held
    return Conclusion(statement=statement, holds=not exceptions, why=why)


def of_designs(speed: Mapping[tuple[str, str, int], float]) -> tuple[Conclusion, ...]:
    """Returns the conclusions of figure 9.

    Args:
        speed: Speed of an all_reduce by size, scratchpad and FSMs; the size `workloads` has the
            speed of iterations.
    """
    sizes = list(dict.fromkeys(size for size, _, _ in speed))
    steps = {
        "returns diminish beyond 4 MiB": (("2 MiB", 16), ("4 MiB", 16), ("8 MiB", 16)),
        "returns diminish beyond 16 FSMs": (("4 MiB", 12), ("4 MiB", 16), ("4 MiB", 20)),
    }

    def gain(size: str, slower: tuple[str, int], faster: tuple[str, int]) -> float:
        return 100 * (speed[(size, *faster)] / speed[(size, *slower)] - 1)

    def diminish(size: str, designs: tuple[tuple[str, int], ...]) -> tuple[str, bool]:
        before, after = (gain(size, *pair) for pair in pairwise(designs))
        return f"{size} ({before:.1f} %, then {after:.1f} %)", after < max(before / 2, 1)

    def enough(size: str) -> tuple[str, bool]:
        more = gain(size, ("4 MiB", 16), ("8 MiB", 24))
        return f"{size} ({more:.1f} %)", more < _LITTLE

    return (
        *(
            _all(statement, [diminish(size, designs) for size in sizes])
            for statement, designs in steps.items()
        ),
        _all(
            f"8 MiB and 24 FSMs together gain less than {_LITTLE:.0f} %",
            [enough(size) for size in sizes],
        ),
    )


def of_activity(active: Mapping[str, tuple[float, float]]) -> tuple[Conclusion, ...]:
    """Returns the conclusions of the second half of figure 9.

    Args:
        active: Per cent of the forward and the backward pass in which ACE is active, by model.
    """

    def forward(model: str) -> tuple[str, bool]:
        share = active[model][0]
        idle = share < _IDLE
        return f"{model} ({share:.1f} %)", not idle if model.startswith("dlrm") else idle

    return (
        _all(
            "ACE is active in the forward pass of DLRM only, which has an all-to-all",
            [forward(model) for model in active],
        ),
        _all(
            "ACE is idle in a part of the backward pass",
            [(f"{model} ({back:.1f} %)", back < 100) for model, (_, back) in active.items()],
        ),
    )


def of_links(
    used: Mapping[tuple[str, str], tuple[float, float]], communicating: Mapping[str, float]
) -> tuple[Conclusion, ...]:
    """Returns the conclusions of figure 10.

    Args:
        used: Utilisation of links inside packages and between them, by model and configuration.
        communicating: Utilisation of all links while comm_opt communicates, by model.
    """
    resnet, gnmt = communicating["resnet50_libra"], communicating["gnmt"]
    idle = [(f"{m} {c}", inside < between) for (m, c), (inside, between) in used.items()]
    between = used["resnet50_libra", "comm_opt"][1]
    return (
        _all("links inside packages are used less than links between packages", idle),
        Conclusion(
            statement="comm_opt leaves links idle in ResNet-50",
            holds=between < 0.9,
            why=f"links between packages are busy {100 * between:.0f} % of the time",
        ),
        Conclusion(
            statement="comm_opt uses the network better for GNMT than for ResNet-50",
            holds=gnmt > resnet,
            why=f"links are busy {100 * gnmt:.0f} and {100 * resnet:.0f} % of the time in which "
            "an NPU communicates",
        ),
    )


class Times:
    """Milliseconds of iterations by model, size and configuration.

    Attributes:
        time: Of an iteration.
        exposed: The part of them in which the NPU waits for communication.
    """

    def __init__(self, time: Mapping[Case, float], exposed: Mapping[Case, float]) -> None:
        """Keeps the times."""
        self.time, self.exposed = time, exposed
        self.models = list(dict.fromkeys(model for model, _, _ in time))
        self.sizes = list(dict.fromkeys(size for _, size, _ in time))
        self.cases = list(product(self.models, self.sizes))

    def gap(self, model: str, size: str, names: Iterable[str] = BASELINES) -> float:
        """Returns the time of the fastest of some configurations over that of ACE."""
        best = min(self.time[model, size, name] for name in names)
        return best / self.time[model, size, "ace"]

    def compute(self, case: Case) -> float:
        """Returns the time in which the NPU computes."""
        return self.time[case] - self.exposed[case]

    def faster(
        self, first: str, second: str, models: Iterable[str] | None = None
    ) -> list[tuple[str, bool]]:
        """Returns whether a configuration is faster than another, for some models or all."""
        cases = product(self.models if models is None else models, self.sizes)
        return [(f"{m} {s}", self.time[m, s, first] < self.time[m, s, second]) for m, s in cases]


def of_iterations(time: Mapping[Case, float], exposed: Mapping[Case, float]) -> list[Conclusion]:
    """Returns the conclusions of figure 11 about ACE and the baselines.

    Args:
        time: Milliseconds of an iteration by model, size and configuration.
        exposed: The part of them in which the NPU waits for communication.
    """
    return [*_of_ace(Times(time, exposed)), *_of_baselines(Times(time, exposed))]


def _of_ace(found: Times) -> list[Conclusion]:
    every = found.cases
    steps = [(m, a, b) for m in found.models for a, b in pairwise(found.sizes)]
    return [
        _all(
            "ACE is faster than every baseline",
            [(f"{m} {s}", found.gap(m, s) > 1) for m, s in every],
        ),
        _all(
            "the speedup of ACE grows with the system",
            [(f"{m} {a} to {b}", found.gap(m, b) >= found.gap(m, a)) for m, a, b in steps],
        ),
        _all(
            "ACE computes at least as fast as comp_opt",
            [
                (
                    f"{m} {s}",
                    found.compute((m, s, "ace"))
                    <= found.compute((m, s, "comp_opt")) * (1 + _ROUNDING),
                )
                for m, s in every
            ],
        ),
    ]


def _of_baselines(found: Times) -> list[Conclusion]:
    exposed, first, last = found.exposed, found.sizes[0], found.sizes[-1]
    others = [model for model in found.models if not model.startswith("resnet50")]
    resnet = [model for model in found.models if model not in others]

    def growth(model: str, name: str) -> float:
        return found.gap(model, last, [name]) / found.gap(model, first, [name])

    return [
        _all(
            "comp_opt exposes more communication than comm_opt",
            [
                (f"{m} {s}", exposed[m, s, "comp_opt"] >= exposed[m, s, "comm_opt"])
                for m, s in found.cases
            ],
        ),
        _all("no_overlap is faster than comm_opt", found.faster("no_overlap", "comm_opt")),
        _all(
            "comp_opt is faster than no_overlap for GNMT and DLRM",
            found.faster("comp_opt", "no_overlap", others),
        ),
        _some(
            "no_overlap is faster than comp_opt for ResNet-50 on some size",
            found.faster("no_overlap", "comp_opt", resnet),
        ),
        _all(
            "exposed communication grows from the smallest to the largest system",
            [
                (f"{m} {name}", exposed[m, last, name] > exposed[m, first, name])
                for m, name in product(found.models, (*BASELINES, "ace"))
            ],
        ),
        _all(
            "ACE gains more over comp_opt than over comm_opt as the system grows",
            [(m, growth(m, "comp_opt") > growth(m, "comm_opt")) for m in found.models],
        ),
    ]


def _some(statement: str, cases: list[tuple[str, bool]]) -> Conclusion:
    """Returns a conclusion that holds if any case does; `why` names them."""
    found = [name for name, holds in cases if holds]
    why = f"on {', '.join(found)}" if found else f"in none of {len(cases)} cases"
    return Conclusion(statement=statement, holds=bool(found), why=why)


def of_ideal(time: Mapping[Case, float]) -> Conclusion:
    """Returns whether the ideal endpoint is the fastest."""
    cases = [(m, s) for m, s, name in time if name == "ideal"]
    return _all(
        "the ideal endpoint is the fastest",
        [(f"{m} {s}", time[m, s, "ideal"] <= time[m, s, "ace"]) for m, s in cases],
    )


def of_sensitivity(slowdowns: Mapping[str, float]) -> Conclusion:
    """Returns whether the compute of GNMT is sensitive to memory bandwidth.

    Args:
        slowdowns: The roofline's time with half the memory bandwidth over that of a complete NPU,
            by model.
    """
    others = ", ".join(f"{m} {slow:.2f}" for m, slow in slowdowns.items() if m != "gnmt")
    return Conclusion(
        statement="the compute of GNMT is sensitive to memory bandwidth",
        holds=slowdowns["gnmt"] > _SENSITIVE,
        why=f"in a roofline, what comm_opt leaves (450 of 900 GB/s, 74 of 80 SMs) makes it "
        f"{slowdowns['gnmt']:.2f} times slower ({others})",
    )


def of_background(
    gains: Mapping[str, float], compute: Mapping[str, tuple[float, float]]
) -> tuple[Conclusion, ...]:
    """Returns the conclusions of figure 12.

    Args:
        gains: Speedup by tables in the background, by configuration.
        compute: Microseconds of compute in the default loop and with tables in the background, by
            configuration.
    """
    ours, theirs = gains["ace"], gains["comp_opt"]
    return (
        Conclusion(
            statement="tables in the background help ACE more than comp_opt",
            holds=ours > theirs,
            why=f"speedups {ours:.3f} and {theirs:.3f}",
        ),
        Conclusion(
            statement="tables in the background make ACE faster",
            holds=ours > 1,
            why=f"speedup {ours:.3f}",
        ),
        _all(
            "tables in the background shorten the computation",
            [
                (f"{name} ({before:.0f} to {after:.0f} us)", after < before)
                for name, (before, after) in compute.items()
            ],
        ),
    )


def of_silicon(area: Mapping[str, float], share: tuple[float, float]) -> tuple[Conclusion, ...]:
    """Returns the conclusions of table 4.

    Args:
        area: mm2 by component.
        share: Area and power of ACE in per cent of an accelerator.
    """
    largest = max(area, key=area.__getitem__)
    return (
        Conclusion(
            statement="the scratchpad has the largest area",
            holds=largest == "scratchpad",
            why=f"{largest}: {area[largest]:.2f} of {sum(area.values()):.2f} mm2",
        ),
        Conclusion(
            statement="ACE takes less than 2 % of area and power of an accelerator",
            holds=max(share) < 2,
            why=f"{share[0]:.2f} % of the area, {share[1]:.2f} % of the power",
        ),
    )
