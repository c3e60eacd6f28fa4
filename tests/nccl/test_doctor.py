"""`tutti nccl doctor`: what it finds in times, logs, topologies and Inspector output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from called import call
from tutti.base.errors import ConfigError
from tutti.formats.nccl import read_topology
from tutti.nccl.bounds import Rails, bound_us, gpu_rate, rails_of
from tutti.nccl.doctor import Diagnosis, diagnose, tuner_rules
from tutti.nccl.evidence import Evidence, Given, Row, Selected, read_evidence
from tutti.nccl.guess import guess_model, preset_model, version_of
from tutti.nccl.tuner_csv import NO_LIMIT, read_tuner_csv

EXAMPLE = Path(__file__).parents[2] / "examples" / "23_nccl_doctor"
DEFAULT, FORCED = EXAMPLE / "default.log", EXAMPLE / "tree_ll128.log"
MIB = 1 << 20
TREE = Selected("tree", "ll128")


def row(size: int, time_us: float, forced: Selected | None = None, *, inside: bool = False) -> Row:
    return Row("x.log", 1, "all_reduce", 2, 16, size, inside, time_us, forced)


def found(rows: list[Row], rails: Rails | None = None) -> Diagnosis:
    return diagnose(Evidence(rows=rows), rails=rails)


def texts(diagnosis: Diagnosis) -> str:
    return "\n".join(f"{one.level}: {one.seen}; {one.do}" for one in diagnosis.findings)


# --- bounds ---------------------------------------------------------------------------------------


def test_rings_use_the_nics_that_carry_most_at_equal_shares() -> None:
    rails = Rails(450e9, (*(50e9,) * 7, 10e9), "x")
    assert rails.ring(2) == 7 * 50e9  # 8 x 10 GB/s would be less
    assert Rails(450e9, (*(50e9,) * 7, 48e9), "x").ring(2) == 8 * 48e9
    assert rails.ring(1) == 450e9
    assert Rails(None, (), "x").ring(2) is None


def test_the_bound_is_that_of_bytes_that_leave_a_node() -> None:
    rails = Rails(450e9, (50e9,) * 8, "x")
    # all_reduce on two nodes: each node sends and receives the vector once, at 400 GB/s.
    assert bound_us(rails, "all_reduce", 400_000_000, 16, 2) == pytest.approx(1000)
    # all_gather on one node: 7/8 of the bytes reach each GPU at 450 GB/s.
    expected = 7 / 8 * 450e6 / 450e9 * 1e6
    assert bound_us(rails, "all_gather", 450_000_000, 8, 1) == pytest.approx(expected)
    assert bound_us(rails, "broadcast", 1, 8, 1) is None


def test_rates_are_from_the_topology_or_the_name_of_the_gpu() -> None:
    rails = rails_of(read_topology(EXAMPLE / "topology.xml"))
    assert rails.gpu == 450e9
    assert sorted(rails.nics)[:2] == pytest.approx([8 * 256 / 65 * 1e9, 50e9])
    known = gpu_rate({"NVIDIA H100 80GB HBM3"})
    assert known is not None
    assert known.ring(1) == 450e9
    assert gpu_rate({"NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-40GB"}) is None


# --- times ----------------------------------------------------------------------------------------


def test_a_plateau_is_a_change_of_choice() -> None:
    """The plateau of a measured A3 Mega cluster: 16 MiB and 32 MiB take almost the same."""
    times = {4: 364.6, 8: 571.9, 16: 977.6, 32: 1059.9, 64: 1261.6}
    report = texts(found([row(size * MIB, us) for size, us in times.items()]))
    assert "warning: plateau: 16 MiB takes 977.6 us and 32 MiB 1,059.9 us" in report
    assert "at 20.7 GB/s" in report  # 8 MiB in 405.7 us
    assert "NCCL probably changes its choice between them" in report


def test_a_plateau_with_one_choice_is_not_of_nccl() -> None:
    rows = [row(size * MIB, us) for size, us in ((8, 571.9), (16, 977.6), (32, 1059.9))]
    same = diagnose(Evidence(rows=rows), model=preset_model("dgx_h100", nccl="2.20.5"))
    assert "NCCL uses nvls_tree/simple at both sizes" in texts(same)
    with pytest.raises(ConfigError, match="unknown system"):
        preset_model("dgx_h99", nccl="2.20.5")


def test_bandwidth_that_falls_and_larger_sizes_that_are_faster() -> None:
    times = {1: 50.0, 2: 300.0, 4: 200.0, 8: 400.0}
    report = texts(found([row(size * MIB, us) for size, us in times.items()]))
    assert "problem: busbw falls from 39.3 GB/s at 1 MiB to 13.1 GB/s at 2 MiB" in report
    assert "warning: 4 MiB is faster than 2 MiB: 200.0 us and 300.0 us" in report


def test_differences_of_in_place_and_out_of_place() -> None:
    small = found([row(1024, 100), row(1024, 80, inside=True)])
    large = found([row(MIB, 100), row(MIB, 130, inside=True)])
    assert "note: out of place and in place differ" in texts(small)
    assert "warning: out of place and in place differ by 23 % at 1 MiB" in texts(large)


def test_steady_times_have_no_findings() -> None:
    rails = Rails(450e9, (50e9,) * 8, "x")
    rows = [row(1 << power, 20 + (1 << power) / 200e3) for power in range(10, 30)]
    assert found(rows, rails).findings == []


def test_few_nics_are_counted_and_trees_exceed_rings() -> None:
    rails = Rails(450e9, (50e9,) * 8, "x")
    slow = found([row(1 << 30, 1.875 * (1 << 30) / 190e9 * 1e6)], rails)
    assert "the bandwidth of 4 of 8 NICs" in texts(slow)
    fast = found([row(1 << 30, 1.875 * (1 << 30) / 500e9 * 1e6)], rails)
    assert "busbw exceeds what rings can achieve, 400 GB/s" in texts(fast)


# --- rules ----------------------------------------------------------------------------------------


def test_rules_have_the_fastest_known_choice_and_cover_all_sizes() -> None:
    ring = Selected("ring", "simple")
    rows = [
        *(row(size * MIB, us, TREE) for size, us in ((1, 10), (2, 20), (4, 80))),
        *(row(size * MIB, us, ring) for size, us in ((1, 30), (2, 30), (4, 40))),
        *(row(size * MIB, us) for size, us in ((1, 9), (2, 40), (4, 41))),
    ]
    diagnosis = found(rows)
    better = {one.point.size_bytes: one.better for one in diagnosis.subjects[0].sizes}
    assert better[MIB] is None
    other = better[2 * MIB]
    assert other is not None
    assert (other.choice, other.saves) == (TREE, 0.5)
    with pytest.raises(ConfigError, match="number of channels") as caught:
        tuner_rules(diagnosis)
    assert "--channels N" in str(caught.value.hint)
    rules, remarks = tuner_rules(diagnosis, channels=16)
    kept = [(one.first_bytes, one.last_bytes, one.algorithm, one.channels) for one in rules]
    assert kept == [(0, 4 * MIB - 1, "tree", 16), (4 * MIB, NO_LIMIT, "ring", 16)]
    assert "at 1 MiB the rule is 11 % slower than this run, whose choice is unknown" in remarks[0]


def test_rules_need_a_known_choice() -> None:
    with pytest.raises(ConfigError, match="no choice of algorithm and protocol"):
        tuner_rules(found([row(MIB, 10)]))


# --- logs -----------------------------------------------------------------------------------------

RESULTS = """# nThread 1 nGpus 1 minBytes 64 maxBytes 128
# Collective test starting: all_gather_perf
#  Rank  0 Group  0 Pid 1 on n1 device  0 [0000:07:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid 2 on n1 device  1 [0000:08:00] NVIDIA H100 80GB HBM3
{records}#   size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong
  1048576  131072  float  none  -1  20.0  52.4  26.2  0  20.1  52.2  26.1  0
  2097152  262144  float  none  -1  30.0  69.9  35.0  {wrong}  30.1  69.7  34.8  0
