"""Text workloads of ASTRA-sim 1 and SimAI: policies, their dimensions, and errors."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import pytest

from tutti.base.errors import ConfigError
from tutti.formats.astrasim.networks import AstraSimNetwork, Dimension
from tutti.formats.astrasim.reader import Workload, load_workload, simulate
from tutti.formats.astrasim.systems import System
from tutti.formats.astrasim.text import TextWorkload, load_text

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """HYBRID_DATA_MODEL
2
fc1  -1  1200 ALLGATHER 1048576  1100 NONE 0        900 ALLREDUCE 4194304  10
fc2  -1   800 NONE      0         750 ALLTOALL 65536 700 ALLREDUCE 2097152  10
"""
LAYER = "l -1 1000 ALLGATHER 1048576 1000 ALLREDUCE 1048576 1000 ALLREDUCE 8388608 10"
PAIR = "l -1 1 ALLREDUCE 64 1 ALLTOALL 64 1 REDUCESCATTER 64 1"
SIMAI = "model_parallel_NPU_group: 4 ep: 1 pp: 1 vpp: 8 ga: 1 all_gpus: 8"


def loaded(folder: Path, policy: str, *layers: str, sizes: tuple[int, ...] = (8,)) -> TextWorkload:
    path = folder / "w.txt"
    path.write_text("\n".join([policy, str(len(layers)), *layers]), encoding="utf-8")
    return load_text(path, sizes)


def collectives(workload: TextWorkload) -> list[tuple[str, int, int]]:
    """Returns the collectives with their dimensions and sizes, without order."""
    transfers = workload.program.transfers
    return sorted((each.collective, each.mask, each.size) for each in transfers)


def run(
    folder: Path, policy: str, *layers: str, network: AstraSimNetwork, splits: int = 4
) -> tuple[int, Workload]:
    """Returns the time in ps, and the workload."""
    path = folder / "w.txt"
    path.write_text("\n".join([policy, str(len(layers)), *layers]), encoding="utf-8")
    system = System(splits=splits, memory=1600)
    workload = load_workload(path, network, system)
    return simulate(network, system, workload.programs).total.ps, workload


def ring(npus: int, bandwidth: float = 50, latency: float = 500) -> Dimension:
    return Dimension(block="Ring", npus=npus, bandwidth=bandwidth, latency=latency)


def test_a_text_workload_is_a_training_loop(tmp_path: Path) -> None:
    """An all-gather has the size of a part; one dimension has no collectives of weights."""
    path = tmp_path / "w.txt"
    path.write_text(TEXT, encoding="utf-8")
    workload = load_text(path, (8, 2))
    rows = [(task.kind, task.layer, task.amount) for task in workload.program.tasks]
    assert rows == [
        ("compute", "fc1", 1_200_000),
        ("all_gather", "fc1", 8 * 1_048_576),
        ("compute", "fc2", 800_000),
        ("compute", "fc2", 700_000),
        ("all_reduce", "fc2", 2_097_152),
        ("compute", "fc2", 750_000),
        ("all_to_all", "fc2", 65_536),
        ("compute", "fc1", 900_000),
        ("all_reduce", "fc1", 4_194_304),
        ("compute", "fc1", 1_100_000),
    ]
    assert workload.remarks == (
        "sizes of ALLGATHER are those of one NPU's part, as in ASTRA-sim: 1",
    )
    ignored = "ignored collectives of weights, for which HYBRID_DATA_MODEL has no dimension: 2"
    assert ignored in load_text(path, (8,)).remarks


@pytest.mark.parametrize(
    ("policy", "activations", "weights"),
    [
        ("MICRO", 3, 3),
        ("DATA", 0, 3),
        ("MODEL", 3, 0),
        ("HYBRID_DATA_MODEL", 1, 2),
        ("HYBRID_MODEL_DATA", 2, 1),
        ("HYBRID_TRANSFORMER model_parallel_NPU_group: 1", 0, 3),
        ("HYBRID_TRANSFORMER model_parallel_NPU_group: 4", 1, 2),
        ("HYBRID_TRANSFORMER model_parallel_NPU_group: 8", 3, 0),
        (f"HYBRID_TRANSFORMER_FWD_IN_BCKWD {SIMAI} checkpoints: 0 checkpoint_initiates: 0", 1, 2),
    ],
)
def test_a_policy_selects_the_dimensions(
    tmp_path: Path, policy: str, activations: int, weights: int
) -> None:
    """ASTRA-sim 1, Workload::decode_involved_dimensions; the first layer's input gradient aside."""
    workload = loaded(tmp_path, policy, PAIR, PAIR, sizes=(4, 2))
    expected = {("all_reduce", activations, 64), ("all_to_all", activations, 64)}
    expected |= {("reduce_scatter", weights, 64)}
    assert set(collectives(workload)) == {each for each in expected if each[1]}
    omitted = "".join(workload.remarks)
    assert ("collectives of activations, for which" in omitted) == (not activations)
    assert ("collectives of weights, for which" in omitted) == (not weights)


