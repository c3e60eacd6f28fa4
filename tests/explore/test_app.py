"""The application of `tutti explore`, called as ASGI without a server."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the extra explore is not installed")

from tutti.base.errors import ConfigError
from tutti.collectives.files.resolve import load_experiment
from tutti.collectives.simulation import compare
from tutti.explore.app import create_app
from tutti.explore.engine import Cancelled, Engine, Point
from tutti.explore.errors import ExploreError
from tutti.explore.guard import Access
from tutti.explore.jobs import Local, Worker
from tutti.explore.preview import retimed
from tutti.explore.server import serve
from tutti.explore.state import Base

PORT = 8123
TABLES: dict[str, Any] = {
    "platform": "infiniband_hdr_fat_tree",
    "collective": "all_reduce",
    "ranks": [4, 8],
    "sizes": ["1 KiB", "1 MiB"],
    "algorithms": ["ring", "recursive_doubling", "recursive_halving_doubling"],
}
RATE = "topology.links[0].rate"


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[tuple[str, Any]]:
        found = []
        for event in self.body.decode().strip().split("\n\n"):
            name, data = event.split("\n")
            found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
        return found


class Client:
    """Sends requests to an application."""

    def __init__(self) -> None:
        self.engine = Engine(Base(TABLES, Path()), threads=1)
        self.access = Access("127.0.0.1", PORT, "secret")
        self.app = create_app(Local(self.engine), self.access)

    def call(self, path: str, body: Any = None, *, method: str = "", **headers: str) -> Answer:
        given = {"host": f"127.0.0.1:{PORT}", "authorization": "Bearer secret"} | headers
        content = b"" if body is None else json.dumps(body).encode()
        path, _, query = path.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "method": method or ("GET" if body is None else "POST"),
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in given.items() if value],
            "http_version": "1.1",
            "scheme": "http",
            "server": ("127.0.0.1", PORT),
        }
        # In a thread, since a browser of other tests has an event loop in this one.
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(lambda: asyncio.run(self._called(scope, content))).result()

    async def _called(self, scope: dict[str, Any], content: bytes) -> Answer:
        sent: list[Any] = []
        waiting = [{"type": "http.request", "body": content, "more_body": False}]

        async def receive() -> Any:
            if waiting:
                return waiting.pop()
            await asyncio.Event().wait()
            return None

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        headers = {key.decode(): value.decode() for key, value in sent[0]["headers"]}
        body = b"".join(one.get("body", b"") for one in sent[1:])
        return Answer(sent[0]["status"], headers, body)


@pytest.fixture(scope="module")
def client() -> Client:
    return Client()


@pytest.mark.parametrize("path", ["/", "/assets/main.js", "/api/choices", "/none"])
def test_requests_without_the_token_are_refused(client: Client, path: str) -> None:
    refused = client.call(path, authorization="")
    assert refused.status == 401
    assert "secret" not in refused.body.decode()
    assert client.call(path, authorization="Bearer secreT").status == 401
    assert client.call(path, authorization="", cookie=f"{client.access.cookie}=x").status == 401


def test_the_printed_address_sets_a_cookie_that_scripts_cannot_read(client: Client) -> None:
    first = client.call("/?token=secret", authorization="")
    assert first.status == 303
    assert first.headers["location"] == "/"
    cookie = first.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict"} <= set(cookie.split("; "))
    page = client.call("/", authorization="", cookie=cookie.split(";")[0])
    assert page.status == 200
    assert client.call("/?token=wrong", authorization="").status == 401


@pytest.mark.parametrize("host", ["evil.example:8123", "127.0.0.1", "127.0.0.1:81", "", "a:b:c"])
def test_other_hosts_are_refused(client: Client, host: str) -> None:
    assert client.call("/", host=host).status == 421


@pytest.mark.parametrize(
    ("host", "served"),
    [("10.0.0.5:8123", True), ("here:8123", True), ("evil.example:8123", False)],
)
def test_a_public_server_serves_addresses_and_its_name(host: str, served: bool) -> None:
    assert Access("here", PORT).serves(host) is served


def test_other_origins_are_refused(client: Client) -> None:
    assert client.call("/api/choices", origin="http://evil.example").status == 403
    assert client.call("/api/choices", origin=f"http://127.0.0.1:{PORT}").status == 200


def test_the_policy_admits_only_files_of_the_server(client: Client) -> None:
    page = client.call("/")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    text = page.body.decode()
    assert "http:" not in text
    assert "https:" not in text
    assert "style=" not in text
    for part in text.split('"'):
        if part.startswith("/assets/"):
            assert client.call(part).status == 200
    assert client.call("/assets/../app.py").status == 404
    assert client.call("/assets/none.js").status == 404


def test_choices_and_parameters(client: Client) -> None:
    found = client.call("/api/choices").json
    assert found["base"]["ranks"] == [4, 8]
    assert "cray_xc30" in [one["name"] for one in found["platforms"]]
    platform = client.call("/api/platform", {"state": {}}).json
    keys = {one["key"]: one["group"] for one in platform["parameters"]}
    assert keys[RATE] == "link"
    assert keys["models.host.alpha_p"] == "model"
    assert platform["most_ranks"] == 800


def test_a_comparison_is_that_of_compare(client: Client) -> None:
    name, found = client.call("/api/compare", {"state": {}}).events[-1]
    assert name == "result"
    assert found["complete"]
    platform = client.engine.base.experiment({}).machine()
    frame = compare(
        platform,
        collective="all_reduce",
        ranks=[4, 8],
        sizes=["1 KiB", "1 MiB"],
        algorithms=TABLES["algorithms"],
    )
    expected = {(row[0], row[1], row[2]): row[3] for row in frame.select(
        "ranks", "size_bytes", "schedule", "time_ps").iter_rows()}  # fmt: skip
    assert {(row[0], row[1], row[3]): row[4] for row in found["rows"]} == expected
    assert {(one["ranks"], one["size"]) for one in found["cells"]} == {
        (ranks, size) for ranks in (4, 8) for size in (1 << 10, 1 << 20)
    }


def test_a_slower_link_is_retimed_and_exported_with_the_same_numbers(
    client: Client, tmp_path: Path
) -> None:
    key = client.call("/api/compare", {"state": {}}).events[-1][1]["key"]
    state = {"changes": {RATE: "5 GB/s"}}
    events = client.call("/api/compare", {"state": state, "known": key}).events
    cells = [cell for name, value in events if name == "cells" for cell in value["cells"]]
    preview = events[-1][1]
    assert len(cells) == 4
    assert {str(cell) for cell in cells} == {str(cell) for cell in preview["cells"]}
    complete = client.call("/api/compare", {"state": state}).events[-1][1]
    assert not preview["complete"]
    times = {(row[0], row[1], row[3]): row[4] for row in complete["rows"]}
    assert {(row[0], row[1], row[3]): row[4] for row in preview["rows"]}.items() <= times.items()
    file = tmp_path / "experiment.toml"
    exported = client.call("/api/export/toml", {"state": state})
    assert exported.headers["content-disposition"].endswith('"experiment.toml"')
    file.write_bytes(exported.body)
    assert load_experiment(file).config_hash == complete["key"]


def test_a_preview_has_the_fields_of_a_frame(client: Client) -> None:
    reference = client.engine.compare({}, lambda *_: None, threading.Event())
    experiment = client.engine.base.experiment({})
    found = retimed(reference, experiment, lambda *_: None, lambda: None, threads=1)
    assert found.case == reference.case


def test_previews_of_other_sizes_or_unknown_comparisons_compare_everything(client: Client) -> None:
    key = client.call("/api/compare", {"state": {}}).events[-1][1]["key"]
    for state, known in (({"sizes": ["2 KiB"]}, key), ({"ranks": [4]}, "none")):
        name, found = client.call("/api/compare", {"state": state, "known": known}).events[-1]
        assert (name, found["complete"]) == ("result", True)


def test_an_unfinished_comparison_is_retimed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tutti.explore.engine._REPORTS_S", 0.0)
    engine = Engine(Base(TABLES, Path()), threads=1)
    stop = threading.Event()
    found: list[Any] = []

    def emit(name: str, value: Any) -> None:
        if name == "partial" and not found:
            found.append(value)
            stop.set()

    with pytest.raises(Cancelled):
        engine.compare({}, emit, stop)
    state = {"changes": {RATE: "5 GB/s"}}
    preview = engine.retime(state, found[0].key, lambda *_: None, threading.Event())
    assert not preview.complete
    assert 0 < preview.measurements < 12


def test_a_schedule_runs_behind_an_endpoint(client: Client) -> None:
    state = {"platform": "dgx_h100", "ranks": [4, 8]}
    body = {"state": state, "schedule": "ring", "ranks": 8, "size": 1 << 20}
    found = client.call("/api/endpoint", body | {"endpoint": "comm_opt"}).json
    assert found["time_ps"] >= found["bound_ps"] > 0
    assert found["server_ps"] <= found["bound_ps"]
    for change, problem in (
        ({"endpoint": "none"}, "unknown endpoint"),
        ({"ranks": 4}, "use all 8 NPUs"),
        ({"state": {**state, "platform": "loggp_cluster"}}, "no topology"),
    ):
        refused = client.call("/api/endpoint", body | {"endpoint": "ace"} | change)
        assert refused.status == 422
        assert problem in refused.json["problem"]


def test_all_default_arguments_are_exported_by_name(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "experiment.toml"
    state = {"algorithms": "defaults", "collective": "broadcast", "platform": "cray_xc30"}
    file.write_bytes(client.call("/api/export/toml", {"state": state}).body)
    assert load_experiment(file).config_hash == client.engine.base.experiment(state).config_hash


def test_a_run_has_timeline_links_and_causes(client: Client) -> None:
    body = {"state": {}, "schedule": "ring", "ranks": 8, "size": 1 << 20}
    run = client.call("/api/run", body | {"rival": "recursive_doubling"}).json
    assert sum(run["causes"].values()) == run["time_ps"]
    assert run["time_ps"] >= run["bound_ps"]
    assert run["timeline"]["ranks"] == list(range(8))
    assert run["path"][0][2] == 0
    assert run["path"][-1][3] == run["time_ps"]
    assert {one[1] for one in run["topology"]["vertices"]} == {"npu", "switch"}
    assert max(one[4] for one in run["topology"]["links"]) <= run["time_ps"]
    assert run["reason"].startswith("ring needs ")


def test_traces_are_exported(client: Client) -> None:
    # The browser test exports the report.
    body = {"state": {}, "schedule": "ring", "ranks": 4, "size": 1 << 20}
    exported = client.call("/api/export/trace", body)
    assert exported.status == 200
    assert len(exported.body) > 1000
    assert client.call("/api/export/none", body).status == 404


@pytest.mark.parametrize(
    ("state", "problem"),
    [
        ({"platform": "nowhere"}, "unknown platform"),
        ({"platform": "../x.toml"}, "unknown platform"),
        ({"ranks": [1]}, "ranks"),
        ({"ranks": [4096]}, "4096 ranks exceed"),
        ({"sizes": ["3 B"]}, "multiple"),
        ({"algorithms": ["/etc/x.schedule"]}, "is a file"),
        ({"blocks": "/etc/passwd"}, "unknown key"),
        ({"changes": {"topology.file": "/etc/passwd"}}, "unknown parameter"),
        ({"changes": {RATE: "fast"}}, "rate"),
        ({"changes": {RATE: 5}}, "not a value"),
    ],
)
def test_invalid_states_are_reported(client: Client, state: dict[str, Any], problem: str) -> None:
    name, found = client.call("/api/compare", {"state": state}).events[-1]
    assert name == "failed"
    assert problem in found["problem"]
    answer = client.call("/api/export/toml", {"state": state})
    assert answer.status == 422


@pytest.mark.parametrize("body", [[], {}, {"state": 3}, {"state": {}, "schedule": "ring"}])
def test_malformed_requests_are_reported(client: Client, body: Any) -> None:
    assert client.call("/api/run", body).status == 422


def test_points_outside_the_experiment_are_reported(client: Client) -> None:
    for ranks, size in ((16, 1 << 10), (4, 1 << 11)):
        body = {"state": {}, "schedule": "ring", "ranks": ranks, "size": size}
        assert client.call("/api/run", body).status == 422


def test_large_requests_are_refused(client: Client) -> None:
    headers = {"content-length": str(1 << 20)}
    assert client.call("/api/run", {"state": {}}, **headers).status == 413


def test_a_comparison_stops_when_it_is_cancelled() -> None:
    engine = Engine(Base(TABLES, Path()), threads=1)
    stop = threading.Event()
    finished = []

    def emit(name: str, value: Any) -> None:
        if value == "simulating":
            stop.set()
        finished.append(name)

    with pytest.raises(Cancelled):
        engine.compare({}, emit, stop)
    assert "result" not in finished
    assert engine.compare({}, lambda *_: None, threading.Event()).complete


def test_results_are_cached_by_content() -> None:
    engine = Engine(Base(TABLES, Path()), threads=1)
    first = engine.compare({"ranks": [4]}, lambda *_: None, threading.Event())
    same = {"ranks": [4], "changes": {}, "datatype": "float32"}
    assert engine.compare(same, lambda *_: None, threading.Event()) is first
    point = Point("ring", 4, 1 << 10)
    assert engine.run({"ranks": [4]}, point) is engine.run(same, point)


def test_a_process_runs_jobs_and_ends_with_one_that_does_not_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tutti.explore.jobs._PATIENCE_S", 0.0)
    worker = Worker(Base(TABLES, Path()), threads=1)
    stop = threading.Event()
    try:
        state = {"ranks": [4], "algorithms": ["ring"]}
        found = worker.call("compare", {"state": state}, lambda *_: None, stop)
        assert found["complete"]
        with pytest.raises(ConfigError, match="unknown platform"):
            worker.call("platform", {"state": {"platform": "x"}}, lambda *_: None, stop)
        # Generating this schedule takes minutes and checks no events.
        slow = {"platform": "tpu_v4", "ranks": [16], "algorithms": ["forest"]}

        def emit(*_: object) -> None:
            stop.set()

        with pytest.raises(Cancelled):
            worker.call("compare", {"state": slow}, emit, stop)
        assert worker.call("choices", {}, lambda *_: None, threading.Event())["base"]
    finally:
        worker.stop()


def test_the_absence_of_the_extra_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(
        ConfigError, match=r"`uvicorn` .* requires `pip install 'tutti\[explore\]'`"
    ):
        serve(Base(TABLES, Path()), started=lambda _: None)


def test_an_address_in_use_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ExploreError, match=f"cannot listen on 127.0.0.1:{port}"):
            serve(Base(TABLES, Path()), port=port, started=lambda _: None)
