"""Bad plans end the job before its first collective."""

from __future__ import annotations

import json
import struct
import subprocess
import zlib
from typing import TYPE_CHECKING

import pytest
from runs import SANITIZERS, bench_of, mixture

from tutti import schedule
from tutti.mpi.plan import CollectivePlan, PlannedSchedule, Rule

if TYPE_CHECKING:
    from pathlib import Path

    from runs import Bench

RANKS = 2
FUZZED = 6_000


def good() -> bytes:
    """A plan for two ranks."""
    return CollectivePlan(
        [Rule("all_reduce", RANKS, schedule("ring", ranks=RANKS))], {"a": "b"}
    ).to_bytes()


def patched(at: int, value: int, size: int = 4) -> bytes:
    """The good plan with one number of its index changed and a checksum that fits."""
    data = bytearray(good())
    data[at : at + size] = value.to_bytes(size, "little")
    struct.pack_into("<I", data, 12, zlib.crc32(data[16:INDEX]))
    return bytes(data)


INDEX = int.from_bytes(good()[24:32], "little")
"""Offset of the parts of code."""
PARTS_END = int.from_bytes(good()[32:40], "little")
"""Offset of the runs."""


MOVED = [1, 9, 0, 0, 1, 1, 0, 1, 0, 1, 1]
"""One step with a copy of chunk 0 of slot 0 to chunk 1 of slot 1."""
LATE = [1, 9, 1, 0, 0, 0, 1, 0, 0, 1, 2]
"""One step with a send of chunk 0 of slot 0 to rank 1, to be waited for two steps later."""


FORMS = {
    "an unknown form of a message": [1, 8, 0, 1, 0, 9, 1, 0, 0, 1],
    "an unknown form of a fold": [1, 9, 0, 0, 1, 6, 0, 0, 1, 1, 0],
    "a relative peer that does not exist": [1, 8, 0, 1, 0, 1, 2, 0, 0, 1],
    "a relative chunk that does not exist": [1, 8, 0, 1, 0, 3, 1, 0, 2, 1],
    "a step of another size": [1, 9, 0, 1, 0, 0, 1, 0, 0, 1],
}


def coded(code: list[int], flags: int = 0) -> bytes:
    """A plan with such a code for rank 0."""
    one = PlannedSchedule("x", "all_reduce", RANKS, 2, 2, 0, flags, (bytes(code), b"\0"))
    return CollectivePlan([Rule("all_reduce", RANKS, one)]).to_bytes()


def damaged(at: int) -> bytes:
    """The good plan with one byte changed."""
    data = bytearray(good())
    data[at] ^= 0x10
    return bytes(data)


RULE, ENTRY = 64, 96
PROVENANCE = 48
TABLE = int.from_bytes(good()[ENTRY + 40 : ENTRY + 48], "little")
BAD = {
    "empty": (b"", "not a plan file"),
    "something else": (b"#!/bin/sh\n" * 40, "not a plan file: expected it to start with TUTTIPLN"),
    "the magic only": (good()[:8], "truncated"),
    "truncated in the header": (good()[:40], "truncated"),
    "truncated by a byte": (good()[:-1], "truncated"),
    "a byte too many": (good() + b"\0", "too long"),
    "newer": (patched(8, 5), "version 5: expected version 4; write the plan again"),
    "older": (patched(8, 3), "version 3: expected version 4; write the plan again"),
    "version 0": (patched(8, 0), "version 0"),
    "a damaged magic": (damaged(3), "not a plan file"),
    "a damaged checksum": (damaged(13), "corrupted: checksum"),
    "a damaged length": (damaged(17), "truncated or too long"),
    "a damaged length of the index": (damaged(24), "corrupted: "),
    "an index beyond the end": (patched(24, 2**40, 8), "corrupted: its index has"),
    "a damaged count of rules": (damaged(40), "corrupted: checksum"),
    "a damaged rule": (damaged(RULE + 4), "corrupted: checksum"),
    "a damaged schedule": (damaged(ENTRY + 8), "corrupted: checksum"),
    "a damaged last byte": (damaged(-1), "wrong checksum of schedule 0, rank 1"),
    "a byte of no schedule": (patched(TABLE + 16, len(good()) - 1, 8), "1 bytes belong to no"),
    "runs before the end of the parts": (patched(TABLE, PARTS_END - 1, 8), "code of rank 0 lies"),
    "parts beyond the end": (patched(32, 2**40, 8), "its parts end at"),
    "parts before the end of the index": (patched(32, INDEX - 1, 8), "its parts end at"),
    "a damaged part": (damaged(INDEX + 2), "wrong checksum of schedule 0, rank 0"),
    "runs outside the parts": (patched(32, INDEX + 1, 8), "code of rank 0 lies"),
    "rules beyond the end": (patched(40, 2**32 - 1), "exceed its length"),
    "schedules beyond the end": (patched(44, 2**31), "exceed its length"),
    "no such schedule": (patched(RULE + 24, 7), "rule 0: the plan has no schedule 7"),
    "a rule for other ranks": (
        patched(RULE + 4, 3),
        "rule 0: the plan has no schedule 0 of all_reduce on 3",
    ),
    "no such collective": (patched(ENTRY, 99), "invalid collective, ranks, chunks or flags"),
    "no chunks": (patched(ENTRY + 8, 0), "invalid collective, ranks, chunks or flags"),
    "a result in no slot": (patched(ENTRY + 16, 9), "invalid collective, ranks, chunks or flags"),
    "an unknown flag": (patched(ENTRY + 20, 64), "invalid collective, ranks, chunks or flags"),
    "too many chunks": (
        patched(ENTRY + 8, 2**28 + 2),
        "268435458 chunks and 2 slots: expected at most",
    ),
    "too many slots": (
        patched(ENTRY + 12, 2**20 + 1),
        "2 chunks and 1048577 slots: expected at most",
    ),
    "slot areas that overflow": (
        patched(ENTRY + 12, 2**32 - 4),
        "4294967292 slots: expected at most",
    ),
    "a code that ends too early": (coded([9]), "schedule 0, x: invalid code of rank 0"),
    **{
        name: (coded(code), "schedule 0, x: invalid code of rank 0") for name, code in FORMS.items()
    },
    "a copy to another chunk": (coded(MOVED), "schedule 0, x: invalid code of rank 0"),
    "a send that completes after the last step": (coded(LATE, 16), "invalid code of rank 0"),
    "a name beyond the end": (patched(ENTRY + 24, 2**40, 8), "outside the file"),
    "a table beyond the end": (patched(ENTRY + 40, 2**63, 8), "its table lies outside"),
    "provenance beyond the end": (patched(PROVENANCE, 2**64 - 4, 8), "outside the file"),
}


