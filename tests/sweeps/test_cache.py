"""The cache returns finished measurements, and never wrong ones."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from tutti.sweeps import cache
from tutti.sweeps.cache import Journal, lookup
from tutti.sweeps.errors import CacheError

if TYPE_CHECKING:
    from pathlib import Path

ROWS = {f"key{n}": {"time_ps": n, "algbw_bytes_per_s": 0.1 * n, "bound": None} for n in range(9)}


def filled(folder: Path) -> Path:
    journal = Journal(folder)
    for key, row in ROWS.items():
        journal.add({key: row})
    journal.close()
    (path,) = folder.iterdir()
    return path


def test_added_rows_are_found_bit_for_bit(tmp_path: Path) -> None:
    filled(tmp_path)
    found = lookup(tmp_path, ROWS.keys())
    assert found.rows == ROWS
    assert not found.remarks
    assert lookup(tmp_path, {"key3", "other"}).rows == {"key3": ROWS["key3"]}


def test_missing_cache_is_empty_and_not_created(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    assert lookup(folder, ROWS.keys()).rows == {}
    journal = Journal(folder)
    journal.add({})
    journal.close()
    assert not folder.exists()


def test_rows_are_visible_before_the_journal_is_closed(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.add({"key1": ROWS["key1"]})
    assert lookup(tmp_path, ROWS.keys()).rows == {"key1": ROWS["key1"]}
    journal.close()


def test_journal_of_another_version_is_reported_and_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(cache, "simulator", lambda: "0.0.9+feed")
        filled(tmp_path)
    found = lookup(tmp_path, ROWS.keys())
    assert found.rows == {}
    (remark,) = found.remarks
    assert "written by tutti 0.0.9+feed, not " in remark
    assert "ignored 9 results" in remark
    filled(tmp_path / "new")  # and a new one is started
    assert lookup(tmp_path / "new", ROWS.keys()).rows == ROWS


def test_a_journal_of_another_format_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(cache, "FORMAT", 99)
        filled(tmp_path)
    assert lookup(tmp_path, ROWS.keys()).rows == {}


def test_truncated_journal_yields_its_complete_rows(tmp_path: Path) -> None:
    path = filled(tmp_path)
    data = path.read_bytes()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        found = lookup(tmp_path, ROWS.keys())
        assert found.rows.items() <= ROWS.items()
        complete = data[:length].count(b"\n") - 1
        assert len(found.rows) == max(complete, 0)
        assert found.remarks or data[:length].endswith(b"\n")


def test_damaged_journal_yields_no_wrong_rows(tmp_path: Path) -> None:
    path = filled(tmp_path)
    data = path.read_bytes()
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
        found = lookup(tmp_path, ROWS.keys())
        assert found.rows.items() <= ROWS.items()
        assert len(found.rows) < len(ROWS)
        assert found.remarks


@pytest.mark.parametrize("data", [b"", b"\n", b"{}\n", b"no journal\n", bytes(range(256)) * 9])
def test_other_files_are_ignored(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.journal").write_bytes(data)
    found = lookup(tmp_path, ROWS.keys())
    assert found.rows == {}
    assert "a.journal: not a journal" in found.remarks[0]


def test_conflicting_journals_are_an_error(tmp_path: Path) -> None:
    for time_ps in (1, 1):
        journal = Journal(tmp_path)
        journal.add({"key": {"time_ps": time_ps}})
        journal.close()
    assert lookup(tmp_path, {"key"}).rows == {"key": {"time_ps": 1}}
    journal = Journal(tmp_path)
    journal.add({"key": {"time_ps": 2}})
    journal.close()
    with pytest.raises(CacheError, match="different results for the same key") as caught:
        lookup(tmp_path, {"key"})
    assert caught.value.kind == "contradiction"
    assert lookup(tmp_path, {"other"}).rows == {}


def test_concurrent_writers_lose_no_rows(tmp_path: Path) -> None:
    def write(number: int) -> None:
        journal = Journal(tmp_path)
        for n in range(50):
            journal.add({f"{number}/{n}": {"n": n}, "shared": {"n": 0}})
        journal.close()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    requested = {f"{number}/{n}" for number in range(8) for n in range(50)} | {"shared"}
    found = lookup(tmp_path, requested)
    assert found.rows.keys() == requested
    assert not found.remarks


def test_invalid_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    for act in (
        lambda: lookup(tmp_path / "taken", ROWS.keys()),
        lambda: Journal(tmp_path / "taken").add(ROWS),
    ):
        with pytest.raises(CacheError, match="taken") as caught:
            act()
        assert "--cache" in caught.value.hint
