"""Options that several commands share, in the syntax of nccl-tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tutti.base.datatypes import NCCL_NAMES
from tutti.base.files.mistakes import mistake
from tutti.base.ranges import SIZE, rank_counts, size
from tutti.cli.command_group import CommandGroup, Commands
from tutti.study.console import remark

if TYPE_CHECKING:
    from tutti.collectives.files.resolve import Experiment
    from tutti.platforms.files.platform_file import RawPlatform


def group(about: str) -> typer.Typer:
    """Returns a group of commands with the help text `about`."""
    return Commands(
        cls=CommandGroup,
        help=about,
        rich_markup_mode=None,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


ExperimentFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="The experiment file (TOML).", show_default=False)
]
OptionalExperiment = Annotated[
    str | None,
    typer.Argument(
        metavar="[FILE]",
        help="The experiment file (TOML), an algorithm or a schedule file. Default: options alone.",
        show_default=False,
    ),
]
Collective = Annotated[
    str | None, typer.Option("--collective", "-c", help="Collective. Default: all_reduce.")
]
Begin = Annotated[
    str | None, typer.Option("-b", "--begin", metavar="SIZE", help=f"Smallest size: {SIZE}.")
]
End = Annotated[str | None, typer.Option("-e", "--end", metavar="SIZE", help="Largest size.")]
Factor = Annotated[
    int | None, typer.Option("-f", "--factor", help="Factor between consecutive sizes.")
]
Repetitions = Annotated[
    int | None, typer.Option("-n", "--repetitions", help="Number of repetitions.")
]
Datatype = Annotated[
    str | None,
    typer.Option("-d", "--datatype", help="Datatype, such as float32 or int64."),
]
Ranks = Annotated[
    str | None,
    typer.Option(
        "--ranks",
        "-r",
        help="Rank counts: a list 4,8,12 or a range 4:1024 or 4:1024:4 (factor 4).",
    ),
]
Algorithms = Annotated[
    list[str] | None,
    typer.Option(
        "--algorithm",
        "-a",
        metavar="NAME[:ARG]",
        help="Algorithm, or `all`; may be repeated.",
    ),
]
Expansion = Annotated[
    str | None,
    typer.Option(
        "--algorithm",
        "-a",
        metavar="NAME[:ARG]",
        help="Algorithm that replaces collectives by messages.",
    ),
]
Platform = Annotated[
    str | None,
    typer.Option(
        "--platform",
        "-p",
        help="Name or file of a platform, or a topology such as torus:4x4x4,rate=25GB/s.",
    ),
]
Model = Annotated[
    str | None, typer.Option("--model", metavar="MODEL", help="Model of the platform.")
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override a key of the file, given by its path; may be repeated.",
    ),
]
Verify = Annotated[
    bool,
    typer.Option(
        "--verify/--no-verify", help="Verify schedules before timing them, or skip verification."
    ),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="FOLDER", help="Output folder, instead of the file's."),
]
Threads = Annotated[
    int, typer.Option("--threads", min=0, help="Number of threads; 0 is one per core.")
]


@dataclass
class Overrides:
    """Options that override keys of the experiment file; None where an option is not given."""

    size: str | None = None
    """The only size of a run; excludes `begin`, `end` and `factor`."""
    begin: str | None = None
    end: str | None = None
    factor: int | None = None
    repetitions: int | None = None
    datatype: str | None = None
    ranks: str | None = None
    algorithms: list[str] | None = None
    platform: str | None = None
    model: str | None = None
    changes: list[str] | None = None
    out: Path | None = None
    collective: str | None = None
    given: list[str] = field(default_factory=list)

    def load(self, file: Path | str | None) -> Experiment:
        """Reads an experiment file and applies the overrides.

        Args:
            file: The file. An algorithm, a schedule file, or None, means the defaults of
                `DEFAULTS`.

        Raises:
            ConfigError: The file or an option is invalid.
        """
        from tutti.cli.experiment_file import tables_of
        from tutti.collectives.files.resolve import resolve

        path, tables, stated = tables_of(file, self.algorithms or ())
        if path is None and file is not None and self.algorithms:
            self.algorithms = [*tables["algorithms"], *self.algorithms]
        tables = self._with_changes(tables)
        changed = self._tables(tables)
        tables.update(changed)
        if self.platform is not None and self.model is None:
            tables.pop("model", None)  # it is a model of the file's platform
        if file is None and not self.given:
            raise mistake(
                "missing argument: neither a file nor an option defines the experiment",
                source="FILE",
                expected="an experiment file, or options such as --platform dgx_h100 --ranks 8",
            )
        name = "options" if path is None else str(path)
        source = f"{name} with {' '.join(self.given)}" if self.given else name
        if path is None:
            defaults = _with_ranks(tables, source)
            _remark_defaults(
                tables, changed | stated, defaults, factor=self.factor is None and self.size is None
            )
        folder = Path() if path is None or self.platform is not None else path.parent
        experiment = resolve(tables, source=source, folder=folder)
        remark_platform(experiment.platform)
        return experiment

    def _with_changes(self, tables: dict[str, Any]) -> dict[str, Any]:
        """Returns the tables of the file with the keys that `--set` overrides."""
        from tutti.base.files.overrides import with_changes
        from tutti.collectives.files.tables import RawExperiment

        if not self.changes:
            return tables
        self.given.append("--set")
        example = "seed=2 or platform.mesh.fan_in=greedy"
        return with_changes(tables, self.changes, RawExperiment, example=example)

    def _tables(self, file: dict[str, Any]) -> dict[str, Any]:
        changed: dict[str, Any] = {}
        simple = {
            "repetitions": ("-n", self.repetitions),
            "datatype": ("-d", datatype(self.datatype)),
            "collective": ("--collective", self.collective),
            "platform": ("--platform", self.platform),
            "model": ("--model", self.model),
            "output": ("--out", str(self.out) if self.out else None),
        }
        for key, (option, value) in simple.items():
            if value is not None:
                changed[key] = value
                self.given.append(option)
        if self.ranks is not None:
            changed["ranks"] = rank_counts(self.ranks)
            self.given.append("--ranks")
        if self.algorithms:
            named = [from_here(notation) for notation in self.algorithms]
            changed["algorithms"] = "all" if named == ["all"] else named
            self.given.append("--algorithm")
        if self.size is not None:
            changed["sizes"] = size(self.size, "--size")
            self.given.append("--size")
        elif (self.begin, self.end, self.factor) != (None, None, None):
            changed["sizes"] = self._sizes(file.get("sizes"))
        return changed

    def _sizes(self, written: object) -> dict[str, Any]:
        first, last, factor = _span(written)
        if self.begin is not None:
            first = size(self.begin, "-b")
            self.given.append("-b")
        if self.end is not None:
            last = size(self.end, "-e")
            self.given.append("-e")
        if self.factor is not None:
            factor = self.factor
            self.given.append("-f")
        return {"from": first, "to": last, "factor": factor}


def _with_ranks(tables: dict[str, Any], source: str) -> dict[str, Any]:
    """Sets the default rank count in an experiment without a file; returns the defaults.

    A topology has a rank on every NPU; other platforms have at most 16 ranks.
    """
    from tutti.cli.experiment_file import DEFAULTS

    if tables["ranks"] is not DEFAULTS["ranks"]:
        return DEFAULTS
    tables["ranks"] = default_ranks(tables["platform"], DEFAULTS["ranks"], source=source)
    return DEFAULTS | {"ranks": tables["ranks"]}


def default_ranks(platform: object, counts: list[int], *, source: str) -> list[int]:
    """Returns the default rank counts on a platform: those of `counts` that fit.

    On a topology, the number of its NPUs replaces the largest.

    Args:
        platform: The platform.
        counts: Rank counts, ascending.
        source: The name of the options in errors.

    Raises:
        ConfigError: The platform is unknown.
    """
    from tutti.platforms.files.builder import npus
    from tutti.platforms.files.presets import find_platform
    from tutti.topologies.notation import is_notation

    if not isinstance(platform, str):
        return counts
    most = npus(find_platform(platform, folder=Path(), source=source), source=source)
    if most is None:
        return counts
    if is_notation(platform):
        return [*(n for n in counts[:-1] if n < most), most]
    return [n for n in counts if n <= most] or [most]


def remark_platform(platform: RawPlatform) -> None:
    """Names the values that the notation of a platform does not give."""
    from tutti.platforms.files.notation import defaults_of

    found = defaults_of(platform)
    if found:
        remark(found)


def _remark_defaults(
    tables: dict[str, Any], changed: dict[str, Any], defaults: dict[str, Any], *, factor: bool
) -> None:
    """Names the defaults of an experiment without a file, and the factor if it is one."""
    named = []
    for key, value in tables.items():
        if key in changed or value != defaults.get(key):
            continue
        if isinstance(value, dict):
            named.append(f"{key} {value['from']} to {value['to']}")
        elif isinstance(value, list):
            named.append(f"{key} {', '.join(map(str, value))}")
        else:
            named.append(f"{key} {value}")
    if factor and isinstance(tables["sizes"], dict):
        named.append(f"factor {tables['sizes']['factor']}")
    if named:
        remark(f"defaults: {'; '.join(named)}")


def from_here(notation: str) -> str:
    """Returns the absolute path of a file, or a name or notation unchanged."""
    path = Path(notation)
    return str(path.resolve()) if path.suffix and path.is_file() else notation


def _span(written: object) -> tuple[Any, Any, Any]:
    """Returns the first size, the last size and the factor of the file's `sizes`."""
    items = written if isinstance(written, list) and written else [written]
    first, last = items[0], items[-1]
    first = first.get("from") if isinstance(first, dict) else first
    factor = last.get("factor", 2) if isinstance(last, dict) else 2
    last = last.get("to") if isinstance(last, dict) else last
    return first, last, factor


def datatype(name: str | None) -> str | None:
    """Returns the tutti name of a datatype; nccl-tests' names are accepted."""
    return NCCL_NAMES.get(name, name) if name else name
