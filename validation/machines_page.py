"""The page docs/machines/README.md, from a scoreboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import machines_worst
import polars as pl
from prose import bullets, paragraph

from tutti.measured.predict import folds
from tutti.measured.predict.model import CAUTION
from tutti.measured.predict.score import score

if TYPE_CHECKING:
    from collections.abc import Iterable

    from score_machines import Scoreboard

MACHINES: Final = {
    "fugaku": "Fugaku",
    "leonardo": "Leonardo",
    "lumi": "LUMI",
    "mare_nostrum": "MareNostrum 5",
}
AIMS: Final = {
    "covered": (0.90, 1.0),
    "factor": (0.0, 1.30),
    "factor_p90": (0.0, 2.5),
    "winner": (0.80, 1.0),
    "regret": (0.0, 0.02),
    "regret_p90": (0.0, 0.25),
    "inside": (0.85, 0.95),
}
"""The range of each figure."""
NAMES: Final = {
    "covered": "coverage",
    "factor": "factor, median",
    "factor_p90": "factor, p90",
    "winner": "winner",
    "regret": "regret, median",
    "regret_p90": "regret, p90",
    "inside": "times inside the 90 % interval",
}
KINDS: Final = {
    "nodes": "more nodes",
    "far": "4x nodes",
    "farther": "16x nodes",
    "collective": "collective",
    "machine": "machine",
    "ranks": "ranks",
}
"""The kinds of folds, of :mod:`tutti.measured.predict.folds`."""
NOVELTIES: Final = {
    "near": "up to 2 times the nodes",
    "far": "up to 8 times the nodes",
    "farther": "more nodes",
    "ranks": "more ranks per node",
    "collective": "unseen collective",
    "machine": "unseen machine",
}

HEAD = """# Measured machines

How well tutti predicts collectives of MPI libraries on machines that others measured.
"""

DEFINITIONS = """## Definitions

- **Coverage**: share of the rows of named algorithms with a prediction. Rows of a library's own
  choice are not predicted.
- **Factor**: the larger of predicted / measured and measured / predicted. 1.20 is 20 % off.
- **p90**: the 90 % quantile.
- **Group**: the algorithms of one job, collective, node count, size, library and memory.
- **Winner**: share of groups in which the chosen algorithm is the fastest measured, or within the
  90 % quantile of the fastest one's repetitions.
- **Regret**: measured time of the chosen algorithm over the fastest measured, less one.
- **Default**: the regret of the library's own choice, where it was measured.
- **Inside**: share of measured times within the 90 % interval. The interval of a fold is scaled by
  predictions of other rows only.
- **Folds**: `more nodes` predicts each node count from the smaller ones. `4x nodes` and `16x nodes`
  fit at most a quarter and a sixteenth of the nodes, on all machines. `collective`, `machine` and
  `ranks` hold out a collective, a machine, or several ranks per node.

`tutti.measured.predict.score` computes them."""

MODELS = """## Model selection

Three candidates predict the same folds. `carry-over` repeats the time of the algorithm on the
largest smaller node count. `structural` adds up the times of an algorithm's stages, from a curve of
message times per machine. `full` adds a Gaussian process for what that curve misses.

The model that the measurements warrant is marked (*). A more complex model is warranted if it
lowers the mean absolute logarithmic error by more than two standard errors on the rows that both
predict. A model that predicts fewer than 90 % of the rows is never marked. Shares and regrets are
in per cent."""

SOURCES = """## Sources