def read(plan: Path) -> dict[str, str]:
    """Reads a file with the library's reader, without ranks; it does not call the MPI library."""
    done = subprocess.run(
        [bench_of("mpich").program("fuzz_plan"), plan, "0", "1"],
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("name", BAD)
def test_bad_plans_are_refused(name: str, tmp_path: Path) -> None:
    data, output = BAD[name]
    path = tmp_path / "bad.tutti"
    path.write_bytes(data)
    outcome = read(path)
    assert outcome["original"] == "refused"
    assert outcome["message"].startswith(f"{path}: ")
    assert output in outcome["message"]


def test_every_damaged_byte_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "damaged.tutti"
    for at in range(len(good())):
        path.write_bytes(damaged(at))
        assert read(path)["original"] == "refused", at
    path.write_bytes(good())
    assert read(path)["original"] == "accepted"


@pytest.mark.parametrize("name", ["truncated by a byte", "newer", "a damaged rule", None])
def test_a_bad_plan_ends_the_job_before_its_first_collective(
    bench: Bench, name: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "job.plan"
    if name is not None:
        path.write_bytes(BAD[name][0])
    verdict = tmp_path / "verdict"  # which the program writes after one collective
    argv = [bench.program("killed"), 9, 0, 1, verdict]
    done = bench.run(RANKS, argv, env={"TUTTI_MPI_PLAN": str(path)})
    assert done.code != 0
    assert not verdict.exists()
    assert done.stderr.count(f"tutti: {path}: ") == 1, done.stderr
    assert (BAD[name][1] if name else "cannot be opened") in done.stderr


@pytest.mark.timeout(300)
def test_the_reader_survives_random_mistakes(tmp_path: Path) -> None:
    schedules = [*mixture(2, 3, 5), schedule("forest:pieces=2", ranks=5)]
    rules = [Rule(s.collective, s.ranks, s, (0, 100)) for s in schedules]
    rules += [Rule(s.collective, s.ranks, s) for s in schedules]
    plan = CollectivePlan(rules, {"for": "fuzzing"}).write(tmp_path / "plan.tutti")
    fuzz = bench_of("openmpi", sanitize="address,undefined").program("fuzz_plan")
    limits = {"ASAN_OPTIONS": "allocator_may_return_null=1:max_allocation_size_mb=1024"}
    done = subprocess.run(
        [fuzz, plan, str(FUZZED), "1"], capture_output=True, text=True, check=False,
        env=SANITIZERS | limits, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    output = json.loads(done.stdout)
    assert output["original"] == "accepted"
    assert output["accepted"] + output["refused"] == FUZZED
    assert min(output["accepted"], output["refused"], output["compiled"]) > 100
    assert output["refused_late"] == 0
