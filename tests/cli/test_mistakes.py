"""A user's mistake ends in one clear message and exit code 2, never in a traceback."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from called import call

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

GOOD = """
platform = "cray_xc30"
collective = "all_reduce"
algorithms = ["ring"]
ranks = [4, 8]
sizes = ["8 B", "1 KiB"]
datatype = "float64"
"""


def tutti(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return call(*arguments, cwd=cwd)


def changed(key: str, value: str) -> str:
    lines = [line for line in GOOD.splitlines() if not line.startswith(f"{key} ")]
    return "\n".join([*lines, f"{key} = {value}"])


def refused(result: subprocess.CompletedProcess[str], *expected: str) -> None:
    assert result.returncode == 2, result.stderr
    assert result.stderr.startswith("error: ")
    assert "Traceback" not in result.stderr
    assert result.stderr.count("error:") == 1
    for words in expected:
        assert words in result.stderr


MODEL = '{{ name = "m", models.a = {{ kind = "postal", {} }} }}'

BAD_FILES = {
    "unknown key": (GOOD + "sizs = 3", "e.toml: sizs: unknown key", "did you mean `sizes`?"),
    "missing unit": (changed("sizes", '"8"'), "sizes: `8` has no unit", "hint: add the unit"),
    "bare number": (changed("sizes", "8"), "sizes", "expected text with a unit"),
    "zero rate": (
        changed(
            "platform",
            '{ name = "m", models.a = { kind = "postal", alpha = "1 us", beta = "0 GB/s" } }',
        ),
        "platform.models.a.beta",
        "zero",
    ),
    "negative rate": (
        changed(
            "platform",
            '{ name = "m", models.a = { kind = "postal", alpha = "1 us", beta = "-1 GB/s" } }',
        ),
        "platform.models.a.beta",
        "negative",
    ),
    "messages that take no time": (
        changed("platform", MODEL.format('alpha = "0 us"')),
        "platform m: models.a",
        "no time",
    ),
    "threshold not divisible by its base": (
        changed("algorithms", '["recursive_multiplying:c5m2,a2,a2,e5m2"]') + "\n",
        "algorithms[0]",
        "c5m2",
    ),
    "product that is not the rank count": (
        changed("algorithms", '["recursive_multiplying:a3,a5"]'),
        "algorithms[0]",
        "a3,a5",
    ),
    "size not a multiple of the element": (
        changed("sizes", '"12 B"'),
        "multiple of 8 B",
        "8 B or 16 B",
    ),
    "one rank": (changed("ranks", "1"), "ranks", "2"),
    "no ranks": (changed("ranks", "0"), "ranks", "2"),
    "noise range in descending order": (
        changed("noise", '{ step = { kind = "uniform", low = "2 us", high = "1 us" } }'),
        "noise",
    ),
    "misspelt algorithm": (changed("algorithms", '["rign"]'), "did you mean `ring`?"),
    "not TOML": ("ranks = = 3", "not TOML", "line 1, column 9"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_error_of_a_bad_file_states_the_problem(name: str, tmp_path: Path) -> None:
    text, *expected = BAD_FILES[name]
    (tmp_path / "e.toml").write_text(text)
    refused(tutti("compare", "e.toml", cwd=tmp_path), "e.toml", *expected)
    assert not (tmp_path / "out").exists()


def test_a_missing_file(tmp_path: Path) -> None:
    (tmp_path / "experiment.toml").touch()
    result = tutti("compare", "experimnt.toml", cwd=tmp_path)
    refused(result, "there is no such file", "did you mean `experiment.toml`?")


@pytest.mark.parametrize(
    ("given", "suggested"),
    [
        ("trianing.toml", "did you mean `training.toml`?"),
        ("training.tml", "did you mean `training.toml`?"),
        ("noc.toml", ""),  # most of the name is the suffix that all share
        ("mesh.toml", ""),
    ],
)
def test_missing_file_suggests_only_similar_names(
    given: str, suggested: str, tmp_path: Path
) -> None:
    for name in ("training.toml", "experiment.toml", "sweep.toml"):
        (tmp_path / name).touch()
    result = tutti("train", "run", given, cwd=tmp_path)
    refused(result, "there is no such file", suggested)
    assert ("did you mean" in result.stderr) == bool(suggested)


FILES = {
    "experiment": (GOOD, "an experiment", "tutti run f.toml, or tutti compare f.toml"),
    "noc": ("[topology]\n[router]\n[traffic]\n", "a network of routers", "tutti noc run f.toml"),
    "training": (
        'model = "gnmt"\nbatch = 8\n[torus]\n',
        "a training step",
        "tutti train run f.toml",
    ),
    "sweep": ('experiment = "e.toml"\n[sweep]\n', "a sweep", "tutti sweep f.toml"),
    "platform": ('name = "m"\n[models]\n', "a platform", 'platform = "f.toml" in an experiment'),
}
VERBS = {
    "experiment": ["compare"],
    "noc": ["noc", "run"],
    "training": ["train", "run"],
    "sweep": ["sweep"],
}


IN_WORDS_OF_THEIR_OWN = {("experiment", "sweep"), ("sweep", "experiment"), ("noc", "sweep")}
MIXED_UP = [
    (given, verb)
    for given in FILES
    for verb in VERBS
    if given != verb and (given, verb) not in IN_WORDS_OF_THEIR_OWN
]


@pytest.mark.parametrize(("given", "verb"), MIXED_UP)
def test_a_file_of_another_kind_is_recognised(given: str, verb: str, tmp_path: Path) -> None:
    text, kind, hint = FILES[given]
    (tmp_path / "f.toml").write_text(text)
    result = tutti(*VERBS[verb], "f.toml", cwd=tmp_path)
    refused(result, f"this looks like {kind}", f"hint: {hint}")


def test_too_many_ranks_give_a_hint(tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text(changed("platform", '"slingshot_dragonfly"'))
    result = tutti("compare", "e.toml", "--ranks", "8,10000", cwd=tmp_path)
    refused(
        result,
        "at most 8192",
        "hint: use fewer ranks, a larger topology (`build` in the platform's",
    )


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_bytes(bytes(range(256)))
    refused(tutti("run", "e.toml", cwd=tmp_path), "not text", "UTF-8")


def test_a_file_of_a_gigabyte(tmp_path: Path) -> None:
    with (tmp_path / "e.toml").open("wb") as file:
        file.truncate(1 << 30)
    refused(tutti("compare", "e.toml", cwd=tmp_path), "1073741824 bytes", "at most 1048576 bytes")


BAD_OPTIONS: dict[str, tuple[list[str], *tuple[str, ...]]] = {
    "-b": (["-b", "8Q"], "-b: ", "8, 64K, 128MiB"),
    "-f": (["-f", "1"], "sizes.factor", "greater than or equal to 2"),
    "-e": (["-b", "1K", "-e", "8"], "the range is empty"),
    "-d": (["-d", "floot"], "datatype", "did you mean `float64`?"),
    "--ranks": (["--ranks", "four"], "--ranks: ", "4,8,12"),
    "--ranks 1": (["--ranks", "1"], "ranks", "greater than or equal to 2"),
    "--algorithm": (["--algorithm", "rin"], "algorithms", "did you mean `ring`?"),
    "--platform": (["--platform", "cray"], "platform", "cray_xc30"),
    "--model": (["--model", "fast"], "model", "minimum, median"),
}


@pytest.mark.parametrize("name", BAD_OPTIONS)
def test_a_bad_option_is_named(name: str, tmp_path: Path) -> None:
    options, *expected = BAD_OPTIONS[name]
    (tmp_path / "e.toml").write_text(GOOD)
    refused(tutti("compare", "e.toml", *options, cwd=tmp_path), *expected)


def test_run_needs_a_single_rank_count(tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text(GOOD)
    refused(tutti("run", "e.toml", cwd=tmp_path), "ranks", "hint: select one: --ranks 4")


def test_invalid_output_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text(GOOD)
    (tmp_path / "taken").touch()
    result = tutti("compare", "e.toml", "--out", "taken", cwd=tmp_path)
    refused(result, "taken", "--out")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compare"], ("FILE: missing argument", "options such as --platform")),
        (["sweep"], ("tutti sweep: FILE: missing", "hint: `tutti sweep -h` lists")),
        (["cmpare"], ("tutti: no such command 'cmpare'", "hint: did you mean `compare`?")),
        (["--vers"], ("tutti: no such option: --vers", "hint: did you mean `--version`?")),
        (["compare", "--tpo", "3", "e.toml"], ("no such option: --tpo", "did you mean `--to")),
        (["compare", "--top", "x", "e.toml"], ("tutti compare: --top", "expected: a number")),
        (["compare", "e.toml", "--top"], ("option '--top' requires an argument",)),
        (["run", "a", "b"], ("tutti run: got unexpected extra argument", "`tutti run -h`")),
        (["noc", "rum"], ("tutti noc: no such command 'rum'", "did you mean `run`?")),
        (
            ["schema", "nosuch"],
            ("tutti schema: FILE", "given: nosuch", "one of experiment, coherence, noc"),
        ),
        (["schema", "sweeep"], ("tutti schema: FILE", "did you mean `sweep`?")),
        (["sweep", "--executor", "x", "s.toml"], ("--executor", "one of processes, dask, mpi")),
    ],
)
def test_usage_mistakes_look_like_all_others(
    arguments: list[str], words: tuple[str, ...], tmp_path: Path
) -> None:
    refused(tutti(*arguments, cwd=tmp_path), *words)


def test_command_group_alone_prints_usage(tmp_path: Path) -> None:
    for arguments in ([], ["noc"]):
        result = tutti(*arguments, cwd=tmp_path)
        assert "Usage: tutti" in result.stdout + result.stderr
        assert "error: " not in result.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["platforms", "cray_xc31"], "did you mean `cray_xc30`?"),
        (["schedule", "list", "--collective", "alreduce"], "did you mean `all_reduce`?"),
        (["schedule", "show", "ring"], "--ranks N"),
        (["schedule", "show", "rign", "--ranks", "4"], "ring"),
        (["schedule", "show", "ring", "--ranks", "0"], "at least 2"),
        (["schedule", "show", "none.schedule"], "there is no such file"),
        (["plot", "none.parquet"], "there is no such file"),
        (["paper", "none"], "unknown paper `none`"),
        (["paper", "smrt"], "did you mean `smart`?"),
        (["search", "none.toml"], "there is no such file"),
    ],
)
def test_other_commands_report_mistakes(
    arguments: list[str], expected: str, tmp_path: Path
) -> None:
    refused(tutti(*arguments, cwd=tmp_path), expected)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--kind", "merge"], "did you mean `merged`?"),
        (["--ranks", "1", "--size", "8"], "greater than or equal to 2"),
        (["--ranks", "4", "--size", "8", "--kind", "merged"], "4 ranks have no merged schedule"),
        (["--ranks", "1048576", "--size", "8", "--exhaustive"], "search without exhaustive"),
        (["--size", "12"], "8"),
        (["--size", "8", "-b", "8"], "-b: conflicts with --size"),
    ],
)
def test_invalid_search_arguments_are_refused(
    arguments: list[str], expected: str, tmp_path: Path
) -> None:
    (tmp_path / "e.toml").write_text(GOOD)
    refused(tutti("search", "e.toml", *arguments, cwd=tmp_path), expected)


def test_a_search_for_another_collective(tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text(changed("collective", '"all_gather"'))
    refused(tutti("search", "e.toml", cwd=tmp_path), 'collective = "all_reduce"')


def test_unreadable_results_are_refused(tmp_path: Path) -> None:
    (tmp_path / "results.parquet").write_text("no parquet")
    refused(tutti("plot", "results.parquet", cwd=tmp_path), "cannot be read")


STUCK = """tutti schedule 1
name stuck
collective all_reduce
ranks 2
chunks 1
slots 2
result data

