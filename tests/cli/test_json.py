"""With `--json`, every command prints one document, and nothing else on stdout."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from called import call
from commands import leaves
from tutti._core import format_time
from tutti.cli.app import app
from tutti.cli.document_schema import document_schema
from tutti.study import console
from tutti.study.document import SCHEMA, plain
from tutti.view.quantity import format_limit

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PAGE = (ROOT / "docs" / "reference" / "json.md").read_text("utf-8")
TABLES = {
    command: set(re.findall(r"`([\w]+)`", names))
    for command, names in re.findall(r"^\| `([\w -]+)` \| (`.*) \|$", PAGE, re.MULTILINE)
}

RING = ("--ranks", "4")
OSU = EXAMPLES / "19_calibrate_and_tune"
CALIBRATE = "--ranks 64 -a recursive_doubling --model postal -o out"
RAPIDCHIPLET = f"{EXAMPLES}/31_coming_from_garnet/rapidchiplet"
ASTRASIM = EXAMPLES / "13_astrasim"
SYSTEM = f"--network {ASTRASIM}/Ring_8.yml --system {ASTRASIM}/Ring.json -o out"
COMMANDS = [
    "compare ring --ranks 4 -b 8 -e 16 --no-report",
    f"search {EXAMPLES}/06_best_schedule/experiment.toml --ranks 6 --size 8 -o out",
    "run ring --ranks 4 --size 8",
    "init folder",
    f"sweep {EXAMPLES}/05_sweep/sweep.toml --status -o out",
    f"calibrate {OSU}/osu_allreduce.txt {CALIBRATE}",
    f"calibrate {OSU}/osu_latency.txt --ranks 64 --against {OSU}/osu_allreduce.txt -o against",
    "paper",
    "platforms",
    "platforms cray_xc30",
    "platforms cray_xc30 --toml",
    "convert --list",
    "convert ring written.goal --ranks 4 --size 1KiB",
    "trace run ring.goal",
    "schema noc",
    "schedule list --ranks 6",
    "schedule show ring --ranks 4",
    "schedule verify ring --ranks 4",
    "schedule draw ring --ranks 4 -o ring.dot",
    "nccl systems",
    "nccl explain --nodes 2",
    f"nccl doctor {EXAMPLES}/23_nccl_doctor/default.log",
    f"nccl topology {EXAMPLES}/23_nccl_doctor/topology.xml",
    "noc list",
    f"noc run {EXAMPLES}/16_single_cycle_collectives/broadcast.toml -o out",
    f"noc watch {EXAMPLES}/16_single_cycle_collectives/broadcast.toml -o out",
    f"noc from-booksim {EXAMPLES}/08_latency_under_load/mesh.cfg --write mesh.toml",
    f"noc from-garnet {EXAMPLES}/31_coming_from_garnet/config.ini --write garnet.toml",
    f"noc from-noxim {EXAMPLES}/31_coming_from_garnet/noxim.yaml --write noxim.toml",
    f"noc from-rapidchiplet {RAPIDCHIPLET}/design.json --write rapidchiplet.toml",
    "coherence list",
    "bypass map double_binary_tree:nccl",
    "bypass run ring:4x4 --size 1KiB",
    "train list",
    f"train from-astrasim {ASTRASIM}/two_layers.txt {SYSTEM}",
    "moe gpt:hidden=512,experts=16 --ranks 8 --samples 1",
    "glossary",
    "glossary plan",
    "energy list",
    "energy package --side 2",
    "mpi plan --ranks 4 all_reduce=ring",
    "mpi show plan.tutti",
]


def checked(text: str, code: int = 0) -> dict[str, Any]:
    """Returns the document of a call, which the schema describes."""
    document: dict[str, Any] = json.loads(text)
    schema = document_schema()
    kinds = {"string": str, "integer": int, "object": dict, "array": list}
    assert list(document) == schema["required"]
    for name, value in document.items():
        kind = schema["properties"][name].get("type")
        assert kind is None or isinstance(value, kinds[kind])
    assert document["schema"] == SCHEMA
    assert document["exit_code"] == code
    assert all(isinstance(row, dict) for rows in document["tables"].values() for row in rows)
    names = schema["properties"]["errors"]["items"]["required"]
    assert all(list(error) == names for error in document["errors"])
    return document


def test_every_command_with_its_own_stdout_has_the_option() -> None:
    found = dict(leaves(typer.main.get_command(app)))
    assert len(found) > 50
    del found["mpi exec"]  # stdout belongs to the program
    for name, command in found.items():
        helps = [one.help for one in command.params if "--json" in one.opts]
        assert helps == ["Print one JSON document instead of text."], name
    assert set(TABLES) <= set(found)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that commands read."""
    made = tmp_path_factory.mktemp("json")
    call(*["convert", "ring", "ring.goal", "--ranks", "4", "--size", "1KiB"], cwd=made)
    call(*["mpi", "plan", "--ranks", "4", "all_reduce=ring", "-o", "plan.tutti"], cwd=made)
    return made


