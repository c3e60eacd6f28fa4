"""XML files of NCCL, RCCL and other tools, with the line of each element.

The tools write a small subset of XML: elements and attributes. Anything else that can expand or
refer to other files (document types, entities) is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn
from xml.parsers import expat

from tutti.base.files import limits
from tutti.base.files.mistakes import did_you_mean, mistake, shown
from tutti.base.files.reader import read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_MOST_ELEMENTS: Final = 1 << 16
"""NCCL_GRAPH_XML_MAX_NODES of NCCL 2.30 (src/graph/topo.h)."""
_INTEGER: Final = re.compile(r"-?(?:0[xX][0-9a-fA-F]{1,16}|[0-9]{1,18})")
_NUMBER: Final = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{0,15})?(?:[eE][-+]?[0-9]{1,2})?")


@dataclass
class Element:
    """An element with its attributes, children and the line of its start tag, from 1."""

    tag: str
    attributes: Mapping[str, str]
    line: int
    source: str
    children: list[Element] = field(default_factory=list)

    def walk(self) -> Iterator[Element]:
        """Yields this element and all elements in it, in the order of the file."""
        pending = [self]
        while pending:
            element = pending.pop()
            pending += reversed(element.children)
            yield element

    def each(self, tag: str) -> Iterator[Element]:
        """Yields the children of a tag."""
        return (child for child in self.children if child.tag == tag)

    def text(self, name: str, default: str | None = None) -> str:
        """Returns an attribute.

        Raises:
            ConfigError: It is missing and has no default.
        """
        value = self.attributes.get(name, default)
        if value is None:
            present = [key for key in self.attributes if key != name]
            raise mistake(
                f"<{self.tag}> lacks the attribute `{name}`",
                source=self.place,
                expected=f'{name}="..."',
                hint=did_you_mean(name, present),
            )
        return value

    def integer(self, name: str, default: int | None = None) -> int:
        """Returns an attribute as an integer, decimal or hexadecimal as NCCL reads it.

        Raises:
            ConfigError: It is missing and has no default, or is not an integer.
        """
        if default is not None and not self.attributes.get(name):
            return default
        text = self.text(name)
        if not _INTEGER.fullmatch(text):
            self.refuse(name, "an integer, such as 16 or 0x10")
        return int(text, 16 if "x" in text.lower() else 10)

    def count(self, name: str, most: int, default: int | None = None) -> int:
        """Returns an attribute as an integer from 0 to `most`.

        Raises:
            ConfigError: It is missing and has no default, or is not such an integer.
        """
        value = self.integer(name, default)
        if not 0 <= value <= most:
            self.refuse(name, f"an integer from 0 to {most:,}")
        return value

    def number(self, name: str, default: float | None = None) -> float:
        """Returns an attribute as a number of 0 or more.

        Raises:
            ConfigError: It is missing and has no default, or is not such a number.
        """
        if default is not None and name not in self.attributes:
            return default
        text = self.text(name)
        if not _NUMBER.fullmatch(text) or float(text) < 0:
            self.refuse(name, "a number, 0 or more")
        return float(text)

    def refuse(self, name: str, expected: str, hint: str = "") -> NoReturn:
        """Raises the error of an attribute.

        Raises:
            ConfigError: Always.
        """
        raise mistake(
            f"<{self.tag}>: attribute `{name}` is invalid",
            source=self.place,
            value=shown(self.attributes.get(name, "")),
            expected=expected,
            hint=hint,
        )

    @property
    def place(self) -> str:
        """The file and the line, for errors."""
        return f"{self.source}, line {self.line}"


@dataclass(frozen=True)
class Limits:
    """Limits of a file.

    Attributes:
        bytes: The largest file.
        elements: The most elements.
        document_type: Whether a document type without declarations is accepted. The file that it
            refers to is never read.
    """

    bytes: int = limits.Bytes.CONFIG
    elements: int = _MOST_ELEMENTS
    document_type: bool = False


def read_xml(path: Path, root: str, expected: str, within: Limits = Limits()) -> Element:
    """Reads an XML file whose outermost element is `root`.

    Raises:
        ConfigError: The file cannot be read, is not well formed (a truncated file, too), has a
            document type or entities, is nested too deeply, or has another outermost element.
    """
    return parse_xml(read_bytes(path, within.bytes, expected), root, expected, str(path), within)


def parse_xml(
    data: bytes, root: str, expected: str, source: str, within: Limits = Limits()
) -> Element:
    """Parses XML from bytes, as :func:`read_xml`; errors name `source`."""
    found = _Builder(source, expected, within).parse(data)
    if found.tag != root:
        raise mistake(
            f"the outermost element is <{shown(found.tag)[1:-1]}>",
            source=found.place,
            expected=f"{expected}, which starts with <{root}>",
        )
    return found


class Content(NamedTuple):
    """The attributes and the children of an element; None if another check covers the children."""

    attributes: frozenset[str]
    children: frozenset[str] | None


def content(attributes: str, children: str | None = "") -> Content:
    """Returns the content of an element from names separated by spaces."""
    return Content(
        frozenset(attributes.split()), None if children is None else frozenset(children.split())
    )


def check_elements(root: Element, grammar: Mapping[str, Content]) -> None:
    """Checks the children of all elements that a grammar has.

    Raises:
        ConfigError: An element is unknown. The message has its line.
    """
    for element in root.walk():
        allowed = grammar.get(element.tag)
        if allowed is None or allowed.children is None:
            continue
        for child in element.children:
            if child.tag not in allowed.children:
                tags = ", ".join(f"<{name}>" for name in sorted(allowed.children))
                raise mistake(
                    f"unknown element <{shown(child.tag)[1:-1]}> in <{element.tag}>",
                    source=child.place,
                    expected=f"<{element.tag}> with {tags or 'no elements'}",
                    hint=did_you_mean(child.tag, allowed.children),
                )


def unknown_attributes(
    root: Element, grammar: Mapping[str, Content]
) -> Iterator[tuple[Element, str]]:
    """Yields the attributes that a grammar does not have, with their elements."""
    for element in root.walk():
        allowed = grammar.get(element.tag)
        if allowed is not None:
            for name in element.attributes:
                if name not in allowed.attributes:
                    yield element, name


def check_attributes(root: Element, grammar: Mapping[str, Content]) -> None:
    """Checks the attributes of all elements that a grammar has.

    Raises:
        ConfigError: An attribute is unknown. The message has its line.
    """
    for element, name in unknown_attributes(root, grammar):
        known = grammar[element.tag].attributes
        raise mistake(
            f"<{element.tag}> has the unknown attribute `{shown(name)[1:-1]}`",
            source=element.place,
            expected=", ".join(sorted(known)) or "no attribute",
            hint=did_you_mean(name, known),
        )


class _Builder:
    """Collects the elements that expat reports."""

    def __init__(self, source: str, expected: str, within: Limits) -> None:
        self._source, self._expected, self._within = source, expected, within
        self._open: list[Element] = []
        self._root: Element | None = None
        self._elements = 0
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.StartDoctypeDeclHandler = self._document_type

    def parse(self, data: bytes) -> Element:
        try:
            self._parser.Parse(data, True)
        except expat.ExpatError as error:
            unclosed = self._open[-1] if self._open else None
            hint = (
                f"<{unclosed.tag}> of line {unclosed.line} is not closed: the file may be truncated"
                if unclosed is not None
                else ""
            )
            raise self._mistake(
                f"not XML: {expat.ErrorString(error.code)}", error.lineno, hint
            ) from None
        except (ValueError, LookupError) as error:  # an unknown encoding
            raise self._mistake(f"not XML: {error}", self._parser.CurrentLineNumber) from None
        if self._root is None:
            raise self._mistake("has no element", 1)
        return self._root

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        line = self._parser.CurrentLineNumber
        self._elements += 1
        if len(self._open) >= limits.DEPTH:
            raise self._mistake(f"elements are nested more than {limits.DEPTH} levels deep", line)
        if self._elements > self._within.elements:
            raise self._mistake(f"has more than {self._within.elements:,} elements", line)
        element = Element(tag, attributes, line, self._source)
        if self._open:
            self._open[-1].children.append(element)
        else:
            self._root = element
        self._open.append(element)

    def _end(self, _tag: str) -> None:
        self._open.pop()

    def _document_type(self, _name: str, _system: object, _public: object, inside: int) -> None:
        if self._within.document_type and not inside:
            return
        line = self._parser.CurrentLineNumber
        hint = "no tool writes declarations or entities here: remove the declaration"
        raise self._mistake("has a document type declaration", line, hint)

    def _mistake(self, problem: str, line: int, hint: str = "") -> Exception:
        place = f"{self._source}, line {line}"
        return mistake(problem, source=place, expected=self._expected, hint=hint)
