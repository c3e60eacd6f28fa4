"""Stores the comparisons that `tutti paper` wrote to a folder, and the drawings of the page.

Usage: python scripts/store_papers.py out/papers

Stored comparisons of exhibits that were not run remain. `make reference` then writes the page.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tutti_papers import papers
from tutti_papers.overview import PICTURES
from tutti_papers.summary import FILE, STORED, dumped, merged, read

ROOT = Path(__file__).parent.parent
STORE = ROOT / "papers" / "tutti_papers" / STORED
DRAWINGS = ROOT / "docs" / "papers" / "figures"


def main(folder: Path) -> None:
    """Merges the comparisons of a folder into the package, without those of removed exhibits."""
    known = {
        (name, label)
        for name, paper in papers().items()
        for label, _ in paper.exhibits()
        if name in PICTURES
    }
    found = read(STORE.read_text("utf-8"), str(STORE)) if STORE.is_file() else []
    for name in PICTURES:
        path = folder / name / FILE
        if path.is_file():
            found = merged(found, read(path.read_text("utf-8"), str(path)))
    STORE.write_text(dumped(one for one in found if one.key in known), "utf-8")
    DRAWINGS.mkdir(exist_ok=True)
    for name, picture in PICTURES.items():
        if (folder / name / picture).is_file():
            shutil.copyfile(folder / name / picture, DRAWINGS / f"{name}.svg")
    sys.stdout.write(f"wrote {STORE.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
