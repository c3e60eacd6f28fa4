"""Files that are not configurations give one clear error that names the file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tutti.base.errors import ConfigError
from tutti.base.files.limits import Bytes
from tutti.base.files.reader import parse_toml, read_json, read_toml, read_yaml

if TYPE_CHECKING:
    from pathlib import Path


def refusal(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        read_toml(path)
    assert caught.value.source == str(path)
    return str(caught.value)


def test_a_missing_file_suggests_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "experiment.toml").touch()
    message = refusal(tmp_path / "experimnt.toml")
    assert "there is no such file" in message
    assert "did you mean `experiment.toml`?" in message


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    assert "does not exist either" in refusal(tmp_path / "nowhere" / "experiment.toml")


def test_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.toml").touch()
    message = refusal(tmp_path)
    assert "is a folder" in message
    assert "a.toml" in message


def test_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)
    assert "not a regular file" in refusal(pipe)


def test_a_huge_file_is_refused_by_its_size(tmp_path: Path) -> None:
    huge = tmp_path / "huge.toml"
    with huge.open("wb") as file:
        file.truncate(1 << 30)  # sparse: nothing is written, and nothing may be read
    message = refusal(huge)
    assert "1073741824 bytes" in message
    assert str(Bytes.CONFIG) in message


def test_bytes_that_are_not_text_are_located(tmp_path: Path) -> None:
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b'collective = "all_reduce"\nname = "\xff"\n')
    message = refusal(binary)
    assert "byte 0xff at line 2, column 9 is not UTF-8" in message


def test_a_name_with_a_nul_is_refused(tmp_path: Path) -> None:
    assert "cannot be read" in refusal(tmp_path / "a\0b.toml")


def test_toml_error_has_its_line() -> None:
    with pytest.raises(ConfigError, match=r"not TOML: .*line 2, column 11"):
        parse_toml("ranks = 4\nsizes = 8 B", source="e.toml")


def test_deep_nesting_and_long_numbers_are_refused() -> None:
    with pytest.raises(ConfigError):
        parse_toml("a = " + "[" * 100_000, source="e.toml")
    with pytest.raises(ConfigError):
        parse_toml("a = " + "9" * 10_000, source="e.toml")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("groups.json", '{"1": [0, 1], "1": [0, 2]}'),
        ("nested.json", '{"a": {"b": 1, "b": 2}}'),
        ("network.yml", "bandwidth: [50.0]\nbandwidth: [25.0]\n"),
        ("nested.yml", "a:\n  b: 1\n  b: 2\n"),
    ],
)
def test_a_key_with_two_values_is_refused(name: str, text: str, tmp_path: Path) -> None:
    """Parsers keep the last value: a table of groups would lose one without a remark."""
    (tmp_path / name).write_text(text, "utf-8")
    read = read_json if name.endswith("json") else read_yaml
    with pytest.raises(ConfigError, match=r"defines the key `.+` twice") as caught:
        read(tmp_path / name, "a table")
    assert caught.value.source == str(tmp_path / name)


def test_a_key_with_one_value_may_be_repeated(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"a": [1], "a": [1]}', "utf-8")
    (tmp_path / "a.yml").write_text("x: &x {a: 1, b: 2}\ny: {<<: *x, a: 3}\n", "utf-8")
    assert read_json(tmp_path / "a.json", "a table") == {"a": [1]}
    assert read_yaml(tmp_path / "a.yml", "a table")["y"] == {"a": 3, "b": 2}
