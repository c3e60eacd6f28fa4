"""Files for Open MPI, as interpreted by readers that follow its sources."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from tutti.measured.tune import TuningDecision, openmpi
from tutti.measured.tune.files import Writer

if TYPE_CHECKING:
    from pathlib import Path


class Strict(BaseModel):
    """As ``docs/tuning-apps/tuned_dynamic_file_schema.json`` of Open MPI 6.0: no other keys."""

    model_config = ConfigDict(extra="forbid", strict=True)


Complete = Annotated[int, Field(ge=0)]
Size = Complete | Literal["inf", "INF", "Inf"]


class Rule(Strict):
    """For sizes of messages."""

    msg_size_min: Size = 0
    msg_size_max: Size = "inf"
    alg: str | Complete
    reqs: Complete = 0
    faninout: Complete = 0


class Communicators(Strict):
    """For numbers of ranks."""

    comm_size_min: Size = 0
    comm_size_max: Size = "inf"
    comm_rank_distribution: Literal["any", "one-per-node", "single-node"]
    rules: list[Rule]


class File(Strict):
    """A complete file."""

    rule_file_version: int
    module: Literal["tuned"]
    # The schema writes reducescatterblock; coll_tuned_dynamic_file.c reads names by
    # mca_coll_base_name_to_colltype, which knows it with underscores, and refuses a file with any
    # other name.
    collectives: dict[
        Literal["allgather", "allreduce", "alltoall", "barrier", "bcast", "reduce",
                "reduce_scatter_block"],
        list[Communicators],
    ]  # fmt: skip


def decision(
    collective: str, ranks: int, schedule: str | None, first: int = 0, last: int | None = None
) -> TuningDecision:
    return TuningDecision(collective, ranks, first, last, schedule, 1, "model")


EVERY = [
    decision("all_gather", 4, "bruck", 0, 1023),
    decision("all_gather", 4, "own", 1024),
    decision("all_reduce", 4, "own", 0, 63),
    decision("all_reduce", 4, "ring", 64, 4095),
    decision("all_reduce", 4, None, 4096),
    decision("all_reduce", 6, "recursive_doubling"),
    decision("all_to_all", 4, "pairwise"),
    decision("barrier", 4, "dissemination"),
    decision("broadcast", 4, "binomial"),
    decision("reduce", 4, "binomial"),
    decision("reduce_scatter", 4, "recursive_halving_doubling"),
]


def chosen(file: File, collective: str, ranks: int, size: int) -> int | str:
    """The algorithm for a call: of the first that match; 0 for the fixed rules."""

    def holds(least: int | str, most: int | str, value: int) -> bool:
        return int(least) <= value and (most == "inf" or value <= int(most))

    for some in file.collectives.get(collective, []):  # type: ignore[call-overload]
        if holds(some.comm_size_min, some.comm_size_max, ranks):
            found = [one.alg for one in some.rules
                     if holds(one.msg_size_min, one.msg_size_max, size)]  # fmt: skip
            return found[0] if found else 0
    return 0


def test_json_is_what_open_mpi_6_reads() -> None:
    file = File.model_validate(json.loads(openmpi.json_rules(EVERY)))
    assert len(file.collectives) == 7
    request = {(4, 63): 0, (4, 64): 4, (4, 4095): 4, (4, 4096): 0, (5, 64): 0, (6, 8): 3}
    for (ranks, size), algorithm in request.items():
        assert chosen(file, "allreduce", ranks, size) == algorithm, (ranks, size)


@pytest.mark.parametrize("second", [False, True])
def test_bruck_has_a_fan_out(second: bool) -> None:
    # Open MPI 6 multiplies distances by it: with 0 the call never ends.
    (rule,) = File.model_validate(json.loads(openmpi.json_rules(EVERY))).collectives["allgather"]
    assert [one.faninout for one in rule.rules] == [2]
    assert ("\n0 2 2 0" + " 0" * second + "  # bruck\n") in openmpi.classic(EVERY, second=second)


def classic_rules(text: str) -> dict[int, dict[int, list[tuple[int, int]]]]:
    """Rules as ``ompi_coll_tuned_read_rules_config_file`` of Open MPI 4.0 reads them."""
    words = [word for line in text.splitlines() for word in line.partition("#")[0].split()]
    numbers = [int(word) for word in reversed(words)]
    found: dict[int, dict[int, list[tuple[int, int]]]] = {}
    for _ in range(numbers.pop()):
        keys = found[numbers.pop()] = {}
        for _ in range(numbers.pop()):
            rules = keys[numbers.pop()] = []
            for place in range(numbers.pop()):
                size, algorithm, _fan, _segment = (numbers.pop() for _ in range(4))
                assert place or size == 0, "the first size must be 0"
                rules.append((size, algorithm))
    assert not numbers
    return found


def test_open_mpi_4_reads_the_classic_file_and_has_its_algorithms() -> None:
    sparbit = [*EVERY[2:], decision("all_gather", 8, "sparbit")]
    text = openmpi.classic(sparbit, "openmpi4")
    assert "For Open MPI 4.1." in text
    rules = classic_rules(text)
    assert rules[2][4] == [(0, 0), (64, 4), (4096, 0)]
    assert rules[2][5] == [(0, 0)]
    assert (rules[2][6], rules[2][7]) == ([(0, 3)], [(0, 0)])
    # Sparbit came with 5.0.
    assert 0 not in rules
    assert 0 in classic_rules(openmpi.classic(sparbit))


def test_open_mpi_4_needs_no_rules_of_han(tmp_path: Path) -> None:
    assert openmpi.han(EVERY, "openmpi4") is None
    written = Writer(tmp_path, {}, second=True).write("openmpi4", EVERY)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["openmpi4.env", "openmpi4.rules"]
    assert not any("han" in name for name in written.variables)
    assert "rule-file-version-2" not in (tmp_path / "openmpi4.rules").read_text()


# --- han, on several hosts ------------------------------------------------------------------------

OF_HAN = {"allgather", "allgatherv", "allreduce", "barrier", "bcast", "gather", "reduce", "scatter"}


def read(text: str) -> dict[str, dict[int, list[tuple[int, str]]]]:
    """Rules of han as ``mca_coll_han_init_dynamic_rules`` of Open MPI 5.0 reads them."""
    words = [word for line in text.splitlines() for word in line.partition("#")[0].split()]
    words.reverse()
    found: dict[str, dict[int, list[tuple[int, str]]]] = {}
    for _ in range(int(words.pop())):
        name = words.pop()
        assert name in OF_HAN
        assert (words.pop(), words.pop()) == ("1", "global_communicator")
        keys = found[name] = {}
        for place in range(int(words.pop())):
            ranks = int(words.pop())
            assert place or ranks == 1, "the first number of ranks must be 1"
            rules = keys[ranks] = []
            for number in range(int(words.pop())):
                size, component = int(words.pop()), words.pop()
                assert number or size == 0, "the first size must be 0"
                assert component in {"han", "tuned"}
                rules.append((size, component))
    assert not words
    return found


def handed_on(text: str, collective: str, ranks: int, size: int) -> bool:
    """Whether han leaves a call to tuned; `size` is as han counts it."""
    keys = read(text).get(collective, {1: [(0, "han")]})
    rules = keys[max(key for key in keys if key <= ranks)]
    return [component for least, component in rules if least <= size][-1] == "tuned"


def test_han_delegates_only_calls_with_rules() -> None:
    text = openmpi.han(EVERY, "openmpi")
    assert text is not None
    request = {(4, 63): False, (4, 64): True, (4, 4095): True, (4, 4096): False, (5, 64): False,
             (3, 64): False, (6, 8): True, (7, 8): False, (2, 64): False}  # fmt: skip
    for (ranks, size), is_ours in request.items():
        assert handed_on(text, "allreduce", ranks, size) is is_ours, (ranks, size)
    assert handed_on(text, "gather", 4, 64) is False


def test_han_sizes_are_per_rank() -> None:
    text = openmpi.han(EVERY, "openmpi")
    assert text is not None
    assert handed_on(text, "allgather", 4, 1023 // 4) is True
    assert handed_on(text, "allgather", 4, 1024 // 4) is False


def test_han_needs_no_rules_for_what_it_leaves_to_tuned() -> None:
    only = [decision("all_to_all", 4, "pairwise"),
            decision("reduce_scatter", 4, "recursive_halving_doubling")]  # fmt: skip
    assert openmpi.han(only, "openmpi") is None
    assert "alltoall" in str(openmpi.han(only, "openmpi6"))


def test_settings_do_not_select_components() -> None:
    named = openmpi.settings("/x/rules", "/x/han")
    assert set(named) == {
        "OMPI_MCA_coll_tuned_use_dynamic_rules",
        "OMPI_MCA_coll_tuned_dynamic_rules_filename",
        "OMPI_MCA_coll_han_use_dynamic_file_rules",
        "OMPI_MCA_coll_han_dynamic_rules_filename",
    }
    assert not any("han" in name for name in openmpi.settings("/x/rules", None))
