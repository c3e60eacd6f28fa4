"""Runs the application on this machine."""

from __future__ import annotations

import socket
import threading
import webbrowser
from typing import TYPE_CHECKING

from tutti.base.files.extras import check_extra
from tutti.explore.errors import ExploreError
from tutti.explore.guard import Access

if TYPE_CHECKING:
    from collections.abc import Callable

    from tutti.explore.state import Base


def serve(
    base: Base,
    *,
    threads: int = 0,
    host: str = "127.0.0.1",
    port: int = 0,
    browser: bool = True,
    started: Callable[[Access], object],
) -> None:
    """Serves the application until Ctrl-C.

    Args:
        base: The experiment that pages start from.
        threads: The number of threads of a job; 0 uses one per core.
        host: The address to listen on.
        port: The port; 0 selects a free one.
        browser: Whether to open the page in a browser.
        started: Called with host, port and token once the server listens.

    Raises:
        ConfigError: A package of the extra is not installed.
        ExploreError: The address is in use.
    """
    check_extra("explore")
    with _listening(host, port) as listening:
        access = Access(host, listening.getsockname()[1])
        started(access)
        if browser:
            threading.Timer(0.3, webbrowser.open, (access.url,)).start()
        _run(base, threads, access, listening)


def _run(base: Base, threads: int, access: Access, listening: socket.socket) -> None:
    """Serves requests on a socket until Ctrl-C."""
    import uvicorn

    from tutti.explore.app import create_app
    from tutti.explore.jobs import Worker

    worker = Worker(base, threads=threads)
    worker.start()
    config = uvicorn.Config(
        create_app(worker, access),
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,
        ws="none",
    )
    try:
        uvicorn.Server(config).run(sockets=[listening])
    finally:
        worker.stop()


def _listening(host: str, port: int) -> socket.socket:
    """Returns a socket that is bound to an address.

    Raises:
        ExploreError: The address is in use or does not exist.
    """
    try:
        (family, *_, address), *_ = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        return socket.create_server(address[:2], family=family)
    except OSError as error:
        message = f"cannot listen on {host}:{port}: {error.strerror or error}"
        raise ExploreError(message, kind="address") from None
