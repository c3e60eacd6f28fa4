"""Prepares a release; `make release` calls it. Nothing is tagged, committed or pushed.

It moves the entries of CHANGELOG.md from the unreleased section to the version of Cargo.toml,
writes the notes of the tag to OUT/release/notes.md, and fills OUT/dist with wheels, source archive,
bill of materials, list of licences and SHA256SUMS. It then prints the commands that publish them.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

CHANGES = "CHANGELOG.md"
LICENCES = "THIRD_PARTY_LICENSES"
UNRELEASED = "## Unreleased"
SECTION = re.compile(rf"^{UNRELEASED}\n(?P<entries>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


class ReleaseError(Exception):
    """A reason for which no release can be prepared."""


@dataclass(frozen=True)
class Release:
    """A release of a checkout.

    Attributes:
        root: The checkout.
        out: The output folder.
        date: The date of the release.
    """

    root: Path
    out: Path
    date: datetime.date

    @property
    def version(self) -> str:
        """The version, which Cargo.toml states."""
        tables = tomllib.loads((self.root / "Cargo.toml").read_text("utf-8"))
        return str(tables["workspace"]["package"]["version"])

    @property
    def tag(self) -> str:
        """The name of the tag."""
        return f"v{self.version}"

    @property
    def notes(self) -> Path:
        """The file of the notes."""
        return self.out / "release" / "notes.md"

    @property
    def dist(self) -> Path:
        """The folder of the files to publish."""
        return self.out / "dist"

    def check(self) -> None:
        """Checks that the checkout can be released.

        Raises:
            ReleaseError: Files are not committed, the version has a tag, or nothing has changed.
        """
        if changed := self._git("status", "--porcelain"):
            message = f"the tree has changes that are not committed:\n{changed}"
            raise ReleaseError(message)
        if self._git("tag", "--list", self.tag):
            message = f"{self.tag} exists: raise `version` in Cargo.toml"
            raise ReleaseError(message)
        if not re.search(r"^- ", self.entries(), re.MULTILINE):
            message = f"{CHANGES} has no entries below `{UNRELEASED}`"
            raise ReleaseError(message)

    def entries(self) -> str:
        """Returns the text of the unreleased section; empty if there is no such section."""
        found = SECTION.search((self.root / CHANGES).read_text("utf-8"))
        return found["entries"].strip() if found else ""

    def move_entries(self) -> None:
        """Moves the entries to a section of the version, and writes the notes."""
        entries = self.entries()
        file = self.root / CHANGES
        heading = f"## {self.version}, {self.date.isoformat()}"
        moved = f"{UNRELEASED}\n\n{heading}\n\n{entries}\n\n"
        text = SECTION.sub(lambda _: moved, file.read_text("utf-8"), count=1)
        file.write_text(text.rstrip("\n") + "\n", "utf-8")
        self.notes.parent.mkdir(parents=True, exist_ok=True)
        self.notes.write_text(f"tutti {self.version}\n\n{entries}\n", "utf-8")

    def build(self) -> None:
        """Builds wheels, source archive and bill of materials."""
        self._run("make", "wheel", f"OUT={self.out}")
        bill = self.root / "build" / "tutti.cdx.json"  # the wheels contain it
        shutil.copyfile(bill, self.dist / f"tutti-{self.version}.cdx.json")
        shutil.copyfile(self.root / LICENCES, self.dist / LICENCES)

    def sum_up(self) -> None:
        """Writes the checksums of all files to publish, in the format of `sha256sum`."""
        files = sorted(file for file in self.dist.iterdir() if file.name != "SHA256SUMS")
        sums = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
        lines = [f"{checksum}  {name}\n" for name, checksum in sums.items()]
        (self.dist / "SHA256SUMS").write_text("".join(lines), "utf-8")

    def commands(self) -> list[str]:
        """Returns the commands that publish the release."""
        notes, dist = shlex.quote(str(self.notes)), shlex.quote(str(self.dist))
        return [
            f"git commit --all --message 'release: {self.version}'",
            f"git tag --annotate {self.tag} --cleanup=verbatim --file {notes}",
            f"git push origin HEAD {self.tag}",
            f"uv publish {dist}/*.whl {dist}/*.tar.gz",
        ]

    def _git(self, *arguments: str) -> str:
        command = ["git", *arguments]
        done = subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=True)
        return done.stdout.rstrip()

    def _run(self, *command: str) -> None:
        subprocess.run(command, cwd=self.root, check=True)


def prepare(release: Release, *, build: bool) -> None:
    """Prepares a release; restores the changelog if a step fails.

    Args:
        release: The release.
        build: Whether to build; otherwise OUT/dist remains.
    """
    release.check()
    before = (release.root / CHANGES).read_text("utf-8")
    release.move_entries()
    try:
        if build:
            shutil.rmtree(release.dist, ignore_errors=True)
            release.build()
        if release.dist.is_dir():
            release.sum_up()
    except BaseException:
        (release.root / CHANGES).write_text(before, "utf-8")
        raise


def main() -> None:
    """Prepares the release of the checkout, and prints the next commands."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1], help="the checkout")
    parser.add_argument("--out", type=Path, default=Path("out"), help="the output folder")
    parser.add_argument("--date", type=datetime.date.fromisoformat, help="default: today in UTC")
    parser.add_argument("--no-build", action="store_true", help="prepare changelog and notes only")
    options = parser.parse_args()
    date = options.date or datetime.datetime.now(datetime.UTC).date()
    release = Release(options.root.absolute(), options.out.absolute(), date)
    try:
        prepare(release, build=not options.no_build)
    except ReleaseError as error:
        sys.exit(f"error: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"error: {shlex.join(error.cmd)} failed; {CHANGES} is unchanged")
    lines = [f"Read {CHANGES} and {release.notes}. Then:"]
    lines += [f"  {command}" for command in release.commands()]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
