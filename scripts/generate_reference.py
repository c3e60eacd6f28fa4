"""Writes the reference pages and JSON Schemas from the code; `--check` lists stale ones."""

from __future__ import annotations

import sys
from pathlib import Path

from reference_pages import PAGES

from tutti_papers.overview import papers_page

ROOT = Path(__file__).parent.parent


def main() -> int:
    """Writes, or with `--check` compares, every generated file."""
    check = "--check" in sys.argv[1:]
    stale = []
    for name, write in {**PAGES, "docs/papers/README.md": papers_page}.items():
        path, text = ROOT / name, write()
        if path.is_file() and path.read_text("utf-8") == text:
            continue
        stale.append(name)
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    for name in stale:
        sys.stdout.write(f"{'stale' if check else 'wrote'} {name}\n")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
