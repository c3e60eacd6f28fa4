"""Commands import only what they use: imports take most of the time of a short command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from called import call

ROOT = Path(__file__).parents[2]

CALL = """
import sys
from tutti.cli.app import main
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
open(PATH, "w").write("\\n".join(sys.modules))
"""

NEVER = """networkx yaml plotly.graph_objs scipy tutti.bypass tutti.explore
tutti.cli.noc_list tutti.networks.coherence tutti.sweeps tutti.workloads.experts"""
"""Modules that none of the commands uses."""

LIBRARIES = "tutti.measured tutti.nccl"
"""Modules that only commands about libraries and traces use."""

PAIR = """num_ranks 2

rank 0 {
l1: send 1024b to 1 tag 0
}

rank 1 {
l1: recv 1024b from 0 tag 0
}
"""

SHORT = "--set measure.measure=500 --set measure.warmup=100"

CASES = {
    "--help": """pydantic rich tomllib numpy polars tutti._core tutti.base.files tutti.collectives
        tutti.platforms tutti.schedules tutti.view""",
    "schedule show ring --ranks 4": """numpy polars rich.console tutti.collectives tutti.energy
        tutti.formats tutti.networks tutti.platforms tutti.schedules.view tutti.topologies
        tutti.training tutti.view tutti.workloads""",
    "nccl explain --nodes 2 --size 64MiB": """numpy polars jinja2 tutti.collectives tutti.energy
        tutti.formats tutti.networks tutti.platforms tutti.topologies tutti.training
        tutti.workloads""",
    f"noc run --mesh 4x4 --rate 0.1 {SHORT} -o {{folder}}": """matplotlib.figure numpy plotly
        tutti.collectives tutti.formats tutti.platforms tutti.schedules tutti.training
        tutti.workloads""",
    f"noc run --mesh 4x4 --rate 0.1 {SHORT} --no-files": """jinja2 matplotlib.figure numpy plotly
        polars tutti.base.glossary tutti.collectives tutti.energy.technology tutti.formats
        tutti.networks.mesh tutti.platforms tutti.schedules tutti.topologies.view tutti.training
        tutti.view.charts tutti.workloads""",
    "trace run {folder}/pair.goal": """jinja2 matplotlib.figure numpy plotly polars rich.progress
        tutti.collectives.frames tutti.formats.booksim tutti.training""",
    "convert {folder}/ring.xml {folder}/ring.schedule": """numpy polars rich.progress
        tutti.base.glossary tutti.collectives tutti.energy tutti.formats.goal tutti.formats.nccl
        tutti.networks tutti.platforms tutti.schedules.view tutti.topologies tutti.training
        tutti.view tutti.workloads""",
    "run ring --ranks 4 --size 1KiB --out {folder}": """google.protobuf matplotlib perfetto plotly
        rich.progress tutti.formats
        tutti.training tutti.workloads.zoo""",
    "compare examples/01_which_all_reduce/experiment.toml --ranks 4 -a ring --out {folder}": """
        matplotlib.figure numpy plotly rich.progress tutti.formats tutti.training
        tutti.workloads.zoo""",
    "train run examples/10_training_step/training.toml --set model=dlrm_small --out {folder}": """
        matplotlib.figure tutti.collectives.files tutti.formats tutti.platforms.conditions
        tutti.platforms.files.presets tutti.training.overlap tutti.training.plan
        tutti.training.search tutti.training.slowdowns""",
}
"""Command lines, and modules that they do not import."""


@pytest.mark.parametrize("line", CASES)
def test_a_command_imports_what_it_uses(line: str, tmp_path: Path) -> None:
    call("convert", "ring", tmp_path / "ring.xml", "--ranks", "4", "--to", "msccl-xml", cwd=ROOT)
    (tmp_path / "pair.goal").write_text(PAIR, encoding="utf-8")
    modules = tmp_path / "modules.txt"
    code = CALL.replace("PATH", repr(str(modules)))
    words = line.format(folder=tmp_path).split()
    # A new process, as the modules of other tests are loaded in this one.
    subprocess.run([sys.executable, "-c", code, *words], cwd=ROOT, check=True, capture_output=True)
    loaded = set(modules.read_text(encoding="utf-8").split())
    libraries = "" if line.startswith(("nccl", "trace")) else LIBRARIES
    assert not loaded & {*CASES[line].split(), *NEVER.split(), *libraries.split()}
