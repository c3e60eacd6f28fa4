"""Reads and validates configuration files of BookSim 2, and fills in its defaults.

A file is a list of assignments, `key = value;`, with comments from `//` to the end of the line. A
value is an integer, a number, a name, or a list of these in braces, without spaces:
`{uniform,tornado}`, `{{1,5},{2}}`. Names may have arguments: `hotspot({{0,1},{3,1}})`. A later
assignment replaces an earlier one. Keys, defaults and forms of values are those of BookSim 2.0
(`booksim_config.cpp`, `config.l`), but integers are valid numbers.

Examples:
    >>> config = parse("topology = mesh; k = 4; packet_size = {1,5}; limit = 64;")
    >>> config.k, config.n, config.packet_size, config.unknown
    (4, 2, (1, 5), ('limit',))
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from tutti.base.files import limits
from tutti.base.files.mistakes import mistake, shown
from tutti.base.files.reader import read_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tutti.base.errors import ConfigError

_MOST = 2**31 - 1
_MOST_CLASSES = 1 << 16


# --- values ---------------------------------------------------------------------------------------


def _integer(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and -_MOST <= value <= _MOST:
        return value
    message = "an integer"
    raise ValueError(message)


def _real(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    message = "a number"
    raise ValueError(message)


def _name(value: object) -> str:
    if isinstance(value, str):
        return value
    message = "a name"
    raise ValueError(message)


def _seed(value: object) -> int | str:
    if value == "time":
        return "time"
    try:
        return _integer(value)
    except ValueError:
        message = "an integer or `time`"
        raise ValueError(message) from None


def _list_of(element: Callable[[object], object], expected: str) -> Callable[[object], object]:
    """Returns a reader of one value, or of a list as a tuple."""

    def read(value: object) -> object:
        try:
            if isinstance(value, str) and value.startswith("{"):
                return tuple(element(_number_or_text(part)) for part in split(value))
            if isinstance(value, tuple | list):
                return tuple(element(part) for part in value)
            return element(value)
        except ValueError:
            raise ValueError(expected) from None

    return read


_integers = _list_of(_integer, "an integer, or a list of them such as {1,2}")
_reals = _list_of(_real, "a number, or a list of them such as {0.1,0.2}")
_names = _list_of(_name, "a name, or a list of them such as {uniform,tornado}")
_per_packet = _list_of(_integers, "an integer, or a list such as {1,5} or {{1,5},{2}}")

Integer = Annotated[int, BeforeValidator(_integer)]
Real = Annotated[float, BeforeValidator(_real)]
Name = Annotated[str, BeforeValidator(_name)]
Seed = Annotated[int | Literal["time"], BeforeValidator(_seed)]
Integers = Annotated[int | tuple[int, ...], BeforeValidator(_integers)]
Reals = Annotated[float | tuple[float, ...], BeforeValidator(_reals)]
Names = Annotated[str | tuple[str, ...], BeforeValidator(_names)]
PerPacket = Annotated[int | tuple[int | tuple[int, ...], ...], BeforeValidator(_per_packet)]


def split(text: str) -> tuple[str, ...]:
    """Returns the non-empty elements of a list: `{a,{b,c}}` has `a` and `{b,c}`.

    Raises:
        ValueError: The braces do not match.
    """
    message = "matching braces"
    depth, start, found = 0, 1, []
    for at, character in enumerate(text):
        depth += (character == "{") - (character == "}")
        if depth == 0 and at + 1 < len(text):
            raise ValueError(message)
        if (character == "," and depth == 1) or depth == 0:
            found.append(text[start:at])
            start = at + 1
    if depth != 0 or not text:
        raise ValueError(message)
    return tuple(element for element in found if element)


# --- the configuration ----------------------------------------------------------------------------


class BookSimConfig(BaseModel):
    """All keys of BookSim 2, with their values or defaults.

    Keys with a value per message class hold one value for all classes, or a tuple; `per_class`
    returns one per class. For packet sizes, each value may be a tuple of sizes with weights. Times
    are in cycles, sizes in flits, `channel_width` in bits; 0 and 1 mean no and yes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    # The network.
    topology: Name = "torus"
    k: Integer = 8
    n: Integer = 2
    c: Integer = 1
    x: Integer = 8
    y: Integer = 8
    xr: Integer = 1
    yr: Integer = 1
    use_noc_latency: Integer = 1
    network_file: Name = ""
    channel_file: Name = ""
    subnets: Integer = 1
    routing_function: Name = "none"
    link_failures: Integer = 0
    fail_seed: Seed = 0
    in_ports: Integer = 5
    out_ports: Integer = 5
    # Routers: buffers and virtual channels.
    router: Name = "iq"
    num_vcs: Integer = 16
    vc_buf_size: Integer = 8
    buf_size: Integer = -1
    buffer_policy: Name = "private"
    private_bufs: Integer = -1
    private_buf_size: Integers = 1
    private_buf_start_vc: Integers = -1
    private_buf_end_vc: Integers = -1
    max_held_slots: Integer = -1
    feedback_aging_scale: Integer = 1
    feedback_offset: Integer = 0
    wait_for_tail_credit: Integer = 0
    vc_busy_when_full: Integer = 0
    vc_prioritize_empty: Integer = 0
    vc_priority_donation: Integer = 0
    vc_shuffle_requests: Integer = 0
    hold_switch_for_packet: Integer = 0
    output_buffer_size: Integer = -1
    vct: Integer = 0
    noq: Integer = 0
    # Routers: pipeline, in cycles, and speed-up.
    routing_delay: Integer = 1
    vc_alloc_delay: Integer = 1
    sw_alloc_delay: Integer = 1
    st_prepare_delay: Integer = 0
    st_final_delay: Integer = 1
    credit_delay: Integer = 0
    output_delay: Integer = 0
    internal_speedup: Real = 1.0
    input_speedup: Integer = 1
    output_speedup: Integer = 1
    speculative: Integer = 0
    spec_check_elig: Integer = 1
    spec_check_cred: Integer = 1
    spec_mask_by_reqs: Integer = 0
    spec_sw_allocator: Name = "prio"
    # Routers: allocators.
    vc_allocator: Name = "islip"
    sw_allocator: Name = "islip"
    arb_type: Name = "round_robin"
    alloc_iters: Integer = 1
    # Traffic.
    classes: Integer = 1
    class_priority: Integers = 0
    priority: Name = "none"
    traffic: Names = "uniform"
    perm_seed: Seed = 0
    injection_process: Names = "bernoulli"
    injection_rate: Reals = 0.1
    injection_rate_uses_flits: Integer = 0
    burst_alpha: Real = 0.5
    burst_beta: Real = 0.5
    burst_r1: Real = -1.0
    packet_size: PerPacket = 1
    packet_size_rate: PerPacket = 1
    batch_size: Integer = 1000
    batch_count: Integer = 1
    max_outstanding_requests: Integer = 0
    # Requests and replies.
    use_read_write: Integers = 0
    write_fraction: Reals = 0.5
    read_request_size: Integers = 1
    write_request_size: Integers = 1
    read_reply_size: Integers = 1
    write_reply_size: Integers = 1
    read_request_begin_vc: Integer = 0
    read_request_end_vc: Integer = 5
    write_request_begin_vc: Integer = 2
    write_request_end_vc: Integer = 7
    read_reply_begin_vc: Integer = 8
    read_reply_end_vc: Integer = 13
    write_reply_begin_vc: Integer = 10
    write_reply_end_vc: Integer = 15
    read_request_subnet: Integer = 0
    read_reply_subnet: Integer = 0
    write_request_subnet: Integer = 0
    write_reply_subnet: Integer = 0
    # Simulation: duration and convergence.
    sim_type: Name = "latency"
    sim_count: Integer = 1
    seed: Seed = 0
    sample_period: Integer = 1000
    warmup_periods: Integer = 3
    max_samples: Integer = 10
    measure_stats: Integers = 1
    pair_stats: Integer = 0
    include_queuing: Integer = 1
    latency_thres: Reals = 500.0
    warmup_thres: Reals = 0.05
    acc_warmup_thres: Reals = 0.05
    stopping_thres: Reals = 0.05
    acc_stopping_thres: Reals = 0.05
    deadlock_warn_timeout: Integer = 256
    # Power.
    sim_power: Integer = 0
    power_output_file: Name = "pwr_tmp"
    tech_file: Name = ""
    channel_width: Integer = 128
    channel_sweep: Integer = 0
    # Output, some of it only in builds with the option enabled.
    print_activity: Integer = 0
    print_csv_results: Integer = 0
    viewer_trace: Integer = 0
    watch_file: Name = ""
    watch_flits: Integers = ()
    watch_packets: Integers = ()
    watch_transactions: Integers = ()
    watch_out: Name = ""
    stats_out: Name = ""
    injected_flits_out: Name = ""
    received_flits_out: Name = ""
    stored_flits_out: Name = ""
    sent_flits_out: Name = ""
    outstanding_credits_out: Name = ""
    ejected_flits_out: Name = ""
    active_packets_out: Name = ""
    used_credits_out: Name = ""
    free_credits_out: Name = ""
    max_credits_out: Name = ""
    sent_packets_out: Name = ""

    unknown: tuple[str, ...] = ()
    """Keys of the file that are unknown to BookSim, which refuses them."""

    @property
    def given(self) -> frozenset[str]:
        """The assigned keys; all others have their defaults."""
        return frozenset(self.model_fields_set - {"unknown"})

    @property
    def routing(self) -> str:
        """The full name of the routing, such as `dim_order_mesh`."""
        return f"{self.routing_function}_{self.topology}"

    def per_class(self, key: str) -> tuple[Any, ...]:
        """Returns a value per message class; the last one of a shorter list repeats.

        Raises:
            ConfigError: The key is unknown, its list is empty, or `classes` is out of range.
        """
        if not 1 <= self.classes <= _MOST_CLASSES:
            raise mistake(
                f"{self.classes} message classes",
                source="per_class",
                key="classes",
                expected=f"1 to {_MOST_CLASSES}",
            )
        if key not in KEYS:
            raise mistake(f"`{key}` is not a key of BookSim", source="per_class")
        value = getattr(self, key)
        values = value if isinstance(value, tuple) else (value,)
        if not values:
            raise mistake("the list is empty", source="per_class", key=key, expected="one value")
        return tuple(values[min(number, len(values) - 1)] for number in range(self.classes))


