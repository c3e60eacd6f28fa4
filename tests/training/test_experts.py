"""Dispatch and combine: conservation of copies, bounds, routing, files and the command."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest
from typer.testing import CliRunner

import tutti
from tutti.base.errors import ConfigError
from tutti.cli import app
from tutti.schedules.errors import LayoutError
from tutti.schedules.popularity import popularity
from tutti.training.experts import Links, time_experts
from tutti.workloads.errors import WorkloadError
from tutti.workloads.experts import (
    KERNELS,
    ExpertLayer,
    Placement,
    balanced,
    copies,
    counted_choices,
    expected_largest,
    imbalance,
    read_counts,
    sampled_choices,
)

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from tutti.workloads.experts import Choices, Kernel

    Shares = NDArray[np.float64]

LAYER = ExpertLayer(hidden=256, experts=32, top_k=4, tokens=64)
PLACED = Placement.of(32, ranks=16, per_node=4)


def choices(routing: str = "uniform", *, seed: int = 0, layer: ExpertLayer = LAYER) -> Choices:
    return sampled_choices(layer, PLACED, popularity(routing, 32, seed=seed), seed=seed)


def cluster() -> tutti.Platform:
    links = [
        {"rate": "400 GB/s", "latency": "50 ns"},
        {"rate": "50 GB/s", "latency": "1 us"},
        {"rate": "50 GB/s", "latency": "250 ns"},
    ]
    notation = "rail_optimized:npus=4,hosts=4,pods=1,spines=4,uplinks=1"
    topology = tutti.topologies.Topology.build(notation, links=links)
    model = tutti.Postal(alpha="0.5 us", beta="400 GB/s")
    return tutti.Platform(name="cluster", model=model, routes=topology.routes("ecmp", seed=0))


def by_scores(layer: ExpertLayer, placed: Placement, shares: Shares, seed: int) -> Choices:
    """Gumbel top-k of NumPy's own scores; the experts of a token in ascending order."""
    limits = [
        (np.arange(layer.experts) * layer.groups // layer.experts, layer.most_groups),
        (placed.nodes[np.array(placed.owners)], layer.most_nodes),
    ]
    found = []
    for rank in range(placed.ranks):
        random = np.random.default_rng([seed, rank])
        scores = np.log(shares) + random.gumbel(size=(layer.tokens, layer.experts))
        for part_of, most in limits:
            if most is None or most > part_of.max():
                continue
            parts = [scores[:, part_of == part] for part in range(part_of.max() + 1)]
            sums = [np.sort(part)[:, (-layer.top_k) // most :].sum(axis=1) for part in parts]
            order = np.argsort(-np.array(sums), axis=0, kind="stable")
            place = np.argsort(order, axis=0)[part_of].transpose()
            scores = np.where(place < most, scores, -np.inf)
        found.append(np.sort(np.argsort(scores)[:, -layer.top_k :]))
    return np.array(found)


def random_layer(seed: int) -> tuple[ExpertLayer, Placement]:
    """A layer of up to 96 experts with limits on groups, nodes, both or none."""
    draw = np.random.default_rng(seed)
    ranks, each, groups = (int(draw.choice([1, 2, 3, 4, 8])) for _ in range(3))
    experts = ranks * groups * int(draw.integers(1, 4))
    per_node = int(draw.choice([size for size in range(1, ranks + 1) if ranks % size == 0]))
    most_groups, most_nodes = int(draw.integers(1, groups + 1)), int(draw.integers(1, ranks + 1))
    limited = int(draw.integers(4))
    fewest = min(
        most_groups * (experts // groups) if limited & 1 else experts,
        most_nodes * per_node * (experts // ranks) if limited & 2 else experts,
        experts // ranks // groups if limited == 3 else experts,
    )
    layer = ExpertLayer(
        hidden=1,
        experts=experts,
        top_k=int(draw.integers(1, fewest + 1)),
        tokens=7 * each,
        groups=groups,
        most_groups=most_groups if limited & 1 else None,
        most_nodes=most_nodes if limited & 2 else None,
    )
    order: Literal["block", "cyclic"] = "block" if draw.integers(2) else "cyclic"
    return layer, Placement.of(experts, ranks=ranks, per_node=per_node, order=order)


def test_tokens_select_the_experts_with_the_largest_gumbel_scores() -> None:
    large = ExpertLayer(hidden=1, experts=2100, top_k=40, tokens=20, groups=3, most_groups=1)
    deepseek = ExpertLayer(hidden=1, experts=256, top_k=8, tokens=99, groups=8, most_groups=4)
    cases = [random_layer(seed) for seed in range(40)] + [
        (large, Placement.of(2100, ranks=2, per_node=1)),
        (deepseek, Placement.of(256, ranks=4, per_node=2)),
    ]
    for seed, (layer, placed) in enumerate(cases):
        for routing in ("uniform", "zipf:1.2"):
            shares = popularity(routing, layer.experts, seed=seed)
            found = sampled_choices(layer, placed, shares, seed=seed)
            assert found.dtype == np.int64
            expected = by_scores(layer, placed, shares, seed)
            assert (np.sort(found) == expected).all(), (seed, layer, placed, routing)


@pytest.mark.parametrize("routing", ["uniform", "zipf:1.2"])
def test_low_latency_copies_are_tokens_times_top_k(routing: str) -> None:
    found = choices(routing)
    assert all(len(set(token)) == LAYER.top_k for token in found.reshape(-1, LAYER.top_k).tolist())
    matrix = copies(found, PLACED, "low_latency")
    assert (matrix.sum(axis=1) == LAYER.tokens * LAYER.top_k).all()
    even = balanced(matrix, PLACED)
    assert even.sum() == pytest.approx(matrix.sum())
    assert imbalance(even) == pytest.approx(1)  # type: ignore[arg-type] # any numbers


def test_normal_copies_match_a_token_by_token_count() -> None:
    found = choices()
    expected = np.zeros((16, 16), dtype=int)
    for source in range(16):
        for token in found[source]:
            ranks = {int(PLACED.owners[expert]) for expert in token}
            for node in {rank // 4 for rank in ranks}:
                relay = node * 4 + source % 4
                expected[source, relay] += relay != source
                for rank in ranks:
                    if rank // 4 == node and (rank != relay or relay == source):
                        expected[relay, rank] += 1
    assert (copies(found, PLACED, "normal") == expected).all()


def test_group_limited_gating_limits_the_nodes_of_a_token() -> None:
    layer = ExpertLayer(hidden=256, experts=32, top_k=4, tokens=64, most_nodes=2)
    nodes = np.array(PLACED.owners)[choices(layer=layer)] // 4
    assert max(len(set(token)) for token in nodes.reshape(-1, 4).tolist()) == 2


def test_limits_that_leave_too_few_experts_are_rejected() -> None:
    layer = ExpertLayer(
        hidden=1, experts=4, top_k=2, tokens=9, groups=2, most_groups=1, most_nodes=1
    )
    placed = Placement.of(4, ranks=2, per_node=1, order="cyclic")
    shares = popularity("uniform", 4)
    with pytest.raises(WorkloadError, match="groups and nodes of a token have fewer experts than"):
        sampled_choices(layer, placed, shares)
    with pytest.raises(WorkloadError, match="1 of 4 nodes or groups have fewer experts than top_k"):
        sampled_choices(replace(layer, groups=4), placed, shares)


def test_zipf_is_reproducible_and_follows_its_exponent() -> None:
    shares = popularity("zipf:1.0", 32, seed=3)
    assert (shares == popularity("zipf:1.0", 32, seed=3)).all()
    assert (shares != popularity("zipf:1.0", 32, seed=4)).any()
    ordered = np.sort(shares)[::-1]
    assert ordered[0] / ordered[7] == pytest.approx(8)
    assert (choices("zipf:1.0", seed=3) == choices("zipf:1.0", seed=3)).all()
    assert imbalance(copies(choices("zipf:1.0"), PLACED, "low_latency")) > 1.5


def test_expected_largest_load_matches_samples() -> None:
    remote = PLACED.nodes[:, None] != PLACED.nodes
    largest = [
        (copies(choices(seed=seed), PLACED, "low_latency") * remote).sum(axis=0).max()
        for seed in range(30)
    ]
    expected = expected_largest(LAYER, ranks=16, sources=12)
    assert np.mean(largest) == pytest.approx(expected, rel=0.02)
    assert expected_largest(LAYER, ranks=1, sources=1) == LAYER.tokens * LAYER.top_k


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("routing", ["uniform", "zipf:1.5"])
def test_no_simulated_time_is_below_the_bound(kernel: Kernel, routing: str) -> None:
    samples = [choices(routing, seed=seed) for seed in range(3)]
    found = time_experts(LAYER, PLACED, samples, cluster(), kernel)
    for stage in (found.dispatch, found.combine):
        assert stage.time_ps is not None
        assert stage.time_ps.median >= stage.bound_ps.median > 0
        assert stage.bound_ps.low <= stage.bound_ps.median <= stage.bound_ps.high
        assert stage.relative_bound.low >= 1 - 1e-9
    sent = found.combine.network_bytes / found.dispatch.network_bytes
    assert sent == pytest.approx(512 / LAYER.token_bytes("dispatch"))


def test_one_message_takes_alpha_its_bytes_and_the_links() -> None:
    layer = ExpertLayer(hidden=1_000_000, experts=2, top_k=1, tokens=2, combine="bf16")
    placed = Placement.of(2, ranks=2, per_node=2)
    # Rank 0 sends both tokens to rank 1, which keeps its own.
    found = time_experts(layer, placed, [np.ones((2, 2, 1), dtype=np.int64)], cluster(), "normal")
    assert found.combine.time_ps is not None
    assert found.combine.time_ps.median == pytest.approx(500_000 + 2 * 50_000 + 4e6 / 0.4, rel=1e-6)


def test_link_times_add_the_bytes_of_all_routes() -> None:
    matrix = np.zeros((16, 16), dtype=np.int64)
    matrix[0, 4], matrix[0, 8], matrix[4, 0] = 3, 2, 1
    times = Links(cluster(), 16).times_ps(matrix, 1000)
    assert times.max() == pytest.approx(5 * 1000 * 20)  # 50 GB/s is 20 ps per byte


def test_counts_of_a_file_are_kept(tmp_path: Path) -> None:
    layer = ExpertLayer(hidden=8, experts=4, top_k=2, tokens=3)
    placed = Placement.of(4, ranks=2, per_node=1)
    path = tmp_path / "counts.csv"
    path.write_text("3,1,2,0\n0,2,1,3\n")
    counts = read_counts(path, layer, placed)
    found = counted_choices(layer, counts, seed=1)
    for rank, row in enumerate(counts):
        assert (np.bincount(found[rank].ravel(), minlength=4) == row).all()
        assert all(len(set(token)) == 2 for token in found[rank].tolist())
    assert copies(found, placed, "low_latency").tolist() == [[4, 2], [2, 4]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("3,1,2,0\n", "has 1 rows"),
        ("3,1,2\n", "line 1: has 3 columns"),
        ("3,1,2,1\n", "line 1: the counts sum to 7\nexpected: 6"),
        ("4,1,1,0\n", "line 1: is not a token count"),
        ("3,1,2,-1\n", "line 1: is not a token count"),
    ],
)
def test_errors_of_counts_name_the_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "counts.csv"
    path.write_text(text)
    layer = ExpertLayer(hidden=8, experts=4, top_k=2, tokens=3)
    with pytest.raises(ConfigError, match=re.escape(message)):
        read_counts(path, layer, Placement.of(4, ranks=2, per_node=1))


def test_invalid_layers_are_rejected() -> None:
    with pytest.raises(WorkloadError, match="top_k = 5: expected at most the 4 experts"):
        ExpertLayer(hidden=8, experts=4, top_k=5, tokens=3)
    with pytest.raises(WorkloadError, match="tokens = 0"):
        ExpertLayer(hidden=8, experts=4, top_k=2, tokens=0)
    with pytest.raises(WorkloadError, match="10 experts on 4 ranks"):
        Placement.of(10, ranks=4, per_node=2)
    with pytest.raises(WorkloadError, match="6 ranks in nodes of 4"):
        Placement.of(12, ranks=6, per_node=4)
    with pytest.raises(LayoutError, match="unknown routing `zip:1`"):
        popularity("zip:1", 4)
    with pytest.raises(LayoutError, match="invalid exponent"):
        popularity("zipf:much", 4)


# --- the command ----------------------------------------------------------------------------------

COMMAND = ("moe", "--hidden", "1024", "--experts", "32", "--top-k", "4", "--samples", "2")


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, result.output
    return result.output


def test_the_command_prints_a_decision() -> None:
    printed = " ".join(run(*COMMAND, "--ranks", "8,16").split())
    assert "16 ranks: use normal, which saves" in printed
    assert "16 ranks take" in printed
    assert "lower bounds" not in printed


def test_bounds_and_simulations_are_not_compared() -> None:
    mixed = " ".join(run(*COMMAND, "--ranks", "8,16", "--simulate-up-to", "8").split())
    bounds = " ".join(run(*COMMAND, "--ranks", "8,16", "--simulate-up-to", "0").split())
    assert "16 ranks: the times are lower bounds by link capacities, without latency" in mixed
    assert "8, 16 ranks: the times are lower bounds" in bounds
    (factor,) = re.findall(r"16 ranks take .*? by lower bounds", mixed)
    assert factor in bounds


def test_json_has_times_bytes_and_bottlenecks() -> None:
    printed = run(*COMMAND, "--ranks", "16", "--simulate-up-to", "8", "--kernel", "low_latency",
                  "--json")  # fmt: skip
    found = json.loads(printed[printed.index("{") :])["tables"]["results"][0]
    dispatch = found["dispatch"]
    assert (found["kernel"], found["ranks"], dispatch["time_ps"]) == ("low_latency", 16, None)
    copied = dispatch["network_bytes_per_rank"] + dispatch["node_bytes_per_rank"]
    assert copied == pytest.approx(128 * 4 * (1024 + 32 + 16) * 15 / 16, rel=0.02)
    assert " to " in dispatch["bottleneck"]


def test_a_model_states_hidden_experts_and_top_k() -> None:
    printed = run("moe", "gpt:hidden=512,experts=16", "--ranks", "8", "--samples", "1", "--json")
    layer = json.loads(printed[printed.index("{") :])["result"]["layer"]
    assert (layer["hidden"], layer["experts"], layer["top_k"]) == (512, 16, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("moe", "--hidden", "64", "--experts", "8"), "--top-k: is missing"),
        (("moe", "gpt"), "MODEL: has no experts"),
        ((*COMMAND, "--kernel", "fast"), "--kernel: unknown value"),
        ((*COMMAND, "--ranks", "1"), "--ranks: is out of range"),
        ((*COMMAND, "--ranks", "8", "--platform", "cray_xc30"), "has no topology"),
        ((*COMMAND, "--ranks", "8", "--routing", "none.csv"), "there is no such file"),
        (
            (*COMMAND, "--ranks", "8", "--tokens", "16000000", "--samples", "2"),
            "and --samples 1, or less",
        ),
    ],
)
def test_invalid_options_are_reported(arguments: tuple[str, ...], message: str) -> None:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 2
    assert message in result.output + result.stderr
