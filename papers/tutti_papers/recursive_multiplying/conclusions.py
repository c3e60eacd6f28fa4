"""The paper's conclusions, which its text states in words, and whether the runs support them.

Where a conclusion does not hold, its reason states what a model would need.
"""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from tutti_papers.claims import Conclusion
from tutti_papers.recursive_multiplying.published import TIMES, reduction

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

NEAR = 15
"""Limit in per cent of "near", "equivalent", "consistent" and "good"; the paper states none."""
CLUSTERED = 0.8
"""The least rank correlation of times that cluster or rise together; the paper states none."""
_NAMED = 4
"""The most exceptions that a conclusion names."""
HEADLINE = (8, 40)
"""Reductions in per cent that the abstract states."""


def _in_cases(
    statement: str, cases: Iterable[tuple[str, bool]], evidence: str, needs: str = ""
) -> Conclusion:
    """Returns a conclusion that holds if every case does; `why` names the exceptions."""
    found = list(cases)
    exceptions = [name for name, holds in found if not holds]
    why = f"in {len(found) - len(exceptions)} of {len(found)} cases, {evidence}"
    if exceptions:
        more = len(exceptions) - _NAMED
        why += f". Not at {'; '.join(exceptions[:_NAMED])}" + (f"; {more} more" if more > 0 else "")
        why += f". {needs[0].upper()}{needs[1:]}" if needs else ""
    return Conclusion(statement=statement, holds=not exceptions, why=why)


# --- Table 2 and Fig. 9 --------------------------------------------------------------------------


def of_scaling(found: Mapping[int, Mapping[str, float]]) -> tuple[Conclusion, ...]:
    """Returns the conclusions of section 5.3.

    Args:
        found: Times by rank count, as of `archer.predicted`.
    """
    return (_headline(found), _quartile(found), _gains(found), _faster_than_log(found),
            _spread(found), _doubles(found))  # fmt: skip


def _headline(found: Mapping[int, Mapping[str, float]]) -> Conclusion:
    least, most = HEADLINE
    values = {
        f"N = {ranks}, {which}": reduction(times, which)
        for which in ("minimum", "median")
        for ranks, times in found.items()
    }
    shown = {
        which: [value for name, value in values.items() if name.endswith(which)]
        for which in ("minimum", "median")
    }
    minima, medians = (f"{min(shown[which]):.0f} to {max(shown[which]):.0f} %" for which in shown)
    return _in_cases(
        "recursive multiplying reduces times by 8 to 40 %",
        [(name, least <= round(value) <= most) for name, value in values.items()],
        f"rounded to per cent: minima by {minima}, medians by {medians}",
        "a model would need a collapse and an expansion that cost less than two exchanges",
    )


def _quartile(found: Mapping[int, Mapping[str, float]]) -> Conclusion:
    ratios = {n: times["rm_median"] / times["rd_lower_quartile"] for n, times in found.items()}
    return _in_cases(
        "the median of recursive multiplying is near the lower quartile of recursive doubling",
        [(f"N = {ranks}", abs(ratio - 1) <= NEAR / 100) for ranks, ratio in ratios.items()],
        f"{min(ratios.values()):.2f} to {max(ratios.values()):.2f} times (near: {NEAR} %)",
        "a model would need times whose spread grows less with N",
    )


def _gains(found: Mapping[int, Mapping[str, float]]) -> Conclusion:
    gains = {ranks: reduction(times, "median") for ranks, times in found.items()}
    small = fmean(value for ranks, value in gains.items() if ranks < 24)
    large = fmean(value for ranks, value in gains.items() if ranks >= 24)
    before, after = gains[96], gains[128]
    return Conclusion(
        statement="the gain of the median shrinks with N, and grows again at N = 128",
        holds=large < small and after > before,
        why=f"mean {small:.1f} % below N = 24, {large:.1f} % from there on; "
        f"{before:.1f} % at N = 96, {after:.1f} % at N = 128",
    )


def _faster_than_log(found: Mapping[int, Mapping[str, float]]) -> Conclusion:
    """Compares N = 128 with the logarithmic curve through N = 4 and 8."""
    ratios = {
        name.replace("_", " "): found[128][name]
        / (4 * (found[8][name] - found[4][name]) + found[8][name])
        for name in TIMES
    }
    return _in_cases(
        "times grow faster than the logarithm of N",
        [(name, ratio > 1 + NEAR / 100) for name, ratio in ratios.items()],
        f"N = 128 takes {min(ratios.values()):.1f} to {max(ratios.values()):.1f} times as long as "
        "the curve through N = 4 and 8",
    )


