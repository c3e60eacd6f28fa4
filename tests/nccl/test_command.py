"""`tutti nccl`: what it shows and refuses."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from tutti.cli.app import app


def _call(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["nccl", *arguments], env={"COLUMNS": "160"})
    assert result.exit_code == code, result.output
    return result.output


def test_explains_one_size() -> None:
    shown = _call("explain", "--nodes", "2", "--size", "64MiB", "--nccl", "2.27")
    assert "all_reduce of 64 MiB on dgx_h100, 2 x 8 GPUs, NCCL 2.27.7" in shown
    assert "NCCL chooses NVLSTree with Simple" in shown
    assert "NVLS supports Simple only" in shown


def test_rows_of_one_size_fit_80_columns() -> None:
    arguments = ["nccl", "explain", "--nodes", "4", "--size", "4MiB"]
    shown = CliRunner().invoke(app, arguments, env={"COLUMNS": "80"}).output
    assert "65.5 us + 53.2 us at 78.88 GB/s" in shown
    assert "  CollNetDirect LL, LL128: CollNetDirect supports Simple only" in shown


def test_explains_a_range_of_sizes() -> None:
    shown = _call("explain", "--nodes", "4", "-b", "8", "-e", "1GiB", "-f", "64", "--algo", "Ring")
    assert shown.count("Ring") == 5
    assert "NVLS" not in shown


def test_prints_json() -> None:
    arguments = ("--nodes", "2", "-s", "8", "--env", "NCCL_NVLS_ENABLE=0", "--json")
    read = json.loads(_call("explain", *arguments))
    (size,) = read["tables"]["sizes"]
    assert (read["result"]["nccl"], size["size_bytes"]) == ("2.28.9", 8)
    assert size["choice"] == {"algorithm": "Tree", "protocol": "LL"}
    tree = size["candidates"][0]
    assert tree["time_us"] == pytest.approx(tree["latency_us"], rel=1e-3)
    nvls = [row for row in size["candidates"] if row["algorithm"] == "NVLSTree"]
    assert nvls[-1]["why"] == "NCCL_NVLS_ENABLE=0 disables NVLink SHARP"
    ranges = json.loads(_call("explain", "-b", "8", "-e", "32", "--json"))
    assert [one["size_bytes"] for one in ranges["tables"]["sizes"]] == [8, 16, 32]


def test_lists_systems() -> None:
    shown = _call("systems")
    assert "dgx_h100" in shown
    assert "inferred:" in shown


@pytest.mark.parametrize(
    "arguments",
    [
        ("--system", "dgx"),
        ("--nccl", "1.0"),
        ("--algo", "Rong"),
        ("--env", "NCCL_DEBUG=INFO"),
        ("--env", "NCCL_NTHREADS"),
        ("-b", "1K", "-e", "8"),
        ("-s", "many"),
        ("-s", "8", "-b", "8"),
        ("--nodes", "2", "--algo", "CollNetDirect"),
    ],
)
def test_refuses(arguments: tuple[str, ...]) -> None:
    _call("explain", *arguments, code=2)


def test_sends_and_receives_state_what_predicts_them() -> None:
    for collective, is_noted in (("all_to_all", True), ("broadcast", False)):
        words = ["nccl", "explain", "-c", collective, "-s", "16MiB"]
        text = " ".join(CliRunner().invoke(app, words).stdout.split())
        assert ("NCCL has no model of all_to_all" in text) == is_noted
        assert "round down" not in text
    words = ["nccl", "explain", "-c", "all_to_all", "--nodes", "3", "-b", "1000000", "-e", "4M"]
    text = " ".join(CliRunner().invoke(app, words).stdout.split())
    assert " 1000000 B P2P " in text
    assert (
        "1000000 B is not a multiple of 24 ranks x 4 B (float32), nor are 2 other sizes. " in text
    )
    assert "nccl-tests round down, to 999,936 B; `tutti run` takes such sizes only" in text
