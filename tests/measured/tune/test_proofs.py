"""Counters of an MPI library, and proofs."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest
import typer

from tutti.measured.errors import ProofError, TuningError
from tutti.measured.tune import Proof, TuningDecision, Written, prove, study, watch
from tutti.measured.tune.times import OWN
from tutti.measured.tune.watch import Call, Traffic, sent_by_mpi, sent_by_schedule
from tutti.mpi.launch import Finished
from tutti.mpi.underneath import Mpi
from tutti.schedules.ir import schedule

CALL = Call("all_reduce", 4, 64)
RING = sent_by_schedule(schedule("ring", ranks=4), CALL)
"""The traffic of two calls."""


def mpi(kind: str) -> Mpi:
    return Mpi(
        kind,  # type: ignore[arg-type]
        "5.0.1", Path("mpicc"), Path("mpiexec"), Path(),
        starts="openmpi",
    )  # fmt: skip


def decision(
    name: str, first: int = 0, last: int | None = None, *, collective: str = "all_reduce"
) -> TuningDecision:
    return TuningDecision(collective, 4, first, last, name, 1, "model")


def written(target: str, *decisions: TuningDecision) -> Written:
    return Written(target, decisions, None, {"RULES": "here"}, Path("rules.env"))


def test_schedule_gives_its_traffic() -> None:
    assert RING[0, 1, "messages"] == 2 * 6
    assert RING[0, 1, "bytes"] == 2 * 6 * 16
    assert not any(key[:2] == (1, 0) for key in RING)


def monitored(times: int) -> str:
    """Output of Open MPI for rank 0, including 7 messages of its start."""
    lines = [
        "# POINT TO POINT",
        f"E\t0\t1\t{70 + times * 96} bytes\t{7 + times * 6} msgs sent\t0,1",
    ]
    return "\n".join([*lines, "# COLLECTIVES", "C\t0\t1\t999 bytes\t9 msgs sent", ""])


def traced(times: int) -> str:
    """Output of libfabric: a message of rank 1 to address 3, and other lines."""
    line = (
        "[1] libfabric:7:1::tcp:ep_data:trace_tinjectdata():99<trace> buf 0x1 len 16 addr 3 data 1"
    )
    other = "[1] libfabric:7:1::tcp:ep_data:trace_trecv():99<trace> buf 0x1 len 16 addr 3 data 1"
    return "\n".join(["libfabric: Installing trace hook", other, *[line] * (1 + times)])


def test_startup_counts_are_subtracted(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_mpi: Mpi, _call: Call, times: int, folder: Path, **_: object) -> str:
        (folder / "sent.0.prof").write_text(monitored(times))
        return traced(times)

    monkeypatch.setattr(watch, "_run", run)
    found = sent_by_mpi(mpi("openmpi"), CALL)
    assert found == Traffic({(0, 1, "messages"): 12, (0, 1, "bytes"): 192})
    found = sent_by_mpi(mpi("mpich"), CALL)
    assert found == Traffic({(1, 3, "messages"): 2, (1, 3, "bytes"): 32})


def test_unknown_mpi_cannot_be_monitored() -> None:
    with pytest.raises(TuningError, match="no known message counters"):
        sent_by_mpi(mpi("other"), CALL)


def test_an_mpich_without_a_trace_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_run", lambda *_, **__: "nothing")
    with pytest.raises(TuningError, match="can log"):
        sent_by_mpi(mpi("mpich"), CALL)


def test_a_run_that_fails_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Made:
        bench = Path("bench")

    monkeypatch.setattr(watch, "built", lambda _: Made())
    monkeypatch.setattr(watch, "run_ranks", lambda *_, **__: Finished("", "no rules", 7))
    with pytest.raises(ProofError, match="exited with 7:\nno rules"):
        sent_by_mpi(mpi("openmpi"), CALL)


def test_a_message_in_one_of_two_calls_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_mpi: Mpi, _call: Call, times: int, folder: Path, **_: object) -> str:
        lines = monitored(times).replace(
            f"{7 + times * 6} msgs", f"{7 + times * 6 + (times > 1)} msgs"
        )
        (folder / "sent.0.prof").write_text(lines)
        return ""

    monkeypatch.setattr(watch, "_run", run)
    assert sent_by_mpi(mpi("openmpi"), CALL)[0, 1, "messages"] == 13


def test_a_proof_holds_where_messages_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = dict(RING)
    monkeypatch.setattr(prove, "sent_by_mpi", lambda *_, **__: Traffic(sent))
    one = written("openmpi", decision("ring", 64))
    (found,) = prove.proofs(mpi("openmpi"), one)
    assert (found.verdict, found.messages, found.size, found.holds) == ("same", 24, 64, True)
    sent[0, 1, "bytes"] += 1
    sent[1, 0, "messages"] = 1
    (found,) = prove.proofs(mpi("openmpi"), one)
    assert not found.holds
    assert found.why == "0 to 1: 193 bytes in 2 calls: expected 192, and 1 more counts"


def test_runs_have_the_variables_that_were_written(monkeypatch: pytest.MonkeyPatch) -> None:
    class Report:
        covered = ()

    seen: list[object] = []

    def by_host(*_: object, env: object = None, **__: object) -> Traffic:
        seen.append(env)
        return RING

    def by_library(_mpi: Mpi, _call: Call, env: object, **_: object) -> tuple[Traffic, Report]:
        seen.append(env)
        return RING, Report()

    monkeypatch.setattr(prove, "sent_by_mpi", by_host)
    monkeypatch.setattr(prove, "sent_by_library", by_library)
    for target in ("openmpi", "plan"):
        (found,) = prove.proofs(mpi("openmpi"), written(target, decision("ring", 64)))
        assert found.verdict == "same"
    assert seen == [{"RULES": "here"}, {"RULES": "here"}]


def test_cases_left_to_the_mpi_are_compared_with_the_mpi(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = {True: RING, False: Traffic(RING)}
    monkeypatch.setattr(prove, "sent_by_mpi", lambda *_, env=None, **__: sent[env is None])
    one = written("mpich", decision(OWN))
    (found,) = prove.proofs(mpi("mpich"), one)
    assert (found.verdict, found.size) == ("same", 4)
    sent[False][0, 1, "messages"] += 1
    (found,) = prove.proofs(mpi("mpich"), one)
    assert found.verdict == "other"
    assert prove.proofs(mpi("mpich"), written("plan", decision(OWN))) == []


def test_calls_use_the_tuned_datatype(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Call] = []

    def run(_mpi: Mpi, call: Call, **_: object) -> Traffic:
        calls.append(call)
        return Traffic()

    monkeypatch.setattr(prove, "sent_by_mpi", run)
    prove.proofs(mpi("openmpi"), written("openmpi", replace(decision("ring"), datatype="float64")))
    assert (calls[0].datatype, calls[0].size) == ("float64", 32)


def test_permuted_ranks_count_as_alike_where_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = sent_by_schedule(schedule("binomial", collective="broadcast", ranks=4),
                    Call("broadcast", 4, 16))  # fmt: skip
    turned = Traffic({(0, 1, "messages"): 2, (0, 1, "bytes"): 32, (0, 2, "messages"): 2,
                      (0, 2, "bytes"): 32, (1, 3, "messages"): 2, (1, 3, "bytes"): 32})  # fmt: skip
    assert turned != expected
    monkeypatch.setattr(prove, "sent_by_mpi", lambda *_, **__: turned)
    one = decision("binomial", 16, collective="broadcast")
    (found,) = prove.proofs(mpi("openmpi"), written("openmpi", one))
    assert found.verdict == "alike"
    (found,) = prove.proofs(mpi("mpich"), written("mpich", one))
    assert found.verdict == "other"


def test_rules_without_a_divisible_size_are_unchecked() -> None:
    (found,) = prove.proofs(mpi("openmpi"), written("openmpi", decision("ring", 1, 3)))
    assert (found.verdict, found.holds, found.shows) == ("unchecked", True, False)


def test_unverifiable_rules_are_reported() -> None:
    of_mpich = written("mpich", decision("ring"))
    assert prove.unproved(mpi("openmpi"), of_mpich) == "the MPI library here is Open MPI 5.0.1"
    assert prove.unproved(mpi("mpich"), of_mpich) == ""
    of_six = written("openmpi6", decision("ring"))
    assert prove.unproved(mpi("openmpi"), of_six) == "the MPI library here is Open MPI 5.0.1"
    assert prove.unproved(replace(mpi("openmpi"), version="6.0.0"), of_six) == ""
    assert prove.unproved(mpi("mpich"), written("plan", decision(OWN))) == "it has no rule"


@pytest.mark.parametrize(
    ("verdicts", "code", "output"),
    [
        ((), 1, "plan: not checked: no decision could be checked"),
        (("unchecked",), 1, "plan: not checked"),
        (("same", "unchecked"), 0, "unchecked: no size"),
        (("other", "same"), 3, "1 of the runs"),
    ],
)
def test_the_exit_code_states_what_was_proved(
    verdicts: tuple[str, ...],
    code: int,
    output: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    proofs = [Proof("all_reduce", 4, 8, "ring", 0, verdict, "no size") for verdict in verdicts]
    monkeypatch.setattr("tutti.measured.tune.study.proofs", lambda *_, **__: proofs)
    context = pytest.raises(typer.Exit) if code else contextlib.nullcontext()
    with context as ended:
        study.prove([written("plan", decision("ring"))], mpi("openmpi"))
    assert ended is None or ended.value.exit_code == code
    assert output in capsys.readouterr().err