- Data: the folder that `DATA` names, of which `validation/machines/sample.csv` is a part. Its
  series were measured with [PICO](https://github.com/HLC-Lab/pico) (HLC-Lab), MIT licence. The
  licence text is in `validation/machines/README.md`. A row is the median of a series. A repetition
  takes as long as its slowest rank.
- Forced algorithms of Open MPI on Leonardo and MareNostrum 5, Cray MPICH on LUMI, Fujitsu MPI on
  Fugaku, and of PICO over point-to-point messages.
- The measured times of the questions are public. No parameter, prediction or figure of this page
  uses them."""


def page(board: Scoreboard, *, command: str) -> str:
    """Returns the page.

    Args:
        board: What was computed.
        command: The command that writes the page.
    """
    parts = [
        HEAD + "\n" + _origin(board, command),
        _reach(board),
        _by_machine(board),
        _carrying(board),
        MODELS + "\n\n" + _models(board),
        _choices(board),
        machines_worst.section(board.rows, board.validated),
        _questions(board),
        _parameters(board),
        DEFINITIONS,
        _reproduction(command),
        SOURCES,
    ]
    return "\n\n".join(parts) + "\n"


def summary(board: Scoreboard) -> str:
    """Returns the figures of the cross-validation as text for the terminal."""
    return _reach(board).split("\n\n", 1)[1]


def _origin(board: Scoreboard, command: str) -> str:
    questions = board.questions.height
    found = board.questions["predicted_us"].count()
    return paragraph(
        f"`{command}` writes this page. It calibrates on {board.model.used:,} of "
        f"{board.rows.height:,} measured series and predicts {found:,} of {questions:,} series on "
        "more nodes, of other collectives or of another machine. Their measured times are not "
        "used. The figures below are of cross-validation: each fold predicts measured series that "
        "its model has not seen."
    )


def _reach(board: Scoreboard) -> str:
    """Each aim, and what the folds of each kind reach."""
    full = board.comparison.filter(pl.col("model") == "full")
    columns = []
    for kind in KINDS:
        of_kind = full.filter(pl.col("kind") == kind)
        # A kind with one fold has no row for all.
        columns.append(of_kind.tail(1).to_dicts()[0] if of_kind.height else None)
    lines = [
        f"| {NAMES[name]} | {_range(name)} | "
        + " | ".join(
            "-" if one is None else _marked(name, one[name], _text(name, one[name]))
            for one in columns
        )
        + " |"
        for name in AIMS
    ]
    head = [
        "| figure | aim | " + " | ".join(KINDS.values()) + " |",
        "|---|--:" + "|--:" * len(KINDS) + "|",
    ]
    every = [(name, one[name]) for name in AIMS for one in columns if one is not None]
    missed = sum(not _reached(name, value) for name, value in every)
    text = f"Missed aims are in italics: {missed} of {len(every)}, here and in the following table."
    return "## Aims and results\n\n" + "\n".join([*head, *lines]) + "\n\n" + text


def _range(name: str) -> str:
    low, high = AIMS[name]
    if name == "inside":
        return f"{low * 100:.0f} to {high * 100:.0f} %"
    return f"{_text(name, low if high == 1.0 else high)} at {'least' if high == 1.0 else 'most'}"


def _reached(name: str, value: float | None) -> bool:
    low, high = AIMS[name]
    return value is not None and low <= value <= high


def _marked(name: str, value: float | None, text: str) -> str:
    """The text, in italics if the figure misses its aim."""
    met = value is None or name not in AIMS or _reached(name, value)
    return text if met else f"*{text}*"


def _text(name: str, value: float | None) -> str:
    """A figure with its unit."""
    unit = "" if value is None or name.startswith("factor") else " %"
    return _number(name, value) + unit


def _number(name: str, value: float | None) -> str:
    """A figure; shares are in per cent."""
    if value is None:
        return "-"
    if name.startswith("factor"):
        return f"{value:.2f}" if value < 100 else f"{value:,.0f}"
    if "regret" in name:
        return f"{value * 100:.1f}" if value < 1 else f"{value * 100:,.0f}"
    return f"{value * 100:.0f}"


def _table(head: Iterable[str], numbers: int, rows: Iterable[Iterable[str]]) -> str:
    """A table whose last columns are numbers."""
    names = list(head)
    marks = ["---"] * (len(names) - numbers) + ["--:"] * numbers
    lines = [names, marks, *map(list, rows)]
    return "\n".join("|" + "|".join(_cell(one, index == 1) for one in line) + "|"
                     for index, line in enumerate(lines))  # fmt: skip


def _cell(text: str, is_mark: bool) -> str:
    return text if is_mark else f" {text} "


SHOWN: Final = (
    "covered",
    "factor",
    "factor_p90",
    "winner",
    "regret",
    "regret_p90",
    "default_regret",
    "inside",
)
HEADINGS: Final = ("covered", "factor", "p90", "winner", "regret", "p90", "default", "inside")


def _by_machine(board: Scoreboard) -> str:
    """The figures of folds of more nodes, by machine and collective."""
    tests = [one.test for one in folds.folds(board.rows, kinds=("nodes",))]
    if not tests:
        return "## Machines and collectives\n\nNo machine has several node counts."
    test = pl.concat(tests)
    guesses = folds.model_predictions(board.validated, "full").filter(kind="nodes")
    guesses = guesses.drop("kind", "fold")
    parts = score(test, guesses, by=("system", "collective"))
    totals = score(test, guesses)
    rows = []
    for system in totals["system"]:
        total = totals.row(by_predicate=pl.col("system") == system, named=True)
        if system != "all":
            details = parts.filter(pl.col("system") == system).iter_rows(named=True)
            rows += [_figures(system, one["collective"], one) for one in details]
        rows.append(_figures(system, "all", total))
    head = ("machine", "collective", "rows", *HEADINGS)
    text = paragraph(
        "Folds of more nodes: each node count of a machine but its smallest is predicted from the "
        "smaller ones and from the other machines. Shares and regrets are in per cent."
    )
    return f"## Machines and collectives\n\n{text}\n\n" + _table(head, 9, rows)


def _figures(system: str, collective: str, row: dict[str, float | None]) -> list[str]:
    name = MACHINES.get(system, system)
    return [
        name,
        collective,
        f"{row['rows']:,}",
        *(_marked(one, row[one], _number(one, row[one])) for one in SHOWN),
    ]


def _carrying(board: Scoreboard) -> str:
    """The full model and the carried times, on the rows that both predict."""
    head = "## Comparison with carrying over\n\n"
    both = board.validated.filter(pl.col("carried_us").is_not_null(), kind="nodes")
    if both.is_empty():
        return head + "No algorithm has times at two node counts."
    test = board.rows.filter(pl.col("index").is_in(both["index"].to_list()))
    tables = {
        model: score(test, folds.model_predictions(both, model).drop("kind", "fold"))
        for model in ("carry-over", "full")
    }
    rows = []
    for system in tables["full"]["system"]:
        for model, table in tables.items():
            one = table.row(by_predicate=pl.col("system") == system, named=True)
            figures = (_number(name, one[name]) for name in SHOWN[1:6])
            rows.append([MACHINES.get(system, system), model, f"{one['rows']:,}", *figures])
    text = paragraph(
        "The rows whose algorithm was measured at the same size on fewer nodes. Both models "
        "predict all of them, so the figures are comparable. Winner and regret are in per cent."
    )
    names = ("machine", "model", "rows", *HEADINGS[1:6])
    return head + text + "\n\n" + _table(names, 6, rows)


def _choices(board: Scoreboard) -> str:
    """What choosing by an upper quantile changes, by kind of fold."""
    rows = []
    every = folds.model_predictions(board.validated, "full")
    for kind, name in KINDS.items():
        guesses = every.filter(kind=kind).drop("kind", "fold")
        if guesses.is_empty():
            continue
        tests = [one.test for one in folds.folds(board.rows, kinds=(kind,))]
        for rule, some in (("median", guesses.drop("choice_us")), ("upper quantile", guesses)):
            total = score(pl.concat(tests), some).row(-1, named=True)
            figures = (_number(one, total[one]) for one in ("winner", "regret", "regret_p90"))
            rows.append([name, rule, f"{total['groups']:,}", *figures])
    text = paragraph(
        f"Algorithms are compared by the time that they exceed in 7 of 100 cases: the median times "
        f"exp({CAUTION:g} s), where s is the standard deviation of its logarithm. An algorithm "
        "whose time depends on what is not known must promise more than a well-known one. The file "
        "of predictions has that time as `choice_us`. Shares and regrets are in per cent."
    )
    head = ("predicted", "chosen by", "groups", "winner", "regret", "p90")
    return f"## Choices under uncertainty\n\n{text}\n\n" + _table(head, 4, rows)


def _models(board: Scoreboard) -> str:
    rows = []
    several = {
        kind for kind, fold in board.comparison.select("kind", "fold").rows() if fold == "all"
    }
    for one in board.comparison.iter_rows(named=True):
        if one["covered"] == 0 or (one["kind"] in several and one["fold"] != "all"):
            continue
        shown = ("covered", "factor", "factor_p90", "winner", "regret", "regret_p90", "inside")
        name = f"{one['model']} (*)" if one["warranted"] else one["model"]
        figures = (_number(column, one[column]) for column in shown)
        rows.append([KINDS[one["kind"]], name, f"{one['rows']:,}", *figures])
    head = ("predicted", "model", "rows", "covered", "factor", "p90", "winner", "regret", "p90")
    return _table((*head, "inside"), 8, rows)


def _questions(board: Scoreboard) -> str:
    """How many questions have a prediction, and why others have none."""
    reasons = board.questions.drop_nulls("reason").group_by("reason").len()
    questions = board.questions.filter("named")
    found = questions["predicted_us"].count()
    share = found / questions.height if questions.height else 0.0
    lines = [
        f"{count:,}: {reason}" for reason, count in reasons.sort("len", "reason").reverse().rows()
    ]
    rows = [
        [
            MACHINES.get(system, system),
            NOVELTIES[new],
            f"{rows:,}",
            f"{have / rows * 100:.0f} %",
            f"{scale:.2f}",
            f"{width:.2f}",
        ]
        for system, new, rows, have, width, scale in questions.group_by("system", "novelty")
        .agg(
            pl.len(),
            pl.col("predicted_us").count().alias("have"),
            (pl.col("high_us") / pl.col("predicted_us")).median().fill_null(0.0).alias("width"),
        )
        .join(board.scales, on=("system", "novelty"))
        .sort("system", "novelty", descending=[False, True])
        .rows()
    ]
    text = paragraph(
        f"`validation/machines/predictions.csv` has {found:,} of the {questions.height:,} "
        f"questions about named algorithms ({share * 100:.1f} %). The table has the median "
        "half-width of the 90 % interval as a factor. The standard deviation is scaled by the "
        "factor in column `scale`: that of the machine's rows of folds with the same novelty, at "
        "least that of all machines. Beyond twice the nodes, and on an unseen machine, it is at "
        "least 1."
    )
    head = ("machine", "predicted", "questions", "covered", "scale", "interval")
    none = "Questions without a prediction:\n\n" + bullets(lines) if lines else ""
    return f"## Questions\n\n{text}\n\n{_table(head, 4, rows)}\n\n{none}".rstrip()


def _parameters(board: Scoreboard) -> str:
    """How many parameters the measurements determine."""
    rows = []
    for environment in sorted(board.model.curves):
        system, library, interface, nodes, memory = environment.split("/")
        determined = board.model.curves[environment].determined
        rows.append(
            [
                MACHINES.get(system, system),
                library.replace("_", " "),
                interface,
                nodes,
                memory,
                f"{int(determined.sum())} of {len(determined)}",
            ]
        )
    text = paragraph(
        "`validation/machines/calibration/` has a file per machine with each parameter, its 90 % "
        "interval, and whether the measurements determine it. A parameter is determined if its "
        "standard deviation is below half of that of its prior."
    )
    head = ("machine", "library", "interface", "ranks per node", "memory", "determined")
    return f"## Calibrated parameters\n\n{text}\n\n" + _table(head, 1, rows)


def _reproduction(command: str) -> str:
    text = paragraph(
        "The folder has `train.csv` and `questions.csv`. The command writes this page, "
        "`validation/machines/predictions.csv` and `validation/machines/calibration/`. It takes "
        "minutes on two cores; its output does not depend on their number. Without the folder, "
        "`python validation/score_machines.py --sample --out FOLDER` does the same with the "
        "committed sample."
    )
    return f"## Reproduction\n\n```sh\n{command}\n```\n\n{text}"
