"""Experiment files: accepted values, resolved experiments, and errors."""

from __future__ import annotations

from pathlib import Path

import pytest

import tutti
from tutti.base.errors import ConfigError
from tutti.base.files.reader import parse_toml
from tutti.collectives.files.resolve import Experiment, resolve

GOOD = """
platform = "cray_xc30"
collective = "all_reduce"
algorithms = ["ring"]
ranks = [4, 8]
sizes = ["8 B", "1 KiB"]
"""


def load(text: str) -> Experiment:
    return resolve(parse_toml(text, source="e.toml"), source="e.toml", folder=Path())


def refusal(text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load(text)
    return caught.value


def changed(key: str, value: str) -> str:
    """The good file with another value for one key."""
    lines = [line for line in GOOD.splitlines() if not line.startswith(f"{key} ")]
    return "\n".join([*lines, f"{key} = {value}"])


def test_a_good_file_is_resolved() -> None:
    experiment = load(GOOD)
    assert experiment.ranks == (4, 8)
    assert [size.bytes for size in experiment.sizes] == [8, 1024]
    assert experiment.model == "minimum"
    assert experiment.datatype == "float32"
    assert experiment.algorithms == ("ring",)


def test_ranges_are_written_out_and_stop_at_their_end() -> None:
    experiment = load(changed("ranks", "[{ from = 4, to = 40, factor = 3 }, 6, 12]"))
    assert experiment.ranks == (4, 6, 12, 36)
    experiment = load(changed("sizes", '{ from = "8 B", to = "1 KiB", factor = 4 }'))
    assert [size.bytes for size in experiment.sizes] == [8, 32, 128, 512]
    (remark,) = experiment.remarks
    assert remark == "the last size is 512 B: 1 KiB is not 8 B times a power of 4"
    assert load(changed("sizes", '{ from = "8 B", to = "1 KiB" }')).remarks == ()


def test_hash_depends_on_content_not_on_the_file() -> None:
    assert load(GOOD).config_hash == load("# a comment\n" + GOOD).config_hash
    assert load(GOOD).config_hash != load(changed("ranks", "[4, 16]")).config_hash


MISTAKES: dict[str, tuple[str, str, str]] = {
    # input -> key, problem and hint of the error
    GOOD + "rnaks = 3": ("rnaks", "unknown key `rnaks`", "did you mean `ranks`?"),
    changed("sizes", "8"): ("sizes", "expected text with a unit", "add the unit"),
    changed("sizes", '"8"'): ("sizes", "`8` has no unit", "add the unit"),
    changed("sizes", '"8 ns"'): ("sizes", "`ns` in `8 ns` is not a unit of size", "GiB"),
    changed("sizes", '["8 B", "9 B"]'): (
        "sizes",
        "not a multiple of the size of float32",
        "8 B or 12 B",
    ),
    changed("sizes", '"0 B"'): ("sizes", "the payload of all_reduce is empty", ""),
    changed("sizes", '{ from = "0 B", to = "8 B" }'): ("sizes.from", "cannot start at zero", ""),
    changed("sizes", '{ from = "9 KB", to = "8 B" }'): ("sizes", "range is empty", ""),
    changed("sizes", "[]"): ("sizes", "is empty", ""),
    changed("ranks", "0"): ("ranks", "greater than or equal to 2", ""),
    changed("ranks", "1"): ("ranks", "greater than or equal to 2", ""),
    changed("ranks", "-4"): ("ranks", "greater than or equal to 2", ""),
    changed("ranks", "99999999999999999999"): ("ranks", "the number is too large", ""),
    changed("ranks", "16777217"): ("ranks", "less than or equal to 16777216", ""),
    changed("ranks", "4.0"): ("ranks", "is not an integer", ""),
    changed("ranks", "[4, true]"): ("ranks[1]", "is not an integer", ""),
    changed("ranks", "{ from = 4, to = 8, factor = 1 }"): ("ranks.factor", "or equal to 2", ""),
    changed("collective", '"allreduce"'): ("collective", "unknown collective", "`all_reduce`?"),
    changed("platform", '"cray_xc40"'): ("platform", "unknown platform", "`cray_xc30`?"),
    changed("platform", '"none.toml"'): ("", "there is no such file", ""),
    changed("model", '"minimun"'): ("model", "cray_xc30: `minimun`", "`minimum`?"),
    changed("datatype", '"float31"'): ("datatype", "unknown datatype", "`float32`?"),
    changed("algorithms", '["rnig"]'): ("algorithms[0]", "unknown algorithm `rnig`", "`ring`?"),
    changed("algorithms", '["ring", "ring"]'): ("algorithms[1]", "appears twice", ""),
    changed("collective", '"broadcast"'): ("algorithms[0]", "ring does not perform", "all_reduce"),
    changed("root", "4"): ("root", "is not a rank of every run", ""),
    changed("speed", '{ "4" = 0.5 }'): ("speed.4", "is not a rank of every run", ""),
    changed("speed", '{ "1" = 0 }'): ("speed.1", "greater than 0", ""),
    changed("speed", '{ "1" = -0.5 }'): ("speed.1", "greater than 0", ""),
    changed("repetitions", "0"): ("repetitions", "is out of range", ""),
    changed("noise", '{ step = { kind = "exponentail", mean = "1 us" } }'): (
        "noise.step.kind",
        "unknown kind `exponentail`",
        "`exponential`?",
    ),
    changed("noise", '{ step = { kind = "fixed", time = "-1 us" } }'): (
        "noise.step.time",
        "is negative",
        "",
    ),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_errors_state_key_problem_and_hint(text: str) -> None:
    key, problem, hint = MISTAKES[text]
    error = refusal(text)
    assert error.key == key
    assert problem in error.problem
    assert hint in error.hint
    assert "Traceback" not in str(error)


@pytest.mark.parametrize("key", ["platform", "collective", "ranks", "sizes"])
def test_a_missing_key_is_named(key: str) -> None:
    lines = [line for line in GOOD.splitlines() if not line.startswith(f"{key} ")]
    error = refusal("\n".join(lines))
    assert error.key == key
    assert f"`{key}` is missing" in error.problem


def test_further_mistakes_are_counted() -> None:
    error = refusal(changed("ranks", "[1, 0]") + "\nseed = -1")
    assert "2 more to fix: ranks[1], seed" in error.hint


INLINE = """
collective = "all_reduce"
ranks = 4
sizes = "8 B"
[platform]
name = "mine"
[platform.models.link]
kind = "pipelining_postal"
alpha_p = {alpha_p}
alpha_r = "100 ns"
beta = {beta}
"""


def test_platform_can_be_a_table() -> None:
    text = INLINE.format(alpha_p='"500 ns"', beta='{ value = "0.4 ns/B", source = "measured" }')
    assert load(text).model == "link"


@pytest.mark.parametrize(
    ("alpha_p", "beta", "key", "problem"),
    [
        ('"500 ns"', '"0 GB/s"', "platform.models.link.beta", "is zero"),
        ('"500 ns"', '"-1 GB/s"', "platform.models.link.beta", "is negative"),
        ('"500"', '"1 GB/s"', "platform.models.link.alpha_p", "has no unit"),
        ("500", '"1 GB/s"', "platform.models.link.alpha_p", "text with a unit"),
        (
            '{ value = 500, source = "s" }',
            '"1 GB/s"',
            "platform.models.link.alpha_p.value",
            "text with a unit",
        ),
    ],
)
def test_a_platform_with_a_bad_number_is_refused(
    alpha_p: str, beta: str, key: str, problem: str
) -> None:
    error = refusal(INLINE.format(alpha_p=alpha_p, beta=beta))
    assert error.key == key
    assert problem in error.problem


def test_recorded_noise_and_arrivals_are_read_from_files(tmp_path: Path) -> None:
    (tmp_path / "noise.csv").write_text("detour_us\n1\n2\n")
    (tmp_path / "noise.trace").write_text("1000 50\n2000 70\n")
    (tmp_path / "skew.csv").write_text("rank,a_us\n" + "".join(f"{r},{r}\n" for r in range(8)))
    (tmp_path / "flows.csv").write_text("source,destination,bytes\n0,1,64\n")
    text = (
        GOOD
        + """
    [noise.step]
    kind = "mixture"
    parts = [{ chance = 0.1, distribution = { kind = "recorded", file = "noise.csv" } }]
    [noise.detours]
    kind = "trace"
    file = "noise.trace"
    [arrival]
    kind = "per_rank"
    file = "skew.csv"
    [background]
    file = "flows.csv"
    """
    )
    experiment = resolve(parse_toml(text, source="e.toml"), source="e.toml", folder=tmp_path)
    conditions = experiment.conditions()
    assert str(conditions.noise.step) == "mixture(0.1 recorded(1 us, 2 us))"
    assert str(conditions.noise.detours).endswith("aligned=False")
    assert conditions.arrival is not None
    assert [flow.size.bytes for flow in conditions.background.flows] == [64]
    # The hash depends on the recorded values, not on their file.
    before = experiment.config_hash
    (tmp_path / "noise.csv").write_text("detour_us\n1\n3\n")
    again = resolve(parse_toml(text, source="e.toml"), source="e.toml", folder=tmp_path)
    assert again.config_hash != before


def test_recorded_noise_and_arrivals_can_be_tables() -> None:
    tables = """
    [noise.detours]
    kind = "trace"
    detours = [["1 us", "2 us"]]
    [arrival]
    kind = "per_rank"
    times = ["1 us", "2 us", "3 us", "4 us", "5 us", "6 us", "7 us", "8 us"]
    """
    conditions = load(GOOD + tables).conditions()
    detours = tutti.platforms.NoiseTrace(detours=[("1 us", "2 us")])
    arrival = tutti.platforms.PerRank(times=[f"{rank} us" for rank in range(1, 9)])
    assert conditions == tutti.Conditions(
        noise=tutti.platforms.Noise(detours=detours), arrival=arrival
    )


@pytest.mark.parametrize(
    ("table", "fragment"),
    [
        ('[noise.step]\nkind = "recorded"', "expected either `times` or `file`"),
        ('[noise.step]\nkind = "recorded"\nfile = "none.csv"', "there is no such file"),
        ('[noise.detours]\nkind = "trace"', "expected either `detours` or `file`"),
        ('[noise.detours]\nkind = "ticks"', "periodic, poisson, trace"),
        ('[arrival]\nkind = "per_rank"\ntimes = [["1 us"]]', "arrival: arrivals are given for 1"),
        ("[background]\nload = 0.5", "background: a background load needs links"),
        ('[noise.step]\nkind = "pareto"\nleast = "1 us"\nshape = 0', "noise.step.shape"),
        ('[noise.step]\nkind = "mixture"\nparts = []', "noise.step.parts"),
    ],
)
def test_invalid_disturbances_are_refused(table: str, fragment: str) -> None:
    assert fragment in str(refusal(GOOD + table))