"""
RECORD = "n1:1:2 [0] NCCL INFO "


def log(tmp_path: Path, *records: str, wrong: int = 0) -> Path:
    lines = "".join(f"{RECORD}{one}\n" for one in records)
    path = tmp_path / "job.log"
    path.write_text(RESULTS.format(records=lines, wrong=wrong))
    return path


def test_choices_of_a_log_are_matched_by_size(tmp_path: Path) -> None:
    path = log(tmp_path, "AllGather: 524288 Bytes -> Algo RING proto LL128 channel{Lo..Hi}={0..7}",
               "2097152 Bytes -> Algo 4 proto 2 time 20.0")  # fmt: skip
    first, second = diagnose(read_evidence([path], Given())).subjects[0].sizes
    # Since NCCL 2.27 the size is one rank's shard, before that the sum.
    assert (first.choice, first.basis, first.channels) == (Selected("ring", "ll128"), "log", 8)
    assert second.choice == Selected("nvls", "simple")


def test_guesses_are_those_of_the_tuning_model(tmp_path: Path) -> None:
    graph = "crossNic 0, nChannels 16, bw 24.000000/24.000000, type NVL/PIX, sameChannels 0"
    path = log(tmp_path, f"Pattern 4, {graph}", f"Pattern 1, {graph}", "16 coll channels, 0",
               "NCCL version 2.28.9+cuda13.0")  # fmt: skip
    evidence = read_evidence([path], Given())
    nccl, remark = version_of(None, evidence.logs.values())
    assert remark == ""
    assert nccl.startswith("2.28")
    model = guess_model(evidence.logs, nccl=nccl, gpus=evidence.gpus)
    assert model is not None
    sizes = diagnose(evidence, model=model).subjects[0].sizes
    assert {(one.basis, one.choice and one.choice.algorithm) for one in sizes} == {
        ("guess", "ring")
    }
    assert guess_model({}, nccl=nccl) is None
    with pytest.raises(ConfigError, match="unknown"):
        version_of("1.0", [])


def test_forced_choices_are_read_from_logs_of_one_run(tmp_path: Path) -> None:
    path = log(
        tmp_path, "NCCL_ALGO set by environment to Ring.", "NCCL_PROTO set by environment to LL"
    )
    assert {one.forced for one in read_evidence([path], Given()).rows} == {Selected("ring", "ll")}
    path.write_text(2 * path.read_text())
    assert {one.forced for one in read_evidence([path], Given()).rows} == {None}
    given = Given(forced={str(path): TREE})
    assert {one.forced for one in read_evidence([path], given).rows} == {TREE}


def test_logs_name_suspicious_networks_ranks_and_versions(tmp_path: Path) -> None:
    path = log(
        tmp_path,
        "NCCL version 2.28.9+cuda13.0",
        "NCCL version 2.27.3+cuda12.9",
        "comm 0x5 rank 0 nranks 2 cudaDev 0 busId 2 - Init COMPLETE",
        "Using network Socket",
        "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA",
        "Channel 01/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA",
        "Channel 02/0 : 0[0] -> 1[0] [send] via NET/IB/1",
        "8 coll channels, 0 collnet channels",
        "16 coll channels, 0 collnet channels",
        wrong=3,
    )
    report = texts(diagnose(read_evidence([path], Given())))
    for part in (
        "wrong results",
        "several versions of the library: NCCL 2.28.9+cuda13.0 (line 5)",
        "1 of 2 ranks did not complete the initialisation: 1",
        "NCCL uses TCP sockets",
        "not on IB/1",
        "NICs carry different numbers of channels: IB/0 2, IB/1 1",
        "ranks differ in their channels: 8 on 1 ranks, 16 on 1 ranks",
    ):
        assert part in report


def test_a_log_without_times_or_with_another_choice_has_a_warning(tmp_path: Path) -> None:
    log = tmp_path / "debug.log"
    records = [line for line in DEFAULT.read_text().splitlines() if "NCCL INFO" in line]
    log.write_text("\n".join(records))
    assert "no measured times were read" in texts(diagnose(read_evidence([log], Given())))
    forced = Given(forced={str(DEFAULT): TREE})
    shown = texts(diagnose(read_evidence([DEFAULT], forced)))
    assert "the debug log states tree/ll at 8 KiB, not tree/ll128" in shown


def test_rows_in_other_units_are_left_out(tmp_path: Path) -> None:
    log = tmp_path / "all_reduce_perf.log"
    log.write_text(DEFAULT.read_text().replace("   2327.5 ", "   2.3275 "))
    omitted = read_evidence([log], Given()).omitted
    assert len(omitted) == 1
    assert "time and algbw disagree: 268435456 B in 2.3275 us are 1.15e+05 GB/s" in omitted[0][2]


def test_a_late_rank_has_the_shortest_operations(tmp_path: Path) -> None:
    lines = [
        json.dumps({
            "header": {"id": "0x7f", "rank": rank, "n_ranks": 4, "nnodes": 2},
            "metadata": {"inspector_output_format_version": "v4.0", "hostname": f"n{rank // 2}"},
            "coll_perf": {"coll": "AllReduce", "coll_sn": number, "coll_msg_size_bytes": 64,
                          "coll_exec_time_us": 40 if rank == 3 else 90 + number},
        })
        for rank in range(4) for number in range(6)
    ]  # fmt: skip
    path = tmp_path / "inspector.log"
    path.write_text("\n".join(lines) + "\n")
    report = texts(diagnose(read_evidence([path], Given())))
    assert "rank 3 on n1 is late: its operations take 43 % of the median" in report


def test_json_of_nccl_tests_states_choice_ranks_nodes_and_late_processes(tmp_path: Path) -> None:
    half = {"time": 1000.0, "alg_bw": 1.0, "bus_bw": 1.75, "nwrong": 0.0}
    times = [[100.0] * 6, [101.0] * 6, [99.0] * 6, [60.0] * 6]
    tables = {
        "version": 1,
        "args": ["all_reduce_perf", "-J", "x.json"],
        "env": ["HOME=/home", "NCCL_ALGO=Tree", "NCCL_PROTO=LL128"],
        "nccl_version": 22809,
        "config": {
            "nthreads": 1,
            "ngpus": 2,
            "devices": [
                {"rank": 2 * one, "hostname": f"n{one // 2}", "device_info": "NVIDIA H200"}
                for one in range(4)
            ],
        },
        "results": [
            {"size": MIB, "count": 1, "type": "float", "redop": "sum", "root": "-1",
             "out_of_place": half, "in_place": half,
             "out_of_place_per_iter": {"per_process_max_times_us": times}}
        ],
    }  # fmt: skip
    path = tmp_path / "x.json"
    path.write_text(json.dumps(tables))
    evidence = read_evidence([path], Given())
    first = evidence.rows[0]
    assert (first.ranks, first.nodes, first.forced, evidence.gpus) == (8, 2, TREE, {"NVIDIA H200"})
    assert "process 3 on n1 is late: its operations take 60 %" in texts(diagnose(evidence))


def test_files_of_no_known_kind_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("dear diary\n")
    with pytest.raises(ConfigError, match=r"notes\.txt: unknown kind of file"):
        read_evidence([path], Given())
    table = tmp_path / "times.csv"
    table.write_text("bytes,out_of_place_us,in_place_us\n8,10.5,\n")
    with pytest.raises(ConfigError, match="neither the number of ranks") as caught:
        read_evidence([table], Given())
    assert "--ranks 16" in str(caught.value.hint)
    (only,) = read_evidence([table], Given(ranks=4, nodes=1, collective="all_reduce")).rows
    assert (only.size_bytes, only.time_us, only.in_place) == (8, 10.5, False)


# --- the command ----------------------------------------------------------------------------------


def test_the_example_fits_80_columns_and_writes_a_tuner_file(tmp_path: Path) -> None:
    to = tmp_path / "nccl_tuner.conf"
    done = call("nccl", "doctor", DEFAULT, FORCED, "--choice", f"{FORCED}=tree/ll128", "--topology",
                EXAMPLE / "topology.xml", "-o", to, cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert all(len(line) <= 80 for line in done.stdout.splitlines() if str(tmp_path) not in line)
    text = " ".join(done.stdout.split())
    assert "ring/ll tree/ll128, -62 %" in text
    assert "NIC 5 (mlx5_5): its PCI link has 31.5 GB/s, its port 50.0" in text
    assert "but not on IB/5" in text
    rules = read_tuner_csv(to)
    assert [(one.algorithm, one.protocol, one.channels) for one in rules] == [
        ("tree", "ll", 4), ("tree", "ll128", 16), ("ring", "simple", 16)
    ]  # fmt: skip
    assert rules[1].first_bytes == 128 << 10
    assert {(one.nodes, one.ranks) for one in rules} == {(2, 16)}


def test_json_has_the_sizes_and_the_findings(tmp_path: Path) -> None:
    done = call("nccl", "doctor", DEFAULT, "--nics", "8x50 GB/s", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    tables = json.loads(done.stdout)["tables"]
    (subject,) = tables["subjects"]
    assert subject["ring_bytes_per_s"] == pytest.approx(400e9)
    assert subject["sizes"][0]["choice"] == "tree/ll"
    assert subject["sizes"][0]["basis"] == "log"
    assert {one["level"] for one in tables["findings"]} == {"problem", "warning"}


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (("--choice", "rings"), "ALGORITHM/PROTOCOL"),
        (("--choice", "other.log=ring/ll"), "names a file that is not given"),
        (("--nics", "8"), "8x50 GB/s"),
        (("--nics", "8x50"), "a rate, such as"),
        (("--nccl", "1.0"), "NCCL 1.0 is unknown"),
    ],
)
def test_invalid_options_are_named(tmp_path: Path, options: tuple[str, ...], part: str) -> None:
    done = call("nccl", "doctor", DEFAULT, *options, cwd=tmp_path)
    assert done.returncode == 2
    assert part in done.stderr


def test_the_topology_is_shown_and_written(tmp_path: Path) -> None:
    done = call("nccl", "topology", EXAMPLE / "topology.xml", "--nodes", "2", "-o", "out/node.toml",
                cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "NCCL: 1 host(s), 2 sockets, 8 GPUs, 8 NIC ports" in done.stdout
    assert "4 x pci: 31.5077 GB/s" in done.stdout
    read = call("platforms", "out/node.toml", cwd=tmp_path)
    assert "models.gpu.beta = 450.0 GB/s" in read.stdout
    assert 'name = "node"' in (tmp_path / "out" / "node.toml").read_text()
    shown = call("nccl", "topology", EXAMPLE / "topology.xml", "--json", cwd=tmp_path)
    assert len(json.loads(shown.stdout)["tables"]["gpus"]) == 8
    wrong = call("nccl", "topology", EXAMPLE / "topology.xml", "--rates", "x", cwd=tmp_path)
    assert (wrong.returncode, "one of link, nccl" in wrong.stderr) == (2, True)


# --- results of nccl-tests ------------------------------------------------------------------------

COLUMNS = (
    "#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong\n"
)


def results(folder: Path, name: str, devices: str, rows: str) -> str:
    path = folder / name
    path.write_text(f"# nThread 1 nGpus 1\n{devices}{COLUMNS}{rows}# Out of bounds values : 0 OK\n")
    return str(path)


def listed(ranks: int, hosts: int) -> str:
    return "".join(
        f"#  Rank {rank} Group 0 Pid 1 on n{rank * hosts // ranks} device 0 [0x1] NVIDIA H100\n"
        for rank in range(ranks)
    )


SLOW = "536870912 134217728 float sum -1 48806.4 11.00 20.62 0 48806.4 11.00 20.62 0\n"
"""16 ranks: busbw is 15/8 of algbw."""


def test_results_without_their_collective_state_what_is_missing(tmp_path: Path) -> None:
    """Versions before 2025 print no `Collective test concluded`."""
    file = results(tmp_path, "old.txt", listed(16, 2), SLOW)
    done = call("nccl", "doctor", file, cwd=tmp_path)
    assert done.returncode == 2
    assert "does not state the collective: set --collective" in " ".join(done.stderr.split())
    assert call("nccl", "doctor", file, "-c", "all_reduce", cwd=tmp_path).returncode == 0


def test_rows_without_a_collective_are_reported(tmp_path: Path) -> None:
    row = "536870912 134217728 float sum -1 48806.4 11.00 11.00 0 48806.4 11.00 11.00 0\n"
    file = results(tmp_path, "sendrecv_perf.txt", listed(16, 2), 2 * row)
    done = call("nccl", "doctor", file, cwd=tmp_path)
    assert done.returncode == 2
    assert "the file: send_recv is not a collective" in done.stderr
    both = results(tmp_path, "all_reduce_perf.txt", listed(16, 2), 3 * SLOW)
    done = call("nccl", "doctor", file, both, cwd=tmp_path)
    assert done.returncode == 0
    printed = " ".join(done.stderr.split())
    assert "left out 2 lines: send_recv is not a collective" in printed
    assert "rows of equal configuration were merged into their median" in printed


def test_processes_without_mpi_are_named(tmp_path: Path) -> None:
    alone = "1310720000 327680000 float sum 3478.5 376.81 0.00 0e+00 6.60 198593.9 0.00 0e+00\n"
    file = results(tmp_path, "all_reduce_perf.txt", 2 * listed(1, 1), alone)
    text = (tmp_path / "all_reduce_perf.txt").read_text().replace("#wrong", "error")
    (tmp_path / "all_reduce_perf.txt").write_text(text.replace("  root", ""))
    for options in ((), ("--ranks", "2")):
        done = call("nccl", "doctor", file, *options, cwd=tmp_path)
        assert done.returncode == 2
        printed = " ".join(done.stderr.split())
        assert "every process ran alone (2 lines `Rank 0`, busbw 0)" in printed
        assert "built without MPI=1" in printed


def test_ranks_that_the_rates_contradict_are_refused(tmp_path: Path) -> None:
    rows = "536870912 134217728 float sum -1 1806.7 297.16 586.06 0 1835.9 292.43 576.74 0\n"
    last = "#  Rank 71 Group 0 Pid 1 on n171 device 3 [0x01] NVIDIA Graphics Device\n"
    file = results(tmp_path, "last_rank.txt", last, rows)
    arguments = ("nccl", "doctor", file, "-c", "all_reduce", "--ranks")
    refused = call(*arguments, "16", cwd=tmp_path)
    assert refused.returncode == 2
    assert "expected: 72 ranks, as the file states" in refused.stderr
    assert "all_reduce, 72 ranks" in call(*arguments, "72", cwd=tmp_path).stdout


def test_options_that_the_files_contradict_have_notes(tmp_path: Path) -> None:
    file = results(tmp_path, "all_reduce_perf.txt", listed(16, 2), SLOW)
    named = (tmp_path / "all_reduce_perf.txt").read_text()
    Path(file).write_text(f"{named}# Collective test concluded: all_reduce_perf\n")
    arguments = ("nccl", "doctor", file, "-c", "broadcast", "--nodes", "4")
    printed = " ".join(call(*arguments, cwd=tmp_path).stdout.split())
    assert "all_reduce, 16 ranks on 2 nodes" in printed
    assert "--collective: broadcast is not used: the files state all_reduce" in printed
    assert "--nodes: 4 is used only where no nodes are stated; stated: 2" in printed


@pytest.mark.parametrize(
    ("choice", "level", "advice"),
    [
        ("ring/simple", "problem", "--choice (or NCCL_ALGO) or --nics contradicts the times"),
        (None, "note", "a tree, NVLink SHARP or CollNet ran"),
        ("collnet_direct/simple", "note", "a tree, NVLink SHARP or CollNet ran"),
    ],
)
def test_a_choice_that_the_times_contradict(
    choice: str | None, level: str, advice: str, tmp_path: Path
) -> None:
    """20.6 GB/s busbw on two nodes, with NICs whose rings reach 12.5 GB/s."""
    file = results(tmp_path, "all_reduce_perf.txt", listed(16, 2), SLOW)
    forced = ["--choice", choice] if choice else []
    done = call("nccl", "doctor", file, "--nics", "1x12.5 GB/s", *forced, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    printed = " ".join(done.stdout.split())
    assert advice in printed
    assert f"{level}: all_reduce, 16 ranks on 2 nodes" in printed
    assert ("tree, NVLink SHARP" in printed) != ("contradicts" in printed)


def test_a_tree_below_the_bound_contradicts_the_links() -> None:
    """Without reduction in switches, each node sends the vector once: 100 us at 5 GB/s."""
    rows = [row(512 * 1024, 50.0, TREE)]
    report = texts(found(rows, Rails(450e9, (5e9,), "--nics")))
    assert "--choice (or NCCL_ALGO) or --nics contradicts the times" in report
