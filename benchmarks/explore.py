"""Measures the response times of `tutti explore` in headless Chromium.

For each platform, a server starts in a separate process and a page opens it. The benchmark prints:

- `first`: from the navigation of the page to its first decision map.
- `redraw`: from the input event of a slider to the painted decision map: minimum, median and
  maximum. The slider is that of the first rate of a link.
- `server`: processor time of the server per redraw, the median. It depends less on other load.
- `all`: from the navigation to the complete comparison, which the redraws need.

By default the platforms are the built-in ones with a topology of at least 64 NPUs. The benchmark
has no pass criterion.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

OPTIONS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
WATCH = """
() => {
  window.redraws = [];
  window.firstMap = null;
  const status = document.querySelector("#status");
  new MutationObserver(() => {
    if (!status.textContent.startsWith("preview")) return;
    const drawn = performance.now();
    requestAnimationFrame(() => setTimeout(() => {
      window.redraws.push([drawn - window.moved, performance.now() - window.moved]);
    }));
  }).observe(status, { childList: true, characterData: true, subtree: true });
}
"""
MOVE = """
(value) => {
  const input = document.querySelector(".slider input[data-key$='.rate']");
  input.value = value;
  window.moved = performance.now();
  input.dispatchEvent(new Event("input", { bubbles: true }));
}
"""


def platforms(ranks: int) -> Iterator[str]:
    """Yields the built-in platforms with a topology of at least `ranks` NPUs."""
    import tutti
    from tutti.platforms.files.presets import platform_names

    for name in platform_names():
        routes = tutti.platforms.platform(name).routes
        if routes is not None and routes.topology.ranks >= ranks:
            yield name


class Server:
    """A server in a separate process."""

    def __init__(self, threads: int) -> None:
        run = "from tutti.cli import main; main()"
        command = [sys.executable, "-c", run, "explore", "--no-browser"]
        command += ["--threads", str(threads)] if threads else []
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if found := re.search(r"http://\S+", line):
                self.address = found.group()
                break

    @property
    def seconds(self) -> float:
        """Processor time of the server and its process of jobs."""
        ticks = 0
        for one in [self.process.pid, *self._children()]:
            fields = Path(f"/proc/{one}/stat").read_text("utf-8").rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def _children(self) -> list[int]:
        file = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(one) for one in file.read_text("utf-8").split()]

    def stop(self) -> None:
        """Ends the server."""
        self.process.terminate()
        self.process.wait()


def until(page: Page, condition: str, seconds: float) -> None:
    """Waits for a condition; the page's policy refuses the `eval` of `wait_for_function`."""
    end = time.monotonic() + seconds
    while not page.evaluate(condition):
        if time.monotonic() > end:
            raise TimeoutError(condition)
        time.sleep(0.02)


def redraws(page: Page, server: Server, count: int) -> tuple[list[float], list[float]]:
    """Moves a slider; returns the times of redraws and the processor times of the server, in s."""
    page.evaluate(WATCH)
    seconds, cpu = [], []
    for step in range(1, count + 1):
        before = server.seconds
        page.evaluate(MOVE, (-1) ** step * 0.25 * ((step + 1) // 2))
        until(page, "document.documentElement.dataset.ready === 'true'", 120)
        until(page, f"window.redraws.length >= {step}", 120)
        time.sleep(0.05)
        seconds.append(page.evaluate("window.redraws.at(-1)[1]") / 1000)
        page.evaluate(f"window.redraws.length = {step}")
        cpu.append(server.seconds - before)
    return seconds, cpu


def measured(browser: Browser, platform: str, options: argparse.Namespace) -> str:
    """Returns the line of a platform."""
    server = Server(options.threads)
    try:
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        time.sleep(options.settle)  # the process of jobs imports its modules
        state: dict[str, Any] = {
            "platform": platform,
            "collective": options.collective,
            "datatype": "float32",
            "ranks": options.ranks,
            "sizes": {"from": "1 KiB", "to": "256 MiB", "factor": 4},
            "algorithms": options.algorithms or "defaults",
            "changes": {},
        }
        started = time.monotonic()
        page.goto(f"{server.address}#{quote(json.dumps(state))}")
        until(page, "document.querySelector('.map button') !== null", 600)
        first = time.monotonic() - started
        line = f"{platform:<26} {first:>7.2f} s"
        if options.first:
            return line
        until(page, "document.documentElement.dataset.ready === 'true'", options.patience)
        complete = time.monotonic() - started
        seconds, cpu = redraws(page, server, options.moves)
        milliseconds = [1000 * one for one in sorted(seconds)]
        return (
            f"{line} {milliseconds[0]:>8.0f} {statistics.median(milliseconds):>8.0f}"
            f" {milliseconds[-1]:>8.0f} ms {1000 * statistics.median(cpu):>8.0f} ms"
            f" {complete:>7.1f} s"
        )
    except TimeoutError:
        return f"{line} no complete comparison after {options.patience} s"
    finally:
        page.close()
        server.stop()


def main() -> None:
    """Prints a line for each platform."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("platforms", nargs="*")
    parser.add_argument("--ranks", type=int, nargs="+", default=[4, 8, 16, 32, 64])
    parser.add_argument("--collective", default="all_reduce")
    parser.add_argument("--algorithms", nargs="+", help="default: all, default arguments")
    parser.add_argument("--moves", type=int, default=10, help="of the slider")
    parser.add_argument("--threads", type=int, default=0, help="of a job; 0: one per core")
    parser.add_argument("--first", action="store_true", help="measure only the first map")
    parser.add_argument("--patience", type=int, default=600, help="s for a complete comparison")
    parser.add_argument("--settle", type=float, default=4, help="s from server start to page")
    options = parser.parse_args()
    print("platform                     first      redraw: min median max     server       all")
    with sync_playwright() as playwright:
        path = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=path, headless=True, args=OPTIONS)
        for platform in options.platforms or platforms(max(options.ranks)):
            print(measured(browser, platform, options), flush=True)
        browser.close()


if __name__ == "__main__":
    main()