def test_policies_take_different_times_on_different_dimensions(tmp_path: Path) -> None:
    """4 x 2 NPUs, the second dimension five times slower: a reduction in it decides."""
    network = AstraSimNetwork(dimensions=(ring(4), ring(2, 10, 2000)))
    names = ("DATA", "HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA")
    times = {name: run(tmp_path, name, LAYER, network=network)[0] for name in names}
    assert [round(time / 1e6, 1) for time in times.values()] == [280.0, 871.9, 366.1]
    slow = AstraSimNetwork(dimensions=(ring(2, 10, 2000),))
    weights = run(tmp_path, "DATA", LAYER, network=slow)[0]
    assert times["HYBRID_DATA_MODEL"] > weights > times["DATA"]


def test_a_policy_per_layer(tmp_path: Path) -> None:
    policies = ("HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA", "DATA", "MODEL")
    layers = [f"{PAIR} {policy}" for policy in policies]
    found = collectives(loaded(tmp_path, "HYBRID_CUSTOMIZED", *layers, sizes=(4, 2)))
    counts = {each: found.count(each) for each in found}
    assert counts == {
        ("all_reduce", 1, 64): 1,
        ("all_reduce", 2, 64): 1,
        ("all_reduce", 3, 64): 1,
        ("all_to_all", 2, 64): 1,
        ("all_to_all", 3, 64): 1,
        ("reduce_scatter", 1, 64): 1,
        ("reduce_scatter", 2, 64): 1,
        ("reduce_scatter", 3, 64): 1,
    }


def test_dependencies_are_ignored_with_a_remark(tmp_path: Path) -> None:
    """A line of astra-network-analytical issue 3: the column is 1 instead of -1."""
    network = AstraSimNetwork(
        dimensions=(Dimension(block="Switch", npus=8, bandwidth=50, latency=500),)
    )
    layer = "allreduce 1 1 ALLREDUCE 1048576 1 NONE 0 1 NONE 0 1"
    time, workload = run(tmp_path, "MICRO", layer, network=network, splits=1)
    assert round(time / 1000, 1) == 84_222.7
    assert "ignored dependencies on layers, as in ASTRA-sim: 1" in workload.remarks
    same, workload = run(
        tmp_path, "MICRO", layer.replace(" 1 ", " -1 ", 1), network=network, splits=1
    )
    assert same == time
    assert "dependencies" not in "".join(workload.remarks)


def test_a_text_workload_has_no_groups(tmp_path: Path) -> None:
    (tmp_path / "w.txt").write_text(TEXT, encoding="utf-8")
    network = AstraSimNetwork(dimensions=(ring(8),))
    with pytest.raises(ConfigError, match="--groups: applies to Chakra traces only"):
        load_workload(tmp_path / "w.txt", network, System(), tmp_path / "g.json")


