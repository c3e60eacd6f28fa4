"""Model files, and the error without PyTorch."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tutti.base.errors import ConfigError
from tutti.formats.torch import load_module
from tutti.training.files.step_file import load_training
from tutti.workloads import build, models
from tutti.workloads.files import read_model, write_model

EXAMPLE = Path(__file__).parents[2] / "examples/10_training_step/training.toml"


@pytest.mark.parametrize("name", [entry.name for entry in models()])
def test_work_of_layers_survives_a_file(name: str, tmp_path: Path) -> None:
    """Except embedding tables, which files do not support."""
    model = build(name)
    read = read_model(write_model(tmp_path / "m.json", model))
    assert [layer.work("forward", 4, 2) for layer in read.layers] == [
        layer.work("forward", 4, 2) for layer in model.layers
    ]
    assert read.parameters == model.parameters


def test_a_training_file_names_a_model_file(tmp_path: Path) -> None:
    write_model(tmp_path / "mine.json", build("vgg16"))
    text = EXAMPLE.read_text().replace('model = "gnmt"', 'model = "file:mine.json"')
    (tmp_path / "training.toml").write_text(text)
    step = load_training(tmp_path / "training.toml").step
    assert step.model.parameters == build("vgg16").parameters


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ('{"name": "m", "layers": []}', "layers: is empty"),
        (
            '{"name": "m", "layers": [{"name": "a", "parameters": -1, "inputs": 1, "outputs": 1}]}',
            r"layers\[0\].parameters: should be greater than or equal to 0",
        ),
        (
            '{"name": "m", "layers": [{"name": "a", "gemms": [{"m": 1, "n": 0, "k": 1}]}]}',
            r"layers\[0\].gemms\[0\].n",
        ),
    ],
)
def test_invalid_model_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "m.json").write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_model(tmp_path / "m.json")
    (tmp_path / "training.toml").write_text(
        EXAMPLE.read_text().replace('model = "gnmt"', 'model = "file:m.json"')
    )
    with pytest.raises(ConfigError, match=message):
        load_training(tmp_path / "training.toml")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.json: there is no such file"):
        read_model(tmp_path / "nowhere.json")


def test_missing_torch_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ConfigError, match=r"requires `pip install 'tutti\[torch\]'`"):
        load_module("m:f", tmp_path)
