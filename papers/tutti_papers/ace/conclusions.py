"""The paper's conclusions, which its text states in words, and whether the runs support them."""

from __future__ import annotations

from itertools import pairwise, product
from typing import TYPE_CHECKING

from tutti_papers.claims import Conclusion

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def _all(statement: str, cases: Iterable[tuple[str, bool]]) -> Conclusion:
    """Returns a conclusion that holds if every case does; `why` names the exceptions."""
    found = list(cases)
    exceptions = [name for name, holds in found if not holds]
    held = f"in {len(found) - len(exceptions)} of {len(found)} cases"
    why = f"{held}; not in {', '.join(exceptions)}" if exceptions else held
    return Conclusion(statement=statement, holds=not exceptions, why=why)


def of_designs(speed: Mapping[tuple[str, int], float]) -> tuple[Conclusion, ...]:
    """Returns the conclusions of figure 9.

    Args:
        speed: Speed of an all_reduce relative to the chosen design, by scratchpad and FSMs.
    """
    gains = {
        "scratchpad": (
            100 * (speed["4 MiB", 16] / speed["2 MiB", 16] - 1),
            100 * (speed["8 MiB", 16] / speed["4 MiB", 16] - 1),
        ),
        "FSMs": (
            100 * (speed["4 MiB", 16] / speed["4 MiB", 12] - 1),
            100 * (speed["4 MiB", 20] / speed["4 MiB", 16] - 1),
        ),
    }
    chosen = {"scratchpad": "4 MiB", "FSMs": "16 FSMs"}
    return tuple(
        Conclusion(
            statement=f"returns diminish beyond {chosen[name]}",
            holds=after < before / 2,
            why=f"the step to it gains {before:.1f} %, the next one {after:.1f} %",
        )
        for name, (before, after) in gains.items()
    )


def of_iterations(
    time: Mapping[tuple[str, str, str], float],
    exposed: Mapping[tuple[str, str, str], float],
) -> tuple[Conclusion, ...]:
    """Returns the conclusions of figure 11.

    Args:
        time: Milliseconds of an iteration by model, size and configuration.
        exposed: The part of them in which the NPU waits for communication.
    """
    models = list(dict.fromkeys(model for model, _, _ in time))
    sizes = list(dict.fromkeys(size for _, size, _ in time))
    cases = [(model, size, f"{model} {size}") for model, size in product(models, sizes)]
    baselines = ("no_overlap", "comm_opt", "comp_opt")

    def gap(model: str, size: str) -> float:
        return min(time[model, size, name] for name in baselines) / time[model, size, "ace"]

    return (
        _all("ACE is faster than every baseline", [(c, gap(m, s) > 1) for m, s, c in cases]),
        _all(
            "the ideal endpoint is the fastest",
            [(c, time[m, s, "ideal"] <= time[m, s, "ace"]) for m, s, c in cases],
        ),
        _all(
            "the speedup of ACE grows with the system",
            [
                (f"{m} {a} to {b}", gap(m, b) >= gap(m, a))
                for m in models
                for a, b in pairwise(sizes)
            ],
        ),
        _all(
            "comp_opt exposes more communication than comm_opt",
            [(c, exposed[m, s, "comp_opt"] >= exposed[m, s, "comm_opt"]) for m, s, c in cases],
        ),
        _all(
            "no_overlap is faster than comm_opt",
            [(c, time[m, s, "no_overlap"] < time[m, s, "comm_opt"]) for m, s, c in cases],
        ),
    )


def of_background(gains: Mapping[str, float]) -> tuple[Conclusion, ...]:
    """Returns the conclusion of figure 12.

    Args:
        gains: Speedup by tables in the background, by configuration.
    """
    ours, theirs = gains["ace"], gains["comp_opt"]
    return (
        Conclusion(
            statement="tables in the background help ACE more than comp_opt",
            holds=ours > theirs,
            why=f"{ours:.2f} and {theirs:.2f} times",
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
