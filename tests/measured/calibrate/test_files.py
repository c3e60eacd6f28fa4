"""Platform files of calibrations are read by the rest of tutti; points come with predictions."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import polars as pl
import pytest

from tutti.base.errors import ConfigError
from tutti.formats.measurements import read_measurements
from tutti.measured.calibrate import MODELS, Observation, fit, of_benchmarks, of_results
from tutti.measured.calibrate.against import against, choices
from tutti.measured.calibrate.files import RESIDUALS, Provenance, platform_text, residual_frame
from tutti.measured.calibrate.study import validate
from tutti.measured.calibrate.view import draw_against, draw_fits
from tutti.measured.errors import CalibrationError
from tutti.platforms import platform
from tutti.platforms.files.presets import load_platform
from tutti.schedules.errors import AlgorithmError

if TYPE_CHECKING:
    from pathlib import Path

POINTS = [
    *(Observation("one_way", 1.5 + 0.001 * size, size) for size in (1, 8, 512, 4096, 65536)),
    *(Observation("burst", 2.8 + 0.2 * b, 8, messages=b) for b in (1, 2, 4, 8, 16)),
]
ORIGIN = Provenance.now("mine", 'two "files"', "a machine")


def test_a_platform_file_holds_every_model_that_is_reported(tmp_path: Path) -> None:
    fits = [fit(model, POINTS) for model in MODELS.values()]
    path = tmp_path / "mine.toml"
    path.write_text(platform_text(fits, ORIGIN))
    found = platform(path)
    assert found.model.kind == "pipelining_postal"
    assert platform(path, model="postal").model.kind == "postal"
    text = path.read_text()
    assert "[models.loggp]" not in text
    assert "OMITTED, not determined: L, o" in text
    assert 'two \\"files\\"' in text
    assert "95 % of resampled fits" in text


@pytest.mark.parametrize(
    "text", ['"', "\\", "a\nb", "\x7f", "\t", "= [#]", "\N{GRINNING FACE}", "é"]
)
def test_any_text_in_a_platform_file_is_read_back(text: str) -> None:
    origin = Provenance.now(f"m{text}", f"file {text}", "a machine")
    found = tomllib.loads(platform_text([fit(MODELS["postal"], POINTS)], origin))
    assert found["name"] == f"m{text}"
    assert found["source"].endswith(f"file {text}")
    assert found["models"]["postal"]["alpha"].keys() == {"value", "source"}


def test_comments_precede_the_first_key() -> None:
    text = platform_text([fit(MODELS["postal"], POINTS)], ORIGIN)
    comments, _, keys = text.partition("\n\n")
    assert all(line.startswith("# ") for line in comments.splitlines())
    assert '# Measured: two "files".' in comments.splitlines()
    assert keys.startswith('name = "mine"\n')
    assert "\n[models.postal]\n" in keys
    assert '\nalpha = {value = "' in keys
    assert "\n[models]\n" not in keys


def test_undetermined_model_is_refused_with_reasons() -> None:
    found = fit(MODELS["loggp"], [p for p in POINTS if p.kind == "one_way"])
    with pytest.raises(CalibrationError, match="loggp: o: the data only determine 2 o \\+ L"):
        platform_text([found], ORIGIN)


def test_minima_have_separate_models(tmp_path: Path) -> None:
    fits = [fit(MODELS["postal"], POINTS, statistic=one) for one in ("median", "minimum")]
    path = tmp_path / "mine.toml"
    path.write_text(platform_text(fits, ORIGIN))
    assert platform(path, model="postal_minimum").name == "mine:postal_minimum"


def test_residual_frame_has_points_and_predictions(tmp_path: Path) -> None:
    fits = [fit(MODELS["postal"], POINTS), fit(MODELS["pipelining_postal"], POINTS)]
    frame = residual_frame(fits)
    assert frame.schema == pl.Schema(RESIDUALS)
    assert frame.height == 5 + 10
    assert draw_fits(tmp_path / "fit.svg", fits).stat().st_size > 1000


def results(factor: float = 1.0) -> pl.DataFrame:
    """Results of `tutti mpi bench`: blocks of three schedules on 4 and 8 ranks."""
    rows = [
        (
            "all_reduce",
            name,
            "schedule",
            ranks,
            8,
            1,
            block,
            int(factor * time * 1e6) + 1000 * block,
        )
        for ranks, name, time in (
            (4, "recursive_doubling", 3.0),
            (4, "recursive_multiplying:a4", 2.0),
            (8, "recursive_doubling", 4.5),
        )
        for block in range(3)
    ]
    names = [
        "collective",
        "schedule",
        "implementation",
        "ranks",
        "size_bytes",
        "each",
        "block",
        "time_ps",
    ]
    return pl.DataFrame(rows, schema=names, orient="row")


def test_results_become_points() -> None:
    points = of_results(results(), "median", source="r")
    assert [(p.kind, p.time_us, p.size) for p in points] == [
        ("collective", 3.001, 8), ("collective", 2.001, 8), ("collective", 4.501, 8)
    ]  # fmt: skip
    multicasts = pl.DataFrame({"peers": [1, 1, 2, 2], "blocking": [False, False, False, True],
                               "received_ps": [1_000_000, 3_000_000, 5_000_000, 9]})  # fmt: skip
    points = of_results(multicasts, "minimum", source="m")
    assert [(p.kind, p.time_us, p.messages) for p in points] == [
        ("multicast", 1.0, 1), ("multicast", 5.0, 2)
    ]  # fmt: skip
    with pytest.raises(ConfigError, match="tutti mpi bench"):
        of_results(pl.DataFrame({"a": [1]}), "median", source="r")


def test_calibrate_and_advise_accept_the_same_results(tmp_path: Path) -> None:
    """The library's collectives have no schedule; old results have no wrong elements."""
    native = results().with_columns(
        pl.lit("own").alias("implementation"), pl.lit(None, pl.String).alias("schedule")
    )
    file = tmp_path / "results.parquet"
    pl.concat([results(), native]).write_parquet(file)
    measured = read_measurements(file).rows
    scheduled = measured.filter(pl.col("library_algorithm").is_not_null())
    points = of_results(pl.read_parquet(file), "median", source="r")
    times = [point.time_us for point in points]
    assert times == pytest.approx(scheduled["time_us"].to_list())
    assert measured.height == 5  # native: two rank counts
    unnamed = results().with_columns(pl.lit(None, pl.String).alias("schedule"))
    with pytest.raises(ConfigError, match="schedule"):
        of_results(unnamed, "median", source="r")


