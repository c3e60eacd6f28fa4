"""What is counted in an MPI's own words, and when a proof holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tutti.errors import ProofError, TuningError
from tutti.mpi.host import Host
from tutti.mpi.launch import Finished
from tutti.schedule import schedule
from tutti.tune import prove, watch
from tutti.tune.decisions import Decision
from tutti.tune.watch import Call, Traffic, sent_by_host, sent_by_schedule

CALL = Call("all_reduce", 4, 64)
RING = sent_by_schedule(schedule("ring", ranks=4), CALL)


def host(kind: str) -> Host:
    return Host(kind, "1", Path("mpicc"), Path("mpiexec"), Path())  # type: ignore[arg-type]


def decision(name: str, first: int = 0, last: int | None = None) -> Decision:
    return Decision("all_reduce", 4, first, last, name, 1, "model", None, name, 1)


def test_a_schedule_says_what_it_sends() -> None:
    assert RING[0, 1, "messages"] == 6
    assert RING[0, 1, "bytes"] == 6 * 16
    assert not any(key[:2] == (1, 0) for key in RING)


def monitored(times: int) -> str:
    """What Open MPI writes for rank 0, 7 messages of its start included."""
    lines = [
        "# POINT TO POINT",
        f"E\t0\t1\t{70 + times * 96} bytes\t{7 + times * 6} msgs sent\t0,1",
    ]
    return "\n".join([*lines, "# COLLECTIVES", "C\t0\t1\t999 bytes\t9 msgs sent", ""])


def traced(times: int) -> str:
    """What libfabric writes: a message of rank 1 to its place 3, and what is none."""
    line = (
        "[1] libfabric:7:1::tcp:ep_data:trace_tinjectdata():99<trace> buf 0x1 len 16 addr 3 data 1"
    )
    other = "[1] libfabric:7:1::tcp:ep_data:trace_trecv():99<trace> buf 0x1 len 16 addr 3 data 1"
    return "\n".join(["libfabric: Installing trace hook", other, *[line] * (1 + times)])


def test_counts_of_a_start_are_taken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_host: Host, _call: Call, times: int, folder: Path, **_: object) -> str:
        (folder / "sent.0.prof").write_text(monitored(times))
        return traced(times)

    monkeypatch.setattr(watch, "_run", run)
    found = sent_by_host(host("openmpi"), CALL)
    assert found == Traffic({(0, 1, "messages"): 6, (0, 1, "bytes"): 96})
    found = sent_by_host(host("mpich"), CALL)
    assert found == Traffic({(1, 3, "messages"): 1, (1, 3, "bytes"): 16})


def test_an_mpi_that_is_not_known_cannot_be_watched() -> None:
    with pytest.raises(TuningError, match="no counters"):
        sent_by_host(host("other"), CALL)


def test_an_mpich_without_a_trace_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_run", lambda *_, **__: "nothing")
    with pytest.raises(TuningError, match="writes down"):
        sent_by_host(host("mpich"), CALL)


def test_a_run_that_fails_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Made:
        bench = Path("bench")

    monkeypatch.setattr(watch, "built", lambda _: Made())
    monkeypatch.setattr(watch, "run_ranks", lambda *_, **__: Finished("", "no rules", 7))
    with pytest.raises(ProofError, match="ended with 7:\nno rules"):
        sent_by_host(host("openmpi"), CALL)


def test_a_proof_holds_where_messages_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = dict(RING)
    monkeypatch.setattr(prove, "sent_by_host", lambda *_, **__: Traffic(sent))
    (found,) = prove.prove_host(host("openmpi"), [decision("ring", 64)], "openmpi", {})
    assert (found.verdict, found.messages, found.size, found.holds) == ("same", 24, 64, True)
    sent[0, 1, "bytes"] += 1
    (found,) = prove.prove_host(host("openmpi"), [decision("ring", 64)], "openmpi", {})
    assert not found.holds
    assert found.why == "0 to 1: 97 bytes where the schedule has 96"


def test_alike_is_as_many_and_as_much_between_others(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = sent_by_schedule(schedule("binomial", collective="broadcast", ranks=4),
                              Call("broadcast", 4, 16))  # fmt: skip
    turned = Traffic({(0, 1, "messages"): 1, (0, 1, "bytes"): 16, (0, 2, "messages"): 1,
                      (0, 2, "bytes"): 16, (1, 3, "messages"): 1, (1, 3, "bytes"): 16})  # fmt: skip
    assert turned != wanted
    monkeypatch.setattr(prove, "sent_by_host", lambda *_, **__: turned)
    one = Decision("broadcast", 4, 16, None, "binomial", 1, "model", None, "binomial", 1)
    (found,) = prove.prove_host(host("openmpi"), [one], "openmpi", {})
    assert found.verdict == "alike"
    (found,) = prove.prove_host(host("mpich"), [one], "mpich", {})
    assert found.verdict == "other"


def test_what_has_no_size_with_equal_parts_is_not_looked_at() -> None:
    (found,) = prove.prove_host(host("openmpi"), [decision("ring", 1, 3)], "openmpi", {})
    assert (found.verdict, found.holds) == ("not looked at", True)
