"""Builds the documentation site in build/site/html from Markdown, docstrings and examples.

Pages are staged in build/site/pages: links are rewritten to the site's layout, equations become
MathML, and every example and notebook is run so that its page shows today's output, figures and
reports.
"""

from __future__ import annotations

import argparse
import html
import os
import re
import shutil
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import notebooks
import tomlkit
from latex2mathml.converter import convert

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parent.parent
SITE = ROOT / "build" / "site"
PAGES = SITE / "pages"
MOST_LINES = 60
"""Lines of an example's output that its page shows."""

API = {
    "Simulate and compare": [
        "tutti.collectives.simulation",
        "tutti.collectives.result",
        "tutti.collectives.frames",
        "tutti.sweeps",
    ],
    "Schedules": [
        "tutti.schedules.ir",
        "tutti.schedules.builder",
        "tutti.collectives.schedule_search",
        "tutti.collectives.size_ranges",
        "tutti.collectives.explanation",
    ],
    "Platforms": [
        "tutti.platforms.machine",
        "tutti.platforms.contention",
        "tutti.platforms.conditions",
        "tutti.topologies.graph",
        "tutti.topologies.faults",
        "tutti.base.units",
    ],
    "Networks": [
        "tutti.networks.flit.network",
        "tutti.networks.flit.runs",
        "tutti.networks.flit.settings",
        "tutti.networks.mesh.mesh",
        "tutti.networks.mesh.runs",
        "tutti.networks.coherence.runs",
        "tutti.bypass.network",
        "tutti.bypass.mapping",
        "tutti.energy.package",
        "tutti.energy.technology",
    ],
    "Training": [
        "tutti.training.endpoint",
        "tutti.training.step",
        "tutti.training.overlap",
        "tutti.workloads.model",
        "tutti.workloads.parallel",
    ],
    "Real machines": [
        "tutti.measured.calibrate.fit",
        "tutti.measured.tune.decisions",
        "tutti.mpi.communicator",
        "tutti.mpi.plan",
        "tutti.nccl.tuning",
    ],
}
"""The Python modules with a separate page."""

SOURCES = {".md", ".svg", ".css", ".ipynb"}
"""Suffixes of files of docs/ that are staged."""
LINKED = {".md", ".svg", ".ipynb", ""}
"""Suffixes of files with a page."""
FENCE = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
CODE = re.compile(rf"{FENCE.pattern}|`[^`]+`", re.DOTALL | re.MULTILINE)
DISPLAY = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
INLINE = re.compile(r"(?<![\\$\w])\$(?!\s)([^$\n]+?)(?<!\s)\$(?![\w$])")
LINK = re.compile(r"\[([^\]\[]*)\]\((?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?\)")
DEFINITION = re.compile(r"^(\[[^\]]+\]): (?![a-z]+:|#)([^#\s]+)(#\S*)?$", re.MULTILINE)
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def page_of(source: PurePosixPath) -> PurePosixPath | None:
    """Returns the site's page for a file of the repository, or None if it has none."""
    parts = source.parts
    if source == PurePosixPath("README.md"):
        return PurePosixPath("index.md")
    if source.name in {"CHANGELOG.md", "CONTRIBUTING.md", "VISION.md"}:
        return PurePosixPath(source.name.lower())
    if parts[0] == "docs":
        page = PurePosixPath(*parts[1:])
        return page.with_suffix(".md") if page.suffix == ".ipynb" else page
    if parts[0] == "examples":
        name = parts[1] if len(parts) > 1 else "index"
        return PurePosixPath("examples", f"{name}.md")
    if source == PurePosixPath("mpi/README.md"):
        return PurePosixPath("guides", "mpi-library.md")
    return None


def outside(code: re.Pattern[str], text: str, change: Callable[[str], str]) -> str:
    """Applies `change` to the text between matches of `code`."""
    parts, position = [], 0
    for match in code.finditer(text):
        parts += [change(text[position : match.start()]), match.group()]
        position = match.end()
    return "".join([*parts, change(text[position:])])


def mathematics(text: str) -> str:
    """Replaces LaTeX by MathML, which browsers draw without a script."""
    text = DISPLAY.sub(lambda m: f"<div>{convert(m[1].strip(), display='block')}</div>", text)
    return INLINE.sub(lambda m: convert(m[1]), text)


def staged(source: Path, text: str) -> str:
    """Returns Markdown of a file with links to other pages of the site, and equations as MathML."""
    folder = PurePosixPath(source.relative_to(ROOT).parent.as_posix())
    page = page_of(folder / source.name)

    def relative(target: str, anchor: str | None) -> str | None:
        path = PurePosixPath(os.path.normpath(folder / target))
        to = page_of(path) if (ROOT / path).suffix in LINKED else None
        if to is None or page is None:
            return None
        return os.path.relpath(to, page.parent) + (anchor or "")

    def link(match: re.Match[str]) -> str:
        to = relative(match[2], match[3])
        return match[1] if to is None else f"[{match[1]}]({to})"

    def rewritten(text: str) -> str:
        text = DEFINITION.sub(lambda m: f"{m[1]}: {relative(m[2], m[3])}", text)
        return LINK.sub(link, text)

    return outside(CODE, outside(FENCE, text, rewritten), mathematics)


def stage(source: Path, *, run: bool = False) -> None:
    """Writes a staged page, with outputs if it is a notebook to run; figures are copied."""
    page = page_of(PurePosixPath(source.relative_to(ROOT).as_posix()))
    assert page is not None, f"{source} has no page"
    target = PAGES / page
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.suffix == ".md":
        target.write_text(staged(source, source.read_text("utf-8")), "utf-8")
    elif source.suffix == ".ipynb":
        shutil.copyfile(source, target.with_name(source.name))
        target.write_text(notebooks.page(source, partial(staged, source), run=run), "utf-8")
    else:
        shutil.copyfile(source, target)