def _spread(found: Mapping[int, Mapping[str, float]]) -> Conclusion:
    ratios = {
        f"N = {ranks}, {name}": times[f"{name}_median"] / times[f"{name}_minimum"]
        for ranks, times in found.items()
        for name in ("rd", "rm")
    }
    return _in_cases(
        "minima are significantly below medians",
        [(name, ratio > 1.5) for name, ratio in ratios.items()],
        f"medians are {min(ratios.values()):.2f} to {max(ratios.values()):.2f} times the minima "
        "(significant: 1.5)",
        "a model would need more blocks without detours",
    )


def _doubles(found: Mapping[int, Mapping[str, float]]) -> Conclusion:
    before, after = (found[ranks]["rd_median"] for ranks in (96, 128))
    why = f"{before:.1f} to {after:.1f} us"
    if not (holds := after / before > 1.7):
        why += "; a model would need other jobs on the links that N = 128 adds"
    return Conclusion(statement="medians double from N = 96 to 128", holds=holds, why=why)


def of_congestion(
    quiet: Mapping[str, float], model: Mapping[str, float], medians: Mapping[str, float]
) -> tuple[Conclusion, ...]:
    """Returns the conclusions on the machine without other jobs (curves `tds` of Fig. 9).

    Args:
        quiet: Times without detours by case, such as "N = 4, rd".
        model: The paper's model, with the minima of Table 1.
        medians: Medians with detours, from N = 24 on.
    """
    ratios = {name: quiet[name] / model[name] for name in quiet}
    shares = {name: 1 - quiet[name] / median for name, median in medians.items()}
    return (
        _in_cases(
            "the model matches a machine without other jobs",
            [(name, abs(ratio - 1) <= NEAR / 100) for name, ratio in ratios.items()],
            f"the machine takes {min(ratios.values()):.2f} to {max(ratios.values()):.2f} of the "
            f"model's time (match: {NEAR} %)",
            "the model would need the message times of an all_reduce: in Table 2 they are shorter "
            "than those of the multicast of Table 1",
        ),
        _in_cases(
            "congestion is the largest part of the times from N = 24 on",
            [(name, share > 0.5) for name, share in shares.items()],
            f"{100 * min(shares.values()):.0f} to {100 * max(shares.values()):.0f} % of medians",
        ),
    )


def of_uniform_noise(misfits: Mapping[str, float]) -> Conclusion:
    """Returns the conclusion of section 6.5.

    Args:
        misfits: Misfit of "uniform noise" and of "detours" on the calibrated rows.
    """
    uniform, detours = misfits["uniform noise"], misfits["detours"]
    return Conclusion(
        statement="topology and uniform noise do not reproduce the measurements",
        holds=uniform > 2 * detours,
        why=f"misfit of at least {uniform:.3f} on N = 4, 8 and 16; with detours {detours:.3f}",
    )


# --- Fig. 12 -------------------------------------------------------------------------------------


def of_differences(minima: Mapping[int, float], medians: Mapping[int, float]) -> tuple[
    Conclusion, ...
]:  # fmt: skip
    """Returns the conclusions of section 5.5.

    Args:
        minima: Minimum over model time, less 1, by rank count.
        medians: The same of medians.
    """
    below = max(abs(value) for ranks, value in minima.items() if ranks < 24)
    above = min(value for ranks, value in minima.items() if ranks >= 24)
    order = _rank_correlation(list(medians), list(medians.values()))
    return (
        Conclusion(
            statement="minima follow the model below N = 24, and exceed it from there on",
            holds=below < above,
            why=f"at most {100 * below:.0f} % off, then at least {100 * above:.0f} % above"
            + ("" if below < above else "; a model would need minima that rise as the published"),
        ),
        Conclusion(
            statement="the medians' difference from the model increases consistently with N",
            holds=order >= CLUSTERED,
            why=f"rank correlation {order:.2f} (consistent: {CLUSTERED})",
        ),
    )


def _rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    frame = pl.DataFrame({"one": one, "other": other})
    return float(frame.select(pl.corr("one", "other", method="spearman")).item())


# --- Figs 10 and 11 ------------------------------------------------------------------------------


def of_eight_ranks(
    minima: Mapping[tuple[str, int], float], medians: Mapping[tuple[str, int], float]
) -> tuple[Conclusion, ...]:
    """Returns the conclusions of Fig. 10.

    Args:
        minima: Times by schedule and elements.
        medians: The same of medians.
    """
    best = {elements: fastest(minima, elements) for elements in elements_of(minima)}
    large = [elements for elements in elements_of(medians) if elements >= 128]
    ratios = {e: medians["a2,a4", e] / medians["a2,a2,a2", e] for e in large}
    return (
        _in_cases(
            "(a2,a4) has the smallest minimum over all sizes",
            [(f"{e} elements ({name})", name == "a2,a4") for e, name in best.items()],
            f"from {min(best)} to {max(best)} elements",
            "a model would need adaptive routes; here messages between two routers share one link",
        ),
        _in_cases(
            "medians of (a2,a4) and of recursive doubling are equivalent at large counts",
            [(f"{e} elements", abs(ratio - 1) <= NEAR / 100) for e, ratio in ratios.items()],
            f"{min(ratios.values()):.2f} to {max(ratios.values()):.2f} times "
            f"(equivalent: {NEAR} %)",
        ),
    )


