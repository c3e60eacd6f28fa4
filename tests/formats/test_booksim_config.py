"""Configuration files of BookSim: grammar, defaults and errors."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tutti.base.errors import ConfigError
from tutti.formats.booksim import reader as booksim
from tutti.formats.booksim.reader import BookSimConfig, parse, split

if TYPE_CHECKING:
    from pathlib import Path


def test_a_file_is_read_with_the_defaults_for_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "mesh"
    path.write_text(
        "// An 8x8 mesh.\r\n"
        "topology = mesh;\nk = 8; n=2;//the same line\n\n"
        "routing_function = dim_order;\n"
        "injection_rate = .25;\nlatency_thres = 1e3; burst_r1 = -0.5;\n"
        "watch_file = ../out/watch-1.txt;\n"
        "output_buffer_size = -1;\nseed = time;\n"
        "limit = 64;\n"
    )
    config = booksim.read(path)
    assert (config.topology, config.k, config.n, config.seed) == ("mesh", 8, 2, "time")
    assert config.routing == "dim_order_mesh"
    assert (config.injection_rate, config.latency_thres, config.burst_r1) == (0.25, 1000.0, -0.5)
    assert config.watch_file == "../out/watch-1.txt"
    assert config.unknown == ("limit",)
    assert config.given == {
        "topology", "k", "n", "routing_function", "injection_rate", "latency_thres", "burst_r1",
        "watch_file", "output_buffer_size", "seed",
    }  # fmt: skip
    rest = BookSimConfig()
    left = booksim.KEYS - config.given
    assert all(getattr(config, key) == getattr(rest, key) for key in left)


def test_defaults_are_those_of_booksim() -> None:
    """All keys of booksim_config.cpp, and the most important values."""
    config = parse("")
    assert len(booksim.KEYS) == 131
    expected: dict[str, Any] = {
        "topology": "torus", "k": 8, "n": 2, "c": 1, "x": 8, "y": 8, "xr": 1, "yr": 1,
        "routing_function": "none", "use_noc_latency": 1, "router": "iq", "num_vcs": 16,
        "vc_buf_size": 8, "buf_size": -1, "buffer_policy": "private", "routing_delay": 1,
        "vc_alloc_delay": 1, "sw_alloc_delay": 1, "st_prepare_delay": 0, "st_final_delay": 1,
        "credit_delay": 0, "internal_speedup": 1.0, "vc_allocator": "islip", "alloc_iters": 1,
        "sw_allocator": "islip", "arb_type": "round_robin", "spec_sw_allocator": "prio",
        "traffic": "uniform", "injection_rate": 0.1, "injection_process": "bernoulli",
        "packet_size": 1, "burst_alpha": 0.5, "burst_r1": -1.0, "sim_type": "latency",
        "sample_period": 1000, "warmup_periods": 3, "max_samples": 10, "latency_thres": 500.0,
        "warmup_thres": 0.05, "stopping_thres": 0.05, "read_reply_begin_vc": 8, "seed": 0,
        "write_reply_end_vc": 15, "channel_width": 128, "power_output_file": "pwr_tmp",
        "watch_flits": (), "network_file": "", "deadlock_warn_timeout": 256,
    }  # fmt: skip
    assert {key: getattr(config, key) for key in expected} == expected
    assert config.given == frozenset()
    assert config.unknown == ()


def test_lists_have_a_value_for_each_class() -> None:
    config = parse(
        "classes = 3; traffic = {uniform,hotspot({{0,1},{3,1}})}; injection_rate = {0.1,1};"
        "packet_size = {{1,5},{2}}; packet_size_rate = {2}; use_read_write = {0,1,1};"
        "watch_flits = {3,4}; private_buf_size = {8,-1}; priority = age;"
    )
    assert config.traffic == ("uniform", "hotspot({{0,1},{3,1}})")
    assert config.per_class("traffic") == (
        "uniform", "hotspot({{0,1},{3,1}})", "hotspot({{0,1},{3,1}})",
    )  # fmt: skip
    assert config.per_class("injection_rate") == (0.1, 1.0, 1.0)
    assert config.packet_size == ((1, 5), (2,))
    assert config.per_class("packet_size") == ((1, 5), (2,), (2,))
    assert config.per_class("packet_size_rate") == (2, 2, 2)
    assert config.per_class("use_read_write") == (0, 1, 1)
    assert config.per_class("latency_thres") == (500.0, 500.0, 500.0)
    assert (config.watch_flits, config.private_buf_size) == ((3, 4), (8, -1))


def test_later_assignment_replaces_an_earlier_one() -> None:
    config = parse("k = 4; k = 6; packet_size = {1,2}; packet_size = 5;")
    assert (config.k, config.packet_size) == (6, 5)


def test_names_are_tokenised_like_in_booksim() -> None:
    """The longest match counts: a name can start with a minus or a slash, and contain a plus."""
    config = parse("tech_file = /opt/-a_b.c+d//e; watch_out = -; stats_out = -1x;")
    assert (config.tech_file, config.watch_out) == ("/opt/-a_b.c+d//e", "-")
    assert config.stats_out == "-1x"
    assert split("{a,{b,c},,d}") == ("a", "{b,c}", "d")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("k = 4", "text:1:6: unexpected end of the text\nexpected: `;`"),
        ("k", "text:1:2: unexpected end of the text\nexpected: `=`"),
        ("k =", "text:1:4: unexpected end of the text\nexpected: the value of `k`"),
        ("k = 4\nn = 2;", "text:2:1: found `n`\nexpected: `;`"),
        ("k 4;", "text:1:3: found `4`\nexpected: `=`"),
        ("\n  4 = k;", "text:2:3: found `4`\nexpected: a key"),
        ("k = ;", "text:1:5: found `;`\nexpected: the value of `k`"),
        ("k = 4;;", "text:1:7: found `;`\nexpected: a key"),
        ('topology = "mesh";', 'text:1:12: found `"`\nexpected: the value of `topology`'),
        (
            "k = mesh;",
            "text:1:5: k: the value has the wrong type\ngiven: mesh\nexpected: an integer",
        ),
        ("k = 4.0;", "expected: an integer"),
        ("k = {4,2};", "given: {4,2}\nexpected: an integer"),
        ("injection_rate = fast;", "expected: a number, or a list of them such as {0.1,0.2}"),
        ("injection_rate = {0.1,fast};", "expected: a number, or a list of them"),
        ("topology = 5;", "text:1:12: topology: the value has the wrong type"),
        ("seed = now;", "expected: an integer or `time`"),
        ("packet_size = {{1,{2}}};", "expected: an integer, or a list such as {1,5}"),
        ("packet_size = {1}2};", "given: {1}2}"),
        ("packet_size = {1,{2};", "given: {1,{2}"),
        ("packet_size = {1, 2};", "text:1:15: found `{`"),
        ("k = 2147483648;", "text:1:5: the number is too large\ngiven: 2147483648"),
        (f"k = {'9' * 6000};", "the number is too large"),
        ("injection_rate = 1e999;", "the number is too large"),
        ("watch_flits = {99999999999};", "watch_flits: the value has the wrong type"),
    ],
)
def test_mistake_states_line_problem_and_expectation(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text, source="text")
    assert problem in caught.value.problem


def test_hints_cover_common_mistakes() -> None:
    for text, hint in [
        ('traffic = "uniform";', "write values without quotes"),
        ("packet_size = {1, 2};", "a list has no spaces"),
        ("# mesh\nk = 4;", "comments start with `//`"),
        ("k = +4;", "write numbers without `+`"),
    ]:
        with pytest.raises(ConfigError) as caught:
            parse(text)
        assert hint in caught.value.hint


def test_invalid_values_of_classes_are_refused() -> None:
    with pytest.raises(ConfigError, match="`colour` is not a key"):
        parse("").per_class("colour")
    with pytest.raises(ConfigError, match="0 message classes"):
        parse("classes = 0;").per_class("traffic")
    with pytest.raises(ConfigError, match="2000000000 message classes"):
        parse("classes = 2000000000;").per_class("traffic")
    with pytest.raises(ConfigError, match="the list is empty"):
        parse("traffic = {,};").per_class("traffic")


def test_unreadable_files_are_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        booksim.read(tmp_path / "none")
    (tmp_path / "binary").write_bytes(b"k = 4;\n\xff")
    with pytest.raises(ConfigError, match="not text"):
        booksim.read(tmp_path / "binary")


KEY = st.sampled_from(sorted(booksim.KEYS)) | st.text(string.ascii_letters + "_", min_size=1)
VALUE = st.sampled_from(["4", "-1", "0.5", "1e-3", "mesh", "{1,2}", "{{1},{2,3}}", "{a", "{,}"])
PIECE = st.sampled_from(["=", ";", "//", "\n", " ", "{", "}", ",", "\t"]) | KEY | VALUE


@given(st.lists(PIECE, max_size=20).map("".join) | st.text(max_size=80))
@settings(max_examples=500)
def test_any_text_is_a_configuration_or_an_error(text: str) -> None:
    refusal = ""
    config = BookSimConfig()
    try:
        config = parse(text, source="text")
    except ConfigError as error:
        refusal = error.problem
    assert not refusal or refusal.startswith("text:")
    assert config.given <= booksim.KEYS
    assert not booksim.KEYS & set(config.unknown)


@given(st.lists(st.tuples(KEY, VALUE), max_size=8))
def test_any_assignments_are_a_configuration_or_an_error(pairs: list[tuple[str, str]]) -> None:
    text = "".join(f"{key} = {value};\n" for key, value in pairs)
    refusal = ""
    config = BookSimConfig()
    try:
        config = parse(text)
    except ConfigError as error:
        refusal = error.problem
    if refusal:
        assert "expected:" in refusal
    else:
        assert config.given | set(config.unknown) == {key for key, _ in pairs}
