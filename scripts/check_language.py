"""Checks every line of English against `docs/terminology.toml`, and the length of sentences.

It reads Markdown pages, notebooks, comments, docstrings, texts in code, and identifiers.
`--summary` counts the findings of each file; paths on the command line restrict the check.
"""

from __future__ import annotations

import argparse
import ast
import functools
import io
import json
import re
import statistics
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
TERMS = ROOT / "docs" / "terminology.toml"
MOST_WORDS = 40
MOST_COLUMNS = 100
C_LIKE = re.compile(
    r'//[^\n]*|/\*.*?\*/|r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'', re.DOTALL
)
CODE = re.compile(r"```.*?```|``.+?``|`[^`\n]*`|\$\$.*?\$\$|\$[^$\n]+\$", re.DOTALL)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|<[^>\s][^>]*>|https?://\S+")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
ENTRY = re.compile(
    r"\n\s*\n|\n(?=\s*\S+\s\s+\S)|\n(?=\s*(?:[-*+]|\d+\.|\*{0,2}\w+:|>>>|tutti)\s)|:\n"
)
"""Starts of paragraphs, list items, documented parameters and example commands."""
SENTENCE_END = re.compile(r"(?<=[.!?])[\"')]*\s+(?=[A-Z0-9`\"(*\[])")


@dataclass(frozen=True)
class Text:
    """A run of text: prose, a string in code, or the identifiers of a line."""

    line: int
    text: str
    kind: str


@dataclass(frozen=True)
class Term:
    """A term that is not used, and what is used instead."""

    pattern: re.Pattern[str]
    use: str
    allow: re.Pattern[str] | None
    names: frozenset[str]
    only: tuple[str, ...]

    def hits(self, text: Text) -> Iterator[re.Match[str]]:
        """Returns the places in `text` where the term is wrong."""
        allowed = [m.span() for m in self.allow.finditer(text.text)] if self.allow else []
        for match in self.pattern.finditer(text.text):
            start, end = match.span()
            if not any(first <= start and end <= last for first, last in allowed):
                yield match


def terms() -> list[Term]:
    """Returns the terms of the list."""
    table = tomllib.loads(TERMS.read_text("utf-8"))
    found = []
    for entry in table["term"]:
        allow = "|".join(f"(?:{a})" for a in entry.get("allow", ()))
        found.append(
            Term(
                pattern=re.compile(rf"\b(?:{entry['match']})(?!\w)", re.IGNORECASE),
                use=entry["use"],
                allow=re.compile(allow, re.IGNORECASE) if allow else None,
                names=frozenset(entry.get("names", ())),
                only=tuple(entry.get("only", ())),
            )
        )
    return found


def markdown(source: str) -> Iterator[Text]:
    """Paragraphs, list items, headings and table cells, without code blocks."""
    block: list[str] = []
    start, fenced, comment = 1, False, False
    for number, line in enumerate([*source.splitlines(), ""], 1):
        stripped = line.strip()
        fence = stripped.startswith(("```", "~~~", "$$"))
        closed_at_once = stripped.startswith("$$") and len(stripped) > 2 and stripped.endswith("$$")
        table = stripped.startswith("|")
        comment = comment or stripped.startswith("<!--")
        definition = bool(re.match(r"\[[^\]]+\]: ", stripped))
        new_item = bool(re.match(r"([-*+]|\d+\.)\s|#", stripped))
        if block and (not stripped or fence or table or new_item or comment or definition):
            yield Text(start, "\n".join(block), "prose")
            block = []
        if fence and not closed_at_once:
            fenced = not fenced
        elif table and not fenced:
            yield from (Text(number, cell.strip(), "prose") for cell in stripped.split("|"))
        elif stripped and not (fenced or fence or comment or definition):
            start = number if not block else start
            block.append(re.sub(r"^([-*+]|\d+\.|#+)\s+", "", stripped))
            if stripped.startswith("#"):
                yield Text(start, block.pop(), "prose")
        comment = comment and "-->" not in stripped


def notebook(source: str) -> Iterator[Text]:
    """The texts of all cells of a notebook, whose sources have a line of the file per line."""
    for first, cell in cells(source):
        reader = markdown if cell["cell_type"] == "markdown" else python
        for found in reader("".join(cell["source"])):
            yield Text(first + found.line - 1, found.text, found.kind)


