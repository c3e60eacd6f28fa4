"""Files of NCCL's example tuner plugin: what tutti writes is what the plugin applies."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tutti.base.errors import ConfigError
from tutti.nccl.tuner_csv import (
    ALGORITHMS,
    ANY,
    COLLECTIVES,
    NO_LIMIT,
    PROTOCOLS,
    Operation,
    TunerRule,
    find_rule,
    parse_tuner_csv,
    read_tuner_csv,
    tuner_csv,
    write_tuner_csv,
)

PLUGIN = Path(__file__).parents[1] / "data" / "nccl_tuner"
RULE = TunerRule(collective="all_reduce", algorithm="ring", protocol="ll128", channels=8)
IGNORED, COST = -1.0, 7.0


class _Tuner(ctypes.Structure):
    """ncclTuner_v5_t."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("init", ctypes.CFUNCTYPE(
            ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint64, ctypes.c_size_t,
            ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)),
        ("get", ctypes.CFUNCTYPE(
            ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_int,
            ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_int,
            ctypes.POINTER(ctypes.c_int))),
        ("finalize", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)),
    )  # fmt: skip


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> _Tuner:
    library = tmp_path_factory.mktemp("plugin") / "tuner.so"
    command = ["cc", "-shared", "-fPIC", "-w", "-I", PLUGIN / "nccl", "-o", library]
    subprocess.run([*map(str, command), str(PLUGIN / "plugin.c")], check=True)
    return _Tuner.in_dll(ctypes.CDLL(str(library)), "ncclTunerPlugin_v5")


def applied(
    plugin: _Tuner, one: Operation, excluded: frozenset[tuple[str, str]]
) -> tuple[tuple[str, str] | None, int]:
    """Returns the pair whose cost the plugin sets to 0, and the number of channels."""
    context, channels = ctypes.c_void_p(), ctypes.c_int(0)
    assert plugin.init(ctypes.byref(context), 0, one.ranks, one.nodes, None, None, None) == 0
    pairs = [(algorithm, protocol) for algorithm in ALGORITHMS for protocol in PROTOCOLS]
    costs = (ctypes.c_float * len(pairs))(
        *(IGNORED if pair in excluded else COST for pair in pairs)
    )
    collective = list(COLLECTIVES).index(one.collective)
    sizes = len(ALGORITHMS), len(PROTOCOLS)
    found = plugin.get(context, collective, one.size_bytes, one.grouped, costs, *sizes,
                       int(one.registered), ctypes.byref(channels))  # fmt: skip
    assert found == 0
    plugin.finalize(context)
    chosen = [pair for pair, cost in zip(pairs, costs, strict=True) if cost == 0.0]
    assert len(chosen) <= 1
    return (chosen[0] if chosen else None), channels.value


SIZES = st.sampled_from([0, 1, 1024, 1 << 20, (1 << 32) - 1, 1 << 32, 1 << 40, NO_LIMIT])
RULES = st.builds(
    lambda ends, **rest: TunerRule(first_bytes=min(ends), last_bytes=max(ends), **rest),
    ends=st.tuples(SIZES, SIZES),
    collective=st.sampled_from(list(COLLECTIVES)),
    algorithm=st.sampled_from(ALGORITHMS),
    protocol=st.sampled_from(PROTOCOLS),
    channels=st.sampled_from([ANY, 1, 16]),
    nodes=st.sampled_from([ANY, 1, 2]),
    ranks=st.sampled_from([ANY, 8, 16]),
    grouped=st.sampled_from([ANY, 1, 4]),
    registered=st.sampled_from([ANY, 0, 1]),
)
OPERATIONS = st.builds(
    Operation,
    collective=st.sampled_from(list(COLLECTIVES)),
    size_bytes=SIZES,
    nodes=st.sampled_from([1, 2]),
    ranks=st.sampled_from([8, 16]),
    grouped=st.sampled_from([1, 4]),
    registered=st.booleans(),
)
EXCLUDED = st.frozensets(st.tuples(st.sampled_from(ALGORITHMS), st.sampled_from(PROTOCOLS)))


