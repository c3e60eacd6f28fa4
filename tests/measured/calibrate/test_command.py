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
    assert "".join(f"{file}, line 6: left out 1 row: wrong results".split()) in printed
    points = pl.read_parquet(tmp_path / "calibration.parquet")
    assert 4 not in points["size_bytes"]
    assert 8 in points["size_bytes"]


def test_validation_failures_are_reported_in_both_inputs(tmp_path: Path) -> None:
    """The library's file has wrong results, too: they are not compared, and not lost."""
    failed = tmp_path / "all_reduce_perf.txt"
    failed.write_text((OUTPUTS / "nccl.txt").read_text())
    arguments = [*FILES, "--out", str(tmp_path), "--model", "pipelining_postal"]
    done = calibrate(*arguments, "--against", str(failed))
    assert done.exit_code == 0, done.output
    assert "left out 1 row: wrong results" in " ".join(done.output.split())
    assert pl.read_csv(tmp_path / "library.csv")["size_bytes"].to_list() == [1 << 20, 2 << 20]


IMB = """# Benchmarking Allreduce
# #processes = 8
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
            0         1000         0.04         0.05         0.04
            4         1000         5.10         5.30         5.20
         1024         1000         8.10         8.40         8.20
      1048576           40       900.10       930.00       910.00
# Benchmarking Allreduce
# #processes = 32
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
            0         1000         0.04         0.05         0.04
            4         1000         9.10         9.30         9.20
         1024         1000        14.10        14.40        14.20
      1048576           40      1100.10      1130.00      1110.00
"""


def test_collectives_of_no_bytes_are_not_fitted(tmp_path: Path) -> None:
    """Libraries return at once: IMB measures 0.04 us."""
    file = tmp_path / "imb.txt"
    file.write_text(IMB)
    arguments = (str(file), "-a", "recursive_doubling", "--model", "postal", "-o", str(tmp_path))
    done = calibrate(*arguments)
    assert done.exit_code == 0, done.output
    assert "not used: 2 times of all_reduce of 0 B" in " ".join(done.output.split())
    points = pl.read_parquet(tmp_path / "calibration.parquet")
    assert points["size_bytes"].to_list() == 2 * [4, 1024, 1 << 20]
    assert "postal mean alpha 2.08 us" in " ".join(done.output.split())
    refused = calibrate(*arguments, "--ranks", "16")
    assert refused.exit_code == 2
    assert "expected: 8, 32 ranks, as the file states" in refused.output
    library = str(EXAMPLE / "osu_allreduce.txt")  # states no ranks
    needed = calibrate(*arguments, "--ranks", "16", "--against", library)
    assert needed.exit_code == 0, needed.output
    assert "16 ranks is not used" in " ".join(needed.output.split())
    assert "all_reduce on 16 ranks" in needed.stdout


FULL = """$ srun -n 4 osu_allreduce -d cuda --full -m 1048576:16777216
# OSU MPI-CUDA Allreduce Latency Test v7.0
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
1048576               610.20            600.10            620.90         10
16777216             8630.58           8619.50           8642.46         10
"""


def test_as_many_points_as_parameters_determine_no_interval(tmp_path: Path) -> None:
    file = tmp_path / "full.txt"
    file.write_text(FULL)
    done = calibrate(str(file), "-a", "ring", "--model", "postal", "-o", str(tmp_path))
    assert done.exit_code == 0, done.output
    printed = " ".join(done.output.split())
    assert "alpha 12.6 us not determined" in printed
    assert "no confidence interval: 2 points for 2 parameters" in printed
    text = (tmp_path / "calibrated.toml").read_text()
    # Three steps of a ring on four ranks send 1.5 times the size: 8020.38 us for 15 MiB.
    assert "beta 0.34 ns/B" in printed
    assert "determine no interval" in text
    assert "95 %" not in text
    # A repetition adds nothing: its time is the same.
    file.write_text(FULL + FULL.replace("620.90", "620.91"))
    again = calibrate(str(file), "-a", "ring", "--model", "postal", "-o", str(tmp_path))
    assert "alpha 12.6 us not determined" in " ".join(again.output.split())


@pytest.mark.parametrize(
    ("title", "printed"),
    [
        ("Multiple Bandwidth / Message Rate", "measures several pairs at once: run osu_bw"),
        ("Non-blocking Allreduce Latency", "overlap with computation: run osu_allreduce"),
    ],
)
def test_benchmarks_that_cannot_serve_are_refused_with_one_that_does(
    title: str, printed: str, tmp_path: Path
) -> None:
    file = tmp_path / "osu.txt"
    file.write_text(f"# OSU MPI {title} Test v7.4\n# Size   MB/s   Messages/s\n1   5.1   5100.0\n")
    done = calibrate(str(file), "--out", str(tmp_path))
    assert done.exit_code == 2
    assert printed in " ".join(done.output.split())


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