KEYS: frozenset[str] = frozenset(BookSimConfig.model_fields) - {"unknown"}
"""The keys of BookSim."""


def read(path: str | Path) -> BookSimConfig:
    """Reads a configuration file.

    Raises:
        ConfigError: The file cannot be read or parsed, or a value has the wrong type. The message
            names line and column.
    """
    path = Path(path)
    text = read_text(
        path, limits.Bytes.CONFIG, "a configuration file of BookSim", line=limits.LOG_LINE
    )
    return parse(text, source=str(path))


def parse(text: str, *, source: str = "the configuration") -> BookSimConfig:
    """Reads a configuration from text; errors name `source`.

    Raises:
        ConfigError: As for `read`.
    """
    assigned = {key.text: value for key, value in _assignments(text, source)}
    unknown = tuple(key for key in assigned if key not in KEYS)
    values = {key: token.value for key, token in assigned.items() if key in KEYS}
    try:
        return BookSimConfig.model_validate({**values, "unknown": unknown})
    except ValidationError as error:
        raise _mistyped(error, assigned, source) from None


def _mistyped(error: ValidationError, assigned: Mapping[str, _Token], source: str) -> ConfigError:
    """Returns the error of all values of the wrong type, with their places."""
    expected = {str(each["loc"][0]): str(each["ctx"]["error"])
                for each in error.errors(include_url=False)}  # fmt: skip
    key = next(iter(expected))
    if len(expected) == 1:
        return mistake(
            "the value has the wrong type",
            source=_place(source, assigned[key]),
            key=key,
            value=shown(assigned[key].text)[1:-1],
            expected=expected[key],
        )
    places = (f"`{key}` (line {assigned[key].line})" for key in expected)
    return mistake(
        f"{len(expected)} values have the wrong type: {', '.join(places)}",
        source=source,
        expected="; ".join(f"{key}: {text}" for key, text in expected.items()),
    )