def test_the_plugin_applies_what_tutti_predicts(
    plugin: _Tuner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "nccl_tuner.conf"
    monkeypatch.setenv("NCCL_TUNER_CONFIG_FILE", str(path))
    compared = 0

    @settings(max_examples=250, derandomize=True)
    @given(
        st.lists(RULES, min_size=3, max_size=12),
        st.lists(OPERATIONS, min_size=4, max_size=8),
        EXCLUDED,
    )
    def check(
        rules: list[TunerRule], operations: list[Operation], excluded: frozenset[tuple[str, str]]
    ) -> None:
        nonlocal compared
        try:
            write_tuner_csv(rules, path, notes=["a note"])
        except ConfigError as error:
            if "can never apply" not in str(error):
                raise
            return
        assert read_tuner_csv(path) == tuple(rules)
        for one in operations:
            rule = find_rule(rules, one, excluded)
            pair, channels = applied(plugin, one, excluded)
            assert pair == (None if rule is None else (rule.algorithm, rule.protocol))
            # The plugin's default is one channel, whatever NCCL would use.
            assert channels == (1 if rule is None or rule.channels == ANY else rule.channels)
            compared += rule is not None

    check()
    assert compared > 100


def test_the_plugin_has_no_limit_of_rules(
    plugin: _Tuner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = [
        TunerRule(collective="all_reduce", first_bytes=at, last_bytes=at, algorithm="tree",
                  protocol="ll", channels=2)
        for at in range(1000)
    ]  # fmt: skip
    path = write_tuner_csv([*rules, RULE], tmp_path / "many.conf")
    monkeypatch.setenv("NCCL_TUNER_CONFIG_FILE", str(path))
    last = Operation(collective="all_reduce", size_bytes=5000, nodes=2, ranks=16)
    assert applied(plugin, last, frozenset()) == (("ring", "ll128"), 8)


def test_the_plugins_own_example_is_read() -> None:
    """Of the file in the plugin's folder, one line per form."""
    text = "# comment\n\nallreduce,0,65536,tree,simple,2,1,-1,-1,1\n"
    text += " allgather , 0 ,9,ring,simple,4,2,-1\r\n"
    first, second = parse_tuner_csv(text, source="x")
    assert (first.registered, first.grouped, first.last_bytes) == (1, ANY, 65536)
    assert (second.collective, second.ranks, second.registered) == ("all_gather", ANY, ANY)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("collective,min,max,algorithm,protocol,channels,nodes,ranks", "unknown name"),
        ("alltoall,0,9,ring,simple,4,2,-1", "unknown name"),
        ("allreduce,0,9,rings,simple,4,2,-1", "unknown name"),
        ("allreduce,0,9,ring,simpel,4,2,-1", "did you mean `simple`"),
        ("allreduce,0,64K,ring,simple,4,2,-1", "not a number that the plugin reads"),
        ("allreduce,0,9,ring,simple,4,2", "has 7 fields"),
        ("allreduce,0,,ring,simple,4,2,-1,-1", "empty field"),
        ("allreduce,0,9,ring,simple,4,2,-1,1,0,7", "has 11 fields"),
        ("allreduce,9,0,ring,simple,4,2,-1", "invalid range"),
        ("allreduce,0,9,ring,simple,0,2,-1", "invalid number"),
        ("allreduce,0,9,ring,simple,4,2,-1,1,2", "invalid number"),
        ("#" + "x" * 300, "the plugin divides it"),
    ],
)
def test_lines_that_the_plugin_would_misread_are_refused(line: str, problem: str) -> None:
    with pytest.raises(ConfigError, match="line 2") as caught:
        parse_tuner_csv(f"# first\n{line}\n", source="x.conf")
    assert problem in f"{caught.value} {caught.value.hint}"


def test_rules_that_can_never_apply_are_refused() -> None:
    with pytest.raises(ConfigError, match="rule 1 matches all"):
        tuner_csv([RULE, TunerRule(**(vars(RULE) | {"nodes": 2}))])