def test_collectives_of_simai(tmp_path: Path) -> None:
    """SimAI performs no BROADCAST; with `ep: 1`, DP_EP is DP, and EP one NPU. Sizes are totals."""
    policy = f"HYBRID_TRANSFORMER_FWD_IN_BCKWD {SIMAI}"
    layer = "l -1 1 BROADCAST 64 1 ALLTOALL_EP 64 1 ALLGATHER_DP_EP 64 1"
    workload = loaded(tmp_path, policy, layer, sizes=(4, 2))
    assert collectives(workload) == [("all_gather", 2, 64)]
    assert workload.remarks == (
        "ignored arguments of HYBRID_TRANSFORMER_FWD_IN_BCKWD, which do not affect time: vpp, ga",
        "ignored BROADCAST, as in ASTRA-sim and SimAI: 1",
        "ignored collectives among one NPU's experts: 1",
        "sizes of ALLGATHER are totals, as in SimAI: 1",
    )


def test_a_dlrm_exchanges_its_embeddings(tmp_path: Path) -> None:
    """The first layer uses all dimensions, the others perform collectives of weights only."""
    workload = loaded(
        tmp_path,
        "HYBRID_DLRM DLRM_LAST_BOTTOM_LAYER: 1",
        "Embedding -1 300 ALLTOALL 98304 0 NONE 0 0 NONE 0 5",
        "bottom -1 10 ALLREDUCE 8 10 NONE 0 10 ALLREDUCE 64 1",
        "top -1 10 NONE 0 10 NONE 0 10 ALLREDUCE 64 1",
    )
    tasks = workload.program.tasks
    assert [task.amount for task in tasks if task.kind == "all_to_all"] == [98304, 98304]
    text = "embeddings whose backward exchange is taken to be the forward one: 1"
    assert text in workload.remarks
    assert [task.amount for task in tasks if task.kind == "all_reduce"] == [64, 64]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("HYBRID_DATA_MODEL", "PIPELINE", ("line 1", "unknown policy", "PIPELINE")),
        ("HYBRID_DATA_MODEL", "DISTRIBUTED_INFERENCE", ("line 1", "not modelled", "inference")),
        ("\n2\n", "\n3\n", ("line 2", "states 3 layers, but 2 follow")),
        ("700 ALLREDUCE", "700 ALLREDUC", ("line 4", "unknown collective", "ALLREDUC")),
        ("700 ALLREDUCE", "700 ALLREDUCEALLTOALL", ("line 4", "is not modelled")),
        ("700 ALLREDUCE", "700 ALLREDUCE_EP", ("line 4", "experts are not modelled")),
        ("2097152  10", "2097152", ("line 4", "11 columns")),
        ("ALLTOALL 65536", "ALLTOALL 0", ("line 4", "a size of 0 B")),
        ("1200", "1.2", ("line 3", "1.2")),
        ("1200", "9" * 5000, ("line 3", "99...")),
        ("fc1  -1", "fc1  x", ("line 3", "the dependency is not an integer")),
        ("HYBRID_DATA_MODEL", "HYBRID_DATA_MODEL 4", ("line 1", "arguments of")),
        ("HYBRID_DATA_MODEL", "HYBRID_DLRM", ("line 1", "last bottom layer")),
        ("HYBRID_DATA_MODEL", "HYBRID_CUSTOMIZED", ("line 3", "12 columns", "13 columns")),
        ("ALLGATHER 1048576", "ALLGATHER 9007199254740991", ("line 3", "too large")),
    ],
)
def test_invalid_text_workloads_are_refused(
    tmp_path: Path, old: str, new: str, words: tuple[str, ...]
) -> None:
    path = tmp_path / "w.txt"
    path.write_text(TEXT.replace(old, new), encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        load_text(path, (8,))
    for word in ("w.txt", *words):
        assert word in str(refused.value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("", "HYBRID_TRANSFORMER: has no `model_parallel_NPU_group: N`"),
        ("model_parallel_NPU_group: 2", "do not span complete first dimensions of 4 x 2"),
        ("model_parallel_NPU_group: 0", "do not span complete first dimensions of 4 x 2"),
        ("model_parallel_NPU_group: 16", "the network has 8 NPUs"),
        ("model_parallel_NPU_group: x", "`model_parallel_NPU_group` has no number"),
        ("model_parallel_NPU_group:", "`model_parallel_NPU_group` has no number"),
        ("model_parallel_NPU_group: 4 tp: 2", "unknown argument"),
        ("model_parallel_NPU_group: 4 ep: 1 ep: 2", "argument appears twice"),
        ("model_parallel_NPU_group: 4 ep: 2", "experts on several NPUs are not modelled"),
        ("model_parallel_NPU_group: 4 pp: 2", "a pipeline of several stages is not modelled"),
        ("model_parallel_NPU_group: 4 all_gpus: 16", "`all_gpus: 16`: the network has 8 NPUs"),
        (
            "model_parallel_NPU_group: 4 checkpoints: 1 0 checkpoint_initiates: 1 1",
            "HYBRID_TRANSFORMER repeats no forward passes",
        ),
    ],
)
def test_arguments_of_transformers_are_refused(tmp_path: Path, arguments: str, words: str) -> None:
    with pytest.raises(ConfigError, match="line 1") as refused:
        loaded(tmp_path, f"HYBRID_TRANSFORMER {arguments}", PAIR, sizes=(4, 2))
    assert words in str(refused.value)


