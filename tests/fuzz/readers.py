"""The readers of files that `make fuzz-readers` damages, with small valid files.

Readers are those of all formats of `tutti.formats.formats` (`format_readers`), and those of other
files.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import made
import network_seeds
import plans
import samples
import seeds
import training_seeds

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["Reader", "readers"]

Files = dict[str, bytes]
"""Contents by name."""


@dataclass(frozen=True, kw_only=True)
class Reader:
    """A reader with its valid inputs.

    Attributes:
        name: The name, without spaces.
        read: Reads a file in a folder.
        files: The valid inputs: each has files by name, of which the first is read.
    """

    name: str
    read: Callable[[Path], Any]
    files: tuple[Files, ...]


def readers(work: Path) -> list[Reader]:
    """Returns all readers; `work` is a folder for files of writers."""
    from format_readers import format_readers

    return [
        *format_readers(work / "formats"),
        *_astrasim(work / "astrasim"),
        *_networks(),
        *_nccl(),
        *_benchmarks(),
        *_tables(),
        *_plans(),
    ]


def _targets(found: list[seeds.Target], *names: str) -> tuple[Files, ...]:
    """Returns the files of the targets with these names; without names, of all."""
    return tuple(one.files for one in found if one.files and (not names or one.name in names))


def _astrasim(work: Path) -> list[Reader]:
    from tutti.formats.astrasim.networks import load_network
    from tutti.formats.astrasim.systems import load_system
    from tutti.formats.astrasim.text import load_text
    from tutti.formats.chakra import reader as chakra
    from tutti.formats.chakra.groups import load_groups
    from tutti.workloads.trace import programs

    work.mkdir(parents=True, exist_ok=True)
    folder = seeds.EXAMPLES / "13_astrasim"
    traces = {}
    for rank in range(2):
        path = chakra.write(work / f"t.{rank}.et", made.trace(rank))
        traces[path.name] = path.read_bytes()
    traces["t.comm_group.json"] = b'{"all": [0, 1]}'

    def run(path: Path) -> Any:
        return programs(chakra.read_all(path.parent / "t"), (2,))

    def file(name: str) -> tuple[Files, ...]:
        return ({name: (folder / name).read_bytes()},)

    return [
        Reader(name="astrasim-network", read=load_network, files=file("Ring_8.yml")),
        Reader(name="astrasim-system", read=load_system, files=file("Ring.json")),
        Reader(name="astrasim-groups", read=load_groups, files=({"g.json": b'{"1": [0, 1]}'},)),
        Reader(
            name="astrasim-text",
            read=lambda path: load_text(path, (8,)),
            files=(
                *file("two_layers.txt"),
                *({"w.txt": text} for text in (samples.SIMAI, samples.CUSTOMIZED, samples.DLRM)),
            ),
        ),
        Reader(name="astrasim-chakra", read=run, files=(traces,)),
    ]


def _complete_networks() -> list[Reader]:
    """Returns the readers of complete networks: with routes, routers and traffic."""
    from tutti.formats.garnet import experiment
    from tutti.formats.noxim import network
    from tutti.formats.rapidchiplet import network as rapidchiplet

    def script(path: Path) -> object:
        return experiment.load(path, ("num_cpus=6", "mesh_rows=2"))

    def replayed(path: Path) -> object:
        return rapidchiplet.load(path.with_name("design.json"), ("mode=trace",))

    def drawn(path: Path) -> object:
        return rapidchiplet.load(path.with_name("design.json"), is_lenient=True)

    design = (network_seeds.rapidchiplet(),)
    return [
        Reader(name="rapidchiplet", read=drawn, files=design),
        Reader(name="rapidchiplet-trace", read=replayed, files=design),
        Reader(name="garnet-script", read=script, files=network_seeds.examples("mesh.py")),
        Reader(name="garnet-run", read=experiment.load, files=network_seeds.examples("config.ini")),
        Reader(name="noxim-network", read=network.load, files=network_seeds.examples("noxim.yaml")),
    ]


def _networks() -> list[Reader]:
    from tutti.formats import scalesim
    from tutti.topologies import files as graphs
    from tutti.workloads.files import read_model

    tables = _targets(seeds.graphs())
    return [
        *_booksim(),
        *_complete_networks(),
        *_packet_traces(),
        Reader(
            name="graph",
            read=graphs.read,
            files=tuple({n: d for n, d in files.items() if n != "f.toml"} for files in tables),
        ),
        Reader(
            name="scalesim",
            read=scalesim.read_topology,
            files=({"s.csv": training_seeds.SCALESIM},),
        ),
        Reader(
            name="model",
            read=read_model,
            files=({"m.json": json.dumps(training_seeds.MODEL).encode()},),
        ),
    ]


def _packet_traces() -> list[Reader]:
    from functools import partial

    from tutti import _core
    from tutti.base.files import limits
    from tutti.base.files.reader import read_text
    from tutti.formats import netrace
    from tutti.networks import flit as noc
    from tutti.networks.flit.traces import plan_of_trace
    from tutti.topologies import Topology

    mesh = Topology.build("mesh:2x2", rate="16 GB/s", latency="1 ns")
    network = noc.Network(topology=mesh).core([None])

    def trace(path: Path) -> object:
        text = read_text(path, limits.Bytes.TABLE, "a trace as CSV", line=limits.LINE)
        return _core.FlitCase.trace(network, text, plan_of_trace(text).core_plan())

    return [
        Reader(name="noc-trace", read=trace, files=({"t.csv": network_seeds.DEPENDENT},)),
        Reader(
            name="netrace",
            read=partial(netrace.convert, flit_bytes=16),
            files=({"t.tra": network_seeds.netrace()},),
        ),
    ]


def _booksim() -> list[Reader]:
    from tutti.base.files import limits
    from tutti.base.files.reader import read_text
    from tutti.formats.booksim import anynet
    from tutti.formats.booksim import network as config_of_booksim
    from tutti.formats.booksim import reader as booksim
    from tutti.formats.booksim.recorded import parse_trace
    from tutti.networks.flit.files.matrix import matrix_pattern, parse_matrix

    def text(path: Path) -> str:
        return read_text(path, limits.Bytes.TABLE, "a table", line=limits.LINE)

    def matrix(path: Path) -> str:
        return matrix_pattern(parse_matrix(text(path), source=str(path)))

    def trace(path: Path) -> object:
        return parse_trace(text(path), source=str(path))

    networks = seeds.networks()
    config = _targets(networks, "booksim")
    anynets = [one.files for one in networks if one.name == "anynet"]
    matrices = _targets(networks, "booksim matrix")
    traces = _targets(networks, "booksim trace")
    return [
        Reader(name="booksim-config", read=booksim.read, files=config),
        Reader(name="booksim-network", read=config_of_booksim.load, files=(*config, *anynets)),
        Reader(name="booksim-traffic", read=config_of_booksim.load, files=(*matrices, *traces)),
        Reader(
            name="booksim-matrix", read=matrix, files=tuple({"n": one["n"]} for one in matrices)
        ),
        Reader(name="booksim-trace", read=trace, files=tuple({"n": one["n"]} for one in traces)),
        Reader(
            name="booksim-anynet",
            read=anynet.read,
            files=tuple({"n.anynet": files["n.anynet"]} for files in anynets),
        ),
    ]


def _nccl() -> list[Reader]:
    from tutti.formats.nccl import debug, graphs, inspector, topology
    from tutti.nccl.evidence import Given, read_evidence

    folder = seeds.EXAMPLES / "23_nccl_doctor"
    log = {"default.log": (folder / "default.log").read_bytes()}
    record = {
        "header": {"id": "0x7f", "rank": 2, "n_ranks": 4, "nnodes": 1},
        "metadata": {"inspector_output_format_version": "v4.0", "hostname": "n", "pid": 1},
        "coll_perf": {
            "coll": "AllGather",
            "coll_sn": 7,
            "coll_msg_size_bytes": 1024,
            "coll_exec_time_us": 50,
            "coll_timing_source": "kernel_gpu",
            "coll_algobw_gbs": 0.08,
            "coll_busbw_gbs": 0.06,
        },
    }
    text = "\n".join([json.dumps(record, indent=None)] * 3).encode()
    xml = {"topology.xml": (folder / "topology.xml").read_bytes()}
    return [
        Reader(name="nccl-log", read=debug.read_debug_log, files=(log,)),
        Reader(
            name="nccl-doctor",
            read=lambda path: read_evidence([path], Given(collective="all_reduce")),
            files=(log, {"default.log": _prefixed(log["default.log"])}),
        ),
        Reader(name="nccl-topology", read=topology.read_topology, files=(xml,)),
        Reader(name="nccl-graphs", read=graphs.read_graphs, files=({"g.xml": samples.GRAPHS},)),
        Reader(name="nccl-inspector", read=inspector.read_inspector, files=({"i.log": text},)),
    ]


def _benchmarks() -> list[Reader]:
    from tutti.base.files import limits
    from tutti.base.files.reader import read_bytes
    from tutti.formats.benchmarks.rows import BenchmarkInput
    from tutti.formats.measurements import read_measurements
    from tutti.formats.measurements.logs import read_runs

    def measured(path: Path) -> Any:
        return read_measurements(path, ranks_per_node=4, collective="all_reduce")

    def runs(path: Path) -> Any:
        text = read_bytes(path, limits.Bytes.LOG, "a log").decode("utf-8", "replace")
        return read_runs(text, BenchmarkInput(source=path.name, ranks=4))

    outputs = [path.read_bytes() for path in sorted(seeds.OUTPUTS.iterdir())]
    outputs += [_prefixed(data) for data in outputs if not data.startswith(b"{")]
    # Those of OSU do not state their ranks; the others refuse a number that differs.
    needy = tuple({"osu.txt": data} for data in outputs if b"# OSU" in data)
    stating = tuple({"all_reduce_perf.txt": data} for data in outputs if b"# OSU" not in data)
    tables = [
        {name: data for name, data in files.items() if name not in {"f.toml", "a.csv"}}
        for files in _targets(seeds.measurements())
    ]
    return [
        Reader(
            name="benchmarks-osu",
            read=lambda path: read_measurements(path, ranks=4),
            files=needy,
        ),
        Reader(name="benchmarks", read=read_measurements, files=stating),
        # Without data frames, whose threads take most of the time.
        Reader(name="benchmarks-text", read=runs, files=needy + stating),
        Reader(name="measurements", read=measured, files=tuple(tables)),
    ]


def _prefixed(data: bytes) -> bytes:
    """Returns a log as `kubectl logs --timestamps` and `mpirun --tag-output` print it."""
    prefix = b"2024-05-01T12:34:56.123Z [1,0]<stdout>:"
    return b"".join(prefix + line + b"\n" for line in data.splitlines())


def _tables() -> list[Reader]:
    from tutti.collectives.files.resolve import load_experiment
    from tutti.networks.coherence.files import load_coherence
    from tutti.networks.coherence.traces import read_trace
    from tutti.networks.flit.files.network_file import load_noc
    from tutti.networks.mesh.files import load_smart
    from tutti.platforms import recordings
    from tutti.platforms.files.presets import load_platform
    from tutti.sweeps.files import load_sweep
    from tutti.training.files.step_file import load_training

    experiments, networks = seeds.experiments(), seeds.networks()
    recorded = {name: data for one in seeds.recordings() for name, data in one.files.items()}
    platforms = _targets([one for one in experiments if one.name.startswith("platform ")])
    names = ("01_which_all_reduce", "02_noise_and_skew", "03", "04", "07", "14", "17")
    return [
        Reader(name="experiment", read=load_experiment, files=_targets(experiments, *names)),
        Reader(name="sweep", read=load_sweep, files=_targets(experiments, "sweep")),
        Reader(name="platform", read=load_platform, files=platforms),
        Reader(name="noc", read=load_noc, files=_targets(networks, "noc")),
        Reader(
            name="smart",
            read=load_smart,
            files=_targets(networks, "mesh broadcast", "mesh reduction"),
        ),
        Reader(
            name="training",
            read=load_training,
            files=({"f.toml": training_seeds.training_step("gnmt")},),
        ),
        Reader(name="coherence", read=load_coherence, files=_targets(networks, "coherence")),
        Reader(name="accesses", read=read_trace, files=({"t.txt": seeds.ACCESSES},)),
        *(
            Reader(name=f"recording-{name}", read=read, files=({file: recorded[file]},))
            for name, read, file in (
                ("durations", recordings.durations, "noise.csv"),
                ("detours", recordings.detours, "trace.txt"),
                ("arrivals", recordings.arrivals, "arrival.csv"),
            )
        ),
    ]


def _plans() -> list[Reader]:
    from tutti.formats.kineto.operators import timed_operators
    from tutti.formats.kineto.steps import read_step
    from tutti.training.capture.measured import read_times
    from tutti.training.files.calibration import read_calibration
    from tutti.training.files.measured import read_measured
    from tutti.workloads.huggingface import read_config
    from tutti.workloads.megatron.recipe import read_recipe

    def config(path: Path) -> Any:
        return read_config(path.name, path.parent)

    def script(path: Path) -> Any:
        return read_recipe(path.name, path.parent)

    def operators(path: Path) -> Any:
        return timed_operators(path, lambda _: True)

    def profiles(event: bytes) -> tuple[Files, ...]:
        start = b'"traceEvents": ['
        return tuple({name: data.replace(start, start + event, 1)}
                     for name, data in training_seeds.profiles().items())  # fmt: skip

    configs = tuple({"config.json": text} for text in plans.CONFIGS)
    logs = tuple({name: text} for name, text in plans.LOGS.items())
    return [
        Reader(name="huggingface", read=config, files=configs),
        Reader(name="megatron", read=script, files=({"a.sh": plans.SCRIPT},)),
        Reader(name="measured-steps", read=read_measured, files=logs),
        Reader(name="calibration", read=read_calibration, files=({"c.toml": plans.CALIBRATION},)),
        Reader(name="profiled-step", read=read_step, files=profiles(plans.STEP)),
        Reader(name="profiled-operators", read=operators, files=profiles(plans.OPERATOR)),
        Reader(name="kernel-times", read=read_times, files=({"times.csv": plans.TIMES},)),
    ]