def of_64_ranks(times: Mapping[tuple[str, int], float]) -> tuple[Conclusion, ...]:
    """Returns the conclusions of Fig. 11.

    Args:
        times: Times by schedule and elements; recursive doubling has the stages `a2` only.
    """
    (doubled,) = {name for name, _ in times if set(name.split(",")) == {"a2"}}
    small, large = min(elements_of(times)), max(elements_of(times))
    first, last = fastest(times, small), fastest(times, large)
    ratio = times[doubled, small] / times[first, small]
    gain = 100 * (1 - times[last, large] / times[doubled, large])
    needs = (
        ""
        if first == doubled
        else ". A model would need alpha_p below alpha_r, so that two "
        "exchanges take less than a stage of three messages; Table 2 contradicts it (31.9 %)"
    )
    slower = times[doubled, large] / times[doubled, small]
    return (
        Conclusion(
            statement="recursive doubling is the fastest on 64 ranks at small counts",
            holds=first == doubled,
            why=f"at {small} element {first} is the fastest; recursive doubling takes {ratio:.2f} "
            f"times as long{needs}",
        ),
        Conclusion(
            statement=f"recursive multiplying clearly beats recursive doubling at {large} elements",
            holds=gain > 0,
            why=f"{last} is the fastest, {gain:.0f} % below recursive doubling"
            + ("" if gain > 0 else "; a model would need links that several messages share"),
        ),
        Conclusion(
            statement="recursive doubling is significantly slower at large counts",
            holds=slower > 1 + NEAR / 100,
            why=f"{slower:.1f} times as long at {large} elements as at {small}",
        ),
    )


def fastest(times: Mapping[tuple[str, int], float], elements: int) -> str:
    """Returns the schedule with the shortest time at a count of elements."""
    here = {name: time for (name, count), time in times.items() if count == elements}
    return min(here, key=here.__getitem__)


def elements_of(times: Mapping[tuple[str, int], float]) -> list[int]:
    """Returns the counts of elements, ascending."""
    return sorted({elements for _, elements in times})


# --- Figs 8, 13, 14, 15 and 16 -------------------------------------------------------------------


def of_blocks(minima: Mapping[int, float], medians: Mapping[int, float]) -> tuple[Conclusion, ...]:
    """Returns the conclusions of Fig. 13.

    Args:
        minima: Minimum by all_reduces of a block.
        medians: The same of medians.
    """
    spread = 100 * (max(minima.values()) / min(minima.values()) - 1)
    order = _rank_correlation(list(medians), list(medians.values()))
    return (
        Conclusion(
            statement="minima are consistent over block sizes",
            holds=spread <= NEAR,
            why=f"they differ by {spread:.1f} % (consistent: {NEAR} %)"
            + ("" if spread <= NEAR else "; a model would need times without any detour"),
        ),
        Conclusion(
            statement="medians rise with the block size",
            holds=order >= CLUSTERED,
            why=f"rank correlation {order:.2f} (rise: {CLUSTERED})"
            + (
                ""
                if order >= CLUSTERED
                else "; a model would need rarer and longer detours, so "
                "that few blocks of one all_reduce have any"
            ),
        ),
    )


def of_the_model(loss: float, which: str, *, holds: bool, why: str) -> tuple[Conclusion, ...]:
    """Returns the conclusions on a model that chooses schedules.

    Args:
        loss: The largest loss of the model's choice on the fastest schedule, in per cent.
        which: The measured times, "minimum" or "median".
        holds: Whether modelled and measured times have the same order.
        why: The reason for `holds`.
    """
    return (
        Conclusion(
            statement=f"the model chooses a schedule with a good {which}",
            holds=loss <= NEAR,
            why=f"its choice loses at most {loss:.1f} % on the fastest (good: {NEAR} %)",
        ),
        Conclusion(statement=f"modelled and measured times cluster, {which}", holds=holds, why=why),
    )


def of_orders(spreads: Mapping[int, float]) -> Conclusion:
    """Returns the conclusion of section 8 on the order of stages.

    Args:
        spreads: Largest over smallest median of schedules with the same stages, less 1, by N.
    """
    return _in_cases(
        "the order of stages does not matter on this machine",
        [(f"N = {ranks}", spread <= NEAR / 100) for ranks, spread in spreads.items()],
        f"medians differ by up to {100 * max(spreads.values()):.0f} % (limit: {NEAR} %)",
        "ranks that exchange in a wide stage are on more routers in one order than in another",
    )