rank 0
step wait
  recv s1[0] from 1
  reduce data[0] = data + s1

rank 1
step wait
  recv s1[0] from 0
  reduce data[0] = s1 + data
step send
  send data[0] to 0
"""


def test_stalled_simulation_names_the_waiting_ranks(tmp_path: Path) -> None:
    (tmp_path / "stuck.schedule").write_text(STUCK)
    text = changed("algorithms", '["stuck.schedule"]').replace("[4, 8]", "2")
    (tmp_path / "e.toml").write_text(text)
    verbs = (["run", "e.toml", "--size", "8"], ["compare", "e.toml"])
    for verb in (*verbs, ["schedule", "verify", "stuck.schedule"]):
        result = tutti(*verb, cwd=tmp_path)
        assert result.returncode == 3
        assert "waits for" in result.stderr
        assert "all waiting ranks" not in result.stderr  # all ranks are in the cycle
        assert "Traceback" not in result.stderr


def test_a_schedule_that_counts_a_contribution_twice_is_not_timed(tmp_path: Path) -> None:
    right = tutti("schedule", "show", "recursive_multiplying:a2", "--ranks", "2", cwd=tmp_path)
    doubled = right.stdout.replace("reduce data[0] = data + s1", "reduce data[0] = data + s1 + s1")
    assert doubled != right.stdout
    (tmp_path / "doubled.schedule").write_text(doubled)
    (tmp_path / "e.toml").write_text(
        changed("algorithms", '["doubled.schedule"]').replace("[4, 8]", "2")
    )
    for verb in (["compare", "e.toml"], ["schedule", "verify", "doubled.schedule"]):
        result = tutti(*verb, cwd=tmp_path)
        assert result.returncode == 3
        assert "more than once" in result.stderr
        assert "Traceback" not in result.stderr


NUMBERS = {
    ("--ranks", "-1"): "a collective needs at least 2 ranks, not -1",
    ("--ranks", "99999999999"): "at most 4294967295",
    ("--ranks", "8", "--root", "-1"): "root -1 is not one of the ranks 0 to 7",
    ("--ranks", "8", "--root", "99999999999"): "root 99999999999 is not one of the ranks",
}


@pytest.mark.parametrize("options", NUMBERS)
def test_invalid_rank_numbers_are_refused(options: tuple[str, ...], tmp_path: Path) -> None:
    refused(tutti("schedule", "show", "ring", *options, cwd=tmp_path), NUMBERS[options])


def test_error_points_at_the_position_in_a_notation(tmp_path: Path) -> None:
    shown = "    a8,,a8\n       ^\n"
    wrong = "recursive_multiplying:a8,,a8"
    refused(tutti("schedule", "show", wrong, "--ranks", "64", cwd=tmp_path), shown)
    (tmp_path / "e.toml").write_text(changed("algorithms", f'["{wrong}"]'))
    refused(tutti("compare", "e.toml", cwd=tmp_path), shown)


def test_an_option_that_contradicts_a_schedule_file_is_refused(tmp_path: Path) -> None:
    text = tutti("schedule", "show", "ring", "--ranks", "4", cwd=tmp_path).stdout
    (tmp_path / "my.schedule").write_text(text)
    verify = ("schedule", "verify", "my.schedule")
    refused(
        tutti(*verify, "--ranks", "8", cwd=tmp_path),
        "my.schedule: --ranks 8",
        "expected: --ranks 4",
    )
    refused(tutti(*verify, "--root", "0", cwd=tmp_path), "expected: no --root")
    assert tutti(*verify, "--ranks", "4", "-c", "all_reduce", cwd=tmp_path).returncode == 0
    (tmp_path / "my.txt").write_text(text)
    refused(tutti("schedule", "verify", "my.txt", cwd=tmp_path), "file that ends in .schedule")


def test_each_mistake_is_reported_once(tmp_path: Path) -> None:
    for arguments in (
        ("compare", "."),
        ("schedule", "draw", "ring", "--ranks", "4", "-o", "ring.txt"),
    ):
        done = tutti(*arguments, cwd=tmp_path)
        refused(done)
        assert done.stderr.count("see docs/") == 1


def test_the_size_of_a_run_is_named_as_it_was_given(tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text(GOOD)
    output = tutti("run", "e.toml", "--ranks", "4", "--size", "3", cwd=tmp_path)
    refused(output, "e.toml with --ranks --size: sizes: 3 B", "hint: 8 B;")


def test_results_without_the_columns_name_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    refused(tutti("plot", "a.csv", cwd=tmp_path), "error: a.csv: lacks the columns collective")


def test_unknown_model_kind_is_shown_alone(tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text(
        changed("platform", '{ name = "m", models.a = { kind = "postel", alpha = "1 us" } }')
    )
    refused(tutti("compare", "e.toml", cwd=tmp_path), "models.a.kind:", 'given: "postel"\n')


ELSEWHERE: dict[tuple[str, ...], tuple[str, ...]] = {
    ("search", "--set", "a=b", "e.toml"): ("no such option: --set", "`tutti search -h` lists"),
    ("sweep", "--set", "a=b", "e.toml"): ("no such option: --set", "`tutti compare` take --set"),
    ("compare", "--size", "8", "e.toml"): ("no such option: --size", "-b 8 -e 8 is one size"),
    ("nccl", "explain", "-p", "dgx_h100"): ("no such option: -p", "--system names the nodes"),
    ("nccl", "explain", "--system", "dgx_h200"): ("unknown", "dgx_h200 have the system dgx_h100"),
    ("compare", "cray_xc30"): ("there is no such file", "--platform cray_xc30"),
    ("compare", "none"): ("expected: an experiment file", "tutti schema experiment"),
    ("sweep", "none"): ("expected: a sweep file", "tutti schema sweep"),
    ("noc", "run", "--loads", "0.1"): ("no such option", "`tutti noc sweep` takes --loads"),
    ("noc", "from-booksim", "none"): ("expected: a configuration file of BookSim", "no such file"),
    ("noc", "from-garnet", "none"): ("expected: a topology script of gem5", "no such file"),
    ("noc", "from-netrace", "none"): ("expected: a trace of netrace",),
    ("noc", "from-noxim", "none"): ("expected: a configuration file of Noxim", "no such file"),
    ("noc", "from-rapidchiplet", "none"): ("expected: a design file of RapidChiplet",),
    ("run", "step.0.et"): ("chakra, which holds a trace", 'model = "chakra:step" in the file'),
    ("compare", "rin"): ("expected: an experiment file", "did you mean `ring`?"),
    ("run", "gpt3_175b"): ("no such file", "hint: gpt3_175b is a model: `tutti train list`"),
    ("run", "r.xml"): ("has the format msccl-xml, which holds a schedule", "`tutti convert r.xml "),
    ("compare", "r.goal"): ("format goal, which holds a trace", "`tutti trace run r.goal`"),
    ("run", "r.anynet"): ("which holds a topology", "set `file` in [platform.topology]"),
    ("verify", "ring"): ("no such command 'verify'", "did you mean `tutti schedule verify`?"),
    ("schedule", "verify", "x.schedul"): ("no such file", "did you mean `x.schedule`?"),
    ("schedule", "verify", "none/ring"): ("no such file", "the folder none does not exist"),
}


OTHER_FORMATS = {
    "step.0.et": "\x05trace",
    "r.xml": '<algo name="r" ngpus="2">\n</algo>\n',
    "r.goal": "num_ranks 1\nrank 0 {\ncalc 5\n}\n",
    "r.anynet": "router 0 node 0 router 1 1\nrouter 1 node 1\n",
}


@pytest.mark.parametrize("arguments", ELSEWHERE)
def test_misplaced_arguments_give_a_hint(arguments: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text(GOOD)
    (tmp_path / "x.schedule").touch()
    for name, text in OTHER_FORMATS.items():
        (tmp_path / name).write_text(text)
    refused(tutti(*arguments, cwd=tmp_path), *ELSEWHERE[arguments])


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("multicast", "-b", "8"), "--begin"),
        (("multicast", "-e", "64"), "--end"),
        (("multicast", "-f", "4"), "--factor"),
        (("multicast", "-a", "ring"), "--algorithm"),
        (("multicast", "--ranks", "4"), "--ranks"),
        (("all_reduce", "--peers", "3"), "--peers"),
    ],
)
def test_options_of_the_other_benchmark_are_refused(
    words: tuple[str, ...], option: str, tmp_path: Path
) -> None:
    refused(tutti("mpi", "bench", *words, cwd=tmp_path), f"{option}: has no effect")


def test_libraries_that_lack_a_file_are_reported_after_the_others(tmp_path: Path) -> None:
    """pmodels/mpich#7456: what was decided for Open MPI is shown and written, and then the hint."""
    line = "tune broadcast --ranks 8 --for openmpi --for mpich -p cray_xc30 --by model --out out"
    done = tutti(*line.split(), cwd=tmp_path)
    assert done.returncode == 2
    assert "broadcast" in done.stdout
    assert "wrote out/openmpi.rules" in done.stdout
    assert "mpich: MPICH's stock selections are unknown" in done.stderr
    assert "--csel-base" in done.stderr
