"""Removes the prefixes of launchers, containers and CI from the lines of a log.

Recognised in any order and combination: tags and time stamps of `mpirun`, rank labels of `srun -l`
and of MPICH's `-l`, names of hosts (`pdsh`), pods and containers, and time stamps of `kubectl`,
`docker` (or its JSON), GitHub, GitLab and syslog.

If no line is a heading after that, the text in front of a heading is the prefix: lines with the
same characters except digits have it, too. Headings that lost their `#`, as in texts that were
pasted as Markdown, get it back.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from tutti.base.files.limits import LOG_LINE

if TYPE_CHECKING:
    from collections.abc import Iterable

_BREAKS: Final = str.maketrans(dict.fromkeys("\r\v\f\x1c\x1d\x1e\x85\u2028\u2029", " "))
_COLOURS: Final = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
_ISO: Final = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,12})?(?: ?Z| ?[+-]\d\d:?\d\d)?"
_DATE: Final = r"(?:[A-Z][a-z]{2} )?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:[.]\d{1,9})?(?: \d{4})?"
_JSON: Final = '{"log":'
_DATA: Final = r"(?=\s*[#\d]|\s*$|\[)"
"""What follows labels that other lines have, too: a heading, a row, a blank, another label."""
_PREFIX: Final = re.compile(
    "|".join(
        (
            # mpirun --tag-output and --timestamp-output, of Open MPI 1 to 5 and of SageMaker
            rf"(?:{_DATE} ?)?(?:\[[^\[\]]{{1,200}}\] ?){{0,4}}<std(?:out|err|diag)>:? ?",
            # CRI and GitLab: 2024-05-22T12:43:46.962646Z 00O text
            rf"[\[(]?{_ISO}[\])]?(?: \d\d[OE]\+|(?: std(?:out|err) [FP]| \d\d[OE])?(?::|\s|$))",
            rf"\[{_DATE}\] ?|{_DATE}(?: [\w.-]{{1,100}} [\w./-]{{1,60}}\[\d{{1,10}}\]:)?(?:\s|$)",
            r"\[?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\]?(?:\s|$)",
            # srun -l, flux --label-io; mpiexec -l of MPICH and Intel MPI; torchrun
            r"\s*\d{1,8}:(?:\s|$)",
            r"\[(?:default|rank)?\s?\d{1,8}\]:? ?",
            rf"\[[^\[\]]{{1,200}}\]:? ?{_DATA}",
            # docker compose, kubectl logs --prefix, pdsh, gh run view --log
            r"[\w.@/-]{1,200}\s{0,40}\|(?: |$)",
            r"(?=[\w.-]*[\d-])[A-Za-z][\w.-]{1,100}:\s?(?=\s*#|\s*\d+\s+\d|\s*$|\[)",
            r"[^\t]{1,200}\t[^\t]{1,200}\t(?=\ufeff?\d{4}-\d\d-\d\dT)",
            r"\([^()]{0,80}\bpid=\d{1,10}[^()]{0,80}\) ?",  # Ray
            r"(?:> ?)+",  # a quotation in Markdown
            r"\ufeff",
        )
    )
)
_MOST: Final = 8
"""Prefixes of one line."""
_HEADING: Final = re.compile(
    r"# (?:OSU|OMB-Py) .* Test|# Benchmarking \S|#\s+(?:size\s+count|bytes\s+N)\s|# nThread"
    r"|# Using devices"
)
_BARE: Final = re.compile(
    r"\s*(?:nThread:? \d|Using devices|Rank\s+\d+\s.{0,200}\bdevice\s"
    r"|size\s+count\s+type\s.*\bbusbw|Out of bounds values\s*:"
    r"|Collective test (?:starting|concluded): |(?:OSU|OMB-Py) .* Test\b|Size\s.*\((?:us|MB/s)\))"
)
_UNLIKELY: Final = re.compile(r"[\"'`$#]|\becho\b|\bgrep\b")
_SHAPES: Final = 4


def without_prefixes(text: str) -> list[str]:
    """Returns the lines of a log without prefixes: a line for each line of the text.

    Examples:
        >>> without_prefixes(chr(10).join(["[1,0]<stdout>:# Size", "0:  8   1.5"]))
        ['# Size', ' 8   1.5']
    """
    texts = (_unwrapped(line) if line.startswith(_JSON) else line for line in text.split("\n"))
    lines = [_stripped(_COLOURS.sub("", line.translate(_BREAKS))) for line in texts]
    if any(line.startswith("#") and _HEADING.match(line) for line in lines):
        return lines
    if shapes := _shapes(lines):
        return [_stripped(_without_shape(line, shapes)) for line in lines]
    return [f"# {line.lstrip()}" if _BARE.match(line[:LOG_LINE]) else line for line in lines]


def _unwrapped(line: str) -> str:
    """Returns the text of a line of docker's `json-file` logs."""
    try:
        text = json.loads(line).get("log") if len(line) <= LOG_LINE else None
    except (ValueError, RecursionError):
        return line
    return text.replace("\n", " ") if isinstance(text, str) else line


def _stripped(line: str) -> str:
    """Returns a line without prefixes, and without the indentation of a comment."""
    if len(line) > LOG_LINE:
        return line
    indented = place = len(line) - len(line.lstrip())
    for _ in range(_MOST):
        match = _PREFIX.match(line, place)
        if match is None or match.end() == place:
            break
        place = match.end()
    rest = line[place:] if place > indented else line
    start = rest.lstrip()
    return start if start.startswith("#") else rest


def _shapes(lines: Iterable[str]) -> list[re.Pattern[str]]:
    """Returns patterns of the texts in front of headings."""
    found: dict[str, None] = {}
    for line in lines:
        heading = _HEADING.search(line[:LOG_LINE])
        prefix = line[: heading.start()] if heading else ""
        if prefix and not _UNLIKELY.search(prefix):
            found["".join(map(_shape, re.split(r"(\d+|\s+)", prefix)))] = None
        if len(found) == _SHAPES:
            break
    return [re.compile(shape) for shape in found]


def _shape(part: str) -> str:
    """Returns a pattern of digits, of spaces or of a literal text."""
    if part.isdecimal():
        return r"\d{1,20}"
    return r"\s+" if part.isspace() else re.escape(part)


def _without_shape(line: str, shapes: Iterable[re.Pattern[str]]) -> str:
    for shape in shapes:
        # The space before a cell is part of the prefix of headings, but not of rows.
        if match := shape.match(line[:LOG_LINE]):
            return line[match.end() :]
    return line