@pytest.mark.parametrize("line", COMMANDS, ids=lambda line: line.split("/")[0])
def test_stdout_is_one_document(line: str, folder: Path) -> None:
    done = call(*line.split(), "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    document = checked(done.stdout)
    command = document["command"]
    assert line.startswith(command)
    assert document["result"] or document["tables"] or document["files"]
    assert set(document["tables"]) <= TABLES.get(command, set()), command
    assert all((folder / file).is_file() for file in document["files"])


def test_the_text_has_the_same_numbers(tmp_path: Path) -> None:
    line = ("run", "ring", *RING, "--size", "8")
    document = checked(call(*line, "--json", cwd=tmp_path).stdout)
    text = call(*line, cwd=tmp_path).stdout
    found = document["result"]
    assert format_time(found["time_ps"]) in text
    assert f"messages:        {found['messages']} with {found['message_bytes']} B" in text
    assert f"{format_limit(found['of_limit'])} % of this time" in text
    compared = call("compare", "ring", *RING, "-b", "8", "-e", "8", "--json", cwd=tmp_path)
    rows = checked(compared.stdout)["tables"]["fastest"]
    assert [row["time_ps"] for row in rows] == [found["time_ps"]]


def test_legends_of_tables_are_recorded(tmp_path: Path) -> None:
    line = ("bypass", "run", "ring:4x4", "--size", "1KiB", "--size", "2KiB")
    (legend,) = checked(call(*line, "--json", cwd=tmp_path).stdout)["legends"]
    assert legend.startswith("algbw: payload / time; speedup: ")
    assert " ".join(call(*line, cwd=tmp_path).stdout.split()).endswith(legend)


def test_errors_have_their_parts(tmp_path: Path) -> None:
    done = call("run", "none.toml", "--json", cwd=tmp_path)
    (error,) = checked(done.stdout, code=2)["errors"]
    assert (error["class"], error["source"]) == ("ConfigError", "none.toml")
    assert error["problem"] == "there is no such file"
    assert "error: none.toml: there is no such file" in done.stderr


def test_usage_errors_are_documents(tmp_path: Path) -> None:
    document = checked(call("noc", "run", "--json", "--bogus", cwd=tmp_path).stdout, code=2)
    assert document["command"] == "noc run"
    assert document["errors"][0]["problem"] == "no such option: --bogus"


def test_programs_keep_their_option(tmp_path: Path) -> None:
    refused = call("mpi", "exec", "--json", "--plan", "p", "--", "prog", cwd=tmp_path)
    error = checked(refused.stdout, code=2)["errors"][0]
    assert error["problem"] == "no such option: --json"
    assert "--out FILE writes the report as JSON" in error["hint"]
    assert call("mpi", "exec", "--plan", "p", "--", "prog", "--json", cwd=tmp_path).stdout == ""


def test_interrupted_commands_have_a_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tutti.collectives.study.comparison.measure", interrupted)
    done = call("compare", "ring", *RING, "--json", cwd=tmp_path)
    document = checked(done.stdout, code=130)
    assert document["tables"] == {"results": []}
    assert [Path(file).name for file in document["files"]] == ["results.parquet", "results.csv"]
    monkeypatch.setattr("tutti.cli.schedule.find_schedule", interrupted)
    done = call("schedule", "show", "ring", "--json", cwd=tmp_path)
    assert checked(done.stdout, code=130)["remarks"] == ["interrupted"]


def test_calls_share_nothing(tmp_path: Path) -> None:
    call("glossary", "plan", "--json", cwd=tmp_path)
    assert call("glossary", "plan", cwd=tmp_path).stdout.startswith("plan")
    console.record(time_ps=1)  # outside of a command
    assert "time_ps" not in call("glossary", "plan", "--json", cwd=tmp_path).stdout


def test_values_are_plain() -> None:
    values = {"nan": float("nan"), "path": Path("a"), "pair": (1, float("inf")), "none": None}
    assert plain(values) == {"nan": None, "path": "a", "pair": [1, None], "none": None}


def test_internal_errors_have_a_document(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("tutti.cli.schedule.find_schedule", broken)
    done = CliRunner().invoke(app, ["schedule", "show", "ring", "--json"])
    (error,) = checked(done.stdout, code=70)["errors"]
    assert (error["class"], error["problem"]) == ("RuntimeError", "broken")
