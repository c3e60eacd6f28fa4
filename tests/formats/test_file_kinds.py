"""A file that is given to another verb: the error names its kind, and the verb that reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from called import call

if TYPE_CHECKING:
    from pathlib import Path

FILES = {
    "ring.xml": '<algo name="r" ngpus="2">\n</algo>\n',
    "plan.json": '{"name": "p", "collective": "allgather", "gpus": []}\n',
    "t.csv": "NPUs Count,3\nLinks Count,3\n",
    "r.goal": "num_ranks 1\nrank 0 {\ncalc 5\n}\n",
    "step.0.et": "\x05trace",
    "r.anynet": "router 0 node 0 router 1 1\nrouter 1 node 1\n",
    "osu.txt": "# OSU MPI Allreduce Latency Test v7.4\n# Size       Avg Latency(us)\n8  4.52\n",
    "imb.txt": "# Benchmarking Allreduce\n# #processes = 4\n",
    "nccl.txt": "# nThread 1 nGpus 1 minBytes 8 maxBytes 8\n#  size  count  type\n",
    "debug.log": "node0:1:1 [0] NCCL INFO NCCL version 2.19.3\n",
    "p.toml": 'name = "p"\n[models.m]\nkind = "postal"\nalpha = "1 us"\n',
    "e.toml": 'platform = "cray_xc30"\ncollective = "all_reduce"\nsizes = "8 B"\nranks = 4\n',
    "r.schedule": "tutti schedule 1\n",
    "plan.tutti": "TUTTIPLN",
    "mesh.cfg": "// a mesh\ntopology = mesh;\nk = 4;\n",
    "m.py": "class M(SimpleTopology):\n    def makeTopology(self):\n        pass\n",
    "config.ini": "[root]\ntype=Root\n",
    "noxim.yaml": "# a mesh\nmesh_dim_x: 4\n",
    "w.txt": "MICRO\n1\nconv1 -1 5 NONE 0 5 NONE 0 5 ALLREDUCE 1048576 5\n",
    "n.yml": "# a ring\ntopology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 1 ]\nlatency: [ 1 ]\n",
    "design.json": '{"design_name": "d", "chiplets": "c.json"}\n',
    "s.json": '{"scheduling-policy": "LIFO"}\n',
    "pico.csv": "system,collective,algorithm,nodes,vector_bytes,median_us\n",
    "t.graphml": '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"></graphml>\n',
    "results.parquet": "PAR1",
}

MISPLACED = {
    "schedule verify ring.xml": "`tutti convert ring.xml ring.schedule`, then use `ring.schedule`",
    "schedule draw ring.xml": "`tutti convert ring.xml ring.schedule`",
    "schedule show plan.json": "`tutti convert plan.json plan.schedule`",
    "schedule verify t.csv": "`tutti convert t.csv t.schedule`",
    "run ring.xml": "`tutti convert ring.xml ring.schedule`",
    "run -a ring.xml --ranks 2": "`tutti convert ring.xml ring.schedule`",
    "calibrate ring.xml": "`tutti convert ring.xml ring.schedule`",
    "nccl doctor ring.xml": "`tutti convert ring.xml ring.schedule`",
    "schedule verify r.goal": "`tutti trace run r.goal`",
    "nccl doctor r.goal": "`tutti trace run r.goal`",
    "compare step.0.et": 'model = "chakra:step"',
    "schedule verify r.anynet": "set `file` in [platform.topology]",
    "compare osu.txt": "`tutti calibrate osu.txt`",
    "trace run osu.txt": "`tutti calibrate osu.txt`",
    "convert osu.txt x.schedule": "`tutti calibrate osu.txt`",
    "run imb.txt": "`tutti advise imb.txt`",
    "compare nccl.txt": "`tutti nccl doctor nccl.txt`",
    "noc run design.json": "`tutti noc from-rapidchiplet design.json`",
    "compare debug.log": "`tutti nccl doctor debug.log`",
    "schedule verify p.toml": 'platform = "p.toml" in an experiment',
    "trace run e.toml": "tutti run e.toml, or tutti compare e.toml",
    "calibrate r.schedule --ranks 4": "`tutti run r.schedule`",
    "run plan.tutti": "`tutti mpi show plan.tutti`",
    "schedule verify plan.tutti": "`tutti mpi show plan.tutti`",
    "compare results.parquet": "`tutti plot results.parquet`",
    "noc run mesh.cfg": "`tutti noc from-booksim mesh.cfg`",
    "noc run m.py": "`tutti noc from-garnet m.py num_cpus=16",
    "noc run config.ini": "`tutti noc from-garnet config.ini",
    "noc from-booksim noxim.yaml": "`tutti noc from-noxim noxim.yaml`",
    "compare mesh.cfg": "`tutti noc from-booksim mesh.cfg`",
    "train run w.txt": "`tutti train from-astrasim w.txt --network FILE --system FILE`",
    "run n.yml": "`tutti train from-astrasim WORKLOAD --network n.yml --system FILE`",
    "calibrate s.json": "`tutti train from-astrasim WORKLOAD --network FILE --system s.json`",
    "compare pico.csv": "`tutti advise pico.csv`",
    "run ring --ranks 2 --size 8 -p t.graphml": "set `file` in [platform.topology]",
    "run ring --ranks 2 --size 8 -p r.anynet": "`tutti convert r.anynet r.json`",
    "train from-astrasim mesh.cfg --network n.yml --system s.json": "`tutti noc from-booksim",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("kinds")
    for name, text in FILES.items():
        (made / name).write_text(text)
    return made


@pytest.mark.parametrize("line", MISPLACED)
def test_the_verb_that_reads_the_file_is_named(line: str, folder: Path) -> None:
    done = call(*line.split(), cwd=folder)
    assert done.returncode == 2
    assert MISPLACED[line] in done.stderr.partition("hint: ")[2]


@pytest.mark.parametrize(
    "line",
    ["convert ring.xml x.schedule", "trace run step.0.et", "calibrate imb.txt", "run e.toml"],
)
def test_errors_of_the_right_verb_remain(line: str, folder: Path) -> None:
    """A damaged file of the right kind gets the error of its reader."""
    done = call(*line.split(), cwd=folder)
    assert done.returncode == 2
    assert "which holds" not in done.stderr
    assert "is output of" not in done.stderr
    assert "looks like" not in done.stderr
