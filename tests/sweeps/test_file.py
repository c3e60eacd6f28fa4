"""Sweep files: their points, and errors."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.base.errors import ConfigError
from tutti.base.files.key_paths import parse, with_value, written
from tutti.collectives.files.definition import DEFAULTS, define
from tutti.platforms.files.platform_file import TopologyTable
from tutti.platforms.files.presets import find_platform
from tutti.sweeps.files import Sweep, Template, load_sweep, resolve_sweep
from tutti.sweeps.plan import SweepPlan, plan_sweep

BASE = {
    "platform": "cray_xc30",
    "collective": "all_reduce",
    "algorithms": ["ring"],
    "ranks": 4,
    "sizes": "8 B",
}


def read(sweep: dict[str, Any], **changes: Any) -> Sweep:
    tables = {"experiment": BASE | changes, "sweep": sweep}
    return resolve_sweep(copy.deepcopy(tables), source="s.toml", folder=Path())


def refusal(sweep: dict[str, Any], **changes: Any) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        plan_sweep(read(sweep, **changes))
    return caught.value


def test_grid_is_a_product_and_its_last_key_changes_fastest() -> None:
    swept = read({"grid": {"ranks": [4, 8], "sizes": ["8 B", "16 B", "1 KiB"]}})
    assert [tuple(point.values()) for point in swept.points] == [
        (4, "8 B"),
        (4, "16 B"),
        (4, "1 KiB"),
        (8, "8 B"),
        (8, "16 B"),
        (8, "1 KiB"),
    ]


def test_zipped_lists_are_paired_and_cases_are_listed() -> None:
    swept = read(
        {
            "cases": [{"seed": 1}, {"seed": 2, "datatype": "int64"}],
            "zip": {"ranks": [4, 8], "sizes": ["8 B", "16 B"]},
            "grid": {"collective": ["all_reduce"]},
        }
    )
    assert [dict(point) for point in swept.points] == [
        {"seed": 1, "ranks": 4, "sizes": "8 B", "collective": "all_reduce"},
        {"seed": 1, "ranks": 8, "sizes": "16 B", "collective": "all_reduce"},
        {"seed": 2, "datatype": "int64", "ranks": 4, "sizes": "8 B", "collective": "all_reduce"},
        {"seed": 2, "datatype": "int64", "ranks": 8, "sizes": "16 B", "collective": "all_reduce"},
    ]
    assert swept.keys == ("seed", "datatype", "ranks", "sizes", "collective")


def test_value_is_set_at_its_key_path() -> None:
    torus = {"build": "torus:4", "links": [{"rate": "10 GB/s", "latency": "100 ns"}]}
    postal = {"kind": "postal", "alpha": "1 us"}
    swept = read(
        {
            "grid": {
                "platform.models.m.alpha": ["2 us"],
                "platform.topology.links[0].latency": ["7 ns"],
                "platform.topology.build": ["ring:4"],
                "noise.step": [{"kind": "fixed", "time": "1 ns"}],
                "arrival.high": ["3 us"],
                "seed": [7],
            }
        },
        platform={"name": "p", "models": {"m": postal}, "topology": torus},
        arrival={"kind": "uniform", "high": "1 us"},
    )
    (experiment,) = swept.experiments()
    assert experiment.platform.models["m"].alpha.ps == 2_000_000  # type: ignore[attr-defined]
    table = experiment.platform.topology
    assert table is not None
    assert (table.build, table.links[0].latency.ps) == ("ring:4", 7_000)  # type: ignore[union-attr]
    assert experiment.noise.step is not None
    assert experiment.noise.step.kind == "fixed"
    assert experiment.arrival is not None
    assert experiment.arrival.high.ps == 3_000_000  # type: ignore[union-attr]
    assert experiment.seed == 7
    assert torus["build"] == "torus:4"  # shared tables stay unchanged


def test_named_platform_is_expanded_if_a_part_is_swept() -> None:
    keys = {"platform": ["cray_xc30", "loggp_cluster"], "platform.compute.gamma": ["0.1 ns/B"]}
    first, second = read({"grid": keys}).experiments()
    assert (first.platform.name, second.platform.name) == ("cray_xc30", "loggp_cluster")
    assert {str(e.platform.compute.gamma) for e in (first, second)} == {"0.1 ns/B"}


def test_an_experiment_by_reference_is_read_from_its_own_folder(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "m.toml").write_text(
        'name = "mine"\nmodels.a = { kind = "postal", alpha = "1 us" }\n'
    )
    (tmp_path / "in" / "e.toml").write_text(
        'platform = "m.toml"\ncollective = "all_reduce"\nranks = 4\nsizes = "8 B"\n'
    )
    (tmp_path / "s.toml").write_text(
        'experiment = "in/e.toml"\n[sweep.grid]\n"platform.models.a.alpha" = ["2 us"]\n'
    )
    (experiment,) = load_sweep(tmp_path / "s.toml").experiments()
    assert experiment.platform.name == "mine"
    assert "s.toml (in/e.toml), point 1 of 1" in experiment.source


BAD: dict[str, tuple[dict[str, Any], *tuple[str, ...]]] = {
    "nothing swept": ({}, "s.toml: sweep: has no swept keys", "[sweep.grid]"),
    "an unknown table": ({"gird": {"ranks": [4]}}, "sweep.gird", "did you mean `grid`?"),
    "no list": ({"grid": {"ranks": 4}}, "sweep.grid.ranks", "list"),
    "an empty list": ({"grid": {"ranks": []}}, "sweep.grid.ranks", "is empty"),
    "an unknown key": (
        {"grid": {"rnaks": [4]}},
        "s.toml: sweep.grid.rnaks: an experiment has no key `rnaks`",
        "did you mean `ranks`?",
    ),
    "a platform's key by itself": (
        {"grid": {"models.minimum.alpha_p": ["1 us"]}},
        '"platform.models.minimum.alpha_p"',
    ),
    "no key path": ({"grid": {"ranks..a": [4]}}, "is not a key path", "platform.compute.gamma"),
    "the output": ({"grid": {"output": ["a"]}}, "cannot be swept"),
    "lists of two lengths": (
        {"zip": {"ranks": [4, 8], "seed": [1]}},
        "sweep.zip: the lists differ in length: ranks has 2, seed has 1",
    ),
    "a key twice": ({"grid": {"seed": [1]}, "zip": {"seed": [2]}}, "is also swept in sweep.zip"),
    "a point twice": (
        {"grid": {"ranks": [4, 8, 4]}},
        "point 3 of 3 (ranks = 4) duplicates point 1",
    ),
    "too many points": (
        {"grid": {"seed": list(range(1000)), "ranks": list(range(2, 1002))}},
        "1,000,000 points are too many",
    ),
    "a bad value": (
        {"grid": {"ranks": [4, 1]}},
        "s.toml, point 2 of 2 (ranks = 1): ranks: ",
        "given: 1",
        "greater than or equal to 2",
    ),
    "a value without its unit": (
        {"grid": {"platform.models.minimum.alpha_p": ["1 us", "2"]}},
        'point 2 of 2 (platform.models.minimum.alpha_p = "2")',
        "platform.models.minimum.alpha_p: ",
        "no unit",
    ),
    "an unknown model": (
        {"grid": {"platform.models.minimun.alpha_p": ["1 us"]}},
        "the platform has no model `minimun`",
        "did you mean `minimum`?",
    ),
    "an unknown parameter": (
        {"grid": {"platform.models.minimum.alfa_p": ["1 us"]}},
        "unknown key `alfa_p`",
        "did you mean `alpha_p`?",
    ),
    "a path that leads nowhere": (
        {"grid": {"ranks.from": [4]}},
        "ranks.from: does not exist: ranks is not a table",
    ),
    "an index beyond the list": (
        {"grid": {"algorithms[3]": ["ring"]}},
        "algorithms[3]: does not exist: algorithms has 1 value,",
    ),
    "an algorithm that fits nowhere": (
        {"grid": {"ranks": [6, 7], "algorithms": [["ring"], ["recursive_multiplying:a5"]]}},
        "point 2 of 4",
        "algorithms[0]",
        "an algorithm for 6 ranks",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_error_of_a_bad_sweep_states_the_problem(name: str) -> None:
    sweep, *expected = BAD[name]
    text = str(refusal(sweep))
    for words in expected:
        assert words in text


def test_unsupported_points_omit_the_algorithm() -> None:
    plan = plan_sweep(read({"grid": {"ranks": [4, 5]}}, algorithms=["recursive_multiplying:a5"]))
    assert isinstance(plan, SweepPlan)
    assert [item.ranks for item in plan.measurements] == [5]
    assert [(point, one.ranks) for point, one in plan.left_out] == [(0, 4)]


def test_ranges_that_end_before_their_last_value_are_reported_once() -> None:
    alphas = {"platform.models.minimum.alpha_p": ["1 us", "2 us"]}
    sizes = {"from": "8 B", "to": "1 KiB", "factor": 4}
    plan = plan_sweep(read({"grid": alphas}, sizes=sizes, ranks={"from": 4, "to": 6}))
    assert plan.remarks == [
        "the last rank count is 4: 6 is not 4 times a power of 2",
        "the last size is 512 B: 1 KiB is not 8 B times a power of 4",
    ]
    swept = plan_sweep(read({"grid": {"sizes": [sizes, "8 B"]}}))
    assert swept.remarks == ["the last size is 512 B: 1 KiB is not 8 B times a power of 4"]


def test_measurement_keys_are_unique_and_stable() -> None:
    sweep = {
        "grid": {
            "ranks": [4, 8],
            "sizes": ["8 B", "16 B"],
            "seed": [1, 2],
            "datatype": ["float32", "float64"],
            "platform.models.minimum.alpha_p": ["1 us", "2 us"],
            "arrival": [{"kind": "fixed", "time": "1 ns"}, {"kind": "fixed", "time": "2 ns"}],
        }
    }
    plans = [plan_sweep(read(sweep, repetitions=2)) for _ in range(2)]
    keys = [item.key for item in plans[0].measurements]
    assert len(set(keys)) == len(keys) == 2**6 * 2
    assert keys == [item.key for item in plans[1].measurements]
    # More repetitions or another list of sizes: earlier measurements keep their keys.
    more = plan_sweep(read(sweep, repetitions=3))
    assert set(keys) < {item.key for item in more.measurements}


SHARING: dict[str, dict[str, list[Any]]] = {
    "numbers of the platform": {
        "platform.models.minimum.alpha_p": ["1 us", "2 us"],
        "platform.compute.gamma": ["0.1 ns/B", "0.2 ns/B"],
    },
    "platforms, models and ranks": {
        "platform": ["cray_xc30", "loggp_cluster"],
        "model": [None],
        "ranks": [4, [4, 8], 8],
    },
    "conflicting kinds": {
        "noise.step": [{"kind": "fixed", "time": "1 ns"}, {"kind": "exponential", "mean": "9 ns"}],
        "speed": [{}, {"0": 0.5}],
        "wait_for_sends": [False, True],
        "platform.models.minimum.alpha_p": ["1 us", "2 us"],
    },
    "graphs": {
        "platform.topology.build": ["ring:8", "torus:2x4"],
        "platform.topology.links": [[{"rate": "1 GB/s", "latency": t}] for t in ("1 ns", "2 ns")],
        "background.load": [0.1, 0.2],
        "sizes": ["8 B", "16 B"],
    },
}


@pytest.mark.parametrize("name", SHARING)
def test_points_are_read_independently(name: str) -> None:
    swept = read({"grid": SHARING[name]})
    for number, (found, values) in enumerate(
        zip(swept.experiments(), swept.points, strict=True), start=1
    ):
        alone = dataclasses.replace(swept.template).experiment(number, values)
        assert found == alone
        assert found.inputs == alone.inputs
        for one, other in (
            (found.conditions(), alone.conditions()),
            (found.machine(), alone.machine()),
        ):
            assert one.model_dump(mode="json") == other.model_dump(mode="json")
        text = json.dumps(alone.inputs, sort_keys=True, separators=(",", ":"))
        assert found.config_hash == hashlib.sha256(text.encode()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("grid", "expected"),
    [
        ({"platform": ["cray_xc30", "cray_xc31"]}, "unknown platform `cray_xc31`"),
        ({"platform.models.minimum.alpha_p": ["1 us", "1"]}, "models.minimum.alpha_p: "),
        (
            {
                "platform.topology.links": [[{"rate": "1 GB/s", "latency": "1 ns"}]],
                "platform.topology.build": ["ring:4", "ring:3"],
            },
            "4 ranks exceed the platform's topology",
        ),
    ],
)
def test_mistake_in_a_later_point_is_reported_like_in_the_first(
    grid: dict[str, Any], expected: str
) -> None:
    second = str(refusal({"grid": grid}))
    alone = str(refusal({"grid": {key: values[-1:] for key, values in grid.items()}}))
    assert expected in second
    assert second.replace("point 2 of 2", "point 1 of 1") == alone


def test_every_experiment_key_is_part_of_the_cache_key() -> None:
    """If a key were missing here, the cache could return rows of another experiment."""
    (experiment,) = read({"grid": {"seed": [1]}}).experiments()
    named = {one.name for one in dataclasses.fields(experiment) if one.compare}
    assert named - {"source", "title", "output"} == experiment.inputs.keys() - {"routes"}


def test_every_topology_key_is_part_of_the_cache_key() -> None:
    links = [{"rate": "10 GB/s", "latency": "1 ns"}]
    torus = {"build": "torus:2x2", "links": links}
    postal = {"kind": "postal", "alpha": "1 us"}
    platform = {"name": "p", "models": {"m": postal}, "topology": torus}
    (experiment,) = read({"grid": {"seed": [1]}}, platform=platform).experiments()
    keys = experiment.inputs["platform"]["topology"].keys() | {"build", "file", "links"}
    assert keys == TopologyTable.model_fields.keys()
    routings = {"platform.topology.routing": ["shortest_path", "dimension_order"]}
    builds = {"platform.topology.build": ["torus:2x2", "torus:4"]}
    packets = {"platform.topology.packets.size": ["256 B", "4 KiB"]}
    plan = plan_sweep(read({"grid": routings | builds | packets}, platform=platform))
    assert len({item.key for item in plan.measurements}) == 2**3


@given(st.lists(st.text("abz09_-", min_size=1) | st.integers(0, 99), min_size=1, max_size=6))
def test_key_paths_round_trip(path: list[str | int]) -> None:
    path_keys = ("first", *path)
    assert parse(written(path_keys)) == path_keys


def test_only_the_swept_value_changes() -> None:
    tables: dict[str, Any] = {"a": {"b": [{"c": 1}, {"c": 2}]}, "d": 3}
    before = copy.deepcopy(tables)
    changed = with_value(tables, ("a", "b", 1, "c"), 9)
    assert changed == {"a": {"b": [{"c": 1}, {"c": 9}]}, "d": 3}
    assert tables == before
    assert changed["a"]["b"][0] is tables["a"]["b"][0]


def test_keys_of_links_name_a_class_of_a_notation() -> None:
    """Also where one table of links describes all classes."""
    shared = "dragonfly:p=2,a=4,h=2,g=3,rate=50GB/s,latency=100ns"
    keys = {"rate": "12.5GB/s", "latency": "2us"}
    changes = {f"platform.topology.links[2].{key}": value for key, value in keys.items()}
    full = ",".join(f"links[2].{key}={value}" for key, value in keys.items())
    expected = find_platform(f"{shared},{full}", folder=Path()).topology
    options = {"platform": ("--platform", shared)}
    assigned = [f"{key}={value}" for key, value in changes.items()]
    tables = {**DEFAULTS, "ranks": [24]}
    assert define(None, tables, options, assigned).platform.topology == expected
    template = Template(base={**tables, "platform": shared}, source="s", folder="", total=1)
    assert template.experiment(1, changes).platform.topology == expected
