"""`tutti calibrate --ranks-per-node`: one platform from logs within a node and between nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from called import call
from osu_logs import osu_log
from tutti import schedule, simulate
from tutti.base.errors import ConfigError
from tutti.measured.calibrate.live import one_rank_per_host, probe
from tutti.measured.calibrate.sources import Sources, require_hosts
from tutti.measured.errors import CalibrationError
from tutti.platforms.files.builder import machine
from tutti.platforms.files.presets import load_platform
from tutti.platforms.nodes import ranks_per_node, with_ranks_per_node

if TYPE_CHECKING:
    from pathlib import Path
from types import SimpleNamespace
from typing import Any

WITHIN = {"alpha_p": 0.3, "alpha_r": 0.2, "beta": 0.05e-3}
BETWEEN = {"alpha_p": 1.4, "alpha_r": 0.2, "beta": 0.08e-3}
ONLY = ("--model", "pipelining_postal", "--ranks-per-node", "4", "--out", "o")


def logs(
    folder: Path, within: dict[str, float], between: dict[str, float], *, stated: bool = True
) -> tuple[str, str]:
    (folder / "in.txt").write_text(osu_log(**within, nodes=1 if stated else None))
    (folder / "out.txt").write_text(osu_log(**between, nodes=2 if stated else None))
    return "in.txt", "out.txt"


def run(folder: Path, *arguments: str, code: int = 0) -> str:
    done = call("calibrate", *arguments, cwd=folder)
    text = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == code, text
    return text


@pytest.mark.parametrize("faster", ["within", "between"])
def test_messages_of_both_places_are_recovered_within_5_percent(
    tmp_path: Path, faster: str
) -> None:
    """Shared memory can have less bandwidth than a network: messages then avoid its links."""
    within = WITHIN if faster == "within" else WITHIN | {"beta": 0.12e-3}
    run(tmp_path, *logs(tmp_path, within, BETWEEN), *ONLY)
    raw = load_platform(tmp_path / "o" / "calibrated.toml")
    assert ranks_per_node(raw) == 4
    message = schedule("binomial", collective="broadcast", ranks=2)
    for per_node, true in ((4, within), (1, BETWEEN)):
        placed = machine(
            with_ranks_per_node(raw, per_node, source=""), "pipelining_postal", source=""
        )
        for size in (8, 1 << 20):
            expected = true["alpha_p"] + true["alpha_r"] + size * true["beta"]
            time = simulate(message, placed, size=f"{size} B").completion_ps / 1e6
            assert time == pytest.approx(expected, rel=0.05)


def test_the_platform_states_its_error_and_what_was_measured(tmp_path: Path) -> None:
    text = run(tmp_path, *logs(tmp_path, WITHIN, BETWEEN | {"alpha_r": 0.4}), *ONLY)
    assert "alpha_r is 201 ns within a node and 40" in text
    assert "a platform has one value for all levels, the former, so each further" in text
    calibration = load_platform(tmp_path / "o" / "calibrated.toml").calibration
    assert calibration is not None
    assert 0 < calibration.share < 0.05
    assert calibration.hosts == 2


def test_one_value_for_all_levels_is_stated_even_if_both_are_near(tmp_path: Path) -> None:
    text = run(tmp_path, *logs(tmp_path, WITHIN, BETWEEN), *ONLY)
    assert "a platform has one value for all levels, the former" in text
    assert "off by the difference" not in text
    written = (tmp_path / "o" / "calibrated.toml").read_text()
    assert "The costs of further messages of a burst are those within a node" in written


def test_files_that_state_no_hosts_are_named(tmp_path: Path) -> None:
    inner, outer = logs(tmp_path, WITHIN, BETWEEN, stated=False)
    assert "no file was measured between nodes" in run(tmp_path, inner, outer, *ONLY, code=2)
    run(tmp_path, inner, "--between", outer, *ONLY)
    assert (tmp_path / "o" / "calibrated.toml").exists()


def test_exchanged_files_are_refused(tmp_path: Path) -> None:
    inner, outer = logs(tmp_path, WITHIN, BETWEEN, stated=False)
    text = run(tmp_path, outer, "--between", inner, *ONLY, code=2)
    assert "were the measurements exchanged?" in text
    inner, outer = logs(tmp_path, WITHIN, BETWEEN)
    assert "was measured within a host" in run(tmp_path, outer, "--between", inner, *ONLY, code=2)


def test_one_fit_of_both_places_is_reported(tmp_path: Path) -> None:
    text = run(tmp_path, *logs(tmp_path, WITHIN, BETWEEN), *ONLY[:2], "--out", "o")
    assert "files of one host and of two are in one fit" in text
    both = (tmp_path / "in.txt").read_text() + (tmp_path / "out.txt").read_text()
    (tmp_path / "both.txt").write_text(both)
    assert "are in one fit" in run(tmp_path, "both.txt", *ONLY[:2], "--out", "o")
    assert "divide the file" in run(tmp_path, "both.txt", *ONLY, code=2)
    text = run(tmp_path, "in.txt", "--nodes", "4", code=2)
    assert "needs the number of ranks on a node" in text
    text = run(tmp_path, *ONLY, "--against", "results.parquet", code=2)
    assert "does not apply to --ranks-per-node" in text


def test_live_runs_are_on_the_hosts_that_they_are_for() -> None:
    assert one_rank_per_host("mpich") == ["-ppn", "1"]
    with pytest.raises(CalibrationError, match="two hosts are unknown"):
        one_rank_per_host("other")
    require_hosts(Sources(hosts={2}), 2)
    with pytest.raises(ConfigError, match="not on 2 hosts"):
        require_hosts(Sources(hosts={1}), 2)


def test_a_live_run_on_a_single_host_states_that_two_are_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The launcher prints only that it has no place for the second rank."""
    failed = SimpleNamespace(code=213, stderr="App: tutti_mpi_bench", stdout="")
    monkeypatch.setattr("tutti.mpi.launch.run_ranks", lambda *_, **_options: failed)
    monkeypatch.setattr("tutti.mpi.library.built", lambda *_, **_options: SimpleNamespace(bench=""))
    mpi: Any = SimpleNamespace(starts="openmpi")
    with pytest.raises(CalibrationError, match="job of two hosts"):
        probe(mpi, samples=3, options=one_rank_per_host("openmpi"))
    with pytest.raises(CalibrationError) as other:
        probe(mpi, samples=3, options=[])
    assert "two hosts" not in str(other.value)
