"""The ASGI application of `tutti explore`: the page, its assets and its requests.

Requests have a JSON body with the `state` of the page. Comparisons respond with a stream of
server-sent events: `stage`, `progress`, `partial`, then `result` or `failed`. A client cancels a
comparison by closing the stream; a new comparison cancels the one before it.
"""

from __future__ import annotations

import asyncio
import json
import threading
from importlib import resources
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tutti.base.errors import ConfigError, TuttiError
from tutti.explore import exports
from tutti.explore.engine import Cancelled
from tutti.explore.guard import Guard

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from tutti.explore.guard import Access
    from tutti.explore.jobs import Jobs

_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


def create_app(jobs: Jobs, access: Access) -> ASGIApp:
    """Returns the application.

    Args:
        jobs: Runs the jobs.
        access: The host and the token; every request without the token gets status 401.
    """
    pages = _Pages(jobs)
    routes = [
        Route("/", _page),
        Route("/assets/{name}", _asset),
        Route("/api/choices", pages.choices),
        Route("/api/platform", pages.platform, methods=["POST"]),
        Route("/api/compare", pages.compare, methods=["POST"]),
        Route("/api/run", pages.run, methods=["POST"]),
        Route("/api/endpoint", pages.endpoint, methods=["POST"]),
        Route("/api/export/{kind}", pages.export, methods=["POST"]),
    ]
    app = Starlette(routes=routes, exception_handlers={TuttiError: _failed})
    return Guard(app, access)


async def _page(_: Request) -> Response:
    return _file("index.html")


async def _asset(request: Request) -> Response:
    name = request.path_params["name"]
    known = {one.name for one in resources.files(__package__).joinpath("assets").iterdir()}
    return _file(name) if name in known else Response(status_code=404)


def _file(name: str) -> Response:
    content = resources.files(__package__).joinpath("assets", name).read_bytes()
    return Response(content, media_type=_TYPES.get(name.rpartition(".")[2], "text/plain"))


async def _failed(_: Request, error: Exception) -> Response:
    return JSONResponse(_problem(error), 422)


def _problem(error: Exception) -> dict[str, str]:
    return {
        "problem": getattr(error, "problem", str(error)),
        "hint": getattr(error, "hint", ""),
    }


class _Pages:
    """The requests of a page."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._stop = threading.Event()

    async def choices(self, _: Request) -> Response:
        """Responds with the values of the controls."""
        return JSONResponse(await self._called("choices", {}))

    async def platform(self, request: Request) -> Response:
        """Responds with models and parameters of the state's platform."""
        return JSONResponse(await self._called("platform", await _body(request)))

    async def run(self, request: Request) -> Response:
        """Responds with the timeline, the links and the critical path of a run."""
        return JSONResponse(await self._called("run", await _body(request)))

    async def endpoint(self, request: Request) -> Response:
        """Responds with the time of a run behind an endpoint model."""
        return JSONResponse(await self._called("endpoint", await _body(request)))

    async def compare(self, request: Request) -> Response:
        """Streams a comparison; with `known` it repeats the fastest schedules of that one."""
        body = await _body(request)
        self._stop.set()
        self._stop = stop = threading.Event()

        def job(emit: Callable[[str, Any], object]) -> object:
            return self._jobs.call("compare", body, emit, stop)

        return StreamingResponse(_events(job, stop), media_type="text/event-stream")

    async def export(self, request: Request) -> Response:
        """Responds with a file: the experiment, the report or the trace."""
        kind = request.path_params["kind"]
        if kind not in exports.KINDS:
            return Response(status_code=404)
        content = await self._called("export", {**await _body(request), "kind": kind})
        headers = {"content-disposition": f'attachment; filename="{exports.KINDS[kind]}"'}
        return Response(content, media_type="application/octet-stream", headers=headers)

    async def _called(self, kind: str, body: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON or bytes
        stop = threading.Event()
        return await asyncio.to_thread(self._jobs.call, kind, body, lambda *_: None, stop)


async def _body(request: Request) -> dict[str, Any]:
    """Returns the body of a request.

    Raises:
        ConfigError: The body is not a JSON object.
    """
    try:
        body = json.loads(await request.body())
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise ConfigError("the request is not a JSON object", kind="invalid")
    return body


async def _events(
    job: Callable[[Callable[[str, Any], object]], object], stop: threading.Event
) -> AsyncIterator[str]:
    """Runs a job in a thread, and yields its events; closing the stream cancels the job."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[tuple[str, Any] | None] = asyncio.Queue()

    def emit(name: str, value: object) -> None:
        loop.call_soon_threadsafe(queue.put_nowait, (name, value))

    def work() -> None:
        try:
            emit("result", job(emit))
        except Cancelled:
            emit("cancelled", None)
        except TuttiError as error:
            emit("failed", _problem(error))
        finally:
            loop.call_soon_threadsafe(queue.put_nowait, None)

    running = loop.run_in_executor(None, work)
    try:
        while (event := await queue.get()) is not None:
            name, value = event
            yield f"event: {name}\ndata: {json.dumps(value, separators=(',', ':'))}\n\n"
    finally:
        stop.set()
    await running
