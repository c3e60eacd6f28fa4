"""The jobs of a page, and the process that runs them.

A job is a request by name, with the JSON body of the request. :class:`Local` runs jobs in this
process, :class:`Worker` in a separate one. A cancelled job that does not stop within a second is
ended with its process. The next job starts another process.
"""

from __future__ import annotations

import itertools
import multiprocessing
import queue
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from tutti.base.child_processes import no_interrupts
from tutti.base.errors import ConfigError, TuttiError
from tutti.explore.choices import choices, platform_json
from tutti.explore.endpoints import endpoint_json
from tutti.explore.engine import Cancelled, Compared, Emit, Engine, Point
from tutti.explore.errors import ExploreError
from tutti.explore.exports import export
from tutti.explore.preview import Preview
from tutti.explore.shown import cells_json, compared_json, run_json

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from tutti.explore.state import Base

_PATIENCE_S = 1.0
"""The time that a cancelled job has to stop before its process ends."""
_POLL_S = 0.01

Body = Mapping[str, Any]


class Jobs(Protocol):
    """Runs jobs."""

    def call(self, kind: str, body: Body, emit: Emit, stop: threading.Event) -> Any:  # noqa: ANN401 - JSON or bytes
        """Returns the result of a job.

        Args:
            kind: The name of the job, as in `perform`.
            body: The body of the request.
            emit: Receives the events of the job.
            stop: Set to cancel the job.

        Raises:
            TuttiError: The request is invalid, or the job fails.
            Cancelled: The job was cancelled.
        """


def perform(engine: Engine, kind: str, body: Body, emit: Emit, stop: threading.Event) -> Any:  # noqa: ANN401 - JSON or bytes
    """Runs a job: `choices`, `platform`, `compare`, `run`, `endpoint` or `export`.

    Raises:
        TuttiError: The request is invalid, or the job fails.
        Cancelled: `stop` was set.
    """
    if kind == "choices":
        return choices(engine.base)
    state = _state(body)
    if kind == "platform":
        return platform_json(engine.base, state)
    if kind == "compare":
        return _compare(engine, state, body, emit, stop)
    if kind == "run":
        return _run(engine, state, body)
    if kind == "endpoint":
        return endpoint_json(engine, state, _point(body), body.get("endpoint"))
    point = _point(body) if body["kind"] == "trace" or body.get("schedule") else None
    return export(engine, body["kind"], state, point)


def _state(body: Body) -> Mapping[str, Any]:
    state = body.get("state")
    if not isinstance(state, Mapping):
        raise ConfigError("the request has no state", kind="invalid")
    return state


def _point(body: Body) -> Point:
    schedule, ranks, size = (body.get(name) for name in ("schedule", "ranks", "size"))
    if not (isinstance(schedule, str) and isinstance(ranks, int) and isinstance(size, int)):
        raise ConfigError("the request names no schedule, ranks and size", kind="invalid")
    return Point(schedule, ranks, size)


def _compare(
    engine: Engine, state: Mapping[str, Any], body: Body, emit: Emit, stop: threading.Event
) -> dict[str, Any]:
    def drawn(name: str, value: object) -> None:
        if isinstance(value, (Compared, Preview)):
            value = cells_json(value) if name == "cells" else compared_json(value)
        emit(name, value)

    known = body.get("known")
    if isinstance(known, str) and known:
        return compared_json(engine.retime(state, known, drawn, stop))
    return compared_json(engine.compare(state, drawn, stop))


def _run(engine: Engine, state: Mapping[str, Any], body: Body) -> dict[str, Any]:
    run = engine.run(state, _point(body))
    rival = body.get("rival")
    other = engine.run(state, _point({**body, "schedule": rival})) if rival else None
    per_byte = engine.base.experiment(state).ps_per_byte
    return run_json(run, other, ps_per_byte=per_byte)


class Local:
    """Runs jobs in the calling thread."""

    def __init__(self, engine: Engine) -> None:
        """Runs jobs on an engine."""
        self._engine = engine

    def call(self, kind: str, body: Body, emit: Emit, stop: threading.Event) -> Any:  # noqa: ANN401 - as in Jobs
        """Returns the result of a job; see :class:`Jobs`."""
        return perform(self._engine, kind, body, emit, stop)


