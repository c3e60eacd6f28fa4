"""The algorithm and the protocol that NCCL chooses, and the alternatives.

Source: NCCL, topoGetAlgoInfo in src/enqueue.cc. The choice holds for one collective per group, the
reduction sum of a datatype such as float32, and no tuner plugin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.base.files.mistakes import known_name, mistake
from tutti.measured.errors import TuningError
from tutti.nccl.availability import Availability
from tutti.nccl.channels import channels_and_threads
from tutti.nccl.model import Model
from tutti.nccl.p2p import P2P, P2P_COLLECTIVES, p2p_candidates, p2p_latencies, simulated
from tutti.nccl.rccl import rccl_candidates, rccl_version
from tutti.nccl.settings import ALGORITHMS, COLLECTIVES, PROTOCOLS, Settings
from tutti.nccl.tuned import Candidate
from tutti.nccl.versions import known_versions, version

if TYPE_CHECKING:
    from tutti.nccl.system import NcclSystem

_MOST_US = 3.6e9
"""NCCL considers no algorithm that takes an hour."""


def candidates(
    system: NcclSystem,
    collective: str,
    size: int,
    nccl: str | None = None,
    settings: Settings | None = None,
) -> list[Candidate]:
    """Returns each algorithm with each protocol, in NCCL's order.

    Args:
        system: The system of the communicator.
        collective: The collective, such as ``all_reduce``.
        size: The size in bytes: that of the larger of the send and receive buffers of a rank, as
            nccl-tests reports it.
        nccl: The version of NCCL, such as ``2.28``, or of RCCL on GPUs of AMD; None is the latest
            that tutti knows.
        settings: NCCL's environment variables.

    Returns:
        Algorithms with protocols, 18 before NCCL 2.23 and 21 from then on, 6 of RCCL; for
        collectives of sends and receives, the two protocols of these.

    Raises:
        ConfigError: An argument or a setting is invalid.
    """
    _check(collective, size)
    if system.gfx:
        rccl_version(system.gfx, nccl)
        return rccl_candidates(system, collective, size, settings or Settings())
    model = _model(system, collective, nccl, settings or Settings())
    if collective in P2P_COLLECTIVES:
        if model.settings != Settings():
            raise mistake(
                f"has no effect on {collective}, whose sends and receives it does not change",
                source="NCCL's environment variables",
                expected="none",
            )
        return p2p_candidates(system, collective, p2p_latencies(model), size)
    available = Availability.of(model)
    names = [
        (algorithm, protocol)
        for algorithm in ALGORITHMS
        for protocol in PROTOCOLS
        if model.rules.pat or algorithm != "PAT"
    ]
    refusals = {name: available.refusal(*name) for name in names}
    fallback = all(refusals.values())
    if fallback:
        refusals |= _fallbacks(available)
    return [_candidate(model, name, refusals[name], size, fallback=fallback) for name in names]


def choose(
    system: NcclSystem,
    collective: str,
    size: int,
    nccl: str | None = None,
    settings: Settings | None = None,
) -> Candidate:
    """Returns the candidate that NCCL chooses: the shortest time, the first of equal ones.

    Takes the arguments of :func:`candidates`.

    Raises:
        ConfigError: An argument or a setting is invalid.
        TuningError: The settings leave no algorithm.
    """
    return best(candidates(system, collective, size, nccl, settings), collective)


def best(rows: list[Candidate], collective: str) -> Candidate:
    """Returns the candidate of a list that NCCL chooses.

    Raises:
        TuningError: NCCL considers none of them.
    """
    considered = [row for row in rows if 0 <= row.time < _MOST_US]
    if not considered and rows[0].algorithm == P2P:
        problem, hint = f"no prediction for {collective}: {rows[0].refusal}", simulated(collective)
        raise TuningError(problem, kind="no_algorithm", hint=hint)
    if not considered:
        raise TuningError(
            f"NCCL has no algorithm for {collective} with these settings",
            kind="no_algorithm",
        )
    return min(considered, key=lambda row: row.time)


def _check(collective: str, size: int) -> None:
    """Checks the arguments."""
    known_name(collective, {**COLLECTIVES, **P2P_COLLECTIVES}, what="collective", source="NCCL")
    if size < 1:
        raise mistake(
            "is not a size", source="NCCL", value=str(size), expected="a size of 1 byte or more"
        )


def _model(system: NcclSystem, collective: str, nccl: str | None, settings: Settings) -> Model:
    """Returns the model of NCCL."""
    rules = version(nccl or known_versions()[-1])
    if system.architecture not in rules.ll_bandwidth:
        raise mistake(
            f"NCCL {rules.name} does not support compute capability {system.compute_capability}",
            source=system.name,
            hint="take NCCL 2.25 or later",
        )
    return Model(system, rules, settings, collective)


def _fallbacks(available: Availability) -> dict[tuple[str, str], str]:
    """Returns the protocols of Ring that NCCL takes where the settings leave no algorithm."""
    model = available.model
    if model.rules.without_candidate == "error":
        return {}
    found = {("Ring", protocol): "" for protocol in PROTOCOLS}
    if model.rules.without_candidate == "ring_of_protocols":
        found = {name: available.protocol_refusal(*name) for name in found}
    return found


def _candidate(
    model: Model, name: tuple[str, str], refusal: str, size: int, *, fallback: bool
) -> Candidate:
    if refusal:
        return Candidate(*name, refusal=refusal)
    latency, bandwidth = model.terms(*name, size)
    channels, threads = channels_and_threads(model.system, model.rules, model.settings, name, size)
    return Candidate(
        *name,
        latency=latency,
        bandwidth=bandwidth,
        time=latency + size / (1000 * bandwidth),
        channels=channels,
        threads=threads,
        corrections=model.corrections(*name, size),
        fallback=fallback,
    )