def cells(source: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The cells of a notebook, and the line of the file on which the source of each starts."""
    starts = [n for n, line in enumerate(source.splitlines(), 2) if '"source": [' in line]
    yield from zip(starts, json.loads(source)["cells"], strict=True)


def prose_lines(path: Path, source: str) -> Iterator[tuple[int, str]]:
    """The lines of Markdown in a page or notebook, with their numbers in the file."""
    if path.suffix == ".md":
        yield from enumerate(source.splitlines(), 1)
    elif path.suffix == ".ipynb":
        for first, cell in cells(source):
            if cell["cell_type"] == "markdown":
                yield from enumerate("".join(cell["source"]).splitlines(), first)


def joined(comments: list[tuple[int, str]]) -> Iterator[Text]:
    """Comments of consecutive lines as one text each."""
    group: list[str] = []
    start = last = 0
    for line, text in comments:
        if group and line != last + 1:
            yield Text(start, "\n".join(group), "prose")
            group = []
        start = line if not group else start
        group.append(text)
        last = line + text.count("\n")
    if group:
        yield Text(start, "\n".join(group), "prose")


def python(source: str) -> Iterator[Text]:
    """Comments, docstrings, other strings with a blank in them, and identifiers."""
    comments = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            text = token.string.lstrip("#!: ")
            if not text.startswith(("noqa", "type:", "ruff:")):
                comments.append((token.start[0], text))
        elif token.type == tokenize.NAME:
            yield Text(token.start[0], token.string, "name")
    yield from joined(comments)
    docstrings = set()
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for child in body if isinstance(body, list) else ():
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                docstrings.add(child.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node in docstrings:
                yield Text(node.lineno, node.value, "prose")
            elif " " in node.value:
                yield Text(node.lineno, node.value, "string")


def c_like(source: str) -> Iterator[Text]:
    """Comments, strings with a blank in them, and identifiers of Rust or C."""
    comments: list[tuple[int, str]] = []
    code, position, line = [], 0, 1
    for match in C_LIKE.finditer(source):
        code.append(source[position : match.start()])
        line += source.count("\n", position, match.start())
        token = match.group()
        if token.startswith("//"):
            comments.append((line, token.lstrip("/! ")))
        elif token.startswith("/*"):
            text = re.sub(r"^\s*\*+ ?", "", token[2:-2].lstrip("*!"), flags=re.MULTILINE)
            yield Text(line, text, "prose")
        elif " " in token:
            yield Text(line, re.sub(r"\\\n\s*", "", token), "string")
        code.append("\n" * token.count("\n"))
        line += token.count("\n")
        position = match.end()
    code.append(source[position:])
    yield from joined(comments)
    for number, text in enumerate("".join(code).splitlines(), 1):
        yield from (Text(number, name, "name") for name in NAME.findall(text))


def hashed(source: str) -> Iterator[Text]:
    """Comments of TOML, shell or make."""
    lines = enumerate(source.splitlines(), 1)
    found = [(n, line.lstrip("# ")) for n, line in lines if line.startswith("#")]
    yield from joined(found)


READERS = {
    ".md": markdown,
    ".ipynb": notebook,
    ".py": python,
    ".pyi": python,
    ".rs": c_like,
    ".c": c_like,
    ".h": c_like,
    ".toml": hashed,
    ".sh": hashed,
}


def plain(text: str) -> str:
    """The text without code, mathematics and the targets of links; line breaks stay."""
    text = CODE.sub(lambda m: "X" + "\n" * m.group().count("\n"), text)
    return LINK.sub(lambda m: m.group(1) or "X", text)


def lengths(text: str) -> list[tuple[str, int]]:
    """The sentences of a text, and how many words each has."""
    found = []
    for paragraph in ENTRY.split(text):
        for sentence in SENTENCE_END.split(paragraph):
            words = [w for w in sentence.split() if any(c.isalnum() for c in w)]
            if words:
                found.append((" ".join(words), len(words)))
    return found


@functools.cache
def parts(name: str) -> frozenset[str]:
    """The words of an identifier."""
    return frozenset(word.lower() for word in WORDS.findall(name))


def findings(path: Path, listed: list[Term]) -> Iterator[tuple[int, str]]:
    """What is wrong in a file: the line, and what to write."""
    source = path.read_text("utf-8")
    name = path.relative_to(ROOT).as_posix()
    here = [t for t in listed if not t.only or any(fnmatch(name, glob) for glob in t.only)]
    forbidden = {word: term for term in here for word in term.names}
    for number, line in prose_lines(path, source):
        if len(line) > MOST_COLUMNS:
            yield number, f"{len(line)} columns; at most {MOST_COLUMNS}"
    for text in READERS[path.suffix](source):
        if text.kind == "name":
            for word in parts(text.text) & forbidden.keys():
                allow = forbidden[word].allow
                if allow and allow.fullmatch(text.text):
                    continue
                yield text.line, f"name `{text.text}`: instead of {word!r}: {forbidden[word].use}"
            continue
        prose = Text(text.line, plain(text.text), text.kind)
        for term in here:
            for match in term.hits(prose):
                line = text.line + prose.text.count("\n", 0, match.start())
                yield line, f"instead of {match.group()!r}: {term.use}"
        for sentence, words in lengths(prose.text) if text.kind == "prose" else ():
            if words > MOST_WORDS:
                yield text.line, f"a sentence of {words} words: {sentence[:60]} ..."


def files(given: list[str]) -> list[Path]:
    """The files under version control that are checked, or those of them that are named.

    Files in tests/data are those of other projects, unmodified.
    """
    listed = subprocess.run(
        ["git", "ls-files", "--", *given], cwd=ROOT, check=True, capture_output=True, text=True
    )
    own = (line for line in listed.stdout.splitlines() if not line.startswith("tests/data/"))
    paths = (ROOT / line for line in own)
    return [p for p in paths if p.suffix in READERS and p.is_file() and not p.is_symlink()]


def median_words(paths: list[Path]) -> float:
    """The median length of the sentences of Markdown pages."""
    counts = []
    for path in paths:
        if path.suffix == ".md":
            for text in markdown(path.read_text("utf-8")):
                counts += [words for _, words in lengths(plain(text.text)) if words > 3]
    return statistics.median(counts) if counts else 0


def main() -> int:
    """Prints what is found; returns 1 if there is something."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", help="files or folders; all by default")
    parser.add_argument("--summary", action="store_true", help="count the findings of each file")
    options = parser.parse_args()
    listed = terms()
    paths = files(options.paths)
    counts: Counter[str] = Counter()
    for path in paths:
        name = path.relative_to(ROOT).as_posix()
        if path == TERMS:
            continue
        for line, what in sorted(findings(path, listed)):
            counts[name] += 1
            if not options.summary:
                sys.stdout.write(f"{name}:{line}: {what}\n")
    if options.summary:
        for name, count in counts.most_common():
            sys.stdout.write(f"{count:6} {name}\n")
    sys.stdout.write(
        f"{counts.total()} findings; median sentence in Markdown: {median_words(paths):g} words\n"
    )
    return 1 if counts else 0


if __name__ == "__main__":
    sys.exit(main())
