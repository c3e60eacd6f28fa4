"""A release: the changelog, the notes, checksums, and the licences of what the wheel contains."""

from __future__ import annotations

import hashlib
import json
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from script_modules import load

ROOT = Path(__file__).parents[2]
CHANGES = """# Changelog

## Unreleased

### Added

- A bullet
  of two lines.

## 0.1.0, 2026-01-02

- Old.
"""


def script(name: str) -> Any:
    return load(ROOT / "scripts" / f"{name}.py")


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=Nobody", "-c", "user.email=nobody@example.org")
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository of version 0.2.0 with an unreleased entry."""
    root = tmp_path / "checkout"
    root.mkdir()
    (root / "Cargo.toml").write_text('[workspace.package]\nversion = "0.2.0"\n')
    (root / "CHANGELOG.md").write_text(CHANGES)
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "first")
    return root


def released(checkout: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "release.py"), "--root", str(checkout)]
    command += ["--out", str(checkout.parent / "out"), "--date", "2026-03-04", "--no-build"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_entries_move_to_the_version_and_to_the_notes(checkout: Path) -> None:
    dist = checkout.parent / "out" / "dist"
    dist.mkdir(parents=True)
    (dist / "tutti.whl").write_bytes(b"wheel")
    done = released(checkout)
    assert done.returncode == 0, done.stderr
    entries = "### Added\n\n- A bullet\n  of two lines.\n"
    expected = CHANGES.replace("## Unreleased", "## Unreleased\n\n## 0.2.0, 2026-03-04")
    assert (checkout / "CHANGELOG.md").read_text() == expected
    notes = checkout.parent / "out" / "release" / "notes.md"
    assert notes.read_text() == f"tutti 0.2.0\n\n{entries}"
    checksum = hashlib.sha256(b"wheel").hexdigest()
    assert (dist / "SHA256SUMS").read_text() == f"{checksum}  tutti.whl\n"
    assert git(checkout, "tag") == ""
    _, *commands = [line.strip() for line in done.stdout.splitlines()]
    for command in commands[:2]:
        git(checkout, *shlex.split(command)[1:])
    assert "### Added" in git(checkout, "tag", "--list", "--format=%(contents)")
    assert "v0.2.0 exists" in released(checkout).stderr


def test_a_changed_tree_and_an_empty_section_are_refused(checkout: Path) -> None:
    (checkout / "new").touch()
    assert "not committed:\n?? new" in released(checkout).stderr
    (checkout / "new").unlink()
    (checkout / "CHANGELOG.md").write_text(CHANGES.replace("- A", "A"))
    git(checkout, "commit", "--quiet", "--all", "--message", "second")
    assert "no entries below `## Unreleased`" in released(checkout).stderr


def test_the_changelog_of_tutti_has_an_unreleased_section() -> None:
    assert script("release").SECTION.search((ROOT / "CHANGELOG.md").read_text("utf-8"))


def test_crates_of_the_wheel_have_allowed_licences_and_are_listed() -> None:
    third_party = script("third_party")
    names = {crate.name for crate in third_party.crates()}
    assert {"pyo3", "rayon", "libm"} <= names
    assert not names & {"proptest", "tutti-noc"}
    for crate in third_party.crates():
        assert third_party.is_allowed(crate.licence), crate
    listed = (ROOT / "THIRD_PARTY_LICENSES").read_text("utf-8")
    assert listed == third_party.licences(), "run `make reference`"
    assert not third_party.is_allowed("MIT AND GPL-3.0-only")


def test_bill_of_materials_lists_crates_and_packages_of_each_extra() -> None:
    third_party = script("third_party")
    text = third_party.sbom("1.2.3")
    assert str(ROOT) not in text
    bill = json.loads(text)
    assert bill["metadata"]["component"]["version"] == "1.2.3"
    parts = {
        one["purl"].rpartition("@")[0]: {prop["value"] for prop in one["properties"]}
        for one in bill["components"]
        if "version" in one
    }
    assert parts["pkg:cargo/pyo3"] == {"wheel"}
    assert "required" in parts["pkg:pypi/numpy"]
    assert {"extra explore", "extra reports"} <= parts["pkg:pypi/plotly"]
    assert "pkg:pypi/pytest" not in parts


def test_the_papers_have_the_version_of_tutti() -> None:
    cargo, papers = (
        tomllib.loads((ROOT / name).read_text("utf-8"))
        for name in ("Cargo.toml", "papers/pyproject.toml")
    )
    assert papers["project"]["version"] == cargo["workspace"]["package"]["version"]
