"""`tutti noc` from the command line: output, files and errors."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from called import call
from processes import wait_until, wait_until_computed
from tutti.base.errors import ConfigError
from tutti.cli.loads import load_values

pytestmark = pytest.mark.timeout(600)
"""Starting many programs is slow on a busy machine."""

TUTTI = Path(sys.executable).with_name("tutti")

SMALL = """
[topology]
build = "mesh:4x4"
links = [{ rate = "16 GB/s", latency = "1 ns", length = "1 mm" }]
routing = "dimension_order"
[traffic]
rate = 0.1
packet = 2
[measure]
warmup = 500
measure = 2000
drain = 3000
sample = 50
"""

PLAIN = """
traffic = { rate = 0.1 }
[topology]
build = "mesh:4x4"
links = [{ rate = "16 GB/s", latency = "1 ns" }]
routing = "dimension_order"
"""

DEADLOCK = """
[topology]
build = "ring:8"
links = [{ rate = "16 GB/s", latency = "1 ns" }]
[router]
vcs = 1
buffer = 2
[traffic]
pattern = "uniform_others"
rate = 0.9
packet = 8
[measure]
patience = 1000
"""


def tutti(*arguments: str | Path, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = call("noc", *arguments, cwd=cwd)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "noc.toml").write_text(SMALL)
    (tmp_path / "ring.toml").write_text(DEADLOCK)
    return tmp_path


def test_a_run_prints_a_summary_in_80_columns(here: Path) -> None:
    output = tutti("run", "noc.toml", cwd=here).stdout
    assert max(len(line) for line in output.splitlines()) <= 80
    for words in (
        "stable",
        "latency:",
        "percentiles:",
        "hops:",
        "busiest:",
        "flit-mm",
    ):
        assert words in " ".join(output.split())
    written = {path.name for path in (here / "out" / "noc").iterdir()}
    assert written == {
        "report.html",
        "results.parquet",
        "results.csv",
        "channels.csv",
        "occupancy.csv",
        "channels.parquet",
        "occupancy.parquet",
    }
    row = pl.read_parquet(here / "out" / "noc" / "results.parquet").row(0, named=True)
    shown = re.search(r"latency: +([0-9.]+) ±", output)
    assert shown
    assert float(shown[1]) == pytest.approx(row["latency"], rel=1e-3)


def test_options_define_the_network_of_the_same_file(here: Path) -> None:
    (here / "plain.toml").write_text(PLAIN)
    changes = ("--set", "measure.warmup=100", "--set", "measure.measure=500")
    tutti("run", "plain.toml", *changes, "-o", "file", cwd=here)
    done = tutti("run", "--mesh", "4x4", "--rate", "0.1", *changes, "-o", "short", cwd=here)
    found = [pl.read_parquet(here / name / "results.parquet") for name in ("file", "short")]
    assert found[0].equals(found[1])
    shown = " ".join(done.stderr.split())
    assert "defaults of links: rate 16 GB/s; latency 1 ns" in shown
    assert "defaults: topology.routing dimension_order; cycle 1 ns; flit 16 B;" in shown
    assert "router.vcs 4; router.buffer 8; traffic.pattern uniform; traffic.packet 1" in shown
    more = ("--torus", "4x4", "--vcs", "2", "--packet", "2", "--traffic", "tornado")
    done = tutti("run", "noc.toml", *more, "--rate", "0.05", *changes, cwd=here)
    assert "torus:4x4, dimension_order, 2 VCs of 8 flits" in done.stdout
    assert "tornado, bernoulli, 0.05 flits per node and cycle, packet size 2" in " ".join(
        done.stdout.split()
    )


def test_a_network_without_load_is_swept(here: Path) -> None:
    changes = ("--set", "measure.warmup=100", "--set", "measure.measure=300")
    done = tutti("run", "--mesh", "2x2", "--buffer", "2", *changes, cwd=here)
    assert "no load is given (--rate): sweeps the load" in done.stderr
    assert "stable up to" in " ".join(done.stdout.split())


def test_a_saturated_run_has_no_latency_and_exits_with_3(here: Path) -> None:
    done = tutti("run", "noc.toml", "--set", "traffic.rate=0.95", cwd=here, code=3)
    assert "saturated" in done.stdout
    assert "latency is undefined" in " ".join(done.stdout.split())
    assert "latency:" not in done.stdout
    assert "error: noc.toml: the network saturates at this load" in done.stderr
    assert "hint: lower the rate" in done.stderr


def test_a_deadlocked_run_exits_with_3(here: Path) -> None:
    done = tutti("run", "ring.toml", cwd=here, code=3)
    assert "deadlocked" in done.stdout
    output = " ".join(done.stdout.split())
    assert "no flit moved" in output
    assert "throughput and latency are undefined" in output
    assert "accepted" not in output
    assert "0 buffer writes" not in output
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    written = {path.name for path in (here / "out" / "noc").iterdir()}
    assert written == {"report.html", "results.parquet", "results.csv"}


def test_small_buffers_on_a_long_link_are_reported(here: Path) -> None:
    long = ["--set", "router.buffer=1", "--set", "router.vcs=2"]
    done = tutti("run", "noc.toml", *long, cwd=here)
    output = " ".join(done.stderr.split())
    assert "2-flit packets on 1 VC of depth 1 use at most" in output
    assert "buffer = 6 allows 100 %" in output
    assert "buffer = 6" in (here / "out" / "noc" / "report.html").read_text("utf-8")


def test_a_booksim_configuration_runs(here: Path) -> None:
    config = "topology = mesh; k = 4; n = 2; routing_function = dor; sample_period = 500;"
    (here / "mesh.cfg").write_text(config)
    done = tutti("from-booksim", "mesh.cfg", "seed=3", cwd=here)
    written = {path.name for path in (here / "out" / "noc").iterdir()}
    frames = ("results", "channels", "occupancy")
    assert written == {
        "report.html", *(f"{name}.{suffix}" for name in frames for suffix in ("parquet", "csv"))
    }  # fmt: skip
    assert "wrote out/noc/report.html" in done.stdout
    loads = ["--loads", "0.05,0.1", "--out", "curve", "--no-saturation"]
    tutti("from-booksim", "mesh.cfg", *loads, cwd=here)
    written = {path.name for path in (here / "curve").iterdir()}
    assert written == {"report.html", "results.parquet", "results.csv", "latency.svg"}
    assert pl.read_parquet(here / "curve" / "results.parquet")["load"].to_list() == [0.05, 0.1]


def test_slow_links_are_reported_if_allowed(here: Path) -> None:
    wide = ["--set", "flit=32 B"]
    output = " ".join(tutti("run", "noc.toml", *wide, cwd=here, code=2).stderr.split())
    assert "flit: a flit of 32 B is wider than what npu0 > npu1 carries" in output
    assert "in a cycle of 1 ns, which is 16 B" in output
    assert 'narrow_links = "serialize"' in output
    slow = [*wide, "--set", "topology.narrow_links=serialize"]
    done = tutti("run", "noc.toml", *slow, cwd=here)
    assert "slow channels: 48 of 80 need 2 cycles per flit" in " ".join(done.stdout.split())


def test_a_sweep_plots_latency_and_finds_saturation(here: Path) -> None:
    loads = ["--loads", "0.1:0.3:0.1", "--tolerance", "0.1", "--out", "found"]
    output = tutti("sweep", "noc.toml", *loads, cwd=here).stdout
    assert max(len(line) for line in output.splitlines()) <= 80
    assert "stable up to" in output
    frame = pl.read_parquet(here / "found" / "results.parquet")
    assert frame["load"].is_sorted()
    assert set(frame["load"]) > {0.1, 0.2, 0.3}
    assert set(frame["ending"]) == {"stable", "saturated"}
    assert pl.read_csv(here / "found" / "results.csv").height == frame.height
    assert (here / "found" / "latency.svg").read_text().startswith("<?xml")
    page = (here / "found" / "report.html").read_text()
    assert "Latency against offered load" in page


def test_a_sweep_without_search_runs_only_its_loads(here: Path) -> None:
    text = SMALL.replace("rate = 0.1\n", "")  # a sweep needs no rate
    (here / "noc.toml").write_text(text)
    output = tutti("sweep", "noc.toml", "--loads", "0.1,0.95", "--no-saturation", cwd=here).stdout
    assert "saturated" in output
    assert "stable up to" not in output
    assert pl.read_parquet(here / "out" / "noc" / "results.parquet").height == 2


def test_the_registries_are_listed(here: Path) -> None:
    output = tutti("list", cwd=here).stdout
    for name in ("minimal_adaptive", "bit_complement", "wavefront"):
        assert name in output


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["run", "none.toml"], "there is no such file"),
        (["run", "noc.toml", "--set", "router.vcs=0"], "router.vcs: is out of range"),
        (["run", "noc.toml", "--set", "router.ejection=2"], "router.ejection: "),
        (["run", "noc.toml", "--set", "topology.routing=romn"], "routing `romn`"),
        (
            ["run", "noc.toml", "--set", "router.cut_through=true", "--set", "router.buffer=1"],
            "router.buffer: a VC buffer of 1 flits holds no packet of 2 flits",
        ),
        (
            ["run", "noc.toml", "--set", 'energy={router="dsent_45nm"}'],
            "expected: the technology of the links, such as `dsent_45nm`",
        ),
        (["sweep", "noc.toml", "--loads", "a"], "is not a list of loads"),
        (["sweep", "noc.toml", "--loads", "0.1:0.5"], "is not a range FROM:TO:STEP"),
        (["sweep", "noc.toml", "--loads", "0"], "has a load of 0"),
        (["sweep", "noc.toml", "--tolerance", "0"], "invalid tolerance"),
        (["run"], "a network file, or options such as --mesh 8x8 --rate 0.2"),
        (["run", "mesh:8x8"], "hint: a topology is an option: --topology mesh:8x8"),
        (["run", "--mesh", "8x8", "--torus", "8x8"], "--torus: conflicts with --mesh"),
        (["run", "noc.toml", "--design", "sfo_greedy"], "--design: does not apply to this file"),
        (["run", "--topology", "mesh:4x4,latncy=1ns"], "hint: did you mean `latency`?"),
        (["run", "--torus", "4x4", "--design", "sfo_greedy"], "--torus: is not a mesh of two"),
    ],
)
def test_mistakes_give_one_error(arguments: list[str], text: str, here: Path) -> None:
    done = tutti(*arguments, cwd=here, code=2)
    assert done.stderr.startswith("error: ")
    assert text in done.stderr
    assert not (here / "out").exists()


def test_a_trace_cannot_be_swept(here: Path) -> None:
    (here / "t.csv").write_text("cycle,source,destination,flits\n0,0,5,3\n")
    (here / "noc.toml").write_text(SMALL.replace("rate = 0.1\npacket = 2", 'trace = "t.csv"'))
    done = tutti("sweep", "noc.toml", cwd=here, code=2)
    assert "a trace has a fixed load and cannot be swept" in done.stderr


def test_loads_are_lists_and_ranges() -> None:
    assert load_values("0.05:0.2:0.05") == [0.05, 0.1, 0.15, 0.2]
    assert load_values("0.3, 0.1,0.1") == [0.1, 0.3]
    with pytest.raises(ConfigError, match="the limit is"):
        load_values("0.1:1e9:0.1")


def test_ctrl_c_interrupts_a_sweep(here: Path) -> None:
    long = ["--set", "measure.measure=1000000000", "--loads", "0.1,0.2"]
    process = subprocess.Popen(
        [TUTTI, "noc", "sweep", "noc.toml", *long],
        cwd=here,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_until(process, (here / "out" / "noc").exists)
    wait_until_computed(process, 0.3)
    process.send_signal(signal.SIGINT)
    _, output = process.communicate(timeout=500)
    assert process.returncode == 130, output
    assert "Traceback" not in output


def test_a_deadlock_is_reported_before_and_after_a_run(here: Path) -> None:
    done = tutti("run", "ring.toml", cwd=here, code=3)
    assert "routing `shortest_path` can deadlock" in " ".join(done.stderr.split())
    output = " ".join(done.stdout.split())
    assert (
        "deadlock cycle: each VC waits for the next, the last for the first: VC 0 of npu" in output
    )
    refused = ["--set", "topology.deadlock=refuse"]
    output = " ".join(tutti("run", "ring.toml", *refused, cwd=here, code=2).stderr.split())
    assert "topology.routing: routing `shortest_path` can deadlock" in output
    assert "npu0 > npu1" in output
    ignored = tutti("run", "ring.toml", "--set", "topology.deadlock=ignore", cwd=here, code=3)
    assert "can deadlock" not in ignored.stderr
    loads = ["--loads", "0.02,0.9", "--no-saturation"]
    swept = tutti("sweep", "ring.toml", *loads, cwd=here)
    assert "can deadlock" in swept.stderr
    printed = " ".join(swept.stdout.split())
    assert "at 0.9 deadlocked: packets were in flight" in printed
    assert "each waits for the next" in printed


def test_energy_is_reported_if_a_technology_is_named(here: Path) -> None:
    text = SMALL + '[energy]\nrouter = "dsent_45nm"\nlink = "dsent_45nm"\n'
    (here / "energy.toml").write_text(text)
    output = tutti("run", "energy.toml", "--out", "out", cwd=here).stdout
    assert max(len(line) for line in output.splitlines()) <= 80
    for words in ("dynamic", "leakage", "between", "power: ", "area: "):
        assert words in output, words
    assert pl.read_parquet(here / "out" / "energy.parquet")["dynamic_j"].sum() > 0
    page = (here / "out" / "report.html").read_text("utf-8")
    assert "Energy and area" in page
    wrong = ["--set", "energy.router=nothing"]
    output = tutti("run", "energy.toml", *wrong, cwd=here, code=2).stderr
    assert "energy: " in output
    assert "nothing" in output
    bare = text.replace(', length = "1 mm"', "")
    (here / "bare.toml").write_text(bare)
    output = tutti("run", "bare.toml", cwd=here, code=2).stderr
    assert "the length of the link from npu0 to npu1 is" in " ".join(output.split())


def test_a_sweep_that_deadlocks_at_every_load_exits_with_3(here: Path) -> None:
    loads = ["--loads", "0.9", "--no-saturation"]
    done = tutti("sweep", "ring.toml", *loads, cwd=here, code=3)
    row = next(line for line in done.stdout.splitlines() if "deadlocked" in line)
    assert row.split() == ["0.9", "deadlocked", *["-"] * 6, "129", "%"]
    output = " ".join(done.stdout.split())
    assert "-: not measured" in output
    assert "latencies: cycles" in output
    assert "1 load," in done.stderr


def test_the_search_for_saturation_reports_its_cycles(here: Path) -> None:
    done = tutti("sweep", "noc.toml", "--loads", "0.1", "--tolerance", "0.3", cwd=here)
    assert re.search(r"^saturation: \d+ loads, [\d,]+ cycles in ", done.stderr, re.MULTILINE)


def test_ctrl_c_interrupts_a_run(here: Path) -> None:
    process = subprocess.Popen(
        [TUTTI, "noc", "run", "noc.toml", "--set", "measure.measure=1000000000"],
        cwd=here,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_until(process, (here / "out" / "noc").exists)
    process.send_signal(signal.SIGINT)
    _, output = process.communicate(timeout=500)
    assert process.returncode == 130, output
    assert "interrupted\n" in output
    assert "Traceback" not in output


@pytest.mark.parametrize(
    ("argument", "texts"),
    [
        ("num_vc=8", ('argument "num_vc=8": num_vc: ', "did you mean `num_vcs`?")),
        ("routing_function=foo", ('argument "routing_function=foo": routing_function: ',)),
        ("num_vcs=0", ('argument "num_vcs=0": num_vcs: is out of range', "given: 0")),
    ],
)
def test_errors_in_arguments_name_the_argument(
    argument: str, texts: tuple[str, ...], here: Path
) -> None:
    (here / "mesh.cfg").write_text("topology = mesh; k = 4; n = 2; routing_function = dor;")
    done = tutti("from-booksim", "mesh.cfg", argument, cwd=here, code=2)
    for words in texts:
        assert words in done.stderr
    assert "mesh.cfg" not in done.stderr
    (here / "own.cfg").write_text(f"topology = mesh; k = 4; routing_function = dor; {argument};")
    assert "error: own.cfg:1: " in tutti("from-booksim", "own.cfg", cwd=here, code=2).stderr


def test_an_error_in_links_shows_only_the_links(here: Path) -> None:
    done = tutti("run", "noc.toml", "--set", "topology.links=[]", cwd=here, code=2)
    assert "topology.links: expected `links` for a family" in done.stderr
    assert "given: []\n" in done.stderr
    (here / "none.toml").write_text('topology.build = "mesh:4x4"\ntraffic.rate = 0.1\n')
    assert "given: " not in tutti("run", "none.toml", cwd=here, code=2).stderr


def test_no_files_prints_the_same_and_writes_nothing(tmp_path: Path) -> None:
    short = ("--mesh", "4x4", "--set", "measure.measure=500", "--set", "measure.warmup=100")
    run = ("noc", "run", *short, "--rate", "0.1")
    printed = call(*run, "--no-files", cwd=tmp_path)
    assert "output" not in printed.stderr
    call("noc", "sweep", *short, "--loads", "0.1", "--no-saturation", "--no-files", cwd=tmp_path)
    assert not list(tmp_path.iterdir())
    written = call(*run, "-o", "out", "--no-report", cwd=tmp_path)
    assert printed.stdout == written.stdout.partition("wrote")[0]
    refused = call(*run, "--no-files", "-o", "out", cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--no-files: excludes --out" in refused.stderr
    refused = call("noc", "explore", *short, "--vary", "router.vcs=2,4", "--no-files", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--no-files: an exploration writes each result" in refused.stderr


def test_a_converted_configuration_may_only_print(here: Path) -> None:
    (here / "mesh.cfg").write_text(
        "topology = mesh; k = 4; n = 2; routing_function = dor; sample_period = 100;"
    )
    done = tutti("from-booksim", "mesh.cfg", "--no-files", cwd=here)
    assert "mean latency" in done.stdout
    assert {path.suffix for path in here.iterdir()} == {".cfg", ".toml"}
    done = tutti("from-booksim", "mesh.cfg", "--no-files", "-o", "out", cwd=here, code=2)
    assert "--no-files: excludes --out" in done.stderr
