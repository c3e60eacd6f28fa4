"""Converts requests with replies (`use_read_write`) and batches (`sim_type = batch`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tutti.base.errors import ConfigError
    from tutti.formats.booksim.traffic import BookSimInput

_KINDS = ("read", "write")
_PACKETS = tuple(f"{kind}_{packet}" for packet in ("request", "reply") for kind in _KINDS)
REPLACED_BY_BATCH = frozenset(
    {"injection_process", "injection_rate", "injection_rate_uses_flits", "burst_alpha"}
    | {"burst_beta", "burst_r1", "sample_period", "warmup_periods"}
)
"""Keys without effect on a batch: its nodes send as fast as they may, without a warm-up."""
LONGEST_BATCH = 10**9
"""Cycles; BookSim waits for the last packet without a limit."""


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
    _check_vcs(given)
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

    BookSim counts all packets of a node together (`BatchTrafficManager::_IssuePacket`): those of
    all classes, reads and writes (half each, whatever `write_fraction` is) and replies. How many of
    them are requests depends on the run. tutti limits each class separately.

    Raises:
        ConfigError: A number is invalid, or there are several batches, classes or replies.
    """
    config = given.config
    if config.batch_count != 1:
        raise given.refused("batch_count", "1: tutti simulates one batch")
    if config.batch_size < 1:
        raise given.refused("batch_size", "1 packet or more", problem="is out of range")
    if any(config.per_class("use_read_write")):
        raise given.refused(
            "sim_type",
            "latency, if requests have replies (`use_read_write`): BookSim counts the requests and "
            "replies of a node together until they are `batch_size`, tutti requests only",
            hint="sim_type=latency --write FILE; in FILE, add `requests` (packets of a node) and "
            "`outstanding` to the reads and the writes ([[traffic]]), and delete `rate` and "
            "[measure]; or use_read_write=0",
        )
    if config.classes != 1:
        raise given.refused(
            "classes",
            "1 in a batch: BookSim counts the packets of all classes of a node together",
            hint="sim_type=latency --write FILE; in FILE, add `requests` (packets of a node) to "
            "each [[traffic]], and delete `rate` and [measure]",
        )
    most = config.max_outstanding_requests
    given.remarks.append("a batch ends when its last packet arrives; BookSim adds the last cycle")
    if most > 0:
        given.remarks.append(
            "latencies in a batch with `max_outstanding_requests` count from when a node may send; "
            "BookSim counts from an earlier cycle if the node was still sending another packet"
        )
    return {"requests": config.batch_size, **({"outstanding": most} if most > 0 else {})}


def _names(part: str) -> list[str]:
    return [f"{kind}_{packet}_{part}" for kind in _KINDS for packet in ("request", "reply")]


def _vcs(given: BookSimInput, packet: str) -> list[int]:
    """Returns the first and the last VC of a kind of packet; negative ends are those of all VCs."""
    first, last = (getattr(given.config, key) for key in _vc_keys(packet))
    return [max(first, 0), last if last >= 0 else given.config.num_vcs - 1]


def _vc_keys(packet: str) -> tuple[str, str]:
    return f"{packet}_begin_vc", f"{packet}_end_vc"


def _check_vcs(given: BookSimInput) -> None:
    """Refuses VCs that do not exist: those of the file, else BookSim's defaults.

    Raises:
        ConfigError: A range is empty, or has VCs that routers do not have.
    """
    config = given.config
    ranges = {packet: _vcs(given, packet) for packet in _PACKETS}
    lost = [
        packet for packet, (first, last) in ranges.items() if not first <= last < config.num_vcs
    ]
    for packet in lost:
        first, last = ranges[packet]
        stated = [key for key in _vc_keys(packet) if key in config.given]
        if stated:
            others = [key for key in _vc_keys(packet) if key not in config.given]
            default = "".join(
                f", as `{key}` is {getattr(config, key)} by default" for key in others
            )
            raise given.refused(
                stated[-1],
                f"VCs below num_vcs = {config.num_vcs}, the first one first",
                problem=f"{_words(packet)} have the VCs {first} to {last}{default}",
            )
    if lost:
        raise _without_default_vcs(given, lost, ranges)


def _without_default_vcs(
    given: BookSimInput, lost: list[str], ranges: dict[str, list[int]]
) -> ConfigError:
    """Returns the error of default VCs that do not exist, with VCs for the file to state."""
    half = given.config.num_vcs // 2
    halves = {"request": (0, half - 1), "reply": (half, given.config.num_vcs - 1)}
    keys = [
        f"{key}={vc}"
        for packet in _PACKETS
        for key, vc in zip(_vc_keys(packet), halves[packet.partition("_")[2]], strict=True)
        if key not in given.config.given
    ]
    defaults = (f"{_words(packet)} {ranges[packet][0]} to {ranges[packet][1]}" for packet in lost)
    return given.refused(
        "num_vcs",
        f"{max(ranges[packet][1] for packet in lost) + 1} or more, or other VCs in the file",
        problem=f"has too few VCs for BookSim's defaults: {', '.join(defaults)}",
        hint=f"add {' '.join(keys)}" if half else "",
    )


def _words(packet: str) -> str:
    """Returns a kind of packets in words, such as `write replies`."""
    return packet.replace("_request", " requests").replace("_reply", " replies")
