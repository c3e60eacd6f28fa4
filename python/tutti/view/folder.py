"""Views as files of a folder: data frames, drawings and the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tutti.base.files.mistakes import mistake

if TYPE_CHECKING:
    from pathlib import Path

    from .view import View

REPORT = "report.html"


def names(view: View) -> list[str]:
    """Returns the names of the files that `write` writes."""
    report = [REPORT] if view.question else []
    return [*(name for data in view.data for name in data.files), *view.drawings, *report]


def write(view: View, folder: Path) -> list[Path]:
    """Writes the files of a view into an existing folder.

    Args:
        view: The view.
        folder: The folder.

    Returns:
        The paths written: data frames, drawings, and the report last, if there is a question.

    Raises:
        ConfigError: A data frame cannot be written.
    """
    paths = []
    for data in view.data:
        if data.files:
            frame = data.frame()
            for path in (folder / name for name in data.files):
                write_frame = frame.write_csv if path.suffix == ".csv" else frame.write_parquet
                try:
                    write_frame(path)
                except OSError as error:
                    problem = f"cannot be written: {error.strerror or error}"
                    raise mistake(problem, source=str(path)) from None
                paths.append(path)
    paths += [draw(folder / name) for name, draw in view.drawings.items()]
    if view.question:
        from .page import page_of  # a result without a page does not load it

        paths.append(page_of(view).write(folder / REPORT))
    return paths