def test_blocks_with_wrong_results_are_excluded() -> None:
    wrong = results().with_columns((pl.col("block") == 0).cast(pl.Int64).alias("wrong"))
    assert of_results(wrong, "minimum", source="r")[0].time_us == 3.001
    every = results().with_columns(pl.lit(1).alias("wrong"))
    assert of_results(every, "minimum", source="r") == []


def test_models_against_results(tmp_path: Path) -> None:
    model = fit(MODELS["pipelining_postal"], POINTS)
    frame = against(results(), {"minimum": model, "median": model}, source="r")
    assert frame.height == 6
    found = choices(frame)
    assert found.select("chosen", "fastest", "loss").unique().rows() == [
        ("recursive_multiplying:a4", "recursive_multiplying:a4", 0.0)
    ]
    assert draw_against(tmp_path / "a.png", frame).is_file()


def test_a_larger_error_of_collectives_is_that_of_the_platform(tmp_path: Path) -> None:
    fits = [fit(MODELS["pipelining_postal"], POINTS, statistic="median")]
    path, measured = tmp_path / "mine.toml", tmp_path / "results.parquet"
    path.write_text(platform_text(fits, ORIGIN))
    before = load_platform(path).calibration
    assert before is not None
    assert before.share < 0.02
    results().with_columns(time_ps=pl.col("time_ps") * 2).write_parquet(measured)
    validate(measured, fits, platform(path), tmp_path, ranks=None, collective=None)
    after = load_platform(path).calibration
    assert after is not None
    assert after.share == pytest.approx(0.5, abs=0.02)  # half of the measured time is predicted


def test_collectives_that_an_algorithm_lacks_are_not_used(tmp_path: Path) -> None:
    """A log of several collectives; alone, they are an error."""
    log = tmp_path / "job.txt"
    table = "# OSU MPI {} Latency Test v5.6\n# Size       Avg Latency(us)\n4 1.50\n8 1.60\n"
    log.write_text(table.format("Broadcast") + table.format("Allreduce"))
    found = of_benchmarks(read_measurements(log, ranks=4).rows, algorithm="ring")
    assert len(found.points) == 2
    assert found.unused == {"broadcast, which ring does not perform": 2}
    log.write_text(table.format("Broadcast"))
    with pytest.raises(AlgorithmError, match="ring does not perform broadcast"):
        of_benchmarks(read_measurements(log, ranks=4).rows, algorithm="ring")
