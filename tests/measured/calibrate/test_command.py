"""`tutti calibrate`: what it prints, writes and refuses."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner, Result

from tutti.cli import app
from tutti.platforms import platform
from tutti.schedules.bits import bits_differ
from tutti.schedules.ir import schedule
from tutti.schedules.proving import messages_of

EXAMPLE = Path(__file__).parents[3] / "examples" / "19_calibrate_and_tune"
FILES = [str(EXAMPLE / "osu_latency.txt"), str(EXAMPLE / "osu_bw.txt")]
OUTPUTS = Path(__file__).parents[2] / "formats" / "outputs"


def calibrate(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["calibrate", *arguments])


def test_example_parameters_are_recovered(tmp_path: Path) -> None:
    done = calibrate(*FILES, "--name", "made", "--out", str(tmp_path), "--machine", "made up")
    assert done.exit_code == 0, done.output
    printed = [line for line in done.stdout.splitlines() if not line.startswith("wrote ")]
    assert max(map(len, printed)) <= 80
    model = platform(tmp_path / "made.toml").model
    assert model.kind == "pipelining_postal"
    for name, true in {"alpha_p": 1_340_000, "alpha_r": 340_000}.items():
        assert getattr(model, name).ps == pytest.approx(true, rel=0.02)
    text = (tmp_path / "made.toml").read_text()
    assert "# Machine: made up." in text
    assert "[models.loggp]" not in text
    assert {path.name for path in tmp_path.iterdir()} == {
        "made.toml", "calibration.parquet", "calibration.csv", "fit.svg"
    }  # fmt: skip


def test_systematic_deviation_gives_a_warning(tmp_path: Path) -> None:
    done = calibrate(*FILES[:1], "--model", "postal", "--out", str(tmp_path))
    assert "bends away" not in done.output
    file, head = tmp_path / "osu_latency.txt", (EXAMPLE / "osu_latency.txt").read_text()
    lines = [line for line in head.splitlines() if line.startswith("#")]
    lines += [f"{4**at:<10} {2.0**at:.2f}" for at in range(10)]
    file.write_text("\n".join(lines))
    done = calibrate(str(file), "--model", "postal", "--out", str(tmp_path))
    printed = " ".join(done.output.split())
    assert done.exit_code == 0, done.output
    assert "postal (mean): the model deviates from the data: median absolute" in printed
    assert "fit a narrower range" in printed


def test_collectives_need_their_algorithm(tmp_path: Path) -> None:
    file = str(OUTPUTS / "nccl.txt")
    done = calibrate(file, "--out", str(tmp_path))
    assert done.exit_code == 2
    assert "not used: 3 times of all_reduce: name their schedule" in " ".join(done.output.split())
    done = calibrate(file, "-a", "ring", "--model", "postal", "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    done = calibrate(str(OUTPUTS / "osu_full.txt"), "-a", "ring", "--out", str(tmp_path))
    assert done.exit_code == 2
    assert "--ranks N" in done.output


def test_a_library_is_compared_with_the_fastest_schedules(tmp_path: Path) -> None:
    arguments = [*FILES, "--out", str(tmp_path), "--model", "pipelining_postal", "--against"]
    done = calibrate(*arguments, str(EXAMPLE / "osu_allreduce.txt"), "--ranks", "64")
    assert done.exit_code == 0, done.output
    assert "all_reduce on 64 ranks: library, fastest schedule" in done.stdout
    frame = pl.read_csv(tmp_path / "library.csv")
    assert frame["size_bytes"].to_list() == [4**k for k in range(1, 11)]
    assert (frame["library_us"] > frame["predicted_us"]).all()  # recursive doubling everywhere
    # `tutti mpi plan` refuses dissemination:3, the fastest: ranks would get different bits.
    assert not any(bits_differ(schedule(name, ranks=64)) for name in frame["schedule"].unique())
    for file, words in {"osu_allreduce.txt": "--ranks N", "osu_bw.txt": "no times of"}.items():
        done = calibrate(*arguments, str(EXAMPLE / file))
        assert done.exit_code == 2
        assert words in done.output


def test_collectives_with_too_many_messages_to_fit_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = (
        str(OUTPUTS / "nccl.txt"),
        "-a",
        "ring",
        "--model",
        "postal",
        "--out",
        str(tmp_path),
    )
    messages = messages_of(schedule("ring", ranks=2)) or 0
    monkeypatch.setattr("tutti.measured.calibrate.points.MOST_FITTED", messages)
    assert calibrate(*arguments).exit_code == 0
    monkeypatch.setattr("tutti.measured.calibrate.points.MOST_FITTED", messages - 1)
    refused = calibrate(*arguments)
    output = " ".join(refused.output.split())
    assert refused.exit_code == 2
    assert f"all_reduce by ring on 2 ranks sends {messages:,} messages" in output
    assert f"at most {messages - 1:,}" in output


def test_lines_with_wrong_results_are_left_out(tmp_path: Path) -> None:
    text = (EXAMPLE / "osu_latency.txt").read_text()
    checked = text.replace("Avg Latency(us)", "Avg Latency(us)        Validation")
    file = tmp_path / "osu_latency.txt"
    lines = [line if line.startswith("#") else f"{line}   Pass" for line in checked.splitlines()]
    lines[5] = lines[5].replace("Pass", "Fail")
    file.write_text("\n".join(lines))
    done = calibrate(str(file), "--model", "postal", "--out", str(tmp_path))
    printed = "".join(done.output.split())
    assert done.exit_code == 0, done.output
    assert (
        "".join(f"discarded: {file}, line 6: wrong results of ping_pong of 4 B".split()) in printed
    )
    points = pl.read_parquet(tmp_path / "calibration.parquet")
    assert 4 not in points["size_bytes"]
    assert 8 in points["size_bytes"]


def multicasts(path: Path, model: str | None) -> Path:
    """As `tutti mpi bench multicast` writes them."""
    pl.DataFrame(
        [(peers, False, 10**6 * (2 + peers), model, model is not None) for peers in range(1, 9)],
        schema={"peers": pl.Int64, "blocking": pl.Boolean, "received_ps": pl.Int64,
                "model": pl.String, "emulated": pl.Boolean}, orient="row",
    ).write_parquet(path)  # fmt: skip
    return path


def test_platforms_of_emulated_distance_say_so(tmp_path: Path) -> None:
    file = multicasts(tmp_path / "m.parquet", "pipelining_postal(alpha_p=2 ms)")
    request = [str(file), "--model", "pipelining_postal", "--name", "made", "--out", str(tmp_path)]
    done = calibrate(*request)
    assert done.exit_code == 0, done.output
    printed = "istance was emulated by pipelining_postal(alpha_p=2 ms): no network was measured"
    text = (tmp_path / "made.toml").read_text()
    assert f"# D{printed}." in text
    summaries = [line for line in text.splitlines() if line.startswith(("summary", "source"))]
    assert len(summaries) == 4
    assert all(printed in line for line in summaries)
    origins = pl.read_parquet(tmp_path / "calibration.parquet")["origin"].unique().to_list()
    assert origins == [f"{file}; emulated pipelining_postal(alpha_p=2 ms)"]


def test_mixing_network_and_emulated_distance_is_refused(tmp_path: Path) -> None:
    files = [
        multicasts(tmp_path / "a.parquet", "postal()"),
        multicasts(tmp_path / "b.parquet", None),
    ]
    for others in ([str(files[1])], [FILES[0]]):
        done = calibrate(str(files[0]), *others, "--out", str(tmp_path))
        assert done.exit_code == 2, done.output
        assert "emulated distance in one fit" in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        ([], "no data to fit"),
        ([FILES[0], "--model", "loggp"], "the data do not determine loggp"),
        ([FILES[0], "--model", "loggps"], "did you mean `loggp`?"),
        (["nowhere.txt"], "no such file"),
        (["nowhere.parquet"], "there is no such file"),
        ([FILES[0], "-b", "2M"], "no model predicts any"),
    ],
)
def test_mistakes_are_refused(arguments: list[str], printed: str, tmp_path: Path) -> None:
    done = calibrate(*arguments, "--out", str(tmp_path))
    assert done.exit_code == 2, done.output
    assert printed in done.output
