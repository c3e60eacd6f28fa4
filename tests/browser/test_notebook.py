"""The animation of a schedule in a notebook: it moves messages, unless motion is reduced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tutti

if TYPE_CHECKING:
    from playwright.sync_api import Browser

MOVING = "document.getAnimations().filter((one) => one.playState === 'running').length"


@pytest.mark.browser
@pytest.mark.timeout(180)
@pytest.mark.parametrize(("motion", "moving"), [("no-preference", 4 * 6 + 6), ("reduce", 0)])
def test_messages_move_unless_motion_is_reduced(browser: Browser, motion: Any, moving: int) -> None:
    shown = tutti.schedule("ring", ranks=4)._repr_html_()
    with browser.new_context(reduced_motion=motion, offline=True) as context:
        page = context.new_page()
        page.set_content(f"{shown}<p class='message'>text of the notebook</p>")
        assert page.evaluate(MOVING) == moving
        assert page.locator("svg path").count() == 4 * 6