def commands(readme: str) -> list[str]:
    """Returns the commands of the example's first shell block."""
    block = re.search(r"^```sh\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    return re.sub(r"\\\n\s*", "", block[1]).splitlines() if block else []


def gallery(example: Path) -> None:
    """Runs an example in a separate folder, and adds output, figures and reports to its page."""
    page = PAGES / "examples" / f"{example.name}.md"
    files = PAGES / "examples" / example.name
    files.mkdir(parents=True)
    (files / "examples").symlink_to(ROOT / "examples")
    parts = [page.read_text("utf-8"), "\n## Output\n"]
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "COLUMNS": "80",
        # Containers build as root and with few cores, which Open MPI refuses by default.
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    }
    for command in commands(page.read_text("utf-8")):
        done = subprocess.run(
            command,
            check=False,
            shell=True,
            cwd=files,
            env=environment,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise SystemExit(f"{example.name}: {command}\n{done.stdout}{done.stderr}")
        lines = done.stdout.splitlines()
        left = len(lines) - MOST_LINES
        more = [f"... {left} more lines"] if left > 0 else []
        shown = html.escape("\n".join([*lines[:MOST_LINES], *more]))
        parts.append(f"<pre><code>$ {html.escape(command)}\n{shown}</code></pre>\n")
    (files / "examples").unlink()
    figures = [f.relative_to(page.parent) for f in sorted(files.rglob("*.svg"))]
    parts += [f"![{path.stem}]({path.as_posix()})\n" for path in figures]
    for report in sorted(files.rglob("*.html")):
        path = report.relative_to(page.parent).as_posix()
        label = report.relative_to(files).as_posix()
        parts.append(f'<p><a href="{path}">Interactive report: {label}</a></p>\n')
    page.write_text("\n".join(parts), "utf-8")
    keep_results(files)


def keep_results(files: Path) -> None:
    """Deletes what an example wrote except figures and reports."""
    for path in sorted(files.rglob("*"), reverse=True):
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif path.suffix not in {".svg", ".html"}:
            path.unlink()


def title(page: Path) -> str:
    """Returns the first heading of a page."""
    heading = re.search(r"^# (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return heading[1].replace("`", "") if heading else page.stem


def index_of_examples(pages: list[Path]) -> None:
    """Writes the page that lists the examples."""
    rows = [f"- [{title(page)}]({page.name})" for page in pages]
    text = "# Examples\n\nEach page shows the command, its output, its figures and its report.\n\n"
    (PAGES / "examples" / "index.md").write_text(text + "\n".join(rows) + "\n", "utf-8")


def api_page(module: str) -> str:
    """Writes the page of a Python module; returns its path."""
    path = PurePosixPath("reference", "python", f"{module.removeprefix('tutti.')}.md")
    target = PAGES / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(f"# `{module}`\n\n::: {module}\n", "utf-8")
    return path.as_posix()


def configuration() -> None:
    """Writes the site's configuration with the parts of the navigation that are listed here."""
    table: dict[str, Any] = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))
    project = table["project"]
    generated: dict[str, Any] = {
        "Algorithms": [f"models/{p.name}" for p in sorted(PAGES.glob("models/algorithm-*.md"))],
        "Examples": [f"examples/{p.name}" for p in sorted(PAGES.glob("examples/*.md"))],
        "Decisions": [f"decisions/{p.name}" for p in sorted(PAGES.glob("decisions/*.md"))],
        "Python": [{group: [api_page(m) for m in modules]} for group, modules in API.items()],
    }
    generated["Examples"].sort(key=lambda name: name != "examples/index.md")

    def fill(entries: list[Any]) -> None:
        for entry in entries:
            for label, value in entry.items() if isinstance(entry, dict) else ():
                if value == []:
                    value.extend(generated[label])
                elif isinstance(value, list):
                    fill(value)

    fill(project["nav"])
    project |= {"docs_dir": "pages", "site_dir": "html"}
    project["plugins"]["mkdocstrings"]["handlers"]["python"]["paths"] = [str(ROOT / "python")]
    (SITE / "zensical.toml").write_text(tomlkit.dumps(table), "utf-8")


def main() -> None:
    """Stages the pages, runs the examples and builds the site; a broken link is an error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--no-examples", action="store_true", help="do not run the examples and notebooks"
    )
    options = parser.parse_args()
    shutil.rmtree(SITE, ignore_errors=True)
    examples = sorted(p.parent for p in ROOT.glob("examples/*/README.md"))
    sources = [p for p in (ROOT / "docs").rglob("*") if p.suffix in SOURCES]
    sources += [
        ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "VISION.md")
    ]
    for source in [*sources, ROOT / "mpi" / "README.md", *(e / "README.md" for e in examples)]:
        stage(source, run=not options.no_examples)
    pages = [PAGES / "examples" / f"{e.name}.md" for e in examples]
    index_of_examples(pages)
    if not options.no_examples:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(gallery, examples))
    configuration()
    zensical = Path(sys.executable).with_name("zensical")
    built = subprocess.run(
        [zensical, "build", "--strict"], cwd=SITE, check=False, capture_output=True, text=True
    )
    if built.returncode:
        sys.exit(COLOUR.sub("", built.stdout + built.stderr))
    sys.stdout.write(f"documentation: {(SITE / 'html' / 'index.html').relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
