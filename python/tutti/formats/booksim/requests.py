"""Converts requests with replies (`use_read_write`) and batches (`sim_type = batch`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tutti.formats.booksim.traffic import BookSimInput

_KINDS = ("read", "write")


def read_write_tables(
    given: BookSimInput, number: int, table: dict[str, Any], load: float
) -> list[dict[str, Any]]:
    """Returns the tables of reads and writes of a class, each with its replies.

    A node draws reads and writes by `write_fraction`. It injects the requests and replies of a
    class from one queue, replies first, and answers when the request has arrived
    (`TrafficManager::_IssuePacket`).

    Args:
        given: The configuration.
        number: The class.
        table: The keys that both have.
        load: `injection_rate` of the class.

    Raises:
        ConfigError: A size, a fraction or a range of VCs is invalid.
    """
    config = given.config
    sizes = {name: config.per_class(name)[number] for name in _names("size")}
    for name, size in sizes.items():
        if size < 1:
            raise given.refused(name, "1 flit or more", problem="is out of range")
    fraction = config.per_class("write_fraction")[number]
    if not 0 <= fraction <= 1:
        raise given.refused("write_fraction", "a fraction from 0 to 1", problem="is out of range")
    if config.injection_rate_uses_flits:
        load /= max(sum(sizes.values()) // 2, 1)  # `TrafficManager::TrafficManager`
    if 0 < fraction < 1 and table["process"] != "bernoulli":
        given.remarks.append("bursts of reads and of writes are independent; in BookSim they mix")
    tables = []
    for kind, share in zip(_KINDS, (1 - fraction, fraction), strict=True):
        if not share:
            continue
        request, reply = (f"{kind}_{part}" for part in ("request", "reply"))
        tables.append(
            table | {
                "queue": f"class {number}",
                "rate": load * share * sizes[f"{request}_size"],
                "packet": sizes[f"{request}_size"],
                "vcs": _vcs(given, request),
                "reply": {"packet": sizes[f"{reply}_size"], "vcs": _vcs(given, reply)},
            }
        )  # fmt: skip
    return tables


def batch_keys(given: BookSimInput) -> dict[str, int]:
    """Returns the keys of a class in a batch: packets of a node, and how many may be in flight.

    Raises:
        ConfigError: A number is invalid, or there are several batches.
    """
    config = given.config
    if config.batch_count != 1:
        raise given.refused("batch_count", "1: tutti simulates one batch")
    if config.batch_size < 1:
        raise given.refused("batch_size", "1 packet or more", problem="is out of range")
    if any(config.per_class("use_read_write")):
        raise given.refused("sim_type", "latency, if requests have replies (`use_read_write`)")
    most = config.max_outstanding_requests
    given.remarks.append("a batch ends when its last packet arrives; BookSim adds the last cycle")
    return {"requests": config.batch_size, **({"outstanding": most} if most > 0 else {})}


def _names(part: str) -> list[str]:
    return [f"{kind}_{packet}_{part}" for kind in _KINDS for packet in ("request", "reply")]


def _vcs(given: BookSimInput, packet: str) -> list[int]:
    """Returns the first and the last VC of a kind of packet; negative ends are those of all VCs."""
    config = given.config
    first, last = (getattr(config, f"{packet}_{end}_vc") for end in ("begin", "end"))
    vcs = [max(first, 0), last if last >= 0 else config.num_vcs - 1]
    if not vcs[0] <= vcs[1] < config.num_vcs:
        expected = f"VCs below num_vcs = {config.num_vcs}, the first one first"
        raise given.refused(f"{packet}_end_vc", expected, problem="has no such VCs")
    return vcs
