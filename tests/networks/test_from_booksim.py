"""Conversion of BookSim 2 configurations: the meaning of each key, and keys that are errors."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from called import call as in_process
from tutti.base.errors import ConfigError
from tutti.formats.booksim.network import load, noc_of
from tutti.formats.booksim.reader import parse
from tutti.formats.converted import ConvertedNoc, write
from tutti.networks import flit as noc
from tutti.networks.flit.files.network_file import load_noc, resolve_noc

if TYPE_CHECKING:
    import subprocess

MESH = "topology = mesh; k = 4; n = 2; routing_function = dor; seed = 3;"
GRID = "k = 4; n = 2; c = 4; x = 4; y = 4; xr = 2; yr = 2;"
ANYNET = "router 0 node 0 node 1 router 1 5\nrouter 1 node 2 router 0 5\n"


def of(text: str, folder: Path = Path()) -> ConvertedNoc:
    return noc_of(parse(text), source="it.cfg", folder=folder)


def run_of(found: ConvertedNoc) -> noc.NocRun:
    return noc.run(found.noc.network, found.noc.traffic, found.noc.plan)


def router(text: str) -> noc.Router:
    return of(MESH + text).noc.network.router


def traffic(text: str) -> tuple[noc.Traffic, ...]:
    found = of(MESH + text).noc.traffic
    assert isinstance(found, tuple)
    return found


@pytest.mark.parametrize(
    ("text", "name", "routing", "cycles"),
    [
        (MESH, "mesh:4x4", "dimension_order", {1}),
        ("topology = mesh; k = 4; n = 3; routing_function = dim_order;", "mesh:4x4x4",
         "dimension_order", {1}),
        ("topology = mesh; k = 4; routing_function = adaptive_xy_yx;", "mesh:4x4",
         "o1_turn:adaptive", {1}),
        ("topology = torus; k = 4; routing_function = dim_order;", "torus:4x4",
         "dimension_order", {2}),
        ("topology = torus; k = 4; routing_function = dim_order_bal; use_noc_latency = 0;",
         "torus:4x4", "dimension_order:balanced", {1}),
        (f"topology = cmesh; {GRID} routing_function = dor;", "cmesh:4x4:2x2,express,distance",
         "dimension_order", {1, 2, 4}),
        (f"topology = cmesh; {GRID} routing_function = xy_yx_no_express; use_noc_latency = 0;",
         "cmesh:4x4:2x2", "o1_turn", {1}),
        (f"topology = flatfly; {GRID} routing_function = ran_min;",
         "flattened_butterfly:4x4:2x2,distance", "dimension_order", {1, 2, 4, 6}),
        ("topology = fly; k = 2; n = 3; routing_function = dest_tag;", "butterfly:2:3",
         "shortest_path", {1}),
        ("topology = mesh; k = 4; routing_function = min_adapt;", "mesh:4x4",
         "minimal_adaptive:first_dimension", {1}),
        ("topology = torus; k = 4; routing_function = min_adapt; num_vcs = 4;", "torus:4x4",
         "minimal_adaptive:one_vc", {2}),
        (f"topology = flatfly; {GRID} routing_function = ugal; use_noc_latency = 0;",
         "flattened_butterfly:4x4:2x2", "ugal", {1}),
        ("topology = fattree; k = 4; n = 2; routing_function = nca;", "fat_tree:k=4,n=2",
         "nca", {1}),
        ("topology = fattree; k = 4; n = 2; routing_function = anca;", "fat_tree:k=4,n=2",
         "nca:adaptive", {1}),
        ("topology = dragonflynew; k = 2; n = 1; routing_function = min; num_vcs = 2;",
         "dragonfly:p=2,a=4,h=2,g=9,absolute", "minimal:one_vc", {1, 10, 100}),
        ("topology = dragonflynew; k = 2; n = 1; routing_function = min; num_vcs = 5;",
         "dragonfly:p=2,a=4,h=2,g=9,absolute", "minimal:one_vc", {1, 10, 100}),
        ("topology = dragonflynew; k = 2; n = 1; routing_function = ugal; num_vcs = 3;",
         "dragonfly:p=2,a=4,h=2,g=9,absolute", "ugal:90", {1, 10, 100}),
    ],
)  # fmt: skip
def test_networks(text: str, name: str, routing: str, cycles: set[int]) -> None:
    network = of(text).noc.network
    assert (network.topology.name, network.routing) == (name, routing)
    assert {link.latency.ps // 1000 for link in network.topology.links} == cycles


def test_zero_load_latency_of_a_butterfly() -> None:
    """Packets traverse three stages of 4 cycles, and 2 more cycles."""
    text = "topology = fly; k = 2; n = 3; routing_function = dest_tag; routing_delay = 0;"
    network = of(text).noc.network
    lines = [f"{100 * at},{at},{at * 3 % 8},1" for at in range(8)]
    alone = noc.Trace(text="\n".join(["cycle,source,destination,flits", *lines]))
    run = noc.run(network, alone, noc.MeasurementPlan(warmup=0, measure=1000, batches=2, sample=0))
    assert run.all.latency_extremes == (14, 14)
    assert run.hops.mean == 3


def test_a_graph_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "net").write_text(ANYNET)
    text = "topology = anynet; network_file = net; routing_function = min;"
    network = of(text, tmp_path).noc.network
    assert network.topology.ranks == 3
    assert sorted(link.latency.ps for link in network.topology.links) == [1000] * 6 + [5000] * 2


ROUTERS: list[tuple[str, dict[str, Any]]] = [
    ("", {"vcs": 16, "buffer": 8, "routing_delay": 1, "credit_delay": 0, "iterations": 1,
          "vc_allocator": "islip", "switch_allocator": "islip", "speculation": None}),
    ("buf_size = 64;", {"buffer": 4}),
    ("num_vcs = 2; vc_buf_size = 5;", {"vcs": 2, "buffer": 5}),
    ("st_prepare_delay = 2; st_final_delay = 3;", {"traversal_delay": 5}),
    ("vc_alloc_delay = 2; sw_alloc_delay = 3;", {"vc_delay": 2, "switch_delay": 3}),
    ("vc_allocator = islip(3); sw_allocator = max_size;",
     {"iterations": 3, "switch_allocator": "maximum"}),
    ("vc_allocator = wavefront; sw_allocator = separable_output_first(matrix);",
     {"vc_allocator": "wavefront", "switch_allocator": "separable_output_first",
      "arbiter": "matrix"}),
    ("sw_allocator = separable_input_first(tree(1,round_robin));",
     {"arbiter": "tree_round_robin:1"}),
    ("speculative = 1;",
     {"speculation": noc.Speculation(check_vc=True, check_credit=True)}),
    ("speculative = 1; spec_check_elig = 0; spec_check_cred = 0; spec_sw_allocator = wavefront;",
     {"speculation": noc.Speculation(check_vc=False, allocator="wavefront")}),
    ("speculative = 1; spec_mask_by_reqs = 1;",
     {"speculation": noc.Speculation(check_credit=True, yield_to_requests=True)}),
    ("input_speedup = 2; output_speedup = 3; internal_speedup = 2.0; output_buffer_size = 4;",
     {"input_speedup": 2, "output_speedup": 3, "internal_speedup": 2, "output_buffer": 4}),
    ("internal_speedup = 1.7;", {"internal_speedup": 1.7}),
    ("wait_for_tail_credit = 1; vc_busy_when_full = 1; vc_prioritize_empty = 1;",
     {"wait_for_tail_credit": True, "busy_when_full": True, "prioritize_empty": True}),
    ("hold_switch_for_packet = 1; priority = class;",
     {"hold_switch": True, "priority": "ordered"}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), ROUTERS)
def test_routers(text: str, expected: dict[str, Any]) -> None:
    found = router(text)
    assert {name: getattr(found, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {"pattern": "uniform", "process": "bernoulli", "rate": 0.1, "packet": 1}),
        ("packet_size = 4;", {"rate": 0.4, "packet": 4}),
        ("packet_size = 4; injection_rate_uses_flits = 1;", {"rate": 0.1, "packet": 4}),
        ("packet_size = {{1,5}}; packet_size_rate = {{3,1}};",
         {"rate": 0.2, "packet": "1,5/3,1"}),
        ("traffic = neighbor;", {"pattern": "neighbour"}),
        ("traffic = hotspot({{0,1},{3,1}});", {"pattern": "hotspot:0,1/3,1"}),
        ("traffic = hotspot({2});", {"pattern": "hotspot:2"}),
        ("traffic = background({{0,5}});", {"pattern": "background:0,5"}),
        ("traffic = hotspot({0,15},{1,3});", {"pattern": "hotspot:0"}),
        ("traffic = hotspot({0,15});", {"pattern": "hotspot:0"}),
        ("traffic = hotspot(0,15);", {"pattern": "hotspot:0"}),
        ("traffic = hotspot({{0,15}});", {"pattern": "hotspot:0,15"}),
        ("traffic = hotspot({{0,15},{2}});", {"pattern": "hotspot:0,15/2,2"}),
        ("traffic = background({0,5});", {"pattern": "background:0"}),
        ("traffic = randperm(7);", {"pattern": "random_permutation:7"}),
        ("injection_process = on_off; burst_alpha = 0.25;",
         {"process": "on_off:alpha=0.25,beta=0.5"}),
        ("injection_process = on_off(0.25,-1.0,0.5);", {"process": "on_off:alpha=0.25,r1=0.5"}),
    ],
)  # fmt: skip
def test_traffic(text: str, expected: dict[str, Any]) -> None:
    (found,) = traffic(text)
    given = asdict(found)
    assert given.pop("rate") == pytest.approx(expected.pop("rate", 0.1))
    assert {name: given[name] for name in expected} == expected


def test_classes_have_separate_values() -> None:
    first, second = traffic("classes = 2; packet_size = {1,4}; class_priority = {0,9};")
    assert (first.packet, first.priority, second.packet, second.priority) == (1, 0, 4, 9)
    assert second.rate == pytest.approx(0.4)


def test_patterns_use_the_grid_of_nodes() -> None:
    text = f"topology = flatfly; {GRID} routing_function = ran_min; traffic = tornado;"
    assert of(text).noc.network.grid == (8, 8)


def test_the_window_is_three_periods_after_warm_up() -> None:
    plan = of(MESH + "warmup_periods = 2; sample_period = 700;").noc.plan
    assert (plan.warmup, plan.measure) == (1400, 2100)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("topology = qtree;", "topology"),
        ("routing_function = chaos;", "routing_function"),
        ("topology = torus; k = 2; routing_function = dim_order;", "k"),
        ("topology = cmesh; routing_function = dor;", "x"),
        ("topology = anynet; routing_function = min;", "network_file"),
        ("vc_allocator = loa;", "vc_allocator"),
        ("vc_allocator = islip(2); sw_allocator = islip(3);", "sw_allocator"),
        ("sw_allocator = separable_input_first(lottery);", "sw_allocator"),
        ("internal_speedup = 0.5;", "internal_speedup"),
        ("internal_speedup = 65;", "internal_speedup"),
        ("topology = dragonflynew; k = 2; n = 1; routing_function = min; num_vcs = 1;", "num_vcs"),
        ("topology = dragonflynew; k = 2; n = 1; routing_function = ugal; num_vcs = 4;", "num_vcs"),
        ("topology = torus; routing_function = min_adapt; num_vcs = 3;", "num_vcs"),
        ("routing_function = xy_yx; num_vcs = 1;", "num_vcs"),
        ("buf_size = 30;", "buf_size"),
        ("num_vcs = 0;", "num_vcs"),
        ("buffer_policy = shared;", "buffer_policy"),
        ("router = chaos;", "router"),
        ("priority = hop_count;", "priority"),
        ("subnets = 2;", "subnets"),
        ("use_read_write = 1; num_vcs = 8;", "num_vcs"),
        ("use_read_write = 1; read_reply_begin_vc = 14;", "read_reply_begin_vc"),
        ("use_read_write = 1; read_request_size = 0;", "read_request_size"),
        ("use_read_write = 1; write_fraction = 1.5;", "write_fraction"),
        ("sim_type = batch; batch_count = 3;", "batch_count"),
        ("sim_type = batch; use_read_write = 1;", "sim_type"),
        ("sim_type = batch; classes = 2;", "classes"),
        ("traffic = tornado(4,2);", "traffic"),
        ("seed = time;", "seed"),
        ("traffic = all;", "traffic"),
        ("traffic = hotspot;", "traffic"),
        ("traffic = tornado(3);", "topology.grid"),
        ("injection_process = poisson;", "injection_process"),
        ("injection_process = on_off; burst_r1 = 0.5;", "injection_process"),
        ("packet_size = 0;", "packet_size"),
        ("sample_period = 0;", "sample_period"),
        ("num_vc = 4;", "num_vc"),
    ],
)
def test_keys_without_a_counterpart_are_errors(text: str, key: str) -> None:
    with pytest.raises(ConfigError, match=r"it\.cfg") as caught:
        of(MESH + text)
    assert str(caught.value.fields["key"]).startswith(key)


@pytest.mark.parametrize(
    ("text", "remarked"),
    [
        ("routing_function = xy_yx; num_vcs = 4;", False),
        ("routing_function = xy_yx; num_vcs = 5;", True),
        ("routing_function = dor; num_vcs = 5;", False),
        ("topology = torus; routing_function = valiant; num_vcs = 6;", True),
        ("topology = torus; routing_function = dim_order; num_vcs = 6;", False),
    ],
)
def test_parts_of_vcs_that_overlap_in_booksim_are_remarked(text: str, *, remarked: bool) -> None:
    """BookSim rounds half of the VCs down, and gives each half the rest."""
    assert any("overlap in BookSim" in remark for remark in of(MESH + text).remarks) == remarked


def test_keys_without_effect_are_listed() -> None:
    assert of(MESH + "print_csv_results = 1; max_samples = 3;").not_honoured == (
        "max_samples",
        "print_csv_results",
    )
    stock = "use_read_write = 0; read_reply_size = 1; write_fraction = 1; batch_size = 9; c = 4;"
    unused = ("batch_size", "burst_r1", "c", "read_reply_size", "write_fraction", "xr")
    assert of(f"{MESH}{stock} xr = 2; burst_r1 = 0.1;").not_honoured == unused
    used = "use_read_write = 1; read_reply_size = 2; packet_size = 3; traffic = tornado; xr = 1;"
    assert of(MESH + used).not_honoured == ("packet_size",)


@pytest.mark.parametrize(
    "text",
    [
        MESH + "num_vcs = 4; speculative = 1; packet_size = {{1,5}}; traffic = tornado;",
        MESH + "num_vcs = 4; classes = 2; packet_size = {1,4};",
        "topology = anynet; network_file = net; routing_function = min; num_vcs = 2;",
    ],
)
def test_the_file_written_gives_the_same_run(text: str, tmp_path: Path) -> None:
    (tmp_path / "net").write_text(ANYNET)
    text += "sample_period = 300; injection_rate = 0.02;"
    (tmp_path / "it.cfg").write_text(text)
    found = load(tmp_path / "it.cfg", ["seed=5"])
    again = load_noc(write(tmp_path / "it.toml", found)[0])
    assert again.network.seed == 5
    a, b = (noc.run(one.network, one.traffic, one.plan) for one in (found.noc, again))
    assert (a.latency, a.accepted, a.cycles) == (b.latency, b.accepted, b.cycles)


def test_command_writes_a_file(tmp_path: Path) -> None:
    (tmp_path / "it.cfg").write_text(MESH + "sample_period = 500; print_activity = 0;")

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        return in_process("noc", "from-booksim", "it.cfg", *arguments, cwd=tmp_path)

    one = call("num_vcs=2", "injection_rate=0.05")
    assert one.returncode == 0, one.stderr
    assert "2 VCs of 8 flits" in one.stdout
    assert "print_activity" in one.stderr
    many = call("--loads", "0.05,0.1")
    assert many.returncode == 0, many.stderr
    assert "0.05" in many.stdout
    for option in (["--loads", "0.1"], ["--out", "elsewhere"]):
        assert "excludes --write" in call("--write", "it.toml", *option).stderr
    assert call("--write", "it.toml").returncode == 0
    assert load_noc(tmp_path / "it.toml").network.router.vcs == 16
    wrong = call("num_vcs")
    assert wrong.returncode == 2
    assert "num_vcs" in wrong.stderr


BATCHES = [
    ("traffic = transpose; batch_size = 20;", 92),
    ("traffic = bitcomp; batch_size = 20;", 80),
    ("traffic = tornado; batch_size = 20;", 64),
    ("traffic = transpose; batch_size = 200; packet_size = 3; max_outstanding_requests = 4;", 2253),
    ("traffic = bitcomp; batch_size = 200; packet_size = 3; max_outstanding_requests = 4;", 2032),
]
"""Batch durations of BookSim 28f4329: its cycles count from 0, and include the last one."""
READ_WRITE = (
    "use_read_write = 1; injection_rate = 0.02; write_fraction = 0.25; read_reply_size = 5; "
    "write_request_size = 5; num_vcs = 16;"
)


def test_reads_and_writes_are_requests_with_replies() -> None:
    read, write = traffic(READ_WRITE)
    assert (read.packet, read.vcs, read.reply) == (1, (0, 5), noc.Reply(packet=5, vcs=(8, 13)))
    assert (write.packet, write.vcs, write.reply) == (5, (2, 7), noc.Reply(packet=1, vcs=(10, 15)))
    assert read.queue == write.queue == "class 0"
    assert read.rate == pytest.approx(0.02 * 0.75)
    assert write.rate == pytest.approx(0.02 * 0.25 * 5)
    (remark,) = of(MESH + READ_WRITE + "injection_process = on_off(0.1,0.2,-1);").remarks
    assert "bursts of reads and of writes are independent" in remark
    # 12 flits for a read and a write.
    read, write = traffic(READ_WRITE + "injection_rate_uses_flits = 1;")
    assert read.rate == pytest.approx(0.02 / 6 * 0.75)


def test_a_batch_limits_the_packets_of_a_node() -> None:
    (found,) = traffic("sim_type = batch; batch_size = 50; max_outstanding_requests = 4;")
    assert (found.requests, found.outstanding, found.rate) == (50, 4, 1)
    (found,) = traffic("sim_type = batch; batch_size = 50; packet_size = 3;")
    assert (found.requests, found.outstanding, found.rate) == (50, None, 3)


def test_batches_take_as_long_as_in_booksim() -> None:
    for text, cycles in BATCHES:
        found = of(f"{MESH}seed = 1; num_vcs = 4; sim_type = batch; {text}")
        assert run_of(found).makespan == cycles - 1, text
    keys = "sim_type = batch; injection_process = on_off; warmup_periods = 9; batch_size = 50;"
    found = of(MESH + keys)
    assert found.not_honoured == ("injection_process", "warmup_periods")
    assert run_of(found).all.packets == 16 * 50


def test_a_batch_of_reads_and_writes_has_a_hint_that_works() -> None:
    text = f"{MESH}{READ_WRITE}"
    with pytest.raises(ConfigError, match="counts the requests and replies of a node") as caught:
        of(text + "sim_type = batch;")
    hint = str(caught.value.hint)
    assert "sim_type=latency --write FILE" in hint
    tables = dict(of(text).tables)
    for each in tables["traffic"]:
        del each["rate"]
        each |= {"requests": 20, "outstanding": 4}
    del tables["measure"]
    found = resolve_noc(tables, source="it.toml", folder=Path())
    run = noc.run(found.network, found.traffic, found.plan)
    assert run.is_stable
    assert run.all.packets == 16 * 2 * 20 * 2


def test_vcs_that_booksim_assumes_are_not_those_of_the_file() -> None:
    with pytest.raises(ConfigError) as caught:
        of(f"{MESH}use_read_write = 1; num_vcs = 4; read_request_begin_vc = 0;"
           "read_request_end_vc = 1;")  # fmt: skip
    assert "write requests 2 to 7, read replies 8 to 13, write replies" in str(caught.value)
    hint = str(caught.value.hint).removeprefix("add ")
    assert hint.startswith("write_request_begin_vc=0 write_request_end_vc=1 read_reply_begin_vc=2")
    assert len(traffic(f"use_read_write = 1; num_vcs = 4; {hint.replace(' ', '; ')};"
                       "read_request_begin_vc = 0; read_request_end_vc = 1;")) == 2  # fmt: skip
    with pytest.raises(ConfigError, match="`read_reply_end_vc` is 13 by default"):
        of(f"{MESH}use_read_write = 1; read_reply_begin_vc = 14;")
    with pytest.raises(ConfigError, match=r"routing_function: .* \(the default: the key is not"):
        of("topology = mesh; k = 4;")


def test_lists_in_one_list_of_parameters_are_remarked() -> None:
    (remark,) = of(MESH + "traffic = hotspot({0,15},{1,3});").remarks
    assert "has one node, 0, as in BookSim 2" in remark
    assert "hotspot({{NODE,...},{WEIGHT,...}})" in remark
    assert of(MESH + "traffic = hotspot({{0,15},{1,3}});").remarks == ()


def test_all_keys_without_a_counterpart_are_listed_with_lines(tmp_path: Path) -> None:
    text = MESH + "\nfoo = 3;\nbuffer_policy = shared;\nbar = 4;\n"
    file = tmp_path / "u.cfg"
    file.write_text(text)
    with pytest.raises(ConfigError) as refused:
        load(file)
    first = MESH.count("\n") + 2
    keys = ("foo", "buffer_policy", "bar")
    lines = ", ".join(f"`{key}` (line {first + number})" for number, key in enumerate(keys))
    assert f"3 keys cannot be converted: {lines}\n" in str(refused.value)
    file.write_text(text.replace("buffer_policy = shared;", ""))
    found = load(str(file), is_lenient=True)
    assert [text for text in found.remarks if "skipped" in text] == [
        f"`foo` (line {first}) is not a key of BookSim: skipped",
        f"`bar` (line {first + 2}) is not a key of BookSim: skipped",
    ]
    file.write_text(text)
    with pytest.raises(ConfigError, match="buffer_policy"):
        load(file, is_lenient=True)
    # Values of every part of the conversion, each with what is supported.
    values = {
        "topology": "mesh", "routing_function": "foo", "vc_allocator": "loa", "num_vcs": "2",
        "sw_allocator": "x", "packet_size": "0", "traffic": "spiral", "injection_process": "x",
        "priority": "weird", "internal_speedup": "0.5", "seed": "time", "sample_period": "0",
    }  # fmt: skip
    file.write_text("".join(f"{key} = {value};\n" for key, value in values.items()))
    with pytest.raises(ConfigError) as refused:
        load(file)
    file.write_text("num_vc = 4;\nzzzzzz = 1;\ntrafic = uniform;\nseed = time;\n")
    with pytest.raises(ConfigError) as several:
        load(file)
    assert several.value.hint == (
        "num_vc: did you mean `num_vcs`?; trafic: did you mean `traffic`?; seed: add seed=1; "
        "--lenient skips keys that BookSim does not have"
    )
    given = [key for key in values if key not in {"topology", "num_vcs"}]
    lines = ", ".join(f"`{key}` (line {list(values).index(key) + 1})" for key in given)
    assert f"10 keys cannot be converted: {lines}\n" in str(refused.value)
    assert "priority: none, class, age" in str(refused.value)
    file.write_text("k = four;\nn = 2;\nnum_vcs = x;\n")
    with pytest.raises(ConfigError, match=r"`k` \(line 1\), `num_vcs` \(line 3\)"):
        load(file)
    file.write_text("topology = mesh;\nrouting_function = foo;\n")
    with pytest.raises(ConfigError, match=r"u\.cfg:2: routing_function: is not supported"):
        load(file)