def of_choices(losses: Mapping[int, float]) -> Conclusion:
    """Returns the conclusion of section 5.3 on the schedules of Table 2.

    Args:
        losses: Median of the schedule of Table 2 over the smallest median, less 1, by N.
    """
    return _in_cases(
        "Table 2 has the schedules with the smallest medians",
        [(f"N = {ranks}", loss <= 0.05) for ranks, loss in losses.items()],
        f"they lose at most {100 * max(losses.values()):.0f} % (limit: 5 %)",
        "a model would need the self-congestion of wide stages, which section 8 leaves open",
    )


def of_sends(
    blocking: Mapping[int, float], non_blocking: Mapping[int, float]
) -> tuple[Conclusion, ...]:
    """Returns the conclusions of Fig. 8.

    Args:
        blocking: Median of a multicast by peers, if each send waits until the message has arrived.
        non_blocking: The same without waiting.
    """
    peers = sorted(non_blocking)
    steps = [non_blocking[b + 1] - non_blocking[b] for b in peers[:-1]]
    eighth, usual = steps[peers.index(8)], fmean(steps)
    jump = abs(eighth / usual - 1)
    return (
        _in_cases(
            "non-blocking sends outperform blocking ones",
            [(f"{b} peers", non_blocking[b] < blocking[b]) for b in peers if b > 1],
            f"{blocking[peers[-1]] / non_blocking[peers[-1]]:.1f} times at {peers[-1]} peers",
        ),
        Conclusion(
            statement="the times of a multicast have a discontinuity at eight peers",
            holds=jump > 0.5,
            why=f"the ninth peer adds {eighth:.2f} us, a peer on average {usual:.2f} us; a model "
            "would need packets of 64 bytes that combine messages",
        ),
    )


def of_overhead(gaps: Mapping[str, float]) -> Conclusion:
    """Returns the conclusion of Fig. 16.

    Args:
        gaps: Time by which recursive doubling exceeds recursive multiplying in us, by case.
    """
    least = min(gaps, key=gaps.__getitem__)
    return _in_cases(
        "recursive multiplying outperforms an MPI library that uses recursive doubling",
        [(name, gap > 0) for name, gap in gaps.items()],
        "even if only it had the overhead of a library, as long as that is below "
        f"{max(0.0, gaps[least]):.2f} us ({least})",
    )


class Quartiles(NamedTuple):
    """Ratios of times of pairs: lower quartile, median, upper quartile."""

    low: float
    middle: float
    high: float


def of_native(ratios: Mapping[int, Mapping[str, Quartiles]]) -> tuple[Conclusion, ...]:
    """Returns the conclusions of section 5.8 on real ranks.

    An all_reduce is faster than another if it is in three of four pairs.

    Args:
        ratios: By rank count, ratios of times `rm/rd`, `rm/own` and `own/rd`; `own` is the MPI's
            all_reduce.
    """
    faster, native, same = (
        {ranks: one[which] for ranks, one in ratios.items()}
        for which in ("rm/rd", "rm/own", "own/rd")
    )
    return (
        _in_cases("recursive multiplying reduces the time of recursive doubling",
                  [(f"N = {n}", ratio.high < 1) for n, ratio in faster.items()], _gains_of(faster)),
        _in_cases("recursive multiplying is faster than the MPI's all-reduce",
                  [(f"N = {n}", ratio.high < 1) for n, ratio in native.items()], _gains_of(native),
                  "it would need a network: ranks of one machine exchange by shared memory, where "
                  "the work of a rank for a message is most of its time"),
        _in_cases("the MPI's all-reduce takes as long as recursive doubling",
                  [(f"N = {n}", abs(ratio.middle - 1) <= NEAR / 100) for n, ratio in same.items()],
                  "; ".join(f"{ratio.middle:.2f} times on {n} ranks ({ratio.low:.2f} to "
                            f"{ratio.high:.2f})" for n, ratio in same.items()),
                  "the installed MPI uses other algorithms in shared memory"),
    )  # fmt: skip


def _gains_of(ratios: Mapping[int, Quartiles]) -> str:
    """Returns the time saved by rank count, with the quartiles of pairs."""
    return "; ".join(
        f"by {100 * (1 - ratio.middle):+.0f} % on {ranks} ranks (quartiles "
        f"{100 * (1 - ratio.high):+.0f} and {100 * (1 - ratio.low):+.0f} %)"
        for ranks, ratio in ratios.items()
    )