class Worker:
    """Runs jobs in a process that is started when it is needed."""

    def __init__(self, base: Base, *, threads: int = 0) -> None:
        """Prepares a process for a base experiment; `threads` as in `Engine`."""
        self._arguments = (base, threads)
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._process: _Process | None = None

    def start(self) -> None:
        """Starts the process, which takes about a second, before the first job needs it."""
        self._running()

    def stop(self) -> None:
        """Ends the process and its jobs."""
        with self._lock:
            if self._process is not None:
                self._process.kill()
                self._process = None

    def call(self, kind: str, body: Body, emit: Emit, stop: threading.Event) -> Any:  # noqa: ANN401 - as in Jobs
        """Returns the result of a job; see :class:`Jobs`."""
        process, number = self._running(), next(self._numbers)
        events = process.begin(number, kind, body)
        deadline = None
        while True:
            try:
                name, value = events.get(timeout=_POLL_S)
            except queue.Empty:
                if stop.is_set() and deadline is None:
                    process.cancel(number)
                    deadline = time.monotonic() + _PATIENCE_S
                elif deadline is not None and time.monotonic() > deadline:
                    process.kill()
                continue
            if name in ("cancelled", "ended") and (stop.is_set() or name == "cancelled"):
                raise Cancelled
            if name == "ended":
                raise ExploreError("the process of the page has ended", kind="ended")
            if name == "failed":
                raise value
            if name == "result":
                return value
            emit(name, value)

    def _running(self) -> _Process:
        with self._lock:
            if self._process is None or not self._process.alive:
                self._process = _Process(*self._arguments)
            return self._process


class _Process:
    """A process, and the events of its jobs by number."""

    def __init__(self, base: Base, threads: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._events: dict[int, queue.SimpleQueue[tuple[str, Any]]] = {}
        self._lock = threading.Lock()
        self._child = context.Process(target=_serve, args=(theirs, base, threads), daemon=True)
        with no_interrupts():  # the server ends this process
            self._child.start()
        theirs.close()
        self.alive = True
        threading.Thread(target=self._read, daemon=True).start()

    def begin(self, number: int, kind: str, body: Body) -> queue.SimpleQueue[tuple[str, Any]]:
        events = self._events[number] = queue.SimpleQueue()
        self._send(number, kind, dict(body))
        if not self.alive:
            events.put(("ended", None))
        return events

    def cancel(self, number: int) -> None:
        self._send(number, "cancel", None)

    def kill(self) -> None:
        self.alive = False
        self._child.kill()

    def _send(self, *message: object) -> None:
        with self._lock:
            try:
                self._connection.send(message)
            except OSError:
                self.alive = False

    def _read(self) -> None:
        try:
            while True:
                number, name, value = self._connection.recv()
                self._events[number].put((name, value))
                if name in ("result", "failed", "cancelled"):
                    del self._events[number]
        except (EOFError, OSError):
            self.alive = False
            for events in list(self._events.values()):
                events.put(("ended", None))


def _serve(connection: Connection, base: Base, threads: int) -> None:
    """Runs jobs in the process until the connection closes."""
    engine = Engine(base, threads=threads)
    stops: dict[int, threading.Event] = {}
    lock = threading.Lock()

    def send(number: int, name: str, value: object) -> None:
        with lock:
            connection.send((number, name, value))

    def work(number: int, kind: str, body: Body) -> None:
        try:
            emit: Callable[[str, Any], object] = lambda name, value: send(number, name, value)  # noqa: E731
            send(number, "result", perform(engine, kind, body, emit, stops[number]))
        except Cancelled:
            send(number, "cancelled", None)
        except TuttiError as error:
            send(number, "failed", error)
        except Exception:  # noqa: BLE001 - a defect must not end the other jobs
            traceback.print_exc()
            send(
                number,
                "failed",
                ExploreError("an internal error of tutti: the terminal shows its traceback"),
            )
        finally:
            del stops[number]

    while True:
        try:
            number, kind, body = connection.recv()
        except EOFError:
            return
        if kind != "cancel":
            stops[number] = threading.Event()
            threading.Thread(target=work, args=(number, kind, body), daemon=True).start()
        elif number in stops:
            stops[number].set()
