"""`tutti coherence` from the command line: what it shows, writes and refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from called import call

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

pytestmark = pytest.mark.timeout(600)
"""Starting many programs is slow on a busy machine."""


CHIP = """
kernel = ["radix_like", "swaptions_like"]
scale = "tiny"
designs = ["baseline_collective", "sfo_complete"]
[mesh]
columns = 4
rows = 4
[chip]
protocol = "ht"
"""


def tutti(*arguments: str | Path, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = call("coherence", *arguments, cwd=cwd)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def test_run_prints_and_writes_results(tmp_path: Path) -> None:
    (tmp_path / "chip.toml").write_text(CHIP, encoding="utf-8")
    done = tutti("run", "chip.toml", "-o", "found", cwd=tmp_path)
    assert "radix_like" in done.stdout
    assert "sfo_complete" in done.stdout
    rows = pl.read_parquet(tmp_path / "found" / "results.parquet")
    assert rows["design"].to_list() == ["baseline_collective", "sfo_complete"] * 2
    assert pl.read_parquet(tmp_path / "found" / "misses.parquet").height == 12
    flows = pl.read_parquet(tmp_path / "found" / "flows.parquet")
    assert flows.filter(pl.col("cast") == "responses").height == 4
    page = (tmp_path / "found" / "report.html").read_text("utf-8")
    assert "Components of miss latency" in page
    assert "are not these benchmarks" in page


def test_options_replace_a_file_and_override_it(tmp_path: Path) -> None:
    size = ("--set", "mesh.columns=4", "--set", "mesh.rows=4", "--scale", "tiny")
    done = tutti(
        "run", "-k", "water_like", "--protocol", "tc", "--design", "sfo_greedy", *size, cwd=tmp_path
    )
    assert "equals the serial program" in done.stdout
    assert "persistent" in done.stdout
    (tmp_path / "chip.toml").write_text(CHIP, encoding="utf-8")
    tutti("run", "chip.toml", "-k", "fft_like", "--protocol", "tc", "-o", "found", cwd=tmp_path)
    rows = pl.read_parquet(tmp_path / "found" / "results.parquet")
    assert set(rows["kernel"]) == {"fft_like"}
    assert set(rows["protocol"]) == {"tc"}


def test_everything_is_listed(tmp_path: Path) -> None:
    done = tutti("list", cwd=tmp_path)
    for name in ("canneal_like", "ht", "tc", "baseline_collective"):
        assert name in done.stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "nothing to run"),
        (["-k", "watr_like"], "did you mean `water_like`?"),
        (["-k", "fft_like", "--scale", "tiny"], "expected 1 to 16, one per row of its matrix"),
        (["-k", "all", "--scale", "tiny"], "`cores = 9` suits fft_like, lu_like, barnes_like"),
        (["-k", "fft_like", "--scale", "huge"], "error: --scale: unknown scale `huge`"),
        (["-k", "fft_like", "--protocol", "mesi"], "error: --protocol: unknown protocol `mesi`"),
        (
            ["-k", "fft_like", "--protocol", "ht,tc"],
            "hint: run it once with `--protocol ht` and once with `--protocol tc`",
        ),
        (["-k", "fft_like", "--design", "sfo_gredy"], "did you mean `sfo_greedy`?"),
        (["-k", "fft_like", "--design", "torus"], "error: --design: unknown mesh design"),
        (["-k", "fft_like", "--design", "torus"], "hint: `tutti coherence list` describes them"),
        (["-k", "fft_like", "--set", "chip.l1_bytes=100"], "error: --set: chip.l1_bytes: "),
        (["-k", "fft_like", "--set", "chip.homes=[0, 99]"], "error: --set: chip.homes: "),
        (
            ["-k", "a", "--set", "designs=smart_1d,b"],
            'a list needs brackets: designs = ["smart_1d", "b"]',
        ),
        (["-k", "a", "--set", "protocol=tc"], "did you mean `chip.protocol`?"),
        (["chip.toml", "--set", "kernel=fft_like,radix_like"], '["fft_like", "radix_like"]'),
        (["-k", "water_like", "--set", "mesh.hpc_max=12"], "error: --set: mesh.hpc_max: 12 hops"),
        (["-k", "water_like", "--set", "mesh.hpc_max=12"], 'chip.shared_hint = "never"'),
        (["-k", "fft_like", "--set", "chip.l3_bytes=100"], "l3_bytes"),
        (["missing.toml"], "missing.toml"),
    ],
)
def test_mistakes_are_reported_with_their_location(
    arguments: list[str], expected: str, tmp_path: Path
) -> None:
    (tmp_path / "chip.toml").write_text(CHIP, encoding="utf-8")
    done = tutti("run", *arguments, cwd=tmp_path, code=2)
    assert expected in done.stderr
    assert "Traceback" not in done.stderr


def test_mistakes_in_the_file_name_the_file_despite_options(tmp_path: Path) -> None:
    (tmp_path / "chip.toml").write_text(CHIP.replace("sfo_complete", "sfo_comple"), "utf-8")
    done = tutti("run", "chip.toml", "-k", "fft_like", "--protocol", "tc", cwd=tmp_path, code=2)
    assert "error: chip.toml: designs[1]: unknown mesh design `sfo_comple`" in done.stderr


def test_file_of_another_kind_is_recognised(tmp_path: Path) -> None:
    text = '[mesh]\ndesign = "sfo_greedy"\n[traffic]\nkind = "broadcast"\nrate = 0.004\n'
    (tmp_path / "mesh.toml").write_text(text, encoding="utf-8")
    done = tutti("run", "mesh.toml", cwd=tmp_path, code=2)
    assert "tutti noc run mesh.toml" in done.stderr
    assert "kernels on a chip, with kernel\n" in done.stderr