REPEATING = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8"


def test_forward_passes_are_repeated_from_checkpoints(tmp_path: Path) -> None:
    """Layers 1 and 2 run again before the backward pass of layer 3."""
    layers = [f"l{n} -1 {n + 1} ALLREDUCE {n + 64} 10 NONE 0 100 NONE 0 0" for n in range(4)]
    policy = f"{REPEATING} checkpoints: 1 1 checkpoint_initiates: 1 3"
    tasks = loaded(tmp_path, policy, *layers).program.tasks
    at = next(place for place, task in enumerate(tasks) if task.during != "forward")
    assert [(task.kind, task.layer, task.amount) for task in tasks[at : at + 4]] == [
        ("all_reduce", "l3", 65),
        ("all_reduce", "l3", 66),
        ("compute", "l3", 105_000),
        ("compute", "l3", 10_000),
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("checkpoints: 1 3 checkpoint_initiates: 1 3", "layer 3: does not start at a checkpoint"),
        ("checkpoints: 0 checkpoint_initiates: 1 3", "layer 3: does not start at a checkpoint"),
        ("checkpoints: 1 0 checkpoint_initiates: 2 3 2", "layer 3: does not start at a checkpo"),
        ("checkpoints: 1 0 checkpoint_initiates: 1 9", "no layer 9"),
        ("checkpoints: 1 0 checkpoint_initiates: 2 3", "`checkpoint_initiates` has no number"),
    ],
)
def test_repetitions_without_a_checkpoint_are_refused(
    tmp_path: Path, arguments: str, words: str
) -> None:
    with pytest.raises(ConfigError, match="line 1") as refused:
        loaded(tmp_path, f"{REPEATING} {arguments}", PAIR, PAIR, PAIR, PAIR)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("policy", "words"),
    [("MICRO", "is not modelled as the policy of a layer"), ("X", "unknown policy")],
)
def test_policies_of_layers_are_refused(tmp_path: Path, policy: str, words: str) -> None:
    with pytest.raises(ConfigError, match="line 3") as refused:
        loaded(tmp_path, "HYBRID_CUSTOMIZED", f"{PAIR} {policy}", sizes=(4, 2))
    assert words in str(refused.value)


def test_blank_lines_take_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "w.txt"
    path.write_text("DATA\n2\n" + "\n" * 200_000, encoding="utf-8")
    tracemalloc.start()
    try:
        with pytest.raises(ConfigError, match="states 2 layers, but 0 follow"):
            load_text(path, (8,))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 32 * path.stat().st_size