def repeated_keys(text: str, *, source: str) -> tuple[str, ...]:
    """Returns a line for each key that a text assigns several values: the last one counts.

    Raises:
        ConfigError: The text cannot be parsed.
    """
    values: dict[str, list[str]] = {}
    for key, value in _assignments(text, source):
        values.setdefault(key.text, []).append(value.text)
    return tuple(
        f"`{key}` is {shown(texts[-1])[1:-1]}, the last of {len(texts)} values, as in BookSim"
        for key, texts in values.items()
        if len(set(texts)) > 1
    )


def lines_of(text: str, *, source: str) -> dict[str, int]:
    """Returns the line of the last assignment of each key.

    Raises:
        ConfigError: The text cannot be parsed.
    """
    return {key.text: key.line for key, _ in _assignments(text, source)}


# --- the text -------------------------------------------------------------------------------------


class _Token(NamedTuple):
    kind: str
    text: str
    value: int | float | str
    line: int
    column: int


_COMMENT = re.compile(r"//[^\n]*")
_SPACE = re.compile(r"[ \t\r]+")
# The longest match wins; among equal lengths, the first.
_LIST = re.compile(r"\{[A-Za-z0-9_\-.({,)}]+\}")
_INTEGER = re.compile(r"-?[0-9]+")
_REAL = re.compile(r"-?(?:[0-9]*\.)?[0-9]+(?:[eE][+-]?[0-9]+)?")
_WORD = re.compile(r"[A-Za-z_\-/.][A-Za-z0-9_\-/.+({,)}]*")
_KINDS = (
    ("skip", _COMMENT),
    ("skip", _SPACE),
    ("list", _LIST),
    ("integer", _INTEGER),
    ("real", _REAL),
    ("word", _WORD),
)


