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

from tutti.errors import ConfigError, TuttiError
from tutti.explore import exports
from tutti.explore.choices import choices, platform_json
from tutti.explore.engine import Cancelled, Compared, Engine, Point
from tutti.explore.guard import Guard
from tutti.explore.shown import compared_json, run_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from tutti.explore.guard import Access

__all__ = ["create_app"]

_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


def create_app(engine: Engine, access: Access) -> ASGIApp:
    """Returns the application.

    Args:
        engine: Runs the jobs.
        access: The host and the token; every request without the token gets status 401.
    """
    pages = _Pages(engine)
    routes = [
        Route("/", _page),
        Route("/assets/{name}", _asset),
        Route("/api/choices", pages.choices),
        Route("/api/platform", pages.platform, methods=["POST"]),
        Route("/api/compare", pages.compare, methods=["POST"]),
        Route("/api/run", pages.run, methods=["POST"]),
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
    hint = getattr(error, "hint", "")
    return {"problem": getattr(error, "problem", str(error)), "hint": hint}


class _Pages:
    """The requests of a page."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._stop = threading.Event()

    async def choices(self, _: Request) -> Response:
        """Responds with the values of the controls."""
        return JSONResponse(await asyncio.to_thread(choices, self._engine.base))

    async def platform(self, request: Request) -> Response:
        """Responds with models and parameters of the state's platform."""
        state, _ = await _body(request)
        return JSONResponse(await asyncio.to_thread(platform_json, self._engine.base, state))

    async def compare(self, request: Request) -> Response:
        """Streams a comparison; with `known` it repeats the fastest schedules of that one."""
        state, body = await _body(request)
        known = body.get("known")
        self._stop.set()
        self._stop = stop = threading.Event()

        def job(emit: Callable[[str, Any], object]) -> Compared:
            if isinstance(known, str) and known:
                return self._engine.retime(state, known, emit, stop)
            return self._engine.compare(state, emit, stop)

        return StreamingResponse(_events(job, stop), media_type="text/event-stream")

    async def run(self, request: Request) -> Response:
        """Responds with the timeline, the links and the critical path of a run."""
        state, body = await _body(request)
        return JSONResponse(await asyncio.to_thread(self._run, state, body))

    async def export(self, request: Request) -> Response:
        """Responds with a file: the experiment, the report or the trace."""
        state, body = await _body(request)
        kind = request.path_params["kind"]
        if kind not in exports.KINDS:
            return Response(status_code=404)
        point = _point(body) if kind == "trace" or body.get("schedule") else None
        content = await asyncio.to_thread(exports.export, self._engine, kind, state, point)
        name = exports.KINDS[kind]
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return Response(content, media_type="application/octet-stream", headers=headers)

    def _run(self, state: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
        run = self._engine.run(state, _point(body))
        rival = body.get("rival")
        other = self._engine.run(state, _point({**body, "schedule": rival})) if rival else None
        per_byte = self._engine.base.experiment(state).ps_per_byte
        return run_json(run, other, ps_per_byte=per_byte)


async def _body(request: Request) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the state of a request and its body.

    Raises:
        ConfigError: The body is not a JSON object with a state.
    """
    try:
        body = json.loads(await request.body())
    except ValueError:
        body = None
    state = body.get("state") if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(state, dict):
        raise ConfigError("the request has no state", kind="invalid")
    return state, body


def _point(body: Mapping[str, Any]) -> Point:
    schedule, ranks, size = (body.get(name) for name in ("schedule", "ranks", "size"))
    if not (isinstance(schedule, str) and isinstance(ranks, int) and isinstance(size, int)):
        raise ConfigError("the request names no schedule, ranks and size", kind="invalid")
    return Point(schedule, ranks, size)


async def _events(
    job: Callable[[Callable[[str, Any], object]], Compared], stop: threading.Event
) -> AsyncIterator[str]:
    """Runs a job in a thread, and yields its events; closing the stream cancels the job."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[tuple[str, Any] | None] = asyncio.Queue()

    def put(event: tuple[str, Any] | None) -> None:
        loop.call_soon_threadsafe(queue.put_nowait, event)

    def emit(name: str, value: Any) -> None:  # noqa: ANN401 - an event has any value
        put((name, compared_json(value) if isinstance(value, Compared) else value))

    def work() -> None:
        try:
            emit("result", job(emit))
        except Cancelled:
            put(("cancelled", None))
        except TuttiError as error:
            put(("failed", _problem(error)))
        finally:
            put(None)

    running = loop.run_in_executor(None, work)
    try:
        while (event := await queue.get()) is not None:
            name, value = event
            yield f"event: {name}\ndata: {json.dumps(value, separators=(',', ':'))}\n\n"
    finally:
        stop.set()
    await running
