"""Lines of results without blanks at their ends, which tables of rich have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import RenderHook
from rich.segment import Segment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import Console, ConsoleOptions, ConsoleRenderable


class Trimming(RenderHook):
    """Removes blanks at the ends of the lines of whatever a console prints."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Returns renderables whose lines have no blanks at their ends."""
        return [_Trimmed(each) for each in renderables]


class _Trimmed:
    def __init__(self, content: ConsoleRenderable) -> None:
        self._content = content

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        yield from trimmed(console.render(self._content, options))


def trimmed(segments: Iterable[Segment]) -> Iterator[Segment]:
    """Yields segments of lines without blanks at their ends; a background stays."""
    blanks: list[Segment] = []
    for segment in segments:
        if segment.control:
            yield segment
            continue
        is_filled = segment.style is not None and segment.style.bgcolor is not None
        for number, text in enumerate(segment.text.split("\n")):
            if number:
                blanks.clear()
                yield Segment.line()
            kept = text if is_filled else text.rstrip(" ")
            if kept:
                yield from blanks
                blanks.clear()
                yield Segment(kept, segment.style)
            if len(kept) < len(text):
                blanks.append(Segment(text[len(kept) :], segment.style))