def _tokens(text: str, source: str) -> Iterator[_Token]:
    for number, line in enumerate(text.split("\n"), start=1):
        at = 0
        while at < len(line):
            matches = ((kind, pattern.match(line, at)) for kind, pattern in _KINDS)
            found = [(kind, match[0]) for kind, match in matches if match]
            kind, word = max(found, key=lambda one: len(one[1]), default=("mark", line[at]))
            if kind != "skip":
                token = _Token(kind, word, word, number, at + 1)
                if kind in {"integer", "real"}:
                    token = token._replace(value=_number(token, source))
                yield token
            at += len(word)


def _number(token: _Token, source: str) -> int | float:
    """Returns the value of a token; integers have at most 10 digits."""
    is_integer = token.kind == "integer"
    if is_integer and len(token.text.lstrip("-").lstrip("0")) <= 10:
        value: int | float = int(token.text)
    else:
        value = math.inf if is_integer else float(token.text)
    if (abs(value) > _MOST) if is_integer else not math.isfinite(value):
        raise mistake(
            "the number is too large",
            source=_place(source, token),
            value=shown(token.text)[1:-1],
            expected=f"at most {_MOST}" if is_integer else "a number of 64 bits",
        )
    return value


def _number_or_text(text: str) -> int | float | str:
    if _INTEGER.fullmatch(text) and len(text.lstrip("-").lstrip("0")) <= 10:
        return int(text)
    return float(text) if _REAL.fullmatch(text) else text


def _assignments(text: str, source: str) -> Iterator[tuple[_Token, _Token]]:
    """Yields pairs of key and value."""
    tokens = _tokens(text, source)
    before = _Token("mark", "", "", 1, 1)
    for key in tokens:
        if key.kind != "word":
            raise _unexpected(source, key, "a key", before)
        equals = next(tokens, None)
        if equals is None or equals.text != "=":
            raise _unexpected(source, equals, "`=`", key)
        value = next(tokens, None)
        if value is None or value.kind == "mark":
            raise _unexpected(source, value, f"the value of `{shown(key.text)[1:-1]}`", equals)
        before = next(tokens, value)
        if before.text != ";":
            raise _unexpected(source, None if before is value else before, "`;`", value)
        yield key, value


_HINTS = {
    '"': "write values without quotes",
    "'": "write values without quotes",
    "{": "a list has no spaces and at least one element",
    "#": "comments start with `//`",
    "+": "write numbers without `+`",
}


def _unexpected(source: str, found: _Token | None, expected: str, before: _Token) -> ConfigError:
    """Returns the error of an unexpected token, or of the end of the text after `before`."""
    if found is None:
        place = _place(source, before._replace(column=before.column + len(before.text)))
        return mistake("unexpected end of the text", source=place, expected=expected)
    return mistake(
        f"found `{shown(found.text)[1:-1]}`",
        source=_place(source, found),
        expected=expected,
        hint=_HINTS.get(found.text, "write lines such as `num_vcs = 4;`"),
    )


def _place(source: str, token: _Token) -> str:
    return f"{source}:{token.line}:{token.column}"
