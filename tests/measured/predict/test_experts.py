"""Predictions of dispatch and combine: recovery, hold-outs, and errors of files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from predictors.experts import ExpertSetup, Measured, cross_validated, fit, predict

from tutti.base.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

# deepseek-ai/DeepEP, low-latency kernels on H800, 400 Gb/s NIC per GPU, 8 to 32 ranks.
TRAIN = """mode,experts_ranks,latency_us
dispatch,8,77
dispatch,16,118
dispatch,32,155
combine,8,114
combine,16,195
combine,32,273
"""


@pytest.fixture
def train(tmp_path: Path) -> Path:
    path = tmp_path / "train.csv"
    path.write_text(TRAIN)
    return path


def test_the_message_size_matches_the_measured_bandwidth() -> None:
    # 98 GB/s x 77 us and 127 GB/s x 114 us, of which a benchmark masks up to 10 of 1,024 copies.
    layer = ExpertSetup().layer
    assert 1024 * layer.token_bytes("dispatch") == pytest.approx(98e3 * 77, rel=0.02)
    assert 1024 * layer.token_bytes("combine") == pytest.approx(127e3 * 114, rel=0.02)


def test_each_rank_count_is_predicted_from_the_others(train: Path) -> None:
    frame = cross_validated(train)
    ratio = (frame["predicted_us"] / frame["measured_us"]).to_list()
    assert all(0.9 < one < 1.1 for one in ratio)
    assert frame["measured_us"].is_between(frame["low_us"], frame["high_us"]).all()


def test_parameters_stay_within_the_hardware(train: Path) -> None:
    del train
    rows = [line.split(",") for line in TRAIN.split()[1:]]
    model = fit([Measured(mode, int(ranks), float(us)) for mode, ranks, us in rows])  # type: ignore[arg-type] # of the table
    found = model.parameters
    assert 40 < found["nic_GBps"] < 50
    assert 130 < found["nvlink_GBps"] < 200
    assert 15 < found["base_us"] < 60


def test_intervals_widen_beyond_the_measured_ranks(train: Path, tmp_path: Path) -> None:
    questions = tmp_path / "questions.csv"
    questions.write_text("question,mode,experts_ranks\n3,dispatch,64\n7,dispatch,256\n")
    frame = predict(train, questions)
    assert frame["question"].to_list() == [3, 7]
    width = (frame["high_us"] / frame["low_us"]).to_list()
    assert width[0] < width[1]
    # At most the bytes of all copies at the rate of the NIC, with the base time and the imbalance.
    assert 155 < frame["predicted_us"][0] < frame["predicted_us"][1] < 230


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mode,experts_ranks\ndispatch,8\n", "lacks the column latency_us"),
        ("mode,experts_ranks,latency_us\nsend,8,1\n", "line 2: mode is not valid"),
        ("mode,experts_ranks,latency_us\ncombine,7,1\n", "line 2: experts_ranks is not valid"),
        ("mode,experts_ranks,latency_us\ncombine,8,0\n", "line 2: latency_us is not valid"),
        ("mode,experts_ranks,latency_us\ncombine,8,nan\n", "line 2: latency_us is not valid"),
        ("mode,experts_ranks,latency_us\ncombine,8\n", "line 2: latency_us is not valid"),
        ("mode,experts_ranks,latency_us\n", "has no rows"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "train.csv"
    path.write_text(text)
    with pytest.raises(ConfigError, match=re.escape(message)):
        cross_validated(path)


def test_one_rank_count_cannot_be_cross_validated(tmp_path: Path) -> None:
    path = tmp_path / "train.csv"
    path.write_text("mode,experts_ranks,latency_us\ncombine,8,100\n")
    with pytest.raises(ConfigError, match="one number of ranks"):
        cross_validated(path)
