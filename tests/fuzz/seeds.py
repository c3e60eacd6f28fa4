"""Valid files to mutate, one of each kind, and the commands that read them."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
OUTPUTS = ROOT / "tests" / "formats" / "outputs"


ACCESSES = b"# core operation number\n0 compute 9\n0 store 0x40\nbarrier\n1 load 64\n1 update 8\n"
"""A trace of memory accesses."""


@dataclass(frozen=True)
class Target:
    """A command and its files.

    Attributes:
        name: The name of the target.
        files: Its files by name; those in `fixed` are never mutated.
        call: The words after `tutti`.
        fixed: Files that are not mutated.
    """

    name: str
    files: dict[str, bytes]
    call: tuple[str, ...]
    fixed: tuple[str, ...] = ()


def targets(made: Path) -> list[Target]:
    """Every target; `made` is the folder that `made.make` has written."""
    import plans
    import training_seeds

    return [
        *_words(),
        *experiments(),
        *networks(),
        *training_seeds.targets(made),
        *plans.targets(),
        *benchmarks(),
        *measurements(),
        *manifests(),
        *_written(made),
    ]


def example(pattern: str, **changes: Any) -> bytes:
    """The tables of an example, with keys that make it short."""
    from mutations import toml_of

    (path,) = EXAMPLES.glob(pattern)
    tables = tomllib.loads(path.read_text("utf-8"))
    for key, value in changes.items():
        place = tables
        *owners, last = key.split("__")
        for owner in owners:
            place = place.setdefault(owner, {})
        place[last] = value
    return toml_of(tables).encode()


def _words() -> list[Target]:
    """Commands without files; the words of other commands are mutated, too."""
    experiment = example("01*/experiment.toml")
    sizes = ("-b", "8", "-e", "64", "-f", "2", "--ranks", "4,8", "-a", "ring")
    options = ("--set", "seed=3", "--top", "3", "--platform", "cray_xc30", "--no-report")
    calls = (
        ("schedule", "show", "recursive_multiplying:a3,a2", "--ranks", "6"),
        ("schedule", "list", "--ranks", "12", "--collective", "all_reduce"),
        ("schedule", "verify", "double_binary_tree:nccl", "--ranks", "8", "--root", "0"),
        ("energy", "package", "--side", "4", "--link", "simba_package"),
        ("bypass", "draw", "4x4:mesh,0=3,12=15", "-o", "o.svg"),
        ("bypass", "map", "ring:4x4", "--mesh", "4x4", "--method", "greedy", "--wires", "1"),
        ("bypass", "run", "ring:4x4", "--size", "4KiB", "--switch", "10 ns", "--rate", "1 GB/s"),
        ("bypass", "search", "ring:4x4", "--trials", "2", "--size", "4 KiB", "--seed", "3"),
        ("mpi", "plan", "-r", "4", "all_reduce:0-4K=ring", "--for-every", "mpich", "-o", "p"),
        ("tune", "--ranks", "4", "--platform", "cray_xc30", "-e", "64", "-a", "ring", "-o", "o"),
        (
            "coherence",
            "run",
            "-k",
            "radix_like",
            "--design",
            "smart_1d",
            "--scale",
            "tiny",
            "-o",
            "o",
        ),
        ("platforms", "cray_xc30"),
        ("schema", "platform"),
        ("train", "list"),
        ("noc", "list"),
    )
    return [
        *(Target(" ".join(call[:2]), {}, call) for call in calls),
        Target(
            "options",
            {"f.toml": experiment},
            ("compare", "f.toml", *sizes, *options, "-o", "o"),
            fixed=("f.toml",),
        ),
    ]


def experiments() -> list[Target]:
    small: dict[str, Any] = {"ranks": [4], "sizes": ["8 B", "1 KiB"], "algorithms": ["ring"]}
    compare = ("compare", "f.toml", "--no-report", "--threads", "1", "--out", "o")
    found = [
        Target(name, {"f.toml": example(f"{name}/experiment.toml", **small)}, compare)
        for name in ("01_which_all_reduce", "02_noise_and_skew")
    ]
    packets = {"ranks": 16, "sizes": ["1 KiB"]}
    one = {"ranks": 4, "sizes": ["64 B"], "algorithms": ["ring"]}
    hierarchical = {"ranks": [16], "sizes": ["64 B"]}
    sweep = {
        "experiment__ranks": 4,
        "experiment__algorithms": ["ring"],
        "sweep__grid": {
            "sizes": ["8 B", "64 B"],
            "platform.models.minimum.alpha_r": ["1 us", "2 us"],
        },
    }
    files = {
        "f.toml": example("04*/experiment.toml"),
        "pairs.schedule": (EXAMPLES / "04_schedule_by_hand/pairs.schedule").read_bytes(),
    }
    found += [
        Target("03", {"f.toml": example("03*/experiment.toml", **hierarchical)}, compare),
        Target("04", files, compare),
        Target("07", {"f.toml": example("07*/experiment.toml", **packets)}, compare),
        Target("09", {"f.toml": example("09*/experiment.toml", sizes=["1 KiB"])}, compare),
        Target("14", {"f.toml": example("14*/experiment.toml", sizes=["1 KiB"])}, compare),
        Target("17", {"f.toml": example("17*/experiment.toml", **packets)}, compare),
        Target(
            "run",
            {"f.toml": example("01*/experiment.toml", **one)},
            ("run", "f.toml", "--out", "o"),
        ),
        Target(
            "search",
            {"f.toml": example("06*/experiment.toml")},
            ("search", "f.toml", "--ranks", "6", "--size", "64", "--out", "o", "--threads", "1"),
        ),
        Target(
            "sweep",
            {"f.toml": example("05*/sweep.toml", **sweep)},
            ("sweep", "f.toml", "--status", "--out", "o"),
        ),
        Target(
            "overlap",
            {"f.toml": example("01*/experiment.toml", **one)},
            ("train", "overlap", "f.toml", "--workload", "gnmt", "--out", "o"),
        ),
        Target(
            "verify", {"f.schedule": files["pairs.schedule"]}, ("schedule", "verify", "f.schedule")
        ),
        Target(
            "draw",
            {"f.schedule": files["pairs.schedule"]},
            ("schedule", "draw", "f.schedule", "-o", "o.dot"),
        ),
        *(
            Target(f"platform {path.stem}", {"f.toml": path.read_bytes()}, ("platforms", "f.toml"))
            for path in sorted((ROOT / "python/tutti/platforms/presets").glob("*.toml"))[:4]
        ),
        *recordings(),
    ]
    return found


def recordings() -> list[Target]:
    base = {
        "platform": "cray_xc30",
        "collective": "all_reduce",
        "algorithms": ["ring"],
        "ranks": [4],
        "sizes": ["64 B"],
    }
    compare = ("compare", "f.toml", "--no-report", "--threads", "1", "--out", "o")
    from mutations import toml_of

    def recorded(name: str, text: str, **more: Any) -> Target:
        files = {"f.toml": toml_of(base | more).encode(), name: text.encode()}
        return Target(f"recorded {name}", files, compare, fixed=("f.toml",))

    noise = {"step": {"kind": "empirical", "file": "noise.csv"}}
    trace = {"detours": {"kind": "trace", "file": "trace.txt"}}
    arrival = {"kind": "per_rank", "file": "arrival.csv"}
    return [
        recorded("noise.csv", "detour_us\n1\n2\n2.5\n", noise=noise),
        recorded("trace.txt", "100 20\n300 40\n900 5\n", noise=trace),
        recorded("arrival.csv", "rank,arrival_us\n0,0\n1,2\n2,0\n3,1\n", arrival=arrival),
    ]


def networks() -> list[Target]:
    import network_seeds

    short = {"measure__warmup": 50, "measure__measure": 100, "measure__drain": 100}
    noc = example("08*/noc.toml", topology__build="mesh:4x4", **short)
    mesh = {
        "mesh__columns": 4,
        "mesh__rows": 4,
        "measure": {"warmup": 20, "measure": 100, "seeds": 1},
    }
    chip = example(
        "15*/chip.toml",
        mesh={"columns": 4, "rows": 4},
        designs=["smart_1d"],
        kernel=["radix_like"],
        scale="tiny",
    )
    return [
        Target("noc", {"f.toml": noc}, ("noc", "run", "f.toml", "--out", "o")),
        Target(
            "noc sweep",
            {"f.toml": noc},
            ("noc", "sweep", "f.toml", "--loads", "0.1", "--no-saturation", "--out", "o"),
        ),
        Target(
            "design space",
            {"noc.toml": noc, "f.toml": example("32*/sweep.toml")},
            ("sweep", "f.toml", "--status", "--out", "o"),
        ),
        *(
            Target(
                f"mesh {name}",
                {"f.toml": example(f"16*/{name}.toml", **mesh)},
                ("noc", "run", "f.toml", "--out", "o"),
            )
            for name in ("broadcast", "reduction")
        ),
        Target(
            "watch",
            {"f.toml": example("16*/broadcast.toml", **mesh)},
            ("noc", "watch", "f.toml", "--cycles", "20", "--out", "o"),
        ),
        Target(
            "coherence",
            {"f.toml": chip},
            ("coherence", "run", "f.toml", "--threads", "1", "--out", "o"),
        ),
        Target(
            "coherence trace",
            {
                "f.toml": b'kernel = "trace:t.txt"\n[mesh]\ncolumns = 2\nrows = 2\n',
                "t.txt": ACCESSES,
            },
            ("coherence", "run", "f.toml", "--threads", "1", "--out", "o"),
        ),
        *_booksim(),
        *network_seeds.targets(),
        *graphs(),
    ]


def _booksim() -> list[Target]:
    """Configurations of BookSim, and the files that they name."""
    booksim = (EXAMPLES / "08_latency_under_load/mesh.cfg").read_bytes()
    booksim = booksim.replace(b"k = 8", b"k = 4").replace(b"period = 1000", b"period = 50")
    anynet = (
        b"topology = anynet; network_file = n.anynet; routing_function = min; sample_period = 50;"
    )
    full = (ROOT / "validation/booksim/fullconn8.anynet").read_bytes()
    traffic_of_a_file = booksim.replace(b"traffic = uniform", b"traffic = %s(n)")
    assert traffic_of_a_file != booksim
    matrix = b"# 16 nodes\n" + b"".join(
        b" ".join(b"%g" % ((7 * a + b) % 3 / 2 * (a != b)) for b in range(16)) + b"\n"
        for a in range(16)
    )
    trace = b"".join(b"%d %d 0 %d %d\n" % (3 * n, n % 16, 5 * n % 16, n % 4 + 1) for n in range(40))
    return [
        Target("booksim", {"f.cfg": booksim}, ("noc", "from-booksim", "f.cfg", "--out", "o")),
        Target(
            "booksim write",
            {"f.cfg": booksim},
            ("noc", "from-booksim", "f.cfg", "--write", "o.toml"),
        ),
        *(
            Target(
                f"booksim {name}",
                {"f.cfg": traffic_of_a_file % name.encode(), "n": content},
                ("noc", "from-booksim", "f.cfg", "--out", "o"),
                fixed=("f.cfg",),
            )
            for name, content in (("matrix", matrix), ("trace", trace))
        ),
        Target(
            "anynet",
            {"f.cfg": anynet, "n.anynet": full},
            ("noc", "from-booksim", "f.cfg", "--out", "o"),
            fixed=("f.cfg",),
        ),
    ]


def graphs() -> list[Target]:
    """Topologies in files."""
    edge = {"rate": "10 GB/s", "latency": "100 ns"}
    nodes = [{"id": f"n{rank}", "kind": "npu", "rank": rank} for rank in range(4)]
    edges = [{"source": f"n{a}", "target": f"n{(a + 1) % 4}", **edge} for a in range(4)]
    linked = json.dumps(
        {"directed": False, "multigraph": False, "graph": {}, "nodes": nodes, "edges": edges}
    )
    keys = "".join(
        f'<key id="{key}" for="{of}" attr.name="{key}" attr.type="string"/>'
        for of, key in (("node", "kind"), ("edge", "rate"), ("edge", "latency"))
    )
    body = "".join(f'<node id="n{n}"><data key="kind">npu</data></node>' for n in range(4))
    body += "".join(
        f'<edge source="n{a}" target="n{(a + 1) % 4}"><data key="rate">10 GB/s</data>'
        f'<data key="latency">100 ns</data></edge>'
        for a in range(4)
    )
    space = "http://graphml.graphdrawing.org/xmlns"
    graphml = (
        f'<graphml xmlns="{space}">{keys}<graph edgedefault="undirected">{body}</graph></graphml>'
    )
    small: dict[str, Any] = {"ranks": 4, "sizes": ["1 KiB"], "algorithms": ["ring"]}
    call = ("compare", "f.toml", "--no-report", "--threads", "1", "--out", "o")
    found = []
    for name, text in (("g.json", linked), ("g.graphml", graphml.replace("><", ">\n<"))):
        topology = {
            "file": name,
            "routing": "minimal",
            "packets": {"size": "256 B", "buffer": "8 KiB"},
        }
        files = {
            "f.toml": example("07*/experiment.toml", platform__topology=topology, **small),
            name: text.encode(),
        }
        found.append(Target(name, files, call, fixed=("f.toml",)))
    return found


def benchmarks() -> list[Target]:
    """Logs of OSU, IMB and nccl-tests; those of the example are fitted in full."""
    calibrate = ("calibrate", "f.txt", "--ranks", "4", "-a", "ring", "--out", "o")
    examples = sorted((EXAMPLES / "19_calibrate_and_tune").glob("*.txt"))
    logs = [*examples, *sorted(OUTPUTS.iterdir())]
    return [
        *(Target(f"log {path.stem}", {"f.txt": path.read_bytes()}, calibrate) for path in logs),
        Target(
            "log of a tree",
            {"f.txt": (EXAMPLES / "19_calibrate_and_tune/osu_allreduce.txt").read_bytes()},
            (
                "calibrate",
                "f.txt",
                "--ranks",
                "64",
                "-a",
                "recursive_doubling",
                "--model",
                "postal",
                "--out",
                "o",
            ),
        ),
    ]


def measurements() -> list[Target]:
    """Job logs of several tools, CSV files of PICO and of OSU results, and allocations."""
    log = OUTPUTS.with_name("logs") / "job.log"
    tables = {
        "series": (
            "collective,algorithm,nodes,ranks_per_node,vector_bytes,gpu_buffers,median_us,p10_us\n"
            "all_reduce,ring_ompi,4,2,1024,no,9.5,9\nall_gather,ring_over,4x4x4,1,64,no,8.5,8\n"
        ),
        "osu": (
            ",size,avg_latency_us,experiment,nodes,env_type\n"
            "0,8.0,30.5,a/cpu/osu_allreduce,16,cpu\n1,16.0,31.5,a/cpu/osu_allreduce,16,cpu\n"
        ),
        "run": "highest,rank0,rank1\n9000,8000,9000\n8000,7000,8000\n",
    }
    series = (EXAMPLES / "22_advise/cluster.csv").read_text("utf-8").splitlines(keepends=True)
    advise = ("--measured-ranks", "4", "--ranks", "64", "-a", "ring", "--out", "o")
    return [
        *_placements("".join(series[:8])),
        Target("log of a job", {"f.txt": log.read_bytes()}, ("advise", "f.txt", *advise)),
        Target(
            "measurements of a cluster",
            {"f.csv": "".join(series[:40]).encode()},
            ("advise", "f.csv", "--ranks", "64", "--out", "o"),
        ),
        *(
            Target(
                f"measurements {name}",
                {"16_ring_over_int32.csv": text.encode()},
                ("advise", "16_ring_over_int32.csv", "--collective", "all_reduce", *advise),
            )
            for name, text in tables.items()
        ),
    ]


def _placements(series: str) -> list[Target]:
    """Means of algorithms, and hosts of measured jobs."""
    detail = "#Nnodes Message_size linear tuned\n2 64 9.5(0.1) 8.5(0.2)\n4 64 9.9(0.1) 8.8(0.2)\n"
    hosts = "system,timestamp,rank,host\nleonardo,a,0,lrdn0001\nleonardo,a,1,lrdn0200\n"
    return [
        Target(
            "details of tuning",
            {"detail.out": detail.encode()},
            ("advise", "detail.out", "--collective", "gather", "--ranks", "64"),
        ),
        Target(
            "allocations of jobs",
            {"a.csv": hosts.encode(), "f.csv": series.encode()},
            ("advise", "f.csv", "--allocations", "a.csv", "--ranks", "64"),
        ),
    ]


def manifests() -> list[Target]:
    """Lists of files of measurements, with what these do not state."""
    series = (EXAMPLES / "22_advise/cluster.csv").read_text("utf-8").splitlines(keepends=True)
    texts = {
        "toml": '[[file]]\npath = "f.csv"\nranks_per_node = 1\nsystem = "leonardo"\n',
        "csv": "path,ranks_per_node,system\nf.csv,1,leonardo\n",
    }
    return [
        Target(
            f"manifest {suffix}",
            {f"m.{suffix}": text.encode(), "f.csv": "".join(series[:40]).encode()},
            ("advise", "--manifest", f"m.{suffix}", "--ranks", "64", "--out", "o"),
            fixed=("f.csv",),
        )
        for suffix, text in texts.items()
    ]


def _written(made: Path) -> list[Target]:
    """What tutti itself writes and reads back."""

    def file(name: str) -> bytes:
        return (made / name).read_bytes()

    suffixes = ("results.parquet", "results.csv")
    plots = [
        Target(
            f"plot {kind} {name}", {name: file(name)}, ("plot", name, "--kind", kind, "-o", "o.svg")
        )
        for name in suffixes
        for kind in ("time", "busbw", "ranks", "map")
    ]
    sweep = ("plot", "swept.parquet", "--kind", "sweep", "--key", "sizes", "-o", "o.svg")
    return [
        *plots,
        Target("plot sweep", {"swept.parquet": file("swept.parquet")}, sweep),
        Target("plan", {"plan.tutti": file("plan.tutti")}, ("mpi", "show", "plan.tutti")),
        Target(
            "bench",
            {"bench.parquet": file("bench.parquet")},
            ("calibrate", "bench.parquet", "--model", "postal", "--out", "o"),
        ),
        Target(
            "against",
            {
                "bench.parquet": file("bench.parquet"),
                "f.txt": (EXAMPLES / "19_calibrate_and_tune/osu_latency.txt").read_bytes(),
            },
            ("calibrate", "f.txt", "--model", "postal", "--against", "bench.parquet", "--out", "o"),
            fixed=("f.txt",),
        ),
    ]
